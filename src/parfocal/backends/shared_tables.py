"""What the tables of layers have in common: entries that read the same in both frameworks.

``settings.py``, ``recipes.py`` and ``losses.py`` of a framework begin with them, and add or replace the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from parfocal.backends.building import Recipe, recipe
from parfocal.backends.reading import REDUCTION, Table, loss, present, weighted

Entry = TypeVar("Entry")
UNWEIGHTED = {"weighted": False}


def ranked(name: str, entry: Callable[[int], Entry]) -> dict[str, Entry]:
    """An entry for one, two and three spatial axes: ``Conv1d``, ``Conv2d``, ``Conv3d``."""
    return {f"{name}{rank}d": entry(rank) for rank in (1, 2, 3)}


def resize(name: str, mode: str, *, align_corners: bool) -> Recipe:
    return recipe(name, "size", "scale_factor", fixed={"mode": mode, "align_corners": align_corners})


SETTINGS: dict[str, Table] = {
    **{name: {} for name in ("ReLU", "ReLU6", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "SiLU")},
    **{name: {} for name in ("Mish", "Softsign", "Hardsigmoid", "Hardswish", "Softmax2d", "Identity")},
    **{name: {} for name in ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")},
    "AlphaDropout": {"p": "p"},
    "FeatureAlphaDropout": {"p": "p"},
}
_MARGINS = ("CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss")
LOSSES: dict[str, Table] = {
    **dict.fromkeys(("L1Loss", "MSELoss", "SoftMarginLoss", "MultiLabelMarginLoss"), REDUCTION),
    "BCELoss": weighted(),
    "BCEWithLogitsLoss": {**weighted(), "positive_weighted": present("pos_weight")},
    "MultiLabelSoftMarginLoss": weighted(),
    "MultiMarginLoss": weighted("p", "margin"),
    "KLDivLoss": loss(log_target="log_target"),
    "CTCLoss": loss(blank="blank", zero_infinity="zero_infinity"),
    **dict.fromkeys(_MARGINS, loss(margin="margin")),
    "TripletMarginWithDistanceLoss": loss(margin="margin", swap="swap"),
}


_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ReLU", "ReLU6", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "Mish", "Softsign"), ()),
    **dict.fromkeys(("Hardsigmoid", "Hardswish", "Identity"), ()),
    **dict.fromkeys(("ELU", "CELU"), ("alpha",)),
    "LeakyReLU": ("negative_slope",),
    "RReLU": ("lower", "upper"),
    "Softplus": ("beta", "threshold"),
    **dict.fromkeys(("AlphaDropout", "FeatureAlphaDropout"), ("p",)),
    "Embedding": (
        *("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq"),
    ),
    **dict.fromkeys(("L1Loss", "MSELoss", "SoftMarginLoss", "MultiLabelMarginLoss"), ("reduction",)),
    "KLDivLoss": ("reduction", "log_target"),
    "CTCLoss": ("reduction", "blank", "zero_infinity"),
    **dict.fromkeys(_MARGINS, ("reduction", "margin")),
}
_WITHOUT_WEIGHTS: dict[str, tuple[str, ...]] = {  # can be built only so
    "NLLLoss": ("reduction", "ignore_index"),
    **dict.fromkeys(("BCELoss", "MultiLabelSoftMarginLoss"), ("reduction",)),
    "MultiMarginLoss": ("reduction", "p", "margin"),
}
RECIPES: dict[str, Recipe] = {
    **{name: recipe(name, *arguments) for name, arguments in _ARGUMENTS.items()},
    **{name: recipe(name, *arguments, fixed=UNWEIGHTED) for name, arguments in _WITHOUT_WEIGHTS.items()},
    "BCEWithLogitsLoss": recipe(
        "BCEWithLogitsLoss", "reduction", fixed={**UNWEIGHTED, "positive_weighted": False}
    ),
}
