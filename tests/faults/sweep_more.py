"""More settings of the kinds of layers in ``sweep``: sizes, weights that are there or not, further losses.

They say little that the rows there do not, so they are swept only when all is.
"""

from __future__ import annotations

from tests.faults.sweep import FLAT, LABELS, PICTURE, RECURRENT, REDUCTION, SEQUENCE, SIGNS, SQUARE, Row

CELL = {"input_size": 8, "hidden_size": 6, "bias": True}
NORM = {"num_features": 6, "epsilon": 1e-5, "momentum": 0.1, "affine": True}
CONVOLUTION = {"in_channels": 6, "out_channels": 6, "kernel_size": (3, 3), "stride": (1, 1), "bias": True}
ENCODER = {
    "model_size": 8,
    "num_heads": 2,
    "feedforward_size": 12,
    "dropout": 0.0,
    "activation": "relu",
    "norm_first": False,
    "epsilon": 1e-5,
    "batch_first": True,
}
FOLD = {"output_size": (6, 5), "kernel_size": (2, 2), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}
MANY = {"reduction": "sum"}

MORE_ROWS = (
    Row("Linear", {"in_features": 8, "out_features": 8, "bias": True}, (FLAT,),
        {"bias": False, "out_features": 6}),
    Row("Bilinear", {"in1_features": 8, "in2_features": 8, "out_features": 5, "bias": True}, (FLAT, FLAT),
        {"out_features": 4}),
    Row("Conv2d", CONVOLUTION, (PICTURE,), {"out_channels": 4}),
    Row("ConvTranspose2d", CONVOLUTION, (PICTURE,), {"out_channels": 4}),
    Row("BatchNorm2d", {**NORM, "track_running_stats": True}, (PICTURE,), {"affine": False}),
    Row("InstanceNorm2d", {**NORM, "track_running_stats": False}, (PICTURE,), {"affine": False}),
    Row("LayerNorm", {"normalized_shape": (8,), "epsilon": 1e-5, "affine": True, "bias": True}, (FLAT,),
        {"affine": False}),
    Row("RReLU", {"lower": 0.1, "upper": 0.3}, (FLAT,), {"lower": 0.2}),
    Row("ZeroPad2d", {"padding": (1, 2, 1, 2), "mode": "constant", "value": 0.0}, (PICTURE,),
        {"padding": (2, 1, 2, 1)}),
    Row("LSTM", RECURRENT, (SQUARE,), {"hidden_size": 5}),
    Row("GRU", RECURRENT, (SQUARE,), {"hidden_size": 5, "bidirectional": True}),
    Row("RNN", {**RECURRENT, "activation": "tanh"}, (SQUARE,), {"layers": 2, "bidirectional": True}),
    Row("LSTMCell", CELL, (FLAT,), {"hidden_size": 5}),
    Row("GRUCell", CELL, (FLAT,), {"hidden_size": 5}),
    Row("MultiheadAttention", {"embed_dim": 8, "num_heads": 4, "batch_first": True, "bias": True},
        (SEQUENCE,), {"bias": False}),
    Row("TransformerEncoderLayer", ENCODER, (SEQUENCE,), {"feedforward_size": 10}),
    Row("TransformerDecoderLayer", ENCODER, (SEQUENCE, SEQUENCE), {"feedforward_size": 10}),
    Row("Unflatten", {"axis": 1, "shape": (2, 3)}, ((2, 6, 6, 5),), {"axis": 2}),
    Row("Fold", FOLD, ((2, 16, 20),), {}),
    Row("PairwiseDistance", {"p": 2.0, "epsilon": 1e-6, "keepdim": False}, (SQUARE, SQUARE), {"p": 3.0}),
    Row("UpsamplingNearest2d", {"size": (12, 14), "scale_factor": None, "mode": "nearest"}, (PICTURE,),
        {"size": (14, 12)}),
    Row("UpsamplingBilinear2d", {"size": (12, 14), "scale_factor": None, "mode": "bilinear"}, (PICTURE,),
        {"size": (14, 12)}),
    Row("Upsample", {"size": None, "scale_factor": 2.0, "mode": "bicubic", "align_corners": True}, (PICTURE,),
        {"align_corners": False, "mode": "bilinear"}),
    Row("NLLLoss", {**REDUCTION, "ignore_index": -100}, (FLAT, LABELS), MANY),
    Row("MultiMarginLoss", {**REDUCTION, "p": 1, "margin": 1.0}, (FLAT, LABELS), MANY),
    Row("MarginRankingLoss", {**REDUCTION, "margin": 0.0}, (FLAT, FLAT, SIGNS), MANY),
    Row("HingeEmbeddingLoss", {**REDUCTION, "margin": 1.0}, (FLAT, SIGNS), MANY),
    Row("GaussianNLLLoss", {**REDUCTION, "full": False, "epsilon": 1e-6}, (FLAT, FLAT, FLAT),
        {**MANY, "epsilon": 0.9}, positive=True),
    Row("PoissonNLLLoss", {**REDUCTION, "full": False, "log_input": False, "epsilon": 1e-8}, (FLAT, FLAT),
        {**MANY, "epsilon": 0.1}, positive=True),
    Row("TripletMarginLoss", {**REDUCTION, "margin": 1.0, "p": 2.0, "swap": False, "epsilon": 1e-6},
        (FLAT, FLAT, FLAT), {**MANY, "epsilon": 0.5}),
    Row("CosineEmbeddingLoss", {**REDUCTION, "margin": 0.0}, (FLAT, FLAT, ((6,), 0)),
        {**MANY, "margin": 0.3}),
)  # fmt: skip
