"""Common kinds of modules, each with its meaning in a line."""

from __future__ import annotations

import re

# Kinds that are the same thing up to a detail: their family.
_FAMILIES = {
    "SyncBatchNorm": "BatchNorm",
    "RNNOverCell": "RNN",
    "BiRNNOverCells": "RNN",
    "UpsamplingNearest": "Upsample",
    "UpsamplingBilinear": "Upsample",
    "ConstantPad": "Pad",
    "ZeroPad": "Pad",
    "ReflectionPad": "Pad",
    "ReplicationPad": "Pad",
    "CircularPad": "Pad",
    "HuberLoss": "SmoothL1Loss",
}


# Functions of one tensor, each value by itself or along one axis; Identity is the one that does nothing.
ACTIVATIONS = frozenset(
    {
        *(
            "ReLU",
            "ReLU6",
            "LeakyReLU",
            "ELU",
            "CELU",
            "SELU",
            "GELU",
            "SiLU",
            "Mish",
            "Sigmoid",
            "LogSigmoid",
        ),
        *("Hardsigmoid", "Hardswish", "Tanh", "Hardtanh", "Tanhshrink", "Hardshrink", "Softshrink"),
        *("Softplus", "Softsign", "Softmax", "LogSoftmax", "Identity", "Threshold"),
    }
)

# Sums of what they are given, each value times a factor that does not depend on it.
LINEAR = frozenset(
    {
        "Linear",
        *(
            f"{name}{rank}d"
            for name in ("Conv", "ConvTranspose", "AvgPool", "AdaptiveAvgPool")
            for rank in (1, 2, 3)
        ),
    }
)


def family(kind: str) -> str:
    """What a kind is when its rank and variant do not matter: "BatchNorm2d" and "BatchNorm" are one."""
    plain = re.sub(r"[123]d$", "", kind)
    return _FAMILIES.get(plain, plain)


def _ranked(meanings: dict[str, str]) -> dict[str, str]:
    return {f"{name}{rank}d": f"{text}, {rank} axes" for name, text in meanings.items() for rank in (1, 2, 3)}


