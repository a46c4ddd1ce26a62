"""Correct calls that are given wrong arguments: tensors in another order, or other plain values.

A led call is given the reference's tensors by value, so one that takes two of them in the wrong order
seems to compute something else. If it is right with the reference's order, the code that makes the call
is to blame. The same holds for numbers and strings that are passed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from parfocal.explain.case import Case
from parfocal.explain.causes import ProvenChange, code_of, line, place, said, two_values
from parfocal.explain.layers.argument_count import score_with, where_called
from parfocal.explain.ops.passing import as_the_reference, in_order
from parfocal.phrases import joined, phrase
from parfocal.replay.follow import Binding
from parfocal.replay.trace import Node, Value

PLAIN = (bool, int, float, str)


def tensors_in_another_order(case: Case) -> Iterator[ProvenChange]:
    """The call is given the same tensors at other positions than the reference's."""
    binding = case.precise.port.script.ties.get(case.call)
    node, other = case.node, case.reference_node
    if binding is None or other is None or node.parent is None:
        return
    crossed = {
        slot: other.inputs[slot]
        for slot, value in binding.inputs.items()
        if slot in other.inputs and other.inputs[slot].data is not value.data
    }
    owners = {id(binding.inputs[slot].data): slot for slot in crossed}
    wanted = [id(value.data) for value in crossed.values()]
    if len(owners) < 2 or set(owners) != set(wanted) or _are_other_parameters(case, crossed):
        return
    score = score_with(
        case, node, Binding({**binding.inputs, **crossed}, binding.outputs, binding.in_place), crossed
    )
    if score <= case.limit:
        order = {slot: owners[id(value.data)] for slot, value in crossed.items()}
        listed = joined(
            ", ",
            (
                phrase("at {order} what the reference gives at {slot}", order=order[slot], slot=slot)
                for slot in sorted(order)
            ),
        )
        message = phrase(
            "{place} is given its tensors in another order: {listed}", place=place(node), listed=listed
        )
        words = phrase(
            "pass them to {place} in {line} in the reference's order",
            place=place(node),
            line=line(node),
        )
        fix = in_order(case, order, words)
        yield ProvenChange("op.order", message, fix, score, where_called(case), facts=(node.kind, listed))


def _are_other_parameters(case: Case, crossed: Mapping[str, Value]) -> bool:
    """Whether the port's module takes the same parameters in an order of its own."""
    ours, theirs = (_parameters(each) for each in (case.module, case.reference_module))
    positions = [int(slot) for slot in crossed if slot.isdigit()]
    if any(position >= min(len(ours), len(theirs)) for position in positions):
        return False
    mine, other = [ours[each] for each in positions], [theirs[each] for each in positions]
    return mine != other and set(mine) == set(other)


def other_values(case: Case) -> Iterator[ProvenChange]:
    """The call is given other numbers or words than the reference's."""
    binding = case.precise.port.script.ties.get(case.call)
    node, other = case.node, case.reference_node
    if binding is None or other is None or node.parent is None:
        return
    ours, theirs = _passed(case.module, node), _passed(case.reference_module, other)
    if ours is None or theirs is None:
        return
    differing = {
        name: theirs.values[name]
        for name in ours.values.keys() & theirs.values.keys() & (ours.explicit | theirs.explicit)
        if theirs.values[name] != ours.values[name]
    }
    for changed in ({name: value} for name, value in differing.items()):
        proof = _with_values(case, binding, ours, changed)
        if proof is not None:
            yield proof
            return
    if len(differing) > 1:
        proof = _with_values(case, binding, ours, differing)
        if proof is not None:
            yield proof


@dataclass(frozen=True, slots=True)
class _Passed:
    """Plain values of a call by the names of its parameters, and which of them were not left to defaults."""

    values: Mapping[str, Any]
    explicit: frozenset[str]
    names: tuple[str, ...]  # of positional parameters


def _with_values(
    case: Case, binding: Binding, ours: _Passed, changed: Mapping[str, Any]
) -> ProvenChange | None:
    node = case.node
    args, kwargs = list(node.arguments[0]), dict(node.arguments[1])
    for name, value in changed.items():
        if name in ours.names[: len(args)]:
            args[ours.names.index(name)] = value
        else:
            kwargs[name] = value
    score = score_with(case, replace(node, arguments=(tuple(args), kwargs)), binding)
    if score > case.limit:
        return None
    listed = joined(", ", (two_values(name, value, ours.values[name]) for name, value in changed.items()))
    message = phrase("{place} is given other values: {listed}", place=place(node), listed=listed)
    spelled = ", ".join(f"{name}={said(value)}" for name, value in changed.items())
    words = phrase(
        "call {place} in {line_of} with {spelled}", place=place(node), line_of=line(node), spelled=spelled
    )
    fix = as_the_reference(case, {name: _slot(ours, name, len(args)) for name in changed}, changed, words)
    code, facts = code_of(next(iter(changed)), node.kind), (node.kind, listed)
    return ProvenChange(code, message, fix, score, where_called(case), facts=facts)


def _slot(ours: _Passed, name: str, count: int) -> str:
    """The position of an argument that is passed by it, or else its keyword."""
    return str(ours.names.index(name)) if name in ours.names[:count] else name


def _parameters(module: Any) -> tuple[str, ...]:
    """Names of what ``forward`` takes by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):  # no function of Python
        return ()
    return tuple(each.name for each in parameters if each.kind in kinds)


def _passed(module: Any, node: Node) -> _Passed | None:
    args, kwargs = node.arguments
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):  # no function of Python, or called past its ``forward``
        return None
    explicit = frozenset(bound.arguments)
    bound.apply_defaults()
    values = {name: value for name, value in bound.arguments.items() if isinstance(value, PLAIN)}
    return _Passed(values, explicit, _parameters(module))
