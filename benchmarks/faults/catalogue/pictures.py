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
    # guilty: unet swapped halves
    return paddle.concat([below, skip], 1)


def _cut_skip(self: Any, skip: Any, below: Any) -> Any:
    # guilty: unet cut skip
    return paddle.concat([skip.detach(), below], 1)


def _shifted_skip(self: Any, skip: Any, below: Any) -> Any:
    # guilty: unet mirrored skip
    return paddle.concat([paddle.flip(skip, [3]), below], 1)


def _squashed(self: Any, x: Any) -> Any:
    # guilty: unet sigmoid at the end
    return functional.sigmoid(self.out(x))


def _flipped_kernel(values: np.ndarray) -> np.ndarray:
    return values[:, :, ::-1, ::-1]


UNET: tuple[Fault, ...] = (
    Fault(
        "unet align_corners",
        layer("enlarge", "op.align_corners"),
        replaced("enlarge", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)),
    ),
    Fault(
        "unet nearest",
        layer("enlarge", "op.interpolation"),
        replaced("enlarge", lambda: nn.Upsample(scale_factor=2, mode="nearest")),
    ),
    Fault("unet swapped halves", line("", "op.order"), rewritten("", outer=_swapped_halves)),
    Fault("unet mirrored skip", line("", "op.extra", "layout.permuted"), rewritten("", inner=_shifted_skip)),
    Fault("unet cut skip", line("", "grad.detached"), rewritten("", outer=_cut_skip)),
    Fault(
        "unet sigmoid at the end", line("", "op.extra", "op.activation"), rewritten("", outermost=_squashed)
    ),
    Fault(
        "unet replicating padding",
        layer("bottom.3", "op.padding_mode"),
        replaced(
            "bottom.3", lambda: nn.Conv2D(16, 16, 3, padding=1, bias_attr=False, padding_mode="replicate")
        ),
    ),
    Fault("unet epsilon", layer("last.4", "config.epsilon"), changed("last.4", _epsilon=1e-4)),
    Fault(
        "unet momentum",
        layer("down1.1", "buffer.momentum", "config.momentum"),
        changed("down1.1", _momentum=0.1),
        mode="train",
    ),
    Fault(
        "unet kernel flipped", layer("out", "weight.permuted"), spoil=spoilt("out.weight", _flipped_kernel)
    ),
    Fault(
        "unet transposed convolution by other axes",
        layer("up0", "weight.transposed", "weight.permuted"),
        spoil=spoilt("up0.weight", lambda values: values.transpose(1, 0, 2, 3)),
    ),
    Fault(
        "unet norm left in training",
        layer("up1.1", "mode.training"),
        lambda model: model.up1[1].train(),
        mode="keep",
    ),
    Fault(
        "unet two settings",
        (Guilt("enlarge", ("op.align_corners",)), Guilt("bottom.1", ("config.epsilon",))),
        together(
            replaced("enlarge", lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)),
            changed("bottom.1", _epsilon=1e-3),
        ),
    ),
)


def _uncoloured(self: Any, x: Any) -> Any:
    # guilty: generator no tanh
    return x


def _sigmoid_colours(self: Any, x: Any) -> Any:
    # guilty: generator sigmoid for tanh
    return functional.sigmoid(x)


def _nearest(self: Any, x: Any) -> Any:
    # guilty: generator nearest
    return functional.interpolate(x, scale_factor=2, mode="nearest")


def _corners(self: Any, x: Any) -> Any:
    # guilty: generator corners
    return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)


def _flat_slope(self: Any, x: Any) -> Any:
    # guilty: generator slope
    return functional.leaky_relu(x, 0.01)


def _elu(self: Any, x: Any) -> Any:
    # guilty: generator ELU for ReLU
    return functional.elu(x)


def _noisy(self: Any, x: Any) -> Any:
    # guilty: generator noise
    return functional.relu(x + 0.05 * paddle.randn(x.shape))


