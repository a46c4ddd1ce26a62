"""The same port under other names, in another order of definition, or more deeply nested.

What a port computes stays what it was: only what it says of itself changes. Each function changes
a port in place and returns where its layers went: new path -> old path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
from paddle import nn

Moves = dict[str, str]
SEQUENCES = (nn.Sequential, nn.LayerList)  # the order and the names of their parts mean something


class Wrapped(nn.Layer):
    """Passes everything on to the layer inside."""

    def __init__(self, inner: nn.Layer) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)


def _paths(port: nn.Layer) -> dict[int, str]:
    return {id(layer): path for path, layer in port.named_sublayers(include_self=True)}


def _moves(port: nn.Layer, before: dict[int, str]) -> Moves:
    after = port.named_sublayers(include_self=True)
    return {path: before[id(layer)] for path, layer in after if id(layer) in before}


def _written_by_hand(port: nn.Layer) -> list[nn.Layer]:
    """Layers whose forward looks its parts up by name; the framework's own look them up otherwise."""
    return [
        layer
        for layer in port.sublayers(include_self=True)
        if layer._sub_layers
        and not isinstance(layer, SEQUENCES)
        and not type(layer).__module__.startswith("paddle.nn.")
    ]


def _relabel(layer: nn.Layer, names: list[tuple[str, str]]) -> None:
    """Register the parts under new names, while the code of the layer still finds the old ones."""
    parts = dict(layer._sub_layers)
    layer._sub_layers.clear()
    for old, new in names:
        layer._sub_layers[new] = parts[old]
        if old != new:
            object.__setattr__(layer, old, parts[old])


def renamed(port: nn.Layer) -> Moves:
    """No name says anything any more."""
    before = _paths(port)
    for layer in _written_by_hand(port):
        names = [(old, f"part{(61 * index + 3) % 97}") for index, old in enumerate(layer._sub_layers)]
        _relabel(layer, names)
    return _moves(port, before)


def reordered(port: nn.Layer) -> Moves:
    """Layers are defined last to first."""
    before = _paths(port)
    for layer in _written_by_hand(port):
        _relabel(layer, [(name, name) for name in reversed(layer._sub_layers)])
    return _moves(port, before)


def nested(port: nn.Layer) -> Moves:
    """Every second layer without parts sits in a layer of its own."""
    before = _paths(port)
    sequences = [layer for layer in port.sublayers(include_self=True) if isinstance(layer, SEQUENCES)]
    for layer in [*_written_by_hand(port), *sequences]:
        for index, (name, part) in enumerate(list(layer._sub_layers.items())):
            if not part._sub_layers and index % 2 == 0:
                layer._sub_layers[name] = Wrapped(part)
    return _moves(port, before)


def everything(port: nn.Layer) -> Moves:
    """Renamed, reordered and nested."""
    before = _paths(port)
    nested(port)
    reordered(port)
    renamed(port)
    return _moves(port, before)


DISGUISES: dict[str, Callable[[paddle.nn.Layer], Moves]] = {
    "renamed": renamed,
    "reordered": reordered,
    "nested": nested,
    "all three": everything,
}
