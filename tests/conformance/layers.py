"""The same layer in both frameworks, with settings that are nobody's default.

Each entry: kind -> (torch's class, arguments), (paddle's class, arguments), settings that must
differ because the frameworks do. Everything else must be read the same from both.
"""

from __future__ import annotations

from typing import Any

Made = tuple[str, tuple[Any, ...], dict[str, Any]]
Pair = tuple[Made, Made, dict[str, tuple[Any, Any]]]


def made(name: str, *args: Any, **kwargs: Any) -> Made:
    return name, args, kwargs


def same(name: str, *args: Any, **kwargs: Any) -> Pair:
    return made(name, *args, **kwargs), made(name, *args, **kwargs), {}


def ranked(name: str, rank: int, torch_more: dict[str, Any], paddle_more: dict[str, Any], *args: Any) -> Pair:
    return made(f"{name}{rank}d", *args, **torch_more), made(f"{name}{rank}D", *args, **paddle_more), {}


ONLY_TORCH, ONLY_PADDLE = "only torch has it", "only paddle has it"
PAIRS: dict[str, Pair] = {
    "Linear": (made("Linear", 3, 4), made("Linear", 3, 4), {"weight_layout": ("out,in", "in,out")}),
    "Bilinear": same("Bilinear", 2, 3, 4),
}
for rank in (1, 2, 3):
    window = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}
    PAIRS[f"Conv{rank}d"] = ranked(
        "Conv", rank, {**window, "bias": False}, {**window, "bias_attr": False}, 4, 6, 3
    )
    PAIRS[f"ConvTranspose{rank}d"] = (
        made(f"ConvTranspose{rank}d", 4, 6, 3, **window, output_padding=1),
        made(f"Conv{rank}DTranspose", 4, 6, 3, **window, output_padding=1),
        {},
    )
    PAIRS[f"BatchNorm{rank}d"] = ranked(
        "BatchNorm", rank, {"eps": 1e-3, "momentum": 0.3}, {"epsilon": 1e-3, "momentum": 0.7}, 5
    )
    PAIRS[f"InstanceNorm{rank}d"] = ranked(
        "InstanceNorm", rank, {"eps": 1e-3, "affine": True}, {"epsilon": 1e-3}, 5
    )
    pool = {"stride": 1, "padding": 1, "ceil_mode": True}
    PAIRS[f"MaxPool{rank}d"] = ranked(
        "MaxPool", rank, {**pool, "return_indices": True}, {**pool, "return_mask": True}, 3
    )
    divisor = ({"divisor_override": 5}, {"divisor_override": 5}) if rank > 1 else ({}, {})
    PAIRS[f"AvgPool{rank}d"] = ranked(
        "AvgPool",
        rank,
        {"padding": 1, "ceil_mode": True, **divisor[0]},
        {"padding": 1, "ceil_mode": True, "exclusive": False, **divisor[1]},
        3,
    )
    PAIRS[f"AdaptiveAvgPool{rank}d"] = ranked("AdaptiveAvgPool", rank, {}, {}, 3)
    PAIRS[f"AdaptiveMaxPool{rank}d"] = ranked(
        "AdaptiveMaxPool", rank, {"return_indices": True}, {"return_mask": True}, 3
    )
    PAIRS[f"MaxUnpool{rank}d"] = (made(f"MaxUnpool{rank}d", 3, 2, 1), made(f"MaxUnPool{rank}D", 3, 2, 1), {})
    no_layout = {"channels_last": (ONLY_PADDLE, False)}
    for name in ("ReflectionPad", "ReplicationPad", "CircularPad", "ZeroPad"):
        PAIRS[f"{name}{rank}d"] = (made(f"{name}{rank}d", 1), made(f"{name}{rank}D", 1), no_layout)
    PAIRS[f"ConstantPad{rank}d"] = (
        made(f"ConstantPad{rank}d", 1, 0.5),
        made(f"ConstantPad{rank}D", 1, value=0.5),
        no_layout,
    )
for rank in (1, 2):
    PAIRS[f"LPPool{rank}d"] = ranked("LPPool", rank, {"ceil_mode": True}, {"ceil_mode": True}, 3, 2)
