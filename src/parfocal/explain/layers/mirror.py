"""Settings of hand-written layers, which cannot be read: which value would make both sides agree?

Where the port's layer is hand-written it cannot be rebuilt with another setting, but the
reference's can: the value with which the reference reproduces the port's result is the value that
the port behaves as if it had. Where the reference's is hand-written, the port's is rebuilt
until it gives what the reference gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array, Backend
from parfocal.backends.vocabulary import ACTIVATIONS
from parfocal.explain.case import Case
from parfocal.explain.causes import PortLine, ProvenChange, code_of, place, rounded, said, spelled_path
from parfocal.explain.layers.settings import rebuilt
from parfocal.judge import limits
from parfocal.judge.layouts import fit
from parfocal.judge.verdict import Fix
from parfocal.phrases import joined, phrase
from parfocal.replay.trace import Node

# Settings that are numbers -> values people use, tried before solving; the range on a log scale.
# None: it is a landmark of what the layer takes and gives, see ``_landmarks``.
SOLVED: dict[str, tuple[tuple[float, ...], tuple[float, float] | None]] = {
    "epsilon": ((1e-5, 1e-6, 1e-3, 1e-12, 1e-8, 1e-7, 1e-4, 1e-2, 0.0), (1e-13, 1.0)),
    "negative_slope": ((0.01, 0.1, 0.2, 0.25, 0.3, 0.0), (1e-4, 1.0)),
    "alpha": ((1.0, 0.1, 0.5, 1e-4), (1e-6, 10.0)),
    "beta": ((1.0, 0.5, 0.75, 2.0), (1e-3, 100.0)),
    "k": ((1.0, 2.0), (1e-3, 100.0)),
    "threshold": ((0.5, 1.0, 0.0, 20.0), None),
    "value": ((0.0,), None),
    "minimum": ((-1.0, 0.0), None),
    "maximum": ((1.0, 6.0), None),
}
_FLAG = (True, False)
# Settings that are one of a few -> all of these.
CHOSEN: dict[str, tuple[Any, ...]] = {
    "approximate": ("none", "tanh"),
    "align_corners": _FLAG,
    "count_include_pad": _FLAG,
    "ceil_mode": _FLAG,
    "norm_first": _FLAG,
    "batch_first": _FLAG,
    "mode": ("nearest", "bilinear", "bicubic", "constant", "reflect", "replicate", "circular"),
    "padding_mode": ("zeros", "reflect", "replicate", "circular"),
    "activation": ("relu", "gelu", "tanh"),
    "axis": (-1, 0, 1, 2),
    "num_heads": (1, 2, 3, 4, 6, 8, 12, 16, 32),
    "num_groups": (1, 2, 4, 8, 16, 32),
}
STEPS = limits.searches.SETTING_STEPS.value
Score = Callable[[str, Any], float]


@dataclass(frozen=True, slots=True)
class Mirror:
    """The side whose layer can be rebuilt, how well it then agrees with the other, and likely values."""

    node: Node
    score: Score
    landmarks: tuple[float, ...]
    is_port: bool


def solved_activation(case: Case) -> Iterator[ProvenChange]:
    """The setting of an activation that the port writes by hand and the reference has as a layer."""
    other = case.reference_node
    if other is not None and other.kind in ACTIVATIONS and case.node.is_leaf:
        yield from solved_setting(case)


def solved_setting(case: Case) -> Iterator[ProvenChange]:
    """A setting of one side's layer that would have to have another value."""
    mirror = _mirror(case)
    if mirror is None:
        return
    for name, own in mirror.node.settings.items():
        found = _fitting(mirror, name, own, case.limit)
        if found is not None:
            yield _proof(case, mirror, name, *found)
            return


def _mirror(case: Case) -> Mirror | None:
    node = case.reference_node
    if node is None:
        return None
    at_the_end = case.checks[0].reference[:2] == (case.counterpart, "output")
    ours = _can_build(case.reference_backend, case.reference_module)
    theirs = _can_build(case.backend, case.module)
    observed = case.observed()
    if ours == theirs or observed is None:
        return None  # a library's layer has the settings that it says it has
    if ours and not at_the_end:
        return None
    if ours:
        landmarks = _landmarks(case, observed)
        return Mirror(node, lambda name, value: _reference_as(case, node, name, value), landmarks, False)
    landmarks = _landmarks(case, case.recorded(case.checks[0].reference)) if at_the_end else ()
    return Mirror(case.node, lambda name, value: _port_as(case, name, value), landmarks, True)


def _can_build(backend: Backend, module: Any) -> bool:
    return isinstance(backend, LayerBuilder) and backend.can_build(module)


def _fitting(mirror: Mirror, name: str, own: Any, limit: float) -> tuple[list[Any], float] | None:
    """The values that fit, best first, and their score: usual ones if any fit, else the best of all."""
    if name in SOLVED and isinstance(own, (int, float)):
        usual, bounds = SOLVED[name]
        landmarks = mirror.landmarks if bounds is None else ()
        candidates = [value for value in dict.fromkeys((*usual, *landmarks)) if value != own]
        return _solve(mirror.score, name, candidates, bounds, limit)
    if name not in CHOSEN or own is None:
        return None
    tried = ((mirror.score(name, value), value) for value in CHOSEN[name] if value != own)
    return next((([value], score) for score, value in tried if score <= limit), None)


