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
    return paddle.concat([back, forth], -1)  # guilty: lstm directions swapped


def _pooled_over_batch(self: Any, y: Any) -> Any:
    return y + y.mean(0, keepdim=True)  # guilty: lstm mean over the batch


def _unpooled(self: Any, y: Any) -> Any:
    return y  # guilty: lstm no mean


def _probabilities(self: Any, x: Any) -> Any:
    return functional.softmax(x, -1)  # guilty: lstm softmax for log_softmax


def _over_time(self: Any, x: Any) -> Any:
    return functional.log_softmax(x, 1)  # guilty: lstm log_softmax over time


def _started_elsewhere(self: Any, x: Any) -> Any:
    ones = paddle.ones([2, x.shape[0], HIDDEN])
    return self.lstm(x, (ones, ones))[0]  # guilty: lstm started with ones


def _last_state_detached(self: Any, y: Any) -> Any:
    return y + y.mean(1, keepdim=True).detach()  # guilty: lstm detached mean


def _gates_reordered(values: np.ndarray) -> np.ndarray:
    first, second, third, fourth = np.split(values, 4)
    return np.concatenate([first, second, fourth, third])


LSTM: tuple[Fault, ...] = (
    Fault("lstm time and batch mistaken", "lstm", layer("lstm", "config.other", "layout.permuted"),
          replaced("lstm", lambda: nn.LSTM(EMBEDDED, HIDDEN, 1, direction="bidirect", time_major=True)), mode="train"),
    Fault("lstm directions swapped", "lstm", line("", "lstm directions swapped", "op.order"),
          rewritten("", run=_directions_swapped), mode="train"),
    Fault("lstm mean over the batch", "lstm", line("", "lstm mean over the batch", "op.axis"),
          rewritten("", pooled=_pooled_over_batch), mode="train"),
    Fault("lstm no mean", "lstm", line("", "lstm no mean", "op.missing"), rewritten("", pooled=_unpooled),
          mode="train"),
    Fault("lstm softmax for log_softmax", "lstm", line("", "lstm softmax for log_softmax", "op.activation"),
          rewritten("", tagged=_probabilities), mode="train"),
    Fault("lstm log_softmax over time", "lstm", line("", "lstm log_softmax over time", "op.axis"),
          rewritten("", tagged=_over_time), mode="train"),
    Fault("lstm started with ones", "lstm", line("", "lstm started with ones", "op.extra", "config.other"),
          rewritten("", run=_started_elsewhere), mode="train"),
    Fault("lstm detached mean", "lstm", line("", "lstm detached mean", "grad.detached"),
          rewritten("", pooled=_last_state_detached), mode="train"),
    Fault("lstm padding index", "lstm", layer("embed", "config.other"),
          replaced("embed", lambda: nn.Embedding(VOCABULARY, EMBEDDED, padding_idx=A_TOKEN)), mode="train"),
    Fault("lstm epsilon", "lstm", layer("norm", "config.epsilon"), changed("norm", _epsilon=1e-6), mode="train"),
    Fault("lstm gates reordered", "lstm", layer("lstm", "weight.permuted"),
          spoil=spoilt("lstm.weight_ih_l0", _gates_reordered), mode="train"),
    Fault("lstm one bias zero", "lstm", layer("lstm", "weight.mismatched", "weight.missing"),
          spoil=spoilt("lstm.bias_hh_l0", np.zeros_like), mode="train"),
)  # fmt: skip

ENCODER: tuple[Fault, ...] = (
    Fault("encoder pre-norm", "encoder", layer("encoder.layers.1", "config.other", "op.order"),
          changed("encoder.layers.1", normalize_before=True)),
    Fault("encoder GELU for ReLU", "encoder", layer("encoder.layers.0", "op.activation"),
          changed("encoder.layers.0", activation=functional.gelu)),
    Fault("encoder heads", "encoder", layer("encoder.layers.1.self_attn", "config.heads"),
          changed("encoder.layers.1.self_attn", num_heads=2, head_dim=16)),
    Fault("encoder epsilon", "encoder", layer("encoder.layers.0.norm2", "config.epsilon"),
          changed("encoder.layers.0.norm2", _epsilon=1e-6)),
    Fault("encoder weights of one projection untransposed", "encoder",
          layer("encoder.layers.0.self_attn.k_proj", "weight.transposed"),
          spoil=spoilt("encoder.layers.0.self_attn.k_proj.weight", np.transpose)),
)  # fmt: skip


def _library_leaky(self: Any, x: Any) -> Any:
    return functional.leaky_relu(x, 0.1)  # guilty: points gradient at zero


def _first_highest(self: Any, y: Any) -> Any:
    index = y.argmax(1, keepdim=True)
    return paddle.take_along_axis(y, index, 1).squeeze(1)  # guilty: points gradient of ties


def _mask_inverted(self: Any, scores: Any, empty: Any) -> Any:
    return functional.softmax(scores - 1e4 * (1 - empty), 1)  # guilty: points mask inverted


def _unmasked(self: Any, scores: Any, empty: Any) -> Any:
    return functional.softmax(scores, 1)  # guilty: points no mask


def _last_axis(self: Any, scores: Any, empty: Any) -> Any:
    return functional.softmax(scores - 1e4 * empty, -1)  # guilty: points softmax axis


POINTS: tuple[Fault, ...] = (
    Fault("points gradient at zero", "points", line("", "points gradient at zero", "grad.tie"),
          rewritten("", bent=_library_leaky)),
    Fault("points gradient of ties", "points", line("", "points gradient of ties", "grad.tie"),
          rewritten("", highest=_first_highest)),
    Fault("points mask inverted", "points", line("", "points mask inverted", "op.mask"),
          rewritten("", shared=_mask_inverted)),
    Fault("points no mask", "points", line("", "points no mask", "op.mask", "op.missing"),
          rewritten("", shared=_unmasked)),
    Fault("points softmax axis", "points", line("", "points softmax axis", "op.axis"),
          rewritten("", shared=_last_axis)),
    Fault("points gradient and bias", "points",
          (Guilt("", ("grad.tie",), "points gradient at zero"), Guilt("fc2", ("weight.missing", "op.bias"))),
          together(rewritten("", bent=_library_leaky), replaced("fc2", lambda: nn.Linear(24, 24, bias_attr=False)))),
)  # fmt: skip

FAULTS = LSTM + ENCODER + POINTS