for rank in (2, 3):
    PAIRS[f"Dropout{rank}d"] = ranked("Dropout", rank, {}, {}, 0.3)
    PAIRS[f"FractionalMaxPool{rank}d"] = (
        made(f"FractionalMaxPool{rank}d", 2, output_size=3),
        made(f"FractionalMaxPool{rank}D", 3, kernel_size=2),
        {},
    )
PLAIN = (
    *("ReLU", "ReLU6", "SELU", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "Mish", "Softsign"),
    *("Hardsigmoid", "Hardswish", "Identity", "Sequential", "ParameterList", "ParameterDict"),
    *("SoftMarginLoss", "MultiLabelMarginLoss", "L1Loss", "MSELoss", "BCELoss", "BCEWithLogitsLoss"),
)
PAIRS.update({name: same(name) for name in PLAIN})
recurrent = (
    {"bidirectional": True, "batch_first": True, "dropout": 0.5},
    {"direction": "bidirect", "dropout": 0.5},
)
PAIRS.update(
    {
        "SyncBatchNorm": (made("SyncBatchNorm", 5, eps=1e-3), made("SyncBatchNorm", 5, epsilon=1e-3), {}),
        "GroupNorm": (made("GroupNorm", 2, 4, eps=1e-3), made("GroupNorm", 2, 4, epsilon=1e-3), {}),
        "LayerNorm": (made("LayerNorm", (3, 4), eps=1e-3), made("LayerNorm", (3, 4), epsilon=1e-3), {}),
        "LocalResponseNorm": same("LocalResponseNorm", 3, 0.1, 0.2, 0.3),
        "Softmax2d": (made("Softmax2d"), made("Softmax2D"), {}),
        "SiLU": (made("SiLU"), made("Silu"), {}),
        "ModuleList": (made("ModuleList"), made("LayerList"), {}),
        "ModuleDict": (made("ModuleDict"), made("LayerDict"), {}),
        "ELU": same("ELU", 0.3),
        "CELU": same("CELU", 0.3),
        "GELU": (made("GELU", approximate="tanh"), made("GELU", approximate=True), {}),
        "GLU": same("GLU", 1),
        "LeakyReLU": same("LeakyReLU", 0.3),
        "PReLU": same("PReLU", 3),
        "RReLU": same("RReLU", 0.1, 0.2),
        "Threshold": (made("Threshold", 0.3, 0.7), made("ThresholdedReLU", 0.3, 0.7), {}),
        "Hardshrink": same("Hardshrink", 0.3),
        "Softshrink": same("Softshrink", 0.3),
        "Hardtanh": same("Hardtanh", -2.0, 3.0),
        "Softplus": same("Softplus", 2.0, 15.0),
        "Softmax": same("Softmax", 1),
        "LogSoftmax": same("LogSoftmax", 1),
        "Dropout": same("Dropout", 0.3),
        "AlphaDropout": same("AlphaDropout", 0.3),
        "FeatureAlphaDropout": same("FeatureAlphaDropout", 0.3),
        "Embedding": same("Embedding", 5, 3, padding_idx=-1),
        "LSTM": (made("LSTM", 3, 4, 2, **recurrent[0]), made("LSTM", 3, 4, 2, **recurrent[1]), {}),
        "GRU": (
            made("GRU", 3, 4, bias=False),
            made("GRU", 3, 4, time_major=True, bias_ih_attr=False, bias_hh_attr=False),
            {},
        ),
        "RNN": (
            made("RNN", 3, 4, nonlinearity="relu"),
            made("SimpleRNN", 3, 4, activation="relu", time_major=True),
            {},
        ),
        "RNNCell": (made("RNNCell", 3, 4), made("SimpleRNNCell", 3, 4), {}),
        "LSTMCell": same("LSTMCell", 3, 4),
        "GRUCell": same("GRUCell", 3, 4),
        "MultiheadAttention": (
            made("MultiheadAttention", 4, 2, dropout=0.3, batch_first=True),
            made("MultiHeadAttention", 4, 2, dropout=0.3),
            {"boolean_mask": ("drop", "keep")},
        ),
        "Transformer": (
            made("Transformer", 4, 2, 1, 1, 8),
            made("Transformer", 4, 2, 1, 1, 8),
            {"batch_first": (False, True)},
        ),
        "TransformerEncoderLayer": (
            made("TransformerEncoderLayer", 4, 2, 8, 0.3, "gelu", norm_first=True, batch_first=True),
            made("TransformerEncoderLayer", 4, 2, 8, 0.3, "gelu", normalize_before=True),
            {"boolean_mask": ("drop", "keep")},
        ),
        "TransformerDecoderLayer": (
            made("TransformerDecoderLayer", 4, 2, 8, 0.3, "relu", batch_first=True),
            made("TransformerDecoderLayer", 4, 2, 8, 0.3, "relu"),
            {"boolean_mask": ("drop", "keep")},
        ),
        "Upsample": (
            made("Upsample", scale_factor=2, mode="bilinear", align_corners=True),
            made("Upsample", scale_factor=2, mode="bilinear", align_corners=True),
            {},
        ),
        "UpsamplingBilinear2d": (
            made("UpsamplingBilinear2d", 4),
            made("UpsamplingBilinear2D", [4, 4]),
            {},
        ),
        "UpsamplingNearest2d": (
            made("UpsamplingNearest2d", scale_factor=2),
            made("UpsamplingNearest2D", scale_factor=2),
            {"scale_factor": (2.0, 2.0)},
        ),
        "PixelShuffle": same("PixelShuffle", 3),
        "PixelUnshuffle": same("PixelUnshuffle", 3),
        "ChannelShuffle": same("ChannelShuffle", 3),
        "Flatten": same("Flatten", 2, 3),
        "Unflatten": same("Unflatten", 1, (2, 2)),
        "Unfold": (
            made("Unfold", 3, dilation=2, padding=1, stride=2),
            made("Unfold", 3, dilations=2, paddings=1, strides=2),
            {},
        ),
        "Fold": (
            made("Fold", (8, 8), 3, dilation=2, padding=1, stride=2),
            made("Fold", (8, 8), 3, dilations=2, paddings=1, strides=2),
            {},
        ),
        "CosineSimilarity": same("CosineSimilarity", 2, 1e-3),
        "PairwiseDistance": same("PairwiseDistance", 3.0, 1e-3, True),
        "CrossEntropyLoss": (
            made("CrossEntropyLoss", ignore_index=3, reduction="sum", label_smoothing=0.1),
            made("CrossEntropyLoss", ignore_index=3, reduction="sum", label_smoothing=0.1, axis=1),
            {"soft_label": (ONLY_PADDLE, False), "use_softmax": (ONLY_PADDLE, True)},
        ),
        "NLLLoss": same("NLLLoss", ignore_index=3, reduction="sum"),
        "MultiLabelSoftMarginLoss": same("MultiLabelSoftMarginLoss", reduction="sum"),
        "MultiMarginLoss": same("MultiMarginLoss", 2, 0.5),
        "SmoothL1Loss": (
            made("SmoothL1Loss", beta=0.5),
            made("SmoothL1Loss", delta=0.5, is_huber=False),
            {},
        ),
        "KLDivLoss": same("KLDivLoss", reduction="batchmean", log_target=True),
        "CTCLoss": (made("CTCLoss", 1, "sum"), made("CTCLoss", 1, "sum"), {}),
        "CosineEmbeddingLoss": same("CosineEmbeddingLoss", margin=0.5),
        "HingeEmbeddingLoss": same("HingeEmbeddingLoss", margin=0.5),
        "MarginRankingLoss": same("MarginRankingLoss", margin=0.5),
        "GaussianNLLLoss": (
            made("GaussianNLLLoss", full=True, eps=1e-3),
            made("GaussianNLLLoss", full=True, epsilon=1e-3),
            {},
        ),
        "PoissonNLLLoss": (
            made("PoissonNLLLoss", log_input=False, full=True, eps=1e-3),
            made("PoissonNLLLoss", log_input=False, full=True, epsilon=1e-3),
            {},
        ),
        "TripletMarginLoss": (
            made("TripletMarginLoss", margin=0.5, p=1.0, eps=1e-3, swap=True),
            made("TripletMarginLoss", margin=0.5, p=1.0, epsilon=1e-3, swap=True),
            {},
        ),
        "TripletMarginWithDistanceLoss": same("TripletMarginWithDistanceLoss", margin=0.5, swap=True),
        "AdaptiveLogSoftmaxWithLoss": same("AdaptiveLogSoftmaxWithLoss", 8, 10, [4], div_value=2.0),
    }
)
