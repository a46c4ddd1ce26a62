"""Settings of linked modules that differ: an epsilon, a stride, a padding.

They do not hinder a transfer, yet they are why outputs differ afterwards, so the plan names them.
"""

from __future__ import annotations

from typing import Any

from parfocal.weights.drafting import Draft
from parfocal.weights.state import Contents

# What says how tensors lie, not what is computed, or is seen in the shapes anyway.
IGNORED = frozenset({
    "weight_layout", "channels_last", "batch_first", "bias", "in_features", "out_features", "in_channels",
    "out_channels", "num_features", "kernel_size", "dropout", "boolean_mask", "affine", "dtype",
})  # fmt: skip
REPEATED = 3


def setting_notes(draft: Draft, contents: tuple[Contents, Contents]) -> list[str]:
    """One line for each difference; the same one in many layers is told once."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for link in draft.links.values():
        owners = contents[0].owners.get(link.reference.module), contents[1].owners.get(link.port.module)
        if owners[0] is None or owners[1] is None or link.reference.kind != link.port.kind:
            continue
        mine, yours = owners[0].settings, owners[1].settings
        for name in mine.keys() & yours.keys() - IGNORED:
            if _differ(mine[name], yours[name]):
                key = link.reference.kind, name, repr(mine[name]), repr(yours[name])
                found.setdefault(key, []).append(link.reference.path)
    return [_line(*key, paths) for key, paths in sorted(found.items())]


def _differ(mine: Any, yours: Any) -> bool:
    if isinstance(mine, float) and isinstance(yours, float):
        return abs(mine - yours) > 1e-6 * max(abs(mine), abs(yours))
    return bool(mine != yours)


def _line(kind: str, name: str, mine: str, yours: str, paths: list[str]) -> str:
    where = paths[0] or "the model"
    more = f" (and {len(paths) - 1} more)" if len(paths) > REPEATED else ""
    if 1 < len(paths) <= REPEATED:
        where = ", ".join(paths)
    return f"{where} {kind} {name}: {mine} in the reference, {yours} in the port{more}"
