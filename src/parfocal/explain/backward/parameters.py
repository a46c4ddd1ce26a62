"""Gradients of parameters that are wrong although every call's own gradients are right.

If the calls of the owning layer, repeated alone, give the right gradient, another user of the weight is to
blame: the nearest enclosing call whose repetition gives a wrong one, and its code is put to the hypotheses.
Where every repetition is right, something acts on the parameter from outside of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from parfocal.attempts import Attempts
from parfocal.backends import registry
from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array, StateTensor
from parfocal.backends.vocabulary import family
from parfocal.explain.backward.gradients import GradientTrials, clip_bounds, stops
from parfocal.explain.backward.stopping import owner_among
from parfocal.explain.causes import PortLine, ProvenChange, cause, code_of, nearer, number, rounded, said
from parfocal.explain.fixes.tying import tied
from parfocal.explain.layers.relations import factor_between
from parfocal.explain.layers.settings import rebuilt
from parfocal.judge.floors import Size, coarser, difference, score, size_of
from parfocal.judge.verdict import Divergence, ProvenBy
from parfocal.phrases import joined, phrase
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.repeat import Repeater
from parfocal.weights import views
from parfocal.weights.plan import Entry
from parfocal.weights.settings import differing_names


@dataclass(frozen=True, slots=True)
class ParameterUsers:
    """The port's calls whose repetition gives a parameter's gradient, and their counterparts."""

    port: tuple[int, ...]
    reference: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ParameterExplainer:
    """``partners``: the port's calls and the reference's they are paired with."""

    precise: NoiseFloors
    partners: Mapping[int, int]
    entries: Sequence[Entry]
    gradients: Mapping[str, Array]  # of the port's parameters, as they were seen
    limit: float
    attempts: Attempts = field(default_factory=Attempts)

    def explain(
        self, divergence: Divergence, entry: Entry, floor: Size, known: Collection[str] = ()
    ) -> Divergence:
        """The divergence at the call that makes it, with its cause; none if it is ``known`` to be guilty."""
        with self.attempts.attempt(phrase("the gradient"), entry.target):
            return self._with_cause(divergence, entry, floor, known)
        return divergence

    def _with_cause(
        self, divergence: Divergence, entry: Entry, floor: Size, known: Collection[str]
    ) -> Divergence:
        for step, hypothesis in (("frozen", self._frozen), ("untied", self._untied), ("set", self._set)):
            plain = None
            with self.attempts.attempt(step, entry.target):
                plain = next(hypothesis(entry, floor), None)
            if plain is not None:
                return self._told(divergence, [plain], "")
        gradients = self.precise.gradients.get(entry.source), self.gradients.get(entry.target)
        guilty = next((u for u in self._users(entry) if self._score(u, entry, floor) > self.limit), None)
        if guilty is None:
            proofs = list(_relations(divergence.what, entry, floor, gradients, self.limit))
            outside = phrase(
                "the port's layer by itself gives the right one: something acts on it from outside"
            )
            return self._told(divergence, proofs, outside)
        divergence = self._moved(divergence, guilty)
        if divergence.port is not None and divergence.port.path in known:
            return divergence
        proofs = list(stops(self._trials(guilty, entry, floor)))
        proofs = proofs or list(_relations(divergence.what, entry, floor, gradients, self.limit))
        return self._told(divergence, proofs, "")

    def _told(self, divergence: Divergence, proofs: list[ProvenChange], message: str) -> Divergence:
        if not proofs:
            return replace(divergence, message=divergence.message or message)
        first, precise = proofs[0], self.precise
        return replace(
            divergence,
            cause=cause(proofs, divergence.score),
            port=nearer(divergence.port, first.port, precise.port.trace.nodes),
            reference=nearer(divergence.reference, first.reference, precise.reference.trace.nodes),
            message=message,
        )

    def _frozen(self, entry: Entry, floor: Size) -> Iterator[ProvenChange]:
        """One side's parameter is not to be trained, the other's is: with both trained they agree."""
        ours, theirs = self.precise.reference, self.precise.port
        frozen = [
            path not in gradients and _is_frozen(side, path)
            for side, path, gradients in (
                (ours, entry.source, self.precise.gradients),
                (theirs, entry.target, self.gradients),
            )
        ]
        if frozen[0] == frozen[1]:
            return
        left = min((self._thawed(users, entry, floor) for users in self._users(entry)), default=math.inf)
        if left <= self.limit:
            sides = phrase("reference"), phrase("port")
            words = sides if frozen[0] else sides[::-1]
            message = phrase(
                "{target} is frozen in the {side}, the {other} trains it",
                target=entry.target,
                side=words[0],
                other=words[1],
            )
            flag, value = registry.dialect(theirs.backend.name).frozen
            fix = PortLine.attribute(entry.target, flag, value if frozen[0] else not value)
            yield ProvenChange("grad.detached", message, fix, left, facts=("frozen", words[0]))

    def _thawed(self, users: ParameterUsers, entry: Entry, floor: Size) -> float:
        """How far apart the gradients are when both sides train the parameter."""
        sides = (
            (self.precise.reference, users.reference, entry.source),
            (self.precise.port, users.port, entry.target),
        )
        if not all(calls for _, calls, _ in sides):
            return math.inf
        found = [
            side.repeat(calls, None, self.precise.recorded, _thawing(side, calls[0], path))
            for side, calls, path in sides
        ]
        gradients = [each.parameters.get(path) for each, (_, _, path) in zip(found, sides, strict=True)]
        if any(gradient is None for gradient in gradients):
            return math.inf
        return _judged(gradients[0], gradients[1], entry, floor)

    def _set(self, entry: Entry, floor: Size) -> Iterator[ProvenChange]:
        """The owner has another setting, which shows only in the gradient."""
        ours, theirs = self.precise.reference, self.precise.port
        paths = [path.rpartition(".")[0] for path in (entry.source, entry.target)]
        calls = [
            [node.order for node in side.trace.nodes if node.path == path]
            for side, path in zip((ours, theirs), paths, strict=True)
        ]
        builder = theirs.backend
        if not all(calls) or not isinstance(builder, LayerBuilder):
            return
        node, other = theirs.trace.nodes[calls[1][0]], ours.trace.nodes[calls[0][0]]
        if family(node.kind) != family(other.kind) or not builder.can_build(theirs.modules[node.path]):
            return
        whole = self.precise.gradients.get(entry.source)
        for name in differing_names(other.settings, node.settings):
            settings = {**node.settings, name: other.settings[name]}
            made = partial(rebuilt, theirs.backend, settings=settings, source=ours.modules[other.path])
            again = theirs.repeat(calls[1], None, self.precise.recorded, made)
            left = _judged(whole, again.parameters.get(entry.target), entry, floor)
            if left <= self.limit:
                values = phrase(
                    "{reference} in the reference, {port} in the port",
                    reference=said(other.settings[name]),
                    port=said(node.settings[name]),
                )
                line = builder.spell(node.kind, settings, [name])
                message = phrase(
                    "{name} is {values} ({kind} {path})",
                    name=name,
                    values=values,
                    kind=node.kind,
                    path=node.path,
                )
                fix, facts = PortLine.layer(node.path, line), (node.kind, name, values)
                yield ProvenChange(code_of(name, node.kind), message, fix, left, facts=facts)

    def _untied(self, entry: Entry, floor: Size) -> Iterator[ProvenChange]:
        """One tensor of the reference is several in the port: each gets its share of the gradient."""
        parts = [other for other in self.entries if other.source == entry.source]
        whole = self.precise.gradients.get(entry.source)
        if whole is None or len(parts) < 2 or any(part.target not in self.gradients for part in parts):
            return
        total = np.zeros_like(whole)
        for part in parts:
            share = np.zeros_like(whole)
            views.apply(part.source_view, share)[...] = views.apply(
                part.target_view, self.gradients[part.target]
            )
            total += share
        scale = size_of(whole) * coarser(whole.dtype.name)
        left = score(difference(total, whole), floor | scale)
        if left <= self.limit:
            names = joined(" and ", (part.target for part in parts))
            message = phrase(
                "{source} of the reference is one tensor, in the port it is {names}: ",
                source=entry.source,
                names=names,
            )
            message += phrase("their gradients add up to the reference's")
            fix = tied(self.precise.port, parts, phrase("use one parameter for {names}", names=names))
            yield ProvenChange("weight.tied", message, fix, left, way=ProvenBy.RELATED)

    def _users(self, entry: Entry) -> Iterator[ParameterUsers]:
        """The owner's own calls, then every call around them."""
        ours, theirs = self.precise.reference.trace, self.precise.port.trace
        feeds = self.precise.port.script.feeds
        calls = theirs.calls_of_owner(entry.target)
        if all(feeds(theirs.nodes[order]) for order in calls):  # a call too many has no recorded inputs
            yield ParameterUsers(tuple(calls), tuple(ours.calls_of_owner(entry.source)))
        order = theirs.nodes[calls[0]].parent if calls else None
        while order is not None:
            if order in self.partners and feeds(theirs.nodes[order]):
                yield ParameterUsers((order,), (self.partners[order],))
            order = theirs.nodes[order].parent

    def _score(
        self, users: ParameterUsers, entry: Entry, floor: Size, watcher: Any = None, own: bool = True
    ) -> float:
        """How far apart the two sides' gradients of the parameter are, one of them under a watcher."""
        precise = self.precise
        sides = (
            (precise.reference, precise.result, users.reference, entry.source),
            (precise.port, precise.port_result, users.port, entry.target),
        )
        found = [
            _watched(repeater, calls, path, precise, watcher)
            if watcher is not None and calls and own is (repeater is precise.port)
            else result(calls, path)
            if calls
            else None
            for repeater, result, calls, path in sides
        ]
        return _judged(found[0], found[1], entry, floor)

    def _trials(self, users: ParameterUsers, entry: Entry, floor: Size) -> GradientTrials:
        ours, theirs = self.precise.reference, self.precise.port
        port, reference = users.port[0], users.reference[0]
        return GradientTrials(
            theirs.backend,
            ours.backend,
            owner_among(theirs.trace.nodes, port, port, self.partners.keys()),
            owner_among(ours.trace.nodes, reference, reference, self.partners.values()),
            lambda watcher: self._score(users, entry, floor, watcher),
            lambda watcher: self._score(users, entry, floor, watcher, own=False),
            self.limit,
            theirs.trace.nodes[port].path,
            ours.trace.nodes[reference].path,
        )

    def _moved(self, divergence: Divergence, users: ParameterUsers) -> Divergence:
        sides = [
            repeater.trace.nodes[calls[0]].site
            for repeater, calls in (
                (self.precise.reference, users.reference),
                (self.precise.port, users.port),
            )
        ]
        return replace(divergence, reference=sides[0], port=sides[1])


