"""A plan saved, edited and handed back; rules of the user's own; every shape that inputs may have."""

from __future__ import annotations

import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.backends import registry
from parfocal.errors import FileFormatError, InputError, TransferError
from parfocal.inputs import arguments, leaves
from parfocal.weights.rules import Rule
from tests.pairs.weights.tools import gap, randomise, run, state_bytes

T, P = torch.nn, paddle.nn
X = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")


def pair() -> tuple[Any, Any]:
    reference = T.Sequential(T.Linear(4, 4), T.ReLU(), T.Linear(4, 4))
    port = P.Sequential(P.Linear(4, 4), P.ReLU(), P.Linear(4, 4))
    return randomise(reference, 1), randomise(port, 2)


def test_a_plan_can_be_saved_and_handed_back(tmp_path: Path) -> None:
    reference, port = pair()
    path = tmp_path / "plan.json"
    pf.transfer(reference, port).save(path)
    expected = state_bytes(port)
    randomise(port, 3)
    again = pf.transfer(reference, port, plan=path)
    assert again.complete
    assert again.verified is None
    assert state_bytes(port) == expected
    assert pf.transfer(reference, port, X, plan=pf.Plan.load(path)).verified is True


def test_an_edited_plan_is_carried_out(tmp_path: Path) -> None:
    reference, port = pair()
    path = tmp_path / "plan.json"
    pf.transfer(reference, port).save(path)
    document = json.loads(path.read_text())
    for entry in document["entries"]:
        entry["source"] = entry["source"].replace("0.", "x.").replace("2.", "0.").replace("x.", "2.")
    path.write_text(json.dumps(document))
    assert pf.transfer(reference, port, X, plan=path).verified is False
    assert np.array_equal(port[0].weight.numpy().T, reference[2].weight.detach().numpy())


def edit(tmp_path: Path, change: Any) -> tuple[Any, Any, Path]:
    reference, port = pair()
    path = tmp_path / "plan.json"
    pf.transfer(reference, port).save(path)
    document = json.loads(path.read_text())
    change(document["entries"])
    path.write_text(json.dumps(document))
    return reference, port, path


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda e: e.pop(0), TransferError, r"0.weight \[4, 4\]: the plan writes 0 of its 16 elements"),
        (
            lambda e: e.append(e[0]),
            InputError,
            r"writes parts of 0.weight more than once \(32 of 16 elements\)",
        ),
        (lambda e: e[0].update(source="nine"), InputError, r"entry 0 .*: the reference has no tensor 'nine'"),
        (lambda e: e[0].update(target="nine"), InputError, r"entry 0 .*: the port has no tensor 'nine'"),
        (
            lambda e: e[0].update(source_view=[["slice", 0, 0, 2]]),
            InputError,
            r"the source view has shape \[2, 4\], the target view \[4, 4\]",
        ),
        (
            lambda e: e[0].update(target_view=[["reshape", 5]]),
            InputError,
            r"does not fit a tensor of shape \[4, 4\]",
        ),
        (lambda e: e[0].update(target_view="T"), FileFormatError, r"entries\[0\]: the field 'target_view'"),
    ],
)
def test_a_bad_plan_is_refused_and_changes_nothing(
    tmp_path: Path, change: Any, error: Any, message: str
) -> None:
    reference, port, path = edit(tmp_path, change)
    before = state_bytes(port)
    with pytest.raises(error, match=message):
        pf.transfer(reference, port, plan=path)
    assert state_bytes(port) == before


class Odd(T.Module):
    """Keeps its weight negated and doubled: no table can know."""

    def __init__(self) -> None:
        super().__init__()
        self.odd = T.Parameter(torch.zeros(4, 4))

    def forward(self, x: Any) -> Any:
        return x @ (-2 * self.odd)


def copy_odd(reference: Any, port: Any) -> None:
    port.weight.set_value((-2 * reference.odd).detach().numpy())