KINDS: dict[str, str] = {
    "Linear": "x W + b over the last axis",
    "Bilinear": "x1 W x2 + b",
    **_ranked(
        {
            "Conv": "convolution",
            "ConvTranspose": "transposed convolution",
            "BatchNorm": "normalise each channel over the batch",
            "InstanceNorm": "normalise each channel of each sample",
            "MaxPool": "largest value of each window",
            "AvgPool": "mean of each window",
            "LPPool": "power mean of each window",
            "MaxUnpool": "put values back where a max pool took them",
            "AdaptiveAvgPool": "mean pool to a given output size",
            "AdaptiveMaxPool": "max pool to a given output size",
            "Dropout": "drop whole channels at random",
            "Pad": "padding in a mode that is a setting",
            "ConstantPad": "padding with a value",
            "ZeroPad": "padding with zeros",
            "ReflectionPad": "padding with the mirrored border",
            "ReplicationPad": "padding with the border's value",
            "CircularPad": "padding with the other side",
        }
    ),
    "BatchNorm": "BatchNorm for any number of axes, with an optional activation",
    "SyncBatchNorm": "BatchNorm over all ranks",
    "GroupNorm": "normalise groups of channels of each sample",
    "LayerNorm": "normalise the last axes",
    "RMSNorm": "divide by the root mean square of the last axes",
    "LocalResponseNorm": "divide by neighbouring channels",
    "SpectralNorm": "divide a weight by its largest singular value",
    "FractionalMaxPool2d": "max pool with random windows, 2 axes",
    "FractionalMaxPool3d": "max pool with random windows, 3 axes",
    "ReLU": "max(x, 0)",
    "ReLU6": "min(max(x, 0), 6)",
    "LeakyReLU": "x or negative_slope x",
    "PReLU": "x or a learned multiple",
    "RReLU": "x or a random multiple",
    "ELU": "x or alpha (exp(x) - 1)",
    "CELU": "x or alpha (exp(x / alpha) - 1)",
    "SELU": "scaled ELU",
    "GELU": "x times the normal distribution function",
    "SiLU": "x sigmoid(x)",
    "Mish": "x tanh(softplus(x))",
    "Sigmoid": "1 / (1 + exp(-x))",
    "LogSigmoid": "log(sigmoid(x))",
    "Hardsigmoid": "straight-line sigmoid",
    "Hardswish": "x hardsigmoid(x)",
    "Tanh": "tanh(x)",
    "Hardtanh": "x cut off at minimum and maximum",
    "Tanhshrink": "x - tanh(x)",
    "Hardshrink": "x, or 0 near 0",
    "Softshrink": "x moved towards 0 by a threshold",
    "Softplus": "log(1 + exp(beta x)) / beta",
    "Softsign": "x / (1 + |x|)",
    "Softmax": "exp(x) / sum",
    "Softmax2d": "softmax over channels",
    "Softmin": "softmax of -x",
    "LogSoftmax": "log(softmax(x))",
    "GLU": "a sigmoid(b) of the two halves",
    "Maxout": "largest of each group of channels",
    "Threshold": "x above a threshold, a value below",
    "Dropout": "drop single values at random",
    "AlphaDropout": "dropout that keeps mean and variance",
    "FeatureAlphaDropout": "alpha dropout of whole channels",
    "Embedding": "rows of a table",
    "EmbeddingBag": "sums or means of rows of a table",
    "RNN": "simple recurrent network, all time steps",
    "LSTM": "long short-term memory, all time steps",
    "GRU": "gated recurrent unit, all time steps",
    "RNNCell": "one time step of an RNN",
    "LSTMCell": "one time step of an LSTM",
    "GRUCell": "one time step of a GRU",
    "RNNOverCell": "runs a given cell over time",
    "BiRNNOverCells": "runs two given cells over time, one backwards",
    "MultiheadAttention": "attention with several heads and projections",
    "Transformer": "encoder and decoder",
    "TransformerEncoder": "stack of encoder layers",
    "TransformerDecoder": "stack of decoder layers",
    "TransformerEncoderLayer": "self-attention and feed-forward",
    "TransformerDecoderLayer": "self-attention, cross-attention and feed-forward",
    "Upsample": "resize by a mode that is a setting",
    "UpsamplingNearest2d": "resize to the nearest pixel",
    "UpsamplingBilinear2d": "resize bilinearly with aligned corners",
    "PixelShuffle": "channels become pixels",
    "PixelUnshuffle": "pixels become channels",
    "ChannelShuffle": "interleave groups of channels",
    "Flatten": "join axes",
    "Unflatten": "split an axis",
    "Unfold": "windows become columns",
    "Fold": "columns become windows",
    "Identity": "x",
    "CosineSimilarity": "cosine of the angle between vectors",
    "PairwiseDistance": "p-norm of the difference",
    "Sequential": "modules one after another",
    "ModuleList": "a list of modules",
    "ModuleDict": "modules by name",
    "ParameterList": "a list of parameters",
    "ParameterDict": "parameters by name",
    "L1Loss": "mean |x - y|",
    "MSELoss": "mean (x - y)^2",
    "SmoothL1Loss": "squared near 0, straight beyond beta",
    "HuberLoss": "smooth L1 times beta",
    "CrossEntropyLoss": "negative log likelihood of softmax",
    "NLLLoss": "negative log likelihood",
    "BCELoss": "binary cross entropy of probabilities",
    "BCEWithLogitsLoss": "binary cross entropy of logits",
    "KLDivLoss": "Kullback-Leibler divergence",
    "CTCLoss": "connectionist temporal classification",
    "RNNTLoss": "RNN transducer loss",
    "GaussianNLLLoss": "negative log likelihood of a normal distribution",
    "PoissonNLLLoss": "negative log likelihood of a Poisson distribution",
    "CosineEmbeddingLoss": "pull together or push apart by cosine",
    "HingeEmbeddingLoss": "pull together or push apart by distance",
    "MarginRankingLoss": "one score above the other by a margin",
    "SoftMarginLoss": "log(1 + exp(-y x))",
    "MultiMarginLoss": "hinge loss of several classes",
    "MultiLabelMarginLoss": "hinge loss of several labels",
    "MultiLabelSoftMarginLoss": "binary cross entropy of several labels",
    "TripletMarginLoss": "anchor nearer to positive than to negative",
    "TripletMarginWithDistanceLoss": "the same with a given distance",
    "AdaptiveLogSoftmaxWithLoss": "softmax of frequent and rare classes apart",
    "HSigmoidLoss": "hierarchical sigmoid",
}
