"""docs/versions.md and docs/versions.zh.md: what came out with each pair of versions, and what each lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parfocal.backends.versions import TESTED
from tests.versions.declared import PACKAGES, Lack, table
from tests.versions.pairs import ROOT

TITLES = {"paddle": "PaddlePaddle", "torch": "PyTorch", "numpy": "NumPy", "python": "Python"}


@dataclass(frozen=True)
class Result:
    """What the tests said in one environment."""

    versions: Mapping[str, str]
    passed: int
    expected: int  # failures, declared in lacks.toml
    skipped: int  # by the tests' own marks, on every version
    failed: int


@dataclass(frozen=True)
class Words:
    """The page's texts in one language."""

    introduction: str
    head: str
    lacks: str
    nothing: str
    reach: str


ENGLISH = Words(
    """# Versions

`make test-versions` wrote this page. It makes an environment for each pair of versions and runs the
conformance suite, the drop-ins and the pairs of torch and paddle in it. What a version does not have is
declared in `tests/versions/lacks.toml` with its reason: those tests are expected to fail, with the failure
that is declared, and one that passes fails the run. Only the pairs in this table were run.
""",
    "| PaddlePaddle | PyTorch | NumPy | Python | passed | lacking | skipped | failed |",
    "## What versions lack",
    "Nothing.",
    """parfocal says once, in one line, when it meets a version outside of {ranges}. It goes on; its results are
not tested there. `parfocal doctor` shows the same.
""",
)
CHINESE = Words(
    """# 版本

本页由 `make test-versions` 写成。它为每一对版本建立一个环境，并在其中运行一致性测试、替代工具的测试以及 torch 与 paddle 的成对测试。某个版本没有的功能连同原因写在 `tests/versions/lacks.toml` 中：这些测试应当按所写的方式失败，若其中一个通过，整个运行就算失败。只有下表中的各对版本运行过。
""",
    "| PaddlePaddle | PyTorch | NumPy | Python | 通过 | 缺少 | 跳过 | 失败 |",
    "## 各版本缺少什么",
    "没有。",
    """遇到 {ranges} 以外的版本时，parfocal 用一行话提示一次。它会继续运行，但结果未经测试。`parfocal doctor` 也会显示。
""",
)
RULE = "|---|---|---|---|---:|---:|---:|---:|"


def told(result: Result) -> str:
    return (
        f"{result.passed} passed, {result.expected} lacking, {result.skipped} skipped, {result.failed} failed"
    )


def write(results: Sequence[Result]) -> None:
    for words, name in ((ENGLISH, "versions.md"), (CHINESE, "versions.zh.md")):
        (ROOT / "docs" / name).write_text(page(results, words), encoding="utf-8")


def page(results: Sequence[Result], words: Words) -> str:
    ranges = ", ".join(f"{TITLES[name]} {low}–{high}" for name, (low, high) in TESTED.items())
    parts = [
        words.introduction,
        "\n".join([words.head, RULE, *map(_row, results)]) + "\n",
        words.reach.format(ranges=ranges),
        words.lacks + "\n",
        _lacks(words),
    ]
    return "\n".join(parts)


def _row(result: Result) -> str:
    cells = [result.versions[name] for name in TITLES]
    cells += [str(each) for each in (result.passed, result.expected, result.skipped, result.failed)]
    return f"| {' | '.join(cells)} |"


def _lacks(words: Words) -> str:
    lines = [f"- {_versions(lack)}: {_what(lack, words)}" for lack in sorted(table(), key=_order)]
    return "\n".join(dict.fromkeys(lines) or [words.nothing]) + "\n"


def _order(lack: Lack) -> tuple[int, str]:
    return list(PACKAGES).index(lack.package), lack.versions


def _versions(lack: Lack) -> str:
    return f"{TITLES[lack.package]} {lack.versions}"


def _what(lack: Lack, words: Words) -> str:
    return lack.what if words is ENGLISH else lack.chinese
