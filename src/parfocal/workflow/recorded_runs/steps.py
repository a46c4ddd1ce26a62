"""One step of one rank of a run, ready to be compared: calls as a trace, state by path, where bytes are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from parfocal.capture.calls import FOLLOWED
from parfocal.judge.floors import Size
from parfocal.judge.moments import Fingerprint
from parfocal.replay.trace import Node, TensorData, Trace, Value
from parfocal.run.reader import Run
from parfocal.run.records import (
    CallRecord,
    GradientRecord,
    InterruptionRecord,
    StateRecord,
    StepRecord,
    Structure,
    TensorValue,
    ValueRecord,
)
from parfocal.workflow.recorded_runs.reading import LASTING, StepRecords
from parfocal.workflow.recorded_runs.tensors import TensorTable

UNFINISHED = "unfinished call"  # the kind of a call that never returned
_NOTHING = Structure({}, ["tuple", []])
Gradients = Mapping[str, TensorData | None]  # by the parameter's path; None: none arrived


@dataclass(slots=True)
class BeforeAndAfter:
    """A tensor of the model or its optimizer before and after a step."""

    before: TensorData | None = None
    after: TensorData | None = None
    used: TensorData | None = None  # of a gradient that was changed between backward pass and update


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """What an optimizer makes a parameter's update with, under common names."""

    kind: str
    settings: Mapping[str, Any]


class Reduction(Enum):
    """What became of the gradients of several ranks before the update."""

    BACKWARD = "backward"  # the same on all ranks when the backward pass was over
    MEAN = "mean"
    SUM = "sum"
    SCALED = "scaled"  # another multiple of the sum: clipped besides, or divided by another number
    NONE = "none"  # every rank uses its own


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """What one side has of one step."""

    run: Run
    rank: int
    step: int
    tensors: TensorTable
    trace: Trace
    roots: tuple[int, ...]  # calls that the user's code made of the model itself
    gradients: Gradients  # of parameters
    parameters: Mapping[str, BeforeAndAfter]
    buffers: Mapping[str, BeforeAndAfter]
    slots: Mapping[tuple[str, str], BeforeAndAfter]  # of the optimizer, by parameter and slot
    logs: tuple[ValueRecord, ...]
    end: StepRecord | None
    went_back: bool  # a backward pass was recorded
    given: frozenset[Fingerprint] = field(default_factory=frozenset)  # what came from outside
    ops: Mapping[int, tuple[CallRecord, ...]] = field(default_factory=dict)  # by the call around them
    ties: Mapping[str, str] = field(default_factory=dict)  # path -> first path of the very same parameter
    turned: frozenset[int] = frozenset()  # ids of matrices that were sketched as their transpositions
    updates: Mapping[str, UpdateSettings] = field(default_factory=dict)  # by the parameter's path
    interruption: InterruptionRecord | None = None
    positions: Mapping[int, int] = field(default_factory=dict)  # order in the run -> in the trace
    followed: Mapping[int, int] = field(default_factory=dict)  # order in the trace -> in the run followed
    noise: Mapping[tuple[int, str, str], Size] = field(default_factory=dict)  # by call, side and slot
    used: Gradients = field(default_factory=dict)  # those that code changed before the update used them
    launch: tuple[RecordedStep, ...] = ()  # the same step of all ranks; none of a single process
    reduction: Reduction | None = None  # of gradients over the ranks, where that could be told

    @property
    def ranks(self) -> int:
        return max(1, len(self.launch))

    @property
    def cut_short(self) -> bool:
        """Whether the run ends within this step."""
        return self.end is None and not self.run.complete


def build_step(run: Run, rank: int, records: StepRecords) -> RecordedStep:
    tensors = TensorTable(run)
    calls = _with_unfinished(sorted(records.calls, key=lambda call: call.order))
    position = {call.order: index for index, call in enumerate(calls)}
    nodes = [_node(call, index, position, tensors) for index, call in enumerate(calls)]
    _link(nodes)
    _add_gradients(records.gradients, nodes, position, tensors)
    roots = tuple(node.order for node in nodes if node.parent is None)
    state = _State(tensors, records)
    return RecordedStep(
        run=run,
        rank=rank,
        step=records.step,
        tensors=tensors,
        trace=Trace(nodes),
        roots=roots,
        gradients=state.gradients(),
        used=state.used_gradients(),
        parameters=state.tensors_of("parameter"),
        buffers=state.tensors_of("buffer"),
        slots=state.slots,
        logs=tuple(records.logs),
        end=records.end,
        went_back=bool(records.gradients),
        given=frozenset(v.data.fingerprint for order in roots for v in nodes[order].inputs.values()),
        ops=_ops(records.ops, position),
        ties=state.ties,
        turned=frozenset(state.turned),
        updates=_updates(records),
        interruption=records.interruption,
        positions=position,
        followed=_followed(records, position),
        noise={
            (position[each.call], each.side, each.slot): Size(each.rms, each.peak)
            for each in records.floors
            if each.call in position
        },
    )


