"""``check``: the steps in order, each run only where what it depends on has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from parfocal.brief import some
from parfocal.errors import InputError, ParfocalError
from parfocal.judge.verdict import SIDES
from parfocal.phrases import joined, phrase
from parfocal.report.coverage import NOUNS
from parfocal.workflow.acceptance.layout import CHECKPOINTS
from parfocal.workflow.guide.basis import StepBasis, changes, digests_of, relative_names
from parfocal.workflow.guide.data_files import data_digest
from parfocal.workflow.guide.judging import generate_inputs
from parfocal.workflow.guide.opened_files import OpenedFiles
from parfocal.workflow.guide.processes import JobError, SideError, Workers
from parfocal.workflow.guide.running_step import CommonBasis, JudgedStep, RunningStep
from parfocal.workflow.guide.settings import Project
from parfocal.workflow.guide.state import (
    STATUS_WORDS,
    StepResult,
    StepStatus,
    Store,
    code_files,
    digest_of,
)
from parfocal.workflow.guide.steps import COMMON, NAMES, OPTIONAL, STEPS, CommonWork, GuideStep
from parfocal.workflow.guide.values import keep

DATASETS = frozenset({"evaluation_data", "training_data"})  # factories that read data from disk
COUNTS = 4  # of what was compared that are told
Tell = Callable[[str, str], None]  # the step, and what is being done


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """One of the guide's five checkpoints: green when every step of it passed."""

    name: str
    title: str
    steps: tuple[StepResult, ...]

    @property
    def green(self) -> bool:
        return all(step.status is StepStatus.PASSED for step in self.steps)

    @property
    def red(self) -> bool:
        return any(step.status in (StepStatus.FAILED, StepStatus.ERROR) for step in self.steps)

    @property
    def state(self) -> str:
        return "green" if self.green else "red" if self.red else "open"


@dataclass(frozen=True, slots=True)
class CheckedProject:
    """All steps as they stand now."""

    project: Project
    results: tuple[StepResult, ...]
    ran: tuple[str, ...]  # this time
    way: str = ""

    @property
    def status(self) -> int:
        """As an exit status: 2 where a side gave no result, 1 where something differs."""
        found = {result.status for result in self.results}
        return 2 if StepStatus.ERROR in found else 1 if StepStatus.FAILED in found else 0

    @property
    def checkpoints(self) -> tuple[CheckpointState, ...]:
        by_name = {result.name: result for result in self.results}
        return tuple(
            CheckpointState(
                each.name,
                each.title,
                tuple(by_name[step.name] for step in STEPS if step.checkpoint == each.name),
            )
            for each in CHECKPOINTS
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.status == 0,
            "status": self.status,
            "way": self.way,
            "ran": list(self.ran),
            "steps": [result.to_json() for result in self.results],
            "checkpoints": [
                {"name": each.name, "green": each.green, "red": each.red} for each in self.checkpoints
            ],
        }


def check(
    project: Project,
    wanted: Sequence[str] = (),
    *,
    force: bool = False,
    start: str = "",
    tell: Tell = lambda step, doing: None,
) -> CheckedProject:
    """Run the steps that are asked for, and those they need, as far as they are not known already.

    ``force`` runs those that are asked for in any case, ``start`` all from a step on.
    """
    chosen = _chosen(wanted, start)
    forced = {name for name in wanted or NAMES if force} | {
        name for name in chosen if start and NAMES.index(name) >= NAMES.index(start)
    }
    store = Store(project)
    with Workers(project) as workers:
        workers.prepare()
        keys = _Keys(project, workers)
        for name in {step.common for step in STEPS if step.name in forced and step.common}:
            store.common(name).unlink(missing_ok=True)
        generate_inputs(project, keys.inputs)
        results: dict[str, StepResult] = {}
        ran = []
        for step in STEPS:
            known = _known(step, store, keys, results)
            if step.name in chosen and (known is None or step.name in forced or _again(known)):
                known = _run(step, project, workers, store, keys, results, tell)
                if known.status not in (StepStatus.BLOCKED, StepStatus.LEFT_OUT):
                    ran.append(step.name)
            results[step.name] = known or StepResult(step.name, StepStatus.WAITING)
        return CheckedProject(project, tuple(results.values()), tuple(ran), workers.way)


def look(project: Project) -> tuple[CheckedProject, dict[str, Any]]:
    """What is known of every step and still holds, and the versions of both sides; nothing is run."""
    store = Store(project)
    with Workers(project) as workers:
        workers.prepare()
        keys = _Keys(project, workers)
        results: dict[str, StepResult] = {}
        for step in STEPS:
            hindered = _hindered(step, project, results)
            known = _known(step, store, keys, results) or hindered
            results[step.name] = known or StepResult(step.name, StepStatus.WAITING)
        return CheckedProject(project, tuple(results.values()), (), workers.way), workers.versions


@dataclass(frozen=True, slots=True)
class Standing:
    """All steps as they were last run, and why some of them are out of date."""

    checked: CheckedProject
    changed: Mapping[str, tuple[str, ...]]  # by step


