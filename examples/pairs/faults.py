"""Mistakes that people make in ports, one each, planted into a correct port.

A fault changes the port after it was built and before its weights are filled; ``guilty`` is the
path of the port's layer that an alignment has to name, and no other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from examples.pairs import PAIRS
from examples.pairs.assorted import NhwcResidual, PaddleDetector, PaddleGenerator
from examples.pairs.attention import HEADS, PaddleSplit
from examples.pairs.pair import Pair
from examples.pairs.sequence import PaddleGptBlock
from examples.pairs.vision import PaddleConvNextBlock, PaddleUNet, PaddleVit, PaddleVitBlock

NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm, nn.BatchNorm1D, nn.BatchNorm2D)


@dataclass(frozen=True)
class Fault:
    """``plant`` changes a port in place; in ``mode`` the layer ``guilty`` is then wrong."""

    name: str
    pair: str
    guilty: str
    plant: Callable[[nn.Layer], None]
    mode: str = "eval"
    also: tuple[str, ...] = ()  # further layers that are wrong


def layer_at(model: nn.Layer, path: str) -> Any:
    return dict(model.named_sublayers(include_self=True))[path]


def replaced(path: str, make: Callable[[], nn.Layer]) -> Callable[[nn.Layer], None]:
    """Plants another layer at ``path``."""

    def plant(model: nn.Layer) -> None:
        parent, _, name = path.rpartition(".")
        owner = layer_at(model, parent)
        owner._sub_layers[name] = make()

    return plant


def changed(path: str, **attributes: Any) -> Callable[[nn.Layer], None]:
    """Plants other values of a layer's attributes."""

    def plant(model: nn.Layer) -> None:
        layer = layer_at(model, path)
        for name, value in attributes.items():
            assert hasattr(layer, name), f"{type(layer).__name__} has no {name}"
            setattr(layer, name, value)

    return plant


def recast(path: str, kind: type[nn.Layer]) -> Callable[[nn.Layer], None]:
    """Plants another forward: the layer becomes one of a subclass."""

    def plant(model: nn.Layer) -> None:
        layer = layer_at(model, path)
        assert issubclass(kind, type(layer)), f"{path} is a {type(layer).__name__}"
        layer.__class__ = kind

    return plant


def one_wrong_weight(path: str, size: float) -> Callable[[nn.Layer], None]:
    """One element of the weight counts ``size`` typical weights more in every forward."""

    def plant(model: nn.Layer) -> None:
        layer = layer_at(model, path)
        layer.__class__ = _OffConv if isinstance(layer, nn.Conv2D) else _OffLinear
        layer.off_by = size

    return plant


