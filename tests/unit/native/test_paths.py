"""One source, every processor: it compiles for all, and all find the same figures to the last bit."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hatch_build
import ml_dtypes
import numpy as np
import pytest

from parfocal.errors import InputError
from parfocal.judge import Tolerance, compare_arrays
from parfocal.judge.floors import apart
from parfocal.judge.sketch import sketch
from parfocal.native import library
from parfocal.native.library import LIBRARY
from tests.unit.native.presence import needs_library

ROOT = Path(hatch_build.__file__).parent
HERE = Path(__file__).parent
SIZES = [1, 15, 16, 17, 255, 256, 257, 4095, 65536, 65537, 300_001]
NATIVE = shutil.which("cc")
CROSS, EMULATOR = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")


@pytest.fixture
def on_every_path() -> Iterator:
    """Calls a job on every path of this machine: name -> what it gave."""
    assert LIBRARY is not None
    before = library.path_in_use()

    def run(job):
        found = {}
        for name in library.usable_paths(LIBRARY):
            library.use_path(LIBRARY, name)
            assert library.path_in_use() == name
            found[name] = job()
        return found

    yield run
    library.use_path(LIBRARY, before)


def pair(size: int, dtype: str, offset: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(size)
    b = generator.standard_normal(size + offset)
    a = b * (1 + 1e-3 * generator.standard_normal(size + offset))
    kind = getattr(ml_dtypes, dtype, dtype)
    return a.astype(kind)[offset:], b.astype(kind)[offset:]


@needs_library
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [0, 1])
def test_figures_are_the_same_to_the_last_bit(on_every_path, size, dtype, offset):
    a, b = pair(size, dtype, offset)
    jobs = [
        lambda: compare_arrays(a, b),
        lambda: compare_arrays(a, b, tolerance=Tolerance(1e-3, 1e-3)),
        lambda: compare_arrays(a, a),
        lambda: apart(a, b),
        lambda: apart(a, b, Tolerance(rtol=1.0, atol=1.0)),
        *(lambda width=width: sketch(a, size=width, seed=2) for width in (16, 48, 256, 1024)),
    ]
    for job in jobs:
        found = on_every_path(job)
        assert all(
            figures == found["x86-64" if "x86-64" in found else "portable"] for figures in found.values()
        )


@needs_library
def test_mixed_pairs_are_read_as_they_lie(on_every_path):
    half, full = pair(70_001, "bfloat16")[0], pair(70_001, "float32")[1]
    wide = half.astype(np.float32)
    for a, b, c, d in ((half, full, wide, full), (full, half, full, wide), (half, half, wide, wide)):
        for found in on_every_path(lambda a=a, b=b: compare_arrays(a, b)).values():
            wanted = compare_arrays(c, d)
            assert (found.mean_abs, found.rmse, found.max_rel) == (
                wanted.mean_abs,
                wanted.rmse,
                wanted.max_rel,
            )
            assert (found.max_index, found.cosine) == (wanted.max_index, wanted.cosine)


@needs_library
@pytest.mark.parametrize("place", [0, 255, 256, 5000, 65_535])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_what_is_not_ordinary_is_noticed_on_every_path(on_every_path, place, value):
    a, b = pair(65_536, "float32")
    a[place] = value
    assert set(on_every_path(lambda: apart(a, b)).values()) == {None}
    for found in on_every_path(lambda: compare_arrays(a, b)).values():
        assert found.max_index == (place,)
        assert found.nonfinite_disagreeing == (0 if np.isfinite(value) else 1)


@needs_library
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.5, 1.0])
@pytest.mark.parametrize("tolerance", [Tolerance(atol=0.25), Tolerance(rtol=2**-20), Tolerance(2**-20, 0.25)])
def test_mismatches_at_the_very_edge_are_counted_exactly(on_every_path, share, tolerance):
    """Differences are what is allowed, one unit more or one less: float32 alone cannot tell."""
    generator = np.random.default_rng(3)
    b = generator.integers(2**20, 2**22, 50_000).astype(np.float64) / 2**20
    allowed = tolerance.atol + tolerance.rtol * np.abs(b)
    steps = generator.integers(-1, 2, b.size) * (generator.random(b.size) < share)
    a, b = (b + allowed + steps * 2.0**-23).astype(np.float32), b.astype(np.float32)
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact = np.count_nonzero(np.abs(x - y) > tolerance.atol + tolerance.rtol * np.abs(y))
    for found in on_every_path(lambda: compare_arrays(a, b, tolerance=tolerance)).values():
        assert found.mismatched == exact


def ask(path: str, *, compiled: bool = True) -> subprocess.CompletedProcess[str]:
    code = "from parfocal.native import library; print(library.path_in_use())"
    if not compiled:
        code = f"from pathlib import Path\nPath.exists = lambda self: False\n{code}"
    environment = {**os.environ, library.VARIABLE: path}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


@needs_library
def test_a_path_is_forced_by_the_environment():
    assert LIBRARY is not None
    usable = library.usable_paths(LIBRARY)
    assert [ask(name).stdout.strip() for name in usable] == usable
    assert ask("none").stdout.strip() == "none"
    assert ask("").stdout.strip() == usable[-1]


@needs_library
def test_a_path_that_is_not_there_is_refused():
    assert LIBRARY is not None
    with pytest.raises(InputError, match="there is no path 'oak' for this processor") as caught:
        library.use_path(LIBRARY, "oak")
    assert caught.value.hint.startswith("set PARFOCAL_CPU to ")
    assert caught.value.hint.endswith(" or none, or to nothing for the best")


def test_a_path_without_a_library_is_refused():
    done = ask("x86-64", compiled=False)
    assert done.returncode != 0
    assert "PARFOCAL_CPU is 'x86-64', but parfocal was built without a C compiler" in done.stderr


# ---- compilers


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> list[str]:
    """What every path of this machine prints; the same, or the test fails."""
    if NATIVE is None:
        pytest.skip("no C compiler")
    driver = compile_driver(NATIVE, platform.machine(), tmp_path_factory.mktemp("native"))
    done = subprocess.run([driver], capture_output=True, text=True, check=True)
    first, *others = (part.split("\n", 1)[1] for part in done.stdout.split("path ")[1:])
    assert all(other == first for other in others)
    assert first.count("\n") == 9 * 2 * 5
    return first.splitlines()


def compile_driver(compiler: str, machine: str, room: Path, *flags: str) -> Path:
    made = room / "driver"
    error = hatch_build.compile_library(
        *(compiler, ROOT, made, machine, *flags),
        program=HERE / "driver.c",
    )
    assert not error, error
    return made


def test_a_program_without_python_finds_the_same_on_every_path(printed):
    assert printed[0].startswith("difference ")


@pytest.mark.skipif(NATIVE is None or platform.machine() != "x86_64", reason="no C compiler for x86-64")
@pytest.mark.parametrize("generation", ["x86-64-v3", "x86-64-v4"])
def test_it_compiles_for_every_generation_as_a_whole(generation, tmp_path):
    """Also where the compiler's usual target is wider than a path's; gcc 12 used to fail on v4."""
    made = tmp_path / "made.so"
    assert not hatch_build.compile_library(str(NATIVE), ROOT, made, "x86_64", f"-march={generation}")
    assert made.exists()


@pytest.mark.skipif(CROSS is None, reason="no compiler for aarch64: apt install gcc-aarch64-linux-gnu")
def test_it_compiles_for_aarch64_into_vector_code(tmp_path):
    made = tmp_path / "made.so"
    assert not hatch_build.compile_library(str(CROSS), ROOT, made, "aarch64")
    dump = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-d", made], capture_output=True, text=True, check=True
    ).stdout
    assert dump.count(".4s") > 200  # additions, products and comparisons of four numbers at once


@pytest.mark.skipif(
    CROSS is None or EMULATOR is None, reason="no aarch64 here: apt install gcc-aarch64-linux-gnu qemu-user"
)
def test_aarch64_finds_the_same_figures(printed, tmp_path):
    driver = compile_driver(str(CROSS), "aarch64", tmp_path, "-static")
    done = subprocess.run([str(EMULATOR), driver], capture_output=True, text=True, check=True)
    name, *lines = done.stdout.splitlines()
    assert name == "path portable"
    assert lines == printed


@pytest.mark.parametrize(
    ("symbols", "tag"),
    [
        (b"GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4", "manylinux_2_34_"),
        (b"GLIBC_2.2.5\0GLIBC_2.14", "manylinux_2_17_"),
        (b"another C library", "linux"),
    ],
)
def test_a_wheel_says_which_machines_can_load_it(symbols, tag, tmp_path):
    made = tmp_path / "made.so"
    made.write_bytes(b"\0" + symbols + b"\0")
    assert hatch_build.platform_tag(made).startswith(tag)


def test_a_compiler_that_fails_is_told(tmp_path):
    error = hatch_build.compile_library("false", ROOT, tmp_path / "made.so", "x86_64")
    assert error == "the compiler failed without a word"
    assert not (tmp_path / "made.so").exists()
