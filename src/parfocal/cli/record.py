"""``parfocal record``: a script as it is, or a model and its inputs, as a Run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parfocal.errors import InputError

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
    inputs: Annotated[Path | None, typer.Option("--inputs", help="The model's inputs, as an .npz.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run's folder.")] = Path("run"),
    tensors: Annotated[str, typer.Option("--tensors", help="full, sketch or stats.")] = "full",
    level: Annotated[str, typer.Option("--level", help="modules or ops.")] = "modules",
    grads: Annotated[bool, typer.Option("--grads/--no-grads", help="Gradients too.")] = True,
    check: Annotated[
        bool, typer.Option("--check", help="Prove that recording changes nothing: every call once more.")
    ] = False,
    steps: Annotated[int, typer.Option("--steps", help="End the script after so many steps.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a line.")] = False,
) -> None:
    """Record what a model does. Options come before the script; what follows it is the script's."""
    from parfocal.capture.script import record_script
    from parfocal.run.reader import load_run

    options: dict[str, Any] = {"tensors": tensors, "level": level, "grads": grads, "check": check}
    if (script is None) == (model is None):
        raise InputError("record needs either a script or --model", hint="parfocal record train.py")
    if script is not None:
        folder = record_script(script, context.args, out, steps=steps, **options)
    else:
        assert model is not None
        folder = _record_model(model, inputs, out, options)
    _print_summary(load_run(folder), as_json)


def _record_model(name: str, inputs: Path | None, out: Path, options: dict[str, Any]) -> Path:
    """One forward pass, and with gradients one backward pass from random output gradients."""
    from parfocal import inputs as given
    from parfocal.backends import registry
    from parfocal.capture.recording import record as recording
    from parfocal.cli.loading import load_model, read_inputs

    if inputs is None:
        raise InputError("--model needs --inputs", hint="save them with numpy.savez")
    model = load_model(name, "--model")
    backend = registry.of(model)
    args, kwargs = given.arguments(read_inputs(inputs), backend)
    with recording(model, out, **options) as recorder:
        output = model(*args, **kwargs)
        if options["grads"]:
            _go_backward(backend, output)
    return recorder.path


def _go_backward(backend: Any, output: Any) -> None:
    """From gradients that are the same in every framework, and no constant: a sum hides too much."""
    import numpy as np

    from parfocal.capture.tree import flatten

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


def _print_summary(run: Run, as_json: bool) -> None:
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
        typer.echo(
            f"recorded {summary['model']} ({summary['framework']}) to {summary['path']}: "
            f"{summary['calls']} calls, {summary['gradients']} gradients, {summary['steps']} steps"
        )
