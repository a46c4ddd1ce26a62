"""Traces written by hand: calls that take and give tensors by name.

The same name means the same values on both sides. ``name~`` has them up to rounding, ``name!`` has
wrong ones, ``name^`` has them with the negative ones cut off, ``name:8`` has another size.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.judge.moments import fingerprint
from parfocal.replay.trace import Node, TensorData, Trace, Value

FRAMEWORK = frozenset({"Linear", "ReLU", "BatchNorm2d", "Dropout", "Identity", "Conv2d", "GELU", "Attention"})


@dataclass(frozen=True)
class Does:
    """A call of a module and what is called inside."""

    path: str
    kind: str
    takes: Sequence[str]
    gives: Sequence[str]
    inside: Sequence[Does] = ()
    activation: str | None = None  # applied by the layer itself


def array_of(name: str) -> np.ndarray:
    base, _, size = name.partition(":")
    bare = base.rstrip("~!^")
    array = np.random.default_rng(zlib.crc32(bare.encode())).normal(size=int(size or 48))
    if "!" in base:
        array = array * 1.1 + 0.1 * np.random.default_rng(1).normal(size=array.shape)
    if "~" in base:
        array = array * (1 + 1e-6 * np.random.default_rng(2).normal(size=array.shape))
    if "^" in base:
        array = np.maximum(array, 0)
    return array.astype("float32")


def value(array: Any) -> Value:
    array = np.asarray(array)
    return Value(TensorData(tuple(array.shape), array.dtype.name, fingerprint(array), None))


def trace(*calls: Does) -> Trace:
    """The calls in order; one tensor is one piece of data wherever it is named."""
    found = Trace()
    known: dict[str, TensorData] = {}
    occurrences: dict[str, int] = {}

    def values(names: Sequence[str]) -> dict[str, Value]:
        for name in names:
            known.setdefault(name, value(array_of(name)).data)
        return {str(slot): Value(known[name]) for slot, name in enumerate(names)}

    def add(call: Does, parent: int | None, depth: int) -> None:
        order = len(found.nodes)
        occurrence = occurrences.get(call.path, 0)
        occurrences[call.path] = occurrence + 1
        node = Node(
            order, parent, depth, call.path, call.kind, call.kind, call.kind in FRAMEWORK, occurrence,
            {"activation": call.activation}, False, False, None, None, values(call.takes), values(call.gives),
        )  # fmt: skip
        found.nodes.append(node)
        if parent is not None:
            found.nodes[parent].children.append(order)
        for inner in call.inside:
            add(inner, order, depth + 1)
        node.finished = len(found.nodes)

    for call in calls:
        add(call, None, 0)
    return found
