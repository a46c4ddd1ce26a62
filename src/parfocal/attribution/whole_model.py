"""Results of whole models: outputs, the loss, the gradients of parameters.

Each parameter's gradient is judged twice: once as made by its own layer from exact inputs, once
as it comes out of the natural runs. There the errors of all layers add up, and as long as they
explain what is seen nothing more is asked. What deep networks amplify beyond that is told from what
is wrong by shaking the reference, and, where chance decides (a ReLU that flips), by running both in
float64: a flip is gone then, a mistake is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from parfocal.attribution.measures import END_LIMIT, LARGE, LIMIT, Measure, Remark
from parfocal.attribution.sides import Arrays, Driving, ModelResults, ModelSide, tied_outputs
from parfocal.backends.keeping import attributes_kept
from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, NOTHING, Size, coarser, difference, judge_roughly, score, size_of
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.tolerance import Tolerance
from parfocal.phrases import phrase
from parfocal.replay.follow import Direction, InputOrOutput
from parfocal.replay.noise_floors import NoiseFloors, Remainder, is_gone
from parfocal.replay.perturbing import Perturber
from parfocal.replay.trace import Node
from parfocal.weights import views
from parfocal.weights.plan import Entry, Plan

SHAKE = limits.verdicts.SHAKE.value
SUMMED = limits.verdicts.SUMMED.value
UNUSUAL = limits.verdicts.UNUSUAL.value
_INFINITE = Size(math.inf, math.inf)
_NOWHERE: tuple[int, int, InputOrOutput, str, str, Direction] = -1, -1, "output", "", "", "forward"


@dataclass(frozen=True, slots=True)
class WholeModelResult:
    """A result of the whole model, or a parameter's gradient."""

    phase: str  # "forward", "loss" or "gradient"
    reference: str  # slot of the output, or path of the parameter
    port: str
    measure: Measure
    arrays: tuple[Array, Array] | None = None  # the port's and the reference's
    follows: bool = False  # from a call that is guilty already


