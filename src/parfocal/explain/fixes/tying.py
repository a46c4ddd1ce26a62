"""What to write where one tensor of the reference is two in the port: the port is to use one for both."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from parfocal.backends import registry
from parfocal.explain.causes import PortChange, PortCode, PortLine, spelled_from, spelled_path
from parfocal.explain.fixes.finding import find_layer
from parfocal.explain.fixes.imports import spelled
from parfocal.explain.fixes.joining import SeveralFixes
from parfocal.explain.fixes.patching import exchanging
from parfocal.explain.fixes.scopes import has_self
from parfocal.explain.fixes.sources import Source, SourceSpot, read
from parfocal.explain.fixes.splicing import without_statements
from parfocal.judge.verdict import Edit, Fix
from parfocal.replay.repeat import Repeater
from parfocal.weights.plan import Entry


def tied(port: Repeater, parts: Sequence[Entry], words: str) -> Fix:
    """The first tensor in place of the second; a transposed one is used in the line that calls the layer."""
    if len(parts) != 2:
        return words
    kept, other = sorted(parts, key=lambda part: part.source_view != part.target_view)
    if (kept.target_shape, kept.target_view) == (other.target_shape, other.target_view):
        return PortLine.layer(other.target, spelled_path(kept.target))
    if kept.target_shape != other.target_shape[::-1] or len(kept.target_shape) != 2:
        return words
    return _multiplied(port, kept.target, other.target) or words


def _multiplied(port: Repeater, kept: str, other: str) -> Edit | None:
    """A product with the transposed tensor instead of the linear layer's call."""
    layer, _, name = other.rpartition(".")
    nodes = [node for node in port.trace.nodes if node.path == layer]
    if name != "weight" or len(nodes) != 1 or nodes[0].kind != "Linear" or nodes[0].parent is None:
        return None
    owner = port.trace.nodes[nodes[0].parent].path
    spot = find_layer(nodes[0].file, nodes[0].line, layer)
    inside = all(not owner or path.startswith(f"{owner}.") for path in (kept, other))
    if spot is None or not inside or not has_self(spot):
        return None
    weight, bias = (spelled_from(path, owner) for path in (kept, f"{layer}.bias"))
    text = _product(spot, port.backend.name, weight)
    if text is None:
        return None
    biased = any(entry.path == "bias" for entry in port.backend.state(port.modules[layer]))
    patch = exchanging(spot, None, f"{text} + {bias}" if biased else text)
    made = None if biased else _made(port.modules[owner], layer[len(owner) :].lstrip("."))
    if patch is None:
        return None
    if made is None:  # by other code than a constructor's
        removed = PortCode(f"del {spelled_path(layer)}", PortChange.REMOVAL)
        return patch if biased else SeveralFixes((patch, removed))
    source, statement = made  # nothing else needs the layer
    return without_statements(patch, source, [statement])


def _made(module: Any, name: str) -> tuple[Source, ast.stmt] | None:
    """The statement of a constructor that makes a layer and nothing else."""
    for kind in type(module).__mro__:
        code: Any = getattr(vars(kind).get("__init__"), "__code__", None)
        source = None if code is None else read(code.co_filename)
        for node in () if source is None else source.nodes:
            match node:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)]):
                    inside = node.lineno in {line for _, _, line in code.co_lines()}
                    if attribute == name and inside and source is not None and source.stands_alone(node):
                        return source, node
    return None


def _product(spot: SourceSpot, framework: str, weight: str) -> str | None:
    match spot.node:
        case ast.Call(args=[taken], keywords=[]):
            name = spelled(spot.source, spot.statement, f"{framework}.matmul")
            transposed = registry.dialect(framework).transposed_factor.format(weight)
            return None if name is None else f"{name}({spot.source.segment(taken)}, {transposed})"
    return None
