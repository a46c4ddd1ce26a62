"""Comparing two runs needs little memory, however large the runs are, and no framework."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from parfocal.run.records import CallRecord, RunHeader, Structure, TensorValue
from parfocal.run.writer import RunWriter

CALLS = 20
ELEMENTS = 2**21  # 8 MB of float32
CODE = """
import resource, sys
from parfocal.workflow.recorded_runs.comparing import compare
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = compare(sys.argv[1], sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(report.ok, report.coverage.count("calls"), (after - before) * 1024)
"""


def call(order: int, parent: int | None, path: str, inputs: TensorValue, outputs: TensorValue) -> CallRecord:
    return CallRecord(
        order=order,
        parent=parent,
        depth=0 if parent is None else 1,
        path=path,
        kind="Tanh",
        class_name="Tanh",
        op=None,
        occurrence=0,
        file=None,
        line=None,
        training=False,
        settings={},
        inputs=Structure({"0": inputs}, ["tuple", [["tuple", ["0"]], ["dict", {}]]]),
        outputs=Structure({"0": outputs}, "0"),
    )


def write(folder: Path) -> int:
    """A chain of calls; returns how many bytes their tensors have."""
    random = np.random.default_rng(0)
    with RunWriter(folder, RunHeader(framework="numpy", versions={}), durable=False) as writer:
        values = [
            writer.tensor_value(random.standard_normal(ELEMENTS, dtype=np.float32)) for _ in range(CALLS + 1)
        ]
        for number in range(CALLS):
            writer.append(call(number + 1, 0, str(number), values[number], values[number + 1]))
        writer.append(call(0, None, "", values[0], values[-1]))
    return 4 * ELEMENTS * (CALLS + 1)


def test_memory_is_bounded(tmp_path: Path) -> None:
    size = write(tmp_path / "reference")
    write(tmp_path / "port")
    command = [sys.executable, "-c", CODE, str(tmp_path / "reference"), str(tmp_path / "port")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ok, calls, used = done.stdout.split()
    assert (ok, calls) == ("True", str(CALLS + 1))
    assert int(used) < 2 * 2**26 + 2**26  # a window of each run, and what one comparison needs
    assert int(used) < 2 * size * 0.7
