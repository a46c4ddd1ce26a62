"""What chance and rounding allow is allowed where it was measured, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.workflow.acceptance.layout import CHECKPOINTS, TRAINED, UPDATED, allowing
from parfocal.workflow.acceptance.problems import allowed_difference

MEASURED = {"loss_3": 0.1, "top1": 0.2}


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda each: each.name)
def test_losses_of_updates_and_trained_metrics_have_their_own(checkpoint) -> None:
    given = allowing(checkpoint, None, MEASURED)
    expected = {UPDATED: {"loss_3": 0.1}, TRAINED: {"top1": 0.2}}.get(checkpoint.name, {})
    assert given.by_chance == expected
    assert given.threshold == checkpoint.threshold
    assert allowed_difference(given, "loss_2", np.float32(1.0)) == checkpoint.threshold


def test_what_a_project_allows_is_for_trained_metrics_alone() -> None:
    found = {each.name: allowing(each, 0.02, {}).threshold for each in CHECKPOINTS}
    assert found == {each.name: 0.02 if each.name == TRAINED else each.threshold for each in CHECKPOINTS}
