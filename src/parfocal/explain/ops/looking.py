"""Questions about the ops and values of a scene."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parfocal.backends.protocol import Array
from parfocal.capture.tree import replace_call
from parfocal.explain.ops.log import Key, Op
from parfocal.explain.ops.scene import LAYOUT, Scene
from parfocal.explain.ops.values import laid_out, same


def differing_inputs(scene: Scene, op: Op, other: Op) -> Iterator[tuple[str, Key, Key]]:
    """The one input in which two ops of a name differ, if it is only one and the others agree."""
    pairs = list(zip(op.inputs.items(), other.inputs.values(), strict=True))
    differing = [(slot, key, theirs) for (slot, key), theirs in pairs if not _matched(scene, key, theirs)]
    if (
        len(differing) == 1
        and scene.reference.values[differing[0][2]].size == scene.port.values[differing[0][1]].size
    ):
        yield differing[0]


def _matched(scene: Scene, key: Key, theirs: Key) -> bool:
    mine: Key | None = scene.matches.to_reference.get(key)
    back = scene.matches.to_port.get(theirs)
    return mine is not None and (
        mine == theirs or (back is not None and scene.matches.to_reference[back] == mine)
    )


def chain(scene: Scene, key: Key) -> Op | None:
    """The single op, layout aside, that makes a value of the reference from values both sides have."""
    producer = scene.reference.producers.get(key)
    if producer is None or key in scene.matches.to_port:
        return None
    made = [
        op
        for op in scene.reference.cone(producer, lambda k: k in scene.matches.to_port)
        if op.name not in LAYOUT
    ]
    return made[0] if len(made) == 1 else None


def comes_from(scene: Scene, made: Op, key: Key) -> bool:
    """Whether an op of the reference starts from the value that the port uses as it is."""
    return any(_matched(scene, key, theirs) for theirs in made.inputs.values())


def same_key(scene: Scene, key: Key, observed: Array) -> bool:
    return same(observed, scene.reference.values[key])


def recomputed(scene: Scene, op: Op) -> Array | None:
    """A missing op of the reference, applied to the port's own values."""
    backend = scene.case.reference_backend
    fed = {}
    for slot, key in op.inputs.items():
        theirs = scene.reference.values[key]
        mine = scene.port.values[scene.matches.to_port[key]]
        value = laid_out(mine, theirs.shape, theirs)
        if value is None:
            return None
        fed[slot] = backend.from_array(value)
    args, kwargs = replace_call(op.args, op.kwargs, fed)
    result = op.function(*args, **kwargs)
    return backend.to_array(result) if backend.is_tensor(result) else None


def output_shape(scene: Scene, op: Op) -> tuple[int, ...] | None:
    keys = list(op.outputs.values())
    return scene.port.values[keys[0]].shape if len(keys) == 1 else None


def can_take(scene: Scene, op: Op, order: tuple[int, ...]) -> bool | None:
    """True when the op can take its tensors in this order: a concatenation always, others if alike."""
    shapes = [scene.port.values[key].shape for key in op.inputs.values()]
    alike = all(shapes[index] == shape for index, shape in zip(order, shapes, strict=True))
    return True if op.name == "concat" or alike else None


def natural_factors(scene: Scene, op: Op) -> Iterator[float]:
    """Roots of the last axis' length: what attention is scaled by."""
    for key in op.inputs.values():
        shape = scene.port.values[key].shape
        if shape and shape[-1] > 1:
            yield from (shape[-1] ** -0.5, shape[-1] ** 0.5)


def equal(name: str, mine: Any, theirs: Any, scene: Scene, op: Op) -> bool:
    if name == "axis" and op.inputs:
        count = scene.port.values[next(iter(op.inputs.values()))].ndim
        return bool(_axes(mine, count) == _axes(theirs, count))
    return bool(mine == theirs)


def _axes(value: Any, count: int) -> Any:
    if isinstance(value, tuple):
        return tuple(sorted(axis % count for axis in value))
    return (value % count,) if isinstance(value, int) and count else value