def _off(layer: Any) -> paddle.Tensor:
    weight = layer.weight
    bump = np.zeros(weight.shape, weight.numpy().dtype)
    bump[tuple(extent // 2 for extent in bump.shape)] = layer.off_by * float(weight.numpy().std())
    return weight + paddle.to_tensor(bump)


class _OffLinear(nn.Linear):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return functional.linear(x, _off(self), self.bias)


class _OffConv(nn.Conv2D):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return functional.conv2d(
            x, _off(self), self.bias, self._stride, self._updated_padding, self._dilation, self._groups
        )


class _DoubledBlock(PaddleVitBlock):
    """The first residual is added twice."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = x + x + self.attention(self.ln_1(x))
        return x + self.fc2(self.act(self.fc1(self.ln_2(x))))


class _DroppingBlock(PaddleVitBlock):
    """The third argument of paddle's dropout is an axis: nothing turns this one off in eval mode."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = x + functional.dropout(self.attention(self.ln_1(x)), 0.1, training=True)
        return x + self.fc2(self.act(self.fc1(self.ln_2(x))))


class _UnscaledBlock(PaddleConvNextBlock):
    """LayerScale is forgotten."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.dwconv(x).transpose([0, 2, 3, 1])
        y = self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + (y + 0.0 * self.scale).transpose([0, 3, 1, 2])


class _SeeingBlock(PaddleGptBlock):
    """No causal mask."""

    def attend(self, x: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
        return super().attend(x, paddle.zeros_like(bias))


class _DetachedBlock(PaddleGptBlock):
    """The gradient stops in front of the feed-forward part."""

    def forward(self, x: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
        x = x + self.attend(self.norm1(x), bias)
        return x + self.linear2(self.act(self.linear1(self.norm2(x.detach()))))


class _DoubledGradient(PaddleConvNextBlock):
    """Right forward, but twice the gradient goes through the branch."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = super().forward(x) - x
        return x + 2.0 * y - y.detach()


class _CutUNet(PaddleUNet):
    """No gradient goes through the outer skip connection."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        one = self.encoder[0](x)
        two = self.encoder[1](self.pool(one))
        three = self.encoder[2](self.pool(two))
        two = self.decoder[0](paddle.concat([two, self.enlarge(three)], 1))
        return self.out(self.decoder[1](paddle.concat([one.detach(), self.up(two)], 1)))


class _UnplacedVit(PaddleVit):
    """The position embedding is added to the patches but not to the class token."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.to_patches(x).flatten(2).transpose([0, 2, 1]) + self.position[:, 1:]
        x = paddle.concat([self.class_token.expand([x.shape[0], -1, -1]), x], 1)
        for layer in self.layers:
            x = layer(x)
        return self.fc(self.ln(x)[:, 0])


class _LinearGenerator(PaddleGenerator):
    """No tanh at the end."""

    def forward(self, noise: paddle.Tensor) -> paddle.Tensor:
        x = functional.relu(self.norm1(self.project(noise)))
        return self.up2(functional.relu(self.norm2(self.up1(x))))


class _SwappedUNet(PaddleUNet):
    """The halves of the first concatenation are swapped."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        one = self.encoder[0](x)
        two = self.encoder[1](self.pool(one))
        three = self.encoder[2](self.pool(two))
        two = self.decoder[0](paddle.concat([self.enlarge(three), two], 1))
        return self.out(self.decoder[1](paddle.concat([one, self.up(two)], 1)))


class _WrongAxis(PaddleSplit):
    """The softmax runs over the queries."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        count, length, width = x.shape
        normal = self.norm(x)
        query, key, value = (
            layer(normal).reshape([count, length, HEADS, width // HEADS]).transpose([0, 2, 1, 3])
            for layer in (self.q, self.k, self.v)
        )
        scores = paddle.matmul(query, key, transpose_y=True) * (width // HEADS) ** -0.5
        mixed = paddle.matmul(functional.softmax(scores, -2), value)
        return x + self.out(mixed.transpose([0, 2, 1, 3]).reshape([count, length, width]))


class _NoShortcut(NhwcResidual):
    """The shortcut is forgotten."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)))


class _SharpDetector(PaddleDetector):
    """The pyramid is enlarged by interpolation instead of repetition."""

    def forward(self, image: paddle.Tensor) -> Any:
        usual = functional.interpolate
        functional.interpolate = lambda x, scale_factor, mode: usual(
            x, scale_factor=scale_factor, mode="bilinear"
        )
        try:
            return super().forward(image)
        finally:
            functional.interpolate = usual


def _first_token() -> int:
    return int(PAIRS["gru_tagger"].inputs(0)[0, 0])


def _convolution(**settings: Any) -> nn.Layer:
    return nn.Conv2D(24, 24, 3, padding=1, bias_attr=False, **settings)


def _move_stride(model: nn.Layer) -> None:
    """The stride of a residual block sits at its second convolution."""
    block = layer_at(model, "layer2.0")
    block.conv1 = nn.Conv2D(64, 128, 3, 1, 1, bias_attr=False)
    block.conv2 = nn.Conv2D(128, 128, 3, 2, 1, bias_attr=False)


PLANTED: tuple[Fault, ...] = (
    Fault("one wrong weight of a convolution", "resnet18", "layer2.1.conv1",
          one_wrong_weight("layer2.1.conv1", 0.01)),
    Fault("one wrong weight of a linear", "vit", "layers.1.fc1", one_wrong_weight("layers.1.fc1", 0.01)),
    Fault("GELU by tanh", "vit", "layers.1.act", replaced("layers.1.act", lambda: nn.GELU(approximate=True))),
    Fault("GELU without tanh", "gpt", "layers.0.act", replaced("layers.0.act", nn.GELU)),
    Fault("slope 0.1 for 0.2", "gan_discriminator", "4", replaced("4", lambda: nn.LeakyReLU(0.1))),
    Fault("SiLU for Hardswish", "mobilenet_v3_small", "blocks.5.expand_conv.2",
          replaced("blocks.5.expand_conv.2", nn.Silu)),
    Fault("reflecting padding", "unet", "encoder.1.3",
          replaced("encoder.1.3", lambda: _convolution(padding_mode="reflect"))),
    Fault("align_corners off", "unet", "enlarge",
          replaced("enlarge", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False))),
    Fault("average for maximum pooling", "unet", "pool", replaced("pool", lambda: nn.AvgPool2D(2))),
    Fault("swapped concatenation", "unet", "", recast("", _SwappedUNet)),
    Fault("no scale in the attention", "vit", "layers.1.attention", changed("layers.1.attention", scale=1.0)),
    Fault("residual added twice", "vit", "layers.1", recast("layers.1", _DoubledBlock)),
    Fault("dropout left on", "vit", "layers.2", recast("layers.2", _DroppingBlock)),
    Fault("no LayerScale", "convnext", "stages.0.1", recast("stages.0.1", _UnscaledBlock)),
    Fault("no causal mask", "gpt", "layers.1", recast("layers.1", _SeeingBlock)),
    Fault("detached gradient", "gpt", "layers.1", recast("layers.1", _DetachedBlock)),
    Fault("softmax over the wrong axis", "fused_qkv", "1", recast("1", _WrongAxis)),
    Fault("forgotten shortcut", "nhwc_cnn", "blocks.0", recast("blocks.0", _NoShortcut)),
    Fault("wrong number of groups", "detector", "tower.1", changed("tower.1", _num_groups=2)),
    Fault("bilinear for nearest", "detector", "", recast("", _SharpDetector)),
    Fault("stride in the wrong convolution", "resnet18", "layer2.0.conv1", _move_stride,
          also=("layer2.0.conv2",)),
    # Without its activation the norm is the reference's norm: what is missing is missing in the block.
    Fault("no activation in the fused norm", "fused_cnn", "block1", changed("block1.bn_a", _act=None)),
    Fault("post-norm for pre-norm", "transformer_encoder_prenorm", "transformer.layers.1",
          changed("transformer.layers.1", normalize_before=False)),
    Fault("fewer heads", "transformer_encoder", "transformer.layers.1.self_attn",
          changed("transformer.layers.1.self_attn", num_heads=2, head_dim=24)),
    Fault("GELU for ReLU in an encoder layer", "transformer_encoder", "transformer.layers.0",
          changed("transformer.layers.0", activation=functional.gelu)),
    Fault("a token that is embedded as zero", "gru_tagger", "embed",
          replaced("embed", lambda: nn.Embedding(60, 24, padding_idx=_first_token()))),
    Fault("doubled gradient", "convnext", "stages.1.0", recast("stages.1.0", _DoubledGradient)),
    Fault("cut skip connection", "unet", "", recast("", _CutUNet)),
    Fault("class token without position", "vit", "", recast("", _UnplacedVit)),
    Fault("no tanh at the end", "gan_generator", "", recast("", _LinearGenerator)),
    Fault("torch's momentum for paddle's", "unet", "encoder.1.1",
          changed("encoder.1.1", _momentum=0.1), mode="train"),
    Fault("frozen statistics in training", "resnet18", "layer3.0.bn1",
          changed("layer3.0.bn1", _use_global_stats=True), mode="train"),
)  # fmt: skip


def norm_paths(model: nn.Layer) -> list[str]:
    return [path for path, layer in model.named_sublayers() if isinstance(layer, NORMS)]


def middle_norm(pair: Pair) -> str | None:
    """The path of the port's middle normalisation layer, if it has any."""
    paths = norm_paths(pair.port(0))
    return paths[len(paths) // 2] if paths else None


def wrong_epsilon(pair: Pair) -> Fault | None:
    """1e-6 for 1e-5, or the other way round, in one layer in the middle; elsewhere a tenth."""
    path = middle_norm(pair)
    if path is None:
        return None

    def plant(model: nn.Layer) -> None:
        layer = layer_at(model, path)
        layer._epsilon = 1e-5 if layer._epsilon == 1e-6 else layer._epsilon / 10

    return Fault(f"epsilon of {pair.name}", pair.name, path, plant)
