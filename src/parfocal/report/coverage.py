"""What a comparison looked at, and what it did not and why: part of every verdict.

Both are lists of plain facts, so that they serve a comparison of calls as well as one of schedules or data.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from parfocal.brief import some

SHOWN = 3  # of the places where something was left out


class Reason(Enum):
    """Why something was not compared."""

    ONLY_REFERENCE = "only_reference"  # the other side has nothing to compare it with
    ONLY_PORT = "only_port"
    MISSING = "missing"  # neither side has it, or ``detail`` says which does not
    UNPAIRED = "unpaired"  # nothing on the other side stands for it
    UNSEEN = "unseen"  # it exists and could not be observed
    IGNORED = "ignored"  # the caller said so
    NOT_ASKED = "not_asked"  # an argument of the call left it out
    NO_VALUES = "no_values"  # there is nothing to compare: no tensor, no gradient on either side
    IMPOSSIBLE = "impossible"  # ``detail`` says what stood against it


@dataclass(frozen=True, slots=True)
class Compared:
    """So many things of a kind were compared, of so many that there are."""

    what: str  # a plural noun: "calls", "parameter gradients"
    count: int
    of: int | None = None  # None: there is no number to hold it against


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was not compared."""

    what: str  # with its number, as it is told: "2 calls of the port", "optimizer state"
    reason: Reason
    detail: str = ""  # a few words that the reason alone does not say
    where: tuple[str, ...] = ()  # paths or names


_WORDS = {
    Reason.ONLY_REFERENCE: "only the reference has it",
    Reason.ONLY_PORT: "only the port has it",
    Reason.MISSING: "missing",
    Reason.UNPAIRED: "without a partner",
    Reason.UNSEEN: "could not be observed",
    Reason.IGNORED: "ignored",
    Reason.NOT_ASKED: "not asked for",
    Reason.NO_VALUES: "no values on either side",
    Reason.IMPOSSIBLE: "not possible",
}


def words_of(left: LeftOut) -> str:
    """What was left out and why: ``optimizer state (only the reference has it)``."""
    where = f" of {some(left.where, SHOWN)}" if left.where else ""
    return f"{left.what}{where} ({left.detail or _WORDS[left.reason]})"


@dataclass(frozen=True, slots=True)
class Coverage:
    """All that was compared and all that was not."""

    compared: tuple[Compared, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    directions: tuple[str, ...] = ()  # of calls: "forward", "backward"
    mode: str = ""  # of the models; not known of recorded runs

    @property
    def empty(self) -> bool:
        return not any(each.count for each in self.compared)

    def count(self, what: str) -> int:
        """How many of a kind were compared."""
        return sum(each.count for each in self.compared if each.what == what)

    def of(self, what: str) -> int:
        """How many of a kind there are, as far as that is known."""
        return sum(each.of or 0 for each in self.compared if each.what == what)


def joined(parts: tuple[Coverage, ...]) -> Coverage:
    """The coverage of several comparisons together, such as the steps of a run."""
    kinds = dict.fromkeys(each.what for part in parts for each in part.compared)
    return Coverage(
        tuple(
            Compared(
                kind,
                sum(part.count(kind) for part in parts),
                sum(part.of(kind) for part in parts) or None,
            )
            for kind in kinds
        ),
        tuple(dict.fromkeys(each for part in parts for each in part.left_out)),
        max((part.directions for part in parts), key=len, default=()),
        next((part.mode for part in parts if part.mode), ""),
    )
