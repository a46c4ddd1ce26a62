"""The way of one tensor is what ``benchmarks.tracing`` finds: its figures, and files that the page names."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.tracing import Tracer, traced

from tests.docs.pages import ROOT
from tests.unit.native.presence import needs_library

WORDS = {
    "architecture.md": ("{} files, {} calls, {} classes", "{} files and {} calls", "{} of the calls read"),
    "architecture.zh.md": ("{} 个文件，{} 次调用，{} 个类", "{} 个文件和 {} 次调用", "{} 次是读数组"),
}
ROOMS = {**dict.fromkeys(("backends", "capture", "replay"), "run"), "judge": "judge"}


@pytest.fixture(scope="module")
def way() -> Tracer:
    return traced()


def room(file: str) -> str:
    return ROOMS.get(file.partition("/")[0], "told")


@needs_library  # without compiled loops NumPy reads the arrays in more calls
@pytest.mark.parametrize("name", WORDS)
def test_the_figures_are_those_of_a_run(way: Tracer, name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8").replace("\n", " ")
    whole, part, read = WORDS[name]
    calls, files = Counter[str](), Counter(map(room, way.files))
    for (_, target), count in way.hops.items():
        calls[room(target)] += count
    reading = sum(count for (_, target), count in way.hops.items() if target.startswith("judge/reading.py:"))
    assert whole.format(len(way.files), way.hops.total(), len(way.classes)) in text
    assert [
        each for each in ("run", "judge", "told") if part.format(files[each], calls[each]) not in text
    ] == []
    assert read.format(reading) in text


@pytest.mark.parametrize("name", WORDS)
def test_every_file_on_the_way_is_named(way: Tracer, name: str) -> None:
    rows = [
        line
        for line in (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    assert [file for file in way.files if not any(f"`{file}`" in row for row in rows)] == []
