"""``compare``: two recorded runs, with no framework and no model at hand.

Nothing can be run again here, so a call's own error cannot be measured: it is told from what the
call inherits by how much larger the relative error is at its outputs than at its inputs. Where
tensors were kept as sketches, errors are estimated from those. Each step is compared by itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.floors import EPSILON, NOTHING, Size
from parfocal.judge.metrics import Comparison, compare_arrays
from parfocal.judge.sketch import Sketch, fingerprint, relative_distance, sketch
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Divergence, Finding, PairResult, Site
from parfocal.matching.anchors import Anchor
from parfocal.matching.pairing import CallPair, pair_calls
from parfocal.matching.values import SAME, distance, tie_slots
from parfocal.replay.layouts import fit
from parfocal.replay.trace import Data, Node, Trace, Value
from parfocal.report.report import Compared, Report, Step
from parfocal.run.reader import Run, load_run
from parfocal.run.records import CallRecord, GradientRecord, TensorValue

# How much a correct call may add to the relative error it is given (docs/noise.md), and how many
# units in the last place count as given to a call whose inputs agree exactly.
JUMP = 32.0
GIVEN = 8.0
_EXACT_DTYPE = 2.0**-52


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One step of one run: the calls as a trace, and where the bytes of each value are."""

    run: Run
    trace: Trace
    tensors: Mapping[int, TensorValue]  # id of a Data -> as it was recorded


@dataclass(slots=True)
class _Errors:
    """Relative errors of one pair, forward and backward."""

    pair: CallPair
    given: float = 0.0
    made: float = 0.0
    comparison: Comparison | None = None
    what: str = ""
    backward_given: float = 0.0
    backward_made: float | None = None
    backward_comparison: Comparison | None = None
    problems: list[str] = field(default_factory=list)


def compare(
    run_a: Run | str | os.PathLike[str],
    run_b: Run | str | os.PathLike[str],
    *,
    tolerance: Tolerance | None = None,
    layers: Mapping[str, str] | None = None,
) -> Report:
    """Compare a reference's run with a port's; works on a machine with neither framework.

    With ``tolerance`` every element of every paired tensor must be within it (full tensors only).
    """
    runs = [run if isinstance(run, Run) else load_run(run) for run in (run_a, run_b)]
    if runs[0].path.resolve() == runs[1].path.resolve():
        raise InputError(f"{runs[0].path} is compared with itself", hint="give two runs")
    steps = [_steps(run) for run in runs]
    common = sorted(steps[0].keys() & steps[1].keys())
    if not common:
        raise EmptyComparisonError(
            f"no step with calls is in both runs: {sorted(steps[0])} and {sorted(steps[1])}",
            hint="record both sides with the same filters",
        )
    reports = [_compare_step(steps[0][step], steps[1][step], step, tolerance, layers) for step in common]
    return _joined(runs, reports, _run_findings(runs, steps), tolerance)


def _steps(run: Run) -> dict[int, _Recorded]:
    calls: dict[int, list[CallRecord]] = {}
    gradients: dict[int, list[GradientRecord]] = {}
    for record in run.records(run.ranks[0] if run.ranks else None):
        if isinstance(record, CallRecord):
            calls.setdefault(record.step, []).append(record)
        elif isinstance(record, GradientRecord):
            gradients.setdefault(record.step, []).append(record)
    return {step: _recorded(run, found, gradients.get(step, [])) for step, found in calls.items()}


def _recorded(run: Run, calls: list[CallRecord], gradients: list[GradientRecord]) -> _Recorded:
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
    return _Recorded(run, Trace(nodes), tensors)


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