def _with_unfinished(calls: list[CallRecord]) -> list[CallRecord]:
    """With a stand-in for every call that began and never returned: calls inside it name it as parent."""
    known = {call.order for call in calls}
    missing: dict[int, list[CallRecord]] = {}
    for call in calls:
        if call.parent is not None and call.parent not in known:
            missing.setdefault(call.parent, []).append(call)
    stand_ins = [_unfinished(order, inside) for order, inside in missing.items()]
    return sorted([*calls, *stand_ins], key=lambda call: call.order)


def _unfinished(order: int, inside: list[CallRecord]) -> CallRecord:
    first = inside[0]
    depth = first.depth - 1
    paths = [call.path.split(".")[:-1] for call in inside]
    common = [part for part, *rest in zip(*paths, strict=False) if all(each == part for each in rest)]
    return CallRecord(
        order=order,
        parent=None,
        depth=depth,
        path=".".join(common) if depth > 0 else "",
        kind=UNFINISHED,
        class_name=UNFINISHED,
        op=None,
        occurrence=0,
        file=None,
        line=None,
        training=first.training,
        settings={},
        inputs=_NOTHING,
        outputs=_NOTHING,
        step=first.step,
        rank=first.rank,
    )


def _node(call: CallRecord, index: int, position: Mapping[int, int], tensors: TensorTable) -> Node:
    def values(leaves: Mapping[str, object]) -> dict[str, Value]:
        return {
            slot: Value(tensors.data(leaf)) for slot, leaf in leaves.items() if isinstance(leaf, TensorValue)
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


def _link(nodes: list[Node]) -> None:
    for node in nodes:
        if node.parent is not None:
            nodes[node.parent].children.append(node.order)
    for node in reversed(nodes):  # the end of a call is the end of its last child
        node.finished = max([node.order + 1, *(nodes[child].finished for child in node.children)])


def _add_gradients(
    gradients: Iterable[GradientRecord],
    nodes: list[Node],
    position: Mapping[int, int],
    tensors: TensorTable,
) -> None:
    """The first gradient that came to each tensor; calls of one step may go backward in several passes."""
    for gradient in gradients:
        index = position.get(gradient.call)
        if index is None:
            continue
        values = nodes[index].inputs if gradient.side == "input" else nodes[index].outputs
        value = values.get(gradient.slot)
        if value is None:
            continue
        if gradient.value is not None and value.gradient is None:
            value.gradient = tensors.data(gradient.value)
        value.hidden = (value.hidden or gradient.hidden) and value.gradient is None


class _State:
    """Tensors by role, path and slot; what was not recorded again is as it was."""

    def __init__(self, tensors: TensorTable, records: StepRecords) -> None:
        self.ties: dict[str, str] = {}
        self.turned: set[int] = set()
        self._tensors = tensors
        self._found: dict[str, dict[tuple[str, str], BeforeAndAfter]] = {}
        for record in records.kept.state.values():
            self._add(record, "before")
        for record in records.state:
            self._add(record, record.moment)
        if records.end is not None:
            for role in LASTING:
                for moments in self._found.get(role, {}).values():
                    moments.after = moments.after or moments.before

    def _add(self, record: StateRecord, moment: str) -> None:
        if record.tied_to is not None:
            self.ties[record.path] = record.tied_to
            return
        key = record.path, record.slot or ""
        moments = self._found.setdefault(record.role, {}).setdefault(key, BeforeAndAfter())
        data = None if record.value is None else self._tensors.data(record.value)
        if data is not None and record.transposed:
            self.turned.add(id(data))
        setattr(moments, moment, data)

    def tensors_of(self, role: str) -> dict[str, BeforeAndAfter]:
        """By path, under all of its paths."""
        found = {path: moments for (path, _), moments in self._found.get(role, {}).items()}
        return {**found, **{path: found[first] for path, first in self.ties.items() if first in found}}

    def gradients(self) -> dict[str, TensorData | None]:
        return {path: moments.before for path, moments in self.tensors_of("gradient").items()}

    def used_gradients(self) -> dict[str, TensorData | None]:
        found = {path: moments.used for path, moments in self.tensors_of("gradient").items()}
        return found if any(data is not None for data in found.values()) else {}

    @property
    def slots(self) -> dict[tuple[str, str], BeforeAndAfter]:
        return self._found.get("optimizer", {})


def _updates(records: StepRecords) -> dict[str, UpdateSettings]:
    return {
        path: UpdateSettings(each.kind, group["settings"])
        for each in records.kept.after(records).optimizers.values()
        for group in each.groups
        for path in group["parameters"]
    }


def _followed(records: StepRecords, position: Mapping[int, int]) -> dict[int, int]:
    found = {}
    for record in records.logs:
        order = record.name.removeprefix(FOLLOWED)
        if order != record.name and isinstance(record.value, int) and int(order) in position:
            found[position[int(order)]] = record.value
    return found


def _ops(ops: Iterable[CallRecord], position: Mapping[int, int]) -> dict[int, tuple[CallRecord, ...]]:
    found: dict[int, list[CallRecord]] = {}
    for op in sorted(ops, key=lambda each: each.order):
        if op.parent is not None and op.parent in position:
            found.setdefault(position[op.parent], []).append(op)
    return {order: tuple(inside) for order, inside in found.items()}
