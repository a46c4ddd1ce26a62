"""A small Llama of the transformers library and one written by hand in paddle, and batches for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch
from paddle.nn import functional as F

import parfocal as pf
from tests.pairs.vision import torchvision_models

assert torchvision_models is not None  # transformers imports torchvision, which needs help to load

SIZES: dict[str, int] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
EPSILON = 1e-5
BATCH, TIME = 3, 10


def torch_llama(seed: int = 0, **changes: Any) -> Any:
    """With random weights of a size that keeps signals alive."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    options: dict[str, Any] = {"rms_norm_eps": EPSILON, "attn_implementation": "eager", "use_cache": False}
    config = LlamaConfig(**{**SIZES, **options, **changes})
    config.initializer_range = 0.2
    return LlamaForCausalLM(config).train()


class Norm(paddle.nn.Layer):
    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = self.create_parameter([size], default_initializer=paddle.nn.initializer.Constant(1.0))
        self.variance_epsilon = epsilon

    def forward(self, x: Any) -> Any:
        return self.weight * (x * paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


class Rotary(paddle.nn.Layer):
    """Tables of one sample: they broadcast over the batch."""

    def __init__(self, size: int, theta: float) -> None:
        super().__init__()
        self.size = size
        self.rope_theta = theta

    def forward(self, positions: Any) -> Any:
        powers = paddle.arange(0, self.size, 2, dtype="float32") / self.size
        angles = positions.astype("float32").unsqueeze(-1) * (1.0 / self.rope_theta**powers)
        table = paddle.concat([angles, angles], axis=-1)
        return table.cos(), table.sin()


def rotated(x: Any, tables: Any) -> Any:
    cos, sin = (table.unsqueeze(1) for table in tables)
    half = x.shape[-1] // 2
    return x * cos + paddle.concat([-x[..., half:], x[..., :half]], axis=-1) * sin


class Attention(paddle.nn.Layer):
    def __init__(self, sizes: dict[str, int], **changes: Any) -> None:
        super().__init__()
        self.heads, self.groups = sizes["num_attention_heads"], sizes["num_key_value_heads"]
        size = sizes["hidden_size"]
        self.head_dim = size // self.heads
        self.scaling = changes.get("scaling", self.head_dim**-0.5)
        self.causal = changes.get("causal", True)
        self.interleave = changes.get("interleave", False)
        kept = self.groups * self.head_dim
        self.q_proj = paddle.nn.Linear(size, size, bias_attr=False)
        self.k_proj = paddle.nn.Linear(size, kept, bias_attr=False)
        self.v_proj = paddle.nn.Linear(size, kept, bias_attr=False)
        self.o_proj = paddle.nn.Linear(size, size, bias_attr=False)

    def split(self, x: Any, heads: int) -> Any:
        return x.reshape([x.shape[0], x.shape[1], heads, self.head_dim]).transpose([0, 2, 1, 3])

    def shared(self, x: Any) -> Any:
        """Every key and value for as many queries as share it."""
        times = self.heads // self.groups
        if self.interleave:
            return paddle.concat([x] * times, axis=1)
        return paddle.repeat_interleave(x, times, axis=1)

    def forward(self, x: Any, tables: Any) -> Any:
        q = rotated(self.split(self.q_proj(x), self.heads), tables)
        k = self.shared(rotated(self.split(self.k_proj(x), self.groups), tables))
        v = self.shared(self.split(self.v_proj(x), self.groups))
        scores = q @ k.transpose([0, 1, 3, 2]) * self.scaling
        if self.causal:
            time = x.shape[1]
            scores = scores + paddle.triu(paddle.full([time, time], float("-inf")), 1)
        mixed = (F.softmax(scores, axis=-1) @ v).transpose([0, 2, 1, 3])
        return self.o_proj(mixed.reshape([x.shape[0], x.shape[1], -1]))


class Feed(paddle.nn.Layer):
    def __init__(self, sizes: dict[str, int], **changes: Any) -> None:
        super().__init__()
        size, inner = sizes["hidden_size"], sizes["intermediate_size"]
        self.act = changes.get("act", F.silu)
        self.gate_proj = paddle.nn.Linear(size, inner, bias_attr=False)
        self.up_proj = paddle.nn.Linear(size, inner, bias_attr=False)
        self.down_proj = paddle.nn.Linear(inner, size, bias_attr=False)

    def forward(self, x: Any) -> Any:
        return self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x))


class Block(paddle.nn.Layer):
    def __init__(self, sizes: dict[str, int], epsilon: float, **changes: Any) -> None:
        super().__init__()
        self.self_attn = Attention(sizes, **changes)
        self.mlp = Feed(sizes, **changes)
        self.input_layernorm = Norm(sizes["hidden_size"], epsilon)
        self.post_attention_layernorm = Norm(sizes["hidden_size"], changes.get("second_epsilon", epsilon))

    def forward(self, x: Any, tables: Any) -> Any:
        x = x + self.self_attn(self.input_layernorm(x), tables)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(paddle.nn.Layer):
    def __init__(self, sizes: dict[str, int], epsilon: float, **changes: Any) -> None:
        super().__init__()
        wrong = changes.pop("wrong_layer", 0)
        self.embed_tokens = paddle.nn.Embedding(sizes["vocab_size"], sizes["hidden_size"])
        self.layers = paddle.nn.LayerList(
            Block(sizes, epsilon, **(changes if number == wrong else {}))
            for number in range(sizes["num_hidden_layers"])
        )
        self.norm = Norm(sizes["hidden_size"], epsilon)
        size = sizes["hidden_size"] // sizes["num_attention_heads"]
        self.rotary_emb = Rotary(size, changes.get("theta", 10000.0))

    def forward(self, ids: Any) -> Any:
        x = self.embed_tokens(ids)
        tables = self.rotary_emb(paddle.arange(ids.shape[1]).unsqueeze(0))
        for layer in self.layers:
            x = layer(x, tables)
        return self.norm(x)


class PaddleLlama(paddle.nn.Layer):
    """``changes`` are those of one layer, ``wrong_layer``; ``theta`` is that of all."""

    def __init__(self, epsilon: float = EPSILON, **changes: Any) -> None:
        super().__init__()
        self.model = Decoder(SIZES, epsilon, **changes)
        self.lm_head = paddle.nn.Linear(SIZES["hidden_size"], SIZES["vocab_size"], bias_attr=False)

    def forward(self, ids: Any) -> Any:
        return self.lm_head(self.model(ids))


def paddle_llama(reference: Any, folder: Any, **changes: Any) -> Any:
    """With the reference's weights, converted as a file."""
    model = PaddleLlama(**changes)
    torch.save(reference.state_dict(), folder / "weights.pth")
    pf.convert(folder / "weights.pth", model, folder / "weights.pdparams")
    model.set_state_dict(paddle.load(str(folder / "weights.pdparams")))
    model.train()
    return model


def batches(count: int = 2) -> list[Any]:
    random = np.random.default_rng(5)
    ids = random.integers(0, SIZES["vocab_size"], size=(count, BATCH, TIME)).astype("int64")
    return [(each, each) for each in ids]


def torch_loss(output: Any, ids: Any) -> Any:
    logits = output.logits[:, :-1].reshape(-1, SIZES["vocab_size"])
    return torch.nn.functional.cross_entropy(logits, ids[:, 1:].reshape(-1))


def paddle_loss(logits: Any, ids: Any) -> Any:
    return F.cross_entropy(logits[:, :-1].reshape([-1, SIZES["vocab_size"]]), ids[:, 1:].reshape([-1]))
