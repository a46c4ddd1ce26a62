"""Settings of linked modules that differ: an epsilon, a stride, a padding.

They do not hinder a transfer, yet they are why outputs differ afterwards, so the plan names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from parfocal.backends.vocabulary import CONVENTIONS
from parfocal.brief import brief
from parfocal.phrases import joined, phrase
from parfocal.weights.plan import SettingNote

if TYPE_CHECKING:
    from parfocal.weights.draft import Draft
    from parfocal.weights.state import SideContents

Settings = Mapping[str, Any]

# What says how tensors lie, not what is computed, or is seen in the shapes anyway.
IGNORED = frozenset({
    "weight_layout", "channels_last", "batch_first", "bias", "in_features", "out_features", "in_channels",
    "out_channels", "num_features", "kernel_size", "dropout", "boolean_mask", "affine", "dtype",
})  # fmt: skip
REPEATED = 3


def setting_notes(draft: Draft, contents: tuple[SideContents, SideContents]) -> list[SettingNote]:
    """One line for each difference; the same one in many layers is told once."""
    owners = (
        (
            link.reference,
            contents[0].owners.get(link.reference.module),
            contents[1].owners.get(link.port.module),
        )
        for link in draft.links.values()
        if link.reference.kind == link.port.kind
    )
    return told_once(
        (unit.kind, unit.module, ours.settings, theirs.settings)
        for unit, ours, theirs in owners
        if ours and theirs
    )


def told_once(layers: Iterable[tuple[str, str, Settings, Settings]]) -> list[SettingNote]:
    """The notes on layers by kind and path, each with its settings on both sides."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for kind, path, ours, theirs in layers:
        for difference in differing(ours, theirs):
            found.setdefault((kind, difference), {})[path] = None
    return [
        SettingNote(difference, _line(kind, difference, list(paths)))
        for (kind, difference), paths in sorted(found.items())
    ]


def differing_names(ours: Settings, theirs: Settings, ignored: Collection[str] = CONVENTIONS) -> list[str]:
    """Settings that both modules have, with other values; by default all but conventions of a framework."""
    return [
        name for name in ours if name in theirs and name not in ignored and _differ(ours[name], theirs[name])
    ]


def differing(mine: Settings, yours: Settings) -> list[str]:
    """Every setting that differs and counts: ``epsilon: 0.001 in the reference, ...``."""
    return [
        setting_difference(name, mine[name], yours[name])
        for name in sorted(differing_names(mine, yours, IGNORED))
    ]


def setting_difference(name: str, reference: Any, port: Any) -> str:
    """A setting with the values of both sides."""
    return phrase(
        "{name}: {reference} in the reference, {port} in the port",
        name=name,
        reference=brief(reference),
        port=brief(port),
    )


def _differ(mine: Any, yours: Any) -> bool:
    if isinstance(mine, float) and isinstance(yours, float):
        return abs(mine - yours) > 1e-6 * max(abs(mine), abs(yours))
    return bool(mine != yours)


def _line(kind: str, difference: str, paths: list[str]) -> str:
    where = joined(", ", (path or phrase("the model") for path in paths[:REPEATED]))
    if len(paths) > REPEATED:
        where = phrase("{paths} (and {count} more)", paths=where, count=len(paths) - REPEATED)
    return phrase("{where} {kind} {difference}", where=where, kind=kind, difference=difference)
