"""A mistake in a model's own code, or in its gradients, as a script: both models built anew.

Such code cannot be taken out of its model, so the script builds both from the user's own files, takes
the two modules, loads the recorded weights and runs them by themselves on the recorded values. One
tensor that both compute is compared: the output, or the gradient, that shows the mistake most.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.causes import PortCode, ProvenChange
from parfocal.explain.fixes.joining import parts_of
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.reproducing import ExtractedLayer
from parfocal.explain.scripting import Kind, Rebuilding, Watched, is_inside
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, coarser, difference, size_of
from parfocal.judge.verdict import SIDES, Divergence, Fix
from parfocal.replay.follow import Direction, InputOrOutput
from parfocal.replay.observe import FLOATING
from parfocal.replay.repeat import Repeater, RepeatResult, ReplayScript
from parfocal.replay.trace import Node, Value
from parfocal.weights import views
from parfocal.weights.plan import Entry

LIMIT = limits.verdicts.WHOLE_MODEL.value


def rebuilding(
    case: Case,
    explained: Divergence,
    proof: ProvenChange,
    partners: Mapping[int, int],
    entries: Sequence[Entry],
) -> Rebuilding | None:
    """None where the two modules, run by themselves, do not show the mistake or cannot be called.

    ``proof``: of the cause, as it was found.
    """
    calls = _calls(case, explained, proof, partners)
    if calls is None:
        return None
    sides = {
        "reference": _taken(case.precise.reference, calls[0]),
        "port": _taken(case.precise.port, calls[1]),
    }
    watched = _shown_most(case, calls, entries)
    if watched is None:
        return None
    arrays = {"expected": watched.expected, **_inputs(case, calls)}
    if case.direction == "backward":
        arrays |= _seeds(case, calls)
    made = Rebuilding(
        sides,
        {side: _modes(repeater, call) for side, repeater, call in _both(case, calls)},
        dict(zip(SIDES, case.buffers, strict=True)),
        watched,
        arrays,
        LIMIT,
    )
    return made if made.can_be_called else None


def _calls(
    case: Case, explained: Divergence, proof: ProvenChange, partners: Mapping[int, int]
) -> tuple[int, int] | None:
    """The reference's and the port's call to run: the nearest around the code that the fix is about."""
    nodes, bindings = case.precise.port.trace.nodes, case.precise.port.script.ties
    lines = (
        [] if explained.cause is None else list(_lines(explained.cause.edit or explained.cause.fix, proof))
    )
    path = "" if explained.port is None else explained.port.path
    order: int | None = case.call
    while order is not None:
        node, binding = nodes[order], bindings.get(order)
        partner = 0 if order == 0 else partners.get(order)
        if (
            partner is not None
            and binding is not None
            and binding.inputs.keys() >= node.inputs.keys()
            and is_inside(path, node.path)
            and not (node.framework_layer and node.is_leaf)
            and _has_the_code(case, node, lines)
        ):
            return partner, order
        order = node.parent
    return None


def _lines(fix: Fix, proof: ProvenChange) -> Iterator[tuple[str, int]]:
    """The lines of the port's source that a fix is about, each with its file's name."""
    for part in parts_of(fix):
        if isinstance(part, Patch):
            yield from ((Path(each.file).name, each.line) for each in (part, *part.also))
        elif not isinstance(part, PortCode):  # words, about the lines that were blamed
            for where in (proof.port, *proof.also):
                if where is not None and where.file is not None and where.line is not None:
                    yield Path(where.file).name, where.line


def _has_the_code(case: Case, node: Node, lines: Sequence[tuple[str, int]]) -> bool:
    """Whether the module and those in it are made of these lines; the whole model runs all."""
    return node.parent is None or all(_has(case.precise.port, node.path, *line) for line in lines)


def _has(repeater: Repeater, outer: str, file: str, line: int) -> bool:
    """Whether a class of a module, or of one in it, is written in a line."""
    modules = [module for path, module in repeater.modules.items() if is_inside(path, outer)]
    return any(
        _spans(kind, file, line) for kind in {each for module in modules for each in type(module).__mro__}
    )


def _spans(kind: type, file: str, line: int) -> bool:
    try:
        if Path(inspect.getsourcefile(kind) or "").name != file:
            return False
        text, first = inspect.getsourcelines(kind)
    except (OSError, TypeError):  # made without a source
        return False
    return first <= line < first + len(text)


def _taken(repeater: Repeater, call: int) -> ExtractedLayer:
    node = repeater.trace.nodes[call]
    return ExtractedLayer(repeater.backend, repeater.modules[node.path], node)


def _both(case: Case, calls: tuple[int, int]) -> tuple[tuple[str, Repeater, int], ...]:
    return ("reference", case.precise.reference, calls[0]), ("port", case.precise.port, calls[1])


def _modes(repeater: Repeater, call: int) -> dict[str, bool]:
    """The flag of the module, and of those inside it that have another, by path."""
    nodes = list(repeater.trace.subtree(call))
    flags = {node.path: node.training for node in nodes}
    first = nodes[0].training
    return {path: flag for path, flag in flags.items() if path == nodes[0].path or flag != first}


def _inputs(case: Case, calls: tuple[int, int]) -> dict[str, Array]:
    arrays = {}
    for side, repeater, call in _both(case, calls):
        for slot, value in repeater.script.ties[call].inputs.items():
            if slot in repeater.trace.nodes[call].inputs:
                layout = repeater.script.layout(call, "input", slot, value)
                arrays[f"{side} input {slot}"] = layout.apply(case.supply(value.data))
    return arrays


def _seeds(case: Case, calls: tuple[int, int]) -> dict[str, Array]:
    """The gradients that go in at the outputs; of a tensor that is given twice it is the sum already."""
    arrays = {}
    for side, repeater, call in _both(case, calls):
        seeded: set[int] = set()
        for slot, value in repeater.script.ties[call].outputs.items():
            if value.gradient is not None and id(value.data) not in seeded:
                layout = repeater.script.layout(call, "output", slot, value)
                arrays[f"{side} gradient {slot}"] = layout.apply(case.supply(value.gradient))
                seeded.add(id(value.data))
    return arrays


def _shown_most(case: Case, calls: tuple[int, int], entries: Sequence[Entry]) -> Watched | None:
    """The tensor furthest from the reference's when the call runs freely; None if none is far."""
    ours, theirs = (_alone(repeater, call, case) for _, repeater, call in _both(case, calls))
    reference, port = case.repeat(ours, calls[0]), case.repeat(theirs, calls[1])
    if reference is None or port is None:
        return None
    exact = case.repeat(ours, calls[0], "float64") or reference
    candidates = _outputs(case, calls) if case.direction == "forward" else _gradients(case, calls, entries)
    judged = [each.judged(reference, exact, port) for each in candidates]
    most = max((each for each in judged if each is not None), key=lambda each: each.score, default=None)
    return None if most is None or most.score <= LIMIT else most


