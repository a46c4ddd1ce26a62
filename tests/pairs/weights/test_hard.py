"""Whole little models as people write them, ported with other names, other nesting, other layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

from parfocal.errors import TransferError
from parfocal.weights.transfer import transfer
from tests.pairs.weights.tools import disguise, gap, randomise, run

T, P = torch.nn, paddle.nn
F, G = torch.nn.functional, paddle.nn.functional


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def agree(reference: Any, port: Any, *inputs: np.ndarray, **more: Any) -> Any:
    randomise(reference, 1)
    randomise(port, 2)
    plan = transfer(reference, port, inputs, **more)
    assert plan.complete, str(plan)
    assert plan.verified is True, str(plan)
    assert gap(run(reference, *inputs), run(port, *inputs)) < 1e-5
    return plan


class TorchViT(T.Module):
    """Patches by a convolution, packed qkv, raw class token and positions."""

    class Block(T.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = T.LayerNorm(width), T.LayerNorm(width)
            self.qkv, self.proj = T.Linear(width, 3 * width), T.Linear(width, width)
            self.mlp = T.Sequential(T.Linear(width, 2 * width), T.GELU(), T.Linear(2 * width, width))

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
            x = x + self.proj(y)
            return x + self.mlp(self.norm2(x))

    def __init__(self, width: int = 12, depth: int = 3) -> None:
        super().__init__()
        self.cls_token = T.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = T.Parameter(torch.zeros(1, 17, width))
        self.patch_embed = T.Conv2d(3, width, 4, 4)
        self.blocks = T.ModuleList([self.Block(width, 3) for _ in range(depth)])
        self.norm, self.head = T.LayerNorm(width), T.Linear(width, 5)

    def forward(self, image: Any) -> Any:
        x = self.patch_embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class PaddleViT(P.Layer):
    """The same with q, k and v apart, everything in one class, other names and another order."""

    def __init__(self, width: int = 12, depth: int = 3) -> None:
        super().__init__()
        self.width, self.depth = width, depth
        self.final = P.Linear(width, 5)
        self.ln = P.LayerNorm(width)
        self.places = self.create_parameter([17, width])
        self.start = self.create_parameter([1, width])
        for i in range(depth):
            setattr(self, f"o{i}", P.Linear(width, width))
            setattr(self, f"value{i}", P.Linear(width, width))
            setattr(self, f"query{i}", P.Linear(width, width))
            setattr(self, f"key{i}", P.Linear(width, width))
            setattr(self, f"down{i}", P.Linear(2 * width, width))
            setattr(self, f"up{i}", P.Linear(width, 2 * width))
            setattr(self, f"post{i}", P.LayerNorm(width))
            setattr(self, f"pre{i}", P.LayerNorm(width))
        self.stem = P.Conv2D(3, width, 4, 4)

    def forward(self, image: Any) -> Any:
        x = self.stem(image).flatten(2).transpose([0, 2, 1])
        batch = x.shape[0]
        x = paddle.concat([self.start.unsqueeze(0).expand([batch, 1, self.width]), x], 1) + self.places
        for i in range(self.depth):
            y = getattr(self, f"pre{i}")(x)
            v, q, k = (
                getattr(self, f"{n}{i}")(y).reshape([batch, 17, 3, -1]) for n in ("value", "query", "key")
            )
            y = G.scaled_dot_product_attention(q, k, v).reshape([batch, 17, self.width])
            x = x + getattr(self, f"o{i}")(y)
            y = getattr(self, f"up{i}")(getattr(self, f"post{i}")(x))
            x = x + getattr(self, f"down{i}")(G.gelu(y))
        return self.final(self.ln(x)[:, 0])


def test_vision_transformer_with_another_nesting() -> None:
    agree(TorchViT(), PaddleViT(), floats(2, 3, 16, 16))
    agree(PaddleViT(), TorchViT(), floats(2, 3, 16, 16))


class Conv1D(T.Module):
    """GPT-2's linear layer: [in, out]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = T.Parameter(torch.zeros(inputs, outputs)), T.Parameter(torch.zeros(outputs))

    def forward(self, x: Any) -> Any:
        return x @ self.weight + self.bias


