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
    return functional.softmax(paddle.matmul(query, key, transpose_y=True), -1)  # guilty: vit no scale


def _over_queries(self: Any, query: Any, key: Any) -> Any:
    return functional.softmax(
        paddle.matmul(query, key, transpose_y=True) * self.scale, -2
    )  # guilty: vit softmax axis


def _rounded_weights(self: Any, query: Any, key: Any) -> Any:
    weights = functional.softmax(paddle.matmul(query, key, transpose_y=True) * self.scale, -1)
    return weights.astype("bfloat16").astype("float32")  # guilty: vit attention in bfloat16


def _half_scores(self: Any, query: Any, key: Any) -> Any:
    scores = paddle.matmul(query, key, transpose_y=True) * self.scale
    scores = scores.astype("float16").astype("float32")  # guilty: vit scores in float16
    return functional.softmax(scores, -1)


def _keys_first(self: Any, x: Any) -> Any:
    count, length, width = x.shape
    shape = [count, length, 3, self.heads, width // self.heads]
    qkv = self.qkv(x).reshape(shape).transpose([2, 0, 3, 1, 4])
    return [qkv[1], qkv[0], qkv[2]]  # guilty: vit queries and keys swapped


def _held_keys(self: Any, query: Any, key: Any) -> Any:
    key = key.detach()  # guilty: vit detached keys
    return functional.softmax(paddle.matmul(query, key, transpose_y=True) * self.scale, -1)


def _joined_without_transposing(self: Any, mixed: Any) -> Any:
    count, heads, length, size = mixed.shape
    return mixed.reshape([count, length, heads * size])  # guilty: vit heads joined untransposed


def _residual_twice(self: Any, x: Any) -> Any:
    x = x + x + self.attention(self.norm1(x))  # guilty: vit residual twice
    return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


def _no_layer_scale(self: Any, x: Any) -> Any:
    x = x + self.attention(self.norm1(x))
    return x + self.fc2(self.act(self.fc1(self.norm2(x)))) + 0.0 * self.gamma  # guilty: vit no LayerScale


def _post_norm(self: Any, x: Any) -> Any:
    x = self.norm1(x + self.attention(x))  # guilty: vit post-norm
    return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


def _dropping(self: Any, x: Any) -> Any:
    x = x + functional.dropout(self.attention(self.norm1(x)), 0.1, training=True)  # guilty: vit dropout on
    return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


def _extra_activation(self: Any, x: Any) -> Any:
    x = x + self.attention(self.norm1(x))
    return x + self.gamma * functional.gelu(
        self.fc2(self.act(self.fc1(self.norm2(x))))
    )  # guilty: vit activated twice


def _token_last(self: Any, x: Any) -> Any:
    return (
        paddle.concat([x, self.token.expand([x.shape[0], -1, -1])], 1) + self.position
    )  # guilty: vit token last


def _unplaced(self: Any, x: Any) -> Any:
    return paddle.concat([self.token.expand([x.shape[0], -1, -1]), x], 1)  # guilty: vit no position


def _undecided(self: Any, x: Any) -> Any:
    return self.head(x[:, 0])  # guilty: vit no last norm


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
    Fault("vit GELU by tanh", "vit", layer("blocks.1.act", "op.approximation"),
          replaced("blocks.1.act", lambda: nn.GELU(approximate=True))),
    Fault("vit ReLU for GELU", "vit", layer("blocks.0.act", "op.activation"), replaced("blocks.0.act", nn.ReLU)),
    Fault("vit epsilon of a LayerNorm", "vit", layer("blocks.1.norm2", "config.epsilon"),
          changed("blocks.1.norm2", _epsilon=1e-5)),
    Fault("vit large epsilon of the last norm", "vit", layer("norm", "config.epsilon"), changed("norm", _epsilon=1e-2)),
    Fault("vit no scale", "vit", line("blocks.1.attention", "vit no scale", "op.scale", "op.missing"),
          rewritten("blocks.1.attention", weigh=_unscaled)),
    Fault("vit scale of the width", "vit", line("blocks.2.attention", "vit scale of the width", "op.scale"),
          changed("blocks.2.attention", scale=WIDTH**-0.5)),
    Fault("vit softmax axis", "vit", line("blocks.0.attention", "vit softmax axis", "op.axis"),
          rewritten("blocks.0.attention", weigh=_over_queries)),
    Fault("vit heads", "vit", line("blocks.2.attention", "vit heads", "config.heads"),
          changed("blocks.2.attention", heads=2)),
    Fault("vit queries and keys swapped", "vit",
          line("blocks.1.attention", "vit queries and keys swapped", "op.order"),
          rewritten("blocks.1.attention", split=_keys_first)),
    Fault("vit heads joined untransposed", "vit",
          line("blocks.0.attention", "vit heads joined untransposed", "layout.permuted", "op.missing"),
          rewritten("blocks.0.attention", join=_joined_without_transposing)),
    Fault("vit attention in bfloat16", "vit", line("blocks.1.attention", "vit attention in bfloat16", "dtype.precision"),
          rewritten("blocks.1.attention", weigh=_rounded_weights)),
    Fault("vit scores in float16", "vit", line("blocks.0.attention", "vit scores in float16", "dtype.precision"),
          rewritten("blocks.0.attention", weigh=_half_scores)),
    Fault("vit detached keys", "vit", line("blocks.2.attention", "vit detached keys", "grad.detached"),
          rewritten("blocks.2.attention", weigh=_held_keys)),
    Fault("vit residual twice", "vit", line("blocks.2", "vit residual twice", "op.extra"),
          rewritten("blocks.2", forward=_residual_twice)),
    Fault("vit no LayerScale", "vit", line("blocks.1", "vit no LayerScale", "op.missing", "op.scale"),
          rewritten("blocks.1", forward=_no_layer_scale)),
    Fault("vit post-norm", "vit", line("blocks.0", "vit post-norm", "op.order"),
          rewritten("blocks.0", forward=_post_norm)),
    Fault("vit dropout on", "vit", line("blocks.2", "vit dropout on", "random.dropout"),
          rewritten("blocks.2", forward=_dropping)),
    Fault("vit activated twice", "vit", line("blocks.0", "vit activated twice", "op.extra", "op.activation"),
          rewritten("blocks.0", forward=_extra_activation)),
    Fault("vit token last", "vit", line("", "vit token last", "op.order"), rewritten("", placed=_token_last)),
    Fault("vit no position", "vit", line("", "vit no position", "op.missing", "weight.missing"),
          rewritten("", placed=_unplaced)),
    Fault("vit no last norm", "vit", line("", "vit no last norm", "op.missing"), rewritten("", decided=_undecided)),
    Fault("vit square weight untransposed", "vit", layer("blocks.1.attention.proj", "weight.transposed"),
          spoil=spoilt("blocks.1.attention.proj.weight", np.transpose)),
    Fault("vit queries, keys and values interleaved", "vit", layer("blocks.0.attention.qkv", "weight.permuted"),
          spoil=spoilt("blocks.0.attention.qkv.weight", _interleaved)),
    Fault("vit weights of two blocks swapped", "vit",
          (Guilt("blocks.1.fc1", ("weight.mismatched", "weight.permuted")),
           Guilt("blocks.2.fc1", ("weight.mismatched", "weight.permuted"))), spoil=_swap_blocks),
    Fault("vit three at once", "vit",
          (Guilt("blocks.0.attention", ("op.axis",), "vit softmax axis"), Guilt("blocks.1.act", ("op.approximation",)),
           Guilt("norm", ("config.epsilon",))),
          together(rewritten("blocks.0.attention", weigh=_over_queries),
                   replaced("blocks.1.act", lambda: nn.GELU(approximate=True)), changed("norm", _epsilon=1e-5))),
)  # fmt: skip