def _alone(repeater: Repeater, call: int, case: Case) -> Repeater:
    """A repeater of the call alone, with nothing led inside; its inputs have gradients where they can."""
    binding, backward = repeater.script.ties[call], case.direction == "backward"
    inputs = {
        slot: Value(value.data, None, backward and value.data.dtype in FLOATING)
        for slot, value in binding.inputs.items()
    }
    return repeater.led_by(ReplayScript({call: replace(binding, inputs=inputs)}, repeater.script.layouts))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tensor that both sides compute: its place on each side, and how to read it, in the port's layout."""

    kind: Kind
    slots: tuple[str, str]
    expected: Callable[[RepeatResult], Array | None]
    observed: Callable[[RepeatResult], Array | None]

    def judged(self, reference: RepeatResult, exact: RepeatResult, port: RepeatResult) -> Watched | None:
        expected, precise, observed = self.expected(reference), self.expected(exact), self.observed(port)
        if self.kind != "output":  # where nothing came back
            expected = np.zeros_like(observed) if expected is None and observed is not None else expected
            observed = np.zeros_like(expected) if observed is None and expected is not None else observed
        if expected is None or observed is None or expected.shape != observed.shape:
            return None
        if expected.dtype.kind not in "fc" or not np.isfinite(expected).all():
            return None
        epsilon = coarser(expected.dtype.name, observed.dtype.name)
        floor = size_of(expected) * epsilon
        floor |= NOTHING if precise is None else difference(expected, precise.astype(expected.dtype))
        floor = floor if floor.rms else size_of(observed) * epsilon
        error = difference(observed, expected)
        return Watched(
            self.kind, self.slots, expected, floor.rms, error.rms / floor.rms if floor.rms else 0.0
        )


def _outputs(case: Case, calls: tuple[int, int]) -> Iterator[Candidate]:
    for pair in _paired(case, calls, "output"):
        yield _candidate(case, calls, "output", pair, "forward")


def _gradients(case: Case, calls: tuple[int, int], entries: Sequence[Entry]) -> Iterator[Candidate]:
    for pair in _paired(case, calls, "input"):
        yield _candidate(case, calls, "input", pair, "backward")
    paths = [repeater.trace.nodes[call].path for _, repeater, call in _both(case, calls)]
    for target in {entry.target: None for entry in entries if is_inside(entry.target, paths[1])}:
        parts = [entry for entry in entries if entry.target == target]
        if all(is_inside(entry.source, paths[0]) for entry in parts):
            slots = parts[0].source[len(paths[0]) :].lstrip("."), target[len(paths[1]) :].lstrip(".")
            yield Candidate(
                "parameter",
                slots,
                partial(_joined, parts),
                partial(_of_parameter, target),
            )


def _of_parameter(path: str, repeated: RepeatResult) -> Array | None:
    return repeated.parameters.get(path)


def _joined(parts: Sequence[Entry], repeated: RepeatResult) -> Array | None:
    """The reference's gradients as the port's parameter has them."""
    sources = [repeated.parameters.get(entry.source) for entry in parts]
    if any(source is None for source in sources):
        return None
    whole = np.zeros(
        parts[0].target_shape, np.result_type(*(each.dtype for each in sources if each is not None))
    )
    for entry, source in zip(parts, sources, strict=True):
        if source is not None:
            views.apply(entry.target_view, whole)[...] = views.apply(entry.source_view, source)
    return whole


def _paired(case: Case, calls: tuple[int, int], side: InputOrOutput) -> Iterator[tuple[str, str]]:
    """Slots of the reference and of the port with the same recorded value."""
    node, binding = case.precise.reference.trace.nodes[calls[0]], case.precise.port.script.ties[calls[1]]
    ours, theirs = (node.inputs, binding.inputs) if side == "input" else (node.outputs, binding.outputs)
    known = {id(value): slot for slot, value in ours.items()}
    return ((known[id(value)], slot) for slot, value in theirs.items() if id(value) in known)


def _candidate(
    case: Case, calls: tuple[int, int], side: InputOrOutput, slots: tuple[str, str], direction: Direction
) -> Candidate:
    place, port_place = ((call, side, slot, direction) for call, slot in zip(calls, slots, strict=True))
    layout = case.precise.port.script.layouts.get((calls[1], side, slots[1]))

    def expected(repeated: RepeatResult) -> Array | None:
        found = repeated.places.get(place)
        return found if found is None or layout is None else layout.apply(found)

    return Candidate(side, slots, expected, lambda repeated: repeated.places.get(port_place))