class TorchGPT(T.Module):
    """Causal, Conv1D layers, head tied to the embedding, a mask as a buffer."""

    def __init__(self, tied: bool = True) -> None:
        super().__init__()
        self.wte, self.wpe = T.Embedding(11, 8), T.Embedding(6, 8)
        self.ln_1, self.ln_f = T.LayerNorm(8), T.LayerNorm(8)
        self.c_attn, self.c_proj = Conv1D(8, 24), Conv1D(8, 8)
        self.register_buffer("mask", torch.tril(torch.ones(6, 6)) == 0)
        self.lm_head = T.Linear(8, 11, bias=False)
        if tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, ids: Any) -> Any:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        q, k, v = self.c_attn(self.ln_1(x)).split(8, -1)
        scores = (q @ k.transpose(1, 2) / 8**0.5).masked_fill(self.mask, -1e9)
        return self.lm_head(self.ln_f(x + self.c_proj(scores.softmax(-1) @ v)))


class PaddleGPT(P.Layer):
    """The head is a product with the embedding (``head=None``) or a layer of its own."""

    def __init__(self, head: bool = False) -> None:
        super().__init__()
        self.word_embeddings, self.position_embeddings = P.Embedding(11, 8), P.Embedding(6, 8)
        self.norm1, self.norm = P.LayerNorm(8), P.LayerNorm(8)
        self.qkv_proj, self.out_proj = P.Linear(8, 24), P.Linear(8, 8)
        self.head = P.Linear(8, 11, bias_attr=False) if head else None

    def forward(self, ids: Any) -> Any:
        x = self.word_embeddings(ids) + self.position_embeddings(paddle.arange(ids.shape[1]))
        q, k, v = self.qkv_proj(self.norm1(x)).split(3, -1)
        scores = q @ k.transpose([0, 2, 1]) / 8**0.5 + paddle.triu(paddle.full([6, 6], -1e9), 1)
        x = self.norm(x + self.out_proj(G.softmax(scores, -1) @ v))
        return self.head(x) if self.head else paddle.matmul(x, self.word_embeddings.weight, transpose_y=True)


IDS = np.random.default_rng(0).integers(0, 11, (2, 6))


def test_tied_head_against_a_product_with_the_embedding() -> None:
    plan = agree(TorchGPT(), PaddleGPT(), IDS)
    assert any("lm_head" in note and "tied to wte.weight" in note for note in plan.notes)
    assert any("mask" in note for note in plan.notes)
    agree(PaddleGPT(), TorchGPT(), IDS)


def test_tied_head_against_a_separate_one() -> None:
    plan = agree(TorchGPT(), PaddleGPT(head=True), IDS)
    assert any("tied in the reference and separate in the port" in note for note in plan.notes)


def test_two_values_for_one_tied_tensor_are_refused() -> None:
    reference, port = randomise(PaddleGPT(head=True), 1), randomise(TorchGPT(), 2)
    with pytest.raises(
        TransferError, match=r"two different ones for it: word_embeddings.weight and head.weight"
    ):
        transfer(reference, port)


