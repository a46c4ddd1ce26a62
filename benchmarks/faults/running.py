"""Puts cases to a tool in a process of its own, and starts another one when a case kills it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from benchmarks.faults import environments
from benchmarks.faults.scoring import CRASHED, Answer, Case
from benchmarks.faults.tools import TOOLS
from benchmarks.faults.worker import READY

UNRELATED = ("page.py", "scoring.py", "running.py", "__main__.py")  # no part of a case
PATIENCE = 180.0  # seconds for one case, the start of the process included


def answers(tool: str, cases: Sequence[Case], again: bool = False) -> Iterator[tuple[Case, Answer]]:
    """Every case with its answer, in order. Other tools are pinned and asked only once, unless ``again``."""
    if tool not in environments.ENVIRONMENTS:
        yield from _asked(tool, cases)
        return
    notes = environments.CACHE / f"{tool}-{_definitions(tool)}.jsonl"
    known = {} if again else _known(notes)
    fresh = _asked(tool, [case for case in cases if case not in known])
    for case in cases:
        if case not in known:
            _, known[case] = next(fresh)
            with notes.open("a", encoding="utf-8") as file:
                file.write(json.dumps([asdict(case), known[case].to_json()]) + "\n")
        yield case, known[case]


def _known(notes: Path) -> dict[Case, Answer]:
    if not notes.exists():
        return {}
    pairs = map(json.loads, notes.read_text(encoding="utf-8").splitlines())
    return {Case(**case): Answer.from_json(answer) for case, answer in pairs}


def _definitions(tool: str) -> str:
    """Changes with anything that a case is made of, and with how this tool is asked."""
    own = environments.ROOT / "benchmarks" / "faults"
    files = [*own.rglob("*.py"), environments.ROOT / "examples" / "pairs" / "pair.py"]
    asking = TOOLS[tool].partition(":")[0]
    files = [file for file in files if file.parent.name != "tools" or file.stem == asking]
    made_of = sorted(file for file in files if file.name not in UNRELATED)
    return hashlib.sha256(b"".join(file.read_bytes() for file in made_of)).hexdigest()[:16]


def _asked(tool: str, cases: Sequence[Case]) -> Iterator[tuple[Case, Answer]]:
    python = environments.interpreter(tool)
    done = 0
    while done < len(cases):
        for answer in _one_process(python, tool, cases[done:]):
            yield cases[done], answer
            done += 1


def _one_process(python: str, tool: str, cases: Sequence[Case]) -> Iterator[Answer]:
    """Answers until the process ends; the last one is a crash if it ended too early."""
    with tempfile.TemporaryDirectory(prefix="parfocal-faults-") as folder:
        asked, results = Path(folder, "cases.jsonl"), Path(folder, "answers.jsonl")
        asked.write_text("".join(json.dumps(asdict(case)) + "\n" for case in cases), encoding="utf-8")
        results.touch()
        with asked.open() as source, Path(folder, "output.txt").open("w") as output:
            process = subprocess.Popen(
                [python, "-m", "benchmarks.faults.worker", tool, str(results)],
                stdin=source, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=_environment(tool),
            )  # fmt: skip
        try:
            with results.open(encoding="utf-8") as file:
                yield from _read(process, file, len(cases), Path(folder, "output.txt"))
        finally:
            process.kill()
            process.wait()


def _read(process: subprocess.Popen[bytes], file: TextIO, count: int, output: Path) -> Iterator[Answer]:
    given, since, ready = 0, time.monotonic(), False
    while given < count:
        ended = process.poll() is not None
        line = _whole_line(file)
        if line == READY:
            ready = True
        elif line:
            yield Answer.from_json(json.loads(line))
            given, since = given + 1, time.monotonic()
        elif ended or time.monotonic() - since > PATIENCE:
            reason = f"the process ended with status {process.returncode}" if ended else "no answer in time"
            last = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            message = f"{reason}: {''.join(last)[:300]}"
            if not ready:
                raise environments.Unavailable(message)
            yield Answer(CRASHED, message=message)
            return
        else:
            time.sleep(0.05)


def _whole_line(file: TextIO) -> str:
    """The next line if it is complete, otherwise nothing yet."""
    start = file.tell()
    line = file.readline()
    if line.endswith("\n"):
        return line
    file.seek(start)
    return ""


def _environment(tool: str) -> dict[str, str]:
    own = tool not in environments.ENVIRONMENTS
    given = (
        [os.environ["PYTHONPATH"]] if own and os.environ.get("PYTHONPATH") else []
    )  # an extreme of rounding
    paths = (*given, str(environments.ROOT), str(environments.ROOT / "src"))
    quiet = {"OMP_NUM_THREADS": "1", "GLOG_minloglevel": "3"}
    settings = environments.SETTINGS.get(tool, {})
    return {**os.environ, **quiet, **settings, "PYTHONPATH": os.pathsep.join(paths)}
