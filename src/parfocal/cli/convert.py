"""``parfocal convert CHECKPOINT --to OUT``: a checkpoint of one framework as one of the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from parfocal.errors import InputError, StorageError, TransferError
from parfocal.phrases import current_language, phrase, said


def convert(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT", help=".pth, .pt, .bin, .safetensors, .pdparams, or *.index.json of shards."
        ),
    ],
    out: Annotated[Path, typer.Option("--to", help=".pdparams, .safetensors, .pth, .pt or .bin.")],
    port: Annotated[
        str | None, typer.Option("--port", help="The model to write for: package.module:factory.")
    ] = None,
    template: Annotated[
        Path | None, typer.Option("--template", help="Or a checkpoint that looks as the result must.")
    ] = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="A saved (edited) plan to follow.")] = None,
    save_plan: Annotated[
        Path | None, typer.Option("--save-plan", help="Write the plan here, also one that failed.")
    ] = None,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Write even if tensors lack a counterpart; they stay as they are."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Convert a checkpoint between frameworks, without executing anything of it.

    Exit status 0 written, 2 a wrong call, a bad file, or tensors without a counterpart.
    """
    from parfocal.weights.convert import convert as write

    if (port is None) == (template is None):
        raise InputError(
            phrase("give either --port or --template: one of them says what the result must look like"),
            hint=phrase(
                "--port package.module:factory builds the model; --template FILE is a checkpoint of it"
            ),
        )
    try:
        found = write(checkpoint, _wanted(port, template), out, plan=plan, partial=partial)
    except TransferError as error:
        _keep(error.plan, save_plan)
        if as_json and error.plan is not None:
            typer.echo(json.dumps(_as_json(error.plan, None), indent=2))
        raise
    try:
        _keep(found, save_plan)
    except StorageError as error:
        raise StorageError(
            phrase("{message}; {out} itself is written", message=error.message, out=out), hint=error.hint
        ) from error
    if as_json:
        typer.echo(json.dumps(_as_json(found, out), indent=2))
    else:
        typer.echo(f"{found.text(current_language())}\n{said(phrase('written to {out}', out=out))}")


def _wanted(port: str | None, template: Path | None) -> Any:
    from parfocal.cli.loading import load_model

    return template if port is None else load_model(port, "--port")


def _keep(plan: Any, path: Path | None) -> None:
    if path is not None and plan is not None:
        plan.save(path)


def _as_json(plan: Any, out: Path | None) -> dict[str, Any]:
    from parfocal.weights.plan_file import to_json

    return {"written": None if out is None else str(out), "complete": plan.complete, "plan": to_json(plan)}
