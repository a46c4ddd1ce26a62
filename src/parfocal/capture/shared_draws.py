"""One source of random numbers for whoever draws: Python's ``random``, NumPy's functions and the frameworks.

Every library makes its numbers another way, so one seed gives two sides different samples. Here each draw
is answered from a stream of its own, by which draw of the sample it is; a range of numbers is cut from one
number between 0 and 1 in the same way for all. What draws by means of its own (a ``Generator``, a ``Random``,
what was imported by ``from random import ...``) is at most seeded, and does not agree with others.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from parfocal.backends import registry
from parfocal.backends.draws import Draws, in_this_thread
from parfocal.capture.determinism import seeded
from parfocal.judge import limits

FINEST = 1 - 2.0**-24  # the largest number below 1 that float32 has
LIBRARIES = ("parfocal", "random", "numpy")  # whose frames are none of who draws
REPEATS = limits.searches.DRAWS_REPEATED.value


class Keyed(Enum):
    """By what a draw is the same on both sides; two sides may draw alike in another order."""

    TURN = "turn"  # the first draw of a sample is the first
    RANGE = "range"  # the first draw from a range is the first from that range
    ALIKE = "alike"  # draws from one range are equal, up to a few


class Draw(NamedTuple):
    """One draw: what kind of number, from where to where, what came, and who asked."""

    kind: str  # "uniform", "whole", "normal" or "order"
    low: float
    high: float
    number: float  # between 0 and 1, of which it was made
    by: str  # the class that drew
    single: bool  # one number, not many

    @property
    def range(self) -> tuple[str, float, float]:
        return self.kind, float(f"{self.low:.4g}"), float(f"{self.high:.4g}")


@dataclass(slots=True)
class DrawSource(Draws):
    """Numbers by seed, sample and draw. ``forced``: what the draw of so many turns is made of."""

    seed: int = 0
    keyed: Keyed = Keyed.TURN
    forced: Mapping[int, float] = field(default_factory=dict)
    drawn: list[Draw] = field(default_factory=list)
    _sample: int = 0
    _turns: Counter[Any] = field(default_factory=Counter)

    def begin(self, sample: int) -> None:
        """The draws of a sample do not depend on those before it."""
        self._sample, self._turns, self.drawn = sample, Counter(), []

    def _generator(self, kind: str, low: float, high: float, single: bool) -> np.random.Generator:
        turn = self._turns[None]
        where = kind, f"{low:.4g}", f"{high:.4g}"
        key: Any = turn
        if self.keyed is not Keyed.TURN:
            count = self._turns[where]
            key = (*where, count if self.keyed is Keyed.RANGE else count // REPEATS)
        self._turns.update((None, where))
        mixed = zlib.crc32(repr((self.seed, self._sample, key)).encode())
        made = np.random.Generator(np.random.Philox(mixed))
        number = self.forced.get(turn, None)
        first = float(np.random.Generator(np.random.Philox(mixed)).random()) if number is None else number
        self.drawn.append(Draw(kind, low, high, first, _who_asks(), single))
        return made

    def _numbers(self, kind: str, low: float, high: float, size: Sequence[int] | None) -> Any:
        single = size is None or int(np.prod(tuple(size))) == 1
        found = self._generator(kind, low, high, single).random(size if size is None else tuple(size))
        if single and self._turns[None] - 1 in self.forced:
            found = found * 0 + self.drawn[-1].number
        return np.minimum(found, FINEST)

    def uniform(self, low: float, high: float, size: Sequence[int] | None = None) -> Any:
        low, high = float(low), float(high)
        found = np.float32(low + (high - low) * self._numbers("uniform", low, high, size)).astype(np.float64)
        return float(found) if size is None else found

    def whole(self, low: int, high: int, size: Sequence[int] | None = None) -> Any:
        found = low + np.floor((high - low) * self._numbers("whole", low, high, size)).astype(np.int64)
        return int(found) if size is None else found

    def normal(self, mean: float, std: float, size: Sequence[int] | None = None) -> Any:
        made = self._generator("normal", float(mean), float(std), size is None)
        found = mean + std * made.standard_normal(size if size is None else tuple(size), dtype=np.float32)
        return float(found) if size is None else found

    def order(self, count: int) -> Any:
        return self._generator("order", 0, count, False).permutation(count)


def _who_asks() -> str:
    """The class of the nearest object whose method draws, or the name of the function."""
    frame, function = sys._getframe(1), ""
    while frame is not None:
        home = frame.f_globals.get("__name__", "").split(".")
        if home[0] not in LIBRARIES and not any(part.startswith("_") for part in home[1:]):
            code = frame.f_code
            function = function or code.co_name
            owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if hasattr(type(owner), code.co_name):
                return type(owner).__name__
        frame = frame.f_back  # type: ignore[assignment]
    return function


def _ordered(draws: Draws, given: Any) -> Any:
    if isinstance(given, (int, np.integer)):
        return draws.order(int(given))
    return np.asarray(given)[draws.order(len(given))]


def _shuffle(draws: Draws, given: Any) -> None:
    given[:] = [given[at] for at in draws.order(len(given))]


def _randrange(draws: Draws, start: int, stop: int | None = None, step: int = 1) -> int:
    low, high = (0, start) if stop is None else (start, stop)
    if step == 1:
        return int(draws.whole(low, high))
    return low + step * int(draws.whole(0, len(range(low, high, step))))


def _choices(
    draws: Draws, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
) -> Any:
    total = np.cumsum(weights) if weights is not None else np.asarray(cum_weights or [])
    if not len(total):
        return [population[draws.whole(0, len(population))] for _ in range(k)]
    return [
        population[int(np.searchsorted(total, draws.uniform(0.0, 1.0) * total[-1], "right"))]
        for _ in range(k)
    ]


def _choice(draws: Draws, given: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
    items = np.arange(given) if isinstance(given, (int, np.integer)) else np.asarray(given)
    shape = None if size is None else _shape(size)
    if p is not None and replace:
        return items[np.searchsorted(np.cumsum(p), draws.uniform(0.0, 1.0, shape), "right")]
    if replace:
        return items[draws.whole(0, len(items), shape)]
    order = draws.order(len(items))
    if p is not None:  # the largest of numbers that grow with the share come first
        order = np.argsort(-(draws.uniform(0.0, 1.0, [len(items)]) ** (1 / np.maximum(p, 1e-300))))
    return items[order[0]] if shape is None else items[order[: int(np.prod(shape))]].reshape(shape)


def _shape(size: Any) -> list[int]:
    return [int(each) for each in np.atleast_1d(size)]


def _sized(ask: Callable[..., Any], *defaults: float) -> Callable[..., Any]:
    """A function of NumPy: parameters by place or name, then the size."""

    def answer(draws: Draws, *args: Any, size: Any = None, **named: Any) -> Any:
        given = [*args[: len(defaults)], *defaults[len(args) :]]
        names = ("low", "high") if "low" in named or "high" in named else ("loc", "scale")
        given = [named.get(name, value) for name, value in zip(names, given, strict=False)] or given
        size = args[len(defaults)] if len(args) > len(defaults) else size
        return ask(draws, *given, None if size is None else _shape(size))

    return answer


def _randint(draws: Draws, low: int, high: int | None = None, size: Any = None, dtype: Any = int) -> Any:
    low, high = (0, low) if high is None else (low, high)
    found = draws.whole(int(low), int(high), None if size is None else _shape(size))
    return found if size is None else found.astype(dtype)


PYTHON: Mapping[str, Callable[..., Any]] = {
    "random": lambda draws: draws.uniform(0.0, 1.0),
    "uniform": lambda draws, a, b: draws.uniform(a, b),
    "randint": lambda draws, a, b: draws.whole(a, b + 1),
    "randrange": _randrange,
    "choice": lambda draws, given: given[draws.whole(0, len(given))],
    "choices": _choices,
    "sample": lambda draws, given, k, **_: [given[at] for at in draws.order(len(given))[:k]],
    "shuffle": _shuffle,
    "gauss": lambda draws, mu=0.0, sigma=1.0: draws.normal(mu, sigma),
    "normalvariate": lambda draws, mu=0.0, sigma=1.0: draws.normal(mu, sigma),
}
_UNIT = _sized(lambda draws, size: draws.uniform(0.0, 1.0, size))
NUMPY: Mapping[str, Callable[..., Any]] = {
    "rand": lambda draws, *size: draws.uniform(0.0, 1.0, size or None),
    "random": _UNIT,
    "random_sample": _UNIT,
    "uniform": _sized(lambda draws, low, high, size: draws.uniform(low, high, size), 0.0, 1.0),
    "randint": _randint,
    "randn": lambda draws, *size: draws.normal(0.0, 1.0, size or None),
    "normal": _sized(lambda draws, mean, std, size: draws.normal(mean, std, size), 0.0, 1.0),
    "standard_normal": _sized(lambda draws, size: draws.normal(0.0, 1.0, size)),
    "permutation": _ordered,
    "shuffle": _shuffle,
    "choice": _choice,
}


@contextmanager
def drawing_from(source: DrawSource, sample: int) -> Iterator[DrawSource]:
    """Let Python, NumPy and every loaded framework draw a sample's numbers from one source.

    All else is seeded by it, too.
    """

    source.begin(sample)
    with ExitStack() as undo:
        undo.enter_context(seeded(zlib.crc32(repr((source.seed, sample)).encode())))
        for library, answers in ((random, PYTHON), (np.random, NUMPY)):
            for name, answer in answers.items():
                own = getattr(library, name)
                undo.callback(setattr, library, name, own)
                setattr(library, name, in_this_thread(partial(answer, source), own))
        for name in registry.names():
            if name in sys.modules:
                undo.enter_context(registry.get(name).draws_from(source))
        yield source
