"""Where PaddlePaddle's losses keep their settings: kind -> common setting name -> where to look.

A new loss is one entry here; its class name is its kind unless ``kinds.py`` says otherwise.
"""

from __future__ import annotations

from parfocal.backends.building import Recipe, recipe
from parfocal.backends.reading import REDUCTION, Table, loss, present, weighted

LOSSES: dict[str, Table] = {
    "L1Loss": REDUCTION,
    "MSELoss": REDUCTION,
    "SoftMarginLoss": REDUCTION,
    "MultiLabelMarginLoss": REDUCTION,
    "CrossEntropyLoss": {
        **weighted("ignore_index", "label_smoothing", "axis"),
        "soft_label": "soft_label",
        "use_softmax": "use_softmax",
    },
    "NLLLoss": {"reduction": "_reduction", "ignore_index": "_ignore_index", "weighted": present("_weight")},
    "BCELoss": weighted(),
    "BCEWithLogitsLoss": {**weighted(), "positive_weighted": present("pos_weight")},
    "MultiLabelSoftMarginLoss": weighted(),
    "MultiMarginLoss": weighted("p", "margin"),
    "SmoothL1Loss": {**REDUCTION, "beta": "delta", "is_huber": "is_huber"},
    "KLDivLoss": loss(log_target="log_target"),
    "CTCLoss": loss(blank="blank", zero_infinity="zero_infinity"),
    "RNNTLoss": loss(blank="blank"),
    "CosineEmbeddingLoss": loss(margin="margin"),
    "HingeEmbeddingLoss": loss(margin="margin"),
    "MarginRankingLoss": loss(margin="margin"),
    "GaussianNLLLoss": loss(full="full", epsilon="epsilon"),
    "PoissonNLLLoss": {
        "reduction": "_reduction",
        "full": "_full",
        "epsilon": "_epsilon",
        "log_input": "_log_input",
    },
    "TripletMarginLoss": loss(margin="margin", p="p", epsilon="epsilon", swap="swap"),
    "TripletMarginWithDistanceLoss": loss(margin="margin", swap="swap"),
    "AdaptiveLogSoftmaxWithLoss": {
        "in_features": "in_features",
        "num_classes": "n_classes",
        "cutoffs": "cutoffs",
        "div_value": "div_value",
        "bias": "is_head_bias",
    },
    "HSigmoidLoss": {"in_features": "_feature_size", "num_classes": "_num_classes", "bias": present("bias")},
}


_UNWEIGHTED = {"weighted": False}
RECIPES: dict[str, Recipe] = {
    **{name: recipe(name, "reduction") for name in ("L1Loss", "MSELoss", "SoftMarginLoss")},
    "MultiLabelMarginLoss": recipe("MultiLabelMarginLoss", "reduction"),
    "CrossEntropyLoss": recipe(
        "CrossEntropyLoss",
        *("reduction", "ignore_index", "label_smoothing", "axis", "soft_label", "use_softmax"),
        fixed=_UNWEIGHTED,
    ),
    "NLLLoss": recipe("NLLLoss", "reduction", "ignore_index", fixed=_UNWEIGHTED),
    "BCELoss": recipe("BCELoss", "reduction", fixed=_UNWEIGHTED),
    "BCEWithLogitsLoss": recipe(
        "BCEWithLogitsLoss", "reduction", fixed={**_UNWEIGHTED, "positive_weighted": False}
    ),
    "MultiLabelSoftMarginLoss": recipe("MultiLabelSoftMarginLoss", "reduction", fixed=_UNWEIGHTED),
    "MultiMarginLoss": recipe("MultiMarginLoss", "reduction", "p", "margin", fixed=_UNWEIGHTED),
    "SmoothL1Loss": recipe("SmoothL1Loss", "reduction", "is_huber", beta="delta"),
    "KLDivLoss": recipe("KLDivLoss", "reduction", "log_target"),
    "CTCLoss": recipe("CTCLoss", "reduction", "blank", "zero_infinity"),
    **{
        name: recipe(name, "reduction", "margin")
        for name in ("CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss")
    },
    "GaussianNLLLoss": recipe("GaussianNLLLoss", "reduction", "full", "epsilon"),
    "PoissonNLLLoss": recipe("PoissonNLLLoss", "reduction", "full", "log_input", "epsilon"),
    "TripletMarginLoss": recipe("TripletMarginLoss", "reduction", "margin", "p", "swap", "epsilon"),
}
