"""check_dataloader on tensors, tuples and dicts of both frameworks."""

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.padiff import check_dataloader
from parfocal.errors import EmptyComparisonError, InputError
from tests.compat.padiff.models import floats

IMAGES = [floats(2, 3, 4, 4) + number for number in range(3)]
LABELS = [np.array([number, number + 1]) for number in range(3)]


def torch_batches(shift=0.0, label_shift=0):
    for image, label in zip(IMAGES, LABELS, strict=True):
        yield torch.tensor(image + np.float32(shift)), torch.tensor(label + label_shift)


def paddle_batches():
    for image, label in zip(IMAGES, LABELS, strict=True):
        yield [paddle.to_tensor(image), paddle.to_tensor(label)]


def test_batches_of_image_and_label_agree_or_not(capsys):
    assert check_dataloader(torch_batches(), paddle_batches()) is True
    assert check_dataloader(torch_batches(shift=1.0), paddle_batches()) is False
    assert (
        "[AutoDiff] check dataloader failed!!!\nbatch 0: item 0: AssertionError:" in capsys.readouterr().out
    )
    assert check_dataloader(torch_batches(label_shift=1), paddle_batches()) is False
    assert "batch 0: item 1: AssertionError:" in capsys.readouterr().out


def test_plain_tensors_arrays_and_dicts_agree():
    assert check_dataloader(map(torch.tensor, IMAGES), map(paddle.to_tensor, IMAGES))
    assert check_dataloader(IMAGES, map(paddle.to_tensor, IMAGES))
    named = [{"image": image, "name": "cat", "size": 4} for image in IMAGES]
    assert check_dataloader(named, [dict(batch) for batch in named])
    assert not check_dataloader(named, [{**batch, "name": "dog"} for batch in named])
    assert not check_dataloader(named, [{**batch, "size": 5} for batch in named])


def test_tolerances_are_the_callers():
    assert not check_dataloader(torch_batches(shift=1e-3), paddle_batches())
    assert check_dataloader(torch_batches(shift=1e-3), paddle_batches(), atol=1e-2)
    assert not check_dataloader(torch_batches(shift=1e-3), paddle_batches())
    with pytest.raises(InputError, match="no entry called 'tolerance'"):
        check_dataloader([], [], tolerance=1)


def test_shuffled_batches_do_not_pass_by_their_mean():
    assert not check_dataloader([IMAGES[0]], [IMAGES[0][::-1].copy()])


def test_other_numbers_of_batches_and_items_do_not_pass(capsys):
    with pytest.raises(RuntimeError, match="Given dataloader return difference number of datas"):
        check_dataloader(IMAGES, IMAGES[:2])
    assert not check_dataloader([(IMAGES[0], LABELS[0])], [(IMAGES[0],)])
    assert "batch 0: 2 items against 1" in capsys.readouterr().out


def test_two_empty_loaders_are_an_error():
    with pytest.raises(EmptyComparisonError, match="nothing was compared"):
        check_dataloader([], [])