def _compare_step(
    reference: _Recorded,
    port: _Recorded,
    step: int,
    tolerance: Tolerance | None,
    layers: Mapping[str, str] | None,
) -> Report:
    ours, theirs = reference.trace, port.trace
    same = {node.path for node in ours.nodes} & {node.path for node in theirs.nodes}
    pairing = pair_calls(ours, theirs, [Anchor((path,), (path,)) for path in same], layers)
    found = [_errors(pair, reference, port, tolerance) for pair in pairing.pairs]
    _give_what_is_inside(found, theirs)
    limit = 1.0 if tolerance else JUMP
    divergences = sorted(
        (each for errors in found for each in _divergences(errors, ours, theirs, step, limit)),
        key=lambda each: each.phase == "backward",
    )
    return Report(
        reference_name="",
        port_name="",
        divergences=tuple(divergences),
        pairs=tuple(_pair_result(errors, ours, theirs) for errors in found),
        unpaired_reference=tuple(_site(ours.nodes[order]) for order in pairing.unpaired_reference),
        unpaired_port=tuple(_site(theirs.nodes[order]) for order in pairing.unpaired_port),
        compared=Compared(
            calls=len(pairing.pairs),
            tensors=sum(1 + (errors.backward_made is not None) for errors in found),
            port_calls=len(theirs.nodes),
            directions=("forward", "backward")
            if any(errors.backward_made is not None for errors in found)
            else ("forward",),
        ),
        along=tuple(
            Step(theirs.nodes[e.pair.port].path, _jump(e.given, e.made), min(e.made, 1e9))
            for e in found
            if theirs.nodes[e.pair.port].is_leaf
        ),
        limit=limit,
    )


def _errors(pair: CallPair, reference: _Recorded, port: _Recorded, tolerance: Tolerance | None) -> _Errors:
    errors = _Errors(pair)
    own, other = port.trace.nodes[pair.port], reference.trace.nodes[pair.reference]
    given = {} if pair.gives is None else reference.trace.nodes[pair.gives].outputs
    for slot, value in tie_slots(own.inputs, other.inputs).items():
        errors.given = max(errors.given, _relative(own.inputs[slot].data, value.data, reference, port)[0])
    tied = tie_slots(own.outputs, given)
    for slot, value in tied.items():
        made, comparison = _relative(own.outputs[slot].data, value.data, reference, port, tolerance)
        if made >= errors.made:
            errors.made, errors.comparison, errors.what = made, comparison, f"output {slot}"
    if given and own.outputs and not tied:
        errors.made, errors.what = math.inf, "output"
        errors.problems.append(_other_shapes(own.outputs, given))
    _add_backward(errors, own, other, tied, reference, port, tolerance)
    return errors


def _give_what_is_inside(found: list[_Errors], port: Trace) -> None:
    """A container is also given what its inner calls made: it answers for its own code only."""
    by_order = {errors.pair.port: errors for errors in found}
    for errors in found:
        inside = [by_order[node.order] for node in port.subtree(errors.pair.port) if node.order in by_order]
        for inner in inside[1:]:
            errors.given = max(errors.given, inner.made)
            errors.backward_given = max(errors.backward_given, inner.backward_made or 0.0)


def _other_shapes(own: Mapping[str, Value], given: Mapping[str, Value]) -> str:
    shapes = [[list(value.data.shape) for value in values.values()] for values in (own, given)]
    return f"shapes {shapes[0]} in the port, {shapes[1]} in the reference"


def _add_backward(
    errors: _Errors,
    own: Node,
    other: Node,
    tied: Mapping[str, Value],
    reference: _Recorded,
    port: _Recorded,
    tolerance: Tolerance | None,
) -> None:
    for slot, value in tied.items():
        mine = own.outputs[slot].gradient
        if mine is not None and value.gradient is not None:
            error, _ = _relative(mine, value.gradient, reference, port)
            errors.backward_given = max(errors.backward_given, error)
    for slot, value in tie_slots(own.inputs, other.inputs).items():
        mine = own.inputs[slot].gradient
        if mine is not None and value.gradient is not None:
            error, comparison = _relative(mine, value.gradient, reference, port, tolerance)
            if errors.backward_made is None or error > errors.backward_made:
                errors.backward_made, errors.backward_comparison = error, comparison


