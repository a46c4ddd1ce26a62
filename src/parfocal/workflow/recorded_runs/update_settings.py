"""What the optimizers of two runs are set to, parameter by parameter, and where that differs in effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from parfocal.backends import registry
from parfocal.backends.optimizer_spelling import OptimizerSpelling
from parfocal.backends.vocabulary.meanings import optimizers
from parfocal.brief import some
from parfocal.explain.updates.settings import code_of, differences
from parfocal.explain.updates.writing import PortParameter, SettingChange
from parfocal.phrases import phrase
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.parameters import ParameterTie
from parfocal.workflow.recorded_runs.steps import RecordedStep, UpdateSettings


@dataclass(frozen=True, slots=True)
class DifferingSetting:
    """One setting that differs for some parameters."""

    name: str
    reference: Any
    port: Any
    ties: tuple[ParameterTie, ...]
    of: int  # parameters whose settings both sides have
    change: SettingChange
    spelling: OptimizerSpelling  # of the port's framework

    @property
    def telling(self) -> bool:
        """Whether two optimizers set so differ: a name that nobody knows may stand for the same rule."""
        return self.name != "kind" or {self.reference, self.port} <= optimizers().keys()

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

    @property
    def fix(self) -> str:
        """As the live comparison writes it, where the port's framework is known to have such an optimizer."""
        if self.name != "lr" and self.change.kind in self.spelling.settings:  # a group's rate may be a factor
            return self.change.fix(self.spelling.written)
        return phrase(
            "set {name} of the port's optimizer to {reference}",
            name=self.name,
            reference=repr(self.reference),
        )


def spelling_of(side: RecordedStep) -> OptimizerSpelling:
    return registry.dialect(side.run.header.framework).optimizers


def differing_settings(pair: StepPair) -> list[DifferingSetting]:
    """In effect: what a setting of zero switches off does not count, nor a rate that differs throughout."""
    found: dict[tuple[str, str, str], list[ParameterTie]] = {}
    values: dict[tuple[str, str, str], tuple[Any, Any]] = {}
    every: list[PortParameter] = []
    for tie in pair.parameters:
        ours, theirs = pair.reference.updates.get(tie.reference), pair.port.updates.get(tie.port)
        if ours is None or theirs is None:
            continue
        every.append(_parameter(pair, tie))
        for name, mine, yours in _differences(ours, theirs):
            key = name, repr(mine), repr(yours)
            found.setdefault(key, []).append(tie)
            values[key] = mine, yours
    spelling, total = spelling_of(pair.port), len(every)
    settings = [
        DifferingSetting(
            key[0],
            *values[key],
            tuple(ties),
            total,
            _change(pair, key[0], values[key][0], ties, every),
            spelling,
        )
        for key, ties in found.items()
    ]
    ratios = {round(_ratio(each), 6) for each in settings if each.name == "lr"}
    covered = sum(len(each.ties) for each in settings if each.name == "lr")
    uniform = len(ratios) == 1 and covered == total  # told by the learning rate
    return [each for each in settings if not (each.name == "lr" and uniform)]


def _change(
    pair: StepPair, name: str, value: Any, ties: Sequence[ParameterTie], every: Sequence[PortParameter]
) -> SettingChange:
    ours, theirs = pair.reference.updates[ties[0].reference], pair.port.updates[ties[0].port]
    where = [_parameter(pair, tie) for tie in ties]
    return SettingChange(name, value, (ours.kind, ours.settings), theirs.kind, where, every)


def _parameter(pair: StepPair, tie: ParameterTie) -> PortParameter:
    moments = pair.port.parameters.get(tie.port)
    known = None if moments is None else moments.before or moments.after
    return PortParameter(tie.port, -1 if known is None else len(known.shape))


def _ratio(setting: DifferingSetting) -> float:
    return setting.port / setting.reference if setting.reference else 0.0


def _differences(ours: UpdateSettings, theirs: UpdateSettings) -> Iterator[tuple[str, Any, Any]]:
    return differences((ours.kind, ours.settings), (theirs.kind, theirs.settings))
