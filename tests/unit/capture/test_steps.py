"""Counting steps, backward passes and occurrences."""

from __future__ import annotations

from parfocal.capture.steps import Steps
from parfocal.run.records import StepRecord


def test_occurrences_are_counted_by_path_and_op_and_anew_in_each_step():
    steps = Steps()
    assert [steps.occurrence("a"), steps.occurrence("a"), steps.occurrence("b")] == [0, 1, 0]
    assert steps.occurrence("a", "relu") == 0
    steps.finish(0)
    assert steps.occurrence("a") == 0


def test_losses_of_several_backward_passes_add_up():
    steps = Steps()
    assert steps.backward == -1
    steps.begin_backward(1.5)
    steps.begin_backward(None)
    steps.begin_backward(2.0)
    assert steps.backward == 2
    assert steps.finish(3) == StepRecord(0, 3.5, None, None, 3)


def test_the_next_step_knows_nothing_of_the_last():
    steps = Steps()
    steps.begin_backward(1.0)
    steps.learning_rate = 0.1
    steps.norm([9.0, 16.0])
    assert steps.finish(0) == StepRecord(0, 1.0, 0.1, 5.0)
    assert steps.finish(0) == StepRecord(1, None, None, None)


def test_no_gradients_have_no_norm():
    steps = Steps()
    steps.norm([])
    assert steps.gradient_norm is None
