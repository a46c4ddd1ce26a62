"""Layers with a wrong setting: named, with both values, and mended by the line that is recommended."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

from parfocal.errors import InputError
from parfocal.judge.tolerance import Tolerance
from tests.faults.tools import Planted, align, mend, numbers, own, seeded, the_cause


def flat(layer: Any) -> Any:
    """A layer between two linear ones."""
    frame = (nn, nn.Sequential) if isinstance(layer, nn.Module) else (pnn, pnn.Sequential)
    return frame[1](frame[0].Linear(12, 16), layer, frame[0].Linear(16, 4))


def picture(layer: Any, channels: int = 8) -> Any:
    """A layer between two convolutions."""
    if isinstance(layer, nn.Module):
        return nn.Sequential(nn.Conv2d(3, 8, 3), layer, nn.Conv2d(channels, 4, 1), nn.AdaptiveAvgPool2d(2))
    return pnn.Sequential(pnn.Conv2D(3, 8, 3), layer, pnn.Conv2D(channels, 4, 1), pnn.AdaptiveAvgPool2D(2))


def planted(
    name: str, frame: Any, shape: tuple[int, ...], good: Any, bad: Any, code: str, *says: str
) -> Planted:
    return Planted(name, lambda: frame(good()), lambda: frame(bad()), shape, code, says, "1")


FLAT, IMAGE = (6, 12), (2, 3, 12, 12)
FAULTS = (
    planted("LayerNorm epsilon", flat, FLAT, lambda: nn.LayerNorm(16),
            lambda: pnn.LayerNorm(16, epsilon=1e-6), "config.epsilon",
            "epsilon is 1e-05 in the reference, 1e-06 in the port"),
    planted("BatchNorm epsilon", picture, IMAGE, lambda: nn.BatchNorm2d(8, eps=1e-3),
            lambda: pnn.BatchNorm2D(8), "config.epsilon", "0.001 in the reference", "1e-05 in the port"),
    planted("GroupNorm groups", picture, IMAGE, lambda: nn.GroupNorm(4, 8), lambda: pnn.GroupNorm(2, 8),
            "config.groups", "num_groups is 4 in the reference, 2 in the port"),
    planted("slope", flat, FLAT, lambda: nn.LeakyReLU(0.2), lambda: pnn.LeakyReLU(),
            "config.slope", "negative_slope is 0.2 in the reference, 0.01 in the port"),
    planted("GELU by tanh", flat, FLAT, nn.GELU, lambda: pnn.GELU(approximate=True),
            "op.approximation", "approximate is 'none' in the reference, 'tanh' in the port"),
    planted("padding of the mean", picture, IMAGE, lambda: nn.AvgPool2d(3, 2, 1),
            lambda: pnn.AvgPool2D(3, 2, 1), "op.pool_count",
            "count_include_pad is True in the reference, False in the port"),
    planted("stride", picture, IMAGE, lambda: nn.Conv2d(8, 8, 3, stride=2), lambda: pnn.Conv2D(8, 8, 3),
            "config.stride", "stride is (2, 2) in the reference, (1, 1) in the port"),
    planted("padding", picture, IMAGE, lambda: nn.Conv2d(8, 8, 3, padding=1), lambda: pnn.Conv2D(8, 8, 3),
            "config.padding", "padding is (1, 1) in the reference, (0, 0) in the port"),
    planted("dilation", picture, IMAGE, lambda: nn.Conv2d(8, 8, 3, padding=2, dilation=2),
            lambda: pnn.Conv2D(8, 8, 3, padding=1, dilation=1), "config.padding", "dilation", "padding"),
    planted("padding mode", picture, IMAGE, lambda: nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"),
            lambda: pnn.Conv2D(8, 8, 3, padding=1), "op.padding_mode", "'reflect' in the reference, 'zeros'"),
    planted("align_corners", picture, IMAGE,
            lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
            lambda: pnn.Upsample(scale_factor=2, mode="bilinear"), "op.align_corners",
            "True in the reference"),
    planted("interpolation", picture, IMAGE, lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
            lambda: pnn.Upsample(scale_factor=2, mode="nearest"), "op.interpolation",
            "'bilinear'", "'nearest'"),
    planted("dropout in eval mode", flat, FLAT, lambda: nn.Dropout(0.4),
            lambda: pnn.Dropout(0.4, mode="downscale_in_infer"), "config.other",
            "'upscale_in_train' in the reference, 'downscale_in_infer' in the port"),
    planted("softmax axis", flat, FLAT, lambda: nn.Softmax(0), lambda: pnn.Softmax(),
            "op.axis", "axis is 0 in the reference, -1 in the port"),
    planted("SiLU for GELU", flat, FLAT, nn.GELU, pnn.Silu, "op.activation",
            "GELU in the reference", "SiLU in the port"),
    planted("mean for maximum", picture, IMAGE, lambda: nn.MaxPool2d(2), lambda: pnn.AvgPool2D(2),
            "op.kind", "MaxPool2d in the reference", "AvgPool2d in the port"),
    planted("forgotten activation", flat, FLAT, nn.ReLU, pnn.Identity, "op.activation",
            "ReLU in the reference"),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_wrong_setting_is_named_and_the_fix_mends_it(fault: Planted) -> None:
    reference, port, inputs = seeded(fault.reference), fault.port(), numbers(*fault.shape)
    cause = the_cause(report := align(reference, port, inputs))
    assert own(report)[0].port.path == fault.path
    assert cause.code == fault.code
    for words in fault.says:
        assert words in cause.message
    assert cause.score_after <= report.limit
    assert cause.fix in str(report)
    mend(port, cause.fix)
    mended = align(reference, port, inputs)
    assert mended.ok, str(mended)


class Strange(pnn.Layer):
    """A hand-written activation that is none of the known ones."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x * x * paddle.sin(x)


