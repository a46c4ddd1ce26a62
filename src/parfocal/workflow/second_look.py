"""A second look at layers that seem guilty: do they only do more than their partner?

Which calls are done in one is first told by the values of the natural runs. Behind a mistake those
agree nowhere; but a layer that was given exact inputs either gives what its partner gives, or what
comes out a call or two later in the reference, or it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from parfocal.judge.floors import score
from parfocal.matching.pairing import CallPair, Pairing, may_divide_differently, run_after
from parfocal.replay.layouts import fit
from parfocal.replay.precise import Precise
from parfocal.workflow.measures import LIMIT, Measure, judge_arrays

NEAR = 8 * LIMIT  # by the cheapest floor alone; the pair is measured properly afterwards


def fused_after_all(pairing: Pairing, measures: Iterable[Measure], precise: Precise) -> Pairing:
    """The pairing with such layers tied to the call whose output they really give."""
    suspects = {m.port: m for m in measures if m.own and m.direction == "forward" and m.score > LIMIT}
    paired = {pair.reference for pair in pairing.pairs}
    ends: dict[int, int] = {}
    for pair in pairing.pairs:
        if pair.port in suspects and pair.gives == pair.reference and pair.whole:
            end = _real_end(pair, suspects[pair.port], precise, paired)
            if end is not None:
                ends[pair.port] = end
    if not ends:
        return pairing
    pairs = tuple(replace(p, gives=ends[p.port]) if p.port in ends else p for p in pairing.pairs)
    left = tuple(order for order in pairing.unpaired_reference if order not in ends.values())
    return replace(pairing, pairs=pairs, unpaired_reference=left)


def _real_end(pair: CallPair, suspect: Measure, precise: Precise, paired: set[int]) -> int | None:
    """The reference's call that gives what the port's layer gives on the same inputs."""
    trace = precise.reference.trace
    call, other = trace.nodes[pair.reference], precise.port.trace.nodes[pair.port]
    if not (other.is_leaf and may_divide_differently(call, other)):
        return None
    observed = precise.port_result([pair.port], (pair.port, "output", suspect.slot, "forward"))
    if observed is None:
        return None
    for following in run_after(trace, call, paired):
        for value in following.outputs.values():
            recorded = precise.recorded(value.data)
            layout = fit(recorded, observed)
            if layout is not None:
                _, error, floor = judge_arrays(observed, layout.apply(recorded), None)
                if score(error, floor) <= NEAR:
                    return following.order
    return None
