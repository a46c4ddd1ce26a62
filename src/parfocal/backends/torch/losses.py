"""Where PyTorch's losses keep their settings: kind -> common setting name -> where to look.

A new loss is one entry here; its class name is its kind unless ``kinds.py`` says otherwise.
"""

from __future__ import annotations

from parfocal.backends import shared_tables
from parfocal.backends.building import Recipe, recipe
from parfocal.backends.reading import REDUCTION, Table, constant, loss, weighted
from parfocal.backends.shared_tables import UNWEIGHTED

LOSSES: dict[str, Table] = {
    **shared_tables.LOSSES,
    "CrossEntropyLoss": {**weighted("ignore_index", "label_smoothing"), "axis": constant(1)},
    "NLLLoss": weighted("ignore_index"),
    "SmoothL1Loss": {**REDUCTION, "beta": "beta", "is_huber": constant(False)},
    "HuberLoss": {**REDUCTION, "beta": "delta", "is_huber": constant(True)},
    "GaussianNLLLoss": loss(full="full", epsilon="eps"),
    "PoissonNLLLoss": loss(full="full", epsilon="eps", log_input="log_input"),
    "TripletMarginLoss": loss(margin="margin", p="p", epsilon="eps", swap="swap"),
    "AdaptiveLogSoftmaxWithLoss": {
        "in_features": "in_features",
        "num_classes": "n_classes",
        "cutoffs": "cutoffs",
        "div_value": "div_value",
        "bias": "head_bias",
    },
}


RECIPES: dict[str, Recipe] = {
    "CrossEntropyLoss": recipe(
        "CrossEntropyLoss",
        "reduction",
        "ignore_index",
        "label_smoothing",
        fixed={**UNWEIGHTED, "axis": 1},
    ),
    "SmoothL1Loss": recipe("SmoothL1Loss", "reduction", "beta", fixed={"is_huber": False}),
    "HuberLoss": recipe("HuberLoss", "reduction", beta="delta", fixed={"is_huber": True}),
    "GaussianNLLLoss": recipe("GaussianNLLLoss", "reduction", "full", epsilon="eps"),
    "PoissonNLLLoss": recipe("PoissonNLLLoss", "reduction", "full", "log_input", epsilon="eps"),
    "TripletMarginLoss": recipe("TripletMarginLoss", "reduction", "margin", "p", "swap", epsilon="eps"),
}
