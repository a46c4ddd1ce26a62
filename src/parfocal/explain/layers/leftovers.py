"""Why weights have no counterpart: their layer was made in another size, or one side lacks them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Backend
from parfocal.backends.vocabulary import family
from parfocal.errors import ParfocalError
from parfocal.explain.causes import PortLine, code_of, said, spelled_path, two_values
from parfocal.judge.verdict import Cause, Claim, Divergence, Grounds, InheritanceReason, ProvenBy
from parfocal.phrases import joined, phrase
from parfocal.weights.plan import Entry
from parfocal.weights.settings import differing_names
from parfocal.weights.transfer import transfer

Modules = tuple[Backend, Mapping[str, Any]]  # of one side, by path


def explained_leftovers(
    divergences: Iterable[Divergence],
    reference: Modules,
    port: Modules,
    entries: Iterable[Entry] = (),
    ambiguous: Collection[str] = (),
) -> tuple[list[Divergence], frozenset[str]]:
    """Each with its cause, and the layers that were made otherwise: what is wrong in those follows.

    Where one layer is to blame for several, the first has the cause and the rest follow. ``entries``: weights
    that do have a counterpart. ``ambiguous``: of the port, which could have several.
    """
    partners = {owner_of(entry.target): owner_of(entry.source) for entry in entries}
    known: set[str] = set()
    explained: list[Divergence] = []
    for each in divergences:
        site = each.port or each.reference
        owners = [] if site is None else list(_around(site.path))
        if any(owner in known for owner in owners):
            explained.append(replace(each, inherited=True, reason=InheritanceReason.MADE_OTHERWISE))
            continue
        found = next(((o, c) for o in owners if (c := _made_otherwise(o, reference, port))), None)
        if found is None and each.port is not None and owner_of(each.port.path) in partners:
            owner = owner_of(each.port.path)
            kind = _another_kind(owner, partners[owner], reference, port)
            found = None if kind is None else (owner, kind)
        if found is not None:
            known.add(found[0])
        alone = None if each.port is not None and each.port.path in ambiguous else _without_counterpart(each)
        explained.append(replace(each, cause=alone if found is None else found[1]))
    return sorted(explained, key=lambda each: each.inherited), frozenset(known)


def _around(path: str) -> Iterator[str]:
    """The modules that a tensor is in, the outermost first."""
    parts = path.split(".")[:-1]
    yield from (".".join(parts[:depth]) for depth in range(len(parts) + 1))


def _made_otherwise(path: str, reference: Modules, port: Modules) -> Cause | None:
    """The port's layer of that path, made with the reference's settings, has a place for all its weights."""
    (backend, modules), (builder, others) = reference, port
    ours, theirs = modules.get(path), others.get(path)
    if ours is None or theirs is None or not isinstance(builder, LayerBuilder):
        return None
    kind = builder.kind(theirs)
    if not builder.can_build(theirs) or family(kind) != family(backend.kind(ours)):
        return None
    right, wrong = backend.settings(ours), builder.settings(theirs)
    names = differing_names(right, wrong)
    settings = {**wrong, **{name: right[name] for name in names}}
    try:
        if not names or not (plan := transfer(ours, builder.layer(kind, settings))).complete:
            return None
        line = builder.spell(kind, settings, names)
    except ParfocalError:
        return None  # it cannot be made so, or the weights do not fit all the same
    values = joined("; ", (two_values(name, right[name], wrong[name]) for name in names))
    message, fix = (
        phrase("{values} ({kind} {path})", values=values, kind=kind, path=path),
        PortLine.layer(path, line),
    )
    facts = (kind, *(fact for n in names for fact in (n, said(right[n]), said(wrong[n]))))
    left = len((*plan.unmatched_reference, *plan.unmatched_port, *plan.ambiguous))
    # weights without a place: now as many as it takes, none in the layer made anew
    return Claim(code_of(names[0], kind), message, fix, facts).proven(
        ProvenBy.RECOMPUTED, math.inf, float(left)
    )


def _another_kind(path: str, partner: str, reference: Modules, port: Modules) -> Cause | None:
    """The port's layer has more to keep because it is one of another kind."""
    (backend, modules), (builder, others) = reference, port
    ours, theirs = backend.kind(modules[partner]), builder.kind(others[path])
    known = backend.settings(modules[partner]) and builder.settings(others[path])
    if not known or family(ours) == family(theirs):
        return None
    message = phrase(
        "{path} is {reference} in the reference, {port} in the port", path=path, reference=ours, port=theirs
    )
    fix = phrase(
        "make {spelled_path} a {ours} as {partner} is in the reference",
        spelled_path=spelled_path(path),
        ours=ours,
        partner=partner,
    )
    if backend.is_framework_layer(modules[partner]) and isinstance(builder, LayerBuilder):
        try:
            line = builder.spell(ours, backend.settings(modules[partner]))
            claim = Claim("op.kind", message, PortLine.layer(path, line), (ours, theirs, line))
            return claim.likely(Grounds.STRUCTURE)
        except ParfocalError:
            pass  # the port's framework has none: said in words
    return Claim("op.kind", message, fix, (ours, theirs)).likely(Grounds.STRUCTURE)


def owner_of(path: str) -> str:
    return path.rpartition(".")[0]


def _without_counterpart(divergence: Divergence) -> Cause | None:
    message = phrase("{what}: {message}", what=divergence.what, message=divergence.message)
    if divergence.port is None and divergence.reference is not None:
        fix = phrase("give the port what {path} of the reference is for", path=divergence.reference.path)
        return Claim("weight.missing", message, fix).likely(Grounds.STRUCTURE)
    if divergence.reference is None and divergence.port is not None:
        fix = phrase(
            "leave {spelled_path} out, or give it to the reference too",
            spelled_path=spelled_path(divergence.port.path),
        )
        return Claim("weight.extra", message, fix).likely(Grounds.STRUCTURE)
    return None
