"""Weights that fit crosswise only: said where the names of both sides contradict it, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

import parfocal as pf
from parfocal.weights.transfer import transfer
from tests.pairs.weights.blocks import (
    OURS,
    PADDLE,
    SILENT,
    SPELLED,
    THEIRS,
    TORCH,
    Build,
    X,
    attention,
    branches,
    gated,
    model,
)
from tests.pairs.weights.tools import randomise

Block = tuple[Build, Build]


def models(ours: Block, theirs: Block, names: tuple[str, ...] = THEIRS) -> tuple[Any, Any]:
    reference, port = model(TORCH, [ours] * 2, OURS), model(PADDLE, [theirs] * 2, names)
    return randomise(reference, 3), randomise(port, 4)


CERTAIN = {
    "q and k": ((attention(), gated()), (attention(fault="swap"), gated()), "q_proj", "k_proj"),
    "gate and up": ((attention(), gated()), (attention(), gated(fault="swap")), "gate", "up"),
    "other last parts of the names": (
        (attention(), gated(("gate_proj", "up_proj", "down"))),
        (attention(), gated(("gate_fc", "up_fc", "down"), "swap")),
        *("gate_fc", "up_proj"),
    ),
    "branches": ((branches(), gated()), (branches(fault="order"), gated()), "aa", "dd"),
    "a layer that spells its parts": (
        (attention(fused="qkv"), gated()),
        (attention(fault="swap"), gated()),
        *("q_proj", "qkv[k]"),
    ),
    "gate_up against gate and up": (
        (attention(), gated(fused="gate_up")),
        (attention(), gated(fault="swap")),
        *("gate", "gate_up[up]"),
    ),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_the_same_words_on_both_sides(name: str) -> None:
    ours, theirs, target, fitting = CERTAIN[name]
    plan = transfer(*models(ours, theirs), X)
    assert plan.verified
    assert len(plan.permuted) == 2
    for item in plan.permuted:
        assert item.certain
        paths = zip(item.targets, item.fitting, strict=True)
        assert [(a.rpartition(".")[2], b.rpartition(".")[2]) for a, b in paths].count((target, fitting)) == 1


@pytest.mark.parametrize("name", CERTAIN)
def test_align_does_not_say_that_they_are_the_same(name: str) -> None:
    ours, theirs, target, _ = CERTAIN[name]
    report = pf.align(*models(ours, theirs), X)
    assert not report.ok
    crossed = [each for each in report.divergences if each.cause and each.cause.code == "weight.permuted"]
    if crossed:  # else the names were trusted from the start, and the code is blamed
        assert crossed[0] is report.first
        assert target in crossed[0].cause.message
        assert "a checkpoint converted by name is wrong for this port" in " ".join(str(report).split())
    else:
        assert report.first.phase == "forward"


def test_words_of_one_meaning_are_worth_knowing() -> None:
    ours, theirs = (attention(), gated()), (attention(SPELLED, "swap"), gated(SILENT))
    plan = transfer(*models(ours, theirs), X)
    assert [item.certain for item in plan.permuted] == [False, False]
    assert "crossed: what fits is h.0.attention.query with layers.0.attn.k_proj" in str(plan)
    report = pf.align(*models(ours, theirs), X)
    assert report.ok
    found = [each for each in report.findings if each.code == "weight.permuted"]
    assert len(found) == 2
    assert found[0].reference.path == "layers.0.attn.k_proj"
    assert found[0].port.path == "h.0.attention.query"
    said = "the names say h.0.attention.query with layers.0.attn.q_proj"
    assert said in " ".join(str(report).split())


HONEST = {
    "query, key, value": ((attention(), gated()), (attention(SPELLED), gated())),
    "w1 and w3": ((attention(), gated()), (attention(), gated(("w1", "w3", "w2")))),
    "names that say nothing, exchanged": ((attention(), gated()), (attention(SILENT, "swap"), gated())),
    "numbers, exchanged": (
        (branches(("b0", "b1", "b2", "b3")), gated()),
        (branches(("f4", "f1", "f2", "f3"), "order"), gated()),
    ),
    "defined in another order": ((attention(), gated()), (attention(SPELLED, defined="2310"), gated())),
    "an interleaved layer": ((attention(fused="c_attn"), gated()), (attention(SPELLED), gated())),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_names_are_not_blamed(name: str) -> None:
    plan = transfer(*models(*HONEST[name]), X)
    assert plan.verified
    assert not plan.permuted
    assert pf.align(*models(*HONEST[name]), X).ok


def test_layers_that_are_only_numbered_otherwise() -> None:
    import paddle
    import torch

    reference = torch.nn.ModuleDict({str(n): torch.nn.Linear(10, 10) for n in range(3)})
    port = paddle.nn.LayerDict({str(n): paddle.nn.Linear(10, 10) for n in range(3)})
    reference.forward = lambda x: reference["2"](torch.tanh(reference["1"](torch.tanh(reference["0"](x)))))
    port.forward = lambda x: port["0"](paddle.tanh(port["1"](paddle.tanh(port["2"](x)))))
    plan = transfer(reference, port, X)
    assert plan.verified
    assert {(entry.source, entry.target) for entry in plan.entries} >= {("0.weight", "2.weight")}
    assert not plan.permuted
