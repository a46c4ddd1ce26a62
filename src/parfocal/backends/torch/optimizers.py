"""What the optimizers of PyTorch call their settings, and how one is written: readable without it."""

from __future__ import annotations

from parfocal.backends.optimizer_spelling import OptimizerSpelling

_ADAM = {"betas": "betas", "epsilon": "eps"}
SETTINGS: dict[str, dict[str, str]] = {
    "SGD": {},
    "Momentum": {"momentum": "momentum", "dampening": "dampening", "nesterov": "nesterov"},
    "Adam": {**_ADAM, "amsgrad": "amsgrad"},
    "AdamW": {**_ADAM, "amsgrad": "amsgrad"},
    "Adamax": _ADAM,
    "NAdam": {**_ADAM, "momentum_decay": "momentum_decay"},
    "RAdam": _ADAM,
    "Adagrad": {
        "epsilon": "eps",
        "lr_decay": "lr_decay",
        "initial_accumulator": "initial_accumulator_value",
    },
    "Adadelta": {"rho": "rho", "epsilon": "eps"},
    "RMSProp": {"rho": "alpha", "epsilon": "eps", "momentum": "momentum", "centered": "centered"},
    "Rprop": {"etas": "etas", "step_sizes": "step_sizes"},
    "ASGD": {"lambd": "lambd", "alpha": "alpha", "t0": "t0"},
    "LBFGS": {
        "max_iterations": "max_iter",
        "history_size": "history_size",
        "tolerance_gradient": "tolerance_grad",
        "tolerance_change": "tolerance_change",
        "line_search": "line_search_fn",
    },
}
# What decays weights besides ``weight_decay``.
DECAYS = {"ASGD": "lambd"}
SPELLING = OptimizerSpelling(
    module="torch.optim",
    settings=SETTINGS,
    shared={"lr": "lr", "weight_decay": "weight_decay"},
    classes={"Momentum": "SGD", "RMSProp": "RMSprop"},
    decays=DECAYS,
)
