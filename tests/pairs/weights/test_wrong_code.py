"""A port whose code is wrong: the search for its weights ends soon, and finds those of the correct port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import parfocal as pf
from parfocal.weights import trials
from parfocal.weights.transfer import transfer
from tests.pairs.weights.blocks import (
    OURS,
    PADDLE,
    SILENT,
    SPELLED,
    SPLIT,
    THEIRS,
    TORCH,
    WIDTH,
    Build,
    X,
    attention,
    branches,
    cell,
    gated,
    model,
    routed,
)
from tests.pairs.weights.tools import gap, randomise, run, state_bytes

Port = Callable[[str], Build]
Pair = tuple[tuple[Build, Build], Callable[[str], tuple[Build, Build]], tuple[str, ...]]
WS = ("w1", "w3", "w2")
STACKS = ("w_gate", "w_up", "w_down")


def dense(inner: int) -> tuple[Build, Build]:
    return gated(inner=inner), gated(("fc_a", "fc_b", "fc_c"), inner=inner)


def mixing(reference: Build, port: Port, feed: Build | None = None) -> Pair:
    """Two blocks with the same way of mixing."""
    return (reference, gated()), lambda fault: (port(fault), feed or gated(WS)), THEIRS


PAIRS: dict[str, tuple[Pair, tuple[str, ...]]] = {
    "other names": (mixing(attention(), lambda f: attention(SPELLED, f)), ("split", "scale")),
    "names that say nothing": (mixing(attention(), lambda f: attention(SILENT, f)), ("split", "scale")),
    "defined in another order": (
        mixing(attention(), lambda f: attention(SPELLED, f, defined="3201")),
        ("split",),
    ),
    "fused in the port": (
        mixing(attention(), lambda f: attention(SPLIT, f, fused="qkv")),
        ("split", "scale"),
    ),
    "fused in the reference": (
        mixing(attention(fused="c_attn"), lambda f: attention(SPELLED, f)),
        ("split", "scale"),
    ),
    "fused, and names that say nothing": (
        mixing(attention(fused="c_attn"), lambda f: attention(SILENT, f)),
        ("split", "scale"),
    ),
    "grouped heads": (
        mixing(attention(groups=2), lambda f: attention(SPELLED, f, groups=2)),
        ("split", "group"),
    ),
    "gates in one layer": (mixing(cell(fused=("ih", "hh")), lambda f: cell(fault=f)), ("forget", "tanh")),
    "a layer for every gate": (mixing(cell(), lambda f: cell("abcd", fault=f)), ("forget", "tanh")),
    "convolutions side by side": (mixing(branches(), lambda f: branches("wxyz", f)), ("activation",)),
    "gate and up in one": (
        ((attention(), gated()), lambda f: (attention(SPELLED), gated(WS, f, fused="gate_up")), THEIRS),
        ("activation",),
    ),
    "gate and up apart": (
        ((attention(), gated()), lambda f: (attention(SPELLED), gated(("x1", "x2", "x3"), f)), THEIRS),
        ("activation",),
    ),
}


def models(pair: Pair, fault: str) -> tuple[Any, Any]:
    ours, theirs, names = pair
    reference, port = model(TORCH, [ours] * 2), model(PADDLE, [theirs(fault)] * 2, names)
    return randomise(reference, 3), randomise(port, 4)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many trials were run."""
    found: list[int] = []
    real = trials.Trials._run

    def run_and_count(self: Any, *given: Any) -> Any:
        found.append(1)
        return real(self, *given)

    monkeypatch.setattr(trials.Trials, "_run", run_and_count)
    return found


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name, (_, faults) in PAIRS.items() for fault in faults]
)
def test_wrong_code_gets_the_weights_of_the_correct_port(name: str, fault: str, counted: list[int]) -> None:
    reference, right = models(PAIRS[name][0], "")
    assert transfer(reference, right, X).verified
    assert gap(run(reference, X), run(right, X)) < 1e-4
    counted.clear()
    _, wrong = models(PAIRS[name][0], fault)
    plan = transfer(reference, wrong, X)
    assert plan.complete
    assert plan.verified is False
    assert not plan.permuted
    assert len(counted) <= trials.ALL_TRIALS
    assert state_bytes(wrong) == state_bytes(right)


