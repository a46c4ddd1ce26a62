"""A layer called in place of another one of the same shape: the weights show which was meant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend
from parfocal.explain.case import Case
from parfocal.explain.causes import OpLine, ProvenChange, line, place
from parfocal.explain.ops.passing import calling
from parfocal.judge import limits
from parfocal.judge.verdict import Fix
from parfocal.phrases import phrase
from parfocal.replay.trace import Node

NEAR = limits.causes.WEIGHT_SIZES.value


def another_layer(case: Case) -> Iterator[ProvenChange]:
    """The call is right with the weights of another layer, which are those of the reference's layer."""
    node, other = case.node, case.reference_node
    if node.parent is None or other is None or node.path == other.path:
        return  # by the same name it is the same layer, whatever its weights are
    wanted = _sizes(case.reference_backend, case.reference_module)
    if not wanted or _are_alike(_sizes(case.backend, case.module), wanted):
        return
    for path, module in case.precise.port.modules.items():
        if path == node.path or type(module) is not type(case.module):
            continue
        if not _are_alike(_sizes(case.backend, module), wanted):
            continue
        score = case.tried(partial(_take_weights, case.backend, module))
        if score <= case.limit:
            yield _proof(case, other, path, score)
            return


def _proof(case: Case, other: Node, path: str, score: float) -> ProvenChange:
    """Of two calls of one layer either may be the wrong one; the line that mends decides."""
    nodes, node = case.precise.port.trace.nodes, case.node
    twice = [each for each in nodes if (each.path, each.parent) == (node.path, node.parent)]
    lines = {each.order: line(each) for each in twice}
    fix: Fix = phrase(
        "call {path} instead of {node_path} in {lines}",
        path=path,
        node_path=node.path,
        lines=lines[node.order],
    )
    for each in sorted(twice, key=lambda each: each.order != node.order):
        patch = calling(case, each.order, path)
        if patch is not None:
            node, fix = each, patch
            break
    message = phrase(
        "{place} is called in the port ({lines}) where the reference calls {path}, which is "
        "{port} in the port",
        place=place(node),
        lines=lines[node.order],
        path=other.path,
        port=path,
    )
    around = nodes[node.parent or 0].path
    return ProvenChange("op.order", message, fix, score, OpLine(node.kind, node.file, node.line, around))


def _sizes(backend: Backend, module: Any) -> list[tuple[int, float]]:
    """Of every weight how many values it has, and their size: the same in any layout."""
    arrays: list[Array] = [
        backend.to_array(entry.value) for entry in backend.state(module) if entry.role == "parameter"
    ]
    return sorted((array.size, float(np.linalg.norm(array.astype(np.float64)))) for array in arrays)


def _are_alike(mine: list[tuple[int, float]], wanted: list[tuple[int, float]]) -> bool:
    if [count for count, _ in mine] != [count for count, _ in wanted]:
        return False
    return all(abs(a - b) <= NEAR * max(a, b) for (_, a), (_, b) in zip(mine, wanted, strict=True))


def _take_weights(backend: Backend, module: Any, twin: Any) -> None:
    others = {entry.path: entry.value for entry in backend.state(module)}
    for entry in backend.state(twin):
        backend.write(entry.value, backend.to_array(others[entry.path]))
