"""What the optimizers of two runs are set to, parameter by parameter, and where that differs in effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parfocal.backends.vocabulary.training import OPTIMIZERS
from parfocal.brief import some
from parfocal.explain.updates.settings import code_of, differences
from parfocal.phrases import phrase
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.parameters import ParameterTie
from parfocal.workflow.recorded_runs.steps import UpdateSettings


@dataclass(frozen=True, slots=True)
class DifferingSetting:
    """One setting that differs for some parameters."""

    name: str
    reference: Any
    port: Any
    ties: tuple[ParameterTie, ...]
    of: int  # parameters whose settings both sides have

    @property
    def telling(self) -> bool:
        """Whether two optimizers set so differ: a name that nobody knows may stand for the same rule."""
        return self.name != "kind" or {self.reference, self.port} <= OPTIMIZERS.keys()

    @property
    def code(self) -> str:
        return code_of(self.name)

    @property
    def message(self) -> str:
        few = len(self.ties) < self.of
        where = (
            phrase(" of {places}", places=some([tie.name for tie in self.ties], 1))
            if few
            else phrase(" of the optimizer")
        )
        return phrase(
            "{name}{where} is {reference} in the reference and {port} in the port",
            name=self.name,
            where=where,
            reference=repr(self.reference),
            port=repr(self.port),
        )


def differing_settings(pair: StepPair) -> list[DifferingSetting]:
    """In effect: what a setting of zero switches off does not count, nor a rate that differs throughout."""
    found: dict[tuple[str, str, str], list[ParameterTie]] = {}
    values: dict[tuple[str, str, str], tuple[Any, Any]] = {}
    total = 0
    for tie in pair.parameters:
        ours, theirs = pair.reference.updates.get(tie.reference), pair.port.updates.get(tie.port)
        if ours is None or theirs is None:
            continue
        total += 1
        for name, mine, yours in _differences(ours, theirs):
            key = name, repr(mine), repr(yours)
            found.setdefault(key, []).append(tie)
            values[key] = mine, yours
    settings = [DifferingSetting(key[0], *values[key], tuple(ties), total) for key, ties in found.items()]
    ratios = {round(_ratio(each), 6) for each in settings if each.name == "lr"}
    covered = sum(len(each.ties) for each in settings if each.name == "lr")
    uniform = len(ratios) == 1 and covered == total  # told by the learning rate
    return [each for each in settings if not (each.name == "lr" and uniform)]


def _ratio(setting: DifferingSetting) -> float:
    return setting.port / setting.reference if setting.reference else 0.0


def _differences(ours: UpdateSettings, theirs: UpdateSettings) -> Iterator[tuple[str, Any, Any]]:
    return differences((ours.kind, ours.settings), (theirs.kind, theirs.settings))
