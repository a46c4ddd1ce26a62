"""Two ranks of one launch write one Run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from parfocal.run.reader import load_run
from tests.warm import warm_python

SCRIPTS = {
    "torch": """
import sys
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from parfocal.capture.recording import record

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(3, 2))
x = torch.full((4, 3), float(rank + 1))
for _ in range(2):  # a second recording to the same path gets a folder of its own, for both ranks
    with record(model, sys.argv[1]) as recorder:
        model(x).sum().backward()
        recorder.log("world", dist.get_world_size())
dist.destroy_process_group()
""",
    "paddle": """
import sys
import warnings
warnings.simplefilter("ignore")
import paddle
import paddle.distributed as dist
from parfocal.capture.recording import record

dist.init_parallel_env()
rank = dist.get_rank()
paddle.seed(0)
model = paddle.DataParallel(paddle.nn.Linear(3, 2))
x = paddle.full([4, 3], float(rank + 1))
for _ in range(2):
    with record(model, sys.argv[1]) as recorder:
        model(x).sum().backward()
        recorder.log("world", dist.get_world_size())
""",
}


def launcher(name: str, folder: Path) -> list[str]:
    if name == "torch":
        return ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    return [
        *("-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--backend", "gloo"),
        *("--log_dir", str(folder / "log")),
    ]


def test_two_ranks_write_one_run(kit, tmp_path):
    kit.need("several processes")
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[kit.name])
    command = [*warm_python(), *launcher(kit.name, tmp_path), str(script), str(tmp_path / "run")]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    for folder in ("run", "run-2"):
        run = load_run(tmp_path / folder)
        assert run.complete
        assert run.ranks == (0, 1)
        assert run.verify() == []
        weights = []
        for rank in (0, 1):
            inner = next(call for call in run.calls(rank) if call.kind == "Linear")
            assert inner.rank == rank
            assert (run.read(inner.inputs.leaves["0"]) == rank + 1).all()
            assert [item.value for item in run.values(rank)] == [2]
            gradient = next(
                item for item in run.state(rank) if item.role == "gradient" and item.path.endswith("weight")
            )
            weights.append(run.read(gradient.value))
        # Averaged over the ranks: 4 rows of 1 and 4 rows of 2. The second recording adds to the first.
        assert weights[0] == pytest.approx(weights[1])
        assert np.unique(weights[0]).tolist() == [6.0 if folder == "run" else 12.0]
    assert not (tmp_path / "run-3").exists()