def test_a_setting_that_differs_without_effect_is_not_the_cause() -> None:
    """The epsilon differs but the variance is large; what is wrong is something else."""

    class OffLayerNorm(pnn.LayerNorm):
        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return super().forward(x) + 0.01 * x * x

    reference = seeded(lambda: flat(nn.LayerNorm(16, eps=1e-12)))
    port = flat(OffLayerNorm(16, epsilon=1e-11))
    (divergence,) = own(align(reference, port, numbers(*FLAT)))
    assert divergence.port.path == "1"
    assert divergence.cause is None or divergence.cause.code != "config.epsilon"


def test_a_hand_written_activation_is_told_by_what_the_reference_has() -> None:
    report = align(seeded(lambda: flat(nn.Sigmoid())), flat(Strange()), numbers(*FLAT))
    (divergence,) = own(report)
    assert divergence.cause is not None
    assert divergence.cause.code == "op.activation"
    assert "Sigmoid in the reference, Strange in the port" in divergence.cause.message


def test_explaining_can_be_turned_off() -> None:
    reference, port = seeded(lambda: flat(nn.LayerNorm(16))), flat(pnn.LayerNorm(16, epsilon=1e-6))
    report = align(reference, port, numbers(*FLAT), explain=False)
    assert own(report)[0].cause is None


def test_with_a_fixed_tolerance_nothing_is_repeated_and_nothing_explained() -> None:
    reference, port = seeded(lambda: picture(nn.GroupNorm(4, 8))), picture(pnn.GroupNorm(2, 8))
    report = align(reference, port, numbers(*IMAGE), tolerance=Tolerance(rtol=1e-4, atol=1e-4))
    assert not report.ok
    assert all(divergence.cause is None for divergence in report.divergences)


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_the_train_flag() -> None:
    reference, port = seeded(lambda: picture(nn.BatchNorm2d(8))), picture(pnn.BatchNorm2D(8))
    port.eval()
    port[1].train()
    cause = the_cause(align(reference, port, numbers(*IMAGE), mode="keep"))
    assert cause.code == "mode.training"
    assert "eval mode in the reference" in cause.message
    assert "train mode in the port" in cause.message
    assert cause.fix == "port[1].eval()"
    mend(port, cause.fix)
    assert align(reference, port, numbers(*IMAGE), mode="keep").ok


def test_a_container_of_the_framework() -> None:
    reference = nn.TransformerEncoderLayer(16, 4, 32, 0.0, norm_first=True, batch_first=True)
    port = pnn.TransformerEncoderLayer(16, 4, 32, 0.0, normalize_before=False)
    model, frame = (
        seeded(lambda: nn.Sequential(nn.Linear(16, 16), reference)),
        pnn.Sequential(pnn.Linear(16, 16), port),
    )
    cause = the_cause(align(model, frame, numbers(2, 5, 16)))
    assert cause.code == "config.other"
    assert "norm_first is True in the reference, False in the port" in cause.message
    mend(frame, cause.fix)
    assert align(model, frame, numbers(2, 5, 16)).ok


class HandNorm(pnn.Layer):
    """A hand-written layer norm."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = self.create_parameter([size])
        self.bias = self.create_parameter([size], is_bias=True)
        self.epsilon = epsilon

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / paddle.sqrt(variance + self.epsilon) * self.weight + self.bias


@pytest.mark.parametrize(("epsilon", "shown"), [(1e-6, "1e-06"), (1e-3, "0.001"), (2.5e-4, "0.00025")])
def test_the_epsilon_of_a_hand_written_norm_is_solved_for(epsilon: float, shown: str) -> None:
    reference = seeded(lambda: flat(nn.LayerNorm(16)))
    cause = the_cause(align(reference, flat(HandNorm(16, epsilon)), numbers(*FLAT)))
    assert cause.code == "config.epsilon"
    assert "1e-05" in cause.message
    assert shown in cause.message


def test_a_correct_hand_written_norm_is_left_alone() -> None:
    report = align(seeded(lambda: flat(nn.LayerNorm(16))), flat(HandNorm(16, 1e-5)), numbers(*FLAT))
    assert report.ok


class TorchHandNorm(nn.Module):
    """The same by hand in the reference, where there is no setting to be read."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + self.epsilon) * self.weight + self.bias


