"""Which tensors correspond between two models that have their weights already: nothing is written or run.

Names, shapes and order settle most of it. What they leave in doubt is settled by the weights themselves
where they are equal on both sides: a layer, or a way to see it, whose values are those of its counterpart.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.weights import views
from parfocal.weights.choices import take_as_they_are
from parfocal.weights.computed_buffers import leave_what_is_made
from parfocal.weights.draft import Draft
from parfocal.weights.drafting import build
from parfocal.weights.finishing import conclude
from parfocal.weights.linking import Link, entries_of
from parfocal.weights.plan import Entry, Plan
from parfocal.weights.regions import regions_of
from parfocal.weights.state import SideContents, read_model
from parfocal.weights.units import Unit, read_units
from parfocal.weights.writer import WritableModel

CONFIDENT = limits.transfer.CONFIDENT.value
EQUAL = phrase("equal weights")


def correspond(reference: Any, port: Any, layers: Mapping[str, str] | None = None) -> Plan | None:
    """The plan by which two models correspond; None where that cannot be told without running them."""
    sides = WritableModel(registry.of(reference), reference), WritableModel(registry.of(port), port)
    contents = _read(sides[0]), _read(sides[1])
    draft = _drafted(contents, layers or {})
    leave_what_is_made(draft, *sides)
    comparison = _Comparison(*sides)
    if draft.left_references or draft.left_ports or not _settle(draft, comparison):
        return None
    plan = conclude(draft, contents, comparison.same_source)
    return plan if plan.complete else None


def _read(side: WritableModel) -> SideContents:
    return read_model(side.backend, side.model, side.tensors.values())


def _drafted(contents: tuple[SideContents, SideContents], layers: Mapping[str, str]) -> Draft:
    references, ports = (read_units(each) for each in contents)
    draft = build(references, ports, None, regions_of(references, ports, layers, contents))
    if contents[0].framework == contents[1].framework:
        take_as_they_are(draft.choices, ran=False)
    return draft


class _Comparison:
    """Compares tensors of the two models as entries see them."""

    def __init__(self, reference: WritableModel, port: WritableModel) -> None:
        self._reference = reference
        self._port = port

    def equal(self, entries: Sequence[Entry]) -> bool:
        return all(
            np.array_equal(
                views.apply(each.source_view, self._reference.array(each.source)),
                views.apply(each.target_view, self._port.array(each.target)),
            )
            for each in entries
        )

    def same_source(self, first: Entry, second: Entry) -> bool:
        """Whether two entries copy the same values."""
        mine, yours = (
            views.apply(each.source_view, self._reference.array(each.source)) for each in (first, second)
        )
        return bool(np.array_equal(mine, yours))

    def values(self, unit: Unit) -> object:
        """Equal for units of the reference with equal weights."""
        arrays = (self._reference.array(slot.memory) for slot in unit.required)
        return tuple(hashlib.sha1(array.tobytes(), usedforsecurity=False).digest() for array in arrays)


def _settle(draft: Draft, comparison: _Comparison) -> bool:
    """Close what is in doubt and equal; whether nothing stays in doubt."""
    weak = [
        link
        for path, link in draft.links.items()
        if link.confidence < CONFIDENT and link.port.family != "buffer" and draft.choice_of(path) is None
    ]
    if not all(comparison.equal(entries_of(link)) for link in weak):
        return False
    values = {link.port.path: comparison.values(link.reference) for link in weak}
    counts = Counter(values.values())
    for link in weak:
        if counts[values[link.port.path]] > 1 and not link.decided:
            return False  # layers with the same values: these do not say which is which
        draft.links[link.port.path] = _proven(link)
    for choice in draft.choices:
        if choice.open:
            fitting = [n for n, option in enumerate(choice.options) if comparison.equal(option.entries)]
            if len(fitting) != 1:
                return False
            choice.current, choice.open = fitting[0], False
            choice.evidence, choice.confidence = (*choice.evidence, EQUAL), 1.0
    return True


def _proven(link: Link) -> Link:
    return replace(link, evidence=(*link.evidence, EQUAL), confidence=1.0, decided=True)
