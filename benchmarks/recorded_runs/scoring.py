"""What an answer is worth. Knows no framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.recorded_runs.mistakes import Mistake
from benchmarks.recorded_runs.running import Answer, Case


@dataclass(frozen=True)
class Score:
    """How good the answer to a mistake is."""

    case: Case
    mistake: Mistake
    answer: Answer
    detected: bool
    located: bool  # phase, step, rank and place
    named: bool  # a true cause, where a cause can be proven

    @property
    def missed(self) -> str:
        """What is wrong with the answer, in words; nothing where all is right."""
        for right, words in (
            (self.detected, "not detected"),
            (self.located, "not located"),
            (self.named, "located, not named"),
        ):
            if not right:
                return words
        return ""


@dataclass
class Result:
    """All scores, and the correct pairs that were not called so."""

    scores: list[Score] = field(default_factory=list)
    alarms: list[tuple[Case, Answer]] = field(default_factory=list)
    correct: int = 0

    def count(self, kept: Callable[[Score], bool], tensors: str = "") -> int:
        return sum(1 for score in self.of(tensors) if kept(score))

    def of(self, tensors: str = "", group: str = "") -> list[Score]:
        return [
            score
            for score in self.scores
            if (not tensors or score.case.tensors == tensors) and (not group or score.mistake.group == group)
        ]

    @property
    def clean(self) -> bool:
        """As good as the benchmark asks: all detected, no alarm, nearly all at their place."""
        return (
            not self.alarms
            and all(score.detected for score in self.scores)
            and all(share(self.of(tensors), "located") >= limit for tensors, limit in LOCATED.items())
        )


LOCATED = {"full": 0.95, "sketch": 0.90}  # the least share of mistakes that are named at their place


def share(scores: Iterable[Score], what: str) -> float:
    found = [getattr(score, what) for score in scores]
    return sum(found) / len(found) if found else 1.0


def judge(case: Case, mistake: Mistake, answer: Answer) -> Score:
    """Compare what was said with what is right."""
    if mistake.finding:
        code, words = mistake.finding
        noted = any(each == code and words in message for each, message in answer.findings)
        # a difference that is right to be noted is not one of the verdict
        right = noted and answer.same
        return Score(case, mistake, answer, noted, right, right)
    detected = not answer.same and not answer.error
    located = (
        detected
        and (answer.phase, answer.rank) == (mistake.phase, mistake.rank)
        and answer.step in mistake.steps
        and (not mistake.places or answer.path in mistake.places)
    )
    named = located and (not mistake.codes or answer.code in mistake.codes)
    return Score(case, mistake, answer, detected, located, named)
