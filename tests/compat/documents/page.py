"""docs/documents.md and docs/documents.zh.md: what the older documents say, and how parfocal stands to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from tests.compat.documents.statements import TESTS, Statement, Status, Text, statements

DOCS = TESTS.parent / "docs"
DOCUMENTS = {
    "reprod_log": Text("reprod_log: README", "reprod_log：README"),
    "padiff": Text("PaDiff: Interfaces", "PaDiff：Interfaces"),
    "ppautodiff": Text("PPAutoDiff: README", "PPAutoDiff：README"),
    "guide": Text("The reproduction guide", "论文复现指南"),
    "alignment": Text("An alignment document: HPE", "一份对齐文档：HPE"),
}


@dataclass(frozen=True)
class Words:
    """The page's texts in one language."""

    language: str
    introduction: str
    counted: str
    document: str
    head: str
    status: dict[Status, str]
    untested: str


ENGLISH = Words(
    "english",
    """# The documents of the older tools

`make pages` wrote this page from `tests/compat/documents/statements.toml`, which a test reads. It goes through five
documents, section by section: the README of reprod_log, the interfaces of PaDiff, the README of PPAutoDiff, the guide to
reproducing a paper, and one alignment document that was written by it. Of every statement it says how parfocal stands to it:

- *as written*: it holds as the document says, with the [drop-ins](compat.md) or in the [guided reproduction](reproduce.md);
- *otherwise*: the need is met in another way, and why;
- *not*: parfocal does not do it, and why.

The last column names the tests, below `tests/`. Left out is what is not about software: why to reproduce a paper, whom to ask,
prizes, and links to code and pictures elsewhere.
""",
    "{total} statements: {counts}.",
    "document",
    "| statement | how it stands | tests |",
    {Status.AS_WRITTEN: "as written", Status.OTHERWISE: "otherwise", Status.NOT: "not"},
    "none yet",
)
CHINESE = Words(
    "chinese",
    """# 旧工具的文档

本页由 `make pages` 根据 `tests/compat/documents/statements.toml` 写成，该表由测试读取。它逐节核对五份文档：reprod_log 的 README、PaDiff 的接口文档、PPAutoDiff 的 README、论文复现指南，以及一份按指南写成的对齐文档。对每条陈述说明 parfocal 的情况：

- *与原文一致*：在[替代工具](compat.md)或[引导式复现](reproduce.md)中，按文档所写成立；
- *做法不同*：需求以另一种方式满足，并说明原因；
- *不支持*：parfocal 不做，并说明原因。

最后一列是 `tests/` 下的测试。与软件无关的内容没有列入：为什么要复现论文、向谁提问、奖励，以及指向别处代码和图片的链接。
""",
    "共 {total} 条陈述：{counts}。",
    "文档",
    "| 陈述 | 情况 | 测试 |",
    {Status.AS_WRITTEN: "与原文一致", Status.OTHERWISE: "做法不同", Status.NOT: "不支持"},
    "暂无",
)


def page(rows: Iterable[Statement], words: Words) -> str:
    rows = tuple(rows)
    parts = [words.introduction, _counted(rows, words), _by_document(rows, words)]
    for document, in_document in groupby(rows, key=lambda row: row.document):
        parts.append(f"## {_in(DOCUMENTS[document], words)}\n")
        for section, in_section in groupby(in_document, key=lambda row: row.section):
            lines = [words.head, "|---|---|---|", *(_row(row, words) for row in in_section)]
            parts += [f"### {_in(section, words)}\n", "\n".join(lines) + "\n"]
    return "\n".join(parts)


def _in(text: Text, words: Words) -> str:
    return str(getattr(text, words.language))


def _counts(rows: Iterable[Statement]) -> dict[Status, int]:
    found = [row.status for row in rows]
    return {status: found.count(status) for status in Status}


def _counted(rows: tuple[Statement, ...], words: Words) -> str:
    comma = "，" if words is CHINESE else ", "
    counts = comma.join(f"{count} {words.status[status]}" for status, count in _counts(rows).items())
    return words.counted.format(total=len(rows), counts=counts) + "\n"


def _by_document(rows: tuple[Statement, ...], words: Words) -> str:
    lines = [f"| {' | '.join([words.document, *words.status.values()])} |", "|---|---|---|---|"]
    for document, title in DOCUMENTS.items():
        counts = _counts(row for row in rows if row.document == document)
        lines.append(f"| {' | '.join([_in(title, words), *map(str, counts.values())])} |")
    return "\n".join(lines) + "\n"


def _row(row: Statement, words: Words) -> str:
    stands = words.status[row.status]
    if row.why is not None:
        stands += ("：" if words is CHINESE else ": ") + _in(row.why, words)
    tests = "<br>".join(f"`{test}`" for test in row.tests) or words.untested
    return f"| {_in(row.said, words)} | {stands} | {tests} |"


def write() -> None:
    for words, name in ((ENGLISH, "documents.md"), (CHINESE, "documents.zh.md")):
        (DOCS / name).write_text(page(statements(), words), encoding="utf-8")


if __name__ == "__main__":
    write()
