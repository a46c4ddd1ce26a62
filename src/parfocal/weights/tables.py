"""Facts about layers: which role a stored tensor plays, and the view that makes it canonical.

The canonical form is unpacked, a linear weight as [out, in]; a framework needs an entry in its dialect only
where it stores something else; pairs of frameworks need none. ``KIND_RULES[kind].layouts[local name]`` is a
list of ``Piece``: several when one stored tensor packs several canonical ones. A new kind is one entry.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from parfocal.backends import registry
from parfocal.weights.views import IDENTITY, Shape, View, part, reshape, transpose

ViewOf = Callable[[Shape, Mapping[str, Any]], View]


@dataclass(frozen=True, slots=True)
class Piece:
    """A canonical role and how to see it in the stored tensor."""

    role: str
    view: ViewOf


def same(shape: Shape, settings: Mapping[str, Any]) -> View:
    return IDENTITY


def flat(shape: Shape, settings: Mapping[str, Any]) -> View:
    return IDENTITY if len(shape) == 1 else (reshape(math.prod(shape)),)


def swapped(shape: Shape, settings: Mapping[str, Any]) -> View:
    return (transpose(1, 0),)


def linear(shape: Shape, settings: Mapping[str, Any]) -> View:
    """[out, in]. A spectral norm's ``weight_v`` bears the name of a weight norm's, and is a vector."""
    turned = settings.get("weight_layout") == "in,out" and len(shape) == 2
    return (transpose(1, 0),) if turned else IDENTITY


def kernel(shape: Shape, settings: Mapping[str, Any]) -> View:
    """A convolution's weight without kernel axes of length 1, so that a 1x1 equals a Linear."""
    short = (*shape[:2], *(length for length in shape[2:] if length > 1))
    return IDENTITY if short == shape else (reshape(*short),)


def third(number: int) -> ViewOf:
    """One of three equal parts of the first axis."""

    def view(shape: Shape, settings: Mapping[str, Any]) -> View:
        rows = shape[0] // 3
        return (part(0, number * rows, (number + 1) * rows),)

    return view


def _named(view: ViewOf, **roles: str) -> dict[str, list[Piece]]:
    return {name: [Piece(role, view)] for name, role in roles.items()}


_QKV = ("q", "k", "v")
_LINEAR = _named(linear, weight="weight", weight_v="weight_v", weight_orig="weight_orig")
_KERNEL = _named(kernel, weight="weight", weight_v="weight_v", weight_orig="weight_orig")
_FLAT = _named(flat, weight="weight", bias="bias")
_ATTENTION: dict[str, list[Piece]] = {
    "in_proj_weight": [Piece(f"{letter}.weight", third(number)) for number, letter in enumerate(_QKV)],
    "in_proj_bias": [Piece(f"{letter}.bias", third(number)) for number, letter in enumerate(_QKV)],
    **{f"{letter}_proj_weight": [Piece(f"{letter}.weight", same)] for letter in _QKV},
    **{f"{letter}_proj_bias": [Piece(f"{letter}.bias", same)] for letter in _QKV},
    **{
        f"{layer}_proj.{name}": [Piece(f"{layer}.{name}", view)]
        for layer in (*_QKV, "out")
        for name, view in (("weight", linear), ("bias", same))
    },
    "bias_k": [Piece("bias_k", flat)],
    "bias_v": [Piece("bias_v", flat)],
}
BATCH_NORMS = ("BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
INSTANCE_NORMS = ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d")
TRANSPOSED = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
CELLS = ("LSTMCell", "GRUCell", "RNNCell")
RECURRENT = ("LSTM", "GRU", "RNN")


@dataclass(frozen=True, slots=True)
class KindRule:
    """What is known of the weights of one kind of layer.

    ``family``: kinds whose weights stand for each other. ``layouts``: local name -> its canonical pieces,
    where these are not the tensor as it is. ``owns_all``: the state below it is its own, whatever holds it.
    """

    family: str
    layouts: Mapping[str, list[Piece]] = field(default_factory=dict)
    owns_all: bool = False


KIND_RULES: dict[str, KindRule] = {
    "Linear": KindRule("affine", _LINEAR),
    **dict.fromkeys(CONVOLUTIONS, KindRule("affine", _KERNEL)),
    **dict.fromkeys(TRANSPOSED, KindRule("transposed convolution")),
    **dict.fromkeys((*BATCH_NORMS, *INSTANCE_NORMS, "GroupNorm"), KindRule("norm")),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), KindRule("norm", _FLAT)),
    **dict.fromkeys(("Embedding", "EmbeddingBag"), KindRule("embedding")),
    "PReLU": KindRule("prelu"),
    "Bilinear": KindRule("bilinear", _named(flat, bias="bias")),
    **dict.fromkeys(CELLS, KindRule("cell")),
    **dict.fromkeys(RECURRENT, KindRule("recurrent", owns_all=True)),
    "MultiheadAttention": KindRule("attention", _ATTENTION, owns_all=True),
}
FAMILIES = {kind: rule.family for kind, rule in KIND_RULES.items()}
# What the submodules of these are called is the framework's business.
COMPOSITES = frozenset(kind for kind, rule in KIND_RULES.items() if rule.owns_all)


