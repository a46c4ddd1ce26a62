"""Ports of timm's convolutional blocks: residual, re-parametrised, squeezed, dense, separable."""

from __future__ import annotations

import paddle
from paddle.nn import functional

from benchmarks.timm_ports.building import Block, forward_of

Tensor = paddle.Tensor


def through(block: Block, x: Tensor, *names: str) -> Tensor:
    """One layer after the other, those that the block has."""
    for name in names:
        layer = getattr(block, name, None)
        x = x if layer is None else layer(x)
    return x


def shortcut_of(block: Block, x: Tensor) -> Tensor:
    return x if getattr(block, "downsample", None) is None else block.downsample(x)


@forward_of("adaptive_avgmax_pool.SelectAdaptivePool2d")
def pool(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "pool", "flatten")


@forward_of("adaptive_avgmax_pool.FastAdaptiveAvgPool")
def mean(self: Block, x: Tensor) -> Tensor:
    return x.mean(list(self.dim), keepdim=not self.flatten)


@forward_of("classifier.ClassifierHead")
def classify(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "global_pool", "drop", "fc", "flatten")


@forward_of("classifier.NormMlpClassifierHead")
def norm_and_classify(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "global_pool", "norm", "flatten", "pre_logits", "drop", "fc")


@forward_of("resnet.ResNet")
def resnet(self: Block, x: Tensor) -> Tensor:
    x = through(self, x, "conv1", "bn1", "act1", "maxpool")
    return through(self, x, "layer1", "layer2", "layer3", "layer4", "global_pool", "fc")


@forward_of("resnet.BasicBlock")
def basic(self: Block, x: Tensor) -> Tensor:
    return self.act2(through(self, x, "conv1", "bn1", "act1", "conv2", "bn2", "se") + shortcut_of(self, x))


@forward_of("resnet.Bottleneck")
def bottleneck(self: Block, x: Tensor) -> Tensor:
    y = through(self, x, "conv1", "bn1", "act1", "conv2", "bn2", "act2", "conv3", "bn3", "se")
    return self.act3(y + shortcut_of(self, x))


@forward_of("res2net.Bottle2neck")
def split_bottleneck(self: Block, x: Tensor) -> Tensor:
    parts = self.relu(self.bn1(self.conv1(x))).split(self.scale, 1)
    done: list[Tensor] = []
    for part, conv, norm in zip(parts, self.convs, self.bns, strict=False):
        taken = part if not done or self.is_first else part + done[-1]
        done.append(self.relu(norm(conv(taken))))
    done.append(parts[-1] if getattr(self, "pool", None) is None else self.pool(parts[-1]))
    return self.relu(self.bn3(self.conv3(paddle.concat(done, 1))) + shortcut_of(self, x))


@forward_of("squeeze_excite.SEModule")
def squeeze(self: Block, x: Tensor) -> Tensor:
    return x * through(self, x.mean([2, 3], keepdim=True), "fc1", "act", "fc2", "gate")


@forward_of("_efficientnet_blocks.SqueezeExcite")
def squeeze_by_pooling(self: Block, x: Tensor) -> Tensor:
    gate = through(self, functional.adaptive_avg_pool2d(x, 1), "conv_reduce", "act1", "conv_expand", "gate")
    return gate * x


@forward_of("conv_bn_act.ConvNormAct")
def conv_norm_act(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "conv", "bn")


@forward_of("_efficientnet_blocks.ConvBnAct")
def conv_block(self: Block, x: Tensor) -> Tensor:
    y = through(self, x, "conv", "bn1")
    return x + y if self.has_skip else y


@forward_of("_efficientnet_blocks.DepthwiseSeparableConv")
def separable(self: Block, x: Tensor) -> Tensor:
    y = through(self, x, "conv_dw", "bn1", "se", "conv_pw", "bn2")
    return x + y if self.has_skip else y


@forward_of("_efficientnet_blocks.InvertedResidual")
def inverted(self: Block, x: Tensor) -> Tensor:
    y = through(self, x, "conv_pw", "bn1", "conv_dw", "bn2", "se", "conv_pwl", "bn3")
    return x + y if self.has_skip else y


@forward_of("efficientnet.EfficientNet")
def efficientnet(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "conv_stem", "bn1", "blocks", "conv_head", "bn2", "global_pool", "classifier")


