"""Why an op of two recorded runs gives something else of the same tensors: its arguments, or their order.

Nothing is run again, so such a cause is only likely.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from parfocal.brief import brief
from parfocal.capture.nested_values import rebuild
from parfocal.explain.causes import code_of
from parfocal.explain.ops.arguments import READINGS, PassedArgument, said
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.names import COMMUTATIVE
from parfocal.judge.verdict import Cause, Claim, Grounds
from parfocal.phrases import joined, phrase
from parfocal.run.records import CallRecord, TensorValue

Same = Callable[[TensorValue, TensorValue], bool]  # the port's tensor, the reference's
_READ_WITH_TENSORS = frozenset(name for name, _ in READINGS)


def op_cause(other: CallRecord, own: CallRecord, same: Same) -> Cause | None:
    """Of the port's op beside the reference's of the same name."""
    return _other_arguments(other, own) or _other_order(other, own, same)


def _other_arguments(other: CallRecord, own: CallRecord) -> Cause | None:
    if own.op in _READ_WITH_TENSORS:
        return None
    ours, theirs = (said(_op(each), lambda value: isinstance(value, TensorValue)) for each in (other, own))
    differing = [name for name, each in theirs.items() if name in ours and ours[name].value != each.value]
    if not differing:
        return None
    messages = [
        phrase(
            "{name} of {op_name} is {reference} in the reference, {port} in the port",
            name=name,
            op_name=own.op,
            reference=brief(ours[name].value),
            port=brief(theirs[name].value),
        )
        for name in differing
    ]
    fix = phrase(
        "tell {name} {names} in {line}",
        name=own.op,
        names=joined(", ", (_written(theirs[name], ours[name].value) for name in differing)),
        line=line_of(own),
    )
    code = code_of(differing[0], str(own.op))
    return Claim(code, joined("; ", messages), fix).likely(Grounds.CODE)


def _written(argument: PassedArgument, value: Any) -> str:
    """As the port's framework spells it."""
    name = argument.native if isinstance(argument.native, str) else argument.name
    return f"{name}={brief(argument.back(value))}"


def _op(record: CallRecord) -> Op:
    args, kwargs = rebuild(record.inputs.shape, record.inputs.leaves)
    return Op(record.order, str(record.op), tuple(args), kwargs, {}, {}, record.file, record.line)


def _other_order(other: CallRecord, own: CallRecord, same: Same) -> Cause | None:
    ours, theirs = (
        [leaf for leaf in each.inputs.leaves.values() if isinstance(leaf, TensorValue)]
        for each in (other, own)
    )
    if own.op in COMMUTATIVE or len(ours) != len(theirs) or len(ours) < 2:
        return None
    if all(same(mine, yours) for mine, yours in zip(theirs, ours, strict=True)):
        return None
    order = [next((at for at, mine in enumerate(theirs) if same(mine, yours)), -1) for yours in ours]
    if sorted(order) != list(range(len(ours))):
        return None
    listed = joined(", ", map(str, order))
    message = phrase(
        "{name} takes its tensors in another order: {reference} in the reference",
        name=own.op,
        reference=listed,
    )
    fix = phrase(
        "in {line} pass the tensors to {name} in the order {order}",
        line=line_of(own),
        name=own.op,
        order=listed,
    )
    return Claim("op.order", message, fix).likely(Grounds.CODE)


def line_of(op: CallRecord) -> str:
    return f"{Path(op.file).name}:{op.line}" if op.file else op.path
