"""Ports of timm's blocks that mix tokens: attention, windows, MLPs over tokens, ConvNeXt, PoolFormer."""

from __future__ import annotations

from typing import Any

import paddle
from paddle.nn import functional

from benchmarks.timm_ports.building import Block, forward_of
from benchmarks.timm_ports.convolutional import through

Tensor = paddle.Tensor


@forward_of("mlp.Mlp")
def mlp(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "fc1", "act", "drop1", "norm", "fc2", "drop2")


@forward_of("mlp.GatedMlp")
def gated_mlp(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "fc1", "act", "gate", "fc2")


@forward_of("mlp.ConvMlp")
def convolved_mlp(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "fc1", "norm", "act", "fc2")


@forward_of("patch_embed.PatchEmbed")
def patches(self: Block, x: Tensor) -> Tensor:
    x = self.proj(x)
    x = x.flatten(2).transpose([0, 2, 1]) if self.flatten else x.transpose([0, 2, 3, 1])
    return through(self, x, "norm")


def attend(query: Tensor, key: Tensor, value: Tensor, scale: float, bias: Any = None) -> Tensor:
    """Of [batch, heads, length, width] each."""
    scores = paddle.matmul(query * scale, key, transpose_y=True)
    return paddle.matmul(functional.softmax(scores if bias is None else scores + bias, -1), value)


def joined(x: Tensor) -> Tensor:
    """The heads side by side again."""
    count, _, length, _ = x.shape
    return x.transpose([0, 2, 1, 3]).reshape([count, length, -1])


@forward_of("attention.Attention")
def attention(self: Block, x: Tensor) -> Tensor:
    count, length, _ = x.shape
    qkv = self.qkv(x).reshape([count, length, 3, self.num_heads, -1]).transpose([2, 0, 3, 1, 4])
    return self.proj(joined(attend(*qkv.unbind(0), self.scale)))


@forward_of("vision_transformer.Block")
def transformer_block(self: Block, x: Tensor) -> Tensor:
    x = x + through(self, self.attn(self.norm1(x)), "ls1")
    return x + through(self, self.mlp(self.norm2(x)), "ls2")


@forward_of("vision_transformer.VisionTransformer")
def vision_transformer(self: Block, x: Tensor) -> Tensor:
    x = self.patch_embed(x)
    x = paddle.concat([self.cls_token.expand([x.shape[0], -1, -1]), x], 1) + self.pos_embed
    return self.head(through(self, x, "blocks", "norm")[:, 0])


@forward_of("deit.VisionTransformerDistilled")
def distilled(self: Block, x: Tensor) -> Tensor:
    x = self.patch_embed(x)
    tokens = [token.expand([x.shape[0], -1, -1]) for token in (self.cls_token, self.dist_token)]
    x = through(self, paddle.concat([*tokens, x], 1) + self.pos_embed, "blocks", "norm")
    return (self.head(x[:, 0]) + self.head_dist(x[:, 1])) / 2


@forward_of("swin_transformer.SwinTransformer")
def swin(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "patch_embed", "layers", "norm", "head")


@forward_of("swin_transformer.SwinTransformerStage", "levit.LevitStage")
def swin_stage(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "downsample", "blocks")


