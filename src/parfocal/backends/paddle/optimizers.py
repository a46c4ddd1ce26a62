"""What the optimizers of PaddlePaddle call their settings, and how one is written: readable without it."""

from __future__ import annotations

from parfocal.backends.optimizer_spelling import OptimizerSpelling, SettingNames

_ADAM: SettingNames = {"betas": ("beta1", "beta2"), "epsilon": "epsilon"}
SETTINGS: dict[str, SettingNames] = {
    "SGD": {},
    "Momentum": {"momentum": "momentum", "nesterov": "use_nesterov"},
    "Adam": {**_ADAM, "amsgrad": "amsgrad"},
    "AdamW": {**_ADAM, "amsgrad": "amsgrad"},
    "Adamax": _ADAM,
    "NAdam": {**_ADAM, "momentum_decay": "momentum_decay"},
    "RAdam": _ADAM,
    "Lamb": _ADAM,
    "Adagrad": {"epsilon": "epsilon", "initial_accumulator": "initial_accumulator_value"},
    "Adadelta": {"rho": "rho", "epsilon": "epsilon"},
    "RMSProp": {"rho": "rho", "epsilon": "epsilon", "momentum": "momentum", "centered": "centered"},
    "Rprop": {"etas": "etas", "step_sizes": "learning_rate_range"},
    "ASGD": {"batch_num": "n"},
    "LBFGS": {
        "max_iterations": "max_iter",
        "history_size": "history_size",
        "tolerance_gradient": "tolerance_grad",
        "tolerance_change": "tolerance_change",
        "line_search": "line_search_fn",
    },
}
SPELLING = OptimizerSpelling(
    module="paddle.optimizer",
    settings=SETTINGS,
    shared={"lr": "learning_rate", "weight_decay": "weight_decay"},
    arguments={"n": "batch_num"},
    decays={"Lamb": "lamb_weight_decay"},
)
