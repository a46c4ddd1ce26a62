"""How optimizers are written: from tables that need no framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

from parfocal.backends import registry
from parfocal.backends.optimizer_spelling import OptimizerSpelling

WRITTEN = {
    ("paddle", "Momentum"): (
        {"momentum": 0.9, "nesterov": True},
        "Momentum(..., momentum=0.9, use_nesterov=True)",
    ),
    ("torch", "Momentum"): ({"momentum": 0.9, "nesterov": True}, "SGD(..., momentum=0.9, nesterov=True)"),
    ("paddle", "Adam"): ({"betas": (0.8, 0.9)}, "Adam(..., beta1=0.8, beta2=0.9)"),
    ("torch", "Adam"): ({"betas": (0.8, 0.9)}, "Adam(..., betas=(0.8, 0.9))"),
    ("paddle", "ASGD"): ({"batch_num": 4}, "ASGD(..., batch_num=4)"),
    ("torch", "ASGD"): ({"weight_decay": 0.1}, "ASGD(..., lambd=0.1)"),
    ("paddle", "Adagrad"): ({"lr_decay": 0.1}, "Adagrad(...)"),  # has no argument for it
    ("paddle", "Lamb"): ({"weight_decay": 0.1}, "Lamb(..., lamb_weight_decay=0.1)"),
    ("torch", "RMSProp"): ({"rho": 0.9}, "RMSprop(..., alpha=0.9)"),
}
DECOUPLED = {"decay": "decoupled", "weight_decay": 0.1}


@pytest.mark.parametrize(("side", "settings"), WRITTEN.items(), ids=map(str, WRITTEN))
def test_settings_in_the_words_of_a_framework(side, settings):
    spelling = registry.dialect(side[0]).optimizers
    assert spelling.written(side[1], settings[0]) == f"{spelling.module}.{settings[1]}"


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_decay_apart_from_the_gradient_is_a_class_of_its_own(framework):
    spelling = registry.dialect(framework).optimizers
    assert spelling.written("Adam", DECOUPLED) == f"{spelling.module}.AdamW(..., weight_decay=0.1)"


def test_a_framework_without_a_table_is_written_in_common_names():
    assert OptimizerSpelling().written("Momentum", {"momentum": 0.9}) == "Momentum(..., momentum=0.9)"


def test_the_tables_are_read_without_a_framework():
    code = (
        "import sys; from parfocal.backends import registry; "
        "print([registry.dialect(name).optimizers.written('Momentum', {}) for name in ('torch', 'paddle')]); "
        "assert not {'torch', 'paddle'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['torch.optim.SGD(...)', 'paddle.optimizer.Momentum(...)']\n"
