"""Where PyTorch's losses keep their settings: kind -> common setting name -> where to look.

A new loss is one entry here; its class name is its kind unless ``kinds.py`` says otherwise.
"""

from __future__ import annotations

from parfocal.backends.reading import Table, constant, present

REDUCTION: Table = {"reduction": "reduction"}


def _weighted(*names: str) -> Table:
    return {**REDUCTION, **{name: name for name in names}, "weighted": present("weight")}


def _loss(**names: str) -> Table:
    return {**REDUCTION, **names}


LOSSES: dict[str, Table] = {
    "L1Loss": REDUCTION,
    "MSELoss": REDUCTION,
    "SoftMarginLoss": REDUCTION,
    "MultiLabelMarginLoss": REDUCTION,
    "CrossEntropyLoss": {**_weighted("ignore_index", "label_smoothing"), "axis": constant(1)},
    "NLLLoss": _weighted("ignore_index"),
    "BCELoss": _weighted(),
    "BCEWithLogitsLoss": {**_weighted(), "positive_weighted": present("pos_weight")},
    "MultiLabelSoftMarginLoss": _weighted(),
    "MultiMarginLoss": _weighted("p", "margin"),
    "SmoothL1Loss": {**REDUCTION, "beta": "beta", "is_huber": constant(False)},
    "HuberLoss": {**REDUCTION, "beta": "delta", "is_huber": constant(True)},
    "KLDivLoss": _loss(log_target="log_target"),
    "CTCLoss": _loss(blank="blank", zero_infinity="zero_infinity"),
    "CosineEmbeddingLoss": _loss(margin="margin"),
    "HingeEmbeddingLoss": _loss(margin="margin"),
    "MarginRankingLoss": _loss(margin="margin"),
    "GaussianNLLLoss": _loss(full="full", epsilon="eps"),
    "PoissonNLLLoss": _loss(full="full", epsilon="eps", log_input="log_input"),
    "TripletMarginLoss": _loss(margin="margin", p="p", epsilon="eps", swap="swap"),
    "TripletMarginWithDistanceLoss": _loss(margin="margin", swap="swap"),
    "AdaptiveLogSoftmaxWithLoss": {
        "in_features": "in_features",
        "num_classes": "n_classes",
        "cutoffs": "cutoffs",
        "div_value": "div_value",
        "bias": "head_bias",
    },
}