@forward_of("swin_transformer.PatchMerging")
def merge(self: Block, x: Tensor) -> Tensor:
    count, height, width, channels = x.shape
    x = x.reshape([count, height // 2, 2, width // 2, 2, channels]).transpose([0, 1, 3, 4, 2, 5])
    return self.reduction(self.norm(x.flatten(3)))


@forward_of("swin_transformer.SwinTransformerBlock")
def swin_block(self: Block, x: Tensor) -> Tensor:
    count, height, width, channels = x.shape
    window, shift = self.window_size, [-step for step in self.shift_size]
    tall, wide = height // window[0], width // window[1]
    y = self.norm1(x)
    y = paddle.roll(y, shift, [1, 2]) if any(shift) else y
    y = y.reshape([count, tall, window[0], wide, window[1], channels]).transpose([0, 1, 3, 2, 4, 5])
    y = self.attn(y.reshape([-1, window[0] * window[1], channels]), self.attn_mask)
    y = y.reshape([count, tall, wide, *window, channels]).transpose([0, 1, 3, 2, 4, 5])
    y = y.reshape([count, height, width, channels])
    x = x + (paddle.roll(y, list(self.shift_size), [1, 2]) if any(shift) else y)
    return x + self.mlp(self.norm2(x))


@forward_of("swin_transformer.WindowAttention")
def window_attention(self: Block, x: Tensor, mask: Any = None) -> Tensor:
    count, length, _ = x.shape
    qkv = self.qkv(x).reshape([count, length, 3, self.num_heads, -1]).transpose([2, 0, 3, 1, 4])
    bias = self.relative_position_bias_table[self.relative_position_index.flatten()]
    bias = bias.reshape([length, length, -1]).transpose([2, 0, 1])
    if mask is not None:
        bias = bias + mask.unsqueeze(1).tile([count // mask.shape[0], 1, 1, 1])
    return self.proj(joined(attend(*qkv.unbind(0), self.scale, bias)))


@forward_of("levit.LevitDistilled")
def levit(self: Block, x: Tensor) -> Tensor:
    x = self.stem(x).flatten(2).transpose([0, 2, 1])
    x = self.stages(x).mean(1)
    return (self.head(x) + self.head_dist(x)) / 2


@forward_of("levit.ConvNorm")
def conv_norm(self: Block, x: Tensor) -> Tensor:
    return self.bn(self.linear(x))


@forward_of("levit.LinearNorm")
def linear_norm(self: Block, x: Tensor) -> Tensor:
    y = self.linear(x)
    return self.bn(y.flatten(0, 1)).reshape(y.shape)


@forward_of("levit.NormLinear")
def norm_linear(self: Block, x: Tensor) -> Tensor:
    return self.linear(self.bn(x))


@forward_of("levit.Downsample")
def thin_out(self: Block, x: Tensor) -> Tensor:
    count, _, channels = x.shape
    x = x.reshape([count, *self.resolution, channels])[:, :: self.stride, :: self.stride]
    return x.reshape([count, -1, channels])


@forward_of("levit.Attention")
def biased_attention(self: Block, x: Tensor) -> Tensor:
    count, length, _ = x.shape
    qkv = self.qkv(x).reshape([count, length, self.num_heads, -1]).transpose([0, 2, 1, 3])
    parts = qkv.split([self.key_dim, self.key_dim, self.val_dim], -1)
    return self.proj(joined(attend(*parts, self.scale, _biases(self))))


@forward_of("levit.AttentionDownsample")
def thinning_attention(self: Block, x: Tensor) -> Tensor:
    count, length, _ = x.shape
    key, value = (
        self.kv(x)
        .reshape([count, length, self.num_heads, -1])
        .transpose([0, 2, 1, 3])
        .split([self.key_dim, self.val_dim], -1)
    )
    query = self.q(x).reshape([count, -1, self.num_heads, self.key_dim]).transpose([0, 2, 1, 3])
    return self.proj(joined(attend(query, key, value, self.scale, _biases(self))))


def _biases(block: Block) -> Tensor:
    index = block.attention_bias_idxs
    return block.attention_biases.index_select(index.flatten(), 1).reshape([-1, *index.shape])


@forward_of("levit.LevitMlp")
def levit_mlp(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "ln1", "act", "ln2")


@forward_of("levit.LevitBlock")
def levit_block(self: Block, x: Tensor) -> Tensor:
    x = x + self.attn(x)
    return x + self.mlp(x)


@forward_of("levit.LevitDownsample")
def levit_downsample(self: Block, x: Tensor) -> Tensor:
    x = self.attn_downsample(x)
    return x + self.mlp(x)


@forward_of("mlp_mixer.MlpMixer")
def mixer(self: Block, x: Tensor) -> Tensor:
    return self.head(through(self, x, "stem", "blocks", "norm").mean(1))


@forward_of("mlp_mixer.MixerBlock")
def mixer_block(self: Block, x: Tensor) -> Tensor:
    x = x + self.mlp_tokens(self.norm1(x).transpose([0, 2, 1])).transpose([0, 2, 1])
    return x + self.mlp_channels(self.norm2(x))


@forward_of("mlp_mixer.SpatialGatingBlock")
def gating_block(self: Block, x: Tensor) -> Tensor:
    return x + self.mlp_channels(self.norm(x))


@forward_of("mlp_mixer.SpatialGatingUnit")
def gating_unit(self: Block, x: Tensor) -> Tensor:
    kept, gate = x.chunk(2, -1)
    return kept * self.proj(self.norm(gate).transpose([0, 2, 1])).transpose([0, 2, 1])


@forward_of("convnext.ConvNeXt")
def convnext(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "stem", "stages", "norm_pre", "head")


@forward_of("convnext.ConvNeXtStage")
def convnext_stage(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "downsample", "blocks")


@forward_of("convnext.ConvNeXtBlock")
def convnext_block(self: Block, x: Tensor) -> Tensor:
    if self.use_conv_mlp:
        y = through(self, x, "conv_dw", "norm", "mlp")
    else:
        y = through(self, self.conv_dw(x).transpose([0, 2, 3, 1]), "norm", "mlp").transpose([0, 3, 1, 2])
    return x + self.gamma.reshape([1, -1, 1, 1]) * y


@forward_of("nextvit.NextViT")
def nextvit(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "stem", "stages", "norm", "head")


@forward_of("nextvit.NextStage")
def nextvit_stage(self: Block, x: Tensor) -> Tensor:
    return self.blocks(x)


@forward_of("nextvit.ConvNormAct")
def nextvit_stem(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "conv", "norm", "act")


@forward_of("nextvit.PatchEmbed")
def nextvit_patches(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "pool", "conv", "norm")


@forward_of("nextvit.ConvAttention")
def convolved_attention(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "group_conv3x3", "norm", "act", "projection")


@forward_of("nextvit.NextConvBlock")
def nextvit_conv_block(self: Block, x: Tensor) -> Tensor:
    x = through(self, x, "patch_embed")
    x = x + self.mhca(x)
    return x + self.mlp(self.norm(x))


@forward_of("nextvit.EfficientAttention")
def thinned_attention(self: Block, x: Tensor) -> Tensor:
    count, query = x.shape[0], self.q(x)
    if getattr(self, "sr", None) is not None:
        x = self.norm(self.sr(x.transpose([0, 2, 1]))).transpose([0, 2, 1])
    parts = [
        each.reshape([count, -1, self.num_heads, self.head_dim]).transpose([0, 2, 1, 3])
        for each in (query, self.k(x), self.v(x))
    ]
    return self.proj(joined(attend(*parts, self.scale)))


@forward_of("nextvit.NextTransformerBlock")
def nextvit_transformer_block(self: Block, x: Tensor) -> Tensor:
    x = through(self, x, "patch_embed")
    mixed = self.e_mhsa(self.norm1(x).flatten(2).transpose([0, 2, 1]))
    x = x + mixed.transpose([0, 2, 1]).reshape(x.shape)
    y = self.projection(x)
    x = paddle.concat([x, y + self.mhca(y)], 1)
    return x + self.mlp(self.norm2(x))


@forward_of("metaformer.MetaFormer")
def metaformer(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "stem", "stages", "head")


@forward_of("metaformer.Stem", "metaformer.Downsampling")
def norm_or_convolution(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "norm", "conv")


@forward_of("metaformer.MetaFormerStage")
def metaformer_stage(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "downsample", "blocks")


@forward_of("metaformer.Pooling")
def pooled_difference(self: Block, x: Tensor) -> Tensor:
    return self.pool(x) - x


@forward_of("metaformer.Scale")
def scaled(self: Block, x: Tensor) -> Tensor:
    return x * self.scale.reshape(self.shape)


@forward_of("metaformer.MetaFormerBlock")
def metaformer_block(self: Block, x: Tensor) -> Tensor:
    x = through(self, x, "res_scale1") + self.layer_scale1(self.token_mixer(self.norm1(x)))
    return through(self, x, "res_scale2") + self.layer_scale2(self.mlp(self.norm2(x)))
