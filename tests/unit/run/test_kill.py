"""A writer that is killed at any moment loses nothing it had finished."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from parfocal.run.reader import load_run

KILLS = 20

# Announces each record after it was appended; forks once per kill, so that NumPy is imported once.
CHILD = textwrap.dedent("""
    import os, sys
    import numpy as np
    from parfocal.run.records import RunHeader, ValueRecord
    from parfocal.run.ring import RingShape
    from parfocal.run.writer import RunWriter

    assert not {"torch", "paddle"} & set(sys.modules)

    def record_for_ever(folder, seed, slots):
        generator = np.random.default_rng(seed)
        ring = RingShape(slot_bytes=2**20, slots=slots, after=100_000)
        writer = RunWriter(folder, RunHeader("torch", {}), segment_bytes=3_000_000, ring=ring)
        os.write(1, b"opened\\n")
        number = 0
        while True:
            array = np.full(int(generator.integers(0, 300_000)), number, np.float32)
            writer.append(ValueRecord(str(number), writer.tensor_value(array), step=number))
            os.write(1, f"{number}\\n".encode())
            number += 1

    for line in sys.stdin:
        folder, seed, slots = line.split()
        child = os.fork()
        if not child:
            record_for_ever(folder, int(seed), int(slots))
        os.write(1, f"child {child}\\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"gone\\n")
""")


def announced_before_death(
    server: subprocess.Popen[str], folder: Path, seed: int, slots: int, delay: float
) -> list[str]:
    """Start a writer, kill it after ``delay``, and return what it had announced until then."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{folder} {seed} {slots}\n")
    server.stdin.flush()
    lines: list[str] = []
    for line in server.stdout:
        word = line.strip()
        if word.startswith("child "):
            time.sleep(delay)
            os.kill(int(word.split()[1]), signal.SIGKILL)
        elif word == "gone":
            return lines
        else:
            lines.append(word)
    raise AssertionError("the server ended")


def check_killed_run(folder: Path, announced: list[str]) -> int:
    if "opened" not in announced and not (folder / "run.json").exists():
        return 0  # killed before there was a run
    run = load_run(folder)
    assert not run.complete
    records = run.values()
    assert [record.name for record in records] == [str(number) for number in range(len(records))]
    finished = [word for word in announced if word != "opened"]
    assert [record.name for record in records][: len(finished)] == finished
    assert len(records) <= len(finished) + 1
    assert [problem for problem in run.verify() if problem not in run.problems] == []
    for record in records:
        assert np.all(run.read(record.value) == record.step)  # type: ignore[arg-type]
    return len(records)


@pytest.mark.parametrize("slots", [0, 1, 2, 5])
def test_killed_writers_lose_nothing_finished(tmp_path: Path, slots: int) -> None:
    generator = random.Random(slots)
    counts, pending = [], 0
    server = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with server:
        for number in range(4 * KILLS):
            enough = sum(count > 0 for count in counts) >= KILLS // 4 and (pending > 0) == (slots > 0)
            if number >= KILLS and enough:  # on a busy machine the first ones may all come too early
                break
            folder = tmp_path / str(number)
            delay = generator.choice([0.01, 0.05, 0.2, 0.4]) * generator.random()
            announced = announced_before_death(server, folder, number, slots, delay)
            counts.append(check_killed_run(folder, announced))
            pending += needs_its_ring(folder)
        assert server.stdin is not None
        server.stdin.close()
    assert server.returncode == 0
    assert sum(count > 0 for count in counts) >= KILLS // 4  # the kills did not all come too early
    assert (pending > 0) == (slots > 0)  # and not all when everything was written


def needs_its_ring(folder: Path) -> bool:
    """Whether the run could not be read without what waits there."""
    if not (folder / "pending.bin").exists():
        return False
    (folder / "pending.bin").unlink()
    return load_run(folder).verify() != []
