"""What the optimizers of two runs are set to, parameter by parameter, and where that differs in effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.parameters import ParameterTie
from parfocal.workflow.recorded_runs.steps import UpdateSettings

CODES = {
    "kind": "optim.kind",
    "weight_decay": "optim.weight_decay",
    "decay": "optim.weight_decay",
    "momentum": "optim.momentum",
    "nesterov": "optim.momentum",
    "dampening": "optim.momentum",
    "betas": "optim.betas",
    "rho": "optim.betas",
    "epsilon": "optim.epsilon",
    "lr": "optim.lr_group",
}
OTHER = "optim.update"
CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class DifferingSetting:
    """One setting that differs for some parameters."""

    name: str
    reference: Any
    port: Any
    ties: tuple[ParameterTie, ...]
    of: int  # parameters whose settings both sides have

    @property
    def code(self) -> str:
        return CODES.get(self.name, OTHER)

    @property
    def message(self) -> str:
        few = len(self.ties) < self.of
        where = f" of {self.ties[0].name}{_more(self.ties)}" if few else " of the optimizer"
        return f"{self.name}{where} is {self.reference!r} in the reference and {self.port!r} in the port"


def _more(ties: tuple[ParameterTie, ...]) -> str:
    return f" and {len(ties) - 1} more" if len(ties) > 1 else ""


def differing_settings(pair: StepPair) -> list[DifferingSetting]:
    """In effect: what a setting of zero switches off does not count, nor a rate that differs throughout."""
    found: dict[tuple[str, str, str], list[ParameterTie]] = {}
    values: dict[tuple[str, str, str], tuple[Any, Any]] = {}
    total = 0
    for tie in pair.parameters:
        ours, theirs = pair.reference.updates.get(tie.reference), pair.port.updates.get(tie.port)
        if ours is None or theirs is None:
            continue
        total += 1
        for name, mine, yours in _differences(ours, theirs):
            key = name, repr(mine), repr(yours)
            found.setdefault(key, []).append(tie)
            values[key] = mine, yours
    settings = [DifferingSetting(key[0], *values[key], tuple(ties), total) for key, ties in found.items()]
    ratios = {round(_ratio(each), 6) for each in settings if each.name == "lr"}
    covered = sum(len(each.ties) for each in settings if each.name == "lr")
    uniform = len(ratios) == 1 and covered == total  # told by the learning rate
    return [each for each in settings if not (each.name == "lr" and uniform)]


def _ratio(setting: DifferingSetting) -> float:
    return setting.port / setting.reference if setting.reference else 0.0


def _differences(ours: UpdateSettings, theirs: UpdateSettings) -> Iterator[tuple[str, Any, Any]]:
    left, right = _in_effect(ours), _in_effect(theirs)
    if left["kind"] != right["kind"]:
        yield "kind", left["kind"], right["kind"]
        names = {"weight_decay", "lr"}
    else:
        names = (left.keys() & right.keys()) - {"kind"}
    for name in sorted(names):
        if not _same(left.get(name), right.get(name)):
            yield name, left.get(name), right.get(name)


def _in_effect(update: UpdateSettings) -> dict[str, Any]:
    """Without what has no effect, so that two ways to say the same are one."""
    settings = dict(update.settings)
    kind = update.kind
    if kind == "Momentum" and not settings.get("momentum"):
        kind = "SGD"
    if kind == "SGD":
        for name in ("momentum", "nesterov", "dampening", "decay"):
            settings.pop(name, None)
    if kind == "AdamW":  # Adam with decay apart from the gradient
        kind = "Adam"
    if not settings.get("weight_decay"):
        settings.pop("decay", None)
    return {**settings, "kind": kind}


def _same(mine: Any, yours: Any) -> bool:
    if isinstance(mine, (tuple, list)) and isinstance(yours, (tuple, list)):
        return len(mine) == len(yours) and all(map(_same, mine, yours))
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (mine, yours))
    if numbers:
        return bool(abs(mine - yours) <= CLOSE * max(abs(mine), abs(yours)))
    return bool(mine == yours)


def plain(settings: Mapping[str, Any], name: str) -> float:
    """A setting as a number; 0 where there is none."""
    value = settings.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0
