"""Held down to an older processor: every library says that it is, and every one adds up in another order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest
from benchmarks import processors
from benchmarks.rounding import setting as rounding
from numpy._core import _multiarray_umath as umath

HAS = {name for name, kind in processors.PROCESSORS.items() if umath.__cpu_features__.get(kind.needs)}
# Every processor, and one of them with another number of threads.
ON = pytest.mark.parametrize(
    ("name", "threads"),
    [
        pytest.param(name, threads, marks=pytest.mark.skipif(name not in HAS, reason=f"{name} is not here"))
        for name, threads in (*((name, 1) for name in processors.PROCESSORS), ("sse4", 3))
    ],
)
ASK = """
import json, warnings
warnings.simplefilter("error", ImportWarning)
import numpy as np
from numpy._core import _multiarray_umath as umath
warnings.simplefilter("ignore")
import paddle, torch
given = np.random.default_rng(0).standard_normal((2, 200, 1000)).astype("float32")
sums = lambda values: np.asarray(values).astype("float64").ravel()[:64].tolist()
print(json.dumps({
    "features": [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]],
    "torch": torch.backends.cpu.get_cpu_capability(),
    "threads": torch.get_num_threads(),
    "products": {
        "numpy": sums(given[0] @ given[1].T),
        "torch": sums(torch.tensor(given[0]) @ torch.tensor(given[1]).T),
        "paddle": sums(paddle.to_tensor(given[0]) @ paddle.to_tensor(given[1]).T),
    },
}))
"""


@cache
def ask(name: str, threads: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.processors", name, "--threads", str(threads), "--"]
    held = {*processors.VARIABLES, *rounding.environment("equal")}  # this is about the machine's own rounding
    usual = {key: value for key, value in os.environ.items() if key not in held}
    done = subprocess.run(
        [*command, sys.executable, "-c", ASK], capture_output=True, text=True, check=False, env=usual
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@ON
def test_libraries_believe_it(name, threads):
    found, allowed = ask(name, threads), processors.PROCESSORS[name].numpy_features
    assert allowed is None or set(found["features"]) <= allowed
    assert found["torch"] == {"sse4": "DEFAULT", "avx2": "AVX2", "avx512": "AVX512"}[name]
    assert found["threads"] == threads


@pytest.mark.skipif(not {"sse4", "avx2"} <= HAS, reason="no AVX2 here: there is one processor only")
def test_sums_are_made_in_another_order():
    old, new = (ask(name, 1)["products"] for name in ("sse4", "avx2"))
    assert old.keys() == {"numpy", "torch", "paddle"}
    for library in old:
        assert old[library] != new[library], f"{library} computes the same on both"
        assert old[library] == pytest.approx(new[library], rel=1e-2, abs=1e-2)


def test_a_processor_that_this_machine_cannot_be(monkeypatch, capsys):
    monkeypatch.setitem(processors.umath.__cpu_features__, "AVX2", False)
    with pytest.raises(SystemExit):
        processors.main(["avx2", "--", "true"])
    assert "avx2 needs AVX2, which this machine (" in capsys.readouterr().err
