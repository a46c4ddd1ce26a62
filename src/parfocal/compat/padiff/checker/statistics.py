"""The one difference between the frameworks that nobody can port away: BatchNorm's running variance.

torch stores the variance with n - 1 in the denominator, paddle with n, where n is the count of
numbers a channel had in a batch. So torch's is the larger one, by at most 1/(n - 1) of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.compat.padiff.comparing import CompareConfig
from parfocal.phrases import phrase

CONVENTION = phrase(
    "the running variance differs by no more than torch's division by n - 1 "
    "against paddle's by n; this is not counted as a difference."
)


def explained_by_convention(
    variances: Sequence[Array], frameworks: tuple[str, str], elements: int, config: CompareConfig
) -> bool:
    """Whether the two running variances differ by no more than the two conventions make."""
    if set(frameworks) != {"torch", "paddle"} or variances[0].shape != variances[1].shape:
        return False
    unbiased, biased = (variances[frameworks.index(name)].astype(np.float64) for name in ("torch", "paddle"))
    count = elements / unbiased.size if unbiased.size else 0
    if count <= 1:
        return False
    slack = config.atol + config.rtol * np.abs(biased)
    excess = unbiased - biased
    return bool(np.all(excess >= -slack) and np.all(excess <= biased / (count - 1) + slack))