class WholeModelResults:
    """Judges the results of two players that have run."""

    def __init__(
        self, reference: ModelSide, port: ModelSide, plan: Plan, driving: Driving, tolerance: Tolerance | None
    ) -> None:
        self.reference = reference
        self.port = port
        self.plan = plan
        self.driving = driving
        self.tolerance = tolerance

    def parameters(
        self, gradients: Arrays, precise: NoiseFloors, measures: Sequence[Measure]
    ) -> list[WholeModelResult]:
        """The gradients of the followed port: each layer's own, from exact inputs and output gradients.

        Those of a layer that is guilty by its ``measures`` follow from that: it is not asked again. Nor is
        the whole model, where the code around a layer that is right by itself is guilty.
        """
        ends = []
        port = precise.port.trace
        guilty = {
            port.nodes[port.around(each.port, each.levels)].path for each in measures if each.score > LIMIT
        }
        for entry in self.plan.entries:
            found = self._gradient(entry, self.reference.natural.gradients, gradients)
            if found is not None:
                owner = found.port.rpartition(".")[0]
                if LIMIT < found.measure.score < math.inf and owner not in guilty:
                    found = self._refined(
                        found, entry, precise, any(_encloses(path, owner) for path in guilty)
                    )
                ends.append(self._in_full(found, LIMIT))
        return ends

    def whole(self, measures: list[Measure], parameters: list[WholeModelResult]) -> list[WholeModelResult]:
        """Outputs, loss and gradients of the natural runs, against what rounding does to the whole model."""
        ends = list(self._raw(self.reference.natural, self.port.natural))
        if self.tolerance is not None:
            return [self._in_full(end, 1.0) for end in ends]
        guilty = [measure for measure in measures if measure.score > LIMIT]
        ends = _carried(ends, [measure for measure in measures if measure.score <= LIMIT], parameters)
        # where something else is given, all that comes out differently in the end follows from that
        follows = any(measure.direction == "forward" for measure in guilty)
        if not follows and any(end.measure.score > LIMIT for end in ends):
            shaken = self._shaken(measures)
            ends = [_lifted(end, self._moved(end, shaken)) for end in ends]
        guilty += [end.measure for end in parameters if end.measure.score > LIMIT]
        if not guilty and any(end.measure.score > END_LIMIT for end in ends):
            ends = self._without_vanishing(ends)
        return [self._in_full(end, END_LIMIT) for end in ends]

    def _in_full(self, end: WholeModelResult, limit: float) -> WholeModelResult:
        """With all figures, where it is above the limit."""
        if end.measure.score <= limit or end.arrays is None or end.measure.comparison is not None:
            return end
        comparison = compare_arrays(*end.arrays, tolerance=self.tolerance)
        return replace(end, measure=replace(end.measure, comparison=comparison))

    def _gradient(self, entry: Entry, reference: Arrays, port: Arrays) -> WholeModelResult | None:
        ours, theirs = reference.get(entry.source), port.get(entry.target)
        if ours is not None and theirs is not None:
            arrays = views.apply(entry.target_view, theirs), views.apply(entry.source_view, ours)
            return self._end("gradient", entry.source, entry.target, arrays)
        # of a stack of which only some parts were used, as of experts, the others have zeros
        view, present = (entry.target_view, theirs) if ours is None else (entry.source_view, ours)
        if present is None or not np.any(views.apply(view, present)):
            return None
        lacking = Remark.NO_GRADIENT_IN_REFERENCE if ours is None else Remark.NO_GRADIENT_IN_PORT
        measure = replace(
            _blank(),
            error=_INFINITE,
            message=lacking.words,
            remark=lacking,
        )
        return WholeModelResult("gradient", entry.source, entry.target, measure)

    def _end(self, phase: str, reference: str, port: str, arrays: tuple[Array, Array]) -> WholeModelResult:
        comparison, error, floor, relative = judge_roughly(*arrays, self.tolerance)
        measure = Measure(*_NOWHERE, comparison, error, floor, relative=relative)
        return WholeModelResult(phase, reference, port, measure, arrays)

    def _refined(
        self, end: WholeModelResult, entry: Entry, precise: NoiseFloors, guilty_around: bool
    ) -> WholeModelResult:
        measure = end.measure
        calls = self.reference.trace.calls_of_owner(entry.source)
        port_calls = self.port.trace.calls_of_owner(entry.target)
        if not calls or not port_calls:
            return end
        acquitted = _with_floor(measure, self._unit(entry, calls) | measure.floor)
        if acquitted.score <= LIMIT:
            return replace(end, measure=acquitted)
        for asked in ((calls, _repeatable(precise, port_calls)), ([0], [0])):
            if guilty_around and asked[0] is not calls:
                return replace(end, follows=True)
            acquitted = self._acquitted(entry, measure, precise, *asked)
            if asked[0] is calls and acquitted.score > LIMIT and not are_led(precise, port_calls):
                continue  # the gradient that comes in is of the port's own making: as exact as the model
            large = acquitted.floor.rms > LARGE * measure.floor.rms
            if acquitted.score > LIMIT or not large or self._is_made_by(entry, measure, precise, *asked):
                return replace(end, measure=acquitted)
        # not even the whole model makes the error: something acts on the parameter from outside
        recorded = score(precise.still([0], entry.source), measure.floor) <= LIMIT
        return end if recorded else replace(end, measure=acquitted)

    def _unit(self, entry: Entry, calls: list[int]) -> Size:
        """What rounding does to the whole parameter: an entry may be a part of what is summed at once."""
        whole = self.reference.natural.gradients[entry.source]
        nodes = [self.reference.trace.nodes[order] for order in calls]
        return size_of(whole) * coarser(whole.dtype.name) * max(1.0, _summing(nodes, whole.shape))

    def _acquitted(
        self, entry: Entry, measure: Measure, precise: NoiseFloors, calls: list[int], port_calls: list[int]
    ) -> Measure:
        """The measure with as much of a floor as it takes, if any is enough."""
        for question in (partial(precise.moved, once=True), precise.exact):
            measure = _with_floor(measure, question(calls, entry.source))
            if measure.score <= LIMIT:
                return measure
        seen = partial(views.apply, entry.source_view), partial(views.apply, entry.target_view)
        left = precise.remainder_seen(calls, entry.source, port_calls, entry.target, seen, measure.error)
        if left is Remainder.GONE:
            return _with_floor(measure, measure.error)
        if left is Remainder.STAYS:
            return measure
        measure = _with_floor(measure, precise.moved(calls, entry.source))
        if measure.score <= LIMIT:
            return measure
        return _with_floor(measure, precise.port_floor(port_calls, entry.target))

    def _is_made_by(
        self, entry: Entry, measure: Measure, precise: NoiseFloors, calls: list[int], port_calls: list[int]
    ) -> bool:
        """Whether these calls alone make the gradient that was recorded, and the error that was seen."""
        if score(precise.still(calls, entry.source), measure.floor) > LIMIT:
            return False
        alone = precise.port_result(port_calls, entry.target)
        if alone is None:
            return True
        expected = views.apply(entry.source_view, self.reference.natural.gradients[entry.source])
        error = difference(views.apply(entry.target_view, alone), expected)
        return score(error, measure.floor) > LIMIT

    def _raw(self, reference: ModelResults, port: ModelResults) -> Iterator[WholeModelResult]:
        tied = tied_outputs(reference.outputs, port.outputs)
        for slot, (name, layout) in tied.items():
            expected = layout.apply(reference.outputs[name])
            yield self._end("forward", name, slot, (port.outputs[slot], expected))
        missing = [name for name in reference.outputs if name not in {other for other, _ in tied.values()}]
        for name, slot in zip(missing, (slot for slot in port.outputs if slot not in tied), strict=False):
            shapes = list(port.outputs[slot].shape), list(reference.outputs[name].shape)
            message = phrase(
                "shape {port} in the port, {reference} in the reference", port=shapes[0], reference=shapes[1]
            )
            yield WholeModelResult("forward", name, slot, replace(_blank(), error=_INFINITE, message=message))
        if reference.loss is not None and port.loss is not None:
            yield self._end("loss", "loss", "loss", (_scalar(port.loss), _scalar(reference.loss)))
        for entry in self.plan.entries:
            end = self._gradient(entry, reference.gradients, port.gradients)
            if end is not None:
                yield end

    def _moved(self, end: WholeModelResult, shaken: ModelResults) -> Size:
        """How far shaking carries at this end."""
        natural = self.reference.natural
        if end.phase == "loss":
            return difference(_scalar(shaken.loss or 0.0), _scalar(natural.loss or 0.0))
        before, after = (
            (side.outputs if end.phase == "forward" else side.gradients).get(end.reference)
            for side in (natural, shaken)
        )
        return NOTHING if before is None or after is None else difference(after, before)

    def _shaken(self, measures: list[Measure]) -> ModelResults:
        """The reference's results when every layer is off by what a correct layer may be off."""
        model_side = self.reference
        shaker = Perturber(
            model_side.backend, model_side.trace, _noise_amounts(model_side.trace.nodes, measures)
        )
        with model_side.backend.watch(model_side.model, None, shaker.on_exit):
            return self._run(model_side)

    def _run(self, model_side: ModelSide) -> ModelResults:
        results = ModelResults()
        model_side.backend.clear_gradients(model_side.model)
        args, kwargs = model_side.inputs()
        with attributes_kept(model_side.backend, model_side.model):
            self.driving.driver(model_side, results)(model_side.model(*args, **kwargs))
        results.gradients = model_side.gradients() if self.driving.backward else {}
        model_side.backend.clear_gradients(model_side.model)
        return results

    def _without_vanishing(self, ends: list[WholeModelResult]) -> list[WholeModelResult]:
        """What is gone when both models compute in float64 was rounding, however far it was carried."""
        twins = self.reference.twin("float64"), self.port.twin("float64")
        exact = {
            (end.phase, end.port): end.measure for end in self._raw(*(self._run(twin) for twin in twins))
        }
        return [
            _lifted(end, end.measure.error)
            if (left := exact.get((end.phase, end.port))) and is_gone(left.error, end.measure.error)
            else end
            for end in ends
        ]