def odd_pair() -> tuple[Any, Any]:
    return (
        randomise(T.Sequential(T.Linear(4, 4), Odd()), 1),
        randomise(P.Sequential(P.Linear(4, 4), P.Linear(4, 4, bias_attr=False)), 2),
    )


RULE = Rule("torch", "Odd", "paddle", "Linear", copy_odd)


def test_a_rule_copies_by_itself() -> None:
    reference, port = odd_pair()
    plan = pf.transfer(reference, port, X, rules=[RULE], layers={"1": "1"})
    assert plan.verified is True
    assert "1 -> 1: copied by a rule of the user" in plan.notes
    assert gap(run(reference, X), run(port, X)) < 1e-5


def test_a_class_by_its_full_name() -> None:
    reference, port = odd_pair()
    rule = Rule("torch", "Odd", "paddle", "paddle.nn.layer.common.Linear", copy_odd)
    assert pf.transfer(reference, port, rules=[rule], layers={"1": "1"}).complete


def test_rules_that_go_wrong() -> None:
    reference, port = odd_pair()
    before = state_bytes(port)

    def fails(reference: Any, port: Any) -> None:
        copy_odd(reference, port)
        raise RuntimeError("half way")

    rule = Rule("torch", "Odd", "paddle", "Linear", fails)
    with pytest.raises(
        TransferError, match="the rule Odd -> Linear failed for 1 -> 1: RuntimeError: half way"
    ):
        pf.transfer(reference, port, rules=[rule], layers={"1": "1"})
    assert state_bytes(port) == before
    with pytest.raises(
        TransferError, match=r"fits 1 modules of the reference \(1\) and 2 of the port \(0, 1\)"
    ):
        pf.transfer(reference, port, rules=[RULE])
    with pytest.raises(InputError, match="rules= takes"):
        pf.transfer(reference, port, rules=[copy_odd])
    with pytest.raises(InputError, match="cannot be called"):
        pf.transfer(reference, port, rules=[Rule("torch", "a", "paddle", "b", None)])  # type: ignore[arg-type]


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_inputs_of_every_shape(name: str) -> None:
    backend = registry.get(name)
    ids = np.array([[1, 2]])
    args, kwargs = arguments((X, ids, 3, None, "word"), backend)
    assert backend.is_tensor(args[0])
    assert backend.dtype(args[1]) == "int64"
    assert args[2:] == (3, None, "word")
    assert kwargs == {}
    args, kwargs = arguments({"x": torch.ones(2), "more": [paddle.ones([3]), Point(X, True)]}, backend)
    assert args == ()
    assert backend.shape(kwargs["x"]) == (2,)
    assert isinstance(kwargs["more"][1], Point)
    assert sum(backend.is_tensor(leaf) for leaf in leaves(kwargs)) == 3
    args, _ = arguments([X, X], backend)
    assert len(args) == 1
    assert len(args[0]) == 2
    with pytest.raises(InputError, match="stands inside other inputs"):
        arguments(pf.sides(X, X), backend)
    with pytest.raises(InputError, match="keyword inputs need names"):
        arguments({1: X}, backend)


def test_inputs_are_copies() -> None:
    given = torch.ones(3)
    (tensor,), _ = arguments(given, registry.get("torch"))
    tensor.add_(1)
    assert given.tolist() == [1.0, 1.0, 1.0]


def test_keyword_inputs() -> None:
    class Both(P.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.fc = P.Linear(4, 4)

        def forward(self, x: Any, scale: Any = 1.0) -> Any:
            return self.fc(x) * scale

    class TorchBoth(T.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = T.Linear(4, 4)

        def forward(self, x: Any, scale: Any = 1.0) -> Any:
            return self.fc(x) * scale

    reference = randomise(TorchBoth(), 1)
    assert pf.transfer(reference, Both(), {"x": X, "scale": 2.0}).verified is True
    assert pf.transfer(reference, Both(), pf.sides((X, 2.0), {"x": X, "scale": 3.0})).verified is False
