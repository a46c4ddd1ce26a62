"""Single step: which values of the base model's calls the raw model's calls are given.

The two reports are paired call by call beforehand (the raw model runs once more for that), so a
call is known by its module's path and how often that module was called before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from parfocal.backends.protocol import Array
from parfocal.compat.padiff.pairing import pair_calls
from parfocal.compat.padiff.partners import Partners
from parfocal.compat.padiff.report.report import Report, ReportNode

Known = Partners | None  # which modules hold the same weights


class BaseFollower:
    """Hands out what the base model's calls were given."""

    def __init__(
        self, base: Report, raw: Report, layer_map: Mapping[str, str], partners: Known = None
    ) -> None:
        occurrences: dict[int, tuple[str, int]] = {}
        counts: Counter[str] = Counter()
        for node in (node for root in raw.roots for node in root.walk()):
            if node.layer_type != "api":
                occurrences[id(node)] = (node.path, counts[node.path])
                counts[node.path] += 1
        self._partners: dict[tuple[str, int], ReportNode] = {}
        self._pair(base.roots, raw.roots, layer_map, partners, occurrences)
        self._seen: Counter[str] = Counter()
        self._current: dict[int, ReportNode | None] = {}

    def inputs(self, node: ReportNode) -> dict[str, Array]:
        """The partner's floating inputs by this call's slots, as far as the shapes agree."""
        partner = self._partners.get((node.path, self._seen[node.path]))
        self._seen[node.path] += 1
        self._current[id(node)] = partner
        if partner is None:
            return {}
        given = zip(node.inputs.items(), partner.inputs.values(), strict=False)
        return {
            slot: value.array.astype(kept.array.dtype)
            for (slot, kept), value in given
            if value.array.shape == kept.array.shape
        }

    def output_gradients(self, node: ReportNode) -> dict[str, Array]:
        """The gradients that arrived at the partner's outputs, by position."""
        partner = self._current.get(id(node))
        if partner is None:
            return {}
        return {slot: kept.array for slot, kept in partner.output_gradients.items() if kept is not None}

    def _pair(
        self, base: Any, raw: Any, layer_map: Mapping[str, str], partners: Known, occurrences: Any
    ) -> None:
        for first, second in pair_calls(base, raw, layer_map, partners).of(base, raw):
            if second.layer_type != "api":
                self._partners[occurrences[id(second)]] = first
                self._pair(first.children, second.children, layer_map, partners, occurrences)
