"""Samples of a dataset or a loader, one by one, as named arrays.

A map-style dataset gives samples; whatever can only be iterated (a loader, a generator) gives batches, which
are taken apart. Nothing is kept: a stream is as long as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.brief import brief, told
from parfocal.errors import InputError
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.workflow.loading import where_raised

Sample = dict[str, Array]


@dataclass(frozen=True, slots=True)
class SampleStream:
    """One side's data."""

    source: Any
    side: str
    called: str = ""  # the class of what was read, where its samples come from a file

    def __post_init__(self) -> None:
        if isinstance(self.source, (str, bytes)) or not (self.by_index or hasattr(self.source, "__iter__")):
            raise InputError(
                phrase(
                    "the {side} is {source}: neither a dataset nor a loader",
                    side=side_name(self.side),
                    source=brief(self.source),
                ),
                hint=phrase("pass something with len() and an index, or something to iterate over"),
            )

    @property
    def name(self) -> str:
        return self.called or type(self.source).__name__

    @property
    def by_index(self) -> bool:
        """Whether it gives samples by number; a loader gives batches one after the other."""
        return hasattr(self.source, "__getitem__") and hasattr(self.source, "__len__")

    @property
    def once(self) -> bool:
        """Whether it can be read a single time."""
        return hasattr(type(self.source), "__next__")

    @property
    def length(self) -> int | None:
        """How many samples or batches it says it has; None where it does not say."""
        try:
            return len(self.source)
        except TypeError:
            return None

    def items(self) -> Iterator[Any]:
        """Samples or batches as they come."""
        if not self.by_index:
            yield from self._told(registry.read_in_turn(self.source))
            return
        for index in range(len(self.source)):
            yield self.at(index)

    def at(self, index: int) -> Any:
        """One sample of a dataset."""
        try:
            return self.source[index]
        except Exception as error:
            raise InputError(
                phrase(
                    "the {side} raised {name} at sample {index}: {error}{where}",
                    side=side_name(self.side),
                    name=type(error).__name__,
                    index=index,
                    error=told(error),
                    where=where_raised(error, __file__),
                )
            ) from error

    def _told(self, iterator: Iterator[Any]) -> Iterator[Any]:
        index = 0
        while True:
            try:
                item = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                raise InputError(
                    phrase(
                        "the {side} raised {name} at batch {index}: {error}{where}",
                        side=side_name(self.side),
                        name=type(error).__name__,
                        index=index,
                        error=told(error),
                        where=where_raised(error, __file__),
                    )
                ) from error
            yield item
            index += 1

    def samples(self) -> Iterator[tuple[int, Sample]]:
        """The number of the batch (or of the sample) each is from, and the sample."""
        for number, item in enumerate(self.items()):
            named = named_arrays(item)
            if self.by_index:
                yield number, named
                continue
            for sample in taken_apart(named):
                yield number, sample


def taken_apart(batch: Sample) -> Iterator[Sample]:
    """The samples of a batch; a batch whose arrays have no length in common counts as one."""
    lengths = {len(array) if array.ndim else 0 for array in batch.values()}
    if len(lengths) != 1 or 0 in lengths:
        yield batch
        return
    for index in range(lengths.pop()):
        yield {name: np.asarray(array[index]) for name, array in batch.items()}


def named_arrays(item: Any) -> Sample:
    """Every array in a sample or batch, by its place: ``0``, ``image``, ``target.boxes``."""
    found: Sample = {}
    for path, value in _leaves(item, ()):
        found[".".join(path) or "value"] = as_array(value)
    return found


def _leaves(item: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(item, Mapping):
        for key, value in item.items():
            yield from _leaves(value, (*path, str(key)))
    elif isinstance(item, (tuple, list)) and not _is_row(item):
        names = getattr(item, "_fields", None) or map(str, range(len(item)))
        for key, value in zip(names, item, strict=True):
            yield from _leaves(value, (*path, str(key)))
    elif is_dataclass(item) and not isinstance(item, type):
        for each in fields(item):
            yield from _leaves(getattr(item, each.name), (*path, each.name))
    elif item is not None:
        yield path, item


def _is_row(item: Any) -> bool:
    """Numbers or words in a row are one array, not many."""
    return (
        bool(item)
        and all(isinstance(each, (bool, int, float, str, np.generic)) for each in item)
        and len(item) > 4
    )


def as_array(value: Any) -> Array:
    """A tensor of any framework, a picture, a number or a word as an array."""
    if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex, str, bytes, list, tuple)):
        return np.asarray(value)
    try:
        backend = registry.of(value)
    except InputError:
        array = np.asarray(value)  # pictures know how
        if array.dtype == object:
            raise InputError(
                phrase("a sample holds {value}, which is no array", value=brief(value))
            ) from None
        return array
    return backend.to_array(value)
