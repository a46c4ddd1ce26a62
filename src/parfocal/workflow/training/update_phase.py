"""The second half of a step: clipping, learning rates, the update of weights and slots.

Each is made from what the reference had right before it. What the port then has is compared, and replaced by
what the reference has.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.updates.causes import EFFECT, effect_of, explain_updates, judged_updates, left_alone
from parfocal.explain.updates.floors import LIMIT, UpdateFloor, distance, rule_floor, scale_floor
from parfocal.explain.updates.rules import AfterUpdate, BeforeUpdate
from parfocal.explain.updates.settings import differences
from parfocal.explain.updates.solving import SideUpdate, UpdateEvidence
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, NOTHING, Size, difference
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Cause, Claim, Divergence, Site
from parfocal.phrases import phrase
from parfocal.workflow.training.carrying import Carrier
from parfocal.workflow.training.clipped import clip_cause, norm_words, total_norm, worst_clipped
from parfocal.workflow.training.found import FoundDivergences
from parfocal.workflow.training.judging import nearly
from parfocal.workflow.training.shadows import ShadowUpdates
from parfocal.workflow.training.sides import Arrays, TrainingSide

CLIP_LIMIT = limits.verdicts.CLIPPED_NORM.value
RATE = limits.verdicts.RATE_UNITS.value * EPSILON["float32"]
KEPT = limits.searches.FLOORS_KEPT.value
FEW_SHADOWS = limits.verdicts.FEW_SHADOWS.value
NEAR = limits.verdicts.NEAR_WEIGHT.value
# What a slot of the reference is called in the port, where it is kept with the rate in it.
EPSILONS = frozenset({"epsilon", "epsilon_place"})
WITH_RATE = {"momentum": "momentum_with_lr"}


@dataclass(slots=True)
class UpdatePhase:
    """Clips, updates and compares."""

    reference: TrainingSide
    port: TrainingSide
    carrier: Carrier
    found: FoundDivergences
    tolerance: Tolerance | None
    explain: bool
    step: int = 0
    updated: int = 0  # updates in lockstep so far
    counts: dict[str, int] = field(default_factory=dict)
    rates: list[tuple[dict[str, float], dict[str, float]]] = field(default_factory=list)
    floors: dict[str, tuple[int, UpdateFloor]] = field(default_factory=dict)  # by path, with the update
    led: dict[str, float] | None = None  # rates with which the port's slots became the reference's
    norms: list[tuple[float, float]] = field(default_factory=list)  # of gradients as the update uses them
    shadows: ShadowUpdates = field(init=False)
    evaluated: dict[str, UpdateFloor] = field(default_factory=dict)  # of updates that compute the loss anew

    def __post_init__(self) -> None:
        self.shadows = ShadowUpdates(self.reference)

    def run(self, step: int) -> None:
        self.step = step
        self.updated += 1
        gradients = self.reference.gradients(copy=True)
        led = self._lead_gradients(gradients)
        if self._clips():
            led = self._clip(gradients)
        settings = self.reference.settings(), self.port.settings()
        rates = self._rates(*settings)
        self._update(settings, rates, led)

    def _clips(self) -> bool:
        """Whether any side does something to its gradients before the update."""
        return any(
            side.clip is not None or side.backend.gradient_clip(side.optimizer) is not None
            for side in (self.reference, self.port)
        )

    def _lead_gradients(self, gradients: Arrays) -> Arrays:
        """The port's gradients become the reference's, where both have one; all that it has by then."""
        led: Arrays = {}
        tensors = self.port.tensors("parameter")
        own = self.port.gradients()
        for path in self.carrier.parameters:
            right = self.carrier.carry(path, gradients.get)
            if right is not None:
                led[path] = right.astype(own[path].dtype if path in own else right.dtype, copy=False)
                self.port.backend.write_gradient(tensors[path], led[path])
            elif path in own:
                led[path] = np.zeros_like(own[path])
                if own[path].any():
                    self.port.backend.write_gradient(tensors[path], led[path])
        return led

    def _clip(self, before: Arrays) -> Arrays:
        """Clips both sides and compares; the gradients that the update begins with."""
        ours, theirs = self.reference.clipped(), self.port.clipped()
        after = before if ours is None else ours
        if ours is not None and self.reference.backend.gradient_clip(self.reference.optimizer) is not None:
            self._write_reference(after)
        expected = self.carrier.carried(self.carrier.parameters, after)
        start = self.carrier.carried(self.carrier.parameters, before)
        observed = {
            path: array for path, array in (start if theirs is None else theirs).items() if path in expected
        }
        self.norms.append((total_norm(expected), total_norm(observed)))
        self.add_count("gradient norms", 2)
        self._judge_clip(start, expected, observed)
        return self._lead_gradients(after)

    def _write_reference(self, gradients: Arrays) -> None:
        for path, tensor in self.reference.tensors("parameter").items():
            if path in gradients:
                self.reference.backend.write_gradient(tensor, gradients[path])

    def _judge_clip(self, before: Arrays, expected: Arrays, observed: Arrays) -> None:
        key = ("clip",)
        worst = worst_clipped(expected, observed)
        if worst.score > CLIP_LIMIT and not self.found.seen(key):
            cause = clip_cause(before, expected, observed, self.port) if self.explain else None
            path = worst.path
            self.found.add(
                key,
                Divergence(
                    "gradient",
                    *self._sites(path),
                    norm_words(before, self.norms[-1]),
                    compare_arrays(
                        observed[path].astype(expected[path].dtype),
                        np.ascontiguousarray(expected[path]),
                        picture=True,
                    ),
                    NOTHING,
                    worst.score,
                    cause=cause,
                    step=self.step,
                ),
            )

    def _rates(self, ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
        """The reference's rate of every parameter of the port; noted beside the port's own."""
        mine: dict[str, float] = {}
        for path in self.carrier.parameters:
            source = ours.get(self.carrier.name(path))
            if source is not None and path in theirs:
                mine[path] = float(source["lr"])
        yours = {path: float(theirs[path]["lr"]) for path in mine}
        self.rates.append((mine, yours))
        self.add_count("learning rates", len(mine))
        return mine

    def _update(
        self, settings: tuple[dict[str, Any], dict[str, Any]], rates: dict[str, float], gradients: Arrays
    ) -> None:
        """``gradients``: what the port has."""
        port, reference = self.port, self.reference
        before = {path: array.copy() for path, array in port.arrays("parameter").items()}
        given, slots = self._slots_before()
        present = reference.gradients()
        known = {
            path
            for path in self.carrier.parameters
            if all(source in present for source in self.carrier.sources(path))
        }
        nudged = self.shadows.run(led=self._lead_history()) if reference.evaluates else []
        reference.update()
        own = self.rates[-1][1]
        differ = any(abs(own[path] - rate) > RATE * abs(rate) for path, rate in rates.items())
        lead = port.backend.learning_rates_set(port.optimizer, port.model, rates) if differ else nullcontext()
        with lead:
            port.update()
        ours = self.carrier.carried(self.carrier.parameters, reference.arrays("parameter"))
        theirs = port.arrays("parameter")
        yours_after = port.slots()
        outcomes = self._slots_after(rates, yours_after), yours_after
        kinds = (
            reference.backend.optimizer_kind(reference.optimizer),
            port.backend.optimizer_kind(port.optimizer),
        )
        self.evaluated = {
            path: UpdateFloor(
                _farthest([self.carrier.carry(path, each.get) for each in nudged], ours[path]) * FEW_SHADOWS
            )
            for path in ours
            if nudged
        }
        evidence: dict[str, UpdateEvidence] = {}
        for path in self.carrier.parameters:
            if path not in ours:
                continue
            self.add_count("updates of parameters")
            source = self.carrier.name(path)
            mine = dict(settings[0].get(source, {}))
            yours = dict(settings[1].get(path, {}))
            if path in rates:
                yours["lr"] = rates[path]
            gradient = gradients.get(path)
            if gradient is None:
                gradient = np.zeros_like(before[path])
            evidence[path] = UpdateEvidence(
                path,
                source,
                SideUpdate(
                    kinds[0] if source in settings[0] else "",
                    mine,
                    BeforeUpdate(before[path], gradient, given.get(path, {})),
                    AfterUpdate(np.ascontiguousarray(ours[path]), outcomes[0].get(path, {})),
                ),
                SideUpdate(
                    kinds[1] if path in settings[1] else "",
                    yours,
                    BeforeUpdate(before[path], gradient, slots.get(path, {})),
                    AfterUpdate(theirs[path], outcomes[1].get(path, {})),
                ),
            )
        self._judge_updates(evidence, known)
        self._lead_state(ours, outcomes[0], rates)

    def _lead_history(self) -> bool:
        """The port's optimizer remembers what the reference's does, where both remember the same.

        Each would drift by itself otherwise: LBFGS divides by products of differences of gradients, and
        what rounding makes of one step would be held against the port in all that follow.
        """
        reference, port = self.reference, self.port
        if not port.evaluates:
            return False
        ours = reference.backend.optimizer_history(reference.optimizer, reference.model)
        theirs = port.backend.optimizer_history(port.optimizer, port.model)
        if ours is None or theirs is None:
            return False
        paths = list(next(iter(theirs.vectors.values()))[0])
        kept = len(theirs.products)  # it may remember fewer steps
        vectors = {
            name: [self.carrier.carried(paths, dict(each)) for each in series[-kept:]]
            for name, series in ours.vectors.items()
        }
        if any(each.keys() != set(paths) for series in vectors.values() for each in series):
            return False
        port.backend.write_optimizer_history(
            port.optimizer, port.model, replace(ours, vectors=vectors, products=ours.products[-kept:])
        )
        return True

    def _slots_after(self, rates: dict[str, float], theirs: dict[str, Arrays]) -> dict[str, Arrays]:
        """The reference's slots after the update, by the port's paths and names."""
        return self._with_rates(self.carrier.carried_slots(self.reference.slots()), rates, theirs)

    def _with_rates(
        self, found: dict[str, Arrays], rates: dict[str, float], theirs: dict[str, Arrays]
    ) -> dict[str, Arrays]:
        for path, own in found.items():
            for name, other in WITH_RATE.items():
                if name in own and other in theirs.get(path, {}):
                    own[other] = own.pop(name) * np.float32(rates.get(path, 1.0))
        return found

    def _slots_before(self) -> tuple[dict[str, Arrays], dict[str, Arrays]]:
        """What the update begins with, by the port's paths: of the reference and of the port.

        Once the port is led they are the same arrays wherever both sides have them.
        """
        given = self.carrier.carried_slots(self.reference.slots(copy=True))
        if self.led is None:
            return given, self.port.slots(copy=True)
        own = self.port.slots()
        given = self._with_rates(given, self.led, own)
        return given, {
            path: {
                name: shared if (shared := given.get(path, {}).get(name)) is not None else values.copy()
                for name, values in slots.items()
            }
            for path, slots in own.items()
        }

    def _judge_updates(self, evidence: dict[str, UpdateEvidence], known: set[str]) -> None:
        wrong: dict[str, tuple[float, UpdateFloor]] = {}
        uncleared: dict[str, tuple[float, UpdateFloor]] = {}
        for path, each in evidence.items():
            measured, floor = self._score(each)
            limit = 0.0 if self.tolerance is not None else LIMIT
            if measured <= limit:
                if self.tolerance is None and path in known and self._set_otherwise(each):
                    wrong[path] = max(measured, LIMIT), floor
                continue
            (wrong if path in known else uncleared)[path] = measured, floor
        if uncleared and not self.found.seen(("cleared",)):
            self._add(
                [("cleared",)],
                uncleared,
                evidence,
                [_cleared_cause([evidence[path] for path in uncleared], self.port)],
            )
        fresh = {path: each for path, each in wrong.items() if not self.found.seen(("update", path))}
        if not fresh:
            return
        causes = (
            explain_updates(
                [evidence[path] for path in fresh],
                list(evidence.values()),
                self.port.backend.written_settings,
            )
            if self.explain
            else []
        )
        self._add([("update", path) for path in fresh], fresh, evidence, list(causes))

    def _set_otherwise(self, each: UpdateEvidence) -> bool:
        """Whether settings differ by an effect below the noise of one step, which adds up over many."""
        sides = (each.reference.kind, each.reference.settings), (each.port.kind, each.port.settings)
        if not sides[0][0] or not sides[1][0]:
            return False
        found = [(name, ours) for name, ours, _ in differences(*sides) if name not in ("lr", "kind")]
        if any(name == "epsilon_place" for name, _ in found):  # no other epsilon makes the two one
            found = [(name, ours) for name, ours in found if name not in EPSILONS]
        return any(effect_of(each, name, ours) > EFFECT for name, ours in found)

    def _score(self, each: UpdateEvidence) -> tuple[float, UpdateFloor]:
        ours, theirs = each.reference.outcome, each.port.outcome
        if self.tolerance is None and _same_outcome(theirs, ours):
            return 0.0, NO_FLOOR
        floor = scale_floor(each.reference.moment.weight, ours) | self.evaluated.get(each.path, NO_FLOOR)
        if self.tolerance is not None:
            bad = compare_arrays(theirs.weight, ours.weight, tolerance=self.tolerance).mismatched
            return float(bad), floor
        measured = distance(theirs, ours, floor)
        if measured <= NEAR:
            return measured, floor
        since, known = self.floors.get(each.path, (-KEPT, NO_FLOOR))
        if self.updated - since < KEPT and (again := distance(theirs, ours, floor | known)) <= LIMIT:
            return again, floor | known
        for side in (each.reference, each.port):
            found = rule_floor(side.kind, side.settings, side.moment)
            floor = floor if found is None else floor | found
        self.floors[each.path] = self.updated, floor
        return distance(theirs, ours, floor), floor

    def _add(
        self,
        keys: list[tuple[str, ...]],
        wrong: dict[str, tuple[float, UpdateFloor]],
        evidence: dict[str, UpdateEvidence],
        causes: Sequence[Cause | None],
    ) -> None:
        """One divergence a cause; what an earlier step told of other parameters is not told again."""
        first = max(wrong, key=lambda path: wrong[path][0])
        each, (measured, floor) = evidence[first], wrong[first]
        more = (
            ""
            if len(wrong) == 1
            else phrase("so is the update of one more parameter")
            if len(wrong) == 2
            else phrase("so are the updates of {count} more parameters", count=len(wrong) - 1)
        )
        for number, cause in enumerate(causes or [None]):
            if self.found.told(cause):
                self.found.mark(keys)
                continue
            self.found.add(
                (*keys[0], str(number)),
                Divergence(
                    "optimizer",
                    *self._sites(first),
                    phrase("update of the parameter {first}", first=first),
                    compare_arrays(each.port.outcome.weight, each.reference.outcome.weight, picture=True),
                    floor.weight,
                    measured,
                    more,
                    cause=cause,
                    step=self.step,
                ),
                keys,
            )

    def _lead_state(self, weights: Arrays, slots: dict[str, Arrays], rates: dict[str, float]) -> None:
        """The port goes on from the reference's weights, slots and buffers."""
        self.led = rates
        port = self.port
        self._write_weights(weights)
        port.backend.write_optimizer_state(port.optimizer, port.model, slots)
        buffers = self.carrier.carried(self.carrier.buffers, self.reference.arrays("buffer"))
        for path, tensor in port.tensors("buffer").items():
            if path in buffers:
                port.backend.write(tensor, buffers[path].astype(port.backend.dtype(tensor), copy=False))

    def lead_all(self) -> None:
        """The port goes on from the reference's weights, slots and buffers as they are."""
        slots = self.carrier.carried_slots(self.reference.slots())
        rates = self.rates[-1][0] if self.rates else {}
        self._lead_state(
            self.carrier.carried(self.carrier.parameters, self.reference.arrays("parameter")),
            self._with_rates(slots, rates, self.port.slots()),
            rates,
        )

    def add_rates(self, rates: Sequence[tuple[dict[str, float], dict[str, float]]]) -> None:
        """Note the rates of several steps, by the sides' own paths."""
        names = {path: self.carrier.name(path) for path in self.carrier.parameters}
        known: dict[tuple[int, int], tuple[dict[str, float], dict[str, float]]] = {}
        for ours, theirs in rates:
            key = id(ours), id(theirs)
            if key not in known:  # most steps have the very same
                both = [path for path, name in names.items() if name in ours and path in theirs]
                known[key] = (
                    {path: ours[names[path]] for path in both},
                    {path: theirs[path] for path in both},
                )
            self.rates.append(known[key])
            self.add_count("learning rates", len(known[key][0]))

    def lead_weights(self, weights: Arrays) -> None:
        """Give the port the reference's ``weights``."""
        self._write_weights(self.carrier.carried(self.carrier.parameters, weights))

    def _write_weights(self, weights: Arrays) -> None:
        backend, tensors = self.port.backend, self.port.tensors("parameter")
        for path, array in weights.items():
            backend.write(tensors[path], array.astype(backend.dtype(tensors[path]), copy=False))

    def add_count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def _sites(self, path: str) -> tuple[Site, Site]:
        kinds = [
            side.backend.optimizer_kind(side.optimizer) if side.optimizer is not None else ""
            for side in (self.reference, self.port)
        ]
        return Site(self.carrier.name(path) if path else "", kinds[0]), Site(path, kinds[1])


NO_FLOOR = UpdateFloor(NOTHING)


def _farthest(nudged: Sequence[Array | None], right: Array) -> Size:
    """How far these are from what is right, at most."""
    found = NOTHING
    for array in nudged:
        if array is not None:
            found = found | difference(np.ascontiguousarray(array), np.ascontiguousarray(right))
    return found


def _same_outcome(theirs: AfterUpdate, ours: AfterUpdate) -> bool:
    """Whether weights and slots are equal up to a unit in the last place, quickly."""
    return nearly(theirs.weight, ours.weight, 1.0) and all(
        nearly(theirs.slots[name], np.asarray(values), 1.0)
        for name, values in ours.slots.items()
        if name in theirs.slots and name != "step" and theirs.slots[name].shape == np.shape(values)
    )


def _cleared_cause(moved: list[UpdateEvidence], port: TrainingSide) -> Cause:
    message = phrase(
        "{places} took no part in this step and has no gradient in the reference; in the "
        "port its gradient is zero, so that momentum and decay go on moving it",
        places=some([each.path for each in moved], 1),
    )
    fix = phrase("write {line}", line=port.backend.written_clearing())
    return judged_updates(Claim("optim.update", message, fix), moved, max(map(left_alone, moved)))
