"""Torch's random numbers from another source: every op that draws is answered by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from parfocal.backends.draws import Draws

WIDEST = 1 << 53  # whole numbers that ``random_`` draws where no range is given


def _filled(like: Any, values: Any) -> Any:
    return like.copy_(torch.as_tensor(values).reshape(like.shape).to(like.dtype))


def _made(size: Any, values: Any, kwargs: Mapping[str, Any], dtype: Any) -> Any:
    return torch.as_tensor(values).reshape(tuple(size)).to(kwargs.get("dtype") or dtype)


def _uniform_(draws: Draws, tensor: Any, low: float = 0.0, high: float = 1.0, **_: Any) -> Any:
    return _filled(tensor, draws.uniform(low, high, tensor.shape))


def _normal_(draws: Draws, tensor: Any, mean: float = 0.0, std: float = 1.0, **_: Any) -> Any:
    return _filled(tensor, draws.normal(mean, std, tensor.shape))


def _bernoulli_(draws: Draws, tensor: Any, p: float = 0.5, **_: Any) -> Any:
    return _filled(tensor, draws.uniform(0.0, 1.0, tensor.shape) < p)


def _bernoulli(draws: Draws, given: Any, **_: Any) -> Any:
    return (torch.as_tensor(draws.uniform(0.0, 1.0, given.shape)) < given).to(given.dtype)


def _random_(draws: Draws, tensor: Any, *bounds: int, **_: Any) -> Any:
    low, high = (0, WIDEST) if not bounds else (0, bounds[0]) if len(bounds) == 1 else bounds
    return _filled(tensor, draws.whole(low, WIDEST if high is None else high, tensor.shape))


def _rand(draws: Draws, size: Any, **kwargs: Any) -> Any:
    return _made(size, draws.uniform(0.0, 1.0, size), kwargs, torch.get_default_dtype())


def _randn(draws: Draws, size: Any, **kwargs: Any) -> Any:
    return _made(size, draws.normal(0.0, 1.0, size), kwargs, torch.get_default_dtype())


def _randint(draws: Draws, *bounds: Any, **kwargs: Any) -> Any:
    *limits, size = bounds
    low, high = limits if len(limits) == 2 else (0, limits[0])
    return _made(size, draws.whole(low, high, size), kwargs, torch.int64)


def _randperm(draws: Draws, count: int, **kwargs: Any) -> Any:
    return _made((count,), draws.order(count), kwargs, torch.int64)


ANSWERS: Mapping[str, Callable[..., Any]] = {
    "uniform_": _uniform_,
    "normal_": _normal_,
    "bernoulli_": _bernoulli_,
    "bernoulli": _bernoulli,
    "random_": _random_,
    "rand": _rand,
    "randn": _randn,
    "randint": _randint,
    "randperm": _randperm,
}


class DrawnElsewhere(TorchDispatchMode):
    """While it is entered, the ops of ``ANSWERS`` take their numbers from ``draws``."""

    def __init__(self, draws: Draws) -> None:
        super().__init__()
        self._draws = draws

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        answer = ANSWERS.get(func.overloadpacket.__name__)
        if answer is None or any(isinstance(each, torch.Tensor) for each in args[1:]):
            return func(*args, **kwargs)
        kwargs.pop("generator", None)
        return answer(self._draws, *args, **kwargs)
