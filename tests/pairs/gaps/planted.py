"""Every difference of losses, initial values, optimizers, schedules, data and metrics, as a port has it.

A row plants the difference and says what is to be found; its twin is the port that follows the fix.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
import torch
from PIL import Image

import parfocal as pf
from tests.pairs.training.tools import batches, compare

TF, PF = torch.nn.functional, paddle.nn.functional
GENERATOR = np.random.default_rng(5)
LOGITS = GENERATOR.standard_normal((24, 5)).astype("float32")
LABELS = GENERATOR.integers(0, 5, 24)
SOME_IGNORED = np.where(np.arange(24) % 4 == 0, -100, LABELS)
SOFT = (np.exp(LOGITS[::-1]) / np.exp(LOGITS[::-1]).sum(1, keepdims=True)).astype("float32")
WEIGHTS = np.asarray([1.0, 2.0, 0.5, 3.0, 1.5], dtype="float32")
MAPS = GENERATOR.standard_normal((4, 5, 5)).astype("float32")
MAP_LABELS = GENERATOR.integers(0, 5, (4, 5))
VALUES, TARGETS = (GENERATOR.standard_normal((24, 7)).astype("float32") for _ in range(2))
FRAMES = GENERATOR.standard_normal((12, 3, 6)).astype("float32")
WORDS = GENERATOR.integers(1, 6, (3, 4)).astype("int32")
PICTURES = [
    np.asarray(
        Image.fromarray(GENERATOR.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((48, 48), Image.BICUBIC)
    )
    for _ in range(24)
]


@dataclass(frozen=True)
class Planted:
    """One row. Without ``plant`` the two frameworks agree; ``raises``: who raises where it is planted."""

    twin: Callable[[], Any]
    plant: Callable[[], Any] | None = None
    phase: str = ""
    code: str | None = None
    raises: str = ""


def loss(ours: Any, theirs: Any, *inputs: Any) -> Callable[[], Any]:
    return lambda: pf.compare_loss(ours, theirs, *inputs)


def training(ours: Any, theirs: Any, **options: Any) -> Callable[[], Any]:
    return lambda: compare(ours, theirs, **{"steps": 3, **options})


def initial(ours: Any, theirs: Any) -> Callable[[], Any]:
    return lambda: pf.compare_init(ours, theirs, seeds=4)


def schedule(ours: Callable[[Any], Any], theirs: Any, steps: int = 20) -> Callable[[], Any]:
    def run() -> Any:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
        return pf.compare_schedule(ours(optimizer), theirs(), steps)

    return run


def data(ours: Callable[[int], Any], theirs: Callable[[int], Any]) -> Callable[[], Any]:
    def run() -> Any:
        count = len(PICTURES)
        return pf.compare_data([ours(n) for n in range(count)], [theirs(n) for n in range(count)])

    return run


# ---- losses


def mean_of_counted(logits: Any, labels: Any) -> Any:
    total = PF.cross_entropy(logits, labels, reduction="sum")
    return total / (labels != -100).astype("float32").sum()


def weighted_soft(logits: Any, targets: Any) -> Any:
    return -(targets * paddle.to_tensor(WEIGHTS) * PF.log_softmax(logits)).sum(-1).mean()


def weighted_smooth(logits: Any, labels: Any) -> Any:
    weights, logs = paddle.to_tensor(WEIGHTS), PF.log_softmax(logits)
    hard = -(weights[labels] * logs.take_along_axis(labels.unsqueeze(1), 1).squeeze(1)).sum()
    smooth = -(weights * logs).sum()
    return (0.9 * hard + 0.1 / 5 * smooth) / weights[labels].sum()


def smooth_of_counted(logits: Any, labels: Any) -> Any:
    counted = labels != -100
    return PF.cross_entropy(logits[counted], labels[counted], label_smoothing=0.1)


def each_squeezed(logits: Any, labels: Any) -> Any:
    return PF.cross_entropy(logits, labels.unsqueeze(1), reduction="none").squeeze(1)


def ctc_torch(frames: Any, words: Any) -> Any:
    return TF.ctc_loss(
        TF.log_softmax(frames, -1), words.long(), torch.tensor([12] * 3), torch.tensor([4] * 3)
    )


def ctc_paddle(squashed: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    lengths = [12] * 3, [4] * 3

    def run(frames: Any, words: Any) -> Any:
        sizes = (paddle.to_tensor(each, dtype="int64") for each in lengths)
        return PF.ctc_loss(squashed(frames), words, *sizes)

    return run


CE, PCE = torch.nn.CrossEntropyLoss, paddle.nn.CrossEntropyLoss
OURS_WEIGHTED = CE(weight=torch.tensor(WEIGHTS))
OURS_SMOOTH = CE(weight=torch.tensor(WEIGHTS), label_smoothing=0.1)
LOSS_ROWS = {
    "cross-entropy-ignored-mean": Planted(
        loss(CE(), mean_of_counted, LOGITS, SOME_IGNORED),
        loss(CE(), PCE(), LOGITS, SOME_IGNORED),
        *("loss", "loss.ignore_index"),
    ),
    "cross-entropy-all-ignored": Planted(
        loss(CE(), mean_of_counted, LOGITS, SOME_IGNORED),
        loss(CE(), PCE(), LOGITS, np.full(24, -100)),
        *("loss", "loss.ignore_index"),
    ),
    "cross-entropy-class-axis": Planted(
        loss(CE(), PCE(axis=1), MAPS, MAP_LABELS),
        loss(CE(), PCE(), MAPS, MAP_LABELS),
        *("loss", "loss.input"),
    ),
    "cross-entropy-soft-labels": Planted(
        loss(CE(), PCE(soft_label=True), LOGITS, SOFT),
        loss(CE(), PCE(), LOGITS, SOFT),
        raises="the loss of the port raised",
    ),
    "cross-entropy-soft-labels-weight": Planted(
        loss(OURS_WEIGHTED, weighted_soft, LOGITS, SOFT),
        loss(OURS_WEIGHTED, PCE(weight=paddle.to_tensor(WEIGHTS), soft_label=True), LOGITS, SOFT),
        *("loss", "loss.weight"),
    ),
    "cross-entropy-smoothing-weight": Planted(
        loss(OURS_SMOOTH, weighted_smooth, LOGITS, LABELS),
        loss(OURS_SMOOTH, PCE(weight=paddle.to_tensor(WEIGHTS), label_smoothing=0.1), LOGITS, LABELS),
        *("loss", "loss.weight"),
    ),
    "cross-entropy-smoothing-ignored": Planted(
        loss(CE(label_smoothing=0.1), smooth_of_counted, LOGITS, SOME_IGNORED),
        loss(CE(label_smoothing=0.1), PCE(label_smoothing=0.1), LOGITS, SOME_IGNORED),
        raises="the loss of the port raised",
    ),
    "cross-entropy-label-shape": Planted(
        loss(CE(reduction="none"), each_squeezed, LOGITS, LABELS),
        loss(
            CE(reduction="none"),
            lambda x, y: PF.cross_entropy(x, y.unsqueeze(1), reduction="none"),
            *(LOGITS, LABELS),
        ),
        *("loss", "loss.input"),
    ),
    "smooth-l1-huber": Planted(
        loss(
            torch.nn.SmoothL1Loss(beta=0.5),
            paddle.nn.SmoothL1Loss(delta=0.5, is_huber=False),
            *(VALUES, TARGETS),
        ),
        loss(torch.nn.SmoothL1Loss(beta=0.5), paddle.nn.SmoothL1Loss(delta=0.5), VALUES, TARGETS),
        *("loss", "loss.beta"),
    ),
    "ctc-input": Planted(
        loss(ctc_torch, ctc_paddle(lambda frames: frames), FRAMES, WORDS),
        loss(ctc_torch, ctc_paddle(PF.softmax), FRAMES, WORDS),
        *("loss", "loss.input"),
    ),
}

# ---- initial values

NI = paddle.nn.initializer


def kaiming(nn: Any) -> Any:
    layer = nn.Linear(64, 32)
    if nn is torch.nn:
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu"), torch.nn.init.zeros_(layer.bias)
    else:
        layer = nn.Linear(64, 32, weight_attr=NI.KaimingNormal())
    return layer


def uniform(theirs: Any) -> tuple[Any, Any]:
    def ours() -> Any:
        layer = torch.nn.Linear(64, 32, bias=False)
        torch.nn.init.uniform_(layer.weight)
        return layer

    return ours, lambda: paddle.nn.Linear(64, 32, weight_attr=theirs, bias_attr=False)


def as_torch(kind: Any, *sizes: int, fan: int) -> Callable[[], Any]:
    bound = fan**-0.5
    return lambda: kind(*sizes, weight_attr=NI.Uniform(-bound, bound), bias_attr=NI.Uniform(-bound, bound))


INITIAL_ROWS = {
    "linear-initialiser": Planted(
        initial(lambda: torch.nn.Linear(64, 32), as_torch(paddle.nn.Linear, 64, 32, fan=64)),
        initial(lambda: torch.nn.Linear(64, 32), lambda: paddle.nn.Linear(64, 32)),
        *("init", "init.scale"),
    ),
    "convolution-initialiser": Planted(
        initial(lambda: torch.nn.Conv2d(8, 32, 3), as_torch(paddle.nn.Conv2D, 8, 32, 3, fan=72)),
        initial(lambda: torch.nn.Conv2d(8, 32, 3), lambda: paddle.nn.Conv2D(8, 32, 3)),
        *("init", "init.distribution"),
    ),
    "embedding-initialiser": Planted(
        initial(
            lambda: torch.nn.Embedding(64, 32),
            lambda: paddle.nn.Embedding(64, 32, weight_attr=NI.Normal(0.0, 1.0)),
        ),
        initial(lambda: torch.nn.Embedding(64, 32), lambda: paddle.nn.Embedding(64, 32)),
        *("init", "init.distribution"),
    ),
    "uniform-initialiser-range": Planted(
        initial(*uniform(NI.Uniform(0.0, 1.0))), initial(*uniform(NI.Uniform())), "init", "init.scale"
    ),
    "kaiming-initialisers-agree": Planted(initial(lambda: kaiming(torch.nn), lambda: kaiming(paddle.nn))),
}

# ---- optimizers and clipping

TO, PO = torch.optim, paddle.optimizer


def grouped(ratio: float) -> tuple[Any, Any]:
    def ours(parameters: Any) -> Any:
        first, *rest = parameters
        return TO.SGD([{"params": [first], "lr": 0.01}, {"params": rest}], 0.1)

    def theirs(parameters: Any) -> Any:
        first, *rest = parameters
        return PO.SGD(0.1, [{"params": [first], "learning_rate": ratio}, {"params": rest}])

    return ours, theirs


def no_decay_of_biases(named: bool) -> tuple[Any, Any]:
    def ours(parameters: Any) -> Any:
        every = list(parameters)
        groups = [{"params": [each for each in every if (each.ndim > 1) is wide]} for wide in (True, False)]
        groups[1]["weight_decay"] = 0.0
        return TO.AdamW(groups, 0.01, weight_decay=0.1)

    def theirs(parameters: Any) -> Any:
        meant = {each.name for each in parameters if each.ndim > 1}
        decays = (lambda name: name in meant) if named else (lambda name: "bias" not in name)
        return PO.AdamW(0.01, parameters=parameters, weight_decay=0.1, apply_decay_param_fun=decays)

    return ours, theirs


def attributed(factor: float) -> Callable[[], Any]:
    def run() -> Any:
        attributes = paddle.ParamAttr(learning_rate=factor)
        models = torch.nn.Linear(8, 4), paddle.nn.Linear(8, 4, weight_attr=attributes)
        return compare(lambda p: TO.SGD(p, 0.1), lambda p: PO.SGD(0.1, parameters=p), steps=2, models=models)

    return run


class OneOfTwo:
    """Adds a layer to a model that only its first step uses."""

    def __init__(self, nn: Any) -> None:
        class Model(nn.Module if nn is torch.nn else nn.Layer):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.Linear(8, 4), nn.Linear(8, 4)

            def forward(self, x: Any, both: Any) -> Any:
                used = self.first(x)
                return used + self.second(x) if float(both.sum()) > 0 else used

        self.model = Model()


def unused(cleared: Callable[[Any], Any]) -> Callable[[], Any]:
    def run() -> Any:
        models = OneOfTwo(torch.nn).model, OneOfTwo(paddle.nn).model
        flags = [np.ones(1, "float32"), np.zeros(1, "float32"), np.zeros(1, "float32")]
        given = [(x, flag, y) for (x, y), flag in zip(batches(3), flags, strict=True)]
        return compare(
            lambda p: TO.SGD(p, 0.1, momentum=0.9),
            lambda p: cleared(PO.Momentum(0.1, 0.9, parameters=p)),
            steps=3,
            models=models,
            data=given,
        )

    return run


def without_zeros(optimizer: Any) -> Any:
    clear = optimizer.clear_grad
    optimizer.clear_grad = lambda *args, **kwargs: clear(set_to_zero=False)
    return optimizer


def clipped(theirs: Any) -> Callable[[], Any]:
    return training(
        lambda p: TO.SGD(p, 0.1),
        lambda p: PO.SGD(0.1, parameters=p, grad_clip=theirs),
        clip=(lambda p: torch.nn.utils.clip_grad_norm_(p, 0.05), None),
    )


def momentum(ours: dict[str, Any]) -> tuple[Any, Any]:
    return (
        lambda p: TO.SGD(p, 0.1, momentum=0.9, **ours),
        lambda p: PO.Momentum(0.1, 0.9, parameters=p),
    )


OPTIMIZER_ROWS = {
    "sgd-momentum": Planted(
        training(*momentum({})),
        training(lambda p: TO.SGD(p, 0.1, momentum=0.9), lambda p: PO.SGD(0.1, parameters=p)),
        *("optimizer", "optim.momentum"),
    ),
    "adam-decay": Planted(
        training(
            lambda p: TO.AdamW(p, 0.01, weight_decay=0.1),
            lambda p: PO.AdamW(0.01, parameters=p, weight_decay=0.1),
        ),
        training(
            lambda p: TO.Adam(p, 0.01, weight_decay=0.1),
            lambda p: PO.AdamW(0.01, parameters=p, weight_decay=0.1),
        ),
        *("optimizer", "optim.weight_decay"),
    ),
    "adam-rounding": Planted(
        training(lambda p: TO.Adam(p, 0.1), lambda p: PO.Adam(0.1, parameters=p), steps=12)
    ),
    "decay-filter-names": Planted(
        training(*no_decay_of_biases(True)),
        training(*no_decay_of_biases(False)),
        *("optimizer", "optim.weight_decay"),
    ),
    "group-learning-rate": Planted(training(*grouped(0.1)), training(*grouped(0.01)), "lr", "optim.lr_group"),
    "parameter-attributes": Planted(attributed(1.0), attributed(0.5), "lr", "optim.lr_group"),
    "rmsprop-formula": Planted(
        training(lambda p: TO.RMSprop(p, 0.01), lambda p: PO.RMSProp(0.01, 0.99, 1e-16, parameters=p)),
        training(lambda p: TO.RMSprop(p, 0.01), lambda p: PO.RMSProp(0.01, parameters=p)),
        *("optimizer", "optim.betas"),
    ),
    "adagrad-epsilon": Planted(
        training(lambda p: TO.Adagrad(p, 0.01), lambda p: PO.Adagrad(0.01, 1e-10, parameters=p)),
        training(lambda p: TO.Adagrad(p, 0.01), lambda p: PO.Adagrad(0.01, parameters=p)),
        *("optimizer", "optim.epsilon"),
    ),
    "adadelta-defaults": Planted(
        training(lambda p: TO.Adadelta(p), lambda p: PO.Adadelta(1.0, 1e-6, 0.9, parameters=p)),
        training(lambda p: TO.Adadelta(p), lambda p: PO.Adadelta(parameters=p)),
        *("lr", "lr.value"),
    ),
    "adamax-learning-rate": Planted(
        training(lambda p: TO.Adamax(p), lambda p: PO.Adamax(0.002, parameters=p)),
        training(lambda p: TO.Adamax(p), lambda p: PO.Adamax(parameters=p)),
        *("lr", "lr.value"),
    ),
    "cleared-gradients": Planted(
        unused(without_zeros), unused(lambda optimizer: optimizer), "optimizer", "optim.update"
    ),
    "gradient-clipping": Planted(
        clipped(paddle.nn.ClipGradByGlobalNorm(0.05)),
        clipped(paddle.nn.ClipGradByNorm(0.05)),
        *("gradient", "grad.clip"),
    ),
}

# ---- schedules

TS, PS = torch.optim.lr_scheduler, paddle.optimizer.lr


def wired(whole: bool) -> Callable[[], Any]:
    def run() -> Any:
        scheduler = PS.StepDecay(0.1, 2, 0.5)
        return compare(
            lambda p: TO.SGD(p, 0.1),
            lambda p: PO.SGD(scheduler if whole else 0.1, parameters=p),
            steps=6,
            schedulers=(lambda optimizer: TS.StepLR(optimizer, 2, 0.5), scheduler),
        )

    return run


SCHEDULE_ROWS = {
    "scheduler-wiring": Planted(wired(True), wired(False), "lr", "lr.constant"),
    # what get_lr() tells is never read: a correct schedule is the same, whatever it tells
    "reading-the-rate": Planted(
        schedule(lambda o: TS.CosineAnnealingLR(o, 12), lambda: PS.CosineAnnealingDecay(0.1, 12))
    ),
    "one-cycle-end": Planted(
        schedule(
            lambda o: TS.OneCycleLR(o, 0.1, total_steps=20, cycle_momentum=False),
            lambda: PS.OneCycleLR(0.1, 20, end_learning_rate=0.1 / 25 / 1e4),
        ),
        schedule(
            lambda o: TS.OneCycleLR(o, 0.1, total_steps=20, cycle_momentum=False),
            lambda: PS.OneCycleLR(0.1, 20),
        ),
        *("lr", "lr.end"),
    ),
    "polynomial-end": Planted(
        schedule(lambda o: TS.PolynomialLR(o, 15), lambda: PS.PolynomialDecay(0.1, 15, 0.0, 1.0)),
        schedule(lambda o: TS.PolynomialLR(o, 15), lambda: PS.PolynomialDecay(0.1, 15, power=1.0)),
        *("lr", "lr.end"),
    ),
    "natural-exponential-and-noam": Planted(
        schedule(lambda o: TS.ExponentialLR(o, 0.5), lambda: PS.ExponentialDecay(0.1, 0.5)),
        schedule(lambda o: TS.ExponentialLR(o, 0.5), lambda: PS.NaturalExpDecay(0.1, 0.5)),
        *("lr", "lr.value"),
    ),
}

# ---- data and metrics

PT = paddle.vision.transforms


def by_pil(number: int) -> Any:
    return np.asarray(Image.fromarray(PICTURES[number]).resize((20, 20), Image.BILINEAR)), number % 4


def by_paddle(number: int) -> Any:
    return np.asarray(PT.Resize((20, 20))(Image.fromarray(PICTURES[number]))), number % 4


def by_opencv(number: int) -> Any:
    """What paddle does with arrays: OpenCV's bilinear rule, which smooths nothing."""
    given = paddle.to_tensor(PICTURES[number].transpose(2, 0, 1)[None].astype("float32"))
    found = PF.interpolate(given, size=[20, 20], mode="bilinear", align_corners=False)[0].numpy()
    return np.rint(found).astype(np.uint8).transpose(1, 2, 0), number % 4