SHAPES = {"oblong": 20, "square": WIDTH}  # of an expert's matrices: square ones fit either way round
ROUTED = {
    "three stacks": (STACKS, WS),
    "gate and up in one stack": (("gate_up_proj", "down_proj"), ("gate_proj", "up_proj", "down_proj")),
    "stacks and lists that say nothing": (("a", "b", "c"), ("x", "y", "z")),
}


def decoders(
    stacks: tuple[str, ...], listed: tuple[str, ...], inner: int, stack_first: bool, fault: str
) -> tuple[Any, Any]:
    """One dense and two routed layers; the fault is in the port."""
    one, other = (
        lambda fault: routed(stacks=stacks, inner=inner, fault=fault),
        lambda fault: routed(listed, inner=inner, fault=fault, router="gate", experts="members"),
    )
    ours, theirs = (one, other) if stack_first else (other, one)
    first, second = dense(inner)
    blocks = [(attention(), first), (attention(), ours("")), (attention(), ours(""))]
    reference = model(TORCH, blocks, OURS)
    blocks = [(attention(SPELLED), feed) for feed in (second, theirs(fault), theirs(fault))]
    port = model(PADDLE, blocks, THEIRS)
    return randomise(reference, 3), randomise(port, 4)


@pytest.mark.parametrize("stack_first", [True, False], ids=["from stack", "to stack"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ROUTED)
def test_experts_of_a_decoder(name: str, shape: str, stack_first: bool, counted: list[int]) -> None:
    given = (*ROUTED[name], SHAPES[shape], stack_first)
    reference, right = decoders(*given, "")
    plan = transfer(reference, right, X)
    assert plan.verified
    assert not plan.presumed
    assert gap(run(reference, X), run(right, X)) < 1e-4
    for fault in ("unnormalised", "twice"):
        counted.clear()
        _, wrong = decoders(*given, fault)
        assert transfer(reference, wrong, X).complete
        assert len(counted) <= trials.ALL_TRIALS + 2 * trials.CHECKED
        assert state_bytes(wrong) == state_bytes(right)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stack_first", [True, False], ids=["from stack", "to stack"])
def test_a_correct_routed_decoder_is_the_same(shape: str, stack_first: bool) -> None:
    pair = decoders(STACKS, WS, SHAPES[shape], stack_first, "")
    report = pf.align(*pair, X)
    assert report.ok, str(report)


@pytest.mark.parametrize("stack_first", [True, False], ids=["from stack", "to stack"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_mistake_in_routing_is_told_as_such(shape: str, stack_first: bool) -> None:
    first = pf.align(*decoders(STACKS, WS, SHAPES[shape], stack_first, "twice"), X).first
    assert first is not None
    assert first.phase == "forward"
    assert (first.port.path, first.cause.code) == ("h.1.ffn", "op.scale")


def test_a_wrong_activation_is_told_behind_an_open_choice() -> None:
    report = pf.align(*models(PAIRS["gate and up in one"][0], "activation"), X)
    assert (report.first.port.path, report.first.cause.code) == ("h.0.ffn", "op.activation")
    presumed = [each.message for each in report.findings if "taken for fused gate, up" in each.message]
    assert len(presumed) == 1


def test_presumptions_are_said_and_kept(tmp_path: Any) -> None:
    reference, wrong = models(PAIRS["fused, and names that say nothing"][0], "scale")
    plan = transfer(reference, wrong, X)
    where, taken = "aa, bb, cc of h.0.attention, h.1.attention", "fused aa, bb, cc, one after the other"
    assert f"presumed: {where}: taken for {taken}, the usual way; " in str(plan)
    plan.save(tmp_path / "plan.json")
    assert pf.Plan.load(tmp_path / "plan.json").presumed == plan.presumed
