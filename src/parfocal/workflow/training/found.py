"""What a comparison of trainings has found so far: every kind of difference with its first step."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from parfocal.judge.verdict import Cause, Divergence, Finding

# The order of causes inside a step.
ORDER = ("weights", "data", "forward", "loss", "backward", "gradient", "lr", "optimizer", "buffer")


@dataclass(slots=True)
class FoundDivergences:
    """Divergences by what differs: a difference that goes on is told once, with its first step."""

    divergences: dict[Hashable, Divergence] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    steps: dict[Hashable, int] = field(default_factory=dict)  # at how many steps each was seen

    def seen(self, key: Hashable) -> bool:
        """Whether this was found at an earlier step; it is counted."""
        if key not in self.steps:
            return False
        self.steps[key] += 1
        return True

    def add(self, key: Hashable, divergence: Divergence, more: Sequence[Hashable] = ()) -> None:
        """``more``: what else this divergence tells of."""
        self.divergences[key] = divergence
        self.mark((key, *more))

    def mark(self, keys: Sequence[Hashable]) -> None:
        """These differ from now on, and need not be told."""
        for each in keys:
            self.steps.setdefault(each, 1)

    def told(self, cause: Cause | None) -> bool:
        """Whether this very mistake was told of other places."""
        return cause is not None and any(
            each.cause is not None and each.cause.mistake == cause.mistake
            for each in self.divergences.values()
        )

    def note(self, finding: Finding) -> None:
        self.findings.setdefault(finding.message, finding)

    def phases(self) -> set[str]:
        return {each.phase for each in self.divergences.values()}

    def sorted(self) -> list[Divergence]:
        """Intrinsic ones first, by step and by the order of causes inside a step."""
        return sorted(
            self.divergences.values(),
            key=lambda each: (each.inherited, each.step, ORDER.index(each.phase)),
        )