def _owned(side: Repeater, module: Any, name: str) -> Iterator[StateTensor]:
    return (each for each in side.backend.state(module) if each.path == name)


def _is_frozen(side: Repeater, path: str) -> bool:
    owner, _, name = path.rpartition(".")
    found = list(_owned(side, side.modules[owner], name)) if owner in side.modules else []
    return bool(found) and not any(each.trainable for each in found)


def _thawing(side: Repeater, call: int, path: str) -> Callable[[Any], None]:
    """Makes the parameter trainable in the twin of its owner, or of an enclosing module."""
    outer = side.trace.nodes[call].path
    name = path.removeprefix(f"{outer}.") if outer else path

    def thaw(twin: Any) -> None:
        for each in _owned(side, twin, name):
            side.backend.require_grad(each.value)

    return thaw


def _watched(
    repeater: Repeater, calls: Sequence[int], path: str, precise: NoiseFloors, watcher: Any
) -> Array | None:
    repeated = repeater.repeat(calls, None, precise.recorded, on_op=watcher, listener=watcher)
    return repeated.parameters.get(path)


def _judged(ours: Array | None, theirs: Array | None, entry: Entry, floor: Size) -> float:
    if ours is None or theirs is None:
        present = theirs if ours is None else ours
        return 0.0 if present is None or not np.any(present) else math.inf
    expected, observed = _seen(ours, theirs, entry)
    scale = size_of(expected) * coarser(observed.dtype.name, expected.dtype.name)
    return score(difference(observed, expected), floor | scale)


