"""Faults in the LSTM tagger, the frameworks' own encoder and the network on points."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from examples.pairs.faults import changed, replaced
from paddle import nn
from paddle.nn import functional

from benchmarks.faults.fault import Fault, Guilt, layer, line, rewritten, spoilt, together
from benchmarks.faults.pairs.sequences import A_TOKEN, EMBEDDED, HIDDEN, VOCABULARY


def _directions_swapped(self: Any, x: Any) -> Any:
    forth, back = paddle.split(self.lstm(x)[0], 2, -1)
    # guilty: lstm directions swapped
    return paddle.concat([back, forth], -1)


def _pooled_over_batch(self: Any, y: Any) -> Any:
    # guilty: lstm mean over the batch
    return y + y.mean(0, keepdim=True)


def _unpooled(self: Any, y: Any) -> Any:
    # guilty: lstm no mean
    return y


def _probabilities(self: Any, x: Any) -> Any:
    # guilty: lstm softmax for log_softmax
    return functional.softmax(x, -1)


def _over_time(self: Any, x: Any) -> Any:
    # guilty: lstm log_softmax over time
    return functional.log_softmax(x, 1)


def _started_elsewhere(self: Any, x: Any) -> Any:
    ones = paddle.ones([2, x.shape[0], HIDDEN])
    # guilty: lstm started with ones
    return self.lstm(x, (ones, ones))[0]


def _last_state_detached(self: Any, y: Any) -> Any:
    # guilty: lstm detached mean
    return y + y.mean(1, keepdim=True).detach()


def _gates_reordered(values: np.ndarray) -> np.ndarray:
    first, second, third, fourth = np.split(values, 4)
    return np.concatenate([first, second, fourth, third])


LSTM: tuple[Fault, ...] = (
    Fault(
        "lstm time and batch mistaken",
        layer("lstm", "config.other", "layout.permuted"),
        replaced("lstm", lambda: nn.LSTM(EMBEDDED, HIDDEN, 1, direction="bidirect", time_major=True)),
        mode="train",
    ),
    Fault(
        "lstm directions swapped", line("", "op.order"), rewritten("", run=_directions_swapped), mode="train"
    ),
    Fault(
        "lstm mean over the batch",
        line("", "op.axis"),
        rewritten("", pooled=_pooled_over_batch),
        mode="train",
    ),
    Fault("lstm no mean", line("", "op.missing"), rewritten("", pooled=_unpooled), mode="train"),
    Fault(
        "lstm softmax for log_softmax",
        line("", "op.activation"),
        rewritten("", tagged=_probabilities),
        mode="train",
    ),
    Fault("lstm log_softmax over time", line("", "op.axis"), rewritten("", tagged=_over_time), mode="train"),
    Fault(
        "lstm started with ones",
        line("", "op.extra", "config.other"),
        rewritten("", run=_started_elsewhere),
        mode="train",
    ),
    Fault(
        "lstm detached mean",
        line("", "grad.detached"),
        rewritten("", pooled=_last_state_detached),
        mode="train",
    ),
    Fault(
        "lstm padding index",
        layer("embed", "config.other"),
        replaced("embed", lambda: nn.Embedding(VOCABULARY, EMBEDDED, padding_idx=A_TOKEN)),
        mode="train",
    ),
    Fault("lstm epsilon", layer("norm", "config.epsilon"), changed("norm", _epsilon=1e-6), mode="train"),
    Fault(
        "lstm gates reordered",
        layer("lstm", "weight.permuted"),
        spoil=spoilt("lstm.weight_ih_l0", _gates_reordered),
        mode="train",
    ),
    Fault(
        "lstm one bias zero",
        layer("lstm", "weight.mismatched", "weight.missing"),
        spoil=spoilt("lstm.bias_hh_l0", np.zeros_like),
        mode="train",
    ),
)

ENCODER: tuple[Fault, ...] = (
    Fault(
        "encoder pre-norm",
        layer("encoder.layers.1", "config.other", "op.order"),
        changed("encoder.layers.1", normalize_before=True),
    ),
    Fault(
        "encoder GELU for ReLU",
        layer("encoder.layers.0", "op.activation"),
        changed("encoder.layers.0", activation=functional.gelu),
    ),
    Fault(
        "encoder heads",
        layer("encoder.layers.1.self_attn", "config.heads"),
        changed("encoder.layers.1.self_attn", num_heads=2, head_dim=16),
    ),
    Fault(
        "encoder epsilon",
        layer("encoder.layers.0.norm2", "config.epsilon"),
        changed("encoder.layers.0.norm2", _epsilon=1e-6),
    ),
    Fault(
        "encoder weights of one projection untransposed",
        layer("encoder.layers.0.self_attn.k_proj", "weight.transposed"),
        spoil=spoilt("encoder.layers.0.self_attn.k_proj.weight", np.transpose),
    ),
)


def _library_leaky(self: Any, x: Any) -> Any:
    # guilty: points gradient at zero
    return functional.leaky_relu(x, 0.1)


def _first_highest(self: Any, y: Any) -> Any:
    index = y.argmax(1, keepdim=True)
    # guilty: points gradient of ties
    return paddle.take_along_axis(y, index, 1).squeeze(1)


def _mask_inverted(self: Any, scores: Any, empty: Any) -> Any:
    # guilty: points mask inverted
    return functional.softmax(scores - 1e4 * (1 - empty), 1)


def _unmasked(self: Any, scores: Any, empty: Any) -> Any:
    # guilty: points no mask
    return functional.softmax(scores, 1)


def _last_axis(self: Any, scores: Any, empty: Any) -> Any:
    # guilty: points softmax axis
    return functional.softmax(scores - 1e4 * empty, -1)


POINTS: tuple[Fault, ...] = (
    Fault("points gradient at zero", line("", "grad.tie"), rewritten("", bent=_library_leaky)),
    Fault("points gradient of ties", line("", "grad.tie"), rewritten("", highest=_first_highest)),
    Fault("points mask inverted", line("", "op.mask"), rewritten("", shared=_mask_inverted)),
    Fault("points no mask", line("", "op.mask", "op.missing"), rewritten("", shared=_unmasked)),
    Fault("points softmax axis", line("", "op.axis"), rewritten("", shared=_last_axis)),
    Fault(
        "points gradient and bias",
        (Guilt("", ("grad.tie",), "points gradient at zero"), Guilt("fc2", ("weight.missing", "op.bias"))),
        together(
            rewritten("", bent=_library_leaky), replaced("fc2", lambda: nn.Linear(24, 24, bias_attr=False))
        ),
    ),
)

FAULTS = LSTM + ENCODER + POINTS
