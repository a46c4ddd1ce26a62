"""The processes in which the two sides run, as the parent sees them: asked for jobs, watched, ended.

A side that crashes, or takes longer than the time limit, is told with its last lines.
"""

from __future__ import annotations

import functools
import json
import operator
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parfocal.backends import registry
from parfocal.errors import InputError, MissingFrameworkError, ParfocalError
from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import joined, phrase
from parfocal.workflow.guide.messages import unpack
from parfocal.workflow.guide.opened_files import VARIABLE, OpenedFiles, read_log
from parfocal.workflow.guide.settings import Project, SideSettings

LAST_LINES = 30  # a framework's own words about a crash are a dozen
STARTING = 120.0  # seconds in which an interpreter must answer at all
BOTH = "both"
SIDE_WORDS = {name: side_name(name) for name in SIDES}


class SideError(ParfocalError):
    """A side crashed, hung, or raised where it should not."""

    code = "guide.side"


class JobError(ParfocalError):
    """A job that could not be done, told by the side itself; ``problem`` where that is a difference."""

    code = "guide.job"

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(told["message"], hint=told["hint"])
        self.problem: dict[str, Any] | None = told.get("problem")


@dataclass(slots=True)
class Worker:
    """One process, started when it is first asked."""

    project: Project
    names: tuple[str, ...]  # of the sides in it
    python: str
    process: subprocess.Popen[bytes] | None = None
    pending: bytes = b""
    begun: bool = False  # whether a process of it was started before

    @property
    def words(self) -> str:
        return joined(" and ", [SIDE_WORDS[name] for name in self.names])

    @property
    def command(self) -> list[str]:
        plan = self.project.folder / self.project.file
        return [self.python, "-m", "parfocal.workflow.guide.worker", str(plan), *self.names]

    @property
    def opened_log(self) -> Path:
        return self.project.store / "logs" / f"opened-{'-'.join(self.names)}.txt"

    @property
    def opened(self) -> OpenedFiles:
        """What the process has opened since it was started, and what those before it had."""
        return read_log(self.opened_log, self.project.store)

    def ask(self, job: str, side: str, given: Mapping[str, Any], log: Path) -> dict[str, Any]:
        """Have a job done; whatever goes wrong with the process is a SideError."""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        self._start(log)
        limit = STARTING if job == "hello" else self.project.time_limit
        sent = json.dumps({"job": job, "side": side, "given": dict(given), "log": str(log)})
        line = self._exchange(sent, limit)
        if line is None:
            self.end()
            raise SideError(
                phrase(
                    "the {side} did not finish {job} in {limit} seconds{lines}",
                    side=self.words,
                    job=job,
                    limit=f"{limit:g}",
                    lines=last_lines(log),
                ),
                hint=phrase(
                    "raise the limit at {place}, or give it less to do",
                    place=self.project.place("time_limit"),
                ),
            )
        if not line:
            how = ending(self.end())
            raise SideError(
                phrase(
                    "the {side} {how} during {job}{lines}",
                    side=self.words,
                    how=how,
                    job=job,
                    lines=last_lines(log),
                )
            )
        answer = unpack(json.loads(line))
        if "error" in answer:
            raise JobError(answer["error"])
        if "raised" in answer:
            raise SideError(
                phrase(
                    "{job} of the {side} raised {error}{lines}",
                    job=job,
                    side=self.words,
                    error=answer["raised"],
                    lines=last_lines(log),
                ),
                hint=answer.get("hint", ""),
            )
        done: dict[str, Any] = answer["done"]
        return done

    def _start(self, log: Path) -> None:
        if self.process is not None and self.process.poll() is None:
            return
        if not self.begun:
            self.opened_log.unlink(missing_ok=True)
            self.begun = True
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", VARIABLE: str(self.opened_log)}
        self.pending = b""
        with open(log, "ab") as errors:
            try:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=self.project.folder,
                    env=environment,
                )
            except OSError as error:
                side = next(each for each in self.project.sides if each.name == self.names[0])
                raise InputError(
                    phrase(
                        "{place} = {python} cannot be started: {error}",
                        place=side.places["python"],
                        python=self.python,
                        error=error.strerror,
                    )
                ) from error

    def _exchange(self, sent: str, limit: float) -> bytes | None:
        """The line that is answered; empty when the process is gone, None when the time is up."""
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(sent.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return b""
        until = time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.pending:
                rest = until - time.monotonic()
                if rest <= 0:
                    return None
                if selector.select(rest):
                    piece = os.read(self.process.stdout.fileno(), 1 << 16)
                    if not piece:
                        return b""
                    self.pending += piece
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def end(self) -> int:
        """Kill the process; its own status where it had ended by itself."""
        if self.process is None:
            return 0
        try:
            status = self.process.wait(0.2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.process = None
        return status


def ending(status: int) -> str:
    if status < 0:
        return phrase("was ended by {signal}", signal=signal.Signals(-status).name)
    return phrase("ended with status {status}", status=status)


def last_lines(log: Path) -> str:
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
    except OSError:
        lines = []
    if not lines:
        return phrase(", without a word")
    shown = "".join(f"\n    {line}" for line in lines[-LAST_LINES:])
    return phrase(". Its last lines:{lines}", lines=shown)


@dataclass(slots=True)
class Workers:
    """The processes of a project: one for both sides where they can share one, else one each."""

    project: Project
    apart: dict[str, Worker] = field(default_factory=dict)
    joint: Worker | None = None
    versions: dict[str, dict[str, Any]] = field(default_factory=dict)  # by side

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *problem: object) -> None:
        for worker in {
            id(each): each for each in (*self.apart.values(), self.joint) if each is not None
        }.values():
            worker.end()

    @property
    def way(self) -> str:
        return "apart" if self.joint is None else "together"

    @property
    def opened(self) -> OpenedFiles:
        """What the processes of both sides have opened."""
        return functools.reduce(operator.or_, (each.opened for each in self.apart.values()))

    def prepare(self) -> None:
        """Find out what every interpreter has, and whether the sides can share one."""
        pythons = [_interpreter(self.project, side) for side in self.project.sides]
        same = pythons[0] == pythons[1]
        for side, python in zip(self.project.sides, pythons, strict=True):
            if same and self.versions:
                self.versions[side.name] = next(iter(self.versions.values()))
            else:
                self.versions[side.name] = self._greeted(side, python)
            if side.framework not in self.versions[side.name]["frameworks"]:
                raise _lacking(side, python)
        if same and self.project.together:
            worker = Worker(self.project, SIDES, pythons[0])
            self.joint = worker
            self.apart = {side.name: worker for side in self.project.sides}
        else:
            self.apart = {
                side.name: Worker(self.project, (side.name,), python)
                for side, python in zip(self.project.sides, pythons, strict=True)
            }

    def _greeted(self, side: SideSettings, python: str) -> dict[str, Any]:
        if python == sys.executable:
            return greeting(side.name)
        worker = Worker(self.project, (side.name,), python)
        try:
            return worker.ask(
                "hello",
                side.name,
                {"frameworks": registry.names()},
                self.project.store / "logs" / f"start-{side.name}.log",
            )
        except SideError as error:
            raise InputError(
                phrase(
                    "{place} = {python}: parfocal does not start there. {error}",
                    place=side.places["python"],
                    python=python,
                    error=error.message,
                ),
                hint=f"{python} -m pip install parfocal",
            ) from error
        finally:
            worker.end()


def greeting(name: str) -> dict[str, Any]:
    """Of the interpreter that runs parfocal itself."""
    from parfocal.workflow.guide.worker import hello

    return hello(list(registry.names()))


def _interpreter(project: Project, side: SideSettings) -> str:
    if not side.python:
        return sys.executable
    given = Path(side.python).expanduser()
    path = given if given.is_absolute() else project.folder / given
    if not path.exists():
        raise InputError(
            phrase(
                "{place} is {python}: there is no such file",
                place=side.places["python"],
                python=repr(side.python),
            ),
            hint=phrase("give the path of a Python interpreter, relative to parfocal.toml or absolute"),
        )
    return str(path)


def _lacking(side: SideSettings, python: str) -> MissingFrameworkError:
    place = side.places["python"] if side.python else side.places["framework"]
    title = registry.TITLES.get(side.framework, side.framework)
    return MissingFrameworkError(
        phrase(
            "{place}: {title}, the framework of the {side}, is not installed for {python}",
            place=place,
            title=title,
            side=SIDE_WORDS[side.name],
            python=python,
        ),
        hint=phrase(
            "{command}, or name an interpreter that has it: python = ... under [{side}]",
            command=f"{f'{python} -m ' if side.python else ''}pip install 'parfocal[{side.framework}]'",
            side=side.name,
        ),
    )