def _no_mask(self: Any, scores: Any, mask: Any) -> Any:
    return functional.softmax(scores, -1)  # guilty: gpt no mask


def _masked_after(self: Any, scores: Any, mask: Any) -> Any:
    return functional.softmax(scores, -1) * (mask == 0).astype(
        scores.dtype
    )  # guilty: gpt masked after the softmax


def _mask_off_by_one(self: Any, length: Any) -> Any:
    return paddle.full([length, length], float("-inf"), dtype=self.embed.weight.dtype).triu(
        2
    )  # guilty: gpt mask off by one


def _mask_inverted(self: Any, length: Any) -> Any:
    return paddle.full([length, length], float("-inf"), dtype=self.embed.weight.dtype).tril(
        -1
    )  # guilty: gpt mask inverted


def _exact_gelu(self: Any, x: Any) -> Any:
    return functional.gelu(x)  # guilty: gpt exact GELU


def _silu(self: Any, x: Any) -> Any:
    return functional.silu(x)  # guilty: gpt SiLU for GELU


def _embedded_unscaled(self: Any, x: Any) -> Any:
    return self.embed(x) + self.place(paddle.arange(x.shape[1]))  # guilty: gpt embedding not scaled


def _noisy(self: Any, x: Any) -> Any:
    y = self.embed(x) * WIDTH**0.5 + self.place(paddle.arange(x.shape[1]))
    return y + 0.01 * paddle.randn(y.shape)  # guilty: gpt noise of its own


