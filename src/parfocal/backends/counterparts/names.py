"""Functions, optimizers, schedules, initialisers and tools that correspond.

The names stand in ``parfocal/data/counterparts.toml``; a new one is a word or a line there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from parfocal import data
from parfocal.backends.counterparts.entry import ArgumentPair, Category, Counterpart, Relation
from parfocal.backends.vocabulary.meanings import Meaning, Vocabulary, meanings_of
from parfocal.data import Text


@dataclass(frozen=True, slots=True)
class _Related:
    """How one argument is related in all of these names."""

    of: tuple[str, ...]
    torch: str
    paddle: str
    relation: Relation
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Names that correspond, in the home of each framework; without a home they are whole names."""

    category: Category
    torch: str = ""
    paddle: str = ""
    meanings: Vocabulary | None = None
    exact: bool = True
    same: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    related: tuple[_Related, ...] = ()

    def entries(self) -> Iterator[Counterpart]:
        known = meanings_of(self.meanings) if self.meanings else {}
        for ours, theirs in (*zip(self.same, self.same, strict=True), *self.renamed.items()):
            yield Counterpart(
                self.category,
                _inside(self.torch, ours),
                _inside(self.paddle, theirs),
                known.get(theirs, known.get(ours.rpartition(".")[2])),
                arguments=tuple(self._arguments(ours)),
                exact=self.exact,
            )

    def _arguments(self, name: str) -> Iterator[ArgumentPair]:
        for ours, theirs in self.arguments.get(name, {}).items():
            yield ArgumentPair(ours, theirs)
        for each in self.related:
            if name in each.of:
                yield ArgumentPair(each.torch, each.paddle, each.relation, each.values)


@dataclass(frozen=True, slots=True)
class _Lone:
    """Names that only one side has."""

    category: Category
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """``instead``: what to write where the other side has no such name.

    ``translations``: what paddle calls an argument of torch, where both signatures have it.
    """

    group: tuple[_Group, ...]
    lone: tuple[_Lone, ...]
    instead: Mapping[str, Text]
    translations: Mapping[str, tuple[str, ...]]

    def entries(self) -> Iterator[Counterpart]:
        for group in self.group:
            yield from group.entries()
        for lone in self.lone:
            yield from (self.alone(lone.category, name) for name in lone.names)

    def alone(
        self, category: Category, name: str, meaning: Meaning | None = None, kind: str | None = None
    ) -> Counterpart:
        """Something that only one side has."""
        ours, theirs = (None, name) if name.startswith("paddle.") else (name, None)
        return Counterpart(category, ours, theirs, meaning, kind, instead=self.instead.get(name))


@lru_cache
def names() -> Names:
    return data.read(Names, "counterparts.toml")


def _inside(home: str, name: str) -> str:
    return f"{home}.{name}" if home else name
