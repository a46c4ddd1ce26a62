"""The guide's steps as a table: what each needs, which checkpoint it belongs to, how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from parfocal.workflow.guide import judging, judging_launches
from parfocal.workflow.guide.running_step import JudgedStep, RunningStep


@dataclass(frozen=True, slots=True)
class GuideStep:
    """One step of the guide."""

    name: str
    title: str
    section: str  # of the guide
    checkpoint: str  # of workflow/acceptance/layout.py; "": of none
    factories: tuple[str, ...]  # that both sides must have
    needs: tuple[str, ...]  # steps that must have passed
    settings: tuple[str, ...]  # of the project that it depends on
    judge: Callable[[RunningStep], JudgedStep]
    optional: tuple[str, ...] = ()  # factories that it uses where they are there, besides OPTIONAL
    common: str = ""  # work that it shares with other steps
    writes: bool = False  # whether the checkpoint's files come from it


@dataclass(frozen=True, slots=True)
class CommonWork:
    """Work that several steps have in common."""

    factories: tuple[str, ...]
    needs: tuple[str, ...]
    settings: tuple[str, ...]
    optional: tuple[str, ...] = ()


# Factories that are used where they are there.
OPTIONAL = ("scheduler", "clip")
_TRAINED = ("model", "loss", "optimizer")
COMMON: Mapping[str, CommonWork] = {
    "updates": CommonWork(_TRAINED, ("model", "loss"), ("inputs", "label", "updates")),
}
STEPS = (
    GuideStep(
        *("model", "model structure and weights", "3.1", "forward"),
        *(("model",), (), ("inputs",), judging.judge_model),
        writes=True,
    ),
    GuideStep(
        *("evaluation_data", "evaluation data", "3.2", "metric"),
        *(("evaluation_data",), (), ("samples",), judging.judge_evaluation_data),
    ),
    GuideStep(
        *("metric", "metric", "3.3", "metric"),
        ("model", "evaluation_data", "metric"),
        ("model", "evaluation_data"),
        ("batch_size",),
        judging.judge_metric,
        writes=True,
    ),
    GuideStep(
        *("loss", "loss", "3.4", "loss"),
        *(("model", "loss"), ("model",), ("inputs", "label"), judging.judge_loss),
        writes=True,
    ),
    GuideStep(
        *("optimizer", "optimizer", "3.5", "bp_align"),
        _TRAINED,
        ("model", "loss"),
        ("inputs", "label", "updates"),
        judging.judge_optimizer,
        common="updates",
    ),
    GuideStep(
        *("learning_rate", "learning rate", "3.6", "bp_align"),
        *(("model", "optimizer"), (), ("rates", "epochs_of_schedule"), judging.judge_learning_rate),
    ),
    GuideStep(
        *("regularisation", "regularisation", "3.7", "bp_align"),
        _TRAINED,
        ("model", "loss", "optimizer"),
        ("inputs", "label", "updates"),
        judging.judge_regularisation,
        common="updates",
    ),
    GuideStep(
        *("backward", "backward pass", "3.8", "bp_align"),
        _TRAINED,
        ("model", "loss", "optimizer", "learning_rate", "regularisation"),
        ("inputs", "label", "updates"),
        judging.judge_backward,
        common="updates",
        writes=True,
    ),
    GuideStep(
        *("training_data", "training data", "3.9", "train_align"),
        *(("training_data",), (), ("samples", "order"), judging.judge_training_data),
    ),
    GuideStep(
        *("initialisation", "initialisation", "3.10", "train_align"),
        *(("model",), ("model",), ("seeds",), judging.judge_initialisation),
    ),
    GuideStep(
        *("training", "training", "3.11", "train_align"),
        (*_TRAINED, "training_data", "evaluation_data", "metric"),
        ("metric", "backward", "training_data"),
        ("batch_size", "lockstep", "epochs", "schedule", "benchmark", "within"),
        judging.judge_training,
        writes=True,
    ),
    GuideStep(
        *("many_cards", "many cards", "3.12", ""),
        (*_TRAINED, "training_data"),
        ("backward", "training_data"),
        ("ranks", "batch_size", "lockstep", "schedule", "order"),
        judging_launches.judge_many_cards,
        optional=("parallel", "reduce"),
    ),
)
NAMES = tuple(step.name for step in STEPS)