def _landmarks(case: Case, given: Array) -> tuple[float, ...]:
    """The smallest, largest and most common output, and the input up to which the most common one occurs."""
    values, counts = np.unique(given, return_counts=True)
    binding = case.precise.port.script.ties.get(case.call)
    taken = next((case.input(slot) for slot in binding.inputs), None) if binding is not None else None
    if not values.size or taken is None or taken.shape != given.shape:
        return ()
    commonest = values[counts.argmax()]
    found = [rounded(float(value)) for value in (values[0], values[-1], commonest)]
    for x in (taken, np.abs(taken)):
        there, elsewhere = x[given == commonest], x[given != commonest]
        if there.size and elsewhere.size and there.max() < elsewhere.min():
            found.append(_roundest(float(there.max()), float(elsewhere.min())))
    return tuple(found)


def _roundest(low: float, high: float) -> float:
    """The number with the fewest digits between two."""
    for digits in range(8):
        candidate = round(math.ceil(low * 10.0**digits) / 10.0**digits, digits)
        if low <= candidate <= high:
            return candidate
    return low


def _solve(
    measured: Score, name: str, usual: Sequence[float], bounds: tuple[float, float] | None, limit: float
) -> tuple[list[Any], float] | None:
    tried = sorted((measured(name, value), rank, value) for rank, value in enumerate(usual))
    if tried[0][0] <= limit:
        return [value for score, _, value in tried if score <= limit], tried[0][0]
    if bounds is None or not math.isfinite(tried[0][0]):
        return None

    def cost(logarithm: float) -> float:
        return math.log(measured(name, math.exp(logarithm)) + 1e-9)

    answer = scipy.optimize.minimize_scalar(
        cost, bounds=tuple(map(math.log, bounds)), method="bounded", options={"maxiter": STEPS, "xatol": 1e-4}
    )
    value = float(math.exp(answer.x))
    for candidate in (float(f"{value:.1e}"), float(f"{value:.2e}"), value):
        score = measured(name, candidate)
        if score <= limit:
            return [candidate], score
    return None


def _reference_as(case: Case, node: Node, name: str, value: Any) -> float:
    """How far the reference with this value is from what the port gives."""
    observed = case.observed()
    settings = {**node.settings, name: value}
    repeated = case.run_reference(lambda twin: rebuilt(case.reference_backend, twin, settings))
    check = case.checks[0]
    mirrored = None if repeated is None else repeated.places.get(check.reference)
    if mirrored is None or observed is None:
        return math.inf
    layout = fit(mirrored, observed)
    return math.inf if layout is None else case.judge(observed, layout.apply(mirrored), check)


def _port_as(case: Case, name: str, value: Any) -> float:
    """How far the port with this value is from what the reference gives."""
    settings = {**case.node.settings, name: value}
    # a layer that calls others may call them otherwise then, unless all there is to see is inside
    as_seen = case.node.is_leaf or case.call not in case.precise.port.script.ties
    judged = case if as_seen else case.at_outputs()
    repeated = judged.run(lambda twin: rebuilt(case.backend, twin, settings), inside=as_seen)
    return judged.score(repeated, "forward")


def _proof(case: Case, mirror: Mirror, name: str, values: list[Any], score: float) -> ProvenChange:
    node, own = mirror.node, mirror.node.settings[name]
    if not mirror.is_port:
        message = phrase(
            "{name} is {reference} in the reference ({kind}); {place} of the port behaves as with "
            "{name} = {values}",
            name=name,
            reference=said(own),
            kind=node.kind,
            place=place(case.node),
            values=joined(" or ", map(said, values)),
        )
        fix: Fix = phrase(
            "use {name} = {own} in {spelled_path}",
            name=name,
            own=said(own),
            spelled_path=spelled_path(case.node.path),
        )
        if node.kind in ACTIVATIONS and case.node.is_leaf and isinstance(case.backend, LayerBuilder):
            fix = PortLine.layer(case.node.path, case.backend.spell(node.kind, node.settings, [name]))
        kept = [key for key, value in vars(case.module).items() if type(value) is float and value in values]
        if len(kept) == 1:  # the hand-written layer keeps the number under a name
            fix = PortLine.attribute(case.node.path, kept[0], said(own))
        facts = ("reference", node.kind, name, said(own), *map(said, values))
        return ProvenChange(code_of(name, node.kind), message, fix, score, facts=facts)
    message = phrase(
        "the reference behaves as with {name} = {values}; it is {port} in the port ({kind} {place})",
        name=name,
        values=joined(" or ", map(said, values)),
        port=said(own),
        kind=node.kind,
        place=place(node),
    )
    assert isinstance(case.backend, LayerBuilder)
    line = case.backend.spell(node.kind, {**node.settings, name: values[0]}, [name])
    fix = PortLine.layer(node.path, line)
    facts = ("port", node.kind, name, said(own), *map(said, values))
    return ProvenChange(code_of(name, node.kind), message, fix, score, facts=facts)
