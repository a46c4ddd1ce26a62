"""The process in which a side runs, or both: takes jobs from its standard input, one a line, as JSON.

It ends when its input does, so that none is left behind by a parent that was killed. What the user's code
prints goes to the log of the job. ``python -m parfocal.workflow.guide.worker PLAN SIDE...``
"""

from __future__ import annotations

import faulthandler
import json
import os
import queue
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from parfocal.errors import ParfocalError, TransferError
from parfocal.workflow.guide.opened_files import note_opened_files
from parfocal.workflow.side_code import foreign_places


def main(plan: str, names: list[str]) -> None:
    note_readers = note_opened_files()
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the user's code may read and close its own input
    os.dup2(2, 1)  # what is printed goes where errors go: to the log
    faulthandler.enable()
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(orders, jobs), daemon=True).start()
    folder = os.path.dirname(plan)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sides = None
    while True:
        job = jobs.get()
        try:
            sides = sides or _sides(plan, names)
            answer: dict[str, Any] = {"done": _do(job, sides)}
        except ParfocalError as error:
            answer = {"error": told_error(error)}
            answer["error"]["hint"] = error.hint or _hint(error.__cause__, folder)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  told to the parent
            print(users_traceback(error), file=sys.stderr)  # noqa: T201  the log of the job
            answer = {"raised": f"{type(error).__name__}: {error}", "hint": _hint(error, folder)}
        note_readers()
        _send(answers, answer)


def users_traceback(error: BaseException) -> str:
    """As Python tells it, with the user's own lines alone, where there are any."""
    told: traceback.TracebackException | None = traceback.TracebackException.from_exception(error)
    whole, foreign = told, foreign_places()
    while told is not None:
        own = [each for each in told.stack if not each.filename.startswith((*foreign, "<frozen"))]
        if own:
            told.stack = traceback.StackSummary.from_list(own)
        told = told.__cause__ or told.__context__
    assert whole is not None
    return "".join(whole.format())


def _hint(error: BaseException | None, folder: str) -> str:
    from parfocal.workflow.guide.side import inside

    return inside(folder) if isinstance(error, OSError) else ""


def _listen(orders: IO[str], jobs: queue.Queue[dict[str, Any]]) -> None:
    for line in orders:
        jobs.put(json.loads(line))
    os._exit(0)  # also in the midst of a job: nobody waits for it


def _sides(plan: str, names: list[str]) -> dict[str, Any]:
    from parfocal.workflow.guide.settings import read_project
    from parfocal.workflow.guide.side import GuideSide

    project = read_project(Path(plan))
    return {each.name: GuideSide(project, each) for each in project.sides if each.name in names}


def _do(job: dict[str, Any], sides: dict[str, Any]) -> dict[str, Any]:
    if job["job"] == "hello":
        return hello(job["given"]["frameworks"])
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    if job["side"] == "both":
        from parfocal.workflow.guide.joint_jobs import run_joint

        return run_joint(job["job"], (sides["reference"], sides["port"]), job["given"])
    from parfocal.workflow.guide.jobs import JOBS
    from parfocal.workflow.guide.launching import LAUNCH_JOBS

    jobs = {**JOBS, **LAUNCH_JOBS}
    return jobs[job["job"]](sides[job["side"]], job["given"])


def hello(frameworks: list[str]) -> dict[str, Any]:
    """Versions of what is installed here, so that a change of them is seen."""
    import importlib.util
    import platform

    import numpy

    from parfocal import __version__

    return {
        "python": platform.python_version(),
        "parfocal": __version__,
        "numpy": numpy.__version__,
        "frameworks": {
            name: version_of(name) for name in frameworks if importlib.util.find_spec(name) is not None
        },
    }


def told_error(error: ParfocalError) -> dict[str, Any]:
    told: dict[str, Any] = {"code": error.code, "message": error.message, "hint": error.hint}
    if isinstance(error, TransferError):
        from parfocal.workflow.guide.reports import problem_of_transfer

        told["problem"] = problem_of_transfer(error)
    return told


def _send(answers: IO[str], answer: dict[str, Any]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    from parfocal.workflow.guide.messages import pack

    answers.write(json.dumps(pack(answer)) + "\n")
    answers.flush()


def version_of(module: str) -> str:
    """The version of the package that owns a top-level module; "unknown" where none says so."""
    for name in _owners().get(module, ()):
        return metadata.version(name)
    return "unknown"


@cache  # it reads the lists of files of all packages
def _owners() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
