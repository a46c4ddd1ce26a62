"""What a proven hypothesis says, and the words and codes it is said in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from parfocal.brief import brief
from parfocal.judge.verdict import Cause, Claim, Fix, Grounds, ProvenBy, Site
from parfocal.phrases import phrase
from parfocal.replay.trace import Node

# A setting (or an op's argument) that differs -> the code of the cause. Others are config.other.
CODES: dict[str, str] = {
    "epsilon": "config.epsilon",
    "momentum": "config.momentum",
    "stride": "config.stride",
    "padding": "config.padding",
    "pad": "config.padding",
    "pad by axis": "config.padding",
    "output_padding": "config.padding",
    "dilation": "config.dilation",
    "groups": "config.groups",
    "num_groups": "config.groups",
    "kernel_size": "config.kernel",
    "num_heads": "config.heads",
    "negative_slope": "config.slope",
    "slope": "config.slope",
    "is_causal": "op.mask",
    "approximate": "op.approximation",
    "padding_mode": "op.padding_mode",
    "count_include_pad": "op.pool_count",
    "divisor_override": "op.pool_count",
    "ceil_mode": "op.ceil_mode",
    "align_corners": "op.align_corners",
    "align_mode": "op.align_corners",
    "axis": "op.axis",
    "activation": "op.activation",
    "bias": "op.bias",
    "use_global_stats": "mode.training",
    "batch_statistics": "mode.training",
    "training": "mode.training",
    "ignore_index": "loss.ignore_index",
    "label_smoothing": "loss.label_smoothing",
    "reduction": "loss.reduction",
}
# The same word means a method of resizing here, and something else elsewhere.
_RESIZING = ("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d", "interpolate", "grid_sample")


def code_of(setting: str, kind: str) -> str:
    if setting == "mode" and kind in _RESIZING:
        return "op.interpolation"
    if setting == "mode" and kind == "pad":
        return "op.padding_mode"
    return CODES.get(setting, "config.other")


@dataclass(frozen=True, slots=True)
class OpLine:
    """An op's own line, when it is nearer to the mistake than the module's."""

    op: str | None
    file: str | None
    line: int | None
    module: str | None = None  # whose code it is, where that is another than was blamed
    kind: str | None = None  # of that module


@dataclass(frozen=True, slots=True)
class ProvenChange:
    """A hypothesis that passed: the change, made in a repeated call or to its values, left only noise."""

    code: str
    message: str
    fix: Fix
    score: float
    port: OpLine | None = None
    reference: OpLine | None = None
    facts: tuple[str, ...] = ()  # of a message that names a module: what it says without that
    also: tuple[OpLine, ...] = ()  # further lines of the port that the fix is about
    way: ProvenBy | Grounds = ProvenBy.REPLAYED  # a basis: the values look so, which proves nothing


def cause(proven: list[ProvenChange], before: float) -> Cause:
    """The first that was proven, with the others as alternatives; ``before``: the score as it is."""
    first, *others = (_claimed(each, before) for each in proven)
    return replace(first, alternatives=tuple(others))


def _claimed(found: ProvenChange, before: float) -> Cause:
    claim = Claim(found.code, found.message, found.fix, found.facts)
    if isinstance(found.way, Grounds):
        return claim.likely(found.way)
    return claim.proven(found.way, before, found.score)


def nearer(site: Site | None, where: OpLine | None, nodes: Sequence[Node]) -> Site | None:
    """A site at an op's own line, and in the module whose code that is; ``nodes``: the calls of its model."""
    if site is None or where is None:
        return site
    path = site.path if where.module is None else where.module
    kind = where.kind or next((node.kind for node in nodes if node.path == path), site.kind)
    file, line = where.file or site.file, where.line or site.line
    return replace(site, path=path, kind=kind, op=where.op, file=file, line=line)


def spelled_path(path: str, root: str = "port") -> str:
    """A module's path as Python writes it: ``port.layers[1].norm``."""
    parts = [f"[{part}]" if part.isdigit() else f".{part}" for part in path.split(".") if part]
    return root + "".join(parts)


def spelled_from(path: str, owner: str) -> str:
    """A path as the code of the module ``owner`` writes it: ``self.layers[1].norm``."""
    return spelled_path(path[len(owner) + 1 :] if owner else path, "self")


class PortChange(Enum):
    """What a line of code changes of the port."""

    LAYER = "another layer in the place of one"
    MODE = "train or eval"
    ATTRIBUTE = "something that a module holds"
    WEIGHT = "the numbers of a tensor"
    ALL_WEIGHTS = "the numbers of every tensor"
    REMOVAL = "a layer less"


@dataclass(frozen=True, slots=True)
class PortCode:
    """A line of code that changes the port from outside, in no file of the user's."""

    text: str
    change: PortChange


@dataclass(frozen=True, slots=True)
class PortLine(PortCode):
    """A line that begins with the module that it changes: ``port.norm = paddle.nn.LayerNorm(8)``."""

    path: str  # of the module
    rest: str  # the line without the module
    made: str = ""  # the code that makes another layer; empty where none is made

    @classmethod
    def _of(cls, path: str, change: PortChange, rest: str, made: str = "") -> PortLine:
        return cls(spelled_path(path) + rest, change, path, rest, made)

    @classmethod
    def layer(cls, path: str, made: str) -> PortLine:
        return cls._of(path, PortChange.LAYER, f" = {made}", made)

    @classmethod
    def mode(cls, path: str, name: str) -> PortLine:
        return cls._of(path, PortChange.MODE, f".{name}()")

    @classmethod
    def attribute(cls, path: str, name: str, value: object) -> PortLine:
        return cls._of(path, PortChange.ATTRIBUTE, f".{name} = {value}")


class LineName(str):
    """``model.py:12``, and which line of which file that is."""

    __slots__ = ("where",)
    where: tuple[str | None, int | None]


class InSource(Protocol):
    """What has a line in the source: an op, a call, a site."""

    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...


def line(at: InSource) -> LineName:
    name = LineName(f"{Path(at.file or '?').name}:{at.line}")
    name.where = at.file, at.line
    return name


def place(node: Node) -> str:
    return node.path or phrase("the model")


def number(value: float) -> str:
    """Seven digits, without trailing zeros."""
    return f"{value:.7g}"


def rounded(value: float, *hints: float) -> float:
    """The round number that a fitted value most likely stands for, or the value itself."""
    candidates = [*hints, *(round(value, digits) for digits in range(1, 5)), *_powers(value)]
    close = [c for c in candidates if c and abs(c - value) <= 2e-4 * abs(value)]
    return min(close, key=lambda c: (len(repr(c)), abs(c - value)), default=value)


def _powers(value: float) -> list[float]:
    if value == 0 or not math.isfinite(value):
        return []
    exponent = math.floor(math.log10(abs(value)))
    return [float(f"{value:.{digits}e}") for digits in (0, 1)] + [10.0**exponent, 10.0 ** (exponent + 1)]


def said(value: Any) -> str:
    return number(value) if isinstance(value, float) else brief(value)


def two_values(name: str, reference: Any, port: Any) -> str:
    """A setting or an argument with the values that the two sides have for it."""
    return phrase(
        "{name} is {reference} in the reference, {port} in the port",
        name=name,
        reference=said(reference),
        port=said(port),
    )