def _unshuffled(self: Any, x: Any) -> Any:
    x = self.first(self.norm0(self.start(x)))
    x = functional.relu(self.norm1(self.up(x)))
    x = self.mix(x)
    count, channels, height, width = x.shape
    # guilty: generator shuffled otherwise
    x = x.reshape([count, 2, 2, channels // 4, height, width])
    # guilty: generator shuffled otherwise
    x = x.transpose([0, 3, 4, 1, 5, 2]).reshape([count, channels // 4, 2 * height, 2 * width])
    return self.coloured(self.paint(self.larger(self.bent(x))))


GENERATOR: tuple[Fault, ...] = (
    Fault("generator no tanh", line("", "op.missing", "op.activation"), rewritten("", coloured=_uncoloured)),
    Fault("generator sigmoid for tanh", line("", "op.activation"), rewritten("", coloured=_sigmoid_colours)),
    Fault("generator nearest", line("", "op.interpolation"), rewritten("", larger=_nearest)),
    Fault("generator corners", line("", "op.align_corners"), rewritten("", larger=_corners)),
    Fault("generator slope", line("", "config.slope"), rewritten("", bent=_flat_slope)),
    Fault("generator ELU for ReLU", line("", "op.activation"), rewritten("", first=_elu)),
    Fault("generator noise", line("", "random.source"), rewritten("", first=_noisy)),
    Fault(
        "generator shuffled otherwise",
        line("", "layout.permuted", "op.order"),
        rewritten("", forward=_unshuffled),
    ),
    Fault("generator epsilon", layer("norm1", "config.epsilon"), changed("norm1", _epsilon=1e-3)),
    Fault("generator tiny epsilon", layer("norm0", "config.epsilon"), changed("norm0", _epsilon=1e-6)),
    Fault(
        "generator extra bias",
        layer("up", "weight.extra", "op.bias"),
        replaced(
            "up",
            lambda: nn.Conv2DTranspose(
                16, 16, 4, 2, 1, bias_attr=paddle.ParamAttr(initializer=nn.initializer.Constant(0.1))
            ),
        ),
    ),
    Fault(
        "generator untransposed weight",
        layer("up", "weight.transposed", "weight.permuted"),
        spoil=spoilt("up.weight", lambda values: values.transpose(1, 0, 2, 3)),
    ),
)


def _zero_border(self: Any, x: Any) -> Any:
    # guilty: discriminator zero border
    return functional.pad(x, [1, 1, 1, 1], mode="constant")


def _unbiased(self: Any, x: Any) -> Any:
    # guilty: discriminator unbiased variance
    return x.var(0)


def _raw(self: Any, x: Any) -> Any:
    # guilty: discriminator logits
    return x.mean([2, 3])


def _first_images(self: Any, x: Any) -> Any:
    # guilty: discriminator softmax for sigmoid
    return functional.softmax(x.mean([2, 3]), -1)


DISCRIMINATOR: tuple[Fault, ...] = (
    Fault("discriminator slope", layer("act0", "config.slope"), replaced("act0", lambda: nn.LeakyReLU(0.01))),
    Fault(
        "discriminator slightly other slope",
        layer("act1", "config.slope"),
        replaced("act1", lambda: nn.LeakyReLU(0.2001)),
    ),
    Fault("discriminator SELU for ELU", layer("act2", "op.activation"), replaced("act2", nn.SELU)),
    Fault(
        "discriminator other alpha",
        layer("act2", "config.slope", "config.other"),
        replaced("act2", lambda: nn.ELU(0.5)),
    ),
    Fault(
        "discriminator stride",
        layer("conv1", "config.stride"),
        replaced("conv1", lambda: nn.Conv2D(12, 16, 4, 1, 1)),
    ),
    Fault(
        "discriminator padding",
        layer("conv2", "config.padding"),
        replaced("conv2", lambda: nn.Conv2D(17, 16, 3, 1, 0, bias_attr=False)),
    ),
    Fault(
        "discriminator dilation",
        layer("conv2", "config.dilation"),
        replaced("conv2", lambda: nn.Conv2D(17, 16, 3, 1, 1, dilation=2, bias_attr=False)),
    ),
    Fault(
        "discriminator kernel",
        layer("conv1", "config.kernel", "weight.mismatched"),
        replaced("conv1", lambda: nn.Conv2D(12, 16, 2, 2, 0)),
    ),
    Fault(
        "discriminator epsilon of an InstanceNorm",
        layer("norm1", "config.epsilon"),
        changed("norm1", _epsilon=1e-3),
    ),
    Fault("discriminator zero border", line("", "op.padding_mode"), rewritten("", bordered=_zero_border)),
    Fault(
        "discriminator unbiased variance",
        line("", "config.other", "op.scale"),
        rewritten("", spread=_unbiased),
    ),
    Fault("discriminator logits", line("", "op.missing", "op.activation"), rewritten("", judged=_raw)),
    Fault(
        "discriminator softmax for sigmoid", line("", "op.activation"), rewritten("", judged=_first_images)
    ),
    Fault(
        "discriminator missing bias",
        layer("score", "weight.missing", "op.bias"),
        replaced("score", lambda: nn.Conv2D(16, 4, 1, bias_attr=False)),
    ),
    Fault(
        "discriminator bias zero",
        layer("conv0", "weight.mismatched", "weight.missing"),
        spoil=spoilt("conv0.bias", np.zeros_like),
    ),
)


def _smooth(self: Any, x: Any) -> Any:
    # guilty: detector bilinear
    return functional.interpolate(x, scale_factor=2, mode="bilinear")


def _unsized(self: Any, x: Any, stride: Any) -> Any:
    # guilty: detector no exp
    return x * stride


def _same_stride(self: Any, x: Any, stride: Any) -> Any:
    # guilty: detector one stride
    return paddle.exp(x) * 4


def _softmaxed(self: Any, x: Any) -> Any:
    # guilty: detector softmax for sigmoid
    return functional.softmax(x, 1)


def _without_top_down(self: Any, x: Any) -> Any:
    fine = self.down1(x)
    coarse = self.lateral2(self.down2(fine))
    # guilty: detector no top-down path
    fine = self.lateral1(fine)
    found = []
    for stride, level in ((2, fine), (4, coarse)):
        # guilty: detector no top-down path
        seen = self.tower(level)
        found += [self.likely(self.classes(seen)), self.sized(self.boxes(seen), stride)]
    return found


DETECTOR: tuple[Fault, ...] = (
    Fault("detector groups", layer("tower.1", "config.groups"), changed("tower.1", _num_groups=2)),
    Fault(
        "detector epsilon of a GroupNorm",
        layer("tower.1", "config.epsilon"),
        changed("tower.1", _epsilon=1e-3),
    ),
    Fault("detector GELU for SiLU", layer("down2.2", "op.activation"), replaced("down2.2", nn.GELU)),
    Fault("detector bilinear", line("", "op.interpolation"), rewritten("", larger=_smooth)),
    Fault("detector no exp", line("", "op.missing", "op.activation"), rewritten("", sized=_unsized)),
    Fault("detector one stride", line("", "op.scale"), rewritten("", sized=_same_stride)),
    Fault("detector softmax for sigmoid", line("", "op.activation"), rewritten("", likely=_softmaxed)),
    Fault("detector no top-down path", line("", "op.missing"), rewritten("", forward=_without_top_down)),
    Fault(
        "detector filters reversed",
        layer("lateral1", "weight.permuted"),
        spoil=spoilt("lateral1.weight", np.flipud),
    ),
    Fault(
        "detector setting and line",
        (Guilt("", ("op.interpolation",), "detector bilinear"), Guilt("tower.1", ("config.epsilon",))),
        together(changed("tower.1", _epsilon=1e-4), rewritten("", larger=_smooth)),
    ),
)

FAULTS = UNET + GENERATOR + DISCRIMINATOR + DETECTOR
