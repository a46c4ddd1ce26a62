"""The two tree files that show where a difference was found, one for each model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parfocal.compat.padiff import utils
from parfocal.compat.padiff.checker.dumps import Dump

HERE = "    <---  *** HERE ***"
_INDENT = " " * 4
Tree = Mapping[str, Any]


def write_trees(dumps: Sequence[Dump], marks: Sequence[Tree | None], prefix: str) -> tuple[str, str]:
    """Write both files; ``marks`` are the nodes at which the difference is. Returns their paths."""
    names = [dump.model_name for dump in dumps]
    if names[0] == names[1]:
        names = [f"{names[0]}(base_model)", f"{names[1]}(raw_model)"]
    first, second = (
        utils.log_file(dump.named(f"{prefix}_{name}"), "w", tree_text(dump.model_name, _roots(dump), mark))
        for dump, name, mark in zip(dumps, names, marks, strict=True)
    )
    return first, second


def tree_text(title: str, roots: Sequence[Tree], mark: Tree | None) -> str:
    """The whole file: a title, and a line for every node."""
    lines = [line for root in roots for line in _lines(root, mark, _INDENT, _INDENT)]
    return "\n".join([title, "=" * 40, *lines])


def _roots(dump: Dump) -> Sequence[Tree]:
    tree = dump.document["tree"]
    return tree if isinstance(tree, list) else [tree]


def _lines(node: Tree, mark: Tree | None, first: str, rest: str) -> Iterator[str]:
    skipped = " (skip)" if node.get("available") is False else ""
    path = f"  ({node['route']})" if os.environ.get("PADIFF_PATH_LOG") == "ON" and node["route"] else ""
    yield f"{first}{node['name']}{skipped}{path}{HERE if mark is node else ''}"
    children = node["children"]
    for position, child in enumerate(children):
        last = position == len(children) - 1
        yield from _lines(
            child, mark, rest + (" +--- " if last else " |--- "), rest + ("      " if last else " |    ")
        )
