"""Names under which the values of a model go to the acceptance files."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.workflow.guide.values import named_outputs

ONE, TWO = np.zeros(1), np.ones(2)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (ONE, ["output"]),
        ((ONE,), ["output"]),
        ({"logits": ONE}, ["logits"]),
        ({"logits": ONE, "votes": TWO, "count": 3}, ["logits", "votes"]),
        ({"input": ONE}, ["output"]),
        ({"input": ONE, "logits": TWO}, ["output.input", "output.logits"]),
    ],
)
def test_outputs_keep_the_names_that_the_model_gives_them(value, names):
    assert list(named_outputs(value, ["input"])) == names
