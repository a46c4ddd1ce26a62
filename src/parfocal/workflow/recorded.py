"""A recorded run as traces, one a step, and how far two of its tensors are apart: what ``compare`` works on.

Bytes stay in the run; a tensor is known by its fingerprint until its values are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from parfocal.errors import InputError
from parfocal.judge.layouts import fit
from parfocal.judge.metrics import Comparison, compare_arrays
from parfocal.judge.sketch import Fingerprint, Sketch, fingerprint, relative_distance, sketch
from parfocal.judge.tolerance import Tolerance
from parfocal.matching.values import SAME, distance
from parfocal.replay.trace import Data, Node, Trace, Value
from parfocal.run.reader import Run
from parfocal.run.records import CallRecord, GradientRecord, StateRecord, TensorValue
from parfocal.workflow.run_gradients import Gradients


@dataclass(frozen=True, slots=True)
class Recorded:
    """One step of one run: the calls as a trace, and where the bytes of each value are."""

    run: Run
    trace: Trace
    tensors: Mapping[int, TensorValue]  # id of a Data -> as it was recorded
    gradients: Gradients  # of parameters
    made: frozenset[Fingerprint]  # of what calls gave, as opposed to what the model was given
    buffers: Mapping[str, Mapping[str, TensorValue]]  # by path: "before" and "after" the step
    went_back: bool  # a backward pass was recorded


def steps_of(run: Run) -> dict[int, Recorded]:
    calls: dict[int, list[CallRecord]] = {}
    gradients: dict[int, list[GradientRecord]] = {}
    parameters: dict[int, dict[str, TensorValue | None]] = {}
    buffers: dict[int, dict[str, dict[str, TensorValue]]] = {}
    for record in run.records(run.ranks[0] if run.ranks else None):
        if isinstance(record, CallRecord):
            calls.setdefault(record.step, []).append(record)
        elif isinstance(record, GradientRecord):
            gradients.setdefault(record.step, []).append(record)
        elif isinstance(record, StateRecord) and (record.role, record.moment) == ("gradient", "before"):
            parameters.setdefault(record.step, {})[record.path] = record.value
        elif isinstance(record, StateRecord) and record.role == "buffer" and record.value is not None:
            moments = buffers.setdefault(record.step, {}).setdefault(record.path, {})
            moments[record.moment] = record.value
    return {
        step: _recorded(run, found, gradients.get(step, []), parameters.get(step, {}), buffers.get(step, {}))
        for step, found in calls.items()
    }


def _recorded(
    run: Run,
    calls: list[CallRecord],
    gradients: list[GradientRecord],
    parameters: Mapping[str, TensorValue | None],
    buffers: Mapping[str, Mapping[str, TensorValue]],
) -> Recorded:
    calls = sorted(calls, key=lambda call: call.order)
    position = {call.order: index for index, call in enumerate(calls)}
    tensors: dict[int, TensorValue] = {}
    known: dict[TensorValue | int, Data] = {}
    nodes = [_node(run, call, index, position, tensors, known) for index, call in enumerate(calls)]
    for node in nodes:
        if node.parent is not None:
            nodes[node.parent].children.append(node.order)
    for node in reversed(nodes):  # the end of a call is the end of its last child
        node.finished = max([node.order + 1, *(nodes[child].finished for child in node.children)])
    for gradient in gradients:
        index = position.get(gradient.call)
        if index is None or gradient.value is None or gradient.backward != 0:
            continue
        values = nodes[index].inputs if gradient.side == "input" else nodes[index].outputs
        if gradient.slot in values:
            values[gradient.slot].gradient = _data(run, gradient.value, tensors, known)
    sums = {
        path: None if value is None else _data(run, value, tensors, known)
        for path, value in parameters.items()
    }
    made = frozenset(value.data.fingerprint for node in nodes for value in node.outputs.values())
    return Recorded(run, Trace(nodes), tensors, sums, made, buffers, bool(gradients))


def _node(
    run: Run,
    call: CallRecord,
    index: int,
    position: Mapping[int, int],
    tensors: dict[int, TensorValue],
    known: dict[TensorValue | int, Data],
) -> Node:
    def values(leaves: Mapping[str, object]) -> dict[str, Value]:
        return {
            slot: Value(_data(run, leaf, tensors, known))
            for slot, leaf in leaves.items()
            if isinstance(leaf, TensorValue)
        }

    return Node(
        order=index,
        parent=None if call.parent is None else position.get(call.parent),
        depth=call.depth,
        path=call.path,
        kind=call.op or call.kind,
        class_name=call.class_name,
        framework_layer=True,  # not recorded; nothing is excused for a user's own code
        occurrence=call.occurrence,
        settings=call.settings,
        training=call.training,
        in_place=False,
        file=call.file,
        line=call.line,
        inputs=values(call.inputs.leaves),
        outputs=values(call.outputs.leaves),
    )


def _data(
    run: Run, value: TensorValue, tensors: dict[int, TensorValue], known: dict[TensorValue | int, Data]
) -> Data:
    """The same bytes give the same object, so that what feeds what can be seen."""
    key: TensorValue | int = hash(value.ref) if value.ref is not None else id(value)
    if key not in known:
        if value.sketch is not None:
            marks = Sketch.from_json(dict(value.sketch)).fingerprint
        elif value.ref is not None:
            marks = fingerprint(run.read(value))
        else:
            raise InputError(
                f"{run.path} has statistics only (tensors={run.header.tensors!r}): values cannot be compared",
                hint='record with tensors="full" or tensors="sketch"',
            )
        known[key] = Data(value.shape, value.dtype, marks, None)
        tensors[id(known[key])] = value
    return known[key]


def relative_error(
    own: Data,
    other: Data,
    reference: Recorded,
    port: Recorded,
    tolerance: Tolerance | None = None,
) -> tuple[float, Comparison | None]:
    """Relative error of a port's tensor; with a tolerance, 0 within and infinite beyond it."""
    mine, yours = port.tensors[id(own)], reference.tensors[id(other)]
    if mine.ref is not None and yours.ref is not None:
        observed, recorded = port.run.read(mine), reference.run.read(yours)
        layout = fit(recorded, observed)
        if layout is None:
            return math.inf, None
        comparison = compare_arrays(observed, layout.apply(recorded), tolerance=tolerance)
        if tolerance is not None:
            return (math.inf if comparison.mismatched else 0.0), comparison
        return comparison.rel_l2, comparison
    if tolerance is not None:
        raise InputError("a fixed tolerance needs full tensors", hint='record both runs with tensors="full"')
    order_free = distance(own.fingerprint, other.fingerprint)
    if own.shape != other.shape:  # projections say nothing across layouts, fingerprints little
        return (order_free if order_free > SAME else 0.0), None
    sketches = [_sketch(side.run, value) for side, value in ((port, mine), (reference, yours))]
    apart = relative_distance(*sketches)
    # the same values in another order lie differently (NHWC); a mistake changes the values
    return (order_free if apart > 0.1 and order_free <= SAME else apart), None


def _sketch(run: Run, value: TensorValue) -> Sketch:
    return Sketch.from_json(dict(value.sketch)) if value.sketch is not None else sketch(run.read(value))
