"""A layer of the framework that the port calls where the reference's code has a function, or nothing.

Such a layer has no partner, so its settings are compared with the function's arguments. The layer is
built anew inside the port's call, by the line of code that is then recommended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parfocal.backends.building import LayerBuilder
from parfocal.backends.vocabulary import CONVENTIONS
from parfocal.errors import UnsupportedError
from parfocal.explain.causes import (
    OpLine,
    PortLine,
    ProvenChange,
    code_of,
    line,
    place,
    spelled_path,
    two_values,
)
from parfocal.explain.layers.settings import rebuilt
from parfocal.explain.ops.arguments import told
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.mismatches import Mismatch, paired_inputs
from parfocal.explain.ops.names import POINTWISE, kinds_of_name
from parfocal.explain.ops.op_comparison import INFINITE, OpComparison
from parfocal.explain.ops.queries import equal
from parfocal.explain.ops.subgraphs import between, elsewhere, is_one_of, moved_op, transplanted
from parfocal.phrases import joined, phrase
from parfocal.replay.trace import Node

MANY = 3  # layers in a row that are written as a slice


def other_layer(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The layer's settings differ from the function's arguments, or it is another function."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or not _can_change(comparison, mine):
        return
    pairs = paired_inputs(comparison, mine, theirs)
    if _has_weights(comparison, mine):  # which the function takes besides
        pairs = list(zip(mine.inputs, theirs.inputs, strict=False)) if mine.name == theirs.name else []
    if not pairs or not all(comparison.matches.are_one(mine.inputs[a], theirs.inputs[b]) for a, b in pairs):
        return
    words = told(theirs, comparison.case.reference_backend.is_tensor)
    if mine.name == theirs.name:
        yield from _set_otherwise(comparison, mine, theirs, words)
    else:
        yield from _another(comparison, mine, theirs, words)


def _can_change(comparison: OpComparison, op: Op) -> bool:
    """A layer without a partner, which can be built with other settings."""
    case = comparison.case
    if not op.is_module or op.call is None or op.call in case.precise.port.script.ties:
        return False
    module = case.precise.port.modules[op.path or ""]
    return isinstance(case.backend, LayerBuilder) and case.backend.can_build(module)


def _has_weights(comparison: OpComparison, op: Op) -> bool:
    """Whether a layer has weights; without, its settings say all that it does."""
    return bool(comparison.case.backend.state(comparison.case.precise.port.modules[op.path or ""]))


def _set_otherwise(
    comparison: OpComparison, mine: Op, theirs: Op, words: Mapping[str, Any]
) -> Iterator[ProvenChange]:
    """Every setting alone; all of them together if none alone is enough."""
    node = _node(comparison, mine)
    differing = [
        name
        for name, value in node.settings.items()
        if name in words and name not in CONVENTIONS and not equal(name, value, words[name], comparison, mine)
    ]
    together = [tuple(differing)] if len(differing) > 1 else []
    for names in (*((name,) for name in differing), *together):
        settings = {**node.settings, **{name: words[name] for name in names}}
        score = _built(comparison, mine, node.kind, settings)
        if score <= comparison.case.limit:
            values = joined("; ", (two_values(name, words[name], node.settings[name]) for name in names))
            message = phrase(
                "{values} ({kind} {path}, {spelled} in {line})",
                values=values,
                kind=node.kind,
                path=node.path,
                spelled=theirs.spelled,
                line=line(theirs),
            )
            new = _spelt(comparison, node.kind, settings)
            proof = _proof(comparison, mine, theirs, code_of(names[0], node.kind), message, new, score)
            yield replace(proof, facts=(node.kind, values, theirs.name, line(theirs)))
            return


def _another(
    comparison: OpComparison, mine: Op, theirs: Op, words: Mapping[str, Any]
) -> Iterator[ProvenChange]:
    for kind in kinds_of_name(theirs.name):
        score = _built(comparison, mine, kind, words)
        if score <= comparison.case.limit:
            node = _node(comparison, mine)
            message = phrase(
                "{path} is {port} in the port, {reference} in the reference ({line})",
                path=node.path,
                port=node.kind,
                reference=theirs.spelled,
                line=line(theirs),
            )
            code = "op.activation" if {mine.name, theirs.name} <= POINTWISE else "op.kind"
            proof = _proof(comparison, mine, theirs, code, message, _spelt(comparison, kind, words), score)
            yield replace(proof, facts=(node.kind, theirs.name, line(theirs)))
            return


def layer_extra(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The port calls a layer on a value that the reference uses directly."""
    own, others = between(comparison, mismatch)
    if len(own) != 1 or others or not _can_change(comparison, own[0]) or _has_weights(comparison, own[0]):
        return
    if not all(comparison.matches.are_one(key, mismatch.reference) for key in own[0].inputs.values()):
        return
    if elsewhere(comparison, own[0], missing=True) or moved_op(comparison, own[0], missing=False):
        return  # it is only at another point
    score = _built(comparison, own[0], "Identity", {})
    if score <= comparison.case.limit:
        message = phrase(
            "the port applies {spelled} in {line}, the reference does not",
            spelled=own[0].spelled,
            line=line(own[0]),
        )
        yield _proof(comparison, own[0], None, "op.extra", message, _spelt(comparison, "Identity", {}), score)