def test_a_hand_written_norm_of_the_reference_tells_the_ports_epsilon() -> None:
    reference, port = seeded(lambda: flat(TorchHandNorm(16, 1e-3))), flat(pnn.LayerNorm(16))
    cause = the_cause(align(reference, port, numbers(*FLAT)))
    assert cause.code == "config.epsilon"
    assert "the reference behaves as with epsilon = 0.001; it is 1e-05 in the port" in cause.message
    mend(port, cause.fix)
    assert align(reference, port, numbers(*FLAT)).ok


class TorchHandResize(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)


def test_a_hand_written_layer_of_the_reference_tells_the_ports_choice() -> None:
    reference = seeded(lambda: picture(TorchHandResize()))
    port = picture(pnn.Upsample(scale_factor=2.0, mode="bilinear"))
    cause = the_cause(align(reference, port, numbers(*IMAGE)))
    assert cause.code == "op.align_corners"
    mend(port, cause.fix)
    assert align(reference, port, numbers(*IMAGE)).ok


def test_what_no_setting_explains_is_not_said_to_be_one() -> None:
    reference, port = seeded(lambda: flat(TorchHandNorm(16, 1e-5))), flat(pnn.GELU())
    found = own(align(reference, port, numbers(*FLAT)))
    codes = [(each.phase, each.cause and each.cause.code) for each in found]
    # the norm's two weights have no place in a GELU, and no setting of a GELU makes a norm of it
    assert codes == [("weights", "weight.missing"), ("weights", "weight.missing"), ("forward", None)]


class TorchHanding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(12, 16), nn.Dropout(0.1), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.drop(torch.relu(self.first(x))))


class Handing(pnn.Layer):
    def __init__(self, activation: Any) -> None:
        super().__init__()
        self.first, self.drop, self.second = pnn.Linear(12, 16), pnn.Dropout(0.1), pnn.Linear(16, 4)
        self.activation = activation

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.second(self.drop(self.activation(self.first(x))))


def test_what_a_layer_hands_through_counts_as_what_it_is_given() -> None:
    assert align(seeded(TorchHanding), Handing(pnn.functional.relu), numbers(*FLAT)).ok
    first = own(align(seeded(TorchHanding), Handing(pnn.functional.gelu), numbers(*FLAT)))[0]
    assert first.phase == "forward"
    assert first.port is not None
    assert first.port.path == ""


class TorchTwoWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Conv2d(3, 4, 1, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(x) + self.other(x)


class TwoWays(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = pnn.Conv2D(3, 4, 3, stride=1, padding=1), pnn.Conv2D(3, 4, 1, stride=2)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.one(x) + self.other(x)


def test_a_port_that_cannot_run_is_told_the_settings_that_differ() -> None:
    with pytest.raises(InputError) as caught:
        align(seeded(TorchTwoWays), TwoWays(), numbers(*IMAGE))
    assert caught.value.hint == "one: stride is (2, 2) in the reference, (1, 1) in the port"


class TorchGrowing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1)
        self.up = nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.up(self.first(x)))


class Growing(pnn.Layer):
    """The border is cut off by the code, not by the layer."""

    def __init__(self, *, cut: int) -> None:
        super().__init__()
        self.first, self.last, self.cut = pnn.Conv2D(3, 4, 1), pnn.Conv2D(4, 2, 1), cut
        self.up = pnn.Conv2DTranspose(4, 4, 3, stride=2)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        grown = self.up(self.first(x))
        size = grown.shape[-1] - 1
        return self.last(grown[:, :, self.cut : self.cut + size, self.cut : self.cut + size])


def test_a_border_that_the_code_cuts_off_is_no_mistake_of_the_layer() -> None:
    report = align(seeded(TorchGrowing), Growing(cut=1), numbers(*IMAGE))
    assert report.ok, str(report)
    assert not align(seeded(TorchGrowing), Growing(cut=0), numbers(*IMAGE)).ok


def test_a_mistake_in_many_layers_does_not_hide_the_next_one():
    def norms(library: Any, count: int, **settings: float) -> list[Any]:
        return [library.LayerNorm(16, **settings) for _ in range(count)]

    report = align(
        nn.Sequential(nn.Linear(12, 16), *norms(nn, 15), nn.LeakyReLU(0.2), nn.Linear(16, 4)),
        pnn.Sequential(
            pnn.Linear(12, 16), *norms(pnn, 15, epsilon=1e-3), pnn.LeakyReLU(0.1), pnn.Linear(16, 4)
        ),
        numbers(6, 12),
    )
    codes = [each.cause.code for each in report.divergences if each.cause is not None]
    assert codes.count("config.epsilon") == 15
    assert codes.count("config.slope") == 1
    assert "also: the same in " in str(report)