def stand(project: Project) -> Standing:
    store = Store(project)
    with Workers(project) as workers:
        workers.prepare()
        keys = _Keys(project, workers)
        results: dict[str, StepResult] = {}
        shown, changed = [], {}
        for step in STEPS:
            hindered = _hindered(step, project, results)
            now = _known(step, store, keys, results) or hindered
            old = store.read(step.name) if now is None else None
            if old is not None:
                known = old.rests_on
                changed[step.name] = tuple(changes(known, keys.now(step, results, known)))
            results[step.name] = now or StepResult(step.name, StepStatus.WAITING)
            shown.append(old or results[step.name])
        return Standing(CheckedProject(project, tuple(shown), (), workers.way), changed)


def _chosen(wanted: Sequence[str], start: str) -> set[str]:
    for name in (*wanted, *([start] if start else [])):
        if name not in NAMES:
            raise InputError(
                phrase("there is no step {name}", name=repr(name)),
                hint=phrase("the steps are {names}", names=joined(", ", NAMES)),
            )
    if not wanted:
        return set(NAMES)
    chosen: set[str] = set()
    waiting = list(wanted)
    by_name = {step.name: step for step in STEPS}
    while waiting:
        name = waiting.pop()
        if name not in chosen:
            chosen.add(name)
            waiting += by_name[name].needs
    return chosen


