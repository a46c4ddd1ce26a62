"""Small pairs with one mistake each, and what to do with a report on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
import torch

import parfocal as pf
from parfocal.judge.verdict import Divergence


@dataclass(frozen=True)
class Planted:
    """A reference, a port with one mistake, and what must be said of it."""

    name: str
    reference: Callable[[], torch.nn.Module]
    port: Callable[[], paddle.nn.Layer]
    shape: tuple[int, ...]
    code: str
    says: tuple[str, ...]  # parts of the message: both sides' values
    path: str  # of the guilty layer


def seeded(make: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = make()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" in name or parameter.ndim == 1:
                    parameter.normal_(0.5, 0.3)
    return model.eval()


def numbers(*shape: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def align(reference: torch.nn.Module, port: paddle.nn.Layer, inputs: Any, **options: Any) -> pf.Report:
    options.setdefault("mode", "eval")
    return pf.align(reference, port, inputs, **options)


def own(report: pf.Report) -> list[Divergence]:
    return [divergence for divergence in report.divergences if not divergence.inherited]


def the_cause(report: pf.Report) -> Any:
    """The cause of the only divergence that is not inherited."""
    (divergence,) = own(report)
    assert divergence.cause is not None, f"no cause: {divergence}"
    return divergence.cause


def mend(port: paddle.nn.Layer, fix: str) -> None:
    """Do what the fix says."""
    exec(fix, {"port": port, "paddle": paddle})
    port.eval()
