"""Dropout is off while two models are compared: whether both would drop the same is read, not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose
from typing import NamedTuple

from parfocal.backends.protocol import Mode
from parfocal.explain.causes import number, place, spelled_path
from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import Cause, Divergence, Finding, Site
from parfocal.matching.pairing import Pairing
from parfocal.replay.trace import Node, Trace

WORDS = {True: "train", False: "eval"}
IDLE = ("", 0.0)
ROUNDED = 1e-6  # rates are computed, by a formula or another
OFF = "nothing is dropped while the two are compared"


class Known(NamedTuple):
    """Whether as many modules drop on both sides: of ``every`` one, of those ``at_work``."""

    every: bool
    at_work: bool


@dataclass(frozen=True, slots=True)
class Dropping:
    """``ours`` and ``theirs``: modules that drop, by path: the name and value of the probability."""

    ours: Mapping[str, tuple[str, float]]
    theirs: Mapping[str, tuple[str, float]]
    mode: Mode

    def differences(
        self, pairing: Pairing, reference: Trace, port: Trace
    ) -> tuple[list[Divergence], list[Finding]]:
        """In a mode where dropout works it counts; elsewhere it is only worth knowing."""
        found = list(self._different(pairing, reference, port))
        if self.mode != "eval":
            return found, []
        return [], [
            Finding(each.cause.code, f"{each.cause.message}; {OFF}", each.reference, each.port)
            for each in found
            if each.cause is not None
        ]

    def _different(self, pairing: Pairing, reference: Trace, port: Trace) -> Iterator[Divergence]:
        seen: set[str] = set()
        # with one too many or too few, which is which of several that do nothing now is a guess
        sides = (self.ours, reference), (self.theirs, port)
        calls = [sum(node.path in side for node in trace.nodes) for side, trace in sides]
        # what drops nothing by itself may as well be an identity, or not be there
        at_work = [sum(side.get(node.path, IDLE)[1] > 0 for node in trace.nodes) for side, trace in sides]
        sure = Known(calls[0] == calls[1], at_work[0] == at_work[1])
        for pair in pairing.pairs:
            ours, theirs = reference.nodes[pair.reference], port.nodes[pair.port]
            if ours.path not in self.ours or theirs.path not in self.theirs or theirs.path in seen:
                continue
            seen.add(theirs.path)
            cause = self._cause(ours, theirs, sure=sure)
            if cause is not None:
                sites = _site(ours), _site(theirs)
                yield Divergence(
                    "forward", *sites, "what is dropped", None, NOTHING, float("inf"), OFF, cause=cause
                )

    def _cause(self, ours: Node, theirs: Node, *, sure: Known) -> Cause | None:
        (_, right), (attribute, wrong) = self.ours[ours.path], self.theirs[theirs.path]
        where, whose = spelled_path(theirs.path), place(theirs)
        if ours.training != theirs.training and max(right, wrong) > 0:
            message = (
                f"{whose} ({theirs.kind}) is in {WORDS[ours.training]} mode in the reference, "
                f"in {WORDS[theirs.training]} mode in the port"
            )
            return Cause("mode.training", message, f"{where}.{WORDS[ours.training]}()", 0.0)
        told = sure.every or (sure.at_work and right > 0 and wrong > 0)
        if told and not isclose(right, wrong, rel_tol=ROUNDED):
            message = (
                f"{whose} ({theirs.kind}) drops with probability {number(right)} in the reference, "
                f"{number(wrong)} in the port"
            )
            return Cause("random.dropout", message, f"{where}.{attribute} = {number(right)}", 0.0)
        return None


def _site(node: Node) -> Site:
    return Site(node.path, node.kind, None, node.file, node.line, node.settings)
