"""Values and foreign texts in messages: never an array, a long list or more than a line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.brief import LONGEST, brief, one_line, some, told
from parfocal.explain.fixes.literals import written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "1e-05"),
        (1.0, "1.0"),
        (1 / 3, "0.3333333"),
        (np.arange(12, dtype="float32").reshape(3, 4) / 8, "float32 [3, 4]: 0, 0.125, 0.25, ..."),
        (np.array([1, 2], dtype="int64"), "int64 [2]: 1, 2"),
        (np.float32(0.5), "0.5"),
        ([1, 1], "[1, 1]"),
        ((3,), "(3,)"),
        ("same", "'same'"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, ... (100 in all)]"),
        ({"a": np.zeros((2, 2))}, "{'a': float64 [2, 2]: 0, 0, 0, ...}"),
        (None, "None"),
    ],
)
def test_a_value_in_a_few_words(value: object, text: str) -> None:
    assert brief(value) == text


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_a_tensor_of_either_framework_is_told_like_an_array(name: str) -> None:
    framework = __import__(name)
    tensor = framework.ones([4, 5])
    assert brief(tensor) == "float32 [4, 5]: 1, 1, 1, ..."


def test_a_tensor_without_values_is_told_by_its_shape() -> None:
    import torch

    assert brief(torch.empty(3, 2, device="meta")) == "float32 [3, 2]"


values = st.recursive(
    st.one_of(st.integers(), st.floats(), st.text(), st.binary(), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner), st.tuples(inner, inner)),
    max_leaves=40,
)


@given(values)
def test_whatever_is_given_one_line_comes_back(value: object) -> None:
    text = brief(value)
    assert "\n" not in text
    assert len(text) <= LONGEST + 2  # quotation marks


@given(st.text())
def test_foreign_text_is_cut_where_a_line_ends(text: str) -> None:
    line = one_line(text)
    assert len(line) <= LONGEST
    assert len(line.splitlines()) <= 1
    assert bool(line) == bool(text.strip())


def test_an_error_is_told_in_its_own_words_or_by_its_kind() -> None:
    assert told(ValueError("\n\nshapes 3 and 4\nTraceback ...")) == "shapes 3 and 4"
    assert told(KeyError()) == "KeyError"


def test_of_many_names_the_first_are_told() -> None:
    assert some(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert some(["a", "b"], 2) == "a, b"


def test_an_array_is_never_written_into_a_line_of_code() -> None:
    text = written(np.sin(np.arange(512.0)).reshape(16, 32))
    assert text == "<float64 [16, 32]: 0, 0.841471, 0.9092974, ...>"
    with pytest.raises(SyntaxError):  # so that it is never taken for a line that runs
        compile(text, "fix", "eval")
