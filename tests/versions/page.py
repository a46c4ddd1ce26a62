"""docs/versions.md and docs/versions.zh.md: what came out with each pair of versions, and what each lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parfocal.backends.versions import TESTED
from tests.versions.declared import KNOWN, Lack, table
from tests.versions.pairs import PAIRS, ROOT, Pair

TITLES = {"paddle": "PaddlePaddle", "torch": "PyTorch", "numpy": "NumPy", "python": "Python"}


RESULTS = Path(__file__).with_name("results.json")
SUITES = {"tests/conformance": "conformance", "tests/compat": "drop-ins", "tests/pairs": "pairs"}


@dataclass(frozen=True)
class Result:
    """What the tests of a suite said."""

    passed: int
    expected: int  # failures, declared in lacks.toml
    skipped: int  # by the tests' own marks, on every version
    failed: int


@dataclass(frozen=True)
class Row:
    """A pair of versions, what is installed with it, and what the suites said that were run."""

    pair: str
    versions: Mapping[str, str]
    results: Mapping[str, Result]


@dataclass(frozen=True)
class Words:
    """The page's texts in one language."""

    introduction: str
    head: str
    lacks: str
    nothing: str
    reach: str
    cell: str
    not_run: str


ENGLISH = Words(
    """# Versions

`make test-versions` wrote this page. It makes an environment for each pair of versions and runs the
conformance suite, the drop-ins and the pairs of torch and paddle in it. What a version does not have is
declared in `tests/versions/lacks.toml` with its reason: those tests are expected to fail, with the failure
that is declared, and one that passes fails the run. What is not in this table was not run.
""",
    "| PaddlePaddle | PyTorch | NumPy | Python | conformance | drop-ins | pairs |",
    "## What versions lack",
    "Nothing.",
    """parfocal says once, in one line, when it meets a version outside of these: {ranges}.
It goes on; its results are not tested there. `parfocal doctor` shows the same.

Known and not mended: with PyTorch 2.1, a `torch.compile` or `torch.export` that is the first of the process and runs while a
training is recorded hides the updates after it. Compile before recording.
""",
    "{passed} passed, {expected} lacking, {failed} failed",
    "not run",
)
CHINESE = Words(
    """# 版本

本页由 `make test-versions` 写成。它为每一对版本建立一个环境，并在其中运行一致性测试、替代工具的测试以及 torch 与 paddle 的成对测试。某个版本没有的功能连同原因写在 `tests/versions/lacks.toml` 中：这些测试应当按所写的方式失败，若其中一个通过，整个运行就算失败。下表中没有的就没有运行过。
""",
    "| PaddlePaddle | PyTorch | NumPy | Python | 一致性 | 替代工具 | 成对测试 |",
    "## 各版本缺少什么",
    "没有。",
    """遇到 {ranges} 以外的版本时，parfocal 用一行话提示一次。它会继续运行，但结果未经测试。`parfocal doctor` 也会显示。

已知而未解决：在 PyTorch 2.1 中，如果录制训练期间首次运行 `torch.compile` 或 `torch.export`，此后的更新不会被录下。请先编译再录制。
""",
    "通过 {passed}，缺少 {expected}，失败 {failed}",
    "未运行",
)
RULE = "|---|---|---|---|---|---|---|"


def told(result: Result) -> str:
    return (
        f"{result.passed} passed, {result.expected} lacking, {result.skipped} skipped, {result.failed} failed"
    )


def rows() -> list[Row]:
    """What is noted of every pair; of one that was not run, its versions alone."""
    noted = json.loads(RESULTS.read_text(encoding="utf-8"))
    return [_noted(pair, noted.get(pair.name, {})) for pair in PAIRS]


def _noted(pair: Pair, found: Mapping[str, Any]) -> Row:
    results = {name: Result(**each) for name, each in found.get("results", {}).items()}
    planned = {"paddle": pair.paddle, "torch": pair.torch, "python": pair.python}
    return Row(pair.name, found.get("versions", planned), results)


def note(pair: Pair, versions: Mapping[str, str], suite: str, result: Result) -> None:
    """Note what a suite said, and write the pages anew."""
    noted = json.loads(RESULTS.read_text(encoding="utf-8"))
    before = noted.get(pair.name, {}).get("results", {})
    noted[pair.name] = {"versions": dict(versions), "results": {**before, suite: asdict(result)}}
    RESULTS.write_text(json.dumps(noted, indent=2) + "\n", encoding="utf-8")
    write(rows())


def write(rows: Sequence[Row]) -> None:
    for words, name in ((ENGLISH, "versions.md"), (CHINESE, "versions.zh.md")):
        (ROOT / "docs" / name).write_text(page(rows, words), encoding="utf-8")


def page(rows: Sequence[Row], words: Words) -> str:
    ranges = ", ".join(
        f"{TITLES[name]} {low}" if low == high else f"{TITLES[name]} {low}–{high}"
        for name, (low, high) in TESTED.items()
    )
    parts = [
        words.introduction,
        "\n".join([words.head, RULE, *(_row(row, words) for row in rows)]) + "\n",
        words.reach.format(ranges=ranges),
        words.lacks + "\n",
        _lacks(words),
    ]
    return "\n".join(parts)


def _row(row: Row, words: Words) -> str:
    cells = [row.versions.get(name, "") for name in TITLES]
    cells += [
        words.cell.format(**asdict(row.results[suite])) if suite in row.results else words.not_run
        for suite in SUITES
    ]
    return f"| {' | '.join(cells)} |"


def _lacks(words: Words) -> str:
    lines = [f"- {_versions(lack)}: {_what(lack, words)}" for lack in sorted(table(), key=_order)]
    return "\n".join(dict.fromkeys(lines) or [words.nothing]) + "\n"


def _order(lack: Lack) -> tuple[int, str]:
    return KNOWN.index(lack.package), lack.versions


def _versions(lack: Lack) -> str:
    return f"{TITLES[lack.package]} {lack.versions}"


def _what(lack: Lack, words: Words) -> str:
    return lack.what if words is ENGLISH else lack.chinese
