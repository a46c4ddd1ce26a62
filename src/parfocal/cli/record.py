"""``parfocal record``: a script as it is, or a model and its inputs, as a Run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parfocal.errors import InputError, MissingFrameworkError, TransferError
from parfocal.phrases import joined, phrase, said

if TYPE_CHECKING:
    from parfocal.run.reader import Run

# What stands behind the script is the script's own.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


def record(
    context: typer.Context,
    script: Annotated[
        Path | None, typer.Argument(metavar="SCRIPT [ARGS]...", help="A Python file to run as it is.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="file.py:name or package.module:name that builds a model, instead."),
    ] = None,
    described: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="A random input of the model: x=float32[4,3,224,224]."),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Its inputs from an .npz, .npy or .safetensors.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option("--weights", help="Its weights: a checkpoint of either framework, the same for both."),
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="Of the model: eval, train or keep.")] = "eval",
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A saved (edited) plan of how these weights are copied.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the model's random inputs and weights.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run's folder.")] = Path("run"),
    tensors: Annotated[str, typer.Option("--tensors", help="full, sketch or stats.")] = "full",
    level: Annotated[str, typer.Option("--level", help="modules or ops.")] = "modules",
    grads: Annotated[bool, typer.Option("--grads/--no-grads", help="Gradients too.")] = True,
    follow: Annotated[
        Path | None,
        typer.Option("--follow", help="A run whose values every call is fed, so that its own error shows."),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Values of each step: parameter, buffer, gradient or optimizer."),
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", help="Only modules of these paths (layer1.*).")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="No modules of these paths.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Prove that recording changes nothing: every call once more.")
    ] = False,
    steps: Annotated[int, typer.Option("--steps", min=0, help="End the script after so many steps.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a line.")] = False,
) -> None:
    """Record what a model does. Options come before the script; what follows it is the script's."""
    from parfocal.capture.script import record_script
    from parfocal.cli.loading import given_inputs
    from parfocal.run.reader import load_run

    options: dict[str, Any] = {
        "tensors": tensors,
        "level": level,
        "grads": grads,
        "check": check,
        "follow": follow,
        "state": tuple(state or ()),
        "include": tuple(include or ()),
        "exclude": tuple(exclude or ()),
    }
    if script is not None and str(script).startswith("-"):
        raise InputError(
            phrase("record has no option {script}", script=script),
            hint=phrase("parfocal record --help lists them"),
        )
    if (script is None) == (model is None):
        raise InputError(phrase("record needs either a script or --model"), hint="parfocal record train.py")
    if script is not None:
        with _frameworks_told_of(script):
            given_weights = None if weights is None else partial(_give_weights, weights, plan, "MODEL")
            folder = record_script(script, context.args, out, steps=steps, prepare=given_weights, **options)
    else:
        assert model is not None
        given = given_inputs("--model", described, inputs, seed)
        folder = _record_model(_loaded(model, weights, plan, seed), given, mode, out, options)
    _print_summary(load_run(folder), as_json, out)


@contextmanager
def _frameworks_told_of(script: Path) -> Iterator[None]:
    """A script that lacks its framework says how to install it; what else it raises is its own."""
    from parfocal.backends import registry

    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in registry.BUILTIN:
            raise
        raise MissingFrameworkError(
            phrase(
                "{script} needs {title}, which is not installed",
                script=script,
                title=registry.TITLES[error.name],
            ),
            hint=f"pip install 'parfocal[{error.name}]'",
        ) from error


def _loaded(name: str, weights: Path | None, plan: Path | None, seed: int) -> Any:
    """The model, with the weights of a checkpoint if there is one."""
    from parfocal.cli.loading import load_model

    model = load_model(name, "--model", seed)
    if weights is not None:
        _give_weights(weights, plan, name, model)
    return model


