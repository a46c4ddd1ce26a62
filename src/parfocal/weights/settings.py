"""Settings of linked modules that differ: an epsilon, a stride, a padding.

They do not hinder a transfer, yet they are why outputs differ afterwards, so the plan names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from parfocal.backends.vocabulary import CONVENTIONS
from parfocal.brief import brief
from parfocal.judge.verdict import SettingDifference
from parfocal.phrases import joined, phrase
from parfocal.weights.plan import PlanNote

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


def setting_notes(draft: Draft, contents: tuple[SideContents, SideContents]) -> list[PlanNote]:
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


def told_once(layers: Iterable[tuple[str, str, Settings, Settings]]) -> list[PlanNote]:
    """The notes on layers by kind and path, each with its settings on both sides."""
    found: dict[tuple[str, SettingDifference], dict[str, None]] = {}
    for kind, path, ours, theirs in layers:
        for difference in setting_differences(ours, theirs, IGNORED):
            found.setdefault((kind, difference), {})[path] = None
    in_order = sorted(found, key=lambda key: (key[0], setting_words(key[1])))
    return [PlanNote(_line(*key, list(found[key])), key[1]) for key in in_order]


def differing_names(ours: Settings, theirs: Settings, ignored: Collection[str] = CONVENTIONS) -> list[str]:
    """Settings that both modules have, with other values; by default all but conventions of a framework."""
    return [
        name for name in ours if name in theirs and name not in ignored and _differ(ours[name], theirs[name])
    ]


def setting_differences(
    ours: Settings, theirs: Settings, ignored: Collection[str] = CONVENTIONS
) -> list[SettingDifference]:
    """Every setting that differs and counts, with both values."""
    return [
        SettingDifference(name, brief(ours[name]), brief(theirs[name]))
        for name in differing_names(ours, theirs, ignored)
    ]


def setting_words(difference: SettingDifference) -> str:
    """``epsilon: 0.001 in the reference, 1e-05 in the port``."""
    return phrase(
        "{name}: {reference} in the reference, {port} in the port",
        name=difference.name,
        reference=difference.reference,
        port=difference.port,
    )


def _differ(mine: Any, yours: Any) -> bool:
    if isinstance(mine, float) and isinstance(yours, float):
        return abs(mine - yours) > 1e-6 * max(abs(mine), abs(yours))
    return bool(mine != yours)


def _line(kind: str, difference: SettingDifference, paths: list[str]) -> str:
    where = joined(", ", (path or phrase("the model") for path in paths[:REPEATED]))
    if len(paths) > REPEATED:
        where = phrase("{paths} (and {count} more)", paths=where, count=len(paths) - REPEATED)
    return phrase("{where} {kind} {difference}", where=where, kind=kind, difference=setting_words(difference))
