"""Data and metrics, as ports have them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import torch
from PIL import Image

import parfocal as pf
from tests.pairs.gaps import opencv
from tests.pairs.gaps.planted.row import GENERATOR, LABELS, LOGITS, Planted, Run, raising
from tests.pairs.vision import torchvision_transforms

PICTURES = [
    np.asarray(
        Image.fromarray(GENERATOR.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((48, 48), Image.BICUBIC)
    )
    for _ in range(24)
]


def data(ours: Callable[[int], Any], theirs: Callable[[int], Any]) -> Run:
    def run() -> Any:
        count = len(PICTURES)
        return pf.compare_data([ours(n) for n in range(count)], [theirs(n) for n in range(count)])

    return run


TT, TTF, PT = torchvision_transforms, torchvision_transforms.functional, paddle.vision.transforms


def of_pictures(change: Callable[[Any], Any], images: bool) -> Callable[[int], Any]:
    """A transform of images or of arrays; arrays go to OpenCV in paddle."""

    def read(number: int) -> Any:
        given = Image.fromarray(PICTURES[number]) if images else PICTURES[number]
        with opencv.installed():
            return np.asarray(change(given)), number % 4

    return read


def of_tensors(tensor: Callable[[Any], Any], change: Callable[[Any], Any]) -> Callable[[int], Any]:
    def read(number: int) -> Any:
        return change(tensor(PICTURES[number].transpose(2, 0, 1).astype("float32"))).numpy(), number % 4

    return read


def transformed(ours: Callable[[Any], Any], theirs: Callable[[Any], Any], images: bool) -> Run:
    """torchvision's transform of images and paddle's, of images or of arrays."""
    return data(of_pictures(ours, True), of_pictures(theirs, images))


def resized(antialias: bool) -> Run:
    return data(
        of_tensors(torch.from_numpy, TT.Resize((20, 20), antialias=antialias)),
        of_tensors(paddle.to_tensor, PT.Resize((20, 20))),
    )


def flips(shared: bool) -> Run:
    def run() -> Any:
        torch.manual_seed(0), random.seed(0)
        images = [Image.fromarray(picture) for picture in PICTURES]
        ours, theirs = (
            [(np.asarray(flip(image)), number % 4) for number, image in enumerate(images)]
            for flip in (TT.RandomHorizontalFlip(p=0.5), PT.RandomHorizontalFlip(prob=0.5))
        )
        return pf.compare_data(ours, [*ours] if shared else theirs)

    return run


SAMPLES = [(picture.astype("float32"), number) for number, picture in enumerate(PICTURES)]


def shuffled(order: list[int] | None) -> Run:
    def run() -> Any:
        torch.manual_seed(0), np.random.seed(0)
        ours = torch.utils.data.DataLoader(SAMPLES, batch_size=4, shuffle=order is None, sampler=order)
        chosen = {"shuffle": True} if order is None else {"sampler": order}
        sampler = paddle.io.BatchSampler(None if order else SAMPLES, batch_size=4, **chosen)
        return pf.compare_data(ours, paddle.io.DataLoader(SAMPLES, batch_sampler=sampler, num_workers=0))

    return run


def shared_out(**explicit: Any) -> Run:
    """What two ranks are given, one after the other, in batches of one sample.

    Of larger batches a rank of paddle takes a whole one, where torch deals out samples one by one.
    """

    def run() -> Any:
        ours, theirs = [], []
        for rank in range(2):
            place = {"num_replicas": 2, "rank": rank}
            sampler = torch.utils.data.DistributedSampler(SAMPLES, **place, **explicit)
            ours += torch.utils.data.DataLoader(SAMPLES, batch_size=1, sampler=sampler)
            batched = paddle.io.DistributedBatchSampler(SAMPLES, 1, **place, **explicit)
            theirs += paddle.io.DataLoader(SAMPLES, batch_sampler=batched, num_workers=0)
        return pf.compare_data(ours, theirs)

    return run


def accuracy(scores: Any, labels: Any) -> Any:
    return 100.0 * float((scores.argmax(1) == labels).mean())


def paddle_accuracy(factor: float) -> Callable[[Any, Any], Any]:
    def run(scores: Any, labels: Any) -> Any:
        given = paddle.to_tensor(scores), paddle.to_tensor(labels).unsqueeze(1)
        return factor * float(paddle.metric.accuracy(*given))

    return run


def metric(ours: Any, theirs: Any, scores: Any = LOGITS) -> Run:
    return lambda: pf.compare_metric(ours, theirs, scores, LABELS)


def hits(classes: Callable[[Any], Any]) -> Callable[[Any, Any], float]:
    """How often the label is among the classes that are taken."""
    return lambda scores, labels: float((classes(scores) == labels[:, None]).any(1).mean())


TIED = np.rint(LOGITS)  # scores of few values
TOP = hits(lambda scores: torch.topk(torch.from_numpy(scores), 2).indices.numpy())
PADDLE_TOP = hits(lambda scores: paddle.topk(paddle.to_tensor(scores), 2)[1].numpy())
PADDLE_LAST = hits(lambda scores: paddle.argsort(paddle.to_tensor(scores), 1, stable=True).numpy()[:, -2:])


def ordered(scores: Any) -> Any:
    return torch.argsort(torch.from_numpy(scores), dim=1, descending=True, stable=True).numpy()[:, :1]


def paddle_ordered(scores: Any) -> Any:
    return paddle.argsort(paddle.to_tensor(scores), 1, descending=True, stable=True).numpy()[:, :1]


def lowered(scores: Any) -> Any:
    """Predictions of a model in mixed precision."""
    return torch.from_numpy(scores).bfloat16().float().numpy()


def paddle_lowered(cast: bool) -> Callable[[Any], Any]:
    def read(scores: Any) -> Any:
        low = paddle.to_tensor(scores).astype("bfloat16")
        return (low.astype("float32") if cast else low).numpy()

    return read


def mean_of_one(tensor: Callable[[Any], Any], number: Callable[[Any], float]) -> Callable[[Any, Any], float]:
    """A mean in a tensor of the shape [1], as a number."""
    return lambda scores, labels: number(tensor(scores).mean().reshape([1]))


def read_as(numbers: Callable[[Any], Any]) -> Callable[[int], Any]:
    return lambda number: (numbers(LOGITS[number]), number % 4)


ROWS = {
    "resize-backend": Planted(
        transformed(TT.Resize((20, 20)), PT.Resize((20, 20)), images=True),
        transformed(TT.Resize((20, 20)), PT.Resize((20, 20)), images=False),
        *("data", "data.resize"),
    ),
    "resize-antialiasing": Planted(resized(False), resized(True), "data", "data.resize"),
    "colour-adjustment-backend": Planted(
        transformed(
            lambda each: TTF.adjust_hue(each, 0.3), lambda each: PT.adjust_hue(each, 0.3), images=True
        ),
        transformed(
            lambda each: TTF.adjust_hue(each, 0.3), lambda each: PT.adjust_hue(each, 0.3), images=False
        ),
        *("data", "data.colour"),
    ),
    "colour-adjustment-backend: contrast": Planted(
        transformed(
            lambda each: TTF.adjust_contrast(each, 0.6),
            lambda each: PT.adjust_contrast(each, 0.6),
            images=True,
        ),
        transformed(
            lambda each: TTF.adjust_contrast(each, 0.6),
            lambda each: PT.adjust_contrast(each, 0.6),
            images=False,
        ),
        *("data", "data.colour"),
    ),
    "random-transforms": Planted(flips(True), flips(False), "data", "data.crop"),
    "shuffling-generator": Planted(
        shuffled([(7 * number) % 24 for number in range(24)]), shuffled(None), "data", "data.order"
    ),
    "distributed-sampler-shuffling": Planted(shared_out(shuffle=False), shared_out(), "data", "data.order"),
    "accuracy-unit": Planted(
        metric(accuracy, paddle_accuracy(100.0)),
        metric(accuracy, paddle_accuracy(1.0)),
        *("metric", "metric.unit"),
    ),
    # on a CPU both frameworks take the same of equal scores: what is planted takes others
    "sorting-ties": Planted(
        metric(TOP, PADDLE_TOP, TIED), metric(TOP, PADDLE_LAST, TIED), "metric", "metric.tie"
    ),
    "sorting-ties: stable": Planted(
        metric(hits(ordered), hits(paddle_ordered), TIED),
        metric(
            hits(ordered),
            hits(lambda scores: paddle.argsort(paddle.to_tensor(scores), 1, stable=True).numpy()[:, -1:]),
            TIED,
        ),
        *("metric", "metric.tie"),
    ),
    "float-of-tensor": raising(
        metric(mean_of_one(torch.from_numpy, float), mean_of_one(paddle.to_tensor, lambda each: each.item())),
        metric(mean_of_one(torch.from_numpy, float), mean_of_one(paddle.to_tensor, float)),
        "the port's metric raised TypeError",
    ),
    "bfloat16-to-numpy": Planted(
        data(read_as(lowered), read_as(paddle_lowered(True))),
        data(read_as(lowered), read_as(paddle_lowered(False))),
        *("data", "dtype.bits"),
    ),
    "bfloat16-to-numpy: metric": Planted(
        metric(
            lambda scores, labels: accuracy(lowered(scores), labels),
            lambda scores, labels: accuracy(paddle_lowered(True)(scores), labels),
        ),
        metric(
            lambda scores, labels: accuracy(lowered(scores), labels),
            lambda scores, labels: accuracy(paddle_lowered(False)(scores), labels),
        ),
        *("metric", "dtype.bits"),
    ),
}
