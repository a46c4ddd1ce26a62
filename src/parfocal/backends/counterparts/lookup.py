"""Finds what a name of either framework corresponds to, and sets the two side by side."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from parfocal.backends import registry
from parfocal.backends.counterparts.entry import ArgumentPair, Category, Counterpart, Relation
from parfocal.backends.counterparts.layers import layers
from parfocal.backends.counterparts.names import names
from parfocal.backends.counterparts.parameters import PARAMETERS, ParameterCounterpart
from parfocal.backends.counterparts.signatures import PACKAGES, signature_of
from parfocal.backends.gaps import Gap, gaps_of
from parfocal.errors import InputError
from parfocal.phrases import joined, phrase

FRAMEWORKS = ("torch", "paddle")
SUGGESTED = 5
# What concerns every optimizer or schedule is filed under their base classes.
BASES = {
    Category.OPTIMIZER: ("torch.optim.Optimizer", "paddle.optimizer.Optimizer"),
    Category.SCHEDULER: ("torch.optim.lr_scheduler.LRScheduler", "paddle.optimizer.lr.LRScheduler"),
}
# How people shorten the homes of names; beginnings that are left out need no entry.
SHORT = {"F": "nn.functional"}
# Where classes are defined: what ``repr`` and tracebacks show. The file's name comes behind it.
DEFINED = {"torch.nn.modules": "torch.nn", "paddle.nn.layer": "paddle.nn"}


@dataclass(frozen=True, slots=True)
class ArgumentSide:
    """One argument of one side. ``default`` is None where it must be given or is not known."""

    name: str
    default: str | None


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    torch: ArgumentSide | None
    paddle: ArgumentSide | None
    relation: Relation
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """One counterpart with everything that is known of the pair.

    ``missing``: frameworks that are not installed, so that their arguments and defaults are not known.
    """

    counterpart: Counterpart
    source: str  # the framework of the name that was asked for
    arguments: tuple[ArgumentRow, ...]
    parameters: tuple[ParameterCounterpart, ...]
    gaps: tuple[Gap, ...]
    missing: tuple[str, ...]

    @property
    def name(self) -> str:
        found = self.counterpart.name(self.source)
        assert found is not None
        return found

    @property
    def target(self) -> str:
        return "paddle" if self.source == "torch" else "torch"


@cache
def catalogue() -> tuple[Counterpart, ...]:
    """Everything the tables know."""
    return (*layers(), *names().entries())


def find(name: str, to: str | None = None) -> list[Match]:
    """What a name corresponds to; ``to``: the framework wanted, for a name that both have."""
    if to is not None and to not in FRAMEWORKS:
        raise InputError(
            phrase("there is no framework {to} to map to", to=repr(to)),
            hint=joined(" or ", (f"--to {each}" for each in FRAMEWORKS)),
        )
    root = name.partition(".")[0]
    root = PACKAGES.get(root, root)
    if root in FRAMEWORKS and to == root:
        raise InputError(
            phrase("{name} is a name of {root} already", name=name, root=root),
            hint=f"--to {_other(root)}",
        )
    sources = [root] if root in FRAMEWORKS else [_other(to)] if to else list(FRAMEWORKS)
    wanted = _public(name)
    for fits in (_fits, _fits_any_case):
        for source in sources:
            entries = [each for each in catalogue() if fits(each.name(source), wanted)]
            if entries:
                exact = [each for each in entries if each.exact]
                return [_match(each, source) for each in exact or entries]
    raise InputError(
        phrase("{name} is in no table of {sources}", name=name, sources=joined(" or ", sources)),
        hint=_suggestion(name, sources),
    )


def also_known(name: str, to: str | None) -> bool:
    """Whether a name without its framework means something else in paddle than in torch."""
    if to is not None or name.partition(".")[0] in FRAMEWORKS:
        return False
    sides = [{each for each in catalogue() if _fits(each.name(source), name)} for source in FRAMEWORKS]
    return bool(sides[0]) and bool(sides[1]) and sides[0] != sides[1]


def _other(framework: str) -> str:
    return "paddle" if framework == "torch" else "torch"


def _fits(full: str | None, name: str) -> bool:
    if full is None:
        return False
    head, dot, rest = name.partition(".")
    written = f"{SHORT[head]}.{rest}" if dot and head in SHORT else name
    return full == written or full.endswith(f".{written}")


def _fits_any_case(full: str | None, name: str) -> bool:
    return full is not None and _fits(full.lower(), name.lower())


def _public(name: str) -> str:
    """The name that users write, for a class that is named by the file which defines it."""
    for home, public in DEFINED.items():
        inside = name.removeprefix(f"{home}.")
        if inside != name and "." in inside:
            return f"{public}.{inside.rpartition('.')[2]}"
    return name


def _suggestion(name: str, sources: list[str]) -> str:
    """The nearest known names, by their last part and by the whole."""
    known = list(dict.fromkeys(full for each in catalogue() for s in sources if (full := each.name(s))))
    last = {full: full.rpartition(".")[2].lower() for full in known}
    wanted = name.rpartition(".")[2].lower()
    near = difflib.get_close_matches(wanted, sorted(set(last.values())), SUGGESTED, 0.6)
    found = [full for part in near for full in known if last[full] == part][:SUGGESTED]
    if not found:
        return phrase("parfocal map torch.nn.Linear shows an example")
    return phrase("nearest names: {names}", names=joined(", ", found))


def _match(entry: Counterpart, source: str) -> Match:
    names = [name for name in (entry.torch, entry.paddle) if name is not None]
    packages = [each for each in PACKAGES if any(name.startswith(f"{each}.") for name in names)]
    missing = (
        *(name for name in FRAMEWORKS if name not in registry.available()),
        *(name for name in packages if importlib.util.find_spec(name) is None),
    )
    return Match(
        entry,
        source,
        tuple(_arguments(entry)),
        PARAMETERS.get(entry.kind or "", ()) if entry.torch and entry.paddle else (),
        tuple(gaps_of(*names, *BASES.get(entry.category, ()))),
        missing,
    )


def _arguments(entry: Counterpart) -> list[ArgumentRow]:
    known = [signature_of(name) if name else None for name in (entry.torch, entry.paddle)]
    ours, theirs = known[0] or {}, known[1] or {}
    if not (entry.torch and entry.paddle):
        return _lone_rows(ours, theirs, set(), set())
    listed = {(pair.torch, pair.paddle): pair for pair in reversed(entry.arguments)}  # the first of equals
    told = [_row(pair, ours, theirs) for pair in reversed(listed.values()) if _exists(pair, ours, theirs)]
    translations = names().translations
    used = _names(told, "torch"), _names(told, "paddle")
    for name, default in ours.items():
        if name not in used[0]:
            candidates = (*translations.get(name, ()), name)
            partner = next((each for each in candidates if each in theirs and each not in used[1]), None)
            if partner is not None:
                told.append(
                    ArgumentRow(
                        ArgumentSide(name, default), ArgumentSide(partner, theirs[partner]), Relation.SAME
                    )
                )
                used[0].add(name)
                used[1].add(partner)
    order = list(ours)
    told.sort(
        key=lambda row: order.index(row.torch.name) if row.torch and row.torch.name in order else len(order)
    )
    # nothing is said to be on one side only where the other side's arguments are not known
    return [*told, *(_lone_rows(ours, theirs, *used) if None not in known else ())]


def _lone_rows(ours: Mapping[str, Any], theirs: Mapping[str, Any], *used: set[str]) -> list[ArgumentRow]:
    return [
        *(
            ArgumentRow(ArgumentSide(name, default), None, Relation.ONE_SIDED)
            for name, default in ours.items()
            if name not in used[0]
        ),
        *(
            ArgumentRow(None, ArgumentSide(name, default), Relation.ONE_SIDED)
            for name, default in theirs.items()
            if name not in used[1]
        ),
    ]


def _exists(pair: ArgumentPair, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Tables may know an argument that the installed version has under no such name."""
    sides = (pair.torch, ours), (pair.paddle, theirs)
    return all(
        name is None or not known or all(part in known for part in name.split(", ")) for name, known in sides
    )


def _row(pair: ArgumentPair, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> ArgumentRow:
    return ArgumentRow(_side(pair.torch, ours), _side(pair.paddle, theirs), pair.relation, pair.values)


def _side(name: str | None, known: Mapping[str, Any]) -> ArgumentSide | None:
    if name is None:
        return None
    defaults = [known.get(part) for part in name.split(", ")]
    return ArgumentSide(name, ", ".join(each for each in defaults if each is not None) or None)


def _names(rows: list[ArgumentRow], framework: str) -> set[str]:
    sides = [row.torch if framework == "torch" else row.paddle for row in rows]
    return {part for side in sides if side is not None for part in side.name.split(", ")}