class _Keys:
    """What steps depend on, as it is now."""

    def __init__(self, project: Project, workers: Workers) -> None:
        self.project = project
        self.workers = workers
        base = [workers.way, [side.framework for side in project.sides], workers.versions, project.seed]
        self.base = digest_of(base)
        given = [each for each in (project.inputs, project.label) if isinstance(each, str)]
        files = digests_of({each: project.folder / each for each in given})
        self.inputs = digest_of([project.inputs, project.label, project.seed, files])
        self.data = data_digest(project.folder, project.data)
        self.plan = {
            (project.folder / project.file).resolve()
        }  # its parts count, each for the steps it concerns
        self.began = time.time()
        self._of_datasets: frozenset[Path] = frozenset()  # files and folders
        self._of_others: frozenset[Path] = frozenset()

    def now(
        self, work: GuideStep | CommonWork, results: Mapping[str, StepResult], known: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What remembered work rests on now: the same files, as they are."""
        folder = self.project.folder
        found = self._planned(work, results)
        files, folders = (
            digests_of({name: folder / name for name in known.get(part, {})}) for part in ("files", "folders")
        )
        unseen = tuple(known.get("unseen", ()))
        return replace(found, files=files, folders=folders, unseen=unseen).to_json()

    def after(self, work: GuideStep | CommonWork, results: Mapping[str, StepResult]) -> dict[str, Any]:
        """What work rests on that was done just now."""
        opened, folder = self.workers.opened, self.project.folder
        reached = {
            name: {
                path
                for side in self.project.sides
                if name in side.factories
                for path in code_files(folder, side.factories[name], opened.code)
            }
            for name in {name for side in self.project.sides for name in side.factories}
        }
        used = set().union(*(reached.get(name, ()) for name in _factories(work)))
        loose = opened.code - set().union(*reached.values())  # loaded by other means than import
        if "model" in work.factories:
            used |= {folder / each for each in (self.project.published, self.project.plan) if each}
        reads = not DATASETS.isdisjoint(work.factories)
        self._attribute(opened, reads)
        concerned = self._of_others | self._of_datasets if reads else self._of_others
        files = (used | loose | opened.imported | (opened.data & concerned)) - self.plan
        found = replace(
            self._planned(work, results),
            files=digests_of(relative_names(folder, files), self.began),
            folders=digests_of(relative_names(folder, opened.folders & concerned)),
            unseen=tuple(sorted(opened.unseen)) if reads and not self.project.data else (),
        )
        return found.to_json()

    def _attribute(self, opened: OpenedFiles, reads: bool) -> None:
        """What is opened first while datasets are read concerns no step that reads none."""
        new = (opened.data | opened.folders) - self._of_datasets - self._of_others
        if reads:
            self._of_datasets |= new
        else:
            self._of_others |= new

    def _planned(self, work: GuideStep | CommonWork, results: Mapping[str, StepResult]) -> StepBasis:
        project = self.project
        specs = {
            side.name: {name: side.factories.get(name) for name in _factories(work)} for side in project.sides
        }
        settings = {
            name: digest_of(getattr(project, name))
            for name in work.settings
            if name not in ("inputs", "label")
        }
        return StepBasis(
            self.base,
            digest_of(specs),
            settings,
            self.inputs if "inputs" in work.settings else "",
            self.data if not DATASETS.isdisjoint(work.factories) else "",
            {name: results[name].key for name in work.needs if name in results},
        )


def _factories(work: GuideStep | CommonWork) -> tuple[str, ...]:
    return (*work.factories, *(OPTIONAL if "optimizer" in work.factories else ()), *work.optional)


def _again(known: StepResult) -> bool:
    """Whether a step that was run is run again all the same: a crash may have been an accident."""
    return known.status is StepStatus.ERROR


def _known(
    step: GuideStep, store: Store, keys: _Keys, results: Mapping[str, StepResult]
) -> StepResult | None:
    """What is remembered of a step, if all it depended on is as it was."""
    found = store.read(step.name)
    if found is None or found.rests_on["unseen"] or found.rests_on != keys.now(step, results, found.rests_on):
        return None
    if found.status is StepStatus.PASSED and not all(
        (keys.project.folder / file).is_file() for file in found.values.values()
    ):
        return None
    if _stopping(step, results) is not None:
        return None
    return found


def _stopping(step: GuideStep, results: Mapping[str, StepResult]) -> StepResult | None:
    """The first step that this one needs and that has not passed."""
    return next((results[name] for name in step.needs if results[name].status is not StepStatus.PASSED), None)


def _missing(step: GuideStep, project: Project) -> list[str]:
    """What a step needs and the file does not name; of one side where only that lacks it."""
    if "ranks" in step.settings and not project.ranks:
        return ["many_cards.ranks"]
    found = []
    for name in step.factories:
        lacking = [side.name for side in project.sides if name not in side.factories]
        if lacking:
            found.append(name if len(lacking) == len(SIDES) else f"{lacking[0]}.{name}")
    if "label" in step.settings and not project.label:
        found.append("input.label")
    return found


def _hindered(step: GuideStep, project: Project, results: Mapping[str, StepResult]) -> StepResult | None:
    """Why a step cannot be run: it is given nothing, or one that it needs has not passed."""
    missing = _missing(step, project)
    if missing:
        told = phrase("{file} names no {keys}", file=project.file, keys=joined(", ", missing))
        return StepResult(step.name, StepStatus.LEFT_OUT, message=told)
    stopping = _stopping(step, results)
    if stopping is not None and stopping.status is not StepStatus.WAITING:
        told = phrase("needs {step} ({status})", step=stopping.name, status=STATUS_WORDS[stopping.status])
        return StepResult(step.name, StepStatus.BLOCKED, message=told)
    return None


def _run(
    step: GuideStep,
    project: Project,
    workers: Workers,
    store: Store,
    keys: _Keys,
    results: Mapping[str, StepResult],
    tell: Tell,
) -> StepResult:
    hindered = _hindered(step, project, results)
    if hindered is not None:
        return hindered
    started = time.time()
    common = {
        name: CommonBasis(
            lambda known, work=work: keys.now(work, results, known),  # type: ignore[misc]
            lambda work=work: keys.after(work, results),  # type: ignore[misc]
        )
        for name, work in COMMON.items()
        if name == step.common
    }
    bench = RunningStep(project, workers, store, step.name, common, lambda doing: tell(step.name, doing))
    judged = _judged(step, bench)
    result = replace(
        judged,
        rests_on=keys.after(step, results),
        way=workers.way,
        when=started,
        seconds=time.time() - started,
    )
    store.write(result)
    return result


def _judged(step: GuideStep, bench: RunningStep) -> StepResult:
    bench.clear()
    try:
        judged = step.judge(bench)
    except JobError as error:
        if error.problem is not None:
            return StepResult(step.name, StepStatus.FAILED, problems=(error.problem,))
        return StepResult(step.name, StepStatus.ERROR, message=error.message, hint=error.hint)
    except (SideError, ParfocalError) as error:
        return StepResult(step.name, StepStatus.ERROR, message=error.message, hint=error.hint)
    return _result(step, bench, judged)


def _result(step: GuideStep, bench: RunningStep, judged: JudgedStep) -> StepResult:
    told = judged.told
    values = {}
    if judged.values is not None:
        for side, found in zip(SIDES, judged.values, strict=True):
            path = bench.store.folder / "values" / f"{step.name}-{side}.safetensors"
            keep(dict(found), path)
            values[side] = relative(path, bench.project)
    return StepResult(
        step.name,
        StepStatus.FAILED if told["problems"] else StepStatus.PASSED,
        problems=tuple(told["problems"]),
        findings=tuple(told["findings"]),
        score=_score(told),
        compared=_compared(told["compared"]),
        report=relative(Path(told["report"]), bench.project),
        values=values,
        by_chance=judged.by_chance,
    )


def relative(path: Path, project: Project) -> str:
    """As it is remembered: a project may be moved."""
    return os.path.relpath(path, project.folder)


def _score(told: Mapping[str, Any]) -> float | None:
    scores = [each["score"] for each in told["problems"] if isinstance(each["score"], (int, float))]
    return max(scores, default=told["score"] or None)


def _compared(counts: Iterable[Sequence[Any]]) -> str:
    return some([_counted(what, count) for what, count in counts if count], COUNTS)


def _counted(what: str, count: int) -> str:
    noun = NOUNS.get(what)
    told = what if noun is None else noun.one if count == 1 else noun.many
    return phrase("{count} {noun}", count=count, noun=told)
