"""What one step of a training is given: inputs and label of either side, read one batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.brief import brief
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.inputs import Sides, leaves, split
from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import phrase

LABELS = ("label", "labels", "target", "targets", "y")  # entries of a dict that are no input


@dataclass(frozen=True, slots=True)
class Batch:
    """One side's share: what its model is called on, and what its loss is given besides the output."""

    inputs: Any  # a tuple by position, a dict by keyword
    label: Any


def read_batches(batches: Any, wanted: int | None) -> Iterator[tuple[Batch, Batch]]:
    """The reference's and the port's share of every batch; an error where there are fewer than ``wanted``."""
    if isinstance(batches, (str, bytes, Mapping)) or not isinstance(batches, Iterable):
        raise InputError(
            phrase("batches={batches} is not an iterable of batches", batches=brief(batches)),
            hint=phrase(
                "e.g. batches=[(images, labels), ...], a data loader, or pf.load_batches(path, framework)"
            ),
        )
    count = 0
    for item in batches:
        if wanted is not None and count >= wanted:
            return
        yield _shared(item, count)
        count += 1
    if count == 0:
        raise EmptyComparisonError(phrase("batches gives no batch, so no step was compared"))
    if wanted is not None and count < wanted:
        raise InputError(
            phrase(
                "batches ended after {count} of the {wanted} batches that the steps need",
                count=count,
                wanted=wanted,
            ),
            hint=phrase("give more batches, or fewer steps; an iterator that was used before is exhausted"),
        )


def _shared(item: Any, number: int) -> tuple[Batch, Batch]:
    ours, theirs = split(item)
    if not isinstance(item, Sides):
        ours, theirs = _split_parts(item)
    found = _batch(ours, number, SIDES[0]), _batch(theirs, number, SIDES[1])
    sizes = [_length(each) for each in found]
    if sizes[0] != sizes[1] and None not in sizes:
        raise InputError(
            phrase(
                "batch {number} has {reference} samples for the reference and {port} for the port",
                number=number,
                reference=sizes[0],
                port=sizes[1],
            ),
            hint=phrase("both sides need the same samples: see what pf.sides(...) was given"),
        )
    return found


def _split_parts(item: Any) -> tuple[Any, Any]:
    """Of a batch some of whose parts are different for the two sides."""
    if isinstance(item, (tuple, list)):
        parts = [split(each) for each in item]
        return tuple(each[0] for each in parts), tuple(each[1] for each in parts)
    if isinstance(item, Mapping):
        named = {name: split(each) for name, each in item.items()}
        return {n: each[0] for n, each in named.items()}, {n: each[1] for n, each in named.items()}
    return item, item


def _batch(item: Any, number: int, side: str) -> Batch:
    if isinstance(item, Mapping) and len(item) > 1:
        name = next((each for each in LABELS if each in item), list(item)[-1])
        return Batch({key: value for key, value in item.items() if key != name}, item[name])
    if isinstance(item, (tuple, list)) and len(item) > 1:
        return Batch(tuple(item[:-1]), item[-1])
    raise InputError(
        phrase(
            "batch {number} of the {side} is {item}: there is no label beside the input",
            number=number,
            side=side_name(side),
            item=brief(item),
        ),
        hint=phrase(
            "a batch is a tuple (input, ..., label) or a dict with a label; (x, x) where both are one"
        ),
    )


def _length(batch: Batch) -> int | None:
    """Samples in a batch, as its label counts them."""
    for leaf in leaves(batch.label):
        shape = getattr(leaf, "shape", None)
        if shape is not None and len(shape):
            return int(shape[0])
    return None


def arrays_of(value: Any) -> list[Array]:
    """Every array and tensor of a nested value, in order, as arrays."""
    found: list[Array] = []
    for leaf in leaves(value):
        if isinstance(leaf, np.ndarray):
            found.append(leaf)
        elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            found.append(registry.of(leaf).to_array(leaf))
    return found
