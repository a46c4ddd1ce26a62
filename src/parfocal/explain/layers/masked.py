"""Correct layers of the framework that are given a mask of other places than the reference's.

Frameworks write masks differently: true for kept or for masked places, or numbers to add; by key, or by query
and key. All masks of the reference's call are combined into one additive mask, and the port's layer is given
that.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.causes import OpLine, ProvenChange, line, place
from parfocal.explain.layers.argument_count import MASKED, score_with
from parfocal.judge import limits
from parfocal.phrases import joined, phrase
from parfocal.replay.follow import Binding
from parfocal.replay.trace import Node, TensorData, Value, unmarked

WORD = "mask"  # what the frameworks' parameters for masks have in their names
MOST_MASKS = limits.searches.MASKS.value


def other_mask(case: Case) -> Iterator[ProvenChange]:
    """The call gives the reference's result once it masks the same places."""
    binding, other = case.precise.port.script.ties.get(case.call), case.reference_node
    if binding is None or other is None or not case.node.framework_layer or case.node.parent is None:
        return
    ours, theirs = _masks(case.module, case.node), _masks(case.reference_module, other)
    given = {name: case.supply(theirs[name].data) for name in theirs}
    if not 1 <= len(given) <= MOST_MASKS or not ours.keys() | _free(case.module, case.node):
        return
    name = next(iter(ours), None) or sorted(_free(case.module, case.node))[0]
    for hiding in product((True, False), repeat=len(given)):
        parts = [_added(*each) for each in zip(given.values(), hiding, strict=True)]
        for mask in _shaped(case, other, parts):
            score = _score(case, binding, name, mask)
            if score <= case.limit:
                yield _proof(case, ours, theirs, mask, score)
                return


def _masks(module: Any, node: Node) -> dict[str, Value]:
    """The masks that a call is given, by the names of the parameters."""
    names = list(_parameters(module))
    by_name = {names[int(s)] if s.isdigit() and int(s) < len(names) else s: v for s, v in node.inputs.items()}
    return {name: value for name, value in by_name.items() if WORD in name}


def _free(module: Any, node: Node) -> set[str]:
    return {name for name in _parameters(module) if WORD in name} - _masks(module, node).keys()


def _parameters(module: Any) -> Mapping[str, Any]:
    try:
        return inspect.signature(module.forward).parameters
    except (TypeError, ValueError):  # no function of Python
        return {}


def _added(mask: Array, hides: bool) -> Array:
    """A mask as numbers to add; ``hides``: whether true means masked."""
    if mask.dtype.kind in "fV":
        return mask.astype(np.float32)
    return np.where((mask != 0) == hides, -np.inf, 0.0).astype(np.float32)


def _shaped(case: Case, other: Node, parts: list[Array]) -> Iterator[Array]:
    """All masks combined, in the shapes that layers take: by batch, head, query and key."""
    batch = next(iter(other.outputs.values())).data.shape[0]
    by_key = [part[:, None, None, :] if part.ndim == 2 and part.shape[0] == batch else part for part in parts]
    try:
        whole = sum(by_key[1:], by_key[0])
    except ValueError:  # by head: shapes that only the layer can tell apart
        return
    yield whole
    if whole.ndim == 2:
        return
    heads = case.node.settings.get("num_heads", 1)
    if whole.ndim == 4 and isinstance(heads, int):
        queries = whole.shape[-1]
        full = np.broadcast_to(whole, (batch, heads, max(whole.shape[2], queries), whole.shape[3]))
        yield full.reshape(batch * heads, *full.shape[2:]).copy()


def _score(case: Case, binding: Binding, name: str, mask: Array) -> float:
    """The score of the port's call with this mask and no other."""
    node, parameters = case.node, list(_parameters(case.module))
    value = Value(TensorData(mask.shape, mask.dtype.name, unmarked(mask.size), case.precise.ledger.put(mask)))
    args, kwargs = node.arguments
    slots = {slot for slot in node.inputs if WORD in _name(slot, parameters)}
    position = parameters.index(name)
    slot = str(position) if position < len(args) else name
    if slot == name:
        kwargs = {**kwargs, name: None}
    inputs = {each: value for each, value in node.inputs.items() if each not in slots}
    tied = {each: value for each, value in binding.inputs.items() if each not in slots}
    changed = replace(node, arguments=(args, kwargs), inputs={**inputs, slot: value})
    return score_with(
        case, changed, Binding({**tied, slot: value}, binding.outputs, binding.in_place), {*slots, slot}
    )


def _name(slot: str, parameters: list[str]) -> str:
    return parameters[int(slot)] if slot.isdigit() and int(slot) < len(parameters) else slot


def _proof(
    case: Case, ours: Mapping[str, Value], theirs: Mapping[str, Value], mask: Array, score: float
) -> ProvenChange:
    nodes = case.precise.port.trace.nodes
    caller = case.node
    while caller.parent is not None and (caller.framework_layer or caller is case.node):
        caller = nodes[caller.parent]
    listed = joined(", ", (f"{name} {list(value.data.shape)}" for name, value in sorted(theirs.items())))
    hidden = phrase("{sum} of {size} places", sum=int((mask <= MASKED).sum()), size=mask.size)
    own = joined("; ", (_described(name, value.data) for name, value in sorted(ours.items())))
    message = phrase(
        "{place} hides {reference} in the reference, by {listed}; in the port it is given {own}",
        place=place(case.node),
        reference=hidden,
        listed=listed,
        own=own or phrase("no mask"),
    )
    fix = phrase(
        "give it in {line_of} a mask that is -inf where the reference's hides, and 0 elsewhere",
        line_of=line(case.node),
    )
    where = OpLine(None, case.node.file, case.node.line, caller.path, caller.kind)
    return ProvenChange("op.mask", message, fix, score, where, facts=(case.node.kind, hidden, listed, own))


def _described(name: str, mask: TensorData) -> str:
    """A mask of the port in words, from its fingerprint alone."""
    marks, what = mask.fingerprint, f"{name} {list(mask.shape)}"
    if mask.dtype == "bool":
        return phrase("{what}, true at {sum} of {size}", what=what, sum=f"{marks.sum:g}", size=marks.size)
    if marks.minimum is not None and marks.minimum > MASKED:
        return phrase(
            "{what} of numbers from {minimum} to {maximum}, which hide nothing",
            what=what,
            minimum=f"{marks.minimum:g}",
            maximum=f"{marks.maximum:g}",
        )
    return phrase("{what} that hides other places", what=what)
