"""The table of statements holds together, its pages are those of it, and a wrong row is refused."""

from __future__ import annotations

import re

import pytest

from tests.compat.documents import page
from tests.compat.documents.statements import TABLE, Status, TableError, read, statements

# Whose tests are to be named: a row leaves this list with its first one.

RIGHT = """
[[section]]
document = "guide"
english = "3.1 Model"
chinese = "3.1 模型"

[[section.statement]]
english = "one"
chinese = "一"
status = "as written"
tests = ["compat/documents/test_table.py::test_the_table_is_read"]

[[section.statement]]
english = "two"
chinese = "二"
status = "otherwise"
why = { english = "because", chinese = "因为" }
"""


def test_the_table_is_read():
    one, two = read(RIGHT)
    assert (one.document, one.section.english, one.said.chinese) == ("guide", "3.1 Model", "一")
    assert (one.status, two.status) == (Status.AS_WRITTEN, Status.OTHERWISE)
    assert two.why.chinese == "因为"


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ('status = "as written"', 'status = "nearly"', "status is 'nearly'; known are: as written, "),
        ('status = "as written"\n', "", "status is None"),
        (
            "::test_the_table_is_read",
            "::test_of_nothing",
            "there is no test 'compat/documents/test_table.py::",
        ),
        ("test_table.py", "test_nowhere.py", "there is no test"),
        ("test_table.py::test_the_table_is_read", "statements.py::read", "there is no test"),
        ('why = { english = "because", chinese = "因为" }', "", "what is 'otherwise' needs a why"),
        (', chinese = "因为" }', " }", "why: chinese is ''"),
        ('english = "because", ', "", "why: english is ''"),
        ('chinese = "因为"', 'chinese = "because"', "'because' is not Chinese"),
        ('status = "as written"', 'status = "as written"\nwhy = { english = "a", chinese = "一" }', "no why"),
        ('english = "one"', 'english = "one | more"', "one line without |"),
        ('english = "two"', 'english = "one"', "'one' is there twice"),
        ('status = "otherwise"', 'status = "otherwise"\ntest = "a"', "unknown test"),
    ],
)
def test_a_wrong_row_is_refused(right, wrong, told):
    assert RIGHT.count(right) == 1
    with pytest.raises(TableError, match=re.escape(told)):
        read(RIGHT.replace(right, wrong))


def test_what_is_so_has_a_test():
    """What parfocal does not do needs none: there is nothing to run."""
    without = {row.said.english for row in statements() if not row.tests and row.status is not Status.NOT}
    assert without == set()


def test_every_document_is_there():
    assert {row.document for row in statements()} == set(page.DOCUMENTS)
    assert TABLE.read_text(encoding="utf-8").count("[[section.statement]]") == len(statements())


@pytest.mark.parametrize(
    ("words", "name"), [(page.ENGLISH, "documents.md"), (page.CHINESE, "documents.zh.md")]
)
def test_the_pages_are_those_of_the_table(words, name):
    assert (page.DOCS / name).read_text(encoding="utf-8") == page.page(statements(), words), (
        "run `make pages`"
    )


def test_a_page_counts_what_is_in_it():
    text = page.page(read(RIGHT), page.ENGLISH)
    assert "2 statements: 1 as written, 1 otherwise, 0 not." in text
    assert "| two | otherwise: because | none yet |" in text
    assert "| two | 做法不同" not in text
    assert "| 二 | 做法不同：因为 | 暂无 |" in page.page(read(RIGHT), page.CHINESE)
