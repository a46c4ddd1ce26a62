"""Where PyTorch's losses keep their settings: kind -> common setting name -> where to look.

A new loss is one entry here; its class name is its kind unless ``kinds.py`` says otherwise.
"""

from __future__ import annotations

from parfocal.backends.building import Recipe, recipe
from parfocal.backends.reading import REDUCTION, Table, constant, loss, present, weighted

LOSSES: dict[str, Table] = {
    "L1Loss": REDUCTION,
    "MSELoss": REDUCTION,
    "SoftMarginLoss": REDUCTION,
    "MultiLabelMarginLoss": REDUCTION,
    "CrossEntropyLoss": {**weighted("ignore_index", "label_smoothing"), "axis": constant(1)},
    "NLLLoss": weighted("ignore_index"),
    "BCELoss": weighted(),
    "BCEWithLogitsLoss": {**weighted(), "positive_weighted": present("pos_weight")},
    "MultiLabelSoftMarginLoss": weighted(),
    "MultiMarginLoss": weighted("p", "margin"),
    "SmoothL1Loss": {**REDUCTION, "beta": "beta", "is_huber": constant(False)},
    "HuberLoss": {**REDUCTION, "beta": "delta", "is_huber": constant(True)},
    "KLDivLoss": loss(log_target="log_target"),
    "CTCLoss": loss(blank="blank", zero_infinity="zero_infinity"),
    "CosineEmbeddingLoss": loss(margin="margin"),
    "HingeEmbeddingLoss": loss(margin="margin"),
    "MarginRankingLoss": loss(margin="margin"),
    "GaussianNLLLoss": loss(full="full", epsilon="eps"),
    "PoissonNLLLoss": loss(full="full", epsilon="eps", log_input="log_input"),
    "TripletMarginLoss": loss(margin="margin", p="p", epsilon="eps", swap="swap"),
    "TripletMarginWithDistanceLoss": loss(margin="margin", swap="swap"),
    "AdaptiveLogSoftmaxWithLoss": {
        "in_features": "in_features",
        "num_classes": "n_classes",
        "cutoffs": "cutoffs",
        "div_value": "div_value",
        "bias": "head_bias",
    },
}


_UNWEIGHTED = {"weighted": False}
RECIPES: dict[str, Recipe] = {
    **{name: recipe(name, "reduction") for name in ("L1Loss", "MSELoss", "SoftMarginLoss")},
    "MultiLabelMarginLoss": recipe("MultiLabelMarginLoss", "reduction"),
    "CrossEntropyLoss": recipe(
        "CrossEntropyLoss",
        *("reduction", "ignore_index", "label_smoothing"),
        fixed={**_UNWEIGHTED, "axis": 1},
    ),
    "NLLLoss": recipe("NLLLoss", "reduction", "ignore_index", fixed=_UNWEIGHTED),
    "BCELoss": recipe("BCELoss", "reduction", fixed=_UNWEIGHTED),
    "BCEWithLogitsLoss": recipe(
        "BCEWithLogitsLoss", "reduction", fixed={**_UNWEIGHTED, "positive_weighted": False}
    ),
    "MultiLabelSoftMarginLoss": recipe("MultiLabelSoftMarginLoss", "reduction", fixed=_UNWEIGHTED),
    "MultiMarginLoss": recipe("MultiMarginLoss", "reduction", "p", "margin", fixed=_UNWEIGHTED),
    "SmoothL1Loss": recipe("SmoothL1Loss", "reduction", "beta", fixed={"is_huber": False}),
    "HuberLoss": recipe("HuberLoss", "reduction", beta="delta", fixed={"is_huber": True}),
    "KLDivLoss": recipe("KLDivLoss", "reduction", "log_target"),
    "CTCLoss": recipe("CTCLoss", "reduction", "blank", "zero_infinity"),
    **{
        name: recipe(name, "reduction", "margin")
        for name in ("CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss")
    },
    "GaussianNLLLoss": recipe("GaussianNLLLoss", "reduction", "full", epsilon="eps"),
    "PoissonNLLLoss": recipe("PoissonNLLLoss", "reduction", "full", "log_input", epsilon="eps"),
    "TripletMarginLoss": recipe("TripletMarginLoss", "reduction", "margin", "p", "swap", epsilon="eps"),
}