class TorchScaled(T.Module):
    """ConvNeXt's block: channels-last norm, layer scale as a raw parameter; then squeeze and excite."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.dwconv = T.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm = T.LayerNorm(width)
        self.pwconv1, self.pwconv2 = T.Linear(width, 2 * width), T.Linear(2 * width, width)
        self.gamma = T.Parameter(torch.ones(width))
        self.fc1, self.fc2 = T.Conv2d(width, 3, 1), T.Conv2d(3, width, 1)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = x + (self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))).permute(0, 3, 1, 2)
        return y * self.fc2(F.relu(self.fc1(y.mean((2, 3), keepdim=True)))).sigmoid()


class PaddleScaled(P.Layer):
    """1x1 convolutions for the linear layers, linear layers for the 1x1 convolutions, a norm of its own."""

    class ChannelNorm(P.Layer):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.scale, self.shift = self.create_parameter([width]), self.create_parameter([width])

        def forward(self, x: Any) -> Any:
            centred = x - x.mean(1, keepdim=True)
            normed = centred / paddle.sqrt((centred**2).mean(1, keepdim=True) + 1e-5)
            return normed * self.scale.reshape([1, -1, 1, 1]) + self.shift.reshape([1, -1, 1, 1])

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.layer_scale = self.create_parameter([1, width, 1, 1])
        self.depthwise = P.Conv2D(width, width, 3, padding=1, groups=width)
        self.normalise = self.ChannelNorm(width)
        self.expand, self.reduce = P.Conv2D(width, 2 * width, 1), P.Conv2D(2 * width, width, 1)
        self.squeeze, self.excite = P.Linear(width, 3), P.Linear(3, width)

    def forward(self, x: Any) -> Any:
        y = self.reduce(G.gelu(self.expand(self.normalise(self.depthwise(x)))))
        y = x + self.layer_scale * y
        gate = G.sigmoid(self.excite(G.relu(self.squeeze(y.mean([2, 3])))))
        return y * gate.unsqueeze(-1).unsqueeze(-1)


def test_layer_scale_and_layers_of_another_kind() -> None:
    agree(TorchScaled(), PaddleScaled(), floats(2, 6, 5, 5))
    agree(PaddleScaled(), TorchScaled(), floats(2, 6, 5, 5))


def branches(library: Any, base: Any, make: Any, order: str) -> Any:
    """Two identical branches, joined in a fixed order, executed in the given one."""

    class Branches(base):
        def __init__(self) -> None:
            super().__init__()
            for name in "ab":
                setattr(self, f"{name}1", make(4, 4))
                setattr(self, f"{name}2", make(4, 4))
            self.last = make(8, 4)

        def forward(self, x: Any) -> Any:
            done = {
                n: library.tanh(getattr(self, f"{n}2")(library.tanh(getattr(self, f"{n}1")(x))))
                for n in order
            }
            return self.last(library.concat([done["a"], done["b"]], -1))

    return Branches()


def test_identical_branches_executed_in_another_order() -> None:
    reference = branches(torch, T.Module, T.Linear, "ab")
    port = branches(paddle, P.Layer, P.Linear, "ba")
    agree(reference, disguise(port, 3), floats(3, 4))


def rooted(library: Any, base: Any, parameter: Any, turned: bool) -> Any:
    class Rooted(base):
        """A square raw parameter, used as it is or transposed."""

        def __init__(self) -> None:
            super().__init__()
            self.mix = parameter(self, (5, 5))

        def forward(self, x: Any) -> Any:
            mix = self.mix
            return x @ (mix.t() if turned else mix)

    return Rooted()


def torch_parameter(owner: Any, shape: tuple[int, ...]) -> Any:
    return T.Parameter(torch.zeros(shape))


def paddle_parameter(owner: Any, shape: tuple[int, ...]) -> Any:
    return owner.create_parameter(list(shape))


@pytest.mark.parametrize("turned", [True, False])
def test_square_raw_parameter_is_settled_by_running(turned: bool) -> None:
    reference = rooted(torch, T.Module, torch_parameter, turned)
    port = rooted(paddle, P.Layer, paddle_parameter, False)
    plan = agree(reference, port, floats(3, 5))
    assert plan.entries[0].rule == ("transposed" if turned else "as it is")
    with pytest.raises(TransferError, match="2 ways to copy and none shown to be right"):
        transfer(reference, port)


class Residual(T.Module):
    """A residual net whose last norms start at zero: every block is the identity."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = T.Conv2d(3, 4, 3, padding=1)
        self.blocks = T.ModuleList(
            T.Sequential(T.Conv2d(4, 4, 3, padding=1, bias=False), T.BatchNorm2d(4)) for _ in range(3)
        )
        self.head = T.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        x = self.stem(x).relu()
        for block in self.blocks:
            x = (x + block(x)).relu()
        return self.head(x.mean((2, 3)))


