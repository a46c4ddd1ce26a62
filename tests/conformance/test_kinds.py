"""Every layer has one kind, and its settings read the same from both frameworks."""

from __future__ import annotations

import importlib
import inspect

import pytest

from parfocal.backends import vocabulary
from tests.conformance.layers import ONLY_PADDLE, ONLY_TORCH, PAIRS
from tests.conformance.models import kit_for

# Bases and helpers that are never layers of a model, or share a name by accident.
NOT_LAYERS = {
    *("module", "layer", "rnncellbase", "rnnbase", "container", "dataparallel"),
    "rnn",  # paddle's RNN runs a given cell; its SimpleRNN is torch's RNN
    "linearcrossentropyloss",
}


def classes(namespace, base):
    return {
        name.lower(): kind
        for name, kind in vars(namespace).items()
        if inspect.isclass(kind) and issubclass(kind, base) and not name.startswith("Lazy")
    }


def build(kit, made):
    name, args, kwargs = made
    return getattr(kit.nn, name)(*args, **kwargs)


@pytest.mark.parametrize("kind", sorted(PAIRS))
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_the_same_layer_says_the_same_of_itself(kind):
    for_torch, for_paddle, differences = PAIRS[kind]
    sides = {}
    for name, made in (("torch", for_torch), ("paddle", for_paddle)):
        kit = kit_for(name)
        layer = build(kit, made)
        assert kit.backend.kind(layer) == kind
        assert kit.backend.is_framework_layer(layer)
        sides[name] = kit.backend.settings(layer)
        assert set(sides[name]) <= set(vocabulary.SETTINGS)
    for setting in sorted(set(sides["torch"]) | set(sides["paddle"])):
        left = sides["torch"].get(setting, ONLY_PADDLE)
        right = sides["paddle"].get(setting, ONLY_TORCH)
        if setting in differences:
            assert (left, right) == differences[setting]
        else:
            assert left == pytest.approx(right) if isinstance(left, float) else left == right, setting


def test_no_kind_that_both_have_is_left_out():
    from parfocal.backends.paddle.settings import SETTINGS as PADDLE
    from parfocal.backends.torch.settings import SETTINGS as TORCH

    both = set(TORCH) & set(PADDLE)
    assert both - set(PAIRS) == {"TransformerEncoder", "TransformerDecoder"}  # need a layer: tested below
    assert set(TORCH) | set(PADDLE) == set(vocabulary.kinds_of_layers())


def test_every_class_that_both_namespaces_have_is_of_one_kind():
    torch, paddle = kit_for("torch"), kit_for("paddle")
    from parfocal.backends.paddle.kinds import kind_of as paddle_kind
    from parfocal.backends.torch.kinds import kind_of as torch_kind

    left = classes(torch.nn, torch.base)
    right = {
        **classes(paddle.paddle.compat.nn, paddle.base),
        **classes(paddle.nn, paddle.base),
    }
    shared = (set(left) & set(right)) - NOT_LAYERS
    assert len(shared) > 100
    aliases = {"huberloss": ("HuberLoss", "SmoothL1Loss")}  # paddle's is another name of one class
    for name in sorted(shared):
        kinds = (torch_kind(left[name]), paddle_kind(right[name]))
        assert kinds == aliases.get(name, (kinds[0], kinds[0])), name
        assert set(kinds) <= set(vocabulary.kinds_of_layers()), name


def test_every_class_of_one_namespace_has_a_kind(kit):
    alone = {
        "torch": {"dataparallel", "container", "module", "rnnbase", "rnncellbase", "linearcrossentropyloss"},
        "paddle": {"layer", "module", "rnncellbase"},
        "toybox": {"layer", "residual"},
    }
    kind_of = kit.backend.kinds.kind_of
    without = {name for name, kind in classes(kit.backend.home, kit.base).items() if kind_of(kind) is None}
    assert without == alone[kit.name]


def test_stacks_say_their_layers(kit, backend):
    kit.need("TransformerEncoderLayer")
    layer = build(kit, PAIRS["TransformerEncoderLayer"][0 if kit.name == "torch" else 1])
    if kit.name == "torch":
        stack = kit.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    else:
        stack = kit.nn.TransformerEncoder(layer, 3)
    meaning = {"torch": "drop", "paddle": "keep"}[kit.name]
    assert backend.kind(stack) == "TransformerEncoder"
    assert backend.settings(stack) == {"layers": 3, "boolean_mask": meaning}


def test_a_users_subclass_keeps_the_kind_but_is_the_users(kit, backend):
    own = type("OwnLinear", (type(kit.linear(2, 2)),), {})(3, 4)
    assert backend.kind(own) == "Linear"
    assert not backend.is_framework_layer(own)
    assert backend.settings(own)["in_features"] == 3


