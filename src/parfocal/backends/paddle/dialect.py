"""How code for PaddlePaddle is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parfocal.backends.dialects import Dialect, Scripting, from_the_last, functions
from parfocal.backends.paddle.optimizers import SPELLING

_PICTURES = (3, 4, 5)  # numbers of axes of what has channels
_BATCH_NORMS = ("BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
_INSTANCE_NORMS = ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
_RECURRENT = ("LSTMCell", "GRUCell", "RNNCell", "LSTM", "GRU", "RNN")


def _padded_axes(count: int, rank: int, words: Mapping[str, Any]) -> Sequence[int]:
    """From the last axis, but for a list of every axis, and for channels that come last."""
    if count == rank - 2 and rank in _PICTURES:
        last = str(words.get("data_format") or "").upper().endswith("C")
        return range(rank - 2, 0, -1) if last else range(rank - 1, 1, -1)
    if count == rank and words.get("pad_from_left_axis", True):
        return range(rank)
    return from_the_last(count, rank, words)


DIALECT = Dialect(
    name="paddle",
    functions=functions("paddle", sigmoid="paddle.nn.functional.sigmoid", clamp="paddle.clip"),
    words={"minimum": "min", "maximum": "max", "count_include_pad": "exclusive"},
    values={
        "approximate": lambda value: value == "tanh",
        "count_include_pad": lambda value: not value,
    },
    padded_axes=_padded_axes,
    fewest_padded=lambda rank: rank - 2 if rank in _PICTURES else 1,  # fewer are read otherwise in some modes
    pad_formats={3: "NCL", 5: "NCDHW"},
    lengths_word="sequence_length",
    frozen=("stop_gradient", True),
    rate_in_use="optimizer.get_lr()",
    momentum_of_old=True,
    overwrite=("{0}.set_value({0}.", ")"),
    overwrite_transposed="transpose({0}).clone()",
    overwrite_picked="index_select(paddle.to_tensor({0}), axis={1})",
    optimizers=SPELLING,
    linear_layout="in,out",
    linear_names=("paddle.nn.Linear", "paddle.compat.nn.Linear"),
    stored_names={
        **{kind: {"_mean": "running_mean", "_variance": "running_var"} for kind in _BATCH_NORMS},
        **{kind: {"scale": "weight"} for kind in _INSTANCE_NORMS},
        "PReLU": {"_weight": "weight"},
        **{kind: {"weight_ho": "weight_hr"} for kind in _RECURRENT},
    },
    stored_transposed=frozenset(_RECURRENT),
    script=Scripting(
        load="{side}.set_state_dict({{name: paddle.to_tensor(data['{side} ' + name]) "
        "for name in {side}.state_dict()}})",
        tensor="paddle.to_tensor(data[{name!r}])",
        leaf="paddle.to_tensor(data[{name!r}], stop_gradient=False)",
        array="{call}.numpy()",
    ),
)
