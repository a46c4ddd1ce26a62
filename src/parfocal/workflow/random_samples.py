"""What of a side's samples changes when they are read again, and how: measured on one side alone.

Samples are drawn several times with the side's own random numbers, for their distributions, and once more
with numbers from one source (``capture/shared_draws.py``), which gives both sides the same ones. A step that
is taken at random shows its share when the number that decides it is turned up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.capture.determinism import seeded
from parfocal.capture.shared_draws import FINEST, Draw, DrawSource, Keyed, drawing_from
from parfocal.explain.draw_statistics import statistics_of
from parfocal.explain.sample_values import apart, plane_of
from parfocal.judge import limits
from parfocal.workflow.sample_streams import Sample, SampleStream, named_arrays
from parfocal.workflow.step_settings import StepSettings, step_settings

LIMIT = limits.verdicts.COMPUTED_ONCE.value
AGAIN, TIMES = (int(each) for each in limits.searches.DATA_READ_AGAIN.value)
SOURCES, DRAWS = (int(each) for each in limits.searches.RANDOM_SOURCES.value)
HALVINGS = int(limits.searches.COIN_STEPS.value)
COINS = int(limits.searches.COINS.value)
FLIPS: Mapping[str, tuple[int, ...]] = {"across": (1,), "down": (0,), "both": (0, 1)}


@dataclass(frozen=True, slots=True)
class Coin:
    """A step that is taken where a number between 0 and 1 is below its ``share``."""

    which: int  # of the draws from 0 to 1 of a sample
    by: str
    share: float
    effect: str  # of FLIPS, or "" for another

    def number(self, draws: Sequence[Draw]) -> float | None:
        """What decided it in a sample with these draws."""
        units = [each for each in draws if _is_unit(each)]
        return units[self.which].number if self.which < len(units) else None


def _is_unit(draw: Draw) -> bool:
    return draw.single and draw.range == ("uniform", 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class RandomSide:
    """One side: fields that change, their statistics ``[sample][draw]``, and samples of shared numbers."""

    changing: tuple[str, ...] = ()
    statistics: Mapping[str, list[list[dict[str, float]]]] = field(default_factory=dict)
    shared: Mapping[str, list[Sample]] = field(default_factory=dict)  # by Keyed; empty: not to be had
    draws: Mapping[str, list[list[Draw]]] = field(default_factory=dict)  # likewise
    coins: tuple[Coin, ...] = ()
    steady: list[Sample] = field(default_factory=list)  # what does not change, by number
    shuffles: bool = False  # of a loader: then none of its samples can be found again
    settings: StepSettings = field(default_factory=dict)  # of the steps that the data set holds

    @property
    def by(self) -> list[str]:
        """Who draws, in the order of the first draws."""
        first = next(iter(self.draws.values()), [])
        return list(dict.fromkeys(draw.by for of in first for draw in of))

    def to_plain(self) -> dict[str, Any]:
        return {
            "changing": list(self.changing),
            "statistics": dict(self.statistics),
            "shared": dict(self.shared),
            "draws": {
                key: [[list(each) for each in of] for of in found] for key, found in self.draws.items()
            },
            "steady": self.steady,
            "shuffles": self.shuffles,
            "settings": self.settings,
            "coins": [[each.which, each.by, each.share, each.effect] for each in self.coins],
        }

    @staticmethod
    def from_plain(told: Mapping[str, Any]) -> RandomSide:
        draws = {key: [[Draw(*each) for each in of] for of in found] for key, found in told["draws"].items()}
        coins = tuple(Coin(*each) for each in told["coins"])
        steady = told["steady"], told["shuffles"], told["settings"]
        return RandomSide(tuple(told["changing"]), told["statistics"], told["shared"], draws, coins, *steady)


def look_again(stream: SampleStream, samples: int | None = None, seed: int = 0) -> RandomSide:
    """Read some of the first ``samples`` again; whatever was seeded before is as it was afterwards."""
    with _samplers_kept(stream.source):
        return _look_again(stream, samples, seed)


@contextmanager
def _samplers_kept(source: Any) -> Iterator[None]:
    """A sampler that counts its epochs gives another order when it is read the next time."""
    samplers = [getattr(source, name, None) for name in ("batch_sampler", "sampler")]
    before = [(each, dict(vars(each))) for each in samplers if hasattr(each, "__dict__")]
    try:
        yield
    finally:
        for each, state in before:
            vars(each).clear()
            vars(each).update(state)


def _look_again(stream: SampleStream, samples: int | None, seed: int) -> RandomSide:
    data = _dataset(stream)
    count = 0 if data is None else min(data.length or 0, samples or sys.maxsize)
    settings = step_settings(stream.source if data is None else data.source)
    if data is None or not count:
        return RandomSide(settings=settings)

    def read(index: int) -> Sample:
        return named_arrays(data.at(index))

    with seeded(seed):
        again = _spread(count, AGAIN)
        first = [read(at) for at in again]
        changing = {
            name: None
            for _ in range(TIMES)
            for at, sample in zip(again, first, strict=True)
            for name in _changed(sample, read(at))
        }
        if not changing:
            return RandomSide(settings=settings)
        sources = _spread(count, SOURCES)
        drawn = [[read(at) for _ in range(DRAWS)] for at in sources]
        steady = [_without(read(at), changing) for at in sources]
        shuffles = _shuffles(stream, changing)
    statistics = {
        name: [[statistics_of(each[name]) for each in of if name in each] for of in drawn]
        for name in changing
    }
    shared = _shared(read, sources, seed, changing)
    return RandomSide(tuple(changing), statistics, *shared, steady, shuffles, settings)


def _without(sample: Sample, changing: Collection[str]) -> Sample:
    return {name: array for name, array in sample.items() if name not in changing}


def _shuffles(stream: SampleStream, changing: Collection[str]) -> bool:
    """Whether what does not change by itself comes in another order when a loader is read again."""
    if stream.by_index or stream.once:
        return False
    passes = [[_without(each, changing) for _, each in islice(stream.samples(), AGAIN)] for _ in range(2)]
    return any(_changed(before, now) for before, now in zip(*passes, strict=False))


def _dataset(stream: SampleStream) -> SampleStream | None:
    """Itself, or the dataset of a loader whose batches are its samples put together."""
    if stream.by_index:
        return stream
    data = SampleStream(getattr(stream.source, "dataset", ()), stream.side)
    if not (data.by_index and data.length):
        return None
    with seeded(0):
        batched = next((sample for _, sample in islice(stream.samples(), 1)), {})
        return data if set(batched) == set(named_arrays(data.at(0))) else None


def _spread(count: int, wanted: int) -> list[int]:
    return sorted({int(at) for at in np.linspace(0, count - 1, min(count, wanted))})


def _changed(before: Sample, now: Sample) -> list[str]:
    names = dict.fromkeys((*before, *now))
    return [
        name
        for name in names
        if name not in before or name not in now or apart(before[name], now[name]) > LIMIT
    ]


def _shared(
    read: Callable[[int], Sample], sources: Sequence[int], seed: int, changing: Collection[str]
) -> tuple[dict[str, list[Sample]], dict[str, list[list[Draw]]], tuple[Coin, ...]]:
    """Samples of numbers from one source; nothing where they still change."""
    samples: dict[str, list[Sample]] = {}
    draws: dict[str, list[list[Draw]]] = {}
    for keyed in Keyed:
        source = DrawSource(seed, keyed)
        samples[keyed.value], draws[keyed.value] = [], []
        for at in sources:
            sample = _read_from(read, source, at)
            if keyed is Keyed.TURN and _changed(sample, _read_from(read, source, at)):
                return {}, {}, ()
            samples[keyed.value].append({name: sample[name] for name in changing if name in sample})
            draws[keyed.value].append(list(source.drawn))
    return samples, draws, _coins(read, sources[0], draws[Keyed.TURN.value][0], seed)


def _read_from(read: Callable[[int], Sample], source: DrawSource, at: int) -> Sample:
    with drawing_from(source, at):
        return read(at)


def _coins(read: Callable[[int], Sample], at: int, drawn: Sequence[Draw], seed: int) -> tuple[Coin, ...]:
    """Which draws of a sample decide whether a step is taken, and from which number on it is not."""
    found = []
    turns = [turn for turn, each in enumerate(drawn) if _is_unit(each)]
    for which, turn in enumerate(turns[:COINS]):

        def outcome(number: float, turn: int = turn) -> Sample:
            return _read_from(read, DrawSource(seed, forced={turn: number}), at)

        taken, left = outcome(0.0), outcome(FINEST)
        if not _changed(taken, left):
            continue
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            now = outcome(middle)
            if not _changed(now, taken):
                low = middle
            elif not _changed(now, left):
                high = middle
            else:
                break  # more than two outcomes: no step that is taken or not
        else:
            found.append(Coin(which, drawn[turn].by, round((low + high) / 2, 3), _effect(taken, left)))
    return tuple(found)


def _effect(taken: Sample, left: Sample) -> str:
    for name in _changed(taken, left):
        for effect in FLIPS:
            if name in taken and name in left and apart(flipped(taken[name], effect), left[name]) <= LIMIT:
                return effect
    return ""


def flipped(array: Array, effect: str) -> Array:
    """A picture mirrored across (left and right exchanged), down or both; what is no picture, as it is."""
    plane = plane_of(array)
    if plane is None or not effect:
        return array
    return np.flip(array, tuple(plane[each] for each in FLIPS[effect]))
