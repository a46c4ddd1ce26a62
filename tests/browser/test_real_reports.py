"""Pages of real comparisons: ResNet-50 with three mistakes, the same without, and a training."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.report.report import Report
from tests.pairs.training.tools import compare, paddle_optim, perceptron, torch_optim
from tests.pairs.vision import torchvision_models

LARGEST = 6e6  # bytes of a page of ResNet-50
pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")


def resnet(plant: Any = lambda port: None) -> Report:
    torch.manual_seed(0)
    paddle.seed(0)
    reference, port = torchvision_models.resnet50(weights=None), paddle.vision.models.resnet50()
    plant(port)
    images = np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype("float32")
    return pf.align(reference, port, images)


def three_mistakes(port: Any) -> None:
    port.layer1[1].bn2._epsilon = 1e-3
    port.layer3[1].conv2 = paddle.nn.Conv2D(256, 256, 3, padding=1, padding_mode="reflect", bias_attr=False)
    port.avgpool = paddle.nn.AdaptiveMaxPool2D(1)


def test_three_mistakes_in_resnet50(show, tmp_path):
    report = resnet(three_mistakes)
    opened = show(report)
    page = opened.page
    assert (tmp_path / "report0" / "report.html").stat().st_size < LARGEST
    cards = opened.seen(".mistake")
    for place in ("layer1.1.bn2", "layer3.1.conv2", "avgpool"):
        assert any(place in card for card in cards), cards
    guilty = page.eval_on_selector_all(
        ".row.own", "rows => rows.map(row => row.querySelector('.cell:nth-child(2) .path').textContent)"
    )
    assert {"layer1.1.bn2", "layer3.1.conv2"} <= set(guilty)
    page.click(".mistake a[data-row]")
    details = page.locator(".row.own .details").inner_text()
    assert "1e-05" in details
    assert "0.001" in details
    page.wait_for_selector(".row.own .details .plot[data-drawn]")


def test_resnet50_that_is_the_same(show):
    opened = show(resnet())
    assert opened.text(".stamp") == "SAME"
    assert opened.page.locator(".row.own, .row.inherited, .row.unpaired, .mistake").count() == 0
    assert opened.page.locator(".row").count() > 150


def test_a_training(show):
    report = compare(
        lambda p: torch_optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4),
        lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p, weight_decay=1e-3),
        steps=8,
        models=perceptron(norm=True),
    )
    opened = show(report)
    assert any("optim.weight_decay" in card for card in opened.seen(".mistake"))
    assert opened.seen("#mistakes figcaption")[:2] == ["Histogram of the difference", "Where it sits"]
    assert opened.seen("#curves figcaption")[0].startswith("loss")
    assert "optimizer" in opened.seen("#steps tbody th")
    assert opened.page.locator("#steps td.own").count() > 0
    opened.page.locator("#curves").scroll_into_view_if_needed()
    opened.page.wait_for_selector(".plot[data-plot=curve][data-drawn]")
