"""What each common kind of module, functional op and optimizer is for, in a line of either language.

The lines stand in ``parfocal/data/meanings.toml``. A name that is not there is no common one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from parfocal import data


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name means. A formula is the same in every language: it has no Chinese words."""

    english: str
    chinese: str = ""

    def words(self, language: str) -> str:
        return self.chinese if language == "zh" and self.chinese else self.english

    def at(self, rank: int) -> Meaning:
        """The same over so many axes."""
        return Meaning(f"{self.english}, {rank} axes", f"{self.chinese}，{rank} 个轴")


class Vocabulary(Enum):
    """What names are of, whose meanings are asked for by data."""

    OP = "op"
    OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True)
class _Meanings:
    ranked: Mapping[str, Meaning]
    kind: Mapping[str, Meaning]
    op: Mapping[str, Meaning]
    optimizer: Mapping[str, Meaning]


@lru_cache
def _read() -> _Meanings:
    return data.read(_Meanings, "meanings.toml")


@lru_cache
def kinds_of_layers() -> Mapping[str, Meaning]:
    """Every common kind of module; ``Conv`` of the file is three of them."""
    ranked = {
        f"{name}{rank}d": meaning.at(rank) for name, meaning in _read().ranked.items() for rank in (1, 2, 3)
    }
    return {**ranked, **_read().kind}


def functional_ops() -> Mapping[str, Meaning]:
    return _read().op


def optimizers() -> Mapping[str, Meaning]:
    return _read().optimizer


def meanings_of(names: Vocabulary) -> Mapping[str, Meaning]:
    return functional_ops() if names is Vocabulary.OP else optimizers()
