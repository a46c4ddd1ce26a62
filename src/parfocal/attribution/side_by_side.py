"""Two natural runs against a fixed tolerance: paired as always, and compared where calls give something.

Most was compared while the port ran; what was kept for it is compared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from parfocal.attribution.leading import script_for
from parfocal.attribution.measures import Collector, Measure, MeasuredSighting
from parfocal.judge.tolerance import Tolerance
from parfocal.matching.pairing import Pairing
from parfocal.replay.follow import Direction
from parfocal.replay.trace import Node, TensorData, Trace
from parfocal.replay.witness import Witness, WitnessResult

Place = tuple[int, str]  # a call of the port, and a slot of what it gives


class SideComparison:
    """Compares outputs of the port with the reference's, while the port runs and afterwards."""

    def __init__(self, tolerance: Tolerance) -> None:
        self.judge = Collector({}, tolerance).judged

    def measures(
        self, witness: Witness, pairing: Pairing, reference: Trace, port: Trace, *, weighted: bool
    ) -> list[Measure]:
        """``weighted``: what comes back to the models' outputs is the same by construction."""
        _, partners = script_for(pairing, reference, port, frozenset())
        found: list[Measure] = []
        for (order, side, slot), (ours, name) in sorted(partners.items()):
            if side == "output":
                own, other = port.nodes[order], reference.nodes[ours]
                for direction, outcome in self._outcomes(witness, own, slot, other, name):
                    if not (weighted and own.parent is None and direction == "backward"):
                        place = order, ours, side, slot, name, direction
                        found.append(Measure(*place, **outcome._asdict()))
        return found

    def _outcomes(
        self, witness: Witness, own: Node, slot: str, other: Node, name: str
    ) -> Iterator[tuple[Direction, MeasuredSighting]]:
        mine, theirs = own.outputs[slot], other.outputs[name]
        directions: list[tuple[Direction, WitnessResult | None, TensorData | None, TensorData | None]] = [
            ("forward", witness.compared.get(id(mine.data)), mine.data, theirs.data),
            ("backward", witness.returned.get((own.order, slot)), mine.gradient, theirs.gradient),
        ]
        for direction, compared, data, recorded in directions:
            outcome = None
            if recorded is not None and compared is not None and _are_one(compared.expected, recorded):
                outcome = compared.outcome
            elif recorded is not None and data is not None and not mine.hidden:
                outcome = witness.judge_later(own.order, slot, data, recorded, direction)
            if isinstance(outcome, MeasuredSighting):
                yield direction, outcome


def anchored_calls(paths: Mapping[str, str], reference: Trace) -> dict[str, list[Node]]:
    """Path of the port's module -> the reference's calls of its counterpart, by ``paths``."""
    calls: dict[str, list[Node]] = {}
    for node in reference.nodes:
        calls.setdefault(node.path, []).append(node)
    return {port: calls.get(path, []) for port, path in paths.items()}


def _are_one(one: TensorData, other: TensorData) -> bool:
    """Gradients have no fingerprints, so only the identical data counts as the same."""
    marked = one.fingerprint.maximum is not None
    return one is other or (marked and one.shape == other.shape and one.fingerprint == other.fingerprint)
