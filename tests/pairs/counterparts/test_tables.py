"""The tables of counterparts against the installed frameworks."""

from __future__ import annotations

import re

import paddle
import pytest
import torch

from parfocal.backends.counterparts.entry import Category, Relation
from parfocal.backends.counterparts.lookup import catalogue, find
from parfocal.backends.counterparts.names import names
from parfocal.backends.counterparts.parameters import PARAMETERS, Move, ParameterCounterpart
from parfocal.backends.counterparts.signatures import resolve, signature_of
from parfocal.backends.opcalls import base_name
from parfocal.backends.paddle import ops as paddle_ops
from parfocal.backends.paddle import training as paddle_training
from parfocal.backends.torch import ops as torch_ops
from parfocal.backends.torch import training as torch_training
from tests.pairs import vision  # noqa: F401  torchvision's operators

ENTRIES = catalogue()
NAMES = sorted({name for each in ENTRIES for name in (each.torch, each.paddle) if name})


def test_every_name_is_there_in_the_installed_frameworks():
    assert [name for name in NAMES if resolve(name) is None] == []
    assert len(NAMES) > 500


def test_a_name_without_counterpart_has_none_under_the_same_spelling():
    lone = [each for each in ENTRIES if each.torch is None or each.paddle is None]
    for each in lone:
        name = each.torch or each.paddle
        other = name.replace("torch.", "paddle.", 1) if each.torch else name.replace("paddle.", "torch.", 1)
        if ".nn." in name and ".utils." not in name and name != "paddle.nn.RNN":  # torch's RNN is SimpleRNN
            assert resolve(other) is None, name
            assert resolve(re.sub(r"([123])d$", r"\1D", other)) is None, name


def test_every_argument_of_the_tables_is_there():
    for each in ENTRIES:
        for pair in each.arguments:
            for name, argument in ((each.torch, pair.torch), (each.paddle, pair.paddle)):
                known = signature_of(name) if name else None
                if argument and known:
                    missing = [part for part in argument.split(", ") if part not in known]
                    assert not missing or (name, argument) == ("torch.nn.RNN", "nonlinearity"), (
                        name,
                        missing,
                    )


def test_functions_agree_with_the_names_of_recorded_ops():
    for each in ENTRIES:
        if each.category in (Category.FUNCTION, Category.TENSOR) and each.torch and each.paddle:
            ours = base_name(each.torch, torch_ops.RENAMED)
            theirs = base_name(each.paddle, paddle_ops.RENAMED)
            apart = {
                "huber_loss",
                "threshold",
                "scatter",
                "from_numpy",
                "as_tensor",
                "index_copy",
                "manual_seed",
            }  # no recorded op of both
            assert ours == theirs or ours in apart, (each.torch, each.paddle)


def test_optimizers_agree_with_the_settings_of_recorded_ones():
    for each in ENTRIES:
        if each.category is not Category.OPTIMIZER or not (each.torch and each.paddle):
            continue
        kind = each.paddle.rpartition(".")[2]
        related = {(pair.torch, pair.paddle) for pair in each.arguments}
        shared = torch_training.SETTINGS[kind].keys() & paddle_training.SETTINGS[kind].keys()
        for setting in shared - {"betas"} if kind != "LBFGS" else ():
            pair = torch_training.SETTINGS[kind][setting], paddle_training.SETTINGS[kind][setting]
            assert pair in related, (each.torch, setting)


SIZES = {"out": 5, "in": 3, "in / groups": 3, "out / groups": 5, "in 1": 2, "in 2": 4, "channels": 6, "1": 1}
SIZES |= {"kernel": 2, "kernel depth": 2, "kernel height": 3, "kernel width": 4, "parameters": 6, "rows": 7}
SIZES |= {"features": 3, "input": 3, "hidden": 5, "3 hidden": 15, "4 hidden": 20, "embed": 4, "3 embed": 12}
_KERNELS = {1: 2, 2: (3, 4), 3: (2, 3, 4)}
GIVEN = {
    "Linear": (3, 5),
    "Bilinear": (2, 4, 5),
    **{f"Conv{rank}d": (3, 5, kernel) for rank, kernel in _KERNELS.items()},
    **{f"ConvTranspose{rank}d": (3, 5, kernel) for rank, kernel in _KERNELS.items()},
    **{f"{name}{rank}d": (6,) for name in ("BatchNorm", "InstanceNorm") for rank in (1, 2, 3)},
    "SyncBatchNorm": (6,),
    "GroupNorm": (2, 6),
    "PReLU": (6,),
    "Embedding": (7, 3),
    **{f"{name}{end}": (3, 5) for name in ("RNN", "LSTM", "GRU") for end in ("", "Cell")},
    "MultiheadAttention": (4, 2),
}
LAYERS = {
    each.kind: each for each in reversed(ENTRIES) if each.kind and each.torch and each.paddle and each.exact
}


@pytest.mark.parametrize("kind", [kind for kind in PARAMETERS if kind != "LayerNorm"])
def test_stored_tensors_lie_as_the_table_says(kind):
    entry = LAYERS[kind]
    more = {"affine": True} if kind.startswith("InstanceNorm") else {}
    ours = resolve(entry.torch)(*GIVEN[kind], **more).state_dict()
    theirs = resolve(entry.paddle)(*GIVEN[kind]).state_dict()
    sizes = {**SIZES, **({"out": 4} if kind == "MultiheadAttention" else {})}
    for each in PARAMETERS[kind]:
        if each.torch:
            assert list(ours[each.torch].shape) == [sizes[axis] for axis in each.torch_axes], each
        if each.paddle:
            assert theirs[each.paddle].shape == [sizes[axis] for axis in each.paddle_axes], each
    assert {each.torch for each in PARAMETERS[kind]} - {None} == set(ours)
    own = {name for name in theirs if ".cell" not in name}
    assert {each.paddle for each in PARAMETERS[kind]} - {None} == own