def _encloses(path: str, owner: str) -> bool:
    """Whether a module is around another one."""
    return path != owner and f"{owner}.".startswith(f"{path}." if path else "")


def _repeatable(precise: NoiseFloors, calls: list[int]) -> list[int]:
    """The calls of the port, or those around them where they are given nothing: a layer that only it has."""
    port = precise.port
    around = list(dict.fromkeys(map(port.repeatable, calls)))
    of_one_module = len({port.trace.nodes[order].path for order in around}) == 1
    return around if of_one_module and around != [0] else calls


def are_led(precise: NoiseFloors, calls: list[int]) -> bool:
    """Whether all calls of the port are given the reference's output gradients."""
    bindings = precise.port.script.ties
    return all(order in bindings and bool(bindings[order].outputs) for order in calls)


def _scalar(number: float) -> Array:
    return np.array([number], np.float32)


def _blank() -> Measure:
    return Measure(*_NOWHERE, None, NOTHING, NOTHING)


def _with_floor(measure: Measure, floor: Size) -> Measure:
    return replace(measure, floor=measure.floor | floor)


def _lifted(end: WholeModelResult, floor: Size) -> WholeModelResult:
    if not math.isfinite(end.measure.error.rms):
        return end
    return replace(end, measure=_with_floor(end.measure, floor))


