"""What a verdict on averages leaves unsaid, said."""

from __future__ import annotations

from collections.abc import Sequence

from parfocal.compat.opinion import HEAD, tell
from parfocal.compat.padiff.comparing import CompareConfig
from parfocal.phrases import phrase

SHOWN = 10


def tell_hidden(lines: Sequence[str], config: CompareConfig) -> None:
    """Name the tensors whose elements differ although their mean is within the tolerance."""
    if not lines:
        return
    count = len(lines)
    told = phrase(
        "within the tolerance on average only (compare_mode {mode}): {count} tensors",
        mode=config.compare_mode,
        count=count,
    )
    tell(HEAD + told)
    for line in lines[:SHOWN]:
        tell(f"    {line}")
    if count > SHOWN:
        tell(phrase("    ... and {count} more", count=count - SHOWN))