def smoothed(antialias: bool) -> Callable[[int], Any]:
    def read(number: int) -> Any:
        given = torch.from_numpy(PICTURES[number].transpose(2, 0, 1).astype("float32")).unsqueeze(0)
        size = {"size": (20, 20), "mode": "bilinear", "align_corners": False}
        return TF.interpolate(given, **size, antialias=antialias)[0].numpy(), number % 4

    return read


def resized_tensor(number: int) -> Any:
    given = paddle.to_tensor(PICTURES[number].transpose(2, 0, 1).astype("float32"))
    return PT.resize(given, (20, 20)).numpy(), number % 4


def coloured(number: int) -> Any:
    return np.asarray(PT.adjust_hue(Image.fromarray(PICTURES[number]), 0.3)), number % 4


def coloured_in_steps(number: int) -> Any:
    """As arrays are: OpenCV keeps a hue in 180 steps, PIL in 256."""
    hue, *rest = Image.fromarray(PICTURES[number]).convert("HSV").split()
    steps = (np.asarray(hue).astype(np.int64) * 180 // 256 + round(0.3 * 180)) % 180
    turned = Image.fromarray((steps * 256 // 180).astype(np.uint8))
    return np.asarray(Image.merge("HSV", (turned, *rest)).convert("RGB")), number % 4


def pil_hue(number: int) -> Any:
    """By hand, as torchvision does it."""
    hue, *rest = Image.fromarray(PICTURES[number]).convert("HSV").split()
    turned = Image.fromarray(((np.asarray(hue).astype(np.int64) + int(0.3 * 255)) % 256).astype(np.uint8))
    return np.asarray(Image.merge("HSV", (turned, *rest)).convert("RGB")), number % 4


def flipped(generator: Callable[[], float]) -> Callable[[int], Any]:
    def read(number: int) -> Any:
        turned = PICTURES[number][:, ::-1] if generator() < 0.5 else PICTURES[number]
        return np.ascontiguousarray(turned), number % 4

    return read


def flips(shared: bool) -> Callable[[], Any]:
    def run() -> Any:
        torch.manual_seed(0), random.seed(0)
        ours = flipped(lambda: float(torch.rand(1)))
        samples = [ours(number) for number in range(len(PICTURES))]
        flip = PT.RandomHorizontalFlip(0.5)
        own = [
            (np.asarray(flip(Image.fromarray(picture))), number % 4)
            for number, picture in enumerate(PICTURES)
        ]
        return pf.compare_data(samples, [*samples] if shared else own)

    return run


def shuffled(shared: bool) -> Callable[[], Any]:
    def run() -> Any:
        torch.manual_seed(0), np.random.seed(0)
        samples = [(picture.astype("float32"), number) for number, picture in enumerate(PICTURES)]
        ours = torch.utils.data.DataLoader(samples, batch_size=4, shuffle=True)
        order = paddle.io.BatchSampler(samples, shuffle=True, batch_size=4)
        theirs = paddle.io.DataLoader(samples, batch_sampler=order, num_workers=0)
        if not shared:
            return pf.compare_data(ours, theirs)
        given = [(pictures.numpy(), labels.numpy()) for pictures, labels in ours]
        return pf.compare_data(given, [*given])

    return run


def accuracy(scores: Any, labels: Any) -> Any:
    return 100.0 * float((scores.argmax(1) == labels).mean())


def paddle_accuracy(factor: float) -> Callable[[Any, Any], Any]:
    def run(scores: Any, labels: Any) -> Any:
        given = paddle.to_tensor(scores), paddle.to_tensor(labels).unsqueeze(1)
        return factor * float(paddle.metric.accuracy(*given))

    return run


DATA_ROWS = {
    "resize-backend": Planted(data(by_pil, by_paddle), data(by_pil, by_opencv), "data", "data.resize"),
    "resize-antialiasing": Planted(
        data(smoothed(False), resized_tensor), data(smoothed(True), resized_tensor), "data", "data.resize"
    ),
    "colour-adjustment-backend": Planted(
        data(pil_hue, coloured), data(pil_hue, coloured_in_steps), "data", "data.resize"
    ),
    "random-transforms": Planted(flips(True), flips(False), "data", "data.crop"),
    "shuffling-generator": Planted(shuffled(True), shuffled(False), "data", "data.order"),
    "accuracy-unit": Planted(
        lambda: pf.compare_metric(accuracy, paddle_accuracy(100.0), LOGITS, LABELS),
        lambda: pf.compare_metric(accuracy, paddle_accuracy(1.0), LOGITS, LABELS),
        *("metric", "metric.unit"),
    ),
}

ROWS: dict[str, Planted] = {**LOSS_ROWS, **INITIAL_ROWS, **OPTIMIZER_ROWS, **SCHEDULE_ROWS, **DATA_ROWS}
