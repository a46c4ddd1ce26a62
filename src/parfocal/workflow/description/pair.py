"""The trees of a reference and its port side by side: which module is which, without a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from parfocal.attribution.sides import ModelSide
from parfocal.backends.protocol import Mode
from parfocal.backends.vocabulary.kinds import family
from parfocal.errors import InputError, TransferError
from parfocal.judge.moments import Fingerprint
from parfocal.matching.anchors import anchors_of, splits_of
from parfocal.matching.pairing import pair_calls
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, TensorData, Trace, Value
from parfocal.weights.settings import differing_names
from parfocal.weights.transfer import transfer
from parfocal.workflow.description.model import (
    ModelDescription,
    ModuleDescription,
    description_of,
    make_player,
    run_watched,
)
from parfocal.workflow.state import weights_kept

Copies = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """One line: a module of the reference, of the port, or both.

    ``why``: what paired them. ``part``: the reference's module stands on another line too, because several
    of the port's do its work. ``settings``: names of the settings in which the two differ.
    """

    reference: ModuleDescription | None
    port: ModuleDescription | None
    why: str = ""
    part: bool = False
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Partner:
    """A module of the port, and what paired it. ``whole`` is False where it does a part of the work."""

    path: str
    why: str
    whole: bool


@dataclass(frozen=True, slots=True)
class PairDescription:
    reference: ModelDescription
    port: ModelDescription
    lines: tuple[SideBySide, ...]
    weights_agree: bool  # every weight has a counterpart


def describe_pair(reference: Any, port: Any, inputs: Any = None, *, mode: Mode = "eval") -> PairDescription:
    """Both trees, with the modules that correspond on one line.

    The reference's weights are in the port while the two are matched, and the port's own afterwards.
    """
    if reference is port:
        raise InputError(
            phrase("a model beside itself shows nothing"), hint=phrase("name two models, or one")
        )
    players = make_player("reference", reference, inputs), make_player("port", port, inputs)
    with _weights_lent(*players, inputs) as (copies, complete):
        traces = _trace(players[0], inputs, mode), _trace(players[1], inputs, mode)
    found = _module_pairs(*traces, copies)
    if not complete:  # sizes may be others all along: what is left goes by the place in the tree
        _add(found, _module_pairs(_defined(players[0]), _defined(players[1]), copies))
    ran = inputs is not None
    ours, theirs = (
        description_of(player, trace if ran else None) for player, trace in zip(players, traces, strict=True)
    )
    return PairDescription(ours, theirs, tuple(_lines(ours, theirs, found)), complete)


@contextmanager
def _weights_lent(reference: ModelSide, port: ModelSide, inputs: Any) -> Iterator[tuple[Copies, bool]]:
    """The port with the reference's weights for a while; yields which went where, and whether these are all.

    Where weights have no counterpart, kinds and order have to do.
    """
    with weights_kept(port):
        try:
            plan, complete = transfer(reference.model, port.model), True
        except TransferError:
            plan, complete = transfer(reference.model, port.model, inputs, partial=True), False
        yield [(entry.source, entry.target) for entry in plan.entries], complete


def _trace(player: ModelSide, inputs: Any, mode: Mode) -> Trace:
    return _defined(player) if inputs is None else run_watched(player, mode)


def _defined(player: ModelSide) -> Trace:
    """The modules as if each was called once, in the order of definition, with unknown values."""
    backend, trace, orders = player.backend, Trace(), dict[str, int]()
    given = Value(_unknown())  # the same for all: which module takes what another gives is not known
    for order, (path, module) in enumerate(backend.modules(player.model).items()):
        parent = _parent(path, orders)
        node = Node(
            order=order,
            parent=parent,
            depth=0 if parent is None else trace.nodes[parent].depth + 1,
            path=path,
            kind=backend.kind(module),
            class_name=type(module).__name__,
            framework_layer=backend.is_framework_layer(module),
            occurrence=0,
            settings=backend.settings(module),
            training=False,
            in_place=False,
            file=None,
            line=None,
            inputs={"0": given},
            outputs={"0": Value(_unknown())},
        )
        trace.nodes.append(node)
        orders[path] = order
        if parent is not None:
            trace.nodes[parent].children.append(order)
    for node in reversed(trace.nodes):
        node.finished = max([node.order + 1, *(trace.nodes[child].finished for child in node.children)])
    return trace


def _unknown() -> TensorData:
    """Values that equal no others, so that nothing is paired by them."""
    nothing = float("nan")
    return TensorData((), "float32", Fingerprint(1, nothing, nothing, nothing, nothing, None, None), None)


def _parent(path: str, orders: dict[str, int]) -> int | None:
    """The nearest module around it."""
    while path:
        path = path.rpartition(".")[0]
        if path in orders:
            return orders[path]
    return None


def _module_pairs(reference: Trace, port: Trace, copies: Copies) -> dict[str, list[Partner]]:
    """Path of the reference's module -> its partners in the port; a module of the port once."""
    anchors = anchors_of(copies)
    found: dict[str, list[Partner]] = {}
    taken: set[str] = set()
    for pair in pair_calls(reference, port, anchors, None, splits_of(copies)).pairs:
        ours, theirs = reference.nodes[pair.reference].path, port.nodes[pair.port].path
        known = ours in found and pair.whole  # another call of a module that has its partner
        if theirs not in taken and not known:
            taken.add(theirs)
            found.setdefault(ours, []).append(Partner(theirs, pair.why.words, pair.whole))
    called = [{node.path for node in trace.nodes} for trace in (reference, port)]
    for anchor in anchors:  # lists of modules are never called: what they hold says which is which
        left = [path for path in anchor.reference if path not in found]
        others = [path for path in anchor.port if path not in taken]
        for ours, theirs in zip(left, others, strict=False):
            if ours not in called[0] or theirs not in called[1]:
                taken.add(theirs)
                found[ours] = [Partner(theirs, "weights", whole=True)]
    return found


def _add(found: dict[str, list[Partner]], more: Mapping[str, list[Partner]]) -> None:
    """Pairs of modules that have no partner yet."""
    taken = {partner.path for partners in found.values() for partner in partners}
    for ours, partners in more.items():
        if ours not in found and partners[0].path not in taken:
            found[ours] = partners[:1]
            taken.add(partners[0].path)


def _lines(
    reference: ModelDescription, port: ModelDescription, pairs: dict[str, list[Partner]]
) -> Iterator[SideBySide]:
    """The reference's tree in its order; what only the port has stands before what follows it there."""
    theirs = {each.path: each for each in port.modules}
    paired = {partner.path for partners in pairs.values() for partner in partners}
    waiting = list(theirs)
    for module in reference.modules:
        partners = pairs.get(module.path, [])
        if partners:
            before = waiting[: waiting.index(partners[0].path)]
            for path in (path for path in before if path not in paired):
                waiting.remove(path)
                yield SideBySide(None, theirs[path])
        for number, partner in enumerate(partners):
            waiting.remove(partner.path)
            other = theirs[partner.path]
            settings = _differing(module, other) if partner.whole else ()
            yield SideBySide(module, other, partner.why, part=number > 0, settings=settings)
        if not partners:
            yield SideBySide(module, None)
    yield from (SideBySide(None, theirs[path]) for path in waiting)


def _differing(ours: ModuleDescription, theirs: ModuleDescription) -> tuple[str, ...]:
    if family(ours.kind) != family(theirs.kind):
        return ()
    return tuple(differing_names(ours.settings, theirs.settings))
