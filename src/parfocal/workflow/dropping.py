"""Dropout is off while two models are compared: whether both would drop the same is read, not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import NamedTuple

from parfocal.backends.protocol import Mode
from parfocal.explain.causes import PortLine, line, number, place, spelled_path
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import Cause, Claim, Divergence, Finding, Fix, Grounds, Site
from parfocal.matching.pairing import Pairing
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, Trace

WORDS = {True: "train", False: "eval"}
IDLE = ("", 0.0)
SCALED = limits.causes.FITTED.value
ROUNDED = limits.causes.SAME_SETTING.value
OFF = phrase("nothing is dropped while the two are compared")


class DropCounts(NamedTuple):
    """Whether as many modules drop on both sides: of ``every`` one, of those ``at_work``."""

    every: bool
    at_work: bool


@dataclass(frozen=True, slots=True)
class Dropping:
    """``ours`` and ``theirs``: modules that drop, by path: the name and value of the probability.

    ``scales``: what becomes of a 1 that is kept, on either side, as far as that is known.
    """

    ours: Mapping[str, tuple[str, float]]
    theirs: Mapping[str, tuple[str, float]]
    mode: Mode
    scales: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})

    def differences(
        self, pairing: Pairing, reference: Trace, port: Trace
    ) -> tuple[list[Divergence], list[Finding]]:
        """In a mode where dropout works it counts; elsewhere it is only worth knowing."""
        found = list(self._different(pairing, reference, port))
        if self.mode != "eval":
            told = {each.port.path for each in found if each.port is not None}
            found += self._in_turn(pairing, reference, port, told)
        if self.mode != "eval":
            return found, []
        return [], [
            Finding(
                each.cause.code,
                phrase("{message}; {off}", message=each.cause.message, off=OFF),
                each.reference,
                each.port,
            )
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
        sure = DropCounts(calls[0] == calls[1], at_work[0] == at_work[1])
        for pair in pairing.pairs:
            ours, theirs = reference.nodes[pair.reference], port.nodes[pair.port]
            if ours.path not in self.ours or theirs.path not in self.theirs or theirs.path in seen:
                continue
            seen.add(theirs.path)
            cause = self._cause(ours, theirs, sure=sure)
            if cause is not None:
                sites = ours.site, theirs.site
                yield Divergence(
                    "forward",
                    *sites,
                    phrase("what is dropped"),
                    None,
                    NOTHING,
                    float("inf"),
                    OFF,
                    cause=cause,
                )

    def _in_turn(
        self, pairing: Pairing, reference: Trace, port: Trace, told: set[str]
    ) -> Iterator[Divergence]:
        """What drops on both sides, modules or functions, one after the other.

        Said only where it is sure which is which: as many on both sides, in each other's calls, and
        no other order of them would explain more of the rates.
        """
        sides = events(self.ours, reference), events(self.theirs, port)
        pairs = list(zip(*sides, strict=False))
        wrong = [(ours, theirs) for ours, theirs in pairs if not _same(ours.rate, theirs.rate)]
        if len(sides[0]) != len(sides[1]) or len(wrong) != _unmatched(*sides):
            return
        calls = {pair.port: pair.reference for pair in pairing.pairs if pair.whole and pair.takes}
        for ours, theirs in wrong:
            if theirs.name not in told and _in_each_other_s_calls(ours, theirs, calls, reference, port):
                told.add(theirs.name)
                yield Divergence(
                    "forward",
                    ours.site,
                    theirs.site,
                    phrase("what is dropped"),
                    None,
                    NOTHING,
                    float("inf"),
                    OFF,
                    cause=self._rate_cause(ours, theirs),
                )

    def _rate_cause(self, ours: DropEvent, theirs: DropEvent) -> Cause:
        right, wrong = number(ours.rate), number(theirs.rate)
        message = phrase(
            "{words} drops with probability {port} in the port; in the reference {ours_words} with {right}",
            words=theirs.words,
            port=wrong,
            ours_words=ours.words,
            right=right,
        )
        fix: Fix = phrase("drop with probability {right} in {words}", right=right, words=theirs.words)
        if theirs.is_module:
            fix = PortLine.attribute(theirs.node.path, self.theirs[theirs.node.path][0], right)
        return Claim("random.dropout", message, fix).likely(Grounds.SETTINGS)

    def _cause(self, ours: Node, theirs: Node, *, sure: DropCounts) -> Cause | None:
        (_, right), (attribute, wrong) = self.ours[ours.path], self.theirs[theirs.path]
        whose = place(theirs)
        if ours.training != theirs.training and max(right, wrong) > 0:
            message = phrase(
                "{whose} ({kind}) is in {reference} mode in the reference, in {port} mode in the port",
                whose=whose,
                kind=theirs.kind,
                reference=WORDS[ours.training],
                port=WORDS[theirs.training],
            )
            fix = PortLine.mode(theirs.path, WORDS[ours.training])
            claim = Claim("mode.training", message, fix, ("is in", WORDS[ours.training]))
            return claim.likely(Grounds.SETTINGS)
        told = sure.every or (sure.at_work and right > 0 and wrong > 0)
        if told and not _same(right, wrong):
            message = phrase(
                "{whose} ({kind}) drops with probability {reference} in the reference, {port} in the port",
                whose=whose,
                kind=theirs.kind,
                reference=number(right),
                port=number(wrong),
            )
            fix, rates = (
                PortLine.attribute(theirs.path, attribute, number(right)),
                (number(right), number(wrong)),
            )
            return Claim("random.dropout", message, fix, (theirs.kind, *rates)).likely(Grounds.SETTINGS)
        scale, other = self.scales[0].get(ours.path), self.scales[1].get(theirs.path)
        if told and scale is not None and other is not None and not isclose(scale, other, rel_tol=SCALED):
            message = phrase(
                "{whose} ({kind}) gives {scale} times what it keeps in the reference, {other} times in "
                "the port (probability {wrong})",
                whose=whose,
                kind=theirs.kind,
                scale=number(scale),
                other=number(other),
                wrong=number(wrong),
            )
            words = phrase(
                "multiply what {where} keeps by {scale} in train mode",
                where=spelled_path(theirs.path),
                scale=number(scale / other),
            )
            scales = (number(scale), number(other), number(wrong))
            return Claim("random.dropout", message, words, (theirs.kind, "keeps", *scales)).likely(
                Grounds.VALUES
            )
        return None


@dataclass(frozen=True, slots=True)
class DropEvent:
    """Something drops: a module, or a function that the code of one asks."""

    when: float
    node: Node
    rate: float
    is_module: bool
    file: str | None
    line: int | None

    @property
    def site(self) -> Site:
        return Site(self.node.path, self.node.kind, None, self.file, self.line, self.node.settings)

    @property
    def name(self) -> str:
        """Of one module or line of code, however often it runs."""
        return self.node.path if self.is_module else f"{self.node.path}:{self.line}"

    @property
    def words(self) -> str:
        if self.is_module:
            return phrase("{place} ({kind})", place=place(self.node), kind=self.node.kind)
        words = phrase("dropout in {place}", place=place(self.node))
        if self.file is None:
            return words
        return phrase("{words} ({where})", words=words, where=line(self))


def events(modules: Mapping[str, tuple[str, float]], trace: Trace) -> list[DropEvent]:
    """What drops something in a run, in order; what modules that drop ask of functions is theirs."""
    found = [
        DropEvent(node.order, node, modules[node.path][1], True, node.file, node.line)
        for node in trace.nodes
        if node.training and modules.get(node.path, IDLE)[1] > 0
    ]
    found += [
        DropEvent(drop.begun - 0.5, trace.nodes[drop.order], drop.rate, False, drop.file, drop.line)
        for drop in trace.drops
        if trace.nodes[drop.order].path not in modules
    ]
    return sorted(found, key=lambda event: event.when)


def _same(right: float, wrong: float) -> bool:
    return isclose(right, wrong, rel_tol=ROUNDED)


def _unmatched(ours: Sequence[DropEvent], theirs: Sequence[DropEvent]) -> int:
    """How many rates have no counterpart in whatever order."""
    left = [event.rate for event in theirs]
    for event in ours:
        match = next((rate for rate in left if _same(event.rate, rate)), None)
        if match is not None:
            left.remove(match)
    return len(left)


def _in_each_other_s_calls(
    ours: DropEvent, theirs: DropEvent, calls: Mapping[int, int], reference: Trace, port: Trace
) -> bool:
    """Whether the innermost paired call around either is around the other too, or around its."""
    around = _around(ours.node, reference)
    counterparts = set(calls.values())
    own = next((order for order in around if order in counterparts), 0)
    other = next((calls[order] for order in _around(theirs.node, port) if order in calls), 0)
    return other in around or own in _around(reference.nodes[other], reference)


def _around(node: Node, trace: Trace) -> list[int]:
    """A call and those around it, innermost first."""
    found = [node.order]
    while node.parent is not None:
        node = trace.nodes[node.parent]
        found.append(node.order)
    return found
