"""How the parameters and buffers of a layer lie on either side: kind -> stored tensors.

Axes are named, so that a difference of layout can be read. A tensor that one side lacks has None there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Axes = tuple[str, ...]


class Move(Enum):
    """What becomes of a tensor on the way from torch to paddle."""

    SAME = "same"
    RENAMED = "renamed"
    TRANSPOSED = "transposed"
    RESHAPED = "reshaped"
    SPLIT = "one of three parts"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class ParameterCounterpart:
    """One tensor on both sides. ``rows``: what lies one below the other, in the same order on both sides."""

    torch: str | None
    torch_axes: Axes
    paddle: str | None
    paddle_axes: Axes
    part: bool = False  # of a tensor of torch
    rows: Axes = ()

    @property
    def moves(self) -> tuple[Move, ...]:
        if self.torch is None or self.paddle is None:
            return (Move.DROPPED,)
        found = [
            *([Move.SPLIT] if self.part else []),
            *([Move.TRANSPOSED] if self._is_transposed else []),
            *([Move.RESHAPED] if not (self.part or self._is_transposed) and self._is_reshaped else []),
            *([Move.RENAMED] if self.torch != self.paddle and not self.part else []),
        ]
        return tuple(found) or (Move.SAME,)

    @property
    def _is_transposed(self) -> bool:
        if self.part:
            return len(self.paddle_axes) == 2
        return len(self.torch_axes) == 2 and self.paddle_axes == self.torch_axes[::-1]

    @property
    def _is_reshaped(self) -> bool:
        return self.torch_axes != self.paddle_axes


def _same(name: str, *axes: str, rows: Axes = ()) -> ParameterCounterpart:
    return ParameterCounterpart(name, axes, name, axes, rows=rows)


_WINDOW = {
    1: ("kernel",),
    2: ("kernel height", "kernel width"),
    3: ("kernel depth", "kernel height", "kernel width"),
}
_CONVOLUTION = {
    f"Conv{rank}d": (_same("weight", "out", "in / groups", *window), _same("bias", "out"))
    for rank, window in _WINDOW.items()
}
_TRANSPOSED = {
    f"ConvTranspose{rank}d": (_same("weight", "in", "out / groups", *window), _same("bias", "out"))
    for rank, window in _WINDOW.items()
}
_CHANNELS: Axes = ("channels",)
_AFFINE = (_same("weight", "channels"), _same("bias", "channels"))
_BATCH_NORM = (
    *_AFFINE,
    ParameterCounterpart("running_mean", _CHANNELS, "_mean", _CHANNELS),
    ParameterCounterpart("running_var", _CHANNELS, "_variance", _CHANNELS),
    ParameterCounterpart("num_batches_tracked", (), None, ()),
)
_INSTANCE_NORM = (ParameterCounterpart("weight", _CHANNELS, "scale", _CHANNELS), _same("bias", "channels"))
_GATES: dict[str, Axes] = {
    "RNN": (),
    "LSTM": ("input", "forget", "cell", "output"),
    "GRU": ("reset", "update", "new"),
}


def _recurrent(kind: str, suffix: str) -> tuple[ParameterCounterpart, ...]:
    gates = _GATES[kind]
    rows = f"{len(gates)} hidden" if gates else "hidden"
    return (
        _same(f"weight_ih{suffix}", rows, "input", rows=gates),
        _same(f"weight_hh{suffix}", rows, "hidden", rows=gates),
        _same(f"bias_ih{suffix}", rows, rows=gates),
        _same(f"bias_hh{suffix}", rows, rows=gates),
    )


_ATTENTION = (
    *(
        ParameterCounterpart(
            "in_proj_weight", ("3 embed", "embed"), f"{one}_proj.weight", ("embed", "embed"), part=True
        )
        for one in "qkv"
    ),
    *(
        ParameterCounterpart("in_proj_bias", ("3 embed",), f"{one}_proj.bias", ("embed",), part=True)
        for one in "qkv"
    ),
    ParameterCounterpart("out_proj.weight", ("out", "embed"), "out_proj.weight", ("embed", "out")),
    _same("out_proj.bias", "out"),
)

PARAMETERS: dict[str, tuple[ParameterCounterpart, ...]] = {
    "Linear": (ParameterCounterpart("weight", ("out", "in"), "weight", ("in", "out")), _same("bias", "out")),
    "Bilinear": (
        _same("weight", "out", "in 1", "in 2"),
        ParameterCounterpart("bias", ("out",), "bias", ("1", "out")),
    ),
    **_CONVOLUTION,
    **_TRANSPOSED,
    **{f"BatchNorm{rank}d": _BATCH_NORM for rank in (1, 2, 3)},
    "SyncBatchNorm": _BATCH_NORM,
    **{f"InstanceNorm{rank}d": _INSTANCE_NORM for rank in (1, 2, 3)},
    "GroupNorm": _AFFINE,
    "LayerNorm": (
        ParameterCounterpart("weight", ("normalised shape",), "weight", ("all of it",)),
        ParameterCounterpart("bias", ("normalised shape",), "bias", ("all of it",)),
    ),
    "PReLU": (ParameterCounterpart("weight", ("parameters",), "_weight", ("parameters",)),),
    "Embedding": (_same("weight", "rows", "features"),),
    **{kind: _recurrent(kind, "_l0") for kind in _GATES},
    **{f"{kind}Cell": _recurrent(kind, "") for kind in _GATES},
    "MultiheadAttention": _ATTENTION,
}
