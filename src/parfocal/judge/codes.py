"""The register of cause codes: what each means, what one sees, how it is proved and what to write.

The facts stand in ``parfocal/data/codes.toml``. ``Cause`` refuses a code that is not there, the tests hold
every cause that they bring about against it, and the page of codes in the documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from parfocal import data
from parfocal.data import Text


class ProvenBy(Enum):
    """How a cause was proven."""

    REPLAYED = "replayed"  # the port's code was run again with the cause removed
    RECOMPUTED = "recomputed"  # the port's numbers were computed again with the cause removed
    RELATED = "related"  # the cause, applied to the reference's values, makes the port's


class Grounds(Enum):
    """What a likely cause rests on: nothing was run or computed with it removed."""

    SETTINGS = "settings"  # what both sides say of themselves
    STRUCTURE = "structure"  # which layers and weights there are
    CODE = "code"  # which ops both sides ran
    VALUES = "values"  # what the values look like
    NOT_SAID = "not said"  # in a report from a version that did not tell the two apart


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake. A code that only findings have, and no cause, is neither proven nor likely."""

    phases: tuple[str, ...]  # of the divergences it explains
    proof: str  # the name of the words that say how it is shown to be the cause
    meaning: Text
    example: Text
    symptom: Text
    fix: Text
    proven: tuple[ProvenBy, ...] = ()
    likely: tuple[Grounds, ...] = ()  # what those causes rest on that are only likely


@dataclass(frozen=True, slots=True)
class _Register:
    proof: Mapping[str, Text]
    code: Mapping[str, Code]


@lru_cache
def _register() -> _Register:
    return data.read(_Register, "codes.toml")


def codes() -> Mapping[str, Code]:
    """Every code that a cause can have. They are stable: more are added, none is renamed."""
    return _register().code


def proofs() -> Mapping[str, Text]:
    """How causes are proved, by the name that codes use."""
    return _register().proof
