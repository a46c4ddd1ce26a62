"""The tests of a file are where its path says: ``src/parfocal/a/b.py`` has ``tests/unit/a/test_b.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

UNIT = Path(__file__).parent
SOURCE = UNIT.parents[1] / "src" / "parfocal"
# What is no matter of one file.
PROPERTIES = {
    "judge/test_loops.py": "the compiled loops and NumPy's way beside them",
    "judge/test_memory.py": "how much memory the judge needs",
    "judge/test_metrics_edges.py": "metrics.py, by corner cases",
    "judge/test_metrics_oracle.py": "metrics.py, against exact arithmetic",
    "locale/test_catalogue.py": "every sentence and its translation",
    "locale/test_errors.py": "every error in the code",
    "locale/test_messages.py": "tools/messages.py",
    "native/test_paths.py": "every processor's loops",
    "report/test_chinese.py": "whole reports in Chinese",
    "run/test_fuzz.py": "mutated files of every format",
    "run/test_kill.py": "a writer that is killed",
    "run/test_old_runs.py": "runs of earlier versions",
    "run/test_ring_errors.py": "ring.py, damaged",
    "test_ablation.py": "the harness that switches entries off",
    "test_bench_bars.py": "the table of the benchmarks",
    "test_bench_matched_words.py": "translating what a benchmark wrote",
    "test_fault_bench.py": "the fault benchmark",
    "test_framework_names.py": "no framework's name outside of backends",
    "test_facts.py": "all code: what it knows travels as data, not as sentences",
    "test_import.py": "importing loads no framework",
    "test_mirror.py": "this",
    "test_thorough.py": "what make test leaves out",
    "test_processors.py": "being held down to an older processor",
    "weights/test_matching.py": "matching without a framework",
    "weights/test_scaling.py": "time in proportion to the number of parameters",
    "workflow/recorded_runs/test_memory.py": "how much memory a comparison of runs needs",
}
FILES = sorted(path.relative_to(UNIT).as_posix() for path in UNIT.rglob("test_*.py"))


def source_of(path: str) -> Path:
    """The source file or folder whose tests a file has by its path."""
    folder, _, name = path.rpartition("/")
    return SOURCE / folder / name.removeprefix("test_").removesuffix(".py")


@pytest.mark.parametrize("path", FILES)
def test_the_path_says_what_is_tested(path: str) -> None:
    source = source_of(path)
    assert (source.with_suffix(".py").is_file() or source.is_dir()) != (path in PROPERTIES)


def test_what_is_left_out_is_there() -> None:
    assert set(PROPERTIES) <= set(FILES)


def test_a_wrong_place_is_noticed() -> None:
    assert not source_of("weights/test_no_such_file.py").with_suffix(".py").exists()
