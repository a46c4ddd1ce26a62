"""The guide's steps as a table: what each needs, which checkpoint it belongs to, how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from parfocal.phrases import phrase
from parfocal.workflow.guide import judging, judging_launches, judging_training
from parfocal.workflow.guide.running_step import JudgedStep, RunningStep


@dataclass(frozen=True, slots=True)
class GuideStep:
    """One step of the guide."""

    name: str
    label: str  # with its section in the guide
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
        "model",
        phrase("3.1 model"),
        "forward",
        ("model",),
        (),
        ("inputs", "published", "plan"),
        judging.judge_model,
        writes=True,
    ),
    GuideStep(
        "evaluation_data",
        phrase("3.2 evaluation_data"),
        "metric",
        ("evaluation_data",),
        (),
        ("samples", "evaluation_data"),
        judging.judge_evaluation_data,
    ),
    GuideStep(
        "metric",
        phrase("3.3 metric"),
        "metric",
        ("model", "evaluation_data", "metric"),
        ("model", "evaluation_data"),
        ("batch_size",),
        judging.judge_metric,
        writes=True,
    ),
    GuideStep(
        "loss",
        phrase("3.4 loss"),
        "loss",
        ("model", "loss"),
        ("model",),
        ("inputs", "label"),
        judging.judge_loss,
        writes=True,
    ),
    GuideStep(
        "optimizer",
        phrase("3.5 optimizer"),
        "bp_align",
        _TRAINED,
        ("model", "loss"),
        ("inputs", "label", "updates"),
        judging.judge_optimizer,
        common="updates",
    ),
    GuideStep(
        "learning_rate",
        phrase("3.6 learning_rate"),
        "bp_align",
        ("model", "optimizer"),
        (),
        ("rates", "epochs_of_schedule"),
        judging.judge_learning_rate,
    ),
    GuideStep(
        "regularisation",
        phrase("3.7 regularisation"),
        "bp_align",
        _TRAINED,
        ("model", "loss", "optimizer"),
        ("inputs", "label", "updates"),
        judging.judge_regularisation,
        common="updates",
    ),
    GuideStep(
        "backward",
        phrase("3.8 backward"),
        "bp_align",
        _TRAINED,
        ("model", "loss", "optimizer", "learning_rate", "regularisation"),
        ("inputs", "label", "updates"),
        judging.judge_backward,
        common="updates",
        writes=True,
    ),
    GuideStep(
        "training_data",
        phrase("3.9 training_data"),
        "train_align",
        ("training_data",),
        (),
        ("samples", "order", "draws", "training_data"),
        judging.judge_training_data,
    ),
    GuideStep(
        "initialisation",
        phrase("3.10 initialisation"),
        "train_align",
        ("model",),
        ("model",),
        ("seeds",),
        judging.judge_initialisation,
    ),
    GuideStep(
        "training",
        phrase("3.11 training"),
        "train_align",
        (*_TRAINED, "training_data", "evaluation_data", "metric"),
        ("metric", "backward", "training_data"),
        (
            *("initial", "batch_size", "lockstep", "epochs", "schedule", "runs"),
            *("benchmark", "within", "draws"),
        ),
        judging_training.judge_training,
        writes=True,
    ),
    GuideStep(
        "many_cards",
        phrase("3.12 many_cards"),
        "",
        (*_TRAINED, "training_data"),
        ("backward", "training_data"),
        ("ranks", "batch_size", "lockstep", "schedule", "order"),
        judging_launches.judge_many_cards,
        optional=("parallel", "reduce"),
    ),
)
NAMES = tuple(step.name for step in STEPS)
