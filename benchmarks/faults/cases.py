"""Cases made real: two models, inputs, and the weights as a user of a tool would have loaded them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
import torch

from benchmarks.faults.catalogue import FAULTS, REWRITINGS
from benchmarks.faults.pairs import PAIRS
from benchmarks.faults.scoring import Case
from parfocal.weights.transfer import transfer

TWINS = 10


@dataclass(frozen=True)
class Models:
    """What a tool gets. ``loaded``: the port has the weights it is to be judged with already."""

    reference: torch.nn.Module
    port: paddle.nn.Layer
    inputs: np.ndarray
    mode: str
    loaded: bool


def fault_cases() -> list[Case]:
    return [Case(fault.pair, fault.mode, 0, fault.name) for fault in FAULTS.values()]


def correct_cases() -> list[Case]:
    """Every pair over ten seeds in every mode that it has faults in, and correct ports written otherwise."""
    modes = {(fault.pair, "eval" if fault.mode == "keep" else fault.mode) for fault in FAULTS.values()}
    twins = [Case(pair, mode, seed) for pair, mode in sorted(modes) for seed in range(TWINS)]
    others = [Case(each.pair, each.mode, 0, rewriting=each.name) for each in REWRITINGS.values()]
    return twins + others


def build(case: Case, *, load: bool) -> Models:
    """The models of a case. With ``load`` the right weights are in the port whatever the fault is."""
    pair = PAIRS[case.pair]
    reference, port = pair.reference(case.seed), pair.port(case.seed)
    fault = FAULTS.get(case.fault) or REWRITINGS.get(case.rewriting)
    if fault is not None and fault.plant is not None:
        fault.plant(port)
    spoil = fault.spoil if fault is not None else None
    if load or spoil is not None:
        _load(case, reference, port)
    if spoil is not None:
        spoil(port)
    return Models(reference, port, pair.inputs(case.seed), case.mode, load or spoil is not None)


def _load(case: Case, reference: Any, port: Any) -> None:
    """The weights of a correct twin, by name: what a converted checkpoint does to a port with a fault."""
    twin = PAIRS[case.pair].port(case.seed)
    transfer(reference, twin, PAIRS[case.pair].inputs(case.seed))
    weights = twin.state_dict()
    if "head.weight" in port.state_dict() and "head.weight" not in weights and "embed.weight" in weights:
        weights["head.weight"] = weights["embed.weight"].transpose([1, 0])  # an untied head starts as a copy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a tensor of another shape is skipped with a warning
        port.set_state_dict(weights)


def set_mode(models: Models) -> None:
    """Train or eval on both sides, without dropout, as the older tools ask of their users."""
    if models.mode == "keep":
        return
    training = models.mode == "train"
    models.reference.train(training)
    (models.port.train if training else models.port.eval)()
    if not training:
        return
    for module in models.reference.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for layer in models.port.sublayers():
        if isinstance(layer, paddle.nn.Dropout):
            layer.p = 0.0
