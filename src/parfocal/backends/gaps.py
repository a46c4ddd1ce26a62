"""What torch and paddle do differently, as a table: one entry a difference, one file a family.

The facts stand in ``parfocal/data/gaps`` and hold for torch 2.13 and paddle 3.3 on a CPU. A new difference is
one entry in the file of its family and, where it can be run, one check in ``tests/pairs/gaps``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from parfocal import data


class Family(Enum):
    """What a difference is about: the name of its file, in the order of the page."""

    PARAMETERS = "parameters"
    NORMALISATION = "normalisation"
    WINDOWS = "windows"
    ACTIVATIONS = "activations"
    LOSSES = "losses"
    SEQUENCES = "sequences"
    INITIALISATION = "initialisation"
    OPTIMIZERS = "optimizers"
    SCHEDULES = "schedules"
    TENSORS = "tensors"
    DATA = "data"


class Status(Enum):
    """How a difference is known."""

    VERIFIED = "verified"  # both frameworks were run and gave what is stated
    READ = "read"  # from signatures, documentation or reports alone


class Symptom(Enum):
    """Where a difference shows."""

    LOADING = "loading"
    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"
    TRAINING = "training"
    EVALUATION = "evaluation after training"
    DATA = "data"
    METRIC = "metric"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences of one language. ``seen`` is what one sees, ``fix`` what to write."""

    title: str
    torch: str
    paddle: str
    seen: str
    fix: str


@dataclass(frozen=True, slots=True)
class Gap:
    """One difference. ``id`` is stable: entries are added, none is renamed.

    ``torch`` and ``paddle`` are the dotted names it concerns. ``absent`` lists those of them that the
    other framework has no counterpart of.
    """

    id: str
    status: Status
    symptoms: tuple[Symptom, ...]
    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    english: Wording
    chinese: Wording
    absent: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of both frameworks."""
        return (*self.torch, *self.paddle)

    def words(self, language: str = "en") -> Wording:
        """The sentences in a language."""
        return self.chinese if language == "zh" else self.english


@dataclass(frozen=True, slots=True)
class _FamilyFile:
    gap: tuple[Gap, ...]


@lru_cache
def families() -> Mapping[Family, tuple[Gap, ...]]:
    """Every difference, by what it is about."""
    found = {family: data.read(_FamilyFile, f"gaps/{family.value}.toml").gap for family in Family}
    data.check_unique((gap.id for entries in found.values() for gap in entries), "gaps")
    return found


def gaps() -> list[Gap]:
    """Every difference, in the order of the page."""
    return [gap for entries in families().values() for gap in entries]


def gaps_of(*names: str) -> list[Gap]:
    """The differences that concern any of these dotted names, in the order of the page."""
    return [gap for gap in gaps() if not set(gap.names).isdisjoint(names)]
