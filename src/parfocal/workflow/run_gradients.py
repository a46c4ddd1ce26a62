"""Gradients of parameters in two recorded runs, judged beside the calls that use the parameters.

A parameter's gradient is a sum over everything its layer saw, and may cancel down to nothing but
rounding. So its error is put in relation not to the gradient but to what was summed: the size of
the layer's values times that of the gradients that came back to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from parfocal.judge.floors import NOTHING, Size
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Divergence
from parfocal.replay.trace import Data, Node

Gradients = Mapping[str, Data | None]  # by the parameter's path; None: none arrived
Relative = Callable[[Data, Data], tuple[float, Comparison | None]]


@dataclass(frozen=True, slots=True)
class User:
    """A call that uses a parameter: its two sides, and the relative errors it was given."""

    reference: Node
    port: Node
    forward: float
    backward: float

    @property
    def summed(self) -> float:
        """At most what a parameter's gradient can be here, were nothing to cancel."""
        values = [*self.port.inputs.values(), *self.port.outputs.values()]
        sizes = [value.data.fingerprint.l2 for value in values if math.isfinite(value.data.fingerprint.l2)]
        counts = [math.sqrt(value.data.fingerprint.size) for value in self.port.outputs.values()]
        back = [v.gradient.fingerprint.l2 for v in self.port.outputs.values() if v.gradient is not None]
        return max([*sizes, *counts], default=0.0) * sum(back)


@dataclass(frozen=True, slots=True)
class Judged:
    """A parameter of a layer, and how far apart its two gradients are."""

    user: User
    parameter: str
    error: float  # as a share of what was summed; infinite where only one side has a gradient
    given: float  # the error that the layer was given, going forward or backward
    relative: float = math.inf  # the error as a share of the gradient itself
    unit: float = 0.0  # what of that sum is rounding
    comparison: Comparison | None = None
    message: str = ""

    def as_divergence(self) -> Divergence:
        comparison, score, noise = self.comparison, self.error / self.given, NOTHING
        if comparison is not None and math.isfinite(score):
            noise = Size(comparison.rmse / score, comparison.max_abs / score)
        sites = self.user.reference.site, self.user.port.site
        what = f"gradient of the parameter {self.parameter}"
        return Divergence("gradient", *sites, what, comparison, noise, score, self.message)


def judge(
    reference: Gradients,
    port: Gradients,
    users: Iterable[User],
    relative: Relative,
    epsilon: Callable[[str], float],
) -> Iterator[Judged]:
    """Every parameter that layers of both sides have."""
    for ours, theirs, layer in _tied(reference, port, users):
        other, own = reference[ours], port.get(theirs)
        data = own or other
        if data is None:
            continue
        unit = epsilon(data.dtype)
        given = max(unit, *(max(user.forward, user.backward) for user in layer))
        if own is None or other is None:
            message = (
                f"no gradient arrives in the {'port' if own is None else 'reference'}: frozen, or not used"
            )
            yield Judged(layer[0], theirs or ours, math.inf, given, message=message)
            continue
        apart, comparison = relative(own, other)
        summed = max(sum(user.summed for user in layer), other.fingerprint.l2)
        error = apart * other.fingerprint.l2 / summed if apart and summed else 0.0
        yield Judged(layer[0], theirs, error, given, apart, unit, comparison)


def _tied(
    reference: Gradients, port: Gradients, users: Iterable[User]
) -> Iterator[tuple[str, str, list[User]]]:
    """Parameters of paired layers by name, or the only one of its size; "" for one the port has not."""
    layers: dict[tuple[str, str], list[User]] = {}
    for user in users:
        layers.setdefault((user.reference.path, user.port.path), []).append(user)
    for (owner, other), layer in layers.items():
        ours, theirs = _of(reference, owner), _of(port, other)
        for name, path in ours.items():
            size = _size(reference[path])
            left = [theirs[each] for each in theirs if each not in ours]
            same = [theirs[name]] if name in theirs else [each for each in left if _size(port[each]) == size]
            if len(same) == 1 and _size(port[same[0]]) in (size, None):
                yield path, same[0], layer
            elif not same and not left:
                yield path, "", layer


def _of(gradients: Gradients, owner: str) -> dict[str, str]:
    """Name -> path of a module's own parameters."""
    return {path.rpartition(".")[2]: path for path in gradients if path.rpartition(".")[0] == owner}


def _size(gradient: Data | None) -> int | None:
    return None if gradient is None else gradient.fingerprint.size