@cache
def layouts_of(framework: str) -> dict[str, dict[str, list[Piece]]]:
    """What is stored under other names, or the other way round, in one framework."""
    dialect = registry.dialect(framework)
    return {
        kind: _named(swapped if kind in dialect.stored_transposed else same, **roles)
        for kind, roles in dialect.stored_names.items()
    }


# Buffers without which the outputs are wrong; every other buffer is welcome, not demanded.
REQUIRED_BUFFERS = frozenset({"running_mean", "running_var"})
# Counters that the other side need not have and that no output in eval mode depends on.
COUNTERS = frozenset({"num_batches_tracked"})

# The names that user-written norms, scales and linear layers give to the usual two.
COMMON_NAMES = {
    **dict.fromkeys(("weight", "gamma", "scale", "g", "w", "kernel"), "weight"),
    **dict.fromkeys(("bias", "beta", "b", "shift", "offset"), "bias"),
}

# PaddlePaddle's recurrent layers hold their cells as sublayers: "1.cell_bw.weight_ih".
_CELL_NAME = re.compile(r"^(\d+)\.cell(_fw|_bw)?\.(\w+)$")
_RECURRENT_ROLE = re.compile(r"^(\w+?)_l(\d+)(_reverse)?$")
# PyTorch's parametrizations: what they call the tensors that the older hooks called by name.
_PARAMETRIZED = {
    "original0": "{}_g",
    "original1": "{}_v",
    "original": "{}_orig",
    "0._u": "{}_u",
    "0._v": "{}_v",
}


def local_name(kind: str | None, name: str) -> str:
    """The local name in the older, plainer spelling, for parametrized and recurrent modules."""
    if name.startswith("parametrizations."):
        _, target, rest = name.split(".", 2)
        return _PARAMETRIZED.get(rest, f"{{}}.{rest}").format(target)
    cell = _CELL_NAME.match(name) if kind in RECURRENT else None
    if cell:
        layer, direction, tensor = cell.groups()
        return f"{tensor}_l{layer}" + ("_reverse" if direction == "_bw" else "")
    return name


def pieces(framework: str, kind: str | None, name: str) -> list[Piece]:
    """The canonical pieces of a stored tensor, by the local name that ``local_name`` gave."""
    layer = _RECURRENT_ROLE.match(name) if kind in RECURRENT else None
    stem, suffix = (layer.group(1), name[len(layer.group(1)) :]) if layer else (name, "")
    known = KIND_RULES.get(kind or "", KindRule("")).layouts
    for table in (layouts_of(framework).get(kind or "", {}), known):
        found = table.get(stem)
        if found:
            return [Piece(piece.role + suffix, piece.view) for piece in found]
    return [Piece(name, flat if name.endswith("_g") else same)]


def recurrent_part(role: str) -> tuple[str, str]:
    """``weight_ih_l1_reverse`` -> (``l1_reverse``, ``weight_ih``)."""
    match = _RECURRENT_ROLE.match(role)
    if not match:
        return "", role
    return f"l{match.group(2)}{match.group(3) or ''}", match.group(1)