def _give_weights(weights: Path, plan: Path | None, name: str, model: Any) -> None:
    from parfocal.backends import registry
    from parfocal.run.files import load_arrays

    backend = registry.of(model)
    with TemporaryDirectory() as folder:
        own = Path(folder) / "weights.safetensors"  # in the names and layouts of this model
        _convert(weights, model, own, plan, name)
        arrays = load_arrays(own)
        for entry in backend.state(model):
            if entry.path in arrays:
                backend.write(entry.value, arrays[entry.path])


def _convert(weights: Path, model: Any, out: Path, plan: Path | None, name: str) -> None:
    from parfocal.weights.convert import convert

    try:
        convert(weights, model, out, plan=plan)
    except TransferError as error:
        command = f"parfocal convert {weights} --port {name} --to {out.name} --save-plan plan.json"
        hint = phrase(
            "{command} writes a plan: see that it is right, then record with --plan plan.json",
            command=command,
        )
        raise TransferError(error.message, hint=hint, plan=error.plan) from error


def _record_model(model: Any, given: Any, mode: Any, out: Path, options: dict[str, Any]) -> Path:
    """One forward pass, and with gradients one backward pass from random output gradients."""
    from parfocal import inputs
    from parfocal.backends import registry
    from parfocal.backends.checks import check_mode
    from parfocal.capture.recording import record as recording
    from parfocal.replay.user_errors import telling

    check_mode(mode)
    backend = registry.of(model)
    inputs.check_names(given, model, phrase("model to record"))
    args, kwargs = inputs.arguments(given, backend)
    modules = partial(backend.modules, model)
    with (
        backend.mode(model, mode),
        backend.recurrence_in_training(model),
        recording(model, out, **options) as recorder,
    ):
        until = phrase("what ran until then is in {path}", path=recorder.path)
        hint = phrase("inputs without names go by position, named ones by keyword")
        with telling("model", phrase("the forward pass"), modules, joined("; ", (hint, until))):
            output = model(*args, **kwargs)
        if options["grads"]:
            hint = phrase("--no-grads records the forward pass alone")
            with telling("model", phrase("the backward pass"), modules, joined("; ", (hint, until))):
                _go_backward(backend, output)
    return recorder.path


def _go_backward(backend: Any, output: Any) -> None:
    """From gradients that are the same in every framework, and no constant: a sum hides too much."""
    import numpy as np

    from parfocal.capture.nested_values import flatten

    random = np.random.default_rng(0)
    tensors = [
        leaf
        for leaf in flatten(output).leaves.values()
        if backend.is_tensor(leaf) and backend.requires_grad(leaf)
    ]
    if tensors:
        gradients = [
            backend.from_array(random.normal(size=backend.shape(tensor)).astype(backend.dtype(tensor)))
            for tensor in tensors
        ]
        backend.backward(tensors, gradients)


def _print_summary(run: Run, as_json: bool, wanted: Path) -> None:
    from parfocal.report.coverage import Compared
    from parfocal.report.wording import amount

    summary = {
        "path": str(run.path),
        "framework": run.header.framework,
        "model": run.header.model_class,
        "complete": run.complete,
        "calls": len(run.calls()),
        "gradients": len(run.gradients()),
        "steps": len(run.steps()),
    }
    if as_json:
        typer.echo(json.dumps(summary, indent=2))
    else:
        told = phrase(
            "recorded {model} ({framework}) to {path}: {counts}",
            model=summary["model"],
            framework=summary["framework"],
            path=summary["path"],
            counts=joined(
                ", ",
                (
                    amount(Compared(name, len(found)))
                    for name, found in (
                        ("calls", run.calls()),
                        ("gradients", run.gradients()),
                        ("steps", run.steps()),
                    )
                ),
            ),
        )
        typer.echo(said(told))
    if run.path.name != wanted.name:
        told = phrase("{path} was there already and is left as it was", path=wanted)
        typer.echo(f"parfocal: {said(told)}", err=True)
