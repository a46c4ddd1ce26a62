"""Where PaddlePaddle's losses keep their settings: kind -> common setting name -> where to look.

A new loss is one entry here; its class name is its kind unless ``kinds.py`` says otherwise.
"""

from __future__ import annotations

from parfocal.backends import shared_tables
from parfocal.backends.building import Recipe, recipe
from parfocal.backends.reading import REDUCTION, Table, loss, present, since, weighted
from parfocal.backends.shared_tables import UNWEIGHTED

LOSSES: dict[str, Table] = {
    **shared_tables.LOSSES,
    "CrossEntropyLoss": {
        **weighted("ignore_index", "label_smoothing", "axis"),
        "soft_label": "soft_label",
        "use_softmax": "use_softmax",
    },
    "NLLLoss": {"reduction": "_reduction", "ignore_index": "_ignore_index", "weighted": present("_weight")},
    "SmoothL1Loss": {**REDUCTION, "beta": "delta", "is_huber": since("is_huber", True)},
    "KLDivLoss": {**REDUCTION, "log_target": since("log_target", False)},
    "CTCLoss": {**REDUCTION, "blank": "blank", "zero_infinity": since("zero_infinity", False)},
    "RNNTLoss": loss(blank="blank"),
    "GaussianNLLLoss": loss(full="full", epsilon="epsilon"),
    "PoissonNLLLoss": {
        "reduction": "_reduction",
        "full": "_full",
        "epsilon": "_epsilon",
        "log_input": "_log_input",
    },
    "TripletMarginLoss": loss(margin="margin", p="p", epsilon="epsilon", swap="swap"),
    "AdaptiveLogSoftmaxWithLoss": {
        "in_features": "in_features",
        "num_classes": "n_classes",
        "cutoffs": "cutoffs",
        "div_value": "div_value",
        "bias": "is_head_bias",
    },
    "HSigmoidLoss": {"in_features": "_feature_size", "num_classes": "_num_classes", "bias": present("bias")},
}


RECIPES: dict[str, Recipe] = {
    "CrossEntropyLoss": recipe(
        "CrossEntropyLoss",
        "reduction",
        "ignore_index",
        "label_smoothing",
        "axis",
        "soft_label",
        "use_softmax",
        fixed=UNWEIGHTED,
    ),
    "SmoothL1Loss": recipe("SmoothL1Loss", "reduction", "is_huber", beta="delta"),
    "GaussianNLLLoss": recipe("GaussianNLLLoss", "reduction", "full", "epsilon"),
    "PoissonNLLLoss": recipe("PoissonNLLLoss", "reduction", "full", "log_input", "epsilon"),
    "TripletMarginLoss": recipe("TripletMarginLoss", "reduction", "margin", "p", "swap", "epsilon"),
}
