"""What the table of tools claims, by running both frameworks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import paddle
import pytest
import torch

from parfocal.backends.counterparts import signatures
from parfocal.backends.counterparts.entry import Category
from parfocal.backends.counterparts.lookup import catalogue, find
from parfocal.backends.counterparts.names import names
from parfocal.backends.counterparts.signatures import resolve, signature_of
from tests.pairs import vision  # noqa: F401  torchvision's operators

COEFF, RATE = 0.3, 0.1
WEIGHT = np.linspace(-1.0, 1.5, 12, dtype="float32").reshape(3, 4)
GIVEN = np.linspace(-2.0, 1.0, 6, dtype="float32").reshape(2, 3)


def paddle_step(kind: str, **settings: Any) -> Any:
    weight = paddle.create_parameter(list(WEIGHT.shape), "float32")
    weight.set_value(WEIGHT)
    optimizer = getattr(paddle.optimizer, kind)(RATE, parameters=[weight], **settings)
    (paddle.to_tensor(GIVEN) @ weight).square().sum().backward()
    optimizer.step()
    return weight.numpy()


def torch_step(kind: str, penalty: Any = None, clip: float | None = None, **settings: Any) -> Any:
    weight = torch.nn.Parameter(torch.tensor(WEIGHT))
    optimizer = getattr(torch.optim, kind)([weight], RATE, **settings)
    loss = (torch.tensor(GIVEN) @ weight).square().sum()
    (loss if penalty is None else loss + penalty(weight)).backward()
    if clip is not None:
        torch.nn.utils.clip_grad_norm_([weight], clip)
    optimizer.step()
    return weight.detach().numpy()


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_regularizers_are_what_is_written_instead(kind: str) -> None:
    regularizer = paddle.regularizer
    squared = paddle_step(kind, weight_decay=regularizer.L2Decay(COEFF))
    assert np.allclose(squared, torch_step(kind, weight_decay=COEFF), atol=1e-5)
    absolute = paddle_step(kind, weight_decay=regularizer.L1Decay(COEFF))
    assert np.allclose(absolute, torch_step(kind, lambda w: COEFF * w.abs().sum()), atol=1e-5)
    assert not np.allclose(squared, torch_step("AdamW", weight_decay=COEFF), atol=1e-3)


def test_a_clip_by_norm_is_that_of_every_parameter() -> None:
    clipped = paddle_step("SGD", grad_clip=paddle.nn.ClipGradByNorm(0.5))
    assert np.allclose(clipped, torch_step("SGD", clip=0.5), atol=1e-6)


def test_attributes_of_a_parameter_are_settings_elsewhere() -> None:
    attr = paddle.ParamAttr(
        initializer=paddle.nn.initializer.Constant(0.5),
        learning_rate=0.5,
        regularizer=paddle.regularizer.L2Decay(COEFF),
    )
    layer = paddle.nn.Linear(3, 4, weight_attr=attr, bias_attr=paddle.ParamAttr(trainable=False))
    twin = torch.nn.Linear(3, 4)
    torch.nn.init.constant_(twin.weight, 0.5)
    torch.nn.init.zeros_(twin.bias)
    twin.bias.requires_grad = False
    optimizer = paddle.optimizer.SGD(RATE, parameters=layer.parameters())
    group = {"params": [twin.weight], "lr": 0.5 * RATE, "weight_decay": COEFF}
    (layer(paddle.to_tensor(GIVEN)).square().sum()).backward()
    (twin(torch.tensor(GIVEN)).square().sum()).backward()
    optimizer.step()
    torch.optim.SGD([group]).step()
    assert np.allclose(layer.weight.numpy().T, twin.weight.detach().numpy(), atol=1e-6)
    assert np.allclose(layer.bias.numpy(), twin.bias.detach().numpy())


def test_rows_are_copied_alike() -> None:
    rows, index = np.zeros((2, 4), "float32"), np.array([2, 0])
    ours = torch.index_copy(torch.tensor(WEIGHT), 0, torch.tensor(index), torch.tensor(rows))
    theirs = paddle.scatter(paddle.to_tensor(WEIGHT), paddle.to_tensor(index), paddle.to_tensor(rows))
    assert np.array_equal(ours.numpy(), theirs.numpy())


def test_a_seed_is_that_of_every_device() -> None:
    paddle.seed(7)
    first = paddle.rand([3]).numpy()
    paddle.seed(7)
    assert np.array_equal(first, paddle.rand([3]).numpy())
    assert "get_cuda_device_count" in inspect.getsource(paddle.seed)


def test_a_process_alone_is_a_world_of_one() -> None:
    assert paddle.distributed.get_world_size() == 1
    assert paddle.distributed.get_rank() == 0


def test_jitter_of_one_kind_is_that_of_all_with_one_value() -> None:
    ours, theirs = resolve("torchvision.transforms"), resolve("paddle.vision.transforms")
    for name in ("Brightness", "Contrast", "Saturation", "Hue"):
        whole = ours.ColorJitter(**{name.lower(): 0.4})
        single = getattr(theirs, f"{name}Transform")(0.4)
        assert tuple(single.value) == pytest.approx(tuple(getattr(whole, name.lower())))


def test_the_current_rate_is_read_alike() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    ours = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([weight], RATE), 1, 0.5)
    schedule = paddle.optimizer.lr.StepDecay(RATE, 1, 0.5)
    theirs = paddle.optimizer.SGD(schedule, parameters=[paddle.create_parameter([1], "float32")])
    ours.optimizer.step(), ours.step(), schedule.step()
    assert ours.get_last_lr()[0] == pytest.approx(theirs.get_lr())


def test_samplers_give_the_same_batches() -> None:
    data, numbers = list(range(7)), torch.utils.data.SequentialSampler(range(7))
    ours = list(torch.utils.data.BatchSampler(numbers, 3, drop_last=False))
    sampler = paddle.io.SequenceSampler(data)
    assert ours == list(paddle.io.BatchSampler(sampler=sampler, batch_size=3, drop_last=False))
    for each in (torch.utils.data.RandomSampler(data), paddle.io.RandomSampler(data)):
        assert sorted(each) == data


def test_transforms_of_both_give_the_same_tensor() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (9, 8, 3)).astype("uint8")
    made = []
    for home in (resolve("torchvision.transforms"), resolve("paddle.vision.transforms")):
        steps = [home.ToTensor(), home.Normalize([0.5] * 3, [0.25] * 3), home.CenterCrop(4)]
        made.append(np.asarray(home.Compose(steps)(picture)))
    assert np.allclose(*made, atol=1e-6)


def test_classes_are_found_by_where_they_are_defined() -> None:
    for each in catalogue():
        if each.category is not Category.LAYER:
            continue
        for name in (each.torch, each.paddle):
            kind = resolve(name) if name else None
            home = getattr(kind, "__module__", "")
            if name and home.startswith(("torch.nn.modules.", "paddle.nn.layer.")):
                defined = f"{home}.{kind.__name__}"
                assert [one.name for one in find(defined)] == [one.name for one in find(name)], defined


def test_what_only_one_side_has_is_not_there_in_the_other() -> None:
    homes = {"paddle.io": "torch.utils.data", "paddle.vision.transforms": "torchvision.transforms"}
    for name in (name for each in names().lone for name in each.names):
        home, _, last = name.rpartition(".")
        assert resolve(f"{homes.get(home, home.replace('paddle', 'torch'))}.{last}") is None or (
            name.startswith("torch.")
        ), name


def test_arguments_that_cannot_be_read_are_not_said_to_be_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a package was built for another framework than is installed."""

    def broken(name: str) -> Any:
        if name.startswith("torchvision."):
            raise RuntimeError("operator torchvision::nms does not exist")
        return resolve(name)

    monkeypatch.setattr(signatures, "resolve", broken)
    (found,) = find("torchvision.transforms.RandomErasing")
    assert [(row.torch.name, row.paddle.name) for row in found.arguments] == [("p", "prob")]


def test_arguments_of_packages_are_shown() -> None:
    assert signature_of("torchvision.transforms.Resize")["antialias"] == "True"
    (found,) = find("transforms.RandomErasing")
    assert ("p", "prob") in [
        (row.torch.name, row.paddle.name) for row in found.arguments if row.torch and row.paddle
    ]


def test_an_argument_without_a_name_of_its_own_is_none():
    """On every Python: 3.13 calls the only argument of a function in C "object"."""
    assert "object" not in (signature_of("torch.from_numpy") or {})
