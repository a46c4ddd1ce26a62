"""``parfocal align REFERENCE PORT``: are they the same, and where do they first part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from parfocal.cli.console import print_report
from parfocal.errors import InputError, UnsupportedError
from parfocal.phrases import joined, phrase, said


def align(
    reference: Annotated[
        str, typer.Argument(metavar="REFERENCE", help="file.py:build or package.module:build.")
    ],
    port: Annotated[str, typer.Argument(metavar="PORT", help="The same, of the port.")],
    described: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="A random input: float32[4,3,224,224] by position, ids=int64[2,16]:0..1000 by name.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Inputs from an .npz, .npy or .safetensors.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="eval, train or keep.")] = "eval",
    backward: Annotated[bool, typer.Option("--backward/--no-backward", help="Gradients too.")] = True,
    transfer: Annotated[
        bool, typer.Option("--transfer/--no-transfer", help="Copy the weights first.")
    ] = True,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A saved (edited) plan of the transfer.")
    ] = None,
    rtol: Annotated[float | None, typer.Option("--rtol", help="Fixed tolerance instead of noise.")] = None,
    atol: Annotated[float | None, typer.Option("--atol", help="Fixed tolerance instead of noise.")] = None,
    explain: Annotated[
        str,
        typer.Option("--explain", help="yes, no, or thorough: however long the search for causes takes."),
    ] = "yes",
    memory: Annotated[
        str | None, typer.Option("--memory", help='Keep at most this in memory, e.g. "2GB".')
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of random inputs and weights.")] = 0,
    save: Annotated[
        Path | None, typer.Option("--save", help="Write report.json, .txt and .html here.")
    ] = None,
    repro: Annotated[
        Path | None,
        typer.Option("--repro", help="Write a script here that shows the first mistake by itself."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report's JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Every difference and note, in full length.")
    ] = False,
) -> None:
    """Compare a port with its reference. Exit status 0 the same, 1 different, 2 a wrong call."""
    from parfocal.cli.loading import given_inputs, load_model
    from parfocal.workflow.align import align as compare

    given = given_inputs("align", described, inputs, seed)
    models = load_model(reference, "REFERENCE", seed), load_model(port, "PORT", seed)
    report = compare(
        *models,
        given,
        mode=mode,  # type: ignore[arg-type]
        backward=backward,
        transfer=plan or transfer,
        tolerance=tolerance_of(rtol, atol),
        explain=_wish_to_explain(explain),
        memory=memory,
    )
    print_report(report, as_json=as_json, save=save, verbose=verbose)
    if repro is not None:
        typer.echo(f"parfocal: {_reproduced(report, repro, reference, port, seed)}", err=True)
    raise typer.Exit(0 if report.ok else 1)


def _reproduced(report: Any, folder: Path, reference: str, port: str, seed: int) -> str:
    """The verdict stands whether or not there is a script to write."""
    try:
        written = report.reproduce(folder, reference=reference, port=port, seed=seed)
        return said(phrase("wrote {path}: it fails until the fix is made", path=written))
    except (InputError, UnsupportedError) as error:
        return said(phrase("no script: {error}", error=error))


def _wish_to_explain(said: str) -> bool | str:
    wishes: dict[str, bool | str] = {"yes": True, "no": False, "thorough": "thorough"}
    if said not in wishes:
        raise InputError(
            phrase("--explain {said} is none of {wishes}", said=said, wishes=joined(", ", wishes)),
            hint=phrase("e.g. --explain thorough"),
        )
    return wishes[said]


def tolerance_of(rtol: float | None, atol: float | None) -> Any:
    from parfocal.judge.tolerance import Tolerance

    return None if rtol is None and atol is None else Tolerance(rtol=rtol or 0.0, atol=atol or 0.0)
