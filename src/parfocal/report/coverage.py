"""What a comparison looked at, and what it did not and why: part of every verdict.

Both are lists of plain facts, so that they serve a comparison of calls as well as one of schedules or data.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from parfocal.brief import some
from parfocal.phrases import phrase

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


@dataclass(frozen=True, slots=True)
class Noun:
    """What is counted, as it is told of one and of several."""

    one: str
    many: str


NOUNS = {
    str(noun.many): noun
    for noun in (
        Noun(phrase("batch"), phrase("batches")),
        Noun(phrase("buffer"), phrase("buffers")),
        Noun(phrase("buffer at the start"), phrase("buffers at the start")),
        Noun(phrase("call"), phrase("calls")),
        Noun(phrase("entering gradient"), phrase("entering gradients")),
        Noun(phrase("field"), phrase("fields")),
        Noun(phrase("gradient"), phrase("gradients")),
        Noun(phrase("gradient norm"), phrase("gradient norms")),
        Noun(phrase("hard case"), phrase("hard cases")),
        Noun(phrase("input of the model"), phrase("inputs of the model")),
        Noun(phrase("learning rate"), phrase("learning rates")),
        Noun(phrase("logged value"), phrase("logged values")),
        Noun(phrase("loss"), phrase("losses")),
        Noun(phrase("metric"), phrase("metrics")),
        Noun(phrase("optimizer slot"), phrase("optimizer slots")),
        Noun(phrase("output"), phrase("outputs")),
        Noun(phrase("parameter"), phrase("parameters")),
        Noun(phrase("parameter gradient"), phrase("parameter gradients")),
        Noun(phrase("rank with the others"), phrase("ranks with each other")),
        Noun(phrase("result"), phrase("results")),
        Noun(phrase("sample"), phrase("samples")),
        Noun(phrase("seed"), phrase("seeds")),
        Noun(phrase("settings of modules"), phrase("settings of modules")),
        Noun(phrase("step"), phrase("steps")),
        Noun(phrase("step run freely"), phrase("steps run freely")),
        Noun(
            phrase("update made again by the reference's rule"),
            phrase("updates made again by the reference's rule"),
        ),
        Noun(phrase("tensor"), phrase("tensors")),
        Noun(phrase("updates of parameters"), phrase("updates of parameters")),
        Noun(phrase("value"), phrase("values")),
    )
}

_WORDS = {
    Reason.ONLY_REFERENCE: phrase("only the reference has it"),
    Reason.ONLY_PORT: phrase("only the port has it"),
    Reason.MISSING: phrase("missing"),
    Reason.UNPAIRED: phrase("without a partner"),
    Reason.UNSEEN: phrase("could not be observed"),
    Reason.IGNORED: phrase("ignored"),
    Reason.NOT_ASKED: phrase("not asked for"),
    Reason.NO_VALUES: phrase("no values on either side"),
    Reason.IMPOSSIBLE: phrase("not possible"),
}


def words_of(left: LeftOut) -> str:
    """What was left out and why: ``optimizer state (only the reference has it)``."""
    reason = left.detail or _WORDS[left.reason]
    if not left.where:
        return phrase("{what} ({reason})", what=left.what, reason=reason)
    where = some(left.where, SHOWN)
    return phrase("{what} of {where} ({reason})", what=left.what, where=where, reason=reason)


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
