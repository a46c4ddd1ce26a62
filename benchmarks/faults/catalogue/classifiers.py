"""Faults in the two convolutional classifiers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import paddle
from examples.pairs.faults import changed, layer_at, replaced
from paddle import nn
from paddle.nn import functional

from benchmarks.faults.fault import Fault, Guilt, layer, line, rewritten, spoilt, together


def _steep_gate(self: Any, x: Any) -> Any:
    # guilty: cnn steep gate
    return functional.hardsigmoid(self.gate(x.mean([2, 3])), slope=0.2)


def _smooth_gate(self: Any, x: Any) -> Any:
    # guilty: cnn smooth gate
    return functional.sigmoid(self.gate(x.mean([2, 3])))


def _bias_twice(self: Any, x: Any) -> Any:
    # guilty: cnn bias twice
    return functional.hardsigmoid(self.gate(x.mean([2, 3])) + self.gate.bias)


def _dropping(self: Any, x: Any) -> Any:
    # guilty: cnn dropout on
    x = functional.dropout(x.flatten(1), 0.1, training=True)
    return self.fc(self.drop(x))


def _flat_channels_last(self: Any, x: Any) -> Any:
    # guilty: cnn flattened channels last
    return self.fc(self.drop(x.transpose([0, 2, 3, 1]).flatten(1)))


def _ungated(self: Any, x: Any) -> Any:
    x = self.pool(self.relu(self.bn1(self.conv1(x))))
    x = self.average(self.act2(self.bn2(self.conv2(x))))
    x = self.act3(self.bn3(self.conv3(x)))
    # guilty: cnn gate not applied
    self.squeezed(x)
    # guilty: cnn gate not applied
    return x


def _train_second_norm(model: Any) -> None:
    model.bn2.train()


def _rolled(values: np.ndarray) -> np.ndarray:
    return values[:, ::-1]


def _bump(values: np.ndarray) -> np.ndarray:
    values[7, 3] += 0.01 * values.std()
    return values


CNN: tuple[Fault, ...] = (
    Fault("cnn epsilon 1e-3", layer("bn1", "config.epsilon"), changed("bn1", _epsilon=1e-3)),
    Fault("cnn epsilon 1e-6", layer("bn3", "config.epsilon"), changed("bn3", _epsilon=1e-6)),
    Fault(
        "cnn padding on one side",
        layer("conv1", "config.padding"),
        replaced("conv1", lambda: nn.Conv2D(3, 12, 3, 2, [0, 1, 0, 1], bias_attr=False)),
    ),
    Fault(
        "cnn reflecting padding",
        layer("conv2", "op.padding_mode"),
        replaced("conv2", lambda: nn.Conv2D(12, 16, 3, 1, 1, padding_mode="reflect")),
    ),
    Fault(
        "cnn dilated",
        layer("conv2", "config.dilation", "config.padding"),
        replaced("conv2", lambda: nn.Conv2D(12, 16, 3, 1, 2, dilation=2)),
    ),
    Fault(
        "cnn pooling kernel", layer("pool", "config.kernel"), replaced("pool", lambda: nn.MaxPool2D(4, 2, 1))
    ),
    Fault(
        "cnn pool count",
        layer("average", "op.pool_count"),
        replaced("average", lambda: nn.AvgPool2D(3, 2, 1)),
    ),
    Fault("cnn SiLU for Hardswish", layer("act2", "op.activation"), replaced("act2", nn.Silu)),
    Fault("cnn slope", layer("act3", "config.slope"), replaced("act3", nn.LeakyReLU)),
    Fault("cnn steep gate", line("", "config.slope"), rewritten("", squeezed=_steep_gate)),
    Fault("cnn smooth gate", line("", "op.activation"), rewritten("", squeezed=_smooth_gate)),
    Fault("cnn bias twice", line("", "op.bias", "op.extra"), rewritten("", squeezed=_bias_twice)),
    Fault("cnn gate not applied", line("", "op.missing"), rewritten("", features=_ungated)),
    Fault(
        "cnn flattened channels last",
        line("", "layout.permuted", "op.extra"),
        rewritten("", classify=_flat_channels_last),
    ),
    Fault(
        "cnn full convolution for depthwise",
        layer("conv3", "config.groups", "weight.mismatched"),
        replaced("conv3", lambda: nn.Conv2D(16, 16, 3, 1, 1)),
    ),
    Fault(
        "cnn batch statistics in eval", layer("bn2", "mode.training"), changed("bn2", _use_global_stats=False)
    ),
    Fault("cnn norm left in training", layer("bn2", "mode.training"), _train_second_norm, mode="keep"),
    Fault(
        "cnn torch's momentum",
        layer("bn2", "buffer.momentum", "config.momentum"),
        changed("bn2", _momentum=0.1),
        mode="train",
    ),
    Fault("cnn running variance", layer("bn1", "buffer.running_variance"), mode="train", finding=True),
    Fault("cnn dropout on", line("", "random.dropout"), rewritten("", classify=_dropping)),
    Fault(
        "cnn dropout that scales in eval",
        layer("drop", "config.other", "op.scale"),
        replaced("drop", lambda: nn.Dropout(0.2, mode="downscale_in_infer")),
    ),
    Fault(
        "cnn no bias",
        layer("fc", "weight.missing", "op.bias"),
        replaced("fc", lambda: nn.Linear(256, 10, bias_attr=False)),
    ),
    Fault(
        "cnn one bias too many",
        layer("conv1", "weight.extra", "op.bias"),
        replaced(
            "conv1",
            lambda: nn.Conv2D(
                3, 12, 3, 2, 1, bias_attr=paddle.ParamAttr(initializer=nn.initializer.Constant(0.2))
            ),
        ),
    ),
    Fault(
        "cnn square weight untransposed",
        layer("gate", "weight.transposed"),
        spoil=spoilt("gate.weight", np.transpose),
    ),
    Fault(
        "cnn colours swapped in the weights",
        layer("conv1", "weight.permuted"),
        spoil=spoilt("conv1.weight", _rolled),
    ),
    Fault("cnn one weight off", layer("fc", "weight.mismatched"), spoil=spoilt("fc.weight", _bump)),
    Fault(
        "cnn statistics not loaded",
        layer("bn3", "weight.mismatched", "weight.missing"),
        spoil=spoilt("bn3._variance", np.ones_like),
    ),
    Fault(
        "cnn weights through bfloat16",
        layer("conv2", "dtype.precision", "weight.mismatched"),
        spoil=spoilt("conv2.weight", lambda values: values.astype(ml_dtypes.bfloat16)),
    ),
    Fault(
        "cnn two settings",
        (Guilt("bn1", ("config.epsilon",)), Guilt("act3", ("config.slope",))),
        together(changed("bn1", _epsilon=1e-4), replaced("act3", nn.LeakyReLU)),
    ),
    Fault(
        "cnn early and late",
        (Guilt("average", ("op.pool_count",)), Guilt("", ("op.activation",), "cnn smooth gate")),
        together(replaced("average", lambda: nn.AvgPool2D(3, 2, 1)), rewritten("", squeezed=_smooth_gate)),
    ),
)


def _shortcut_twice(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet shortcut twice
    return self.relu(y + self.shortcut(x) + self.shortcut(x))


def _no_shortcut(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet no shortcut
    return self.relu(y)


def _relu_before_addition(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet relu before addition
    return self.relu(y) + self.shortcut(x)


def _no_last_relu(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet no last relu
    return y + self.shortcut(x)


def _relu_before_norm(self: Any, x: Any) -> Any:
    # guilty: resnet relu before norm
    y = self.bn2(self.conv2(self.bn1(self.relu(self.conv1(x)))))
    return self.relu(y + self.shortcut(x))


def _weak_shortcut(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet weak shortcut
    return self.relu(y + 0.9 * self.shortcut(x))


def _cut_shortcut(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet cut shortcut
    return self.relu(y + self.shortcut(x.detach()))


def _doubled_gradient(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet doubled gradient
    y = 2.0 * y - y.detach()
    return self.relu(y + self.shortcut(x))


def _clipped_gradient(self: Any, x: Any) -> Any:
    y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
    # guilty: resnet clipped gradient
    y.register_hook(lambda gradient: gradient.clip(-1e-4, 1e-4))
    return self.relu(y + self.shortcut(x))


def _summed(self: Any, x: Any) -> Any:
    # guilty: resnet sum for mean
    return self.fc(self.blocks(self.pool(self.stem(x))).sum([2, 3]))


def _move_stride(model: Any) -> None:
    block = layer_at(model, "blocks.1")
    block.conv1 = nn.Conv2D(12, 16, 3, 1, 1, bias_attr=False)
    block.conv2 = nn.Conv2D(16, 16, 3, 2, 1, bias_attr=False)


def _keep_training(path: str) -> Any:
    return lambda model: layer_at(model, path).train()


RESNET: tuple[Fault, ...] = (
    Fault(
        "resnet stride in the second convolution",
        (Guilt("blocks.1.conv1", ("config.stride",)), Guilt("blocks.1.conv2", ("config.stride",))),
        _move_stride,
    ),
    Fault(
        "resnet ceil mode",
        layer("pool", "op.ceil_mode"),
        replaced("pool", lambda: nn.MaxPool2D(3, 2, 1, ceil_mode=True)),
    ),
    Fault(
        "resnet shortcut twice", line("blocks.0", "op.extra"), rewritten("blocks.0", forward=_shortcut_twice)
    ),
    Fault("resnet no shortcut", line("blocks.2", "op.missing"), rewritten("blocks.2", forward=_no_shortcut)),
    Fault(
        "resnet relu before addition",
        line("blocks.2", "op.order"),
        rewritten("blocks.2", forward=_relu_before_addition),
    ),
    Fault(
        "resnet no last relu",
        line("blocks.3", "op.missing", "op.activation"),
        rewritten("blocks.3", forward=_no_last_relu),
    ),
    Fault(
        "resnet relu before norm",
        line("blocks.0", "op.order"),
        rewritten("blocks.0", forward=_relu_before_norm),
    ),
    Fault(
        "resnet weak shortcut", line("blocks.1", "op.scale"), rewritten("blocks.1", forward=_weak_shortcut)
    ),
    Fault("resnet sum for mean", line("", "op.scale"), rewritten("", forward=_summed)),
    Fault(
        "resnet epsilon in the shortcut",
        layer("blocks.3.shortcut.1", "config.epsilon"),
        changed("blocks.3.shortcut.1", _epsilon=1e-3),
    ),
    Fault(
        "resnet small epsilon",
        layer("blocks.0.bn1", "config.epsilon"),
        changed("blocks.0.bn1", _epsilon=2e-5),
    ),
    Fault(
        "resnet cut shortcut", line("blocks.2", "grad.detached"), rewritten("blocks.2", forward=_cut_shortcut)
    ),
    Fault(
        "resnet doubled gradient",
        line("blocks.1", "grad.scale"),
        rewritten("blocks.1", forward=_doubled_gradient),
    ),
    Fault(
        "resnet clipped gradient",
        line("blocks.2", "grad.clip"),
        rewritten("blocks.2", forward=_clipped_gradient),
    ),
    Fault(
        "resnet frozen norm in training",
        layer("blocks.1.bn2", "mode.training"),
        changed("blocks.1.bn2", _use_global_stats=True),
        mode="train",
    ),
    Fault(
        "resnet block left in training",
        layer("blocks.3.bn1", "mode.training"),
        _keep_training("blocks.3.bn1"),
        mode="keep",
    ),
    Fault(
        "resnet momentum of the stem",
        layer("stem.1", "buffer.momentum", "config.momentum"),
        changed("stem.1", _momentum=0.99),
        mode="train",
    ),
    Fault(
        "resnet channels reversed in two norms",
        (Guilt("blocks.2.bn1", ("weight.permuted",)), Guilt("blocks.2.bn2", ("weight.permuted",))),
        spoil=together(spoilt("blocks.2.bn1.weight", np.flip), spoilt("blocks.2.bn2.weight", np.flip)),
    ),
    Fault(
        "resnet code and setting",
        (
            Guilt("blocks.0", ("op.extra",), "resnet shortcut twice"),
            Guilt("blocks.3.bn2", ("config.epsilon",)),
        ),
        together(rewritten("blocks.0", forward=_shortcut_twice), changed("blocks.3.bn2", _epsilon=1e-4)),
    ),
)

FAULTS = CNN + RESNET