def layer_missing(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The reference applies one more op between two layers that the port calls in sequence."""
    own, others = between(comparison, mismatch)
    case, builder = comparison.case, comparison.case.backend
    if case.node.kind != "Sequential" or own or len(others) != 1 or not isinstance(builder, LayerBuilder):
        return
    (theirs,) = others
    if not any(is_one_of(comparison, mismatch.port, [key]) for key in theirs.inputs.values()):
        return
    if elsewhere(comparison, theirs, missing=False) or moved_op(comparison, theirs, missing=True):
        return
    words = told(theirs, case.reference_backend.is_tensor)
    for kind in kinds_of_name(theirs.name):
        if (
            _new(comparison, kind, words) is None
            or (score := transplanted(comparison, mismatch)) > case.limit
        ):
            continue
        line_of_it = _spelt(comparison, kind, words)
        names = [name for name in case.backend.modules(case.module) if name and "." not in name]
        used = None if mismatch.user is None else (mismatch.user.path or "").rpartition(".")[2]
        index = names.index(used) if used in names else len(names)
        parts = [
            *_row(case.node.path, names, 0, index),
            line_of_it,
            *_row(case.node.path, names, index, None),
        ]
        library = line_of_it.partition("(")[0].rpartition(".")[0]
        fix = PortLine.layer(case.node.path, f"{library}.Sequential({', '.join(parts)})")
        there = phrase("{spelled} ({line})", spelled=theirs.spelled, line=line(theirs))
        message = phrase(
            "the reference applies {there}, the port does not in {place}", there=there, place=place(case.node)
        )
        facts = (theirs.name, line(theirs))
        yield ProvenChange("op.missing", message, fix, score, reference=theirs.where, facts=facts)
        return


def _row(path: str, names: Sequence[str], start: int, stop: int | None) -> list[str]:
    """Layers of a row as arguments of a new one: each by itself, or a slice where there are many."""
    some = names[start:stop]
    if len(some) < MANY or list(names) != [str(number) for number in range(len(names))]:
        return [spelled_path(f"{path}.{name}") for name in some]
    return [f"*{spelled_path(path)}[{start or ''}:{'' if stop is None else stop}]"]


def _spelt(comparison: OpComparison, kind: str, settings: Mapping[str, Any]) -> str:
    assert isinstance(comparison.case.backend, LayerBuilder)
    return comparison.case.backend.spell(kind, settings)


def _new(comparison: OpComparison, kind: str, settings: Mapping[str, Any]) -> Any:
    """A layer of the port's framework; None: there is no such layer, or it needs to be told more."""
    assert isinstance(comparison.case.backend, LayerBuilder)
    try:
        return comparison.case.backend.layer(kind, settings)
    except (UnsupportedError, TypeError, ValueError):
        return None


def _built(comparison: OpComparison, op: Op, kind: str, settings: Mapping[str, Any]) -> float:
    """The score with a new layer in the place of the port's, which keeps the weights it has."""
    backend, own, path = comparison.case.backend, comparison.case.node.path, op.path or ""
    new = _new(comparison, kind, settings)
    if new is None:
        return INFINITE
    keeps = _has_weights(comparison, op)

    def prepare(twin: Any) -> None:
        modules = backend.modules(twin)
        outer, _, name = (path[len(own) + 1 :] if own else path).rpartition(".")
        layer = rebuilt(backend, getattr(modules[outer], name), settings) if keeps else new
        forward = layer.forward
        layer.forward = lambda x: backend.alias(forward(x))  # what is handed through is a tensor to look at
        layer.train() if modules[outer].training else layer.eval()
        setattr(modules[outer], name, layer)

    return comparison.try_prepared(prepare)


def _proof(
    comparison: OpComparison, mine: Op, theirs: Op | None, code: str, message: str, new: str, score: float
) -> ProvenChange:
    node = _node(comparison, mine)
    where = OpLine(None, mine.file, mine.line, module=node.path, kind=node.kind)
    fix = PortLine.layer(node.path, new)
    return ProvenChange(code, message, fix, score, where, None if theirs is None else theirs.where)


def _node(comparison: OpComparison, op: Op) -> Node:
    assert op.call is not None
    return comparison.case.precise.port.trace.nodes[op.call]
