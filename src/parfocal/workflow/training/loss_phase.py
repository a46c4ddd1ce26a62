"""Why two losses of one output differ: the comparison of losses, on the output and label of a step."""

from __future__ import annotations

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.errors import ParfocalError
from parfocal.judge.verdict import Cause
from parfocal.workflow.losses import compare_loss
from parfocal.workflow.training.batches import Batch, arrays_of
from parfocal.workflow.training.sides import TrainingSide


def loss_cause(
    reference: TrainingSide, port: TrainingSide, output: Array | None, pair: tuple[Batch, Batch]
) -> Cause | None:
    """None where the two are given different labels, or where no comparison explains them."""
    labels = [arrays_of(batch.label) for batch in pair]
    if output is None or reference.loss is port.loss or any(len(each) != 1 for each in labels):
        return None
    if not np.array_equal(labels[0][0], labels[1][0]):
        return None
    try:
        report = compare_loss(reference.loss, port.loss, output, labels[0][0])
    except ParfocalError:  # a loss that cannot be called apart from its training is not explained
        return None
    return next((each.cause for each in report.divergences if each.cause is not None), None)
