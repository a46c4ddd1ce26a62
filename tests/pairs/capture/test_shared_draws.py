"""Python, NumPy and both frameworks draw the same numbers from one source, and their own afterwards."""

from __future__ import annotations

import random
import threading

import numpy as np
import paddle
import pytest
import torch

from parfocal.backends import registry
from parfocal.capture.shared_draws import DrawSource, Keyed, drawing_from

# ways to draw one thing
SAME = {
    "a number below 1": [
        lambda: random.random(),
        lambda: np.random.rand(),
        lambda: np.random.random_sample(),
        lambda: torch.rand(1).item(),
        lambda: paddle.rand([1]).item(),
    ],
    "a number of a range": [
        lambda: random.uniform(-2, 3),
        lambda: np.random.uniform(-2, 3),
        lambda: np.random.uniform(low=-2, high=3),
        lambda: torch.empty(1).uniform_(-2, 3).item(),
        lambda: paddle.uniform([1], min=-2.0, max=3.0).item(),
    ],
    "a whole number": [
        lambda: random.randint(2, 8),
        lambda: random.randrange(2, 9),
        lambda: np.random.randint(2, 9),
        lambda: torch.randint(2, 9, (1,)).item(),
        lambda: paddle.randint(2, 9, [1]).item(),
    ],
    "one of several": [lambda: random.choice([3, 5, 7]), lambda: int(np.random.choice([3, 5, 7]))],
    "a normal number": [
        lambda: random.gauss(1, 2),
        lambda: np.random.normal(1, 2),
        lambda: torch.empty(1).normal_(1, 2).item(),
    ],
    "an order": [
        lambda: shuffled(random.shuffle),
        lambda: shuffled(np.random.shuffle),
        lambda: random.sample(range(5), 5),
        lambda: np.random.permutation(5).tolist(),
        lambda: np.random.choice(5, 5, replace=False).tolist(),
        lambda: torch.randperm(5).tolist(),
        lambda: paddle.randperm(5).tolist(),
    ],
}


def shuffled(shuffle):
    found = list(range(5))
    shuffle(found)
    return found


@pytest.mark.parametrize("keyed", Keyed)
@pytest.mark.parametrize("what", SAME)
def test_all_draw_the_same(what, keyed):
    for sample in range(5):
        found = []
        for draw in SAME[what]:
            with drawing_from(DrawSource(3, keyed), sample):
                found.append([draw() for _ in range(3)])
        for each in found:
            np.testing.assert_allclose(each, found[0], rtol=1e-6)


def test_numbers_are_spread_as_they_should_be():
    """Against the known distributions: a source that favours some numbers would hide or make differences."""
    units, whole = [], []
    for sample in range(2000):
        with drawing_from(DrawSource(0), sample):
            units.append(random.random())
            whole.append(random.randint(0, 9))
    assert abs(np.mean(units) - 0.5) < 5 / np.sqrt(12 * 2000)
    assert min(np.bincount(whole, minlength=10)) > 200 - 5 * np.sqrt(180)
    assert abs(np.corrcoef(units, whole)[0, 1]) < 5 / np.sqrt(2000)


def test_everything_draws_its_own_numbers_afterwards():
    before = random.random, np.random.uniform, paddle.rand
    random.seed(1)
    torch.manual_seed(1)
    expected = random.random(), torch.rand(1).item()
    random.seed(1)
    torch.manual_seed(1)
    with pytest.raises(IndexError), drawing_from(DrawSource(0), 0):
        random.choice([])
    assert (random.random, np.random.uniform, paddle.rand) == before
    assert (random.random(), torch.rand(1).item()) == expected


def test_who_draws_is_known():
    class Flip:
        def __call__(self):
            return torch.rand(1)

    source = DrawSource(0)
    with drawing_from(source, 0):
        Flip()()
        random.uniform(0.08, 1)
    assert [each.by for each in source.drawn[:1]] == ["Flip"]
    assert [each.range for each in source.drawn] == [("uniform", 0.0, 1.0), ("uniform", 0.08, 1.0)]


@pytest.mark.parametrize(
    "draw", [lambda: random.random(), lambda: np.random.rand(), lambda: paddle.rand([1]).item()]
)
def test_another_thread_draws_its_own_numbers(draw) -> None:
    """A loader may read ahead in a thread while samples are read with shared numbers."""
    found = []
    other = threading.Thread(target=lambda: found.extend(draw() for _ in range(3)))
    source = DrawSource(0)
    with drawing_from(source, 0):
        other.start()
        other.join()
        here = draw()
    assert len(source.drawn) == 1
    assert here not in found
    assert len(set(found)) == 3


class Counted(paddle.io.Dataset):
    """Samples that say who read them, and when."""

    def __init__(self) -> None:
        self.read: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return 10

    def __getitem__(self, at: int):
        self.read.append((at, threading.get_ident()))
        return np.full(3, at, "float32"), np.int64(at)


class Chosen(paddle.io.Sampler):
    def __iter__(self):
        return iter([5, 2, 7, 1, 0])

    def __len__(self) -> int:
        return 5


def sums(batch):
    return np.sum([sample for sample, _ in batch], axis=0)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 4},
        {"batch_size": 4, "drop_last": True},
        {"batch_sampler": paddle.io.BatchSampler(sampler=Chosen(), batch_size=2)},
        {"batch_size": 3, "collate_fn": sums},
    ],
)
def test_a_loader_is_read_in_turn(options) -> None:
    data = Counted()
    loader = paddle.io.DataLoader(data, **options)
    expected = [jsonable(batch) for batch in loader]
    data.read.clear()
    batches = registry.read_in_turn(loader)
    first = jsonable(next(batches))
    assert {thread for _, thread in data.read} == {threading.get_ident()}
    assert len(data.read) <= 4  # no more than was asked for
    assert [first, *map(jsonable, batches)] == expected


def jsonable(batch):
    return np.asarray(batch).tolist() if not isinstance(batch, (list, tuple)) else [*map(jsonable, batch)]


def test_what_reads_in_its_own_way_is_left_to_it() -> None:
    class Stream(paddle.io.IterableDataset):
        def __iter__(self):
            yield from (np.full(2, at, "float32") for at in range(5))

    for given in (
        paddle.io.DataLoader(Stream(), batch_size=2),
        paddle.io.DataLoader(Counted(), batch_size=None),
        torch.utils.data.DataLoader(torch.arange(5.0), batch_size=2),
        [1, 2, 3],
    ):
        told = [np.asarray(each).tolist() for each in given if not isinstance(each, list)]
        found = registry.read_in_turn(given)
        assert [np.asarray(each).tolist() for each in found if not isinstance(each, list)] == told
