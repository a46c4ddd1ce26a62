"""Which parameter of the reference is which of the port, and the calls that use it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from parfocal.replay.trace import Node, TensorData
from parfocal.workflow.recorded_runs.call_errors import CallErrors
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.tensors import Arrangement


@dataclass(frozen=True, slots=True)
class ParameterUser:
    """A call that uses a parameter: its two sides, and the errors it was given."""

    reference: Node
    port: Node
    errors: CallErrors

    @property
    def summed(self) -> float:
        """At most what a parameter's gradient can be here, were nothing to cancel."""
        values = [*self.port.inputs.values(), *self.port.outputs.values()]
        sizes = [value.data.fingerprint.l2 for value in values if math.isfinite(value.data.fingerprint.l2)]
        counts = [math.sqrt(value.data.fingerprint.size) for value in self.port.outputs.values()]
        back = [v.gradient.fingerprint.l2 for v in self.port.outputs.values() if v.gradient is not None]
        return max([*sizes, *counts], default=0.0) * sum(back)


@dataclass(frozen=True, slots=True)
class ParameterTie:
    """One parameter on both sides; the port's path is "" where it has none."""

    reference: str
    port: str
    users: tuple[ParameterUser, ...]

    @property
    def name(self) -> str:
        return self.port or self.reference


def tie_parameters(
    reference: RecordedStep, port: RecordedStep, found: Iterable[CallErrors]
) -> list[ParameterTie]:
    """Parameters of paired modules by name, or the only one of its size; all others by their whole path."""
    found = list(found)
    ours, theirs = _known(reference), _known(port)
    users = [
        ParameterUser(reference.trace.nodes[each.pair.reference], port.trace.nodes[each.pair.port], each)
        for each in found
        if each.pair.whole
    ]
    tied: dict[str, ParameterTie] = {}
    taken: set[str] = set()
    for tie in _of_modules(ours, theirs, users):
        if tie.reference not in tied and tie.port not in taken:
            tied[tie.reference] = tie
            taken |= {tie.port} - {""}
    for path, size in ours.items():
        if path not in tied and path not in taken and size is not None and theirs.get(path) == size:
            tied[path] = ParameterTie(path, path, ())
            taken.add(path)
    if not theirs.keys() - taken:  # otherwise what is left in the port may hold it, in one piece with more
        tied |= {
            path: ParameterTie(path, "", ()) for path in _used_alone(reference, found) if path not in tied
        }
    return [tied[path] for path in ours if path in tied]


def _used_alone(reference: RecordedStep, found: Iterable[CallErrors]) -> Iterator[str]:
    """Parameters of layers that the reference calls and that no call of the port stands for."""
    paired = {each.pair.reference for each in found}
    called = {node.path for node in reference.trace.nodes if node.order not in paired and node.is_leaf}
    called -= {reference.trace.nodes[order].path for order in paired}
    return (path for path in reference.parameters if path.rpartition(".")[0] in called)


def arrangement_of(
    tie: ParameterTie, reference: RecordedStep, port: RecordedStep, own: TensorData, other: TensorData
) -> Arrangement:
    """How two tensors of a parameter's shape lie to each other, as they were recorded."""
    if own.shape == other.shape and len(set(own.shape)) == len(own.shape):
        return Arrangement.SAME  # no other order of the axes has that shape
    native = _native(tie, reference, port)
    if native is Arrangement.UNKNOWN or (id(own) in port.turned) == (id(other) in reference.turned):
        return native
    return Arrangement.TRANSPOSED if native is Arrangement.SAME else Arrangement.SAME


def _native(tie: ParameterTie, reference: RecordedStep, port: RecordedStep) -> Arrangement:
    """As the layers say, or else as the frameworks do."""
    shapes = [_shape(side, path) for side, path in ((reference, tie.reference), (port, tie.port))]
    if any(shape is not None and len(shape) < 2 for shape in shapes):
        return Arrangement.SAME
    said = [{node.settings.get("weight_layout") for node in nodes} for nodes in _modules(tie)]
    if all(len(each) == 1 and None not in each for each in said) and tie.name.endswith("weight"):
        return Arrangement.SAME if said[0] == said[1] else Arrangement.TRANSPOSED
    if reference.run.header.framework == port.run.header.framework and shapes[0] == shapes[1]:
        return Arrangement.SAME
    return Arrangement.UNKNOWN


def _modules(tie: ParameterTie) -> tuple[list[Node], list[Node]]:
    return [user.reference for user in tie.users], [user.port for user in tie.users]


def _shape(side: RecordedStep, path: str) -> tuple[int, ...] | None:
    data, moments = side.gradients.get(path), side.parameters.get(path)
    if data is None and moments is not None:
        data = moments.before or moments.after
    return None if data is None else data.shape


def _known(side: RecordedStep) -> dict[str, int | None]:
    """Path -> number of elements, of every parameter that left a trace; None: only that it exists."""
    found: dict[str, int | None] = {path: _size(data) for path, data in side.gradients.items()}
    for path, moments in side.parameters.items():
        found[path] = _size(moments.before or moments.after) or found.get(path)
    return found


def _size(data: TensorData | None) -> int | None:
    return None if data is None else data.fingerprint.size


def _of_modules(
    ours: Mapping[str, int | None], theirs: Mapping[str, int | None], users: Iterable[ParameterUser]
) -> Iterator[ParameterTie]:
    layers: dict[tuple[str, str], list[ParameterUser]] = {}
    for user in users:
        layers.setdefault((user.reference.path, user.port.path), []).append(user)
    left_names, right_names = _by_owner(ours), _by_owner(theirs)
    for (owner, other), layer in layers.items():
        left, right = left_names.get(owner, {}), right_names.get(other, {})
        for name, path in left.items():
            size = ours[path]
            free = [right[each] for each in right if each not in left]
            same = [right[name]] if name in right else [each for each in free if theirs[each] == size]
            if len(same) == 1 and theirs[same[0]] in (size, None):
                yield ParameterTie(path, same[0], tuple(layer))
            elif not same and not free and layer[0].port.is_leaf and layer[0].reference.is_leaf:
                yield ParameterTie(path, "", tuple(layer))


def _by_owner(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """Module -> name -> path of its own parameters."""
    found: dict[str, dict[str, str]] = {}
    for path in paths:
        owner, _, name = path.rpartition(".")
        found.setdefault(owner, {})[name] = path
    return found
