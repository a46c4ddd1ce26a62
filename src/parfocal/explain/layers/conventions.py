"""Conventions that differ between frameworks for the same layer and settings; a port must translate them.

Such a layer cannot be built differently in the port, so the port's call is repeated with its inputs and
outputs translated: a mask inverted, batch and time swapped, an output cut to size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array
from parfocal.backends.vocabulary import family
from parfocal.capture.nested_values import flatten, flatten_call, replace, replace_call
from parfocal.explain.case import Case
from parfocal.explain.causes import ProvenChange, code_of, line, place, said, spelled_path
from parfocal.explain.layers.settings import rebuilt
from parfocal.judge.verdict import ProvenBy
from parfocal.phrases import phrase
from parfocal.replay.trace import Node

Change = Callable[[Array], Array | None]  # None: the array stays as it is
POOLS = frozenset({"MaxPool", "AvgPool", "LPPool"})


def _turned_round(array: Array) -> Array | None:
    return ~array if array.dtype == bool else None


def _swapped(array: Array) -> Array | None:
    """Of sequences, not of states or masks of two axes."""
    return np.ascontiguousarray(np.swapaxes(array, 0, 1)) if array.ndim > 2 else None


def _unchanged(array: Array) -> Array | None:
    return None


Words: TypeAlias = Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Convention:
    """A setting that the port's layer cannot have otherwise, and how its call is translated."""

    setting: str
    takes: Change
    gives: Change
    code: str
    fix: Words


CONVENTIONS = (
    Convention(
        "boolean_mask",
        _turned_round,
        _unchanged,
        "op.mask",
        lambda values: phrase(
            "pass ~mask to {path} in {line}: True is to {wrong} there, in the reference to {right}", **values
        ),
    ),
    Convention(
        "batch_first",
        _swapped,
        _swapped,
        "config.other",
        lambda values: phrase(
            "swap axes 0 and 1 of what {path} takes and gives in {line}: it can only have "
            "batch_first = {wrong}",
            **values,
        ),
    ),
)
# Settings by which the frameworks mean different things: the value with which the port means the reference's.
MEANT: dict[tuple[str, str], tuple[Any, Words, Words]] = {
    ("Embedding", "padding_idx"): (
        None,
        lambda words: phrase(
            "row {value} is used as it is stored in the reference, and is always 0 in the port", **words
        ),
        lambda words: phrase(
            "make row {value} of the weight 0 in both, or leave padding_idx out of {path}", **words
        ),
    )
}


def translated(case: Case) -> Iterator[ProvenChange]:
    """The call with a convention of the reference's framework."""
    other = case.reference_node
    if other is None or family(other.kind) != family(case.node.kind):
        return
    judged = case if case.node.is_leaf else case.at_outputs()
    for convention in CONVENTIONS:
        right, wrong = (node.settings.get(convention.setting) for node in (other, case.node))
        if right == wrong or None in (right, wrong):
            continue
        score = judged.score(judged.run(_translation(case, convention), inside=case.node.is_leaf), "forward")
        if score <= case.limit:
            values = phrase(
                "{setting} is {reference} in the reference, {port} in the port",
                setting=convention.setting,
                reference=said(right),
                port=said(wrong),
            )
            message = phrase(
                "{values} ({kind} {place})", values=values, kind=case.node.kind, place=place(case.node)
            )
            outer = _outermost(case)
            where = {"path": spelled_path(outer.path), "line": line(outer)}
            fix = convention.fix({"right": right, "wrong": wrong, **where})
            yield ProvenChange(
                convention.code,
                message,
                fix,
                score,
                facts=(case.node.kind, convention.setting, said(right), said(wrong)),
            )


def _translation(case: Case, convention: Convention) -> Callable[[Any], None]:
    backend = case.backend

    def changed(leaves: Mapping[str, Any], change: Change) -> dict[str, Any]:
        arrays = {
            slot: change(backend.to_array(leaf)) for slot, leaf in leaves.items() if backend.is_tensor(leaf)
        }
        return {slot: backend.from_array(array) for slot, array in arrays.items() if array is not None}

    def prepare(twin: Any) -> None:
        forward = twin.forward

        def translating(*args: Any, **kwargs: Any) -> Any:
            taken = changed(flatten_call(args, kwargs).leaves, convention.takes)
            args, kwargs = replace_call(args, kwargs, taken)
            output = forward(*args, **kwargs)
            return replace(output, changed(flatten(output).leaves, convention.gives))

        twin.forward = translating

    return prepare


def _outermost(case: Case) -> Node:
    """The call that the user writes: layers of the framework call others inside."""
    nodes, node = case.precise.port.trace.nodes, case.node
    while node.parent is not None and nodes[node.parent].framework_layer:
        parent = nodes[node.parent]
        if parent.kind in ("Sequential", "ModuleList", "ModuleDict"):
            break
        node = parent
    return node


def meant_otherwise(case: Case) -> Iterator[ProvenChange]:
    """Both have the same setting, and mean different things by it."""
    other, backend = case.reference_node, case.backend
    if other is None or not isinstance(backend, LayerBuilder) or not backend.can_build(case.module):
        return
    for (kind, setting), (meaning, message, fix) in MEANT.items():
        value = case.node.settings.get(setting)
        if kind != case.node.kind or value is None or other.settings.get(setting) != value:
            continue
        settings = {**case.node.settings, setting: meaning}
        score = case.tried(partial(rebuilt, backend, settings=settings), direction="forward")
        if score <= case.limit:
            words = {"value": value, "path": spelled_path(case.node.path)}
            said_so = phrase(
                "{setting} is {value} in both ({kind} {place}): ",
                setting=setting,
                value=value,
                kind=case.node.kind,
                place=place(case.node),
            )
            yield ProvenChange(
                code_of(setting, kind),
                said_so + message(words),
                fix(words),
                score,
                facts=(kind, setting, said(value)),
            )


def cut_to_size(case: Case) -> Iterator[ProvenChange]:
    """A pool that rounds its size up counts windows in the padding, which the reference's does not."""
    both = [node for node in (case.node, case.reference_node) if node is not None]
    if not all(family(node.kind) in POOLS and node.settings.get("ceil_mode") is True for node in both):
        return
    check, observed = case.checks[0], case.observed()
    expected = case.recorded(check.reference)
    if observed is None or observed.ndim != expected.ndim or observed.shape == expected.shape:
        return
    cut = tuple(slice(0, extent) for extent in expected.shape)
    score = case.judge(np.ascontiguousarray(observed[cut]), expected, check)
    if score <= case.limit:
        sizes = [list(array.shape[2:]) for array in (expected, observed)]
        message = phrase(
            "{place} gives {port} in the port, {reference} in the reference, which leaves out a "
            "window that begins in the padding (ceil_mode of {kind})",
            place=place(case.node),
            port=sizes[1],
            reference=sizes[0],
            kind=case.node.kind,
        )
        ends = ", ".join(f":{extent}" for extent in expected.shape[2:])
        fix = phrase(
            "cut what {spelled_path} gives: [:, :, {ends}]",
            spelled_path=spelled_path(case.node.path),
            ends=ends,
        )
        yield ProvenChange(
            "op.ceil_mode",
            message,
            fix,
            score,
            facts=(case.node.kind, *map(str, sizes)),
            way=ProvenBy.RELATED,
        )


HYPOTHESES = (translated, meant_otherwise, cut_to_size)
