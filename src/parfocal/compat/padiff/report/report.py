"""The report of a model: what was recorded since it was last cleared.

A node is one call of a module or, with ``PADIFF_API_CHECK=ON``, of a function; nodes form one
tree for each call of the model. Tensors are kept as arrays in main memory.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.protocol import Array, Backend

Frame = tuple[str, int, str]  # file, line number, function


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """A tensor as it was."""

    array: Array
    dtype: str
    device: str

    @classmethod
    def of(cls, backend: Backend, tensor: Any) -> KeptTensor:
        return cls(backend.to_array(tensor), backend.dtype(tensor), backend.device(tensor))


@dataclass(eq=False, slots=True)
class ReportNode:
    """One call. ``path`` is the module's, ``""`` for the model itself."""

    name: str  # of the class or function
    path: str
    kind: str
    layer_type: str  # "net", "in map" or "api"
    net_id: int  # position of the module in definition order; -1 for a function
    builtin: bool  # the framework's own layer
    training: bool
    frames: tuple[Frame, ...]
    module_class: type | None = None
    order: int = -1  # of the backend's call
    depth: int = 0
    step: int = -1  # in which calls ended
    inputs: dict[str, KeptTensor] = field(default_factory=dict)  # floating ones, when asked for
    outputs: list[KeptTensor] = field(default_factory=list)
    input_gradients: dict[str, KeptTensor | None] = field(default_factory=dict)  # by slot; None: none arrived
    output_gradients: dict[str, KeptTensor | None] = field(default_factory=dict)  # by position
    elements: int = 0  # how many numbers the first input has
    children: list[ReportNode] = field(default_factory=list)

    def walk(self) -> Iterator[ReportNode]:
        """This call and all below it, in the order in which they began."""
        yield self
        for child in self.children:
            yield from child.walk()

    def stack(self, indent: int = 0) -> str:
        """The call stack, innermost frame first."""
        return frames_to_string(self.frames, indent)


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One side of a node, as PaDiff lists them: its forward or its backward."""

    type: str  # "forward" or "backward"
    step: int
    net_str: str
    net_id: int
    node: ReportNode

    def tensors_for_compare(self) -> list[KeptTensor]:
        """The outputs of the forward, the input gradients of the backward."""
        if self.type == "forward":
            return list(self.node.outputs)
        return [kept for kept in self.node.input_gradients.values() if kept is not None]


class Report:
    """All calls of one model since the report was made."""

    def __init__(self) -> None:
        self.roots: list[ReportNode] = []
        self.finished: list[ReportNode] = []
        self._removers: list[Callable[[], None]] = []

    @property
    def items(self) -> list[ReportItem]:
        """Two entries a call: forward, backward."""
        return [
            ReportItem(side, 2 * node.step + offset, node.name, node.net_id, node)
            for node in self.finished
            for offset, side in enumerate(("forward", "backward"))
        ]

    def finish(self, node: ReportNode) -> None:
        """Note that a call has ended."""
        node.step = len(self.finished)
        self.finished.append(node)

    def keep_hook(self, remover: Callable[[], None] | None) -> None:
        """Remember a gradient hook so that ``release`` can take it away."""
        if remover is not None:
            self._removers.append(remover)

    def release(self) -> None:
        """Take away every gradient hook; what was recorded stays."""
        for remover in self._removers:
            remover()
        self._removers.clear()

    def __str__(self) -> str:
        lines = [f"    {item.step}: [{item.net_str}]" for item in self.items]
        return "\n".join(["Report:", *lines])


def frames_to_string(frames: tuple[Frame, ...], indent: int = 0) -> str:
    """Two lines a frame: where, and the line of code."""
    margin = " " * indent
    lines = []
    for file, number, function in frames:
        code = linecache.getline(file, number).strip()
        lines.append(f"{margin}File {file}: {number}    {function}\n{margin}{margin}{code}")
    return "\n".join(lines)