def _seen(ours: Array, theirs: Array, entry: Entry) -> tuple[Array, Array]:
    return views.apply(entry.source_view, ours), views.apply(entry.target_view, theirs)


def _relations(
    what: str, entry: Entry, floor: Size, gradients: tuple[Array | None, Array | None], limit: float
) -> Iterator[ProvenChange]:
    """How the two gradients are related numerically: a factor, or a clip."""
    ours, theirs = gradients
    if ours is None or theirs is None:
        return
    expected, observed = _seen(ours, theirs, entry)
    factor = factor_between(observed, expected)
    if factor is not None:
        factor = rounded(factor)
        left = score(difference(observed / observed.dtype.type(factor), expected), floor)
        if left <= limit:
            whole = factor > 1 and factor == int(factor)
            code = "grad.accumulated" if whole else "grad.scale"
            fix = phrase("look for what is added up twice") if whole else phrase("look for what scales it")
            message = phrase("{what} is {factor} times the reference's", what=what, factor=number(factor))
            yield ProvenChange(
                code, message, fix, left, facts=("parameter", number(factor)), way=ProvenBy.RELATED
            )
            return
    bounds = clip_bounds(observed, expected)
    if bounds is not None:
        left = score(difference(np.clip(expected, observed.min(), observed.max()), observed), floor)
        if left <= limit:
            message, fix = (
                phrase("{what} is clipped to {bounds}", what=what, bounds=bounds),
                phrase("look for what clips it"),
            )
            yield ProvenChange(
                "grad.clip", message, fix, left, facts=("parameter", str(bounds)), way=ProvenBy.RELATED
            )
