"""What ``assign_weight`` says when the weights of two models do not correspond.

The first pair of layers, in definition order, that cannot be one layer is named with full paths
and shapes, and marked in a tree file for each model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from parfocal.compat.padiff import utils
from parfocal.compat.padiff.abstracts.tree import ModuleNode, describe, route
from parfocal.compat.padiff.checker.trees import HERE
from parfocal.errors import TransferError
from parfocal.weights.units import Slot, Unit

if TYPE_CHECKING:
    from parfocal.compat.padiff.abstracts.proxy_model import ProxyModel

HINTS = """Hint:
    1. Check the definition order of params is same in submodels.
    2. Check the corresponding submodel have the same style:
       param <=> param, buffer <=> buffer, embedding <=> embedding ...
       cases like param <=> buffer, param <=> embedding are not allowed.
    3. If can not change model codes, try to use a `LayerMap`
       which can solve most problems.
    4. (skip) means this layer is skipped because it is under black_list, or it has no param.
    0. Visit `https://github.com/PaddlePaddle/PaDiff` to find more infomation.
"""

Models = Sequence["ProxyModel"]


def failure_text(models: Models, units: Sequence[Sequence[Unit]], error: TransferError) -> str:
    """The whole message; writes the two tree files it speaks of."""
    pair = next((pair for pair in zip_longest(*units) if not _alike(*pair)), None)
    if pair is None:
        return f"TransferError:  {error.message}\n\n{HINTS}"
    if pair[0] is None or pair[1] is None:
        headline = "RuntimeError:  Given models return difference number of sublayers. Check your model.\n"
    else:
        headline = _mismatch(models, pair)
    paths = _write_trees(models, units, pair)
    return (
        f"{headline}\n"
        f"{error.message}\n\n"
        f"Weight init log saved to \n    {paths[0]}\n    {paths[1]}\n\n"
        f"Please view the reports and checkout the layer marked with `{HERE.strip()}` !\n{HINTS}"
    )


def _alike(base: Unit | None, raw: Unit | None) -> bool:
    return base is not None and raw is not None and base.key == raw.key


def _mismatch(models: Models, pair: Sequence[Unit]) -> str:
    slots = _differing(*pair)
    nodes = [_node(model, unit) for model, unit in zip(models, pair, strict=True)]
    routes = [route(m.name, slot.stored.path) for m, slot in zip(models, slots, strict=True)]
    names = [m.marker.fullname(node.module) for m, node in zip(models, nodes, strict=True)]
    return (
        "RuntimeError:  Error occured when trying init weights, between:\n"
        f"    base_model: `{describe(nodes[0].module)}`\n"
        f"                `{routes[0]}`\n"
        f"    raw_model: `{describe(nodes[1].module)}`\n"
        f"               `{routes[1]}`\n"
        f"AssertionError:  Shape of param `{slots[0].stored.name}` in {names[0]} and "
        f"param `{slots[1].stored.name}` in {names[1]} is not the same. "
        f"{list(slots[0].shape)} vs {list(slots[1].shape)}\n"
    )


def _differing(base: Unit, raw: Unit) -> tuple[Slot, Slot]:
    """The first tensors that differ, of the same role if both have it."""
    for slot in base.required:
        other = raw.slot(slot.role)
        if other is not None and other.shape != slot.shape:
            return slot, other
    extra = [slot for slot in base.required if raw.slot(slot.role) is None] or list(base.required)
    other_extra = [slot for slot in raw.required if base.slot(slot.role) is None] or list(raw.required)
    return extra[0], other_extra[0]


def _node(model: ProxyModel, unit: Unit) -> ModuleNode:
    return next(node for node in model.marker.tree().walk() if node.path == unit.module)


def _write_trees(models: Models, units: Sequence[Sequence[Unit]], pair: Sequence[Unit | None]) -> list[str]:
    names = [model.name for model in models]
    if names[0] == names[1]:
        names = [f"{names[0]}(base_model)", f"{names[1]}(raw_model)"]
    paths = []
    for model, name, known, unit in zip(models, names, units, pair, strict=True):
        used = {entry.module for entry in known}
        lines = _lines(model, model.marker.tree(), used, unit.module if unit else None, " " * 4, " " * 4)
        text = "\n".join([model.name, "=" * 40, *lines])
        paths.append(utils.log_file(f"weight_init_{name}.log", "w", text))
    return paths


def _lines(
    model: ProxyModel, node: ModuleNode, used: set[str], mark: str | None, first: str, rest: str
) -> Iterator[str]:
    skipped = "" if node.path in used or not node.path else "  (skip)"
    path = f"  ({route(model.name, node.path)})" if os.environ.get("PADIFF_PATH_LOG") == "ON" else ""
    yield f"{first}{node.class_name}{skipped}{path}{HERE if node.path == mark else ''}"
    for position, child in enumerate(node.children):
        last = position == len(node.children) - 1
        branch, below = (" +--- ", "      ") if last else (" |--- ", " |    ")
        yield from _lines(model, child, used, mark, rest + branch, rest + below)
