"""Borders of modules where two natural runs differ, and after which they agree again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from parfocal.matching.dividing import may_divide_differently
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.values import SAME, distance, nearest
from parfocal.replay.trace import Trace, Value


def without_borders(pairing: Pairing, reference: Trace, port: Trace) -> Pairing:
    """The pairing without outputs of calls that divide their work differently with the code after them.

    Such calls are known by the output of one of them: both sides use it later, or return it.
    """
    return replace(
        pairing,
        pairs=tuple(
            replace(pair, gives=None) if _meets_again(pair, pairing, reference, port) else pair
            for pair in pairing.pairs
        ),
    )


def _meets_again(pair: CallPair, pairing: Pairing, reference: Trace, port: Trace) -> bool:
    if pair.gives is None or port.nodes[pair.port].parent is None:
        return False
    call, own = reference.nodes[pair.gives], port.nodes[pair.port]
    if nearest(call.outputs, own.outputs) <= SAME or not may_divide_differently(call, own):
        return False
    later = (each for each in pairing.pairs if each.port >= own.finished and each.reference >= call.finished)
    behind = [(reference.nodes[each.reference].inputs, port.nodes[each.port].inputs) for each in later]
    behind.append((reference.nodes[0].outputs, port.nodes[0].outputs))
    return any(_is_met(call.outputs, own.outputs, theirs, mine) for theirs, mine in behind)


def _is_met(
    given: Mapping[str, Value],
    own_given: Mapping[str, Value],
    taken: Mapping[str, Value],
    own_taken: Mapping[str, Value],
) -> bool:
    """Whether both sides have a value there that one of the calls gave."""
    for value in taken.values():
        for own in own_taken.values():
            if distance(value.data.fingerprint, own.data.fingerprint) <= SAME and (
                nearest({"": value}, given) <= SAME or nearest({"": own}, own_given) <= SAME
            ):
                return True
    return False