class PaddleResidual(P.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.head = P.Linear(4, 2)
        self.n2, self.n0, self.n1 = (P.BatchNorm2D(4) for _ in range(3))
        self.c0, self.c1, self.c2 = (P.Conv2D(4, 4, 3, padding=1, bias_attr=False) for _ in range(3))
        self.stem = P.Conv2D(3, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        x = G.relu(self.stem(x))
        for i in range(3):
            x = G.relu(x + getattr(self, f"n{i}")(getattr(self, f"c{i}")(x)))
        return self.head(x.mean([2, 3]))


def test_blocks_that_are_the_identity_go_by_execution_order() -> None:
    reference, port = randomise(Residual(), 1), disguise(randomise(PaddleResidual(), 2), 1)
    for block in reference.blocks:
        T.init.zeros_(block[1].weight)
        T.init.zeros_(block[1].bias)
        T.init.zeros_(block[1].running_mean)
    images = floats(2, 3, 6, 6)
    assert transfer(reference, port, images).verified is True
    for block in reference.blocks:
        T.init.ones_(block[1].weight)
    for layer in port.sublayers():
        if isinstance(layer, P.BatchNorm2D):
            layer.weight.set_value(paddle.ones([4]))
    assert gap(run(reference, images), run(port, images)) < 1e-5


def swin(library: Any, base: Any, make: Any, norm: Any, parameter: Any, cat: Any) -> Any:
    class Window(base):
        """Window attention with a table of relative biases and an index as a buffer."""

        def __init__(self) -> None:
            super().__init__()
            self.relative_position_bias_table = parameter(self, (9, 2))
            places = np.arange(16).reshape(4, 4) % 9
            self.register_buffer("relative_position_index", library.as_tensor(places) if library is torch
                                 else paddle.to_tensor(places))  # fmt: skip
            self.qkv, self.proj, self.norm = make(8, 24), make(8, 8), norm(8)

        def forward(self, x: Any) -> Any:
            qkv = self.qkv(self.norm(x)).reshape((2, 4, 3, 2, 4))
            q, k, v = ((each.permute(0, 2, 1, 3) if library is torch else each.transpose([0, 2, 1, 3]))
                       for each in (qkv[:, :, i] for i in range(3)))  # fmt: skip
            bias = self.relative_position_bias_table[self.relative_position_index.reshape((-1,))]
            bias = bias.reshape((4, 4, 2))
            bias = bias.permute(2, 0, 1) if library is torch else bias.transpose([2, 0, 1])
            turned = k.transpose(2, 3) if library is torch else k.transpose([0, 1, 3, 2])
            scores = q @ turned / 2 + bias
            scores = scores.softmax(-1) if library is torch else G.softmax(scores, -1)
            y = scores @ v
            y = y.permute(0, 2, 1, 3) if library is torch else y.transpose([0, 2, 1, 3])
            return x + self.proj(y.reshape((2, 4, 8)))

    return Window()


def test_window_attention_with_a_bias_table() -> None:
    reference = swin(torch, T.Module, T.Linear, T.LayerNorm, torch_parameter, torch.cat)
    port = swin(paddle, P.Layer, P.Linear, P.LayerNorm, paddle_parameter, paddle.concat)
    agree(reference, port, floats(2, 4, 8))


class Patches(P.Layer):
    """Patches flattened, then a linear layer; ``last``: the channels lie last in a patch."""

    def __init__(self, last: bool) -> None:
        super().__init__()
        self.last, self.proj = last, P.Linear(48, 6)

    def forward(self, x: Any) -> Any:
        x = x.reshape([2, 3, 2, 4, 2, 4]).transpose([0, 2, 4, 3, 5, 1] if self.last else [0, 2, 4, 1, 3, 5])
        return self.proj(x.reshape([2, 4, 48])).transpose([0, 2, 1]).reshape([2, 6, 2, 2])


@pytest.mark.parametrize("last", [True, False])
def test_convolution_over_patches_against_a_linear_layer(last: bool) -> None:
    agree(T.Conv2d(3, 6, 4, 4), Patches(last), floats(2, 3, 8, 8))
    agree(Patches(last), T.Conv2d(3, 6, 4, 4), floats(2, 3, 8, 8))


class Product(T.Module):
    """The head is a product with the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.middle = T.Embedding(11, 5), T.Linear(5, 5)

    def forward(self, ids: Any) -> Any:
        return self.middle(self.words(ids)) @ self.words.weight.t()


class OwnHead(P.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.middle, self.head = (
            P.Embedding(11, 5),
            P.Linear(5, 5),
            P.Linear(5, 11, bias_attr=False),
        )

    def forward(self, ids: Any) -> Any:
        return self.head(self.middle(self.words(ids)))


def test_a_head_of_its_own_takes_the_embedding_if_the_outputs_prove_it() -> None:
    agree(Product(), OwnHead(), IDS)
    with pytest.raises(TransferError, match=r"unmatched in the port: head.weight \[5, 11\]"):
        transfer(Product(), OwnHead())


def test_a_layer_used_twice() -> None:
    class Twice(T.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = T.Linear(5, 5), T.Linear(5, 5)

        def forward(self, x: Any) -> Any:
            return self.b(torch.tanh(self.a(torch.tanh(self.a(x)))))

    class PaddleTwice(P.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.x, self.y = P.Linear(5, 5), P.Linear(5, 5)

        def forward(self, x: Any) -> Any:
            return self.x(paddle.tanh(self.y(paddle.tanh(self.y(x)))))

    agree(Twice(), PaddleTwice(), floats(3, 5))


def test_two_layers_of_an_lstm_against_two_lstms() -> None:
    class Pair(P.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = P.LSTM(6, 4), P.LSTM(4, 4)

        def forward(self, x: Any) -> Any:
            return self.two(self.one(x)[0])[0]

    agree(T.LSTM(6, 4, 2, batch_first=True), Pair(), floats(2, 5, 6))


class TorchRms(T.Module):
    """A norm written by hand, with a single weight."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = T.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class RMSNorm(P.Layer):
    def __init__(self, width: int, name: str = "weight") -> None:
        super().__init__()
        self.name_of_weight = name
        setattr(self, name, self.create_parameter([width], default_initializer=P.initializer.Constant(1.0)))

    def forward(self, x: Any) -> Any:
        return getattr(self, self.name_of_weight) * x * paddle.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class TorchPreNorm(T.Module):
    """Its names say when a norm comes: after what was before it."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.attn, self.mlp = T.Linear(width, width), T.Linear(width, width)
        self.input_norm, self.post_attn_norm = TorchRms(width), TorchRms(width)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.input_norm(x))
        return x + self.mlp(self.post_attn_norm(x)).tanh()


class PaddlePreNorm(P.Layer):
    """Its names say what a norm is for: what comes after it."""

    def __init__(self, width: int = 12, name: str = "weight") -> None:
        super().__init__()
        self.attn_norm, self.attn = RMSNorm(width, name), P.Linear(width, width)
        self.mlp_norm, self.mlp = RMSNorm(width, name), P.Linear(width, width)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.attn_norm(x))
        return x + self.mlp(self.mlp_norm(x)).tanh()


@pytest.mark.parametrize("name", ["weight", "gamma"])
def test_values_tell_norms_written_by_hand_apart_where_names_mislead(name: str) -> None:
    plan = agree(TorchPreNorm(), PaddlePreNorm(name=name), floats(3, 5, 12))
    copies = {entry.target: entry.source for entry in plan.entries}
    assert copies[f"attn_norm.{name}"] == "input_norm.weight"
    assert copies[f"mlp_norm.{name}"] == "post_attn_norm.weight"


@pytest.mark.parametrize("wrong", [1.0, 1.5])
def test_behind_a_mistake_a_block_is_like_those_before(wrong: float) -> None:
    """Values say which norm is which in the first block only."""
    reference = T.Sequential(*(TorchPreNorm() for _ in range(3)))
    port = P.Sequential(*(PaddlePreNorm() for _ in range(3)))
    port[0].mlp.register_forward_post_hook(lambda _layer, _inputs, output: output * wrong)
    randomise(reference, 1)
    plan = transfer(reference, port, floats(3, 5, 12), partial=True)
    copies = {entry.target: entry.source for entry in plan.entries}
    for number in range(3):
        assert copies[f"{number}.attn_norm.weight"] == f"{number}.input_norm.weight"
        assert copies[f"{number}.mlp_norm.weight"] == f"{number}.post_attn_norm.weight"
    assert plan.verified is (wrong == 1.0)


class Shift(T.Module):
    """A single parameter under a name of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.amount = T.Parameter(torch.zeros(width))

    def forward(self, x: Any) -> Any:
        return x + self.amount


class PaddleShift(P.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.amount = self.create_parameter([width])

    def forward(self, x: Any) -> Any:
        return x + self.amount


class TorchShifts(T.Module):
    def __init__(self) -> None:
        super().__init__()
        self.early, self.late, self.fc = Shift(6), Shift(6), T.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return self.late(self.fc(self.early(x)).tanh())


class PaddleShifts(P.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.late, self.early, self.fc = PaddleShift(6), PaddleShift(6), P.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return self.early(self.fc(self.late(x)).tanh())


def test_values_tell_the_only_parameters_of_modules_apart_where_names_mislead() -> None:
    plan = agree(TorchShifts(), PaddleShifts(), floats(3, 6))
    assert {entry.target: entry.source for entry in plan.entries}["late.amount"] == "early.amount"


class TorchFaintTable(torch.nn.Module):
    """A square table that moves what comes out by a thousandth."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 4)
        self.table = torch.nn.Parameter(torch.randn(4, 4, generator=torch.Generator().manual_seed(1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return x + 3e-4 * (x @ self.table)


class PaddleFaintTable(paddle.nn.Layer):
    def __init__(self, weight: float, turned: bool) -> None:
        super().__init__()
        self.weight, self.turned = weight, turned
        self.first = paddle.nn.Linear(6, 4)
        self.bias_of_pairs = self.create_parameter([4, 4])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.first(x)
        return x + self.weight * paddle.matmul(x, self.bias_of_pairs, transpose_y=self.turned)


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_ways_that_nearly_fit_the_clearly_better_one_is_taken(turned: bool) -> None:
    reference, port = TorchFaintTable(), PaddleFaintTable(3e-4, turned)
    x = np.random.default_rng(2).standard_normal((5, 6)).astype(np.float32)
    assert transfer(reference, port, x).ambiguous == ()
    given = reference.table.detach().numpy()
    assert np.array_equal(port.bias_of_pairs.numpy(), given.T if turned else given)


def test_two_ways_that_fit_equally_well_stay_open() -> None:
    reference, port = TorchFaintTable(), PaddleFaintTable(0.0, turned=False)
    reference.table.data.mul_(0.2)  # far below what counts as a difference, whatever the first layer is
    x = np.random.default_rng(2).standard_normal((5, 6)).astype(np.float32)
    plan = transfer(reference, port, x, partial=True)
    assert [ambiguity.targets for ambiguity in plan.ambiguous] == [("bias_of_pairs",)]


class TorchStages(torch.nn.Module):
    """Two blocks, each with a norm, and a norm between the stages."""

    def __init__(self) -> None:
        super().__init__()
        parts: list[torch.nn.Module] = [T.Linear(6, 8)]
        for width in (16, 12):
            parts += [T.LayerNorm(8), T.Linear(8, width), T.GELU(), T.Linear(width, 8)]
        self.features = T.Sequential(*parts, T.LayerNorm(8), T.Linear(8, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.features(x)


class PaddleStages(paddle.nn.Layer):
    """Defined in another order; with ``late`` the blocks' norms come last, by mistake."""

    def __init__(self, late: bool) -> None:
        super().__init__()
        self.late = late
        self.ends = P.LayerList([P.Linear(6, 8), P.Linear(8, 5)])
        self.between = P.LayerNorm(8)
        self.scaled = P.LayerList([P.LayerNorm(8) for _ in range(2)])
        self.wide = P.LayerList([P.Linear(8, width) for width in (16, 12)])
        self.narrow = P.LayerList([P.Linear(width, 8) for width in (16, 12)])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.ends[0](x)
        for norm, wide, narrow in zip(self.scaled, self.wide, self.narrow, strict=True):
            x = x if self.late else norm(x)
            x = narrow(G.gelu(wide(x)))
            x = norm(x) if self.late else x
        return self.ends[1](self.between(x))


@pytest.mark.parametrize("late", [False, True])
def test_a_layer_at_the_wrong_point_is_known_by_its_place_among_its_kind(late: bool) -> None:
    reference, port = TorchStages(), PaddleStages(late)
    randomise(reference, 1)
    plan = transfer(reference, port, floats(4, 6))
    assert plan.ambiguous == ()
    sources = {entry.target: entry.source for entry in plan.entries}
    assert [sources[f"{norm}.weight"] for norm in ("scaled.0", "scaled.1", "between")] == [
        *("features.1.weight", "features.5.weight", "features.9.weight")
    ]
