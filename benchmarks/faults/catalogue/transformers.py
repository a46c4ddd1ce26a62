"""Faults in the two transformers written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from examples.pairs.faults import changed, layer_at, replaced
from paddle import nn
from paddle.nn import functional

from benchmarks.faults.fault import Fault, Guilt, layer, line, rewritten, spoilt, together
from benchmarks.faults.pairs.transformers import VOCABULARY, WIDTH


def _unscaled(self: Any, query: Any, key: Any) -> Any:
    # guilty: vit no scale
    return functional.softmax(paddle.matmul(query, key, transpose_y=True), -1)


def _over_queries(self: Any, query: Any, key: Any) -> Any:
    # guilty: vit softmax axis
    return functional.softmax(paddle.matmul(query, key, transpose_y=True) * self.scale, -2)


def _rounded_weights(self: Any, query: Any, key: Any) -> Any:
    weights = functional.softmax(paddle.matmul(query, key, transpose_y=True) * self.scale, -1)
    # guilty: vit attention in bfloat16
    return weights.astype("bfloat16").astype("float32")


def _half_scores(self: Any, query: Any, key: Any) -> Any:
    scores = paddle.matmul(query, key, transpose_y=True) * self.scale
    # guilty: vit scores in float16
    scores = scores.astype("float16").astype("float32")
    return functional.softmax(scores, -1)


def _keys_first(self: Any, x: Any) -> Any:
    count, length, width = x.shape
    shape = [count, length, 3, self.heads, width // self.heads]
    qkv = self.qkv(x).reshape(shape).transpose([2, 0, 3, 1, 4])
    # guilty: vit queries and keys swapped
    return [qkv[1], qkv[0], qkv[2]]


def _held_keys(self: Any, query: Any, key: Any) -> Any:
    # guilty: vit detached keys
    key = key.detach()
    return functional.softmax(paddle.matmul(query, key, transpose_y=True) * self.scale, -1)


def _joined_without_transposing(self: Any, mixed: Any) -> Any:
    count, heads, length, size = mixed.shape
    # guilty: vit heads joined untransposed
    return mixed.reshape([count, length, heads * size])


def _residual_twice(self: Any, x: Any) -> Any:
    # guilty: vit residual twice
    x = x + x + self.attention(self.norm1(x))
    return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


def _no_layer_scale(self: Any, x: Any) -> Any:
    x = x + self.attention(self.norm1(x))
    # guilty: vit no LayerScale
    return x + self.fc2(self.act(self.fc1(self.norm2(x)))) + 0.0 * self.gamma


def _post_norm(self: Any, x: Any) -> Any:
    # guilty: vit post-norm
    x = self.norm1(x + self.attention(x))
    return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


def _dropping(self: Any, x: Any) -> Any:
    # guilty: vit dropout on
    x = x + functional.dropout(self.attention(self.norm1(x)), 0.1, training=True)
    return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


def _extra_activation(self: Any, x: Any) -> Any:
    x = x + self.attention(self.norm1(x))
    # guilty: vit activated twice
    return x + self.gamma * functional.gelu(self.fc2(self.act(self.fc1(self.norm2(x)))))


def _token_last(self: Any, x: Any) -> Any:
    # guilty: vit token last
    return paddle.concat([x, self.token.expand([x.shape[0], -1, -1])], 1) + self.position


def _unplaced(self: Any, x: Any) -> Any:
    # guilty: vit no position
    return paddle.concat([self.token.expand([x.shape[0], -1, -1]), x], 1)


def _undecided(self: Any, x: Any) -> Any:
    # guilty: vit no last norm
    return self.head(x[:, 0])


def _interleaved(values: np.ndarray) -> np.ndarray:
    """Rows ordered by head, then by q, k, v, as some checkpoints have them."""
    width = values.shape[0]
    return values.reshape(width, 3, 4, width // 4).transpose(0, 2, 1, 3).reshape(values.shape)


def _swap_blocks(model: Any) -> None:
    first, second = layer_at(model, "blocks.1.fc1").weight, layer_at(model, "blocks.2.fc1").weight
    kept = first.numpy().copy()
    first.set_value(second.numpy())
    second.set_value(kept)


VIT: tuple[Fault, ...] = (
    Fault(
        "vit GELU by tanh",
        layer("blocks.1.act", "op.approximation"),
        replaced("blocks.1.act", lambda: nn.GELU(approximate=True)),
    ),
    Fault("vit ReLU for GELU", layer("blocks.0.act", "op.activation"), replaced("blocks.0.act", nn.ReLU)),
    Fault(
        "vit epsilon of a LayerNorm",
        layer("blocks.1.norm2", "config.epsilon"),
        changed("blocks.1.norm2", _epsilon=1e-5),
    ),
    Fault(
        "vit large epsilon of the last norm", layer("norm", "config.epsilon"), changed("norm", _epsilon=1e-3)
    ),
    Fault(
        "vit no scale",
        line("blocks.1.attention", "op.scale", "op.missing"),
        rewritten("blocks.1.attention", weigh=_unscaled),
    ),
    Fault(
        "vit scale of the width",
        line("blocks.2.attention", "op.scale"),
        changed("blocks.2.attention", scale=WIDTH**-0.5),
    ),
    Fault(
        "vit softmax axis",
        line("blocks.0.attention", "op.axis"),
        rewritten("blocks.0.attention", weigh=_over_queries),
    ),
    Fault("vit heads", line("blocks.2.attention", "config.heads"), changed("blocks.2.attention", heads=2)),
    Fault(
        "vit queries and keys swapped",
        line("blocks.1.attention", "op.order"),
        rewritten("blocks.1.attention", split=_keys_first),
    ),
    Fault(
        "vit heads joined untransposed",
        line("blocks.0.attention", "layout.permuted", "op.missing"),
        rewritten("blocks.0.attention", join=_joined_without_transposing),
    ),
    Fault(
        "vit attention in bfloat16",
        line("blocks.1.attention", "dtype.precision"),
        rewritten("blocks.1.attention", weigh=_rounded_weights),
    ),
    Fault(
        "vit scores in float16",
        line("blocks.0.attention", "dtype.precision"),
        rewritten("blocks.0.attention", weigh=_half_scores),
    ),
    Fault(
        "vit detached keys",
        line("blocks.2.attention", "grad.detached"),
        rewritten("blocks.2.attention", weigh=_held_keys),
    ),
    Fault("vit residual twice", line("blocks.2", "op.extra"), rewritten("blocks.2", forward=_residual_twice)),
    Fault(
        "vit no LayerScale",
        line("blocks.1", "op.missing", "op.scale"),
        rewritten("blocks.1", forward=_no_layer_scale),
    ),
    Fault("vit post-norm", line("blocks.0", "op.order"), rewritten("blocks.0", forward=_post_norm)),
    Fault("vit dropout on", line("blocks.2", "random.dropout"), rewritten("blocks.2", forward=_dropping)),
    Fault(
        "vit activated twice",
        line("blocks.0", "op.extra", "op.activation"),
        rewritten("blocks.0", forward=_extra_activation),
    ),
    Fault("vit token last", line("", "op.order"), rewritten("", placed=_token_last)),
    Fault("vit no position", line("", "op.missing", "weight.missing"), rewritten("", placed=_unplaced)),
    Fault("vit no last norm", line("", "op.missing"), rewritten("", decided=_undecided)),
    Fault(
        "vit square weight untransposed",
        layer("blocks.1.attention.proj", "weight.transposed"),
        spoil=spoilt("blocks.1.attention.proj.weight", np.transpose),
    ),
    Fault(
        "vit queries, keys and values interleaved",
        layer("blocks.0.attention.qkv", "weight.permuted"),
        spoil=spoilt("blocks.0.attention.qkv.weight", _interleaved),
    ),
    Fault(
        "vit weights of two blocks swapped",
        (
            Guilt("blocks.1.fc1", ("weight.mismatched", "weight.permuted")),
            Guilt("blocks.2.fc1", ("weight.mismatched", "weight.permuted")),
        ),
        spoil=_swap_blocks,
    ),
    Fault(
        "vit three at once",
        (
            Guilt("blocks.0.attention", ("op.axis",), "vit softmax axis"),
            Guilt("blocks.1.act", ("op.approximation",)),
            Guilt("norm", ("config.epsilon",)),
        ),
        together(
            rewritten("blocks.0.attention", weigh=_over_queries),
            replaced("blocks.1.act", lambda: nn.GELU(approximate=True)),
            changed("norm", _epsilon=1e-5),
        ),
    ),
)


def _no_mask(self: Any, scores: Any, mask: Any) -> Any:
    # guilty: gpt no mask
    return functional.softmax(scores, -1)


def _masked_after(self: Any, scores: Any, mask: Any) -> Any:
    # guilty: gpt masked after the softmax
    return functional.softmax(scores, -1) * (mask == 0).astype(scores.dtype)


def _mask_off_by_one(self: Any, length: Any) -> Any:
    # guilty: gpt mask off by one
    return paddle.full([length, length], float("-inf"), dtype=self.embed.weight.dtype).triu(2)


def _mask_inverted(self: Any, length: Any) -> Any:
    # guilty: gpt mask inverted
    return paddle.full([length, length], float("-inf"), dtype=self.embed.weight.dtype).tril(-1)


def _exact_gelu(self: Any, x: Any) -> Any:
    # guilty: gpt exact GELU
    return functional.gelu(x)


def _silu(self: Any, x: Any) -> Any:
    # guilty: gpt SiLU for GELU
    return functional.silu(x)


def _embedded_unscaled(self: Any, x: Any) -> Any:
    # guilty: gpt embedding not scaled
    return self.embed(x) + self.place(paddle.arange(x.shape[1]))


def _noisy(self: Any, x: Any) -> Any:
    y = self.embed(x) * WIDTH**0.5 + self.place(paddle.arange(x.shape[1]))
    # guilty: gpt noise of its own
    return y + 0.01 * paddle.randn(y.shape)


def _cool(self: Any, x: Any) -> Any:
    # guilty: gpt temperature
    return paddle.matmul(x, self.embed.weight, transpose_y=True) / 0.8


def _held_head(self: Any, x: Any) -> Any:
    # guilty: gpt detached head
    return paddle.matmul(x, self.embed.weight.detach(), transpose_y=True)


def _own_head(self: Any, x: Any) -> Any:
    return self.head(x)


def _untie(model: Any) -> None:
    model.head = nn.Linear(WIDTH, VOCABULARY, bias_attr=False)
    rewritten("", predicted=_own_head)(model)


def _centred(self: Any, x: Any) -> Any:
    # guilty: gpt centred norm
    x = x - x.mean(-1, keepdim=True)
    size = x.pow(2).mean(-1, keepdim=True) + self.epsilon
    return x * paddle.rsqrt(size) * self.weight


def _attention_detached(self: Any, x: Any, mask: Any) -> Any:
    # guilty: gpt detached attention
    x = x + self.attend(self.norm1(x.detach()), mask)
    return x + self.down(self.activate(self.up(self.norm2(x))))


GPT: tuple[Fault, ...] = (
    Fault("gpt no mask", line("blocks.1", "op.mask", "op.missing"), rewritten("blocks.1", weigh=_no_mask)),
    Fault(
        "gpt masked after the softmax",
        line("blocks.0", "op.mask", "op.order"),
        rewritten("blocks.0", weigh=_masked_after),
    ),
    Fault("gpt mask off by one", line("", "op.mask"), rewritten("", masked=_mask_off_by_one)),
    Fault("gpt mask inverted", line("", "op.mask"), rewritten("", masked=_mask_inverted)),
    Fault(
        "gpt exact GELU", line("blocks.0", "op.approximation"), rewritten("blocks.0", activate=_exact_gelu)
    ),
    Fault("gpt SiLU for GELU", line("blocks.1", "op.activation"), rewritten("blocks.1", activate=_silu)),
    Fault(
        "gpt epsilon by hand",
        line("blocks.1.norm2", "config.epsilon"),
        changed("blocks.1.norm2", epsilon=1e-4),
    ),
    Fault(
        "gpt centred norm", line("blocks.0.norm2", "op.extra"), rewritten("blocks.0.norm2", forward=_centred)
    ),
    Fault(
        "gpt epsilon of a LayerNorm",
        layer("blocks.1.norm1", "config.epsilon"),
        changed("blocks.1.norm1", _epsilon=1e-3),
    ),
    Fault(
        "gpt embedding not scaled",
        line("", "op.scale", "op.missing"),
        rewritten("", embedded=_embedded_unscaled),
    ),
    Fault("gpt temperature", line("", "op.scale"), rewritten("", predicted=_cool)),
    Fault("gpt noise of its own", line("", "random.source"), rewritten("", embedded=_noisy)),
    Fault("gpt head not tied", (Guilt("head", ("weight.tied",), other="embed"),), _untie),
    Fault("gpt detached head", line("", "grad.detached"), rewritten("", predicted=_held_head)),
    Fault(
        "gpt detached attention",
        line("blocks.1", "grad.detached"),
        rewritten("blocks.1", forward=_attention_detached),
    ),
    Fault(
        "gpt padding index",
        layer("place", "config.other"),
        replaced("place", lambda: nn.Embedding(10, WIDTH, padding_idx=3)),
    ),
    Fault(
        "gpt embedding rows shifted",
        layer("embed", "weight.permuted"),
        spoil=spoilt("embed.weight", lambda values: np.roll(values, 1, 0)),
    ),
    Fault(
        "gpt weight through float16",
        layer("blocks.0.up", "dtype.precision", "weight.mismatched"),
        spoil=spoilt("blocks.0.up.weight", lambda values: values.astype(np.float16)),
    ),
    Fault(
        "gpt two lines",
        (
            Guilt("blocks.0", ("op.approximation",), "gpt exact GELU"),
            Guilt("", ("op.scale",), "gpt temperature"),
        ),
        together(rewritten("blocks.0", activate=_exact_gelu), rewritten("", predicted=_cool)),
    ),
)

FAULTS = VIT + GPT
