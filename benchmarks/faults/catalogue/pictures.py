"""Faults in the U-Net, the generator, the discriminator and the detector."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from examples.pairs.faults import changed, replaced
from paddle import nn
from paddle.nn import functional

from benchmarks.faults.fault import Fault, Guilt, layer, line, rewritten, spoilt, together


def _swapped_halves(self: Any, skip: Any, below: Any) -> Any:
    return paddle.concat([below, skip], 1)  # guilty: unet swapped halves


def _cut_skip(self: Any, skip: Any, below: Any) -> Any:
    return paddle.concat([skip.detach(), below], 1)  # guilty: unet cut skip


def _shifted_skip(self: Any, skip: Any, below: Any) -> Any:
    return paddle.concat([paddle.flip(skip, [3]), below], 1)  # guilty: unet mirrored skip


def _squashed(self: Any, x: Any) -> Any:
    return functional.sigmoid(self.out(x))  # guilty: unet sigmoid at the end


def _flipped_kernel(values: np.ndarray) -> np.ndarray:
    return values[:, :, ::-1, ::-1]


UNET: tuple[Fault, ...] = (
    Fault("unet align_corners", "unet", layer("enlarge", "op.align_corners"),
          replaced("enlarge", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False))),
    Fault("unet nearest", "unet", layer("enlarge", "op.interpolation"),
          replaced("enlarge", lambda: nn.Upsample(scale_factor=2, mode="nearest"))),
    Fault("unet swapped halves", "unet", line("", "unet swapped halves", "op.order"),
          rewritten("", outer=_swapped_halves)),
    Fault("unet mirrored skip", "unet", line("", "unet mirrored skip", "op.extra", "layout.permuted"),
          rewritten("", inner=_shifted_skip)),
    Fault("unet cut skip", "unet", line("", "unet cut skip", "grad.detached"), rewritten("", outer=_cut_skip)),
    Fault("unet sigmoid at the end", "unet", line("", "unet sigmoid at the end", "op.extra", "op.activation"),
          rewritten("", outermost=_squashed)),
    Fault("unet replicating padding", "unet", layer("bottom.3", "op.padding_mode"),
          replaced("bottom.3", lambda: nn.Conv2D(16, 16, 3, padding=1, bias_attr=False, padding_mode="replicate"))),
    Fault("unet epsilon", "unet", layer("last.4", "config.epsilon"), changed("last.4", _epsilon=1e-4)),
    Fault("unet momentum", "unet", layer("down1.1", "buffer.momentum", "config.momentum"),
          changed("down1.1", _momentum=0.1), mode="train"),
    Fault("unet kernel flipped", "unet", layer("out", "weight.permuted"), spoil=spoilt("out.weight", _flipped_kernel)),
    Fault("unet transposed convolution by other axes", "unet", layer("up0", "weight.transposed", "weight.permuted"),
          spoil=spoilt("up0.weight", lambda values: values.transpose(1, 0, 2, 3))),
    Fault("unet norm left in training", "unet", layer("up1.1", "mode.training"),
          lambda model: model.up1[1].train(), mode="keep"),
    Fault("unet two settings", "unet",
          (Guilt("enlarge", ("op.align_corners",)), Guilt("bottom.1", ("config.epsilon",))),
          together(replaced("enlarge", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)),
                   changed("bottom.1", _epsilon=1e-3))),
)  # fmt: skip


def _uncoloured(self: Any, x: Any) -> Any:
    return x  # guilty: generator no tanh


def _sigmoid_colours(self: Any, x: Any) -> Any:
    return functional.sigmoid(x)  # guilty: generator sigmoid for tanh


def _nearest(self: Any, x: Any) -> Any:
    return functional.interpolate(x, scale_factor=2, mode="nearest")  # guilty: generator nearest


def _corners(self: Any, x: Any) -> Any:
    return functional.interpolate(
        x, scale_factor=2, mode="bilinear", align_corners=True
    )  # guilty: generator corners


def _flat_slope(self: Any, x: Any) -> Any:
    return functional.leaky_relu(x, 0.01)  # guilty: generator slope


def _elu(self: Any, x: Any) -> Any:
    return functional.elu(x)  # guilty: generator ELU for ReLU


def _noisy(self: Any, x: Any) -> Any:
    return functional.relu(x + 0.05 * paddle.randn(x.shape))  # guilty: generator noise


def _unshuffled(self: Any, x: Any) -> Any:
    x = self.first(self.norm0(self.start(x)))
    x = functional.relu(self.norm1(self.up(x)))
    x = self.mix(x)
    count, channels, height, width = x.shape
    x = x.reshape([count, 2, 2, channels // 4, height, width])  # guilty: generator shuffled otherwise
    x = x.transpose([0, 3, 4, 1, 5, 2]).reshape(
        [count, channels // 4, 2 * height, 2 * width]
    )  # guilty: generator shuffled otherwise
    return self.coloured(self.paint(self.larger(self.bent(x))))


GENERATOR: tuple[Fault, ...] = (
    Fault("generator no tanh", "generator", line("", "generator no tanh", "op.missing", "op.activation"),
          rewritten("", coloured=_uncoloured)),
    Fault("generator sigmoid for tanh", "generator", line("", "generator sigmoid for tanh", "op.activation"),
          rewritten("", coloured=_sigmoid_colours)),
    Fault("generator nearest", "generator", line("", "generator nearest", "op.interpolation"),
          rewritten("", larger=_nearest)),
    Fault("generator corners", "generator", line("", "generator corners", "op.align_corners"),
          rewritten("", larger=_corners)),
    Fault("generator slope", "generator", line("", "generator slope", "config.slope"), rewritten("", bent=_flat_slope)),
    Fault("generator ELU for ReLU", "generator", line("", "generator ELU for ReLU", "op.activation"),
          rewritten("", first=_elu)),
    Fault("generator noise", "generator", line("", "generator noise", "random.source"), rewritten("", first=_noisy)),
    Fault("generator shuffled otherwise", "generator",
          line("", "generator shuffled otherwise", "layout.permuted", "op.order"), rewritten("", forward=_unshuffled)),
    Fault("generator epsilon", "generator", layer("norm1", "config.epsilon"), changed("norm1", _epsilon=1e-3)),
    Fault("generator tiny epsilon", "generator", layer("norm0", "config.epsilon"), changed("norm0", _epsilon=1e-6)),
    Fault("generator extra bias", "generator", layer("up", "weight.extra", "op.bias"),
          replaced("up", lambda: nn.Conv2DTranspose(16, 16, 4, 2, 1, bias_attr=paddle.ParamAttr(
              initializer=nn.initializer.Constant(0.1))))),
    Fault("generator untransposed weight", "generator", layer("up", "weight.transposed", "weight.permuted"),
          spoil=spoilt("up.weight", lambda values: values.transpose(1, 0, 2, 3))),
)  # fmt: skip


def _zero_border(self: Any, x: Any) -> Any:
    return functional.pad(x, [1, 1, 1, 1], mode="constant")  # guilty: discriminator zero border


def _unbiased(self: Any, x: Any) -> Any:
    return x.var(0)  # guilty: discriminator unbiased variance


def _raw(self: Any, x: Any) -> Any:
    return x.mean([2, 3])  # guilty: discriminator logits


def _first_images(self: Any, x: Any) -> Any:
    return functional.softmax(x.mean([2, 3]), -1)  # guilty: discriminator softmax for sigmoid


DISCRIMINATOR: tuple[Fault, ...] = (
    Fault("discriminator slope", "discriminator", layer("act0", "config.slope"),
          replaced("act0", lambda: nn.LeakyReLU(0.01))),
    Fault("discriminator slightly other slope", "discriminator", layer("act1", "config.slope"),
          replaced("act1", lambda: nn.LeakyReLU(0.2001))),
    Fault("discriminator SELU for ELU", "discriminator", layer("act2", "op.activation"), replaced("act2", nn.SELU)),
    Fault("discriminator other alpha", "discriminator", layer("act2", "config.slope", "config.other"),
          replaced("act2", lambda: nn.ELU(0.5))),
    Fault("discriminator stride", "discriminator", layer("conv1", "config.stride"),
          replaced("conv1", lambda: nn.Conv2D(12, 16, 4, 1, 1))),
    Fault("discriminator padding", "discriminator", layer("conv2", "config.padding"),
          replaced("conv2", lambda: nn.Conv2D(17, 16, 3, 1, 0, bias_attr=False))),
    Fault("discriminator dilation", "discriminator", layer("conv2", "config.dilation"),
          replaced("conv2", lambda: nn.Conv2D(17, 16, 3, 1, 1, dilation=2, bias_attr=False))),
    Fault("discriminator kernel", "discriminator", layer("conv1", "config.kernel", "weight.mismatched"),
          replaced("conv1", lambda: nn.Conv2D(12, 16, 2, 2, 0))),
    Fault("discriminator epsilon of an InstanceNorm", "discriminator", layer("norm1", "config.epsilon"),
          changed("norm1", _epsilon=1e-3)),
    Fault("discriminator zero border", "discriminator", line("", "discriminator zero border", "op.padding_mode"),
          rewritten("", bordered=_zero_border)),
    Fault("discriminator unbiased variance", "discriminator",
          line("", "discriminator unbiased variance", "config.other", "op.scale"), rewritten("", spread=_unbiased)),
    Fault("discriminator logits", "discriminator",
          line("", "discriminator logits", "op.missing", "op.activation"), rewritten("", judged=_raw)),
    Fault("discriminator softmax for sigmoid", "discriminator",
          line("", "discriminator softmax for sigmoid", "op.activation"), rewritten("", judged=_first_images)),
    Fault("discriminator missing bias", "discriminator", layer("score", "weight.missing", "op.bias"),
          replaced("score", lambda: nn.Conv2D(16, 4, 1, bias_attr=False))),
    Fault("discriminator bias zero", "discriminator", layer("conv0", "weight.mismatched", "weight.missing"),
          spoil=spoilt("conv0.bias", np.zeros_like)),
)  # fmt: skip


def _smooth(self: Any, x: Any) -> Any:
    return functional.interpolate(x, scale_factor=2, mode="bilinear")  # guilty: detector bilinear


def _unsized(self: Any, x: Any, stride: Any) -> Any:
    return x * stride  # guilty: detector no exp


def _same_stride(self: Any, x: Any, stride: Any) -> Any:
    return paddle.exp(x) * 4  # guilty: detector one stride


def _softmaxed(self: Any, x: Any) -> Any:
    return functional.softmax(x, 1)  # guilty: detector softmax for sigmoid


def _without_top_down(self: Any, x: Any) -> Any:
    fine = self.down1(x)
    coarse = self.lateral2(self.down2(fine))
    fine = self.lateral1(fine)  # guilty: detector no top-down path
    found = []
    for stride, level in ((2, fine), (4, coarse)):
        seen = self.tower(level)  # guilty: detector no top-down path
        found += [self.likely(self.classes(seen)), self.sized(self.boxes(seen), stride)]
    return found


DETECTOR: tuple[Fault, ...] = (
    Fault("detector groups", "detector", layer("tower.1", "config.groups"), changed("tower.1", _num_groups=2)),
    Fault("detector epsilon of a GroupNorm", "detector", layer("tower.1", "config.epsilon"),
          changed("tower.1", _epsilon=1e-3)),
    Fault("detector GELU for SiLU", "detector", layer("down2.2", "op.activation"), replaced("down2.2", nn.GELU)),
    Fault("detector bilinear", "detector", line("", "detector bilinear", "op.interpolation"),
          rewritten("", larger=_smooth)),
    Fault("detector no exp", "detector", line("", "detector no exp", "op.missing", "op.activation"),
          rewritten("", sized=_unsized)),
    Fault("detector one stride", "detector", line("", "detector one stride", "op.scale"),
          rewritten("", sized=_same_stride)),
    Fault("detector softmax for sigmoid", "detector", line("", "detector softmax for sigmoid", "op.activation"),
          rewritten("", likely=_softmaxed)),
    Fault("detector no top-down path", "detector", line("", "detector no top-down path", "op.missing"),
          rewritten("", forward=_without_top_down)),
    Fault("detector filters reversed", "detector", layer("lateral1", "weight.permuted"),
          spoil=spoilt("lateral1.weight", np.flipud)),
    Fault("detector setting and line", "detector",
          (Guilt("", ("op.interpolation",), "detector bilinear"), Guilt("tower.1", ("config.epsilon",))),
          together(changed("tower.1", _epsilon=1e-4), rewritten("", larger=_smooth))),
)  # fmt: skip

FAULTS = UNET + GENERATOR + DISCRIMINATOR + DETECTOR