def test_what_becomes_of_a_tensor():
    moves = {kind: [each.moves for each in stored] for kind, stored in PARAMETERS.items()}
    assert moves["Linear"] == [(Move.TRANSPOSED,), (Move.SAME,)]
    assert moves["BatchNorm2d"][2:] == [(Move.RENAMED,), (Move.RENAMED,), (Move.DROPPED,)]
    assert moves["MultiheadAttention"][0] == (Move.SPLIT, Move.TRANSPOSED)
    assert moves["MultiheadAttention"][3] == (Move.SPLIT,)
    assert moves["LayerNorm"][0] == (Move.RESHAPED,)
    assert ParameterCounterpart("a", ("x", "y"), "b", ("y", "x")).moves == (Move.TRANSPOSED, Move.RENAMED)


def relation_of(name, argument):
    return next(
        row.relation
        for row in find(name)[0].arguments
        if row.torch is not None and row.torch.name == argument
    )


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean")
def test_relations_hold_for_the_layers_themselves():
    assert relation_of("torch.nn.BatchNorm2d", "momentum") is Relation.COMPLEMENT
    ours, theirs = torch.nn.BatchNorm1d(1, momentum=0.25), paddle.nn.BatchNorm1D(1, momentum=0.75)
    ours(torch.tensor([[2.0], [4.0]])), theirs(paddle.to_tensor([[2.0], [4.0]]))
    assert ours.running_mean.item() == pytest.approx(theirs._mean.item())
    assert relation_of("torch.nn.AvgPool2d", "count_include_pad") is Relation.OPPOSITE
    assert relation_of("torch.nn.Linear", "bias") is Relation.PRESENCE
    assert relation_of("torch.nn.GELU", "approximate") is Relation.CONVERTED
    assert relation_of("torch.nn.MaxPool2d", "dilation") is Relation.FIXED
    assert relation_of("torch.nn.LayerNorm", "eps") is Relation.SAME
    assert relation_of("torch.optim.AdamW", "betas") is Relation.PARTS
    assert relation_of("torch.optim.AdamW", "maximize") is Relation.ONE_SIDED


def test_functions_have_the_relations_of_their_layers():
    assert relation_of("torch.nn.functional.batch_norm", "momentum") is Relation.COMPLEMENT
    assert relation_of("torch.nn.SyncBatchNorm", "momentum") is Relation.COMPLEMENT
    assert relation_of("torch.nn.functional.avg_pool2d", "count_include_pad") is Relation.OPPOSITE
    assert relation_of("torch.nn.functional.gelu", "approximate") is Relation.CONVERTED
    x = torch.tensor([1.0, 2.0, 4.0])
    assert relation_of("torch.std", "correction") is Relation.CONVERTED
    (row,) = (row for row in find("torch.std")[0].arguments if row.torch and row.torch.name == "correction")
    for ours, theirs in row.values:
        value = paddle.std(paddle.to_tensor(x.numpy()), unbiased=theirs).item()
        assert torch.std(x, correction=ours).item() == pytest.approx(value)


def test_an_argument_of_one_name_is_not_called_the_same_where_momenta_differ():
    """Every momentum of a norm whose defaults add up to one is the other's complement."""
    for each in ENTRIES:
        if each.torch and each.paddle and "Norm" in each.torch + each.torch.title().replace("_", ""):
            for row in find(each.torch)[0].arguments:
                if row.torch and row.paddle and row.torch.name == "momentum":
                    assert row.relation is Relation.COMPLEMENT, each.torch


def test_defaults_are_those_of_the_frameworks():
    rows = {row.torch.name: row for row in find("torch.nn.BatchNorm2d")[0].arguments if row.torch}
    assert (rows["momentum"].torch.default, rows["momentum"].paddle.default) == ("0.1", "0.9")
    assert rows["num_features"].torch.default is None
    assert signature_of("torch.cat") == {"tensors": None, "dim": "0", "out": "None"}
    assert signature_of("torch.nn.functional.max_pool2d")["dilation"] == "1"


def test_replacements_give_the_same():
    x = torch.randn(2, 3)
    theirs = paddle.nn.functional.softmax(-paddle.to_tensor(x.numpy()), 1)
    assert abs(torch.nn.Softmin(1)(x).numpy() - theirs.numpy()).max() < 1e-6
    dropped = paddle.nn.Dropout(0.5, axis=[0, 1])(paddle.ones([8, 8, 5])).numpy()
    assert {tuple(set(channel.tolist())) for sample in dropped for channel in sample} == {(0.0,), (2.0,)}


def test_the_longest_of_several_documented_forms_counts():
    assert {"dim", "keepdim"} <= set(signature_of("torch.max"))
    assert "enable_gqa" in signature_of("torch.nn.functional.scaled_dot_product_attention")


def test_what_is_said_of_a_name_is_said_of_one_that_is_there():
    known = {name for each in ENTRIES for name in (each.torch, each.paddle) if name}
    assert names().instead.keys() <= known
    for group in names().group:
        ours = {*group.same, *group.renamed}
        assert group.arguments.keys() <= ours, group
        assert {name for each in group.related for name in each.of} <= ours, group
