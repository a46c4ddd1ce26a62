"""A log in which composite ops are replaced by their steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.ops.arguments import told
from parfocal.explain.ops.composites import (
    COMPOSITES,
    FILLED,
    FILLS,
    HIDES,
    KEEPS,
    ArrayOp,
    complex_steps,
    steps,
)
from parfocal.explain.ops.log import Key, Maker, Op, OpLog, hides_where, key_of
from parfocal.explain.ops.names import name_of_kind

JOINT = {"var_mean": ("var", "mean"), "std_mean": ("std", "mean")}  # what they give, in order
FILLING = frozenset({"masked_fill", "where"})


def expanded(
    log: OpLog,
    is_tensor: Callable[[object], bool],
    kept: Collection[str],
    parts: Collection[str],
    *,
    fills: str | None = None,
) -> OpLog:
    """The log with composite ops replaced by their steps; ops with a name in ``kept`` stay as they are.

    So do ops without a step in ``parts``. ``fills``: how the port fills masked places before a softmax.
    """
    if not any(
        (op.name in (*COMPOSITES, *JOINT) and op.name not in kept) or _is_complex(log, op) for op in log.ops
    ):
        return log
    new = OpLog(values=log.values, results=log.results, returns=log.returns)
    moved: dict[Maker, int] = {}
    for op in log.ops:
        free = op.name not in kept or _is_complex(log, op)
        steps_of_it = _steps_of(log, op, is_tensor, fills) if free else ()
        if not any(step.name in parts for step in steps_of_it):
            steps_of_it = ()
        for step in steps_of_it:
            _add(new, step, op.file, op.line)
        if not steps_of_it:
            for part in _parts_of(op) if op.name not in kept else (op,):
                new.add(replace(part, index=len(new.ops), makers=_moved(op.makers, moved)))
                moved |= {(op.index, slot): len(new.ops) - 1 for slot in part.outputs}
        moved |= {(op.index, slot): len(new.ops) - 1 for slot in op.outputs if (op.index, slot) not in moved}
    new.result_makers = _moved(log.result_makers, moved)
    return new


def _parts_of(op: Op) -> Sequence[Op]:
    """An op with several results, as several ops with one result each."""
    names = JOINT.get(op.name, ())
    if len(names) != len(op.outputs):
        return (op,)
    return [
        replace(op, name=name, outputs={slot: key}, function=None)
        for name, (slot, key) in zip(names, op.outputs.items(), strict=True)
    ]


def fills_in(log: OpLog) -> str | None:
    """How the port fills masked places of a softmax's input; None: it does not."""
    for op in log.ops:
        if op.name in FILLING and any(
            user.name == "softmax" for key in op.outputs.values() for user in log.taking(key)
        ):
            return FILLED if op.name == "masked_fill" else HIDES if hides_where(log, op) else KEEPS
    return None


def expanded_layer(case: Case, log: OpLog) -> OpLog:
    """What a layer of the framework does, when it is one that can be taken apart."""
    node, module = case.reference_node, case.reference_module
    if node is None or log.ops or not node.framework_layer or name_of_kind(node.kind) not in COMPOSITES:
        return log
    if len(node.inputs) != 1 or len(node.outputs) != 1:
        return log
    backend = case.reference_backend
    ((slot, output),) = node.outputs.items()
    given = [case.supply(value.data) for value in node.inputs.values()]
    weights = [backend.to_array(entry.value) for entry in backend.state(module) if entry.role == "parameter"]
    result = case.supply(output.data)
    for array in (*given, *weights, result):
        log.values.setdefault(key_of(array), array)
    for step in steps(name_of_kind(node.kind), [*given, *weights], node.settings, result):
        _add(log, step, node.file, node.line)
    log.results[slot] = key_of(result)
    return log


def _is_complex(log: OpLog, op: Op) -> bool:
    return any(log.values[key].dtype.kind == "c" for key in op.inputs.values())


def _steps_of(
    log: OpLog, op: Op, is_tensor: Callable[[object], bool], fills: str | None
) -> Sequence[ArrayOp]:
    if _is_complex(log, op) and len(op.outputs) == 1:
        arrays = [log.values[key] for key in op.inputs.values()]
        return complex_steps(op.name, arrays, log.values[next(iter(op.outputs.values()))])
    if op.name not in COMPOSITES or op.function is None or len(op.outputs) != 1:
        return ()
    words: Mapping[str, Any] = {**told(op, is_tensor), FILLS: fills}
    arrays = [log.values[key] for key in op.inputs.values()]
    return steps(op.name, arrays, words, log.values[next(iter(op.outputs.values()))])


def _add(log: OpLog, step: ArrayOp, file: str | None, line: int | None) -> None:
    inputs = {str(index): _kept(log, array) for index, array in enumerate(step.inputs)}
    args = (None, step.scalar) if step.scalar is not None else ()
    outputs = {"0": _kept(log, step.output)}
    log.add(Op(len(log.ops), step.name, args, dict(step.words), inputs, outputs, file, line))


def _kept(log: OpLog, array: Array) -> Key:
    key = key_of(array)
    log.values.setdefault(key, array)
    return key


def _moved(makers: Mapping[str, Maker], moved: Mapping[Maker, int]) -> dict[str, Maker]:
    return {slot: (moved[maker], maker[1]) for slot, maker in makers.items()}
