"""What a verdict on averages leaves unsaid, said."""

from __future__ import annotations

from collections.abc import Sequence

from parfocal.compat.padiff.comparing import CompareConfig
from parfocal.compat.padiff.utils import log

SHOWN = 10


def tell_hidden(lines: Sequence[str], config: CompareConfig) -> None:
    """Name the tensors whose elements differ although their mean is within the tolerance."""
    if not lines:
        return
    log(f"Within the tolerance on average only (compare_mode {config.compare_mode}): {len(lines)} tensors")
    for line in lines[:SHOWN]:
        print(f"    {line}")
    if len(lines) > SHOWN:
        print(f"    ... and {len(lines) - SHOWN} more")
