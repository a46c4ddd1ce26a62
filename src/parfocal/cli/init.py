"""``parfocal init DIR``: a small project for the guide's steps."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from parfocal.phrases import phrase, said


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the project is written.")],
    models: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--from",
            metavar="REFERENCE PORT",
            help="Your own two models, file.py:build each; without, a bundled pair that works.",
        ),
    ] = None,
    described: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="With --from: an input, x=float32[4,3,224,224].")
    ] = None,
    label: Annotated[
        str, typer.Option("--label", help="With --from: what the loss is given, int64[4]:0..10.")
    ] = "",
) -> None:
    """Write parfocal.toml and an adapter for each side. Exit status 0 written, 2 a wrong call."""
    from parfocal.workflow.guide.starting import start_project

    plan = start_project(folder, models, described or (), label)
    typer.echo(said(phrase("wrote {plan} and an adapter for each side", plan=plan)))
    typer.echo(said(phrase("next: parfocal check --project {folder}", folder=shlex.quote(str(folder)))))
