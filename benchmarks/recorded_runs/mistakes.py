"""The mistakes of the benchmark: a table, one entry each.

Every entry says which side it is planted into, what is changed there, and what is right to say about it: the
phase, step, rank and place of the first difference, and the causes that are true. A place is the path of a
layer, ``""`` the model itself. Where all parameters are wrong alike, any of their layers is a right place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from benchmarks.recorded_runs.pairs import (
    CONVOLUTIONAL,
    LLAMA,
    PERCEPTRON,
    TAGGER,
    Rule,
    Side,
    cross_entropy,
    next_word,
)
from benchmarks.recorded_runs.planting import (
    Plant,
    accuracy,
    change,
    each_batch,
    edit,
    half_detached,
    in_percent,
    normalise,
    one_element,
    other_scale,
    reversed_labels,
    reversed_samples,
    rule,
    set_to,
    swap,
    weighted,
    wrong_largest,
)

ROOT = ("",)
ANYWHERE: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mistake:
    """One mistake in a port, and what is right to say about it."""

    group: str
    name: str
    side: Side
    plant: Plant
    phase: str
    places: tuple[str, ...]
    codes: tuple[str, ...] = ()  # none: nothing that is recorded proves a cause
    steps: tuple[int, ...] = (0,)  # a setting that differs is right to name until it first shows
    rank: int = 0
    finding: tuple[str, ...] = ()  # code and words of a finding, where the verdict is not the place for it


LOGGING = replace(PERCEPTRON, logged=accuracy)
RANKS = replace(PERCEPTRON, ranks=2)
NESTEROV = replace(PERCEPTRON, rule=Rule(momentum=0.9, nesterov=True))
WARM = replace(LLAMA, rates=(0.33, 0.67, 1.0))

FORWARD = [
    ("other epsilon of a LayerNorm", PERCEPTRON, change(epsilon=1e-3), ("norm",), ("config.epsilon",)),
    ("GELU for ReLU, a layer", PERCEPTRON, change(activation="GELU"), ("act",)),
    ("residual left out of a perceptron", PERCEPTRON, change(no_residual=True), ROOT),
    ("other epsilon of a BatchNorm", CONVOLUTIONAL, change(epsilon=1e-3), ("bn2",), ("config.epsilon",)),
    ("Tanh for ReLU, a layer", CONVOLUTIONAL, change(activation="Tanh"), ("act2",)),
    ("residual left out of a convolutional net", CONVOLUTIONAL, change(no_residual=True), ROOT),
    ("maximum for mean when pooling", CONVOLUTIONAL, change(pool="max"), ROOT),
    ("other stride", CONVOLUTIONAL, change(stride=2), ("conv1",), ("config.stride",)),
    ("layer left in evaluation mode", CONVOLUTIONAL, set_to(evaluates="bn2"), ("bn2",), ("mode.training",)),
    ("embedding scaled", TAGGER, change(scale=8**0.5), ROOT),
    ("sentence read backward", TAGGER, change(reverse=True), ROOT),
    ("output reversed in time", TAGGER, change(flip=True), ROOT),
    ("scale of the attention", LLAMA, change(scaling=0.3), ("layers.0.attention",)),
    ("no causal mask", LLAMA, change(no_mask=True), ("layers.0.attention",)),
    ("mask off by one", LLAMA, change(mask_offset=True, wrong_layer=1), ("layers.1.attention",)),
    ("rotation the other way", LLAMA, change(rotation=True), ("layers.0.attention",)),
    ("other rotary base", LLAMA, change(base=1000.0), ("rotary",)),
    ("heads split wrongly", LLAMA, change(heads_inner=True), ("layers.0.attention",)),
    ("keys shared in turn", LLAMA, change(tiled=True, wrong_layer=1), ("layers.1.attention",)),
    ("GELU for SiLU, a function", LLAMA, change(activation="gelu"), ("layers.0.feed",)),
    ("residual left out of a block", LLAMA, change(no_residual=True, wrong_layer=1), ("layers.1",)),
    ("norm left out of a block", LLAMA, change(no_second_norm=True), ("layers.0",)),
    ("output rolled", LLAMA, change(rolled=True), ROOT),
]
SETTINGS = [
    ("large epsilon of one's own norm", LLAMA, change(epsilon=0.1), ("layers.0.norm1",), ("config.epsilon",)),
]
WEIGHTS = [
    (
        "two layers swapped",
        PERCEPTRON,
        swap("hidden.weight", "wide.weight"),
        ("hidden",),
        "weight.mismatched",
    ),
    (
        "square matrix untransposed",
        PERCEPTRON,
        edit("hidden.weight", np.transpose),
        ("hidden",),
        "weight.transposed",
    ),
    ("one element", PERCEPTRON, edit("head.weight", one_element), ("head",), "weight.mismatched"),
    ("bias left at zero", PERCEPTRON, edit("first.bias", np.zeros_like), ("first",), "weight.mismatched"),
    (
        "gate and up swapped",
        LLAMA,
        swap("layers.1.feed.gate.weight", "layers.1.feed.up.weight"),
        ("layers.1.feed.gate",),
        "weight.mismatched",
    ),
    (
        "projection untransposed",
        LLAMA,
        edit("layers.0.attention.o.weight", np.transpose),
        ("layers.0.attention.o",),
        "weight.transposed",
    ),
    (
        "head tied that should not be",
        LLAMA,
        change(tied=True),
        ("", "head", "embed"),
        ("weight.tied", "weight.missing"),
    ),
    (
        "kernels mirrored",
        CONVOLUTIONAL,
        edit("conv2.weight", lambda w: w[..., ::-1]),
        ("conv2",),
        "weight.permuted",
    ),
    (
        "gates in another order",
        TAGGER,
        edit("rnn.weight_hh_l0", partial(np.roll, shift=72, axis=0)),
        ("rnn",),
        "weight.permuted",
    ),
]
DATA = [
    ("batches in another order", PERCEPTRON, set_to(data=lambda b: [b[0], b[2], b[1]]), 1, "data.order"),
    ("samples in another order", CONVOLUTIONAL, set_to(data=reversed_samples), 0, "data.order"),
    ("other normalisation", CONVOLUTIONAL, each_batch(normalise), 0, "data.normalisation"),
    ("other scale and offset", PERCEPTRON, each_batch(other_scale), 0, "data.normalisation"),
    (
        "channels reversed",
        CONVOLUTIONAL,
        each_batch(lambda x: x[:, ::-1]),
        0,
        ("data.channel_order", "data.order"),
    ),
    ("other words in the last batch", LLAMA, each_batch(lambda x: (x + 1) % 23, step=2), 2, ()),
    ("words read from the end", TAGGER, each_batch(lambda x: x[:, ::-1]), 0, ()),
]
LOSS = [
    ("labels in another order", CONVOLUTIONAL, set_to(data=reversed_labels), ()),
    ("sum for mean", PERCEPTRON, set_to(loss=partial(cross_entropy, reduction="sum")), "loss.reduction"),
    (
        "sum for mean over words",
        TAGGER,
        set_to(loss=partial(cross_entropy, reduction="sum")),
        "loss.reduction",
    ),
    ("weighted", PERCEPTRON, set_to(loss=weighted), "loss.weight"),
    ("label smoothing", PERCEPTRON, set_to(loss=partial(cross_entropy, label_smoothing=0.1)), ()),
    ("a class ignored", TAGGER, set_to(loss=partial(cross_entropy, ignore_index=2)), ()),
    ("words ignored", LLAMA, set_to(loss=partial(next_word, ignore_index=0)), ()),
    ("labels not shifted", LLAMA, set_to(loss=cross_entropy), ()),
]
BACKWARD = [
    ("loss half detached", PERCEPTRON, set_to(loss=half_detached), ROOT, ("grad.scale",)),
    ("detach before one of two uses", PERCEPTRON, change(detach="hidden"), ("", "hidden")),
    ("detach before all uses", PERCEPTRON, change(detach="wide"), ("", "wide")),
    ("detach after a recurrent layer", TAGGER, change(detach=True), ("", "mix", "rnn")),
    (
        "detach of an attention",
        LLAMA,
        change(detach_attention=True, wrong_layer=1),
        ("layers.1", "layers.1.attention"),
    ),
    ("gradient halved by a hook", PERCEPTRON, change(hook=0.5), ("", "hidden")),
    ("gradient halved between convolutions", CONVOLUTIONAL, change(hook=0.5), ("", "act1")),
    (
        "gradient halved in a block",
        LLAMA,
        change(hook=True),
        ("layers.0", "layers.0.feed", "layers.0.feed.down"),
    ),
]
GRADIENT = [
    ("frozen layer", PERCEPTRON, set_to(frozen="wide.weight"), ("wide",), 0, ()),
    ("frozen key", LLAMA, set_to(frozen="layers.0.attention.k.weight"), ("layers.0.attention.k",), 0, ()),
    ("gradients not cleared", PERCEPTRON, set_to(clears=False), ANYWHERE, 1, ("grad.accumulated",)),
    ("gradients not cleared before Adam", LLAMA, set_to(clears=False), ANYWHERE, 1, ("grad.accumulated",)),
    ("no clipping", LLAMA, set_to(clip=None), ROOT, 0, ("grad.clip",)),
    ("clipping by value", LLAMA, set_to(clip=("value", 0.05)), ROOT, 0, ("grad.clip",)),
    ("clipping to another norm", LLAMA, set_to(clip=("norm", 0.5)), ROOT, 0, ("grad.clip",)),
    ("summed over ranks", RANKS, set_to(reduction="sum"), ANYWHERE, 0, ("dist.reduction",)),
    ("not reduced over ranks", RANKS, set_to(reduction="none"), ANYWHERE, 0, ("dist.reduction",)),
]
RATE = [
    ("rate halved", LLAMA, rule(rate=0.005), 0, "lr.value"),
    ("rate one step ahead", CONVOLUTIONAL, set_to(rates=(1.0, 0.1, 0.1)), 1, "lr.offset"),
    ("rate constant", CONVOLUTIONAL, set_to(rates=(1.0, 1.0, 1.0)), 2, "lr.constant"),
    ("no warm-up", WARM, set_to(rates=(1.0, 1.0, 1.0)), 0, ("lr.constant", "lr.value")),
]
UPDATE = [
    ("no weight decay", PERCEPTRON, rule(decay=0.0), 0, "optim.weight_decay"),
    ("no decoupled decay", LLAMA, rule(decay=0.0), 0, "optim.weight_decay"),
    ("coupled for decoupled decay", LLAMA, rule(kind="Adam"), 0, ("optim.weight_decay", "optim.kind")),
    ("other momentum", PERCEPTRON, rule(momentum=0.8), (0, 1), "optim.momentum"),
    ("no nesterov", NESTEROV, rule(nesterov=False), 0, "optim.momentum"),
    ("other betas", LLAMA, rule(betas=(0.9, 0.999)), (0, 1), "optim.betas"),
    ("other epsilon of Adam", TAGGER, rule(epsilon=1e-3), 0, "optim.epsilon"),
    ("SGD for Adam", TAGGER, rule(kind="SGD"), 0, "optim.kind"),
    ("momentum forgotten", PERCEPTRON, set_to(forgets=2), 2, ("optim.momentum", "optim.update")),
]
GROUPS_LEFT_OUT = [
    ("layer left out of the optimizer", PERCEPTRON, rule(without="wide"), ("wide",)),
    (
        "block left out of the optimizer",
        LLAMA,
        rule(without="layers.1.feed"),
        ("layers.1.feed.gate", "layers.1.feed.up", "layers.1.feed.down"),
    ),
]
LOGS = [
    ("metric in percent", LOGGING, set_to(logged=in_percent)),
    ("metric of one class", LOGGING, set_to(logged=wrong_largest)),
]
RANK = [
    (
        "other data on rank 1",
        replace(each_batch(other_scale)(RANKS), only_rank=1),
        "data",
        ROOT,
        "data.normalisation",
        1,
    ),
    ("shares of the ranks swapped", replace(RANKS, shares=(1, 0)), "data", ROOT, "dist.sampler", 0),
    ("loss weighted on rank 1", replace(RANKS, loss=weighted, only_rank=1), "loss", ROOT, "loss.weight", 1),
    (
        "other epsilon on rank 1",
        replace(RANKS, changes={"epsilon": 1e-3}, only_rank=1),
        "forward",
        ("norm",),
        "config.epsilon",
        1,
    ),
]


def _codes(codes: str | tuple[str, ...]) -> tuple[str, ...]:
    return (codes,) if isinstance(codes, str) else codes


def _steps(steps: int | tuple[int, ...]) -> tuple[int, ...]:
    return (steps,) if isinstance(steps, int) else steps


def _same(side: Side) -> Plant:
    return lambda _: side


MISTAKES: tuple[Mistake, ...] = (
    *(Mistake("forward", name, side, plant, "forward", *more) for name, side, plant, *more in FORWARD),
    *(Mistake("settings", name, side, plant, "forward", *more) for name, side, plant, *more in SETTINGS),
    Mistake(
        "settings",
        "small epsilon of one's own norm",
        LLAMA,
        change(epsilon=2e-5),
        "",
        ROOT,
        finding=("run.settings", "layers.0.norm1"),
    ),
    *(
        Mistake("weights", name, side, plant, "weights", places, _codes(codes))
        for name, side, plant, places, codes in WEIGHTS
    ),
    *(
        Mistake("data", name, side, plant, "data", ROOT, _codes(codes), _steps(step))
        for name, side, plant, step, codes in DATA
    ),
    *(Mistake("loss", name, side, plant, "loss", ROOT, _codes(codes)) for name, side, plant, codes in LOSS),
    *(Mistake("backward", name, side, plant, "backward", *more) for name, side, plant, *more in BACKWARD),
    *(
        Mistake("gradients", name, side, plant, "gradient", places, codes, _steps(step))
        for name, side, plant, places, step, codes in GRADIENT
    ),
    Mistake("gradients", "two backward passes", PERCEPTRON, set_to(backward_passes=2), "loss", ROOT),
    *(
        Mistake("schedule", name, side, plant, "lr", ROOT, _codes(codes), _steps(step))
        for name, side, plant, step, codes in RATE
    ),
    *(
        Mistake("update", name, side, plant, "optimizer", ANYWHERE, _codes(codes), _steps(step))
        for name, side, plant, step, codes in UPDATE
    ),
    *(
        Mistake("update", name, side, plant, "optimizer", places, ("optim.lr_group",))
        for name, side, plant, places in GROUPS_LEFT_OUT
    ),
    Mistake(
        "buffers",
        "other momentum of a BatchNorm",
        CONVOLUTIONAL,
        change(momentum=0.3),
        "buffer",
        ("bn2",),
        ("config.momentum",),
    ),
    *(Mistake("logs", name, side, plant, "metric", ROOT) for name, side, plant in LOGS),
    *(
        Mistake("ranks", name, RANKS, _same(wrong), phase, places, _codes(codes), rank=rank)
        for name, wrong, phase, places, codes, rank in RANK
    ),
    Mistake(
        "crashes",
        "run ends in a layer",
        PERCEPTRON,
        set_to(crashes=(1, "wide")),
        "",
        ROOT,
        finding=("run.incomplete", "step 1, in wide"),
    ),
    Mistake(
        "crashes",
        "run ends in a block",
        LLAMA,
        set_to(crashes=(0, "layers.1.feed")),
        "",
        ROOT,
        finding=("run.incomplete", "step 0, in layers.1.feed"),
    ),
)
