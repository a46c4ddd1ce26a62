"""Correct calls that are given more or fewer arguments than the reference's: their caller is to blame."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.causes import OpLine, ProvenChange, line, place
from parfocal.explain.ops.passing import with_arguments, without_arguments
from parfocal.judge import limits
from parfocal.judge.verdict import Fix
from parfocal.phrases import joined, phrase
from parfocal.replay.follow import Binding
from parfocal.replay.repeat import ReplayScript
from parfocal.replay.trace import Node, Value

MASKED = limits.pairing.MASKED_SCORE.value


def other_arguments(case: Case) -> Iterator[ProvenChange]:
    """The call gives what the reference's gives once it is given the same arguments."""
    binding = case.precise.port.script.ties.get(case.call)
    if binding is None or case.node.parent is None or case.reference_node is None:
        return
    yield from _without_extra(case, binding)
    yield from _with_missing(case, binding)


def _without_extra(case: Case, binding: Binding) -> Iterator[ProvenChange]:
    node = case.node
    extra = {slot for slot in node.inputs if slot not in binding.inputs}
    names = {_argument(slot) for slot in extra}
    if not extra or names & {_argument(slot) for slot in binding.inputs}:
        return
    args, kwargs = node.arguments
    kept = [None if str(number) in names else value for number, value in enumerate(args)]
    while kept and str(len(kept) - 1) in names:
        kept.pop()
    given = tuple(kept), {name: value for name, value in kwargs.items() if name not in names}
    inputs = {slot: value for slot, value in node.inputs.items() if slot not in extra}
    score = score_with(case, replace(node, arguments=given, inputs=inputs), binding)
    if score <= case.limit:
        listed = joined(", ", (f"{slot} {list(node.inputs[slot].data.shape)}" for slot in sorted(extra)))
        message = phrase(
            "{place} is given {port} in the port and nothing of the kind in the reference",
            place=place(node),
            port=listed,
        )
        fix = without_arguments(
            case,
            names,
            phrase("leave {spelled} out of {line_of}", spelled=_spelled(names), line_of=line(node)),
        )
        yield ProvenChange("op.extra", message, fix, score, where_called(case), facts=(node.kind, listed))


def _with_missing(case: Case, binding: Binding) -> Iterator[ProvenChange]:
    """Arguments are passed on at the reference's own position, or by its keyword."""
    node, other = case.node, case.reference_node
    assert other is not None
    known = {id(value) for value in binding.inputs.values()}
    missing = {slot: value for slot, value in other.inputs.items() if id(value) not in known}
    args, kwargs = node.arguments
    fits = all(_fits(slot, args, kwargs) for slot in missing)
    if not missing or not fits or any(slot in node.inputs for slot in missing):
        return
    longer = (*args, *(None for slot in sorted(missing) if slot.isdigit() and int(slot) >= len(args)))
    named = {**kwargs, **{slot: None for slot in missing if not slot.isdigit()}}
    changed = replace(node, arguments=(longer, named), inputs={**node.inputs, **missing})
    score = score_with(
        case, changed, Binding({**binding.inputs, **missing}, binding.outputs, binding.in_place)
    )
    if score <= case.limit:
        listed = joined(", ", (f"{slot} {list(value.data.shape)}" for slot, value in sorted(missing.items())))
        masks = any(_masks(case, value) for value in missing.values())
        message = phrase(
            "{place} is given {reference} in the reference and nothing of the kind in the port",
            place=place(node),
            reference=listed,
        )
        fix: Fix = phrase(
            "pass {spelled} in {line_of} as the reference does",
            spelled=_spelled(set(missing)),
            line_of=line(node),
        )
        fix = with_arguments(case, missing, fix)
        code, facts = "op.mask" if masks else "op.missing", (node.kind, listed)
        yield ProvenChange(code, message, fix, score, where_called(case), facts=facts)


def score_with(case: Case, node: Node, binding: Binding, moved: Collection[str] = ()) -> float:
    """Of the port's call with these arguments; ``moved``: slots that get the values of others."""
    usual = case.port_repeater()
    places = {(case.call, "input", slot) for slot in moved}
    layouts = {key: layout for key, layout in usual.script.layouts.items() if key not in places}
    repeater = usual.led_by(ReplayScript({**usual.script.ties, case.call: binding}, layouts))
    nodes = list(usual.trace.nodes)
    nodes[case.call] = node
    repeater.trace = replace(usual.trace, nodes=nodes)
    return case.score(case.repeat(repeater, case.call))


def _fits(slot: str, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    if "." in slot:
        return False
    number = int(slot) if slot.isdigit() else None
    if number is None:
        return kwargs.get(slot) is None
    return number >= len(args) or args[number] is None


def _masks(case: Case, value: Value) -> bool:
    array: Array = case.supply(value.data)
    return array.dtype == bool or bool(np.min(array, initial=0) <= MASKED)


def _argument(slot: str) -> str:
    return slot.partition(".")[0]


def _spelled(names: set[str]) -> str:
    return joined(
        ", ",
        (phrase("argument {name}", name=name) if name.isdigit() else f"{name}=" for name in sorted(names)),
    )


def where_called(case: Case) -> OpLine:
    nodes = case.precise.port.trace.nodes
    return OpLine(case.node.kind, case.node.file, case.node.line, nodes[case.node.parent or 0].path)