def _relative(
    own: Data,
    other: Data,
    reference: _Recorded,
    port: _Recorded,
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
    if own.shape != other.shape:
        return 0.0, None  # sketches say nothing across layouts; the fingerprints agreed
    sketches = [_sketch(side.run, value) for side, value in ((port, mine), (reference, yours))]
    apart = relative_distance(*sketches)
    order_free = distance(own.fingerprint, other.fingerprint)
    # the same values in another order lie differently (NHWC); a mistake changes the values
    return (order_free if apart > 0.1 and order_free <= SAME else apart), None


def _sketch(run: Run, value: TensorValue) -> Sketch:
    return Sketch.from_json(dict(value.sketch)) if value.sketch is not None else sketch(run.read(value))


def _jump(given: float, made: float, epsilon: float = EPSILON["float32"]) -> float:
    """How many times larger an error became, one of a few units in the last place counted as given."""
    if made == 0.0:
        return 0.0
    return made / max(given, GIVEN * epsilon) if math.isfinite(given) else 1.0


def _divergences(
    errors: _Errors, ours: Trace, theirs: Trace, step: int, limit: float
) -> Iterator[Divergence]:
    own, other = theirs.nodes[errors.pair.port], ours.nodes[errors.pair.reference]
    dtype = next((value.data.dtype for value in own.outputs.values()), "float32")
    epsilon = EPSILON.get(dtype, _EXACT_DTYPE)
    for phase, given, made, comparison in (
        ("forward", errors.given, errors.made, errors.comparison),
        ("backward", errors.backward_given, errors.backward_made or 0.0, errors.backward_comparison),
    ):
        jump = _jump(given, made, epsilon)
        if jump > limit:
            allowed = max(given, GIVEN * epsilon)
            size = 1.0 if comparison is None or not comparison.rel_l2 else comparison.rmse / comparison.rel_l2
            yield Divergence(
                phase,
                _site(other),
                _site(own),
                errors.what if phase == "forward" else "gradient of an input",
                comparison,
                NOTHING if math.isinf(made) else Size(allowed * size, allowed * size),
                jump,
                "; ".join(errors.problems) if phase == "forward" else "",
                step=step,
            )


def _pair_result(errors: _Errors, ours: Trace, theirs: Trace) -> PairResult:
    backward = None
    if errors.backward_made is not None:
        backward = _jump(errors.backward_given, errors.backward_made)
    return PairResult(
        _site(ours.nodes[errors.pair.reference]),
        _site(theirs.nodes[errors.pair.port]),
        errors.pair.why,
        _jump(errors.given, errors.made),
        backward,
    )


def _site(node: Node) -> Site:
    return Site(node.path, node.kind, None, node.file, node.line, node.settings)


def _run_findings(runs: list[Run], steps: list[dict[int, _Recorded]]) -> Iterator[Finding]:
    for run in runs:
        if not run.complete:
            yield Finding("run.incomplete", f"{run.path} is incomplete: only finished calls were compared")
    for step in sorted(steps[0].keys() ^ steps[1].keys()):
        yield Finding("run.steps", f"step {step} is in one of the runs only")
    losses = [{step.step: step.loss for step in run.steps() if step.loss is not None} for run in runs]
    for step in sorted(losses[0].keys() & losses[1].keys()):
        ours, theirs = losses[0][step], losses[1][step]
        yield Finding(
            "run.loss", f"loss at step {step}: {ours:.9g} in the reference, {theirs:.9g} in the port"
        )


def _joined(
    runs: list[Run], reports: list[Report], findings: Iterator[Finding], tolerance: Tolerance | None
) -> Report:
    first = reports[0]
    names = [f"{run.header.model_class or run.path.name} ({run.header.framework} run)" for run in runs]
    return Report(
        reference_name=names[0],
        port_name=names[1],
        divergences=tuple(each for report in reports for each in report.divergences),
        findings=tuple(findings),
        pairs=tuple(pair for report in reports for pair in report.pairs),
        unpaired_reference=first.unpaired_reference,
        unpaired_port=first.unpaired_port,
        compared=Compared(
            calls=sum(report.compared.calls for report in reports),
            tensors=sum(report.compared.tensors for report in reports),
            port_calls=sum(report.compared.port_calls for report in reports),
            directions=first.compared.directions,
        ),
        along=first.along,
        limit=first.limit,
        scale="growth",
        tolerance=tolerance,
    )