def _carried(
    ends: list[WholeModelResult], measures: list[Measure], parameters: list[WholeModelResult]
) -> list[WholeModelResult]:
    """What the layers' own errors, each within the noise, may add up to at the ends of the model.

    Nothing is amplified on the way, but for what a parameter's own layer makes of it: its floor says
    how far one unit carries there. Forward errors also flip a like share of what is cut off (a ReLU,
    a maximum); where those are, gradients are off entirely, altogether by the root of that share.
    """
    forward, backward = (_sum_of_errors(measures, direction) for direction in ("forward", "backward"))
    floors = {(end.reference, end.port): end.measure.floor for end in parameters}
    lifted = []
    for end in ends:
        measure, unit, relative = end.measure, end.measure.floor, end.measure.relative or 0.0
        if measure.score > LIMIT and unit.rms > 0.0 and 0.0 < relative < math.inf:
            epsilon = unit.rms * relative / measure.error.rms
            units = forward / epsilon
            floor = unit * units
            if end.phase == "gradient":
                own = floors.get((end.reference, end.port), unit) | unit
                floor = own * (units + backward / epsilon) | unit * (math.sqrt(forward) / epsilon)
            end = _lifted(end, floor)
        lifted.append(end)
    return lifted


def _sum_of_errors(measures: list[Measure], direction: str) -> float:
    """Relative to the tensors; of one that is nothing but rounding the relative error says nothing."""
    errors = [m.relative for m in measures if m.direction == direction and m.relative]
    return float(np.minimum(errors, UNUSUAL * np.median(errors)).sum()) if errors else 0.0


def _summing(nodes: list[Node], shape: tuple[int, ...]) -> float:
    """How many units of a parameter's gradient rounding makes of the terms that it sums.

    There is one for every place of the output, apart from the axis that they have in common.
    """
    terms = 0
    for node in nodes:
        for value in node.outputs.values():
            common = set(value.data.shape) & set(shape)
            terms += value.data.fingerprint.size // max(common) if common else 0
    return SUMMED * math.sqrt(terms)


def _noise_amounts(nodes: list[Node], measures: list[Measure]) -> dict[int, float]:
    """Per layer: what was measured there, within the noise, but at least one unit in the last place."""
    measured = {
        m.reference: m.relative
        for m in measures
        if m.relative is not None and m.own and m.direction == "forward" and m.score <= LIMIT
    }
    amounts = {}
    for node in nodes:
        if node.is_leaf and node.outputs:
            epsilon = max(EPSILON.get(value.data.dtype, 0.0) for value in node.outputs.values())
            amounts[node.order] = SHAKE * max(epsilon, measured.get(node.order, 0.0))
    return amounts
