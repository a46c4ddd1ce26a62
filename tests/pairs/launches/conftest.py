"""Two launches of two ranks and two single processes, made once: every training that the tests compare."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.warm import warm_python

SCRIPT = Path(__file__).with_name("train.py")

# On two ranks, by both frameworks.
LAUNCHED: dict[str, dict[str, Any]] = {
    "plain": {},
    "sketched": {"tensors": "sketch"},
    "reduced by hand": {"reduction": "mean"},
    "summed": {"reduction": "sum"},
    "summed, sketched": {"reduction": "sum", "tensors": "sketch"},
    "not reduced": {"reduction": "none"},
    "rate times ranks": {"rate": 0.1},
    "the same samples": {"sampler": "all"},
    "the same samples, sketched": {"sampler": "all", "tensors": "sketch"},
    "swapped": {"sampler": "swapped"},
    "blocks": {"sampler": "blocks"},
    "batch norm": {"norm": "batch"},
    "batch norm, summed": {"norm": "batch", "reduction": "sum"},
    "synced norm": {"norm": "synced"},
    "other weights on rank 1": {"nudged_rank": 1, "reduction": "mean"},
    "loss over ranks": {"loss_factor": 0.5},
    "half the batch": {"share": 4},
    "filled up": {"samples": 47},
    "not filled up": {"samples": 47, "sampler": "unpadded"},
    "other rate": {"rate": 0.07},
    "clipped by hand": {"reduction": "mean", "clip": 0.5},
    "clipped": {"clip": 0.5},
    "divided": {"divided": True, "sampler": "all"},
}
# In one process, with the batches of all ranks.
SINGLE: dict[str, dict[str, Any]] = {
    "plain": {},
    "sketched": {"tensors": "sketch"},
    "batch norm": {"norm": "batch"},
    "short": {"samples": 47},
    "clipped": {"clip": 0.5},
}


class Launches:
    """Where every recorded training is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, framework: str, ranks: int, name: str) -> Path:
        return self.folder / f"{framework} {ranks} {name}"

    def record(self, framework: str, ranks: int, jobs: dict[str, dict[str, Any]]) -> None:
        listed = [{**job, "path": str(self.path(framework, ranks, name))} for name, job in jobs.items()]
        file = self.folder / f"{framework} {ranks}.json"
        file.write_text(json.dumps(listed))
        command = [*warm_python(), *self._launcher(framework, ranks), str(SCRIPT), framework, str(file)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def _launcher(self, framework: str, ranks: int) -> list[str]:
        if ranks == 1:
            return []
        if framework == "torch":
            return ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]
        launcher = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(ranks), "--backend", "gloo"]
        return [*launcher, "--log_dir", str(self.folder / "log")]


@pytest.fixture(scope="session")
def launches(tmp_path_factory: pytest.TempPathFactory) -> Launches:
    made = Launches(tmp_path_factory.mktemp("launches"))
    for framework in ("torch", "paddle"):
        made.record(framework, 2, LAUNCHED)
        made.record(framework, 1, SINGLE)
    return made
