"""Several calls of the port that stand for one of the reference."""

from __future__ import annotations

from parfocal.matching.pairing import Pairing


def starts_of_runs(pairing: Pairing) -> dict[int, int]:
    """Last call of a run of the port that the reference does in one -> the first, which has the weights."""
    first = {pair.reference: pair.port for pair in pairing.pairs if pair.takes and pair.gives is None}
    return {
        pair.port: first[pair.reference]
        for pair in pairing.pairs
        if not pair.takes and pair.reference in first
    }
