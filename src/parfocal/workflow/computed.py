"""Buffers that a model computes itself, which are not copied: what is wrong with those of the port.

A table of positions, a mask, anchors: the port has to get these right by itself. A difference is judged by
what it does: one that changes nothing is only worth knowing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.attribution.sides import ModelSide
from parfocal.backends.protocol import Array
from parfocal.explain.causes import spelled_path
from parfocal.explain.fixes.finding import registered_at
from parfocal.explain.layers.leftovers import owner_of
from parfocal.explain.layers.weights import COPY
from parfocal.explain.ops.values import close
from parfocal.judge import limits
from parfocal.judge.verdict import Divergence, Finding, Site
from parfocal.phrases import phrase
from parfocal.weights.plan import Entry, Plan
from parfocal.weights.views import reshape
from parfocal.workflow.state import weight_differences

ROUNDED = limits.causes.COMPUTED_TABLE.value
HARMLESS = phrase("it makes no difference on these inputs")
ITSELF = phrase("the port computes it itself")


@dataclass(frozen=True, slots=True)
class ComputedBuffers:
    """Buffers that the two sides compute otherwise: which is which, and what they are to one another."""

    entries: tuple[Entry, ...]
    differences: tuple[Divergence, ...]

    def that_matter(self, found: Iterable[Divergence]) -> tuple[list[Divergence], list[Finding]]:
        """Those that make a difference in a call of their module; the others are only worth knowing."""
        guilty = {each.port.path for each in found if each.port is not None}
        mattering, harmless = [], []
        for each in self.differences:
            if each.port is not None and owner_of(each.port.path) in guilty:
                mattering.append(each)
            else:
                said = each.cause.message if each.cause is not None else each.what
                harmless.append(
                    Finding(
                        "weight.computed",
                        phrase("{said}; {harmless}", said=said, harmless=HARMLESS),
                        each.reference,
                        each.port,
                    )
                )
        return mattering, harmless


def computed(plan: Plan, reference: ModelSide, port: ModelSide) -> ComputedBuffers:
    """Of the buffers that were left as they are, those that differ."""
    entries = tuple(_differing(plan, reference, port))
    differing = weight_differences(replace(plan, entries=entries), reference, port)
    return ComputedBuffers(entries, tuple(_located(each, reference, port) for each in differing))


def _differing(plan: Plan, reference: ModelSide, port: ModelSide) -> Iterator[Entry]:
    """Of modules that have the same weights, by the same name; else by the same path."""
    owners: dict[str, str] = {}
    for entry in plan.entries:
        owners.setdefault(owner_of(entry.source), owner_of(entry.target))
    known = {entry.source for entry in plan.entries}, {entry.target for entry in plan.entries}
    ours, theirs = (
        {path: array for path, array in model_side.buffers().items() if path not in done}
        for model_side, done in zip((reference, port), known, strict=True)
    )
    for path, array in ours.items():
        owner, name = owner_of(path), path.rpartition(".")[2]
        candidates = (f"{owners.get(owner, owner)}.{name}".lstrip("."), path)
        target = next((each for each in candidates if each in theirs), None)
        if target is None or theirs[target].size != array.size:
            continue
        shape = theirs[target].shape  # one side may keep it flat
        if not _are_alike(theirs[target], array.reshape(shape)):
            view = () if shape == array.shape else (reshape(*shape),)
            yield Entry(path, target, view, source_shape=array.shape, target_shape=shape)


def _are_alike(observed: Array, expected: Array) -> bool:
    mine, right = (np.asarray(array, dtype=np.float64).reshape(-1) for array in (observed, expected))
    return close(mine, right, ROUNDED if expected.dtype.kind == "f" else 0.0)


def _located(divergence: Divergence, reference: ModelSide, port: ModelSide) -> Divergence:
    """With the lines where the two sides register it, and without the advice to copy it."""
    sites = [
        _registered(site, model_side)
        for site, model_side in ((divergence.reference, reference), (divergence.port, port))
    ]
    cause = divergence.cause
    if cause is not None:
        cause = cause.with_fix(_computing(sites)) if cause.edit is COPY else cause
        cause = replace(cause, message=phrase("{message}: {itself}", message=cause.message, itself=ITSELF))
    return replace(divergence, reference=sites[0], port=sites[1], message=ITSELF, cause=cause)


def _registered(site: Site | None, model_side: ModelSide) -> Site | None:
    if site is None:
        return None
    owner, _, name = site.path.rpartition(".")
    module: Any = model_side.backend.modules(model_side.model).get(owner)
    file, line = registered_at(type(module), name)
    return replace(site, kind="buffer", file=file, line=line)


def _computing(sites: Sequence[Site | None]) -> str:
    where = [
        "" if site is None or site.file is None else f" ({Path(site.file).name}:{site.line})"
        for site in sites
    ]
    path = "" if sites[1] is None else sites[1].path
    return phrase(
        "compute {spelled_path}{port} as the reference does{reference}",
        spelled_path=spelled_path(path),
        port=where[1],
        reference=where[0],
    )
