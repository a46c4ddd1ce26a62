"""Paddle's random numbers from another source, as far as its public functions draw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import paddle

from parfocal.backends.draws import Draws


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

    def answered(answer: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: answer(draws, *args, **kwargs)

    with ExitStack() as undo:
        for name, answer in ANSWERS.items():
            undo.callback(setattr, paddle, name, getattr(paddle, name))
            setattr(paddle, name, answered(answer))
        yield
