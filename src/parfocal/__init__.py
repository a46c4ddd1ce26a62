"""parfocal: swap the framework, keep the numbers.

The public names are loaded when they are first used, so that importing parfocal costs
next to nothing and never imports a framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from parfocal.capture.recording import record
    from parfocal.errors import ParfocalError
    from parfocal.inputs import sides
    from parfocal.judge.metrics import compare_arrays
    from parfocal.judge.tolerance import Tolerance
    from parfocal.run.reader import load_run
    from parfocal.weights.convert import convert
    from parfocal.weights.plan import Plan
    from parfocal.weights.transfer import transfer
    from parfocal.workflow.align import align
    from parfocal.workflow.batches import load_batches, save_batches
    from parfocal.workflow.data import compare_data
    from parfocal.workflow.data_cards import data_card
    from parfocal.workflow.initialisation import compare_init
    from parfocal.workflow.losses import compare_loss
    from parfocal.workflow.metrics import compare_metric
    from parfocal.workflow.recorded_runs.comparing import compare
    from parfocal.workflow.results import compare_result
    from parfocal.workflow.schedules import compare_schedule
    from parfocal.workflow.seeding import seed
    from parfocal.workflow.small_datasets import small_dataset
    from parfocal.workflow.training.comparing import compare_training

_HOMES = {
    "ParfocalError": "parfocal.errors",
    "Plan": "parfocal.weights.plan",
    "Tolerance": "parfocal.judge.tolerance",
    "align": "parfocal.workflow.align",
    "compare": "parfocal.workflow.recorded_runs.comparing",
    "compare_arrays": "parfocal.judge.metrics",
    "compare_data": "parfocal.workflow.data",
    "compare_init": "parfocal.workflow.initialisation",
    "compare_loss": "parfocal.workflow.losses",
    "compare_metric": "parfocal.workflow.metrics",
    "compare_result": "parfocal.workflow.results",
    "compare_schedule": "parfocal.workflow.schedules",
    "compare_training": "parfocal.workflow.training.comparing",
    "data_card": "parfocal.workflow.data_cards",
    "load_batches": "parfocal.workflow.batches",
    "save_batches": "parfocal.workflow.batches",
    "convert": "parfocal.weights.convert",
    "load_run": "parfocal.run.reader",
    "record": "parfocal.capture.recording",
    "seed": "parfocal.workflow.seeding",
    "sides": "parfocal.inputs",
    "small_dataset": "parfocal.workflow.small_datasets",
    "transfer": "parfocal.weights.transfer",
}

__all__ = [
    "ParfocalError",
    "Plan",
    "Tolerance",
    "align",
    "compare",
    "compare_arrays",
    "compare_data",
    "compare_init",
    "compare_loss",
    "compare_metric",
    "compare_result",
    "compare_schedule",
    "compare_training",
    "convert",
    "data_card",
    "load_batches",
    "load_run",
    "record",
    "save_batches",
    "seed",
    "sides",
    "small_dataset",
    "transfer",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'parfocal' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