@forward_of("mobilenetv3.MobileNetV3", "ghostnet.GhostNet")
def mobilenet(self: Block, x: Tensor) -> Tensor:
    x = through(self, x, "conv_stem", "bn1", "act1", "blocks", "global_pool")
    return through(self, x, "conv_head", "act2", "flatten", "classifier")


@forward_of("ghostnet.GhostModule")
def ghost(self: Block, x: Tensor) -> Tensor:
    primary = self.primary_conv(x)
    return paddle.concat([primary, self.cheap_operation(primary)], 1)[:, : self.out_chs]


@forward_of("ghostnet.GhostBottleneck")
def ghost_bottleneck(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "ghost1", "conv_dw", "bn_dw", "se", "ghost2") + through(self, x, "shortcut")


@forward_of("byobnet.ByobNet")
def by_blocks(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "stem", "stages", "final_conv", "head")


@forward_of("byobnet.RepVggBlock")
def branches(self: Block, x: Tensor) -> Tensor:
    y = self.conv_1x1(x) + self.conv_kxk(x)
    return self.act(y if self.identity is None else y + self.identity(x))


@forward_of("regnet.RegNet")
def regnet(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "stem", "s1", "s2", "s3", "s4", "final_conv", "head")


@forward_of("regnet.RegStage")
def stage(self: Block, x: Tensor) -> Tensor:
    for block in self.children():
        x = block(x)
    return x


@forward_of("regnet.Bottleneck")
def regnet_bottleneck(self: Block, x: Tensor) -> Tensor:
    return self.act3(through(self, x, "conv1", "conv2", "se", "conv3") + shortcut_of(self, x))


@forward_of("densenet.DenseNet")
def densenet(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "features", "global_pool", "classifier")


@forward_of("densenet.DenseBlock")
def dense_block(self: Block, x: Tensor) -> Tensor:
    for layer in self.children():
        x = paddle.concat([x, layer(x)], 1)
    return x


@forward_of("densenet.DenseLayer")
def dense_layer(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "norm1", "conv1", "norm2", "conv2")


@forward_of("xception.Xception")
def xception(self: Block, x: Tensor) -> Tensor:
    x = through(self, x, "conv1", "bn1", "act1", "conv2", "bn2", "act2")
    x = through(self, x, *(f"block{number}" for number in range(1, 13)))
    return through(self, x, "conv3", "bn3", "act3", "conv4", "bn4", "act4", "global_pool", "fc")


@forward_of("xception.Block")
def xception_block(self: Block, x: Tensor) -> Tensor:
    return self.rep(x) + (x if self.skip is None else self.skipbn(self.skip(x)))


@forward_of("xception.SeparableConv2d")
def separable_pair(self: Block, x: Tensor) -> Tensor:
    return through(self, x, "conv1", "pointwise")


@forward_of("hrnet.HighResolutionNet")
def high_resolution(self: Block, x: Tensor) -> Tensor:
    x = through(self, x, "conv1", "bn1", "act1", "conv2", "bn2", "act2", "layer1")
    levels = self.stage2([layer(x) for layer in self.transition1])
    levels = self.stage3(_moved_on(self.transition2, levels))
    levels = self.stage4(_moved_on(self.transition3, levels))
    y = self.incre_modules[0](levels[0])
    for down, wider, level in zip(self.downsamp_modules, self.incre_modules[1:], levels[1:], strict=True):
        y = down(y) + wider(level)
    return through(self, y, "final_layer", "global_pool", "head_drop", "classifier")


def _moved_on(layers: paddle.nn.LayerList, levels: list[Tensor]) -> list[Tensor]:
    same = [isinstance(layer, paddle.nn.Identity) for layer in layers]
    return [levels[i] if same[i] else layer(levels[-1]) for i, layer in enumerate(layers)]


@forward_of("hrnet.SequentialList")
def one_after_another(self: Block, levels: list[Tensor]) -> list[Tensor]:
    for module in self.children():
        levels = module(levels)
    return levels


@forward_of("hrnet.HighResolutionModule")
def exchange(self: Block, levels: list[Tensor]) -> list[Tensor]:
    levels = [branch(level) for branch, level in zip(self.branches, levels, strict=True)]
    fused = []
    for layers in self.fuse_layers:
        fused.append(self.fuse_act(sum(layer(level) for layer, level in zip(layers, levels, strict=True))))
    return fused
