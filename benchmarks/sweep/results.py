"""What a sweep measured, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

NATIVE = "native"
CODE = "code between layers"


@dataclass(frozen=True, slots=True)
class Scored:
    """One tensor of one call of a correct port: its error in units of all floors together."""

    kind: str  # of the reference's layer, or ``CODE``
    what: str  # "forward", "backward" or "parameter"
    score: float
    call: int  # the same for all tensors of one call
    path: str


@dataclass
class Noise:
    """The runs of one correct pair."""

    pair: str
    scores: list[Scored] = field(default_factory=list)
    whole: float = 0.0  # of the outputs, the loss and the gradients end to end, as far as they were asked
    paired: int = 0  # calls of the port
    calls: int = 0
    runs: int = 0
    alarms: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def largest(self, what: str) -> float:
        return max((each.score for each in self.scores if each.what == what), default=0.0)


@dataclass(frozen=True)
class Caught:
    """What an alignment said about one planted fault."""

    pair: str
    mistake: str
    guilty: tuple[str, ...]  # the layer that has to be named, by any of its names
    score: float
    named: str | None  # the layer that was named first
    others: tuple[str, ...] = ()  # further layers that were blamed

    @property
    def right(self) -> bool:
        return self.named in self.guilty and not self.others


@dataclass(frozen=True)
class Hidden:
    """How many calls of a disguised port found the partner they had before."""

    pair: str
    disguise: str
    kept: int
    calls: int
    ok: bool


@dataclass(frozen=True)
class Low:
    """The largest scores in half precision, or why there are none."""

    pair: str
    dtype: str
    scores: tuple[float, ...] = ()  # forward, backward, parameter gradients, whole model
    alarms: int = 0
    reason: str = ""


@dataclass
class Outcome:
    """Everything about one pair on one processor."""

    pair: str
    noise: Noise | None = None  # None: a pair that really differs
    faults: list[Caught] = field(default_factory=list)
    faint: list[Caught] = field(default_factory=list)  # that need not be found
    real: list[Caught] = field(default_factory=list)
    hidden: list[Hidden] = field(default_factory=list)
    low: list[Low] = field(default_factory=list)


@dataclass
class Sweep:
    """All pairs on one processor."""

    processor: str
    seeds: int
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def noise(self) -> list[Noise]:
        return [each.noise for each in self.outcomes if each.noise is not None]

    @property
    def scores(self) -> list[Scored]:
        return [score for noise in self.noise for score in noise.scores]

    @property
    def alarms(self) -> list[str]:
        return [f"{noise.pair}, {alarm}" for noise in self.noise for alarm in noise.alarms]

    @property
    def faults(self) -> list[Caught]:
        return [fault for each in self.outcomes for fault in each.faults]

    @property
    def faint(self) -> list[Caught]:
        return [fault for each in self.outcomes for fault in each.faint]

    @property
    def real(self) -> list[Caught]:
        return [fault for each in self.outcomes for fault in each.real]

    @property
    def hidden(self) -> list[Hidden]:
        return [hidden for each in self.outcomes for hidden in each.hidden]

    @property
    def low(self) -> list[Low]:
        return [low for each in self.outcomes for low in each.low]

    @property
    def clean(self) -> bool:
        """No false alarm, and every planted mistake found where it is."""
        found = all(caught.right for caught in self.faults)
        return not self.alarms and found and all(each.ok for each in self.hidden)


def quantiles(scores: Iterable[Scored]) -> tuple[float, float, float]:
    """Median, 99.9th percentile and maximum."""
    values: Sequence[float] = [each.score for each in scores]
    if not values:
        return 0.0, 0.0, 0.0
    return float(np.median(values)), float(np.percentile(values, 99.9)), max(values)
