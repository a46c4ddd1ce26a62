"""Every kind of layer that both frameworks build, with the settings that can be wrong in a port of it.

A row is a kind, the settings of a correct pair, what it is fed with, and for each setting another
value that matters. Settings are said in the common vocabulary, so one row makes both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """``inputs``: shapes of floats, or of labels as (shape, number of classes); the first is worked on first.

    0 classes are signs: 1 or -1.
    """

    kind: str
    base: Mapping[str, Any]
    inputs: tuple[Any, ...]
    changes: Mapping[str, Any]
    positive: bool = False  # inputs are probabilities

    @property
    def has_gradients(self) -> bool:
        return "Loss" not in self.kind


LINE, PICTURE, VOLUME = (2, 6, 14), (2, 6, 10, 9), (2, 6, 6, 5, 7)
SPACES = {1: LINE, 2: PICTURE, 3: VOLUME}
FLAT, SEQUENCE = (6, 8), (3, 5, 8)
LABELS, SIGNS = ((6,), 8), (FLAT, 0)


def windows(rank: int, *sizes: int) -> list[tuple[int, ...]]:
    return [(size,) * rank for size in sizes]


def convolution(rank: int) -> Row:
    three, two, one = windows(rank, 3, 2, 1)
    base = {
        "in_channels": 6,
        "out_channels": 6,
        "kernel_size": three,
        "stride": two,
        "padding": one,
        "dilation": one,
        "groups": 2,
        "padding_mode": "zeros",
        "bias": True,
    }
    changes = {"stride": one, "padding": two, "dilation": two, "padding_mode": "replicate"}
    changes |= {"groups": 3, "kernel_size": (2,) * rank, "bias": False}
    return Row(f"Conv{rank}d", base, (SPACES[rank],), changes)


def transposed(rank: int) -> Row:
    three, two, one, none = windows(rank, 3, 2, 1, 0)
    base = {
        "in_channels": 6,
        "out_channels": 6,
        "kernel_size": three,
        "stride": two,
        "padding": one,
        "dilation": one,
        "groups": 2,
        "output_padding": one,
        "bias": True,
    }
    changes = {"stride": (3,) * rank, "padding": none, "dilation": two, "output_padding": none}
    changes |= {"groups": 3, "kernel_size": (4,) * rank, "bias": False}
    return Row(f"ConvTranspose{rank}d", base, (SPACES[rank],), changes)


def pools(rank: int) -> list[Row]:
    three, two, one, none = windows(rank, 3, 2, 1, 0)
    window = {"kernel_size": three, "stride": two, "padding": one, "ceil_mode": False}
    other = {"kernel_size": two, "stride": three, "padding": none, "ceil_mode": True}
    space = (SPACES[rank],)
    divisor = ({"divisor_override": None}, {"divisor_override": 5}) if rank > 1 else ({}, {})
    rows = [
        Row(f"MaxPool{rank}d", {**window, "return_indices": False}, space, other),
        Row(
            f"AvgPool{rank}d",
            {**window, "count_include_pad": True, **divisor[0]},
            space,
            {**other, "count_include_pad": False, **divisor[1]},
        ),
        Row(f"AdaptiveAvgPool{rank}d", {"output_size": three}, space, {"output_size": two}),
        Row(f"AdaptiveMaxPool{rank}d", {"output_size": three}, space, {"output_size": two}),
    ]
    if rank < 3:
        base = {"norm_type": 2.0, "kernel_size": three, "stride": two, "padding": none, "ceil_mode": False}
        changes = {"norm_type": 3.0, "kernel_size": two, "stride": one, "ceil_mode": True}
        rows.append(Row(f"LPPool{rank}d", base, (SPACES[rank],), changes, positive=True))
    return rows


def pads(rank: int) -> list[Row]:
    amount, other = (1, 2) * rank, (2, 1) * rank
    space = (SPACES[rank],)
    constant = {"padding": amount, "mode": "constant", "value": 0.5}
    rows = [
        Row(f"ConstantPad{rank}d", constant, space, {"padding": other, "value": 0.0, "mode": "replicate"})
    ]
    for name, mode in {"Reflection": "reflect", "Replication": "replicate", "Circular": "circular"}.items():
        changes = {"padding": other, "mode": "constant"}
        rows.append(Row(f"{name}Pad{rank}d", {"padding": amount, "mode": mode, "value": 0.0}, space, changes))
    return rows


def norms(rank: int) -> list[Row]:
    common = {"num_features": 6, "epsilon": 1e-5, "momentum": 0.1, "affine": True}
    space = (SPACES[rank],)
    return [
        Row(
            f"BatchNorm{rank}d",
            {**common, "track_running_stats": True, "batch_statistics": False},
            space,
            {"epsilon": 1e-3, "batch_statistics": True},
        ),
        Row(f"InstanceNorm{rank}d", {**common, "track_running_stats": False}, space, {"epsilon": 1e-3}),
    ]


SPATIAL = [
    row
    for rank in (1, 2, 3)
    for row in (convolution(rank), transposed(rank), *pools(rank), *pads(rank), *norms(rank))
]
ACTIVATIONS = [
    Row("LeakyReLU", {"negative_slope": 0.2}, (FLAT,), {"negative_slope": 0.01}),
    Row("ELU", {"alpha": 0.7}, (FLAT,), {"alpha": 1.0}),
    Row("CELU", {"alpha": 0.7}, (FLAT,), {"alpha": 1.0}),
    Row("GELU", {"approximate": "none"}, (FLAT,), {"approximate": "tanh"}),
    Row("Threshold", {"threshold": 0.1, "value": 0.3}, (FLAT,), {"threshold": 0.4, "value": 0.0}),
    Row("Hardshrink", {"threshold": 0.5}, (FLAT,), {"threshold": 0.2}),
    Row("Softshrink", {"threshold": 0.5}, (FLAT,), {"threshold": 0.2}),
    Row("Hardtanh", {"minimum": -0.5, "maximum": 0.5}, (FLAT,), {"minimum": -1.0, "maximum": 1.0}),
    Row("Softplus", {"beta": 1.0, "threshold": 20.0}, (FLAT,), {"beta": 2.0, "threshold": 0.5}),
    Row("GLU", {"axis": -1}, ((*SEQUENCE[:1], 6, 8),), {"axis": 1}),
    Row("Softmax", {"axis": -1}, (SEQUENCE,), {"axis": 1}),
    Row("LogSoftmax", {"axis": -1}, (SEQUENCE,), {"axis": 1}),
]
NORMS = [
    Row(
        "LayerNorm",
        {"normalized_shape": (8,), "epsilon": 1e-5, "affine": True, "bias": True},
        (FLAT,),
        {"epsilon": 1e-12},
    ),
    Row(
        "GroupNorm",
        {"num_groups": 3, "num_channels": 6, "epsilon": 1e-5, "affine": True},
        (PICTURE,),
        {"num_groups": 2, "epsilon": 1e-3},
    ),
    Row(
        "LocalResponseNorm",
        {"size": 3, "alpha": 0.5, "beta": 0.75, "k": 1.0},
        (PICTURE,),
        {"size": 5, "alpha": 0.1, "beta": 0.5, "k": 2.0},
    ),
]
RECURRENT = {
    "input_size": 8,
    "hidden_size": 6,
    "layers": 1,
    "bidirectional": False,
    "batch_first": True,
    "dropout": 0.0,
    "bias": True,
}
SQUARE = (5, 5, 8)  # time and batch can be mistaken for each other
SEQUENCES = [
    Row("LSTM", RECURRENT, (SQUARE,), {"batch_first": False, "layers": 2, "bidirectional": True}),
    Row(
        "LSTM",
        {**RECURRENT, "layers": 2, "bidirectional": True},
        (SQUARE,),
        {"layers": 1, "bidirectional": False},
    ),
    Row("GRU", RECURRENT, (SQUARE,), {"batch_first": False, "layers": 2}),
    Row("GRU", {**RECURRENT, "batch_first": False}, (SEQUENCE,), {"batch_first": True}),
    Row("RNN", {**RECURRENT, "activation": "tanh"}, (SQUARE,), {"batch_first": False, "activation": "relu"}),
    Row(
        "RNNCell",
        {"input_size": 8, "hidden_size": 6, "bias": True, "activation": "tanh"},
        (FLAT,),
        {"activation": "relu"},
    ),
    Row(
        "MultiheadAttention",
        {"embed_dim": 8, "num_heads": 4, "batch_first": True},
        (SEQUENCE,),
        {"num_heads": 2},
    ),
    Row(
        "TransformerEncoderLayer",
        {
            "model_size": 8,
            "num_heads": 4,
            "feedforward_size": 12,
            "dropout": 0.0,
            "activation": "relu",
            "norm_first": False,
            "epsilon": 1e-5,
            "batch_first": True,
        },
        (SEQUENCE,),
        {"num_heads": 2, "activation": "gelu", "norm_first": True, "epsilon": 1e-3},
    ),
    Row(
        "TransformerDecoderLayer",
        {
            "model_size": 8,
            "num_heads": 4,
            "feedforward_size": 12,
            "dropout": 0.0,
            "activation": "relu",
            "norm_first": False,
            "epsilon": 1e-5,
            "batch_first": True,
        },
        (SEQUENCE, SEQUENCE),
        {"num_heads": 2, "activation": "gelu", "norm_first": True, "epsilon": 1e-3},
    ),
    Row(
        "Embedding",
        {"num_embeddings": 9, "embedding_dim": 8, "padding_idx": None, "max_norm": None},
        (((4, 7), 9),),
        {"padding_idx": 3},
    ),
]
RESIZING = [
    Row(
        "Upsample",
        {"size": None, "scale_factor": 2.0, "mode": "bilinear", "align_corners": False},
        (PICTURE,),
        {"scale_factor": 3.0, "mode": "nearest", "align_corners": True},
    ),
    Row(
        "Upsample",
        {"size": (7, 12), "scale_factor": None, "mode": "bicubic", "align_corners": False},
        (PICTURE,),
        {"size": (8, 12), "mode": "bilinear", "align_corners": True},
    ),
    Row(
        "UpsamplingNearest2d",
        {"size": None, "scale_factor": 2.0, "mode": "nearest"},
        (PICTURE,),
        {"scale_factor": 3.0},
    ),
    Row(
        "UpsamplingBilinear2d",
        {"size": None, "scale_factor": 2.0, "mode": "bilinear"},
        (PICTURE,),
        {"scale_factor": 3.0},
    ),
    Row("PixelShuffle", {"factor": 2}, ((2, 36, 4, 4),), {"factor": 3}),
    Row("PixelUnshuffle", {"factor": 2}, ((2, 3, 12, 12),), {"factor": 3}),
    Row("ChannelShuffle", {"groups": 2}, (PICTURE,), {"groups": 3}),
    Row("Flatten", {"start_axis": 1, "stop_axis": -1}, (PICTURE,), {}),  # another shape of the same is none
    Row("Unflatten", {"axis": 1, "shape": (2, 3)}, (PICTURE,), {"shape": (3, 2)}),
    Row(
        "Unfold",
        {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1), "dilation": (1, 1)},
        (PICTURE,),
        {"kernel_size": (2, 2), "stride": (1, 1), "padding": (0, 0), "dilation": (2, 2)},
    ),
    Row(
        "Fold",
        {
            "output_size": (6, 5),
            "kernel_size": (2, 2),
            "stride": (1, 1),
            "padding": (0, 0),
            "dilation": (1, 1),
        },
        ((2, 16, 20),),
        {"output_size": (5, 6)},
    ),
    Row("Dropout", {"p": 0.4, "mode": "upscale_in_train"}, (FLAT,), {"mode": "downscale_in_infer"}),
]
TWO = [
    Row("CosineSimilarity", {"axis": 1, "epsilon": 1e-8}, (SQUARE, SQUARE), {"axis": 2, "epsilon": 5.0}),
    Row(
        "PairwiseDistance",
        {"p": 2.0, "epsilon": 1e-6, "keepdim": False},
        (FLAT, FLAT),
        {"p": 1.0, "epsilon": 1e-1},
    ),
]
REDUCTION = {"reduction": "mean"}
LOSSES = [
    Row("MSELoss", REDUCTION, (FLAT, FLAT), {"reduction": "sum"}),
    Row("L1Loss", REDUCTION, (FLAT, FLAT), {"reduction": "sum"}),
    Row(
        "SmoothL1Loss",
        {**REDUCTION, "beta": 0.5, "is_huber": False},
        (FLAT, FLAT),
        {"beta": 1.0, "is_huber": True, "reduction": "sum"},
    ),
    Row(
        "CrossEntropyLoss",
        {**REDUCTION, "ignore_index": -100, "label_smoothing": 0.1},
        (FLAT, LABELS),
        {"label_smoothing": 0.0, "ignore_index": 6, "reduction": "sum"},
    ),
    Row("BCEWithLogitsLoss", REDUCTION, (FLAT, FLAT), {"reduction": "sum"}),
    Row(
        "KLDivLoss",
        {"reduction": "batchmean", "log_target": False},
        (FLAT, FLAT),
        {"reduction": "sum", "log_target": True},
        positive=True,
    ),
    Row("HingeEmbeddingLoss", {**REDUCTION, "margin": 1.0}, (FLAT, SIGNS), {"margin": 2.0}),
    Row("SoftMarginLoss", REDUCTION, (FLAT, SIGNS), {"reduction": "sum"}),
    Row(
        "PoissonNLLLoss",
        {**REDUCTION, "full": False, "log_input": True, "epsilon": 1e-8},
        (FLAT, FLAT),
        {"log_input": False, "full": True},
        positive=True,
    ),
    Row(
        "TripletMarginLoss",
        {**REDUCTION, "margin": 1.0, "p": 2.0, "swap": False, "epsilon": 1e-6},
        (FLAT, FLAT, FLAT),
        {"margin": 2.0, "p": 1.0, "swap": True},
    ),
]
MORE = [
    Row("PReLU", {"num_parameters": 6}, (PICTURE,), {"num_parameters": 1}),
    Row("RReLU", {"lower": 0.1, "upper": 0.3}, (FLAT,), {"upper": 0.5}),
    Row("LayerNorm", {"normalized_shape": (8,), "epsilon": 1e-5, "affine": True, "bias": True}, (FLAT,),
        {"bias": False}),
    Row("LayerNorm", {"normalized_shape": (5, 8), "epsilon": 1e-5, "affine": True, "bias": True}, (SEQUENCE,),
        {"normalized_shape": (8,)}),
    Row("GroupNorm", {"num_groups": 3, "num_channels": 6, "epsilon": 1e-5, "affine": True}, (PICTURE,),
        {"affine": False}),
    Row("LSTM", {**RECURRENT, "projection_size": 3}, (SQUARE,), {"projection_size": 2}),
    Row("Bilinear", {"in1_features": 8, "in2_features": 8, "out_features": 5, "bias": True}, (FLAT, FLAT),
        {"bias": False}),
    Row("NLLLoss", {**REDUCTION, "ignore_index": -100}, (FLAT, LABELS), {"reduction": "sum"}),
    Row("MultiMarginLoss", {**REDUCTION, "p": 1, "margin": 1.0}, (FLAT, LABELS), {"p": 2, "margin": 0.5}),
    Row("MarginRankingLoss", {**REDUCTION, "margin": 0.0}, (FLAT, FLAT, SIGNS), {"margin": 0.5}),
    Row("GaussianNLLLoss", {**REDUCTION, "full": False, "epsilon": 1e-6}, (FLAT, FLAT, FLAT), {"full": True},
        positive=True),
]  # fmt: skip
ROWS = (*SPATIAL, *ACTIVATIONS, *NORMS, *SEQUENCES, *RESIZING, *TWO, *LOSSES, *MORE)


# The mistake that a wrong setting is, by the meanings in docs/codes.md; every other one is config.other.
EXPECTED = {
    "activation": "op.activation",
    "align_corners": "op.align_corners",
    "approximate": "op.approximation",
    "axis": "op.axis",
    "batch_statistics": "mode.training",
    "bias": "op.bias",
    "ceil_mode": "op.ceil_mode",
    "count_include_pad": "op.pool_count",
    "dilation": "config.dilation",
    "divisor_override": "op.pool_count",
    "epsilon": "config.epsilon",
    "groups": "config.groups",
    "ignore_index": "loss.ignore_index",
    "kernel_size": "config.kernel",
    "label_smoothing": "loss.label_smoothing",
    "negative_slope": "config.slope",
    "num_groups": "config.groups",
    "num_heads": "config.heads",
    "output_padding": "config.padding",
    "padding": "config.padding",
    "padding_mode": "op.padding_mode",
    "reduction": "loss.reduction",
    "stride": "config.stride",
}


def expected_code(setting: str, kind: str) -> str:
    """What a port with another value of this setting is to be told."""
    if (setting, kind) == ("mode", "Upsample"):
        return "op.interpolation"
    return EXPECTED.get(setting, "config.other")
