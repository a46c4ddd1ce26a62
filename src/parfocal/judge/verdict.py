"""What a comparison of two models can say, as frozen data.

A ``Divergence`` is a difference that rounding does not explain; a ``Finding`` is worth knowing
also when all is well; a ``Cause`` explains a divergence and says whether that was proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from parfocal.judge.codes import Grounds as Grounds
from parfocal.judge.codes import ProvenBy as ProvenBy
from parfocal.judge.codes import codes
from parfocal.judge.floors import Size
from parfocal.judge.metrics import Comparison
from parfocal.phrases import phrase

PHASES = (
    *("weights", "forward", "loss", "backward", "gradient", "optimizer", "buffer"),
    *("lr", "data", "metric", "init"),
)

SIDES = ("reference", "port")
_MODELS = dict(zip(SIDES, (phrase("reference"), phrase("port")), strict=True))
_SIDES = {"input": phrase("input"), "output": phrase("output")}


def made_by_the_code_of(path: str) -> str:
    """Words for an error that no layer made: ``path`` is the module between whose layers it arose."""
    return phrase("made by the code of {path}", path=path) if path else phrase("made by the model's own code")


def side_name(side: str) -> str:
    """``reference`` or ``port``, as part of a sentence."""
    return _MODELS.get(side, side)


def tensor_words(side: str, slot: str) -> str:
    """``output 0``: a tensor of a call; ``side`` is input or output."""
    return phrase("{side} {slot}", side=_SIDES.get(side, side), slot=slot)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a model: the module's path and where in the user's code it was called."""

    path: str
    kind: str
    op: str | None = None
    file: str | None = None
    line: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    order: int | None = field(default=None, compare=False)  # of the call in its run; the place is the same


@dataclass(frozen=True, slots=True)
class Proof:
    """The error before, and with the cause removed, in one unit."""

    way: ProvenBy
    before: float
    after: float


class Edit(Protocol):
    """What a fix changes, for code that makes it: a line of source, or something of the port."""

    @property
    def text(self) -> str: ...


Fix = str | Edit  # what to write: words, or what is known to make it


def fix_text(fix: Fix) -> str:
    return fix if isinstance(fix, str) else fix.text


@dataclass(frozen=True, slots=True)
class Cause:
    """Why two calls differ: proven by ``proof``, or only likely, with what that rests on.

    ``facts``: what the message says without where: the names and both sides' values. A cause whose message
    names no module needs none.
    """

    code: str
    message: str
    fix: str
    proof: Proof | None
    rests_on: Grounds | None = None  # stated if and only if there is no proof
    alternatives: tuple[Cause, ...] = ()
    facts: tuple[str, ...] = ()
    edit: Edit | None = field(default=None, compare=False, repr=False)  # that ``fix`` is the text of

    def __post_init__(self) -> None:
        if self.code not in codes():
            raise ValueError(f"there is no cause code {self.code!r}: add it to parfocal/data/codes.toml")
        if (self.proof is None) == (self.rests_on is None):
            raise TypeError(f"{self.code}: state either how the cause was proven or what it rests on")

    @property
    def score_after(self) -> float | None:
        """The error with the cause removed; None for a cause that is only likely."""
        return None if self.proof is None else self.proof.after

    @property
    def mistake(self) -> tuple[str, ...]:
        """What is wrong, wherever it is: the same for the same mistake in several places."""
        return self.code, *(self.facts or (self.message,))

    def with_fix(self, fix: Fix) -> Cause:
        return replace(self, fix=fix_text(fix), edit=None if isinstance(fix, str) else fix)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a hypothesis says, before it is tested."""

    code: str
    message: str
    fix: Fix
    facts: tuple[str, ...] = ()

    def proven(self, way: ProvenBy, before: float, after: float) -> Cause:
        return self._cause(Proof(way, before, after), None)

    def likely(self, rests_on: Grounds) -> Cause:
        return self._cause(None, rests_on)

    def _cause(self, proof: Proof | None, rests_on: Grounds | None) -> Cause:
        return Cause(self.code, self.message, "", proof, rests_on, facts=self.facts).with_fix(self.fix)

    def judged(self, way: ProvenBy, before: float, after: float, limit: float, otherwise: Grounds) -> Cause:
        """Proven where the error with the cause removed is within the limit, else likely."""
        return self.proven(way, before, after) if after <= limit else self.likely(otherwise)


class InheritanceReason(Enum):
    """Why a divergence is inherited: what it follows from."""

    GUILTY_CALL = "guilty call"  # the call that makes it was told already
    NOT_FED = "not fed"  # a call that could not be given the reference's inputs, after a mistake
    CUT_OFF = "cut off"  # a gradient that another call does not send
    USED_BY_GUILTY = "used by guilty code"  # a gradient that comes from guilty code
    ONE_PIECE = "one piece"  # of code that the sides divide otherwise, and that is guilty
    WEIGHTS = "weights"  # right once the weights are the reference's
    LOSS = "loss"  # only the losses differ
    SAME_LINE = "same line"  # told for another place already
    UNPAIRED = "unpaired"  # the gradient of a layer without a partner
    SAME_PARAMETER = "same parameter"  # of the reference, told already
    CALLS = "calls"  # of the model's results: calls explain them
    EARLIER_PHASE = "earlier phase"  # a loss follows from outputs, gradients from a loss
    NATURAL_RUN = "natural run"  # with a fixed tolerance only the first is sure
    MADE_OTHERWISE = "made otherwise"  # a layer around it was built otherwise


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference above the noise."""

    phase: str
    reference: Site | None
    port: Site | None
    what: str  # which tensor: "output 0", "input 0 of blocks.1.norm", "gradient of weight"
    error: Comparison | None  # None when there is nothing to compare (absent, another shape)
    noise: Size
    score: float
    message: str = ""  # what numbers alone do not say
    inherited: bool = False
    cause: Cause | None = None
    step: int = 0
    rank: int = 0
    reason: InheritanceReason | None = None  # why it is inherited, where that is known

    @property
    def mistake(self) -> tuple[str, ...] | None:
        """That of its cause, if it has one."""
        return None if self.cause is None else self.cause.mistake


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A setting that differs between the sides: its name and both values, as a reader sees them."""

    name: str
    reference: str
    port: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth knowing."""

    code: str
    message: str
    reference: Site | None = None
    port: Site | None = None
    setting: SettingDifference | None = field(default=None, kw_only=True)  # that the message is about
    diverged: bool = field(default=False, kw_only=True)  # a divergence of the report says the same


@dataclass(frozen=True, slots=True)
class RelativeError:
    """An error and its floor, both relative to the size of the reference's values."""

    error: float
    floor: float


@dataclass(frozen=True, slots=True)
class PairResult:
    """Two calls that stand for each other, and their own errors in units of noise."""

    reference: Site
    port: Site
    why: str
    forward: float | None  # None: nothing was compared in this direction
    backward: float | None
    forward_error: RelativeError | None = None  # of the tensor with the largest score; None: not measured
    backward_error: RelativeError | None = None
