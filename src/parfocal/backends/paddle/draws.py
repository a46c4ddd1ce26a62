"""Paddle's random numbers from another source, as far as its public functions draw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import paddle
from paddle.io.dataloader.collate import default_collate_fn

from parfocal.backends.draws import Draws, in_this_thread


def _tensor(values: Any, shape: Any, dtype: Any) -> Any:
    made = paddle.to_tensor(values).reshape([int(each) for each in shape])
    return made.astype(dtype or paddle.get_default_dtype())


def _rand(draws: Draws, shape: Any, dtype: Any = None, name: Any = None) -> Any:
    return _tensor(draws.uniform(0.0, 1.0, shape), shape, dtype)


def _uniform(
    draws: Draws, shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0, **_: Any
) -> Any:
    return _tensor(draws.uniform(min, max, shape), shape, dtype)


def _randn(draws: Draws, shape: Any, dtype: Any = None, name: Any = None) -> Any:
    return _tensor(draws.normal(0.0, 1.0, shape), shape, dtype)


def _randint(
    draws: Draws, low: int = 0, high: int | None = None, shape: Any = (1,), dtype: Any = None, **_: Any
) -> Any:
    low, high = (0, low) if high is None else (low, high)
    return _tensor(draws.whole(low, high, shape), shape, dtype or "int64")


def _randperm(draws: Draws, n: int, dtype: Any = "int64", name: Any = None) -> Any:
    return _tensor(draws.order(n), (n,), dtype)


ANSWERS: Mapping[str, Callable[..., Any]] = {
    "rand": _rand,
    "uniform": _uniform,
    "randn": _randn,
    "randint": _randint,
    "randperm": _randperm,
}


@contextmanager
def drawn_elsewhere(draws: Draws) -> Iterator[None]:
    """While it is entered, the functions of ``ANSWERS`` take their numbers from ``draws``."""
    with ExitStack() as undo:
        for name, answer in ANSWERS.items():
            own = getattr(paddle, name)
            undo.callback(setattr, paddle, name, own)
            setattr(paddle, name, in_this_thread(partial(answer, draws), own))
        yield


def read_in_turn(loader: Any) -> Iterator[Any]:
    """The batches of a loader, each read when it is asked for; its own iterator reads ahead in a thread."""
    if not _reads_ahead(loader):
        return iter(loader)
    collate = loader.collate_fn or default_collate_fn
    return (collate([loader.dataset[at] for at in batch]) for batch in loader.batch_sampler)


def _reads_ahead(loader: Any) -> bool:
    """Whether it is paddle's own way of reading a dataset by number, in this process."""
    return (
        isinstance(loader, paddle.io.DataLoader)
        and type(loader).__iter__ is paddle.io.DataLoader.__iter__
        and loader.auto_collate_batch
        and not loader.num_workers
        and not isinstance(loader.dataset, paddle.io.IterableDataset)
    )
