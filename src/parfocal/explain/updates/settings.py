"""What two optimizers are set to for one parameter, and where that differs in effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from parfocal.judge import limits

CODES = {
    "kind": "optim.kind",
    "weight_decay": "optim.weight_decay",
    "decay": "optim.weight_decay",
    "added_decay": "optim.weight_decay",
    "momentum": "optim.momentum",
    "nesterov": "optim.momentum",
    "dampening": "optim.momentum",
    "momentum_decay": "optim.momentum",
    "betas": "optim.betas",
    "beta1": "optim.betas",
    "beta2": "optim.betas",
    "rho": "optim.betas",
    "epsilon": "optim.epsilon",
    "epsilon_place": "optim.epsilon",
    "lr": "optim.lr_group",
}
OTHER = "optim.update"
# Rules that are SGD where one of their settings has this value, and what else has no effect then.
PLAIN: dict[str, tuple[str, float, tuple[str, ...]]] = {
    "Momentum": ("momentum", 0.0, ("nesterov", "dampening")),
    "ASGD": ("batch_num", 1, ("lambd", "alpha", "t0")),  # of recent gradients: only the newest
}
CLOSE = limits.causes.SAME_SETTING.value


def code_of(name: str) -> str:
    return CODES.get(name, OTHER)


def in_effect(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without what has no effect, so that two ways to say the same are one; with its ``kind``."""
    left = dict(settings)
    if kind in PLAIN and left.get(PLAIN[kind][0], PLAIN[kind][1]) == PLAIN[kind][1]:
        kind = "SGD"
    if kind == "SGD":
        for name, _, others in PLAIN.values():
            for each in (name, *others):
                left.pop(each, None)
        if left.get("decay") == "decoupled":  # added to the gradient or not is the same without momentum
            left["decay"] = "l2"
    if kind == "AdamW":  # Adam with decay apart from the gradient
        kind = "Adam"
    if not left.get("weight_decay"):
        left.pop("decay", None)
    return {**left, "kind": kind}


def differences(
    ours: tuple[str, Mapping[str, Any]], theirs: tuple[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Any, Any]]:
    """Name and both values of every setting that differs in effect; each side a kind and its settings."""
    left, right = in_effect(*ours), in_effect(*theirs)
    other = {left["kind"], right["kind"]} - {"SGD"}
    if left["kind"] != right["kind"] and len(other) == 1 and other <= PLAIN.keys():  # the same rule
        name, nothing, _ = PLAIN[other.pop()]
        yield name, left.get(name, nothing), right.get(name, nothing)
        names = {"weight_decay", "lr"}
    elif left["kind"] != right["kind"]:
        yield "kind", ours[0], theirs[0]
        names = {"weight_decay", "lr"}
    else:
        names = (left.keys() & right.keys()) - {"kind"}
    for name in sorted(names):
        if not same(left.get(name), right.get(name)):
            yield name, left.get(name), right.get(name)


def same(mine: Any, yours: Any) -> bool:
    if isinstance(mine, (tuple, list)) and isinstance(yours, (tuple, list)):
        return len(mine) == len(yours) and all(map(same, mine, yours))
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (mine, yours))
    if numbers:
        return bool(abs(mine - yours) <= CLOSE * max(abs(mine), abs(yours)))
    return bool(mine == yours)