def test_a_users_module_has_its_own_name_and_no_settings(kit, backend):
    model = kit.module(lambda self, x: x, name="Block")
    assert backend.kind(model) == "Block"
    assert not backend.is_framework_layer(model)
    assert backend.settings(model) == {}


def test_library_models_are_the_users():
    paddle = kit_for("paddle")
    model = paddle.paddle.vision.models.LeNet()
    assert not paddle.backend.is_framework_layer(model)
    assert paddle.backend.kind(model) == "LeNet"


def test_padding_in_all_its_spellings():
    torch, paddle = kit_for("torch"), kit_for("paddle")

    def read(kit, *args, **kwargs):
        name = "Conv2d" if kit.name == "torch" else "Conv2D"
        return kit.backend.settings(getattr(kit.nn, name)(1, 1, 3, *args, **kwargs))["padding"]

    assert read(torch, padding=1) == read(paddle, padding=1) == (1, 1)
    assert read(torch, padding=(1, 2)) == read(paddle, padding=[1, 2]) == (1, 2)
    assert read(torch, padding="same") == read(paddle, padding="SAME") == "same"
    assert read(torch, padding="valid") == read(paddle, padding="VALID") == (0, 0)
    assert read(paddle, padding=[1, 1, 2, 2]) == (1, 2)
    assert read(paddle, padding=[1, 2, 3, 3]) == ((1, 2), (3, 3))
    assert read(paddle, padding=[[0, 0], [0, 0], [1, 1], [3, 3]]) == (1, 3)
    last = read(paddle, padding=[[0, 0], [1, 2], [3, 3], [0, 0]], data_format="NHWC")
    assert last == ((1, 2), (3, 3))


def test_channels_last_is_seen():
    paddle = kit_for("paddle")
    layer = paddle.nn.Conv2D(2, 2, 1, data_format="NHWC")
    assert paddle.backend.settings(layer)["channels_last"] is True
    norm = paddle.nn.BatchNorm(2, data_layout="NHWC")
    assert paddle.backend.settings(norm)["channels_last"] is True


def test_paddles_old_batch_norm_with_an_activation():
    paddle = kit_for("paddle")
    layer = paddle.nn.BatchNorm(3, act="relu", momentum=0.8, epsilon=1e-3, use_global_stats=True)
    assert paddle.backend.kind(layer) == "BatchNorm"
    settings = paddle.backend.settings(layer)
    assert settings["activation"] == "relu"
    assert settings["momentum"] == pytest.approx(0.2)
    assert settings["use_global_stats"] is True


def test_paddles_compat_layers_behave_as_torchs():
    torch, paddle = kit_for("torch"), kit_for("paddle")
    compat = paddle.paddle.compat.nn
    for made in (
        ("Linear", (3, 4), {}),
        ("Softmax", (1,), {}),
        ("AvgPool1d", (3,), {"padding": 1}),
        ("AvgPool2d", (3,), {"padding": 1, "divisor_override": 5}),
        ("MultiheadAttention", (4, 2), {"batch_first": True}),
        ("Unfold", (3,), {"dilation": 2, "padding": 1, "stride": 2}),
    ):
        name, args, kwargs = made
        theirs, ours = getattr(torch.nn, name)(*args, **kwargs), getattr(compat, name)(*args, **kwargs)
        assert torch.backend.kind(theirs) == paddle.backend.kind(ours)
        assert torch.backend.settings(theirs) == paddle.backend.settings(ours), name
        assert paddle.backend.is_framework_layer(ours)


def test_epsilon_that_follows_the_dtype():
    torch = kit_for("torch")
    layer = torch.nn.RMSNorm(4)
    assert torch.backend.settings(layer)["epsilon"] == pytest.approx(1.1920929e-07)
    assert torch.backend.settings(torch.nn.RMSNorm(4, eps=1e-3))["epsilon"] == 1e-3


def test_families_ignore_rank_and_variant():
    assert vocabulary.family("BatchNorm2d") == vocabulary.family("SyncBatchNorm") == "BatchNorm"
    assert vocabulary.family("ReflectionPad2d") == vocabulary.family("Pad1d") == "Pad"
    assert vocabulary.family("Linear") == "Linear"


def test_tables_speak_the_vocabulary(kit):
    home = type(kit.backend).__module__.rpartition(".")[0]
    ops = importlib.import_module(f"{home}.ops")
    assert set(ops.RENAMED.values()) <= set(vocabulary.functional_ops())
    kit.need("optimizers")
    training = importlib.import_module(f"{home}.training")
    assert set(training.SETTINGS) <= set(vocabulary.optimizers())
    assert {name for table in training.SETTINGS.values() for name in table} <= set(
        vocabulary.OPTIMIZER_SETTINGS
    )
    assert {name for table in training.SLOTS.values() for name in table} <= set(vocabulary.SLOTS)
