"""Two checkpoints as two collections of arrays under common names, so that they compare directly.

Checkpoints of one framework go by their names. Between frameworks the tensors are paired as for a
conversion: paddle's Linear weights are turned, ``_mean`` is ``running_mean``, packed weights are taken
apart, and counters that one framework alone keeps are left out. A square weight of which nothing says
how it lies is seen the way that fits better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from parfocal.judge.metrics import compare_arrays
from parfocal.weights import views
from parfocal.weights.checkpoints import bare, template
from parfocal.weights.checkpoints.target import OTHER
from parfocal.weights.checkpoints.tensors import Array, CheckpointFile, FileTensor
from parfocal.weights.drafting import build
from parfocal.weights.finishing import conclude
from parfocal.weights.plan import Entry, Plan
from parfocal.weights.units import read_units

Tensors = Mapping[str, FileTensor]


@dataclass(frozen=True, slots=True)
class CheckpointPair:
    """The arrays of both checkpoints; what corresponds has the same name. ``notes`` say what was done."""

    first: dict[str, Array]
    second: dict[str, Array]
    notes: tuple[str, ...] = ()


def pair_checkpoints(first: CheckpointFile, second: CheckpointFile) -> CheckpointPair:
    """Pair by names within a framework, by names, kinds and shapes between two."""
    tensors, renamed = bare.without_prefixes(first.tensors, second.tensors)
    others, renamed_too = bare.without_prefixes(second.tensors, tensors)
    notes = (*first.notes, *second.notes, *renamed, *renamed_too)
    frameworks = _frameworks(first, second, tensors, others)
    if frameworks is None:
        return CheckpointPair(_read(tensors), _read(others), notes)
    found = _matched(frameworks, tensors, others)
    pair = _arrays(found, tensors, others)
    return replace(pair, notes=(*notes, *found.notes, *pair.notes))


def _frameworks(
    first: CheckpointFile, second: CheckpointFile, tensors: Tensors, others: Tensors
) -> tuple[str, str] | None:
    """Those of both files, or None where names alone pair them."""
    mine = first.framework or bare.framework_by_names(tensors)
    yours = second.framework or bare.framework_by_names(others)
    if mine == yours or (None in (mine, yours) and not _turned(tensors, others)):
        return None
    return mine or OTHER[str(yours)], yours or OTHER[str(mine)]


def _turned(tensors: Tensors, others: Tensors) -> bool:
    """Whether a matrix of one file lies the other way round in the other: only frameworks do that."""
    shapes = [(tensor.shape, others[name].shape) for name, tensor in tensors.items() if name in others]
    return any(len(mine) == 2 and mine != yours and mine == yours[::-1] for mine, yours in shapes)


def _read(tensors: Tensors) -> dict[str, Array]:
    return {name: tensor.read() for name, tensor in tensors.items()}


def _matched(frameworks: tuple[str, str], tensors: Tensors, others: Tensors) -> Plan:
    wanted = bare.contents_of(frameworks[1], others)
    contents = bare.contents_of(frameworks[0], tensors, wanted)
    contents, wanted, squares = template.by_template(contents, wanted)
    draft = build(read_units(contents), read_units(wanted), None)
    found = conclude(draft, (contents, wanted), lambda a, b: _same_values(tensors, a, b))
    return replace(found, ambiguous=(*found.ambiguous, *squares))


def _same_values(tensors: Tensors, first: Entry, second: Entry) -> bool:
    mine, yours = (_seen(tensors, each.source, each.source_view) for each in (first, second))
    return mine.shape == yours.shape and bool(np.array_equal(mine, yours))


def _seen(tensors: Tensors, name: str, view: views.View) -> Array:
    array = tensors[name].read()
    if any(step.kind == "reshape" for step in view) and not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return views.apply(view, array)


def _arrays(plan: Plan, tensors: Tensors, others: Tensors) -> CheckpointPair:
    first, second = {}, {}
    notes = []
    names = Counter(map(_name, plan.entries))
    undecided = {target for each in plan.ambiguous for target in each.targets}
    for entry in plan.entries:
        name = (
            _name(entry)
            if names[_name(entry)] == 1
            else f"{_name(entry)} {views.describe(entry.target_view)}"
        )
        mine = _seen(tensors, entry.source, entry.source_view)
        yours = _seen(others, entry.target, entry.target_view)
        if entry.target in undecided and mine.ndim == 2 and mine.shape == mine.T.shape:
            mine, way = _nearer(mine, yours)
            notes.append(f"{name}: square, and nothing says how it lies; compared {way}")
        first[name], second[name] = mine, yours
    first |= {item.path: tensors[item.path].read() for item in plan.unmatched_reference}
    second |= {item.path: others[item.path].read() for item in plan.unmatched_port if item.path in others}
    return CheckpointPair(first, second, tuple(notes))


def _name(entry: Entry) -> str:
    return entry.source if entry.source == entry.target else f"{entry.source} -> {entry.target}"


def _nearer(mine: Array, yours: Array) -> tuple[Array, str]:
    turned = compare_arrays(mine.T, yours).rmse < compare_arrays(mine, yours).rmse
    return (mine.T, "the other way round") if turned else (mine, "as the others around it")