def _cool(self: Any, x: Any) -> Any:
    return paddle.matmul(x, self.embed.weight, transpose_y=True) / 0.8  # guilty: gpt temperature


def _held_head(self: Any, x: Any) -> Any:
    return paddle.matmul(x, self.embed.weight.detach(), transpose_y=True)  # guilty: gpt detached head


def _own_head(self: Any, x: Any) -> Any:
    return self.head(x)


def _untie(model: Any) -> None:
    model.head = nn.Linear(WIDTH, VOCABULARY, bias_attr=False)
    rewritten("", predicted=_own_head)(model)


def _centred(self: Any, x: Any) -> Any:
    x = x - x.mean(-1, keepdim=True)  # guilty: gpt centred norm
    size = x.pow(2).mean(-1, keepdim=True) + self.epsilon
    return x * paddle.rsqrt(size) * self.weight


def _attention_detached(self: Any, x: Any, mask: Any) -> Any:
    x = x + self.attend(self.norm1(x.detach()), mask)  # guilty: gpt detached attention
    return x + self.down(self.activate(self.up(self.norm2(x))))


GPT: tuple[Fault, ...] = (
    Fault("gpt no mask", "gpt", line("blocks.1", "gpt no mask", "op.mask", "op.missing"),
          rewritten("blocks.1", weigh=_no_mask)),
    Fault("gpt masked after the softmax", "gpt", line("blocks.0", "gpt masked after the softmax", "op.mask", "op.order"),
          rewritten("blocks.0", weigh=_masked_after)),
    Fault("gpt mask off by one", "gpt", line("", "gpt mask off by one", "op.mask"),
          rewritten("", masked=_mask_off_by_one)),
    Fault("gpt mask inverted", "gpt", line("", "gpt mask inverted", "op.mask"), rewritten("", masked=_mask_inverted)),
    Fault("gpt exact GELU", "gpt", line("blocks.0", "gpt exact GELU", "op.approximation"),
          rewritten("blocks.0", activate=_exact_gelu)),
    Fault("gpt SiLU for GELU", "gpt", line("blocks.1", "gpt SiLU for GELU", "op.activation"),
          rewritten("blocks.1", activate=_silu)),
    Fault("gpt epsilon by hand", "gpt", line("blocks.1.norm2", "gpt epsilon by hand", "config.epsilon"),
          changed("blocks.1.norm2", epsilon=1e-4)),
    Fault("gpt centred norm", "gpt", line("blocks.0.norm2", "gpt centred norm", "op.extra"),
          rewritten("blocks.0.norm2", forward=_centred)),
    Fault("gpt epsilon of a LayerNorm", "gpt", layer("blocks.1.norm1", "config.epsilon"),
          changed("blocks.1.norm1", _epsilon=1e-3)),
    Fault("gpt embedding not scaled", "gpt", line("", "gpt embedding not scaled", "op.scale", "op.missing"),
          rewritten("", embedded=_embedded_unscaled)),
    Fault("gpt temperature", "gpt", line("", "gpt temperature", "op.scale"), rewritten("", predicted=_cool)),
    Fault("gpt noise of its own", "gpt", line("", "gpt noise of its own", "random.source"),
          rewritten("", embedded=_noisy)),
    Fault("gpt head not tied", "gpt", layer("head", "weight.tied"), _untie),
    Fault("gpt detached head", "gpt", line("", "gpt detached head", "grad.detached"),
          rewritten("", predicted=_held_head)),
    Fault("gpt detached attention", "gpt", line("blocks.1", "gpt detached attention", "grad.detached"),
          rewritten("blocks.1", forward=_attention_detached)),
    Fault("gpt padding index", "gpt", layer("place", "config.other"),
          replaced("place", lambda: nn.Embedding(10, WIDTH, padding_idx=3))),
    Fault("gpt embedding rows shifted", "gpt", layer("embed", "weight.permuted"),
          spoil=spoilt("embed.weight", lambda values: np.roll(values, 1, 0))),
    Fault("gpt weight through float16", "gpt", layer("blocks.0.up", "dtype.precision", "weight.mismatched"),
          spoil=spoilt("blocks.0.up.weight", lambda values: values.astype(np.float16))),
    Fault("gpt two lines", "gpt",
          (Guilt("blocks.0", ("op.approximation",), "gpt exact GELU"), Guilt("", ("op.scale",), "gpt temperature")),
          together(rewritten("blocks.0", activate=_exact_gelu), rewritten("", predicted=_cool))),
)  # fmt: skip

FAULTS = VIT + GPT
