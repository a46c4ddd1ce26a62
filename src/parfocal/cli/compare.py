"""``parfocal compare RUN_A RUN_B``: two recorded runs, with no framework needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parfocal.cli.console import print_report
from parfocal.errors import InputError
from parfocal.phrases import phrase


def compare(
    reference: Annotated[Path, typer.Argument(metavar="RUN_A", help="The reference's run.")],
    port: Annotated[Path, typer.Argument(metavar="RUN_B", help="The port's run.")],
    rtol: Annotated[float | None, typer.Option("--rtol", help="Fixed tolerance.")] = None,
    atol: Annotated[float | None, typer.Option("--atol", help="Fixed tolerance.")] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option("--layers", help="reference.path=port.path, where modules are not found by themselves."),
    ] = None,
    rank: Annotated[int | None, typer.Option("--rank", min=0, help="Compare this rank only.")] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Write report.json, .txt and .html here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report's JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Every difference and note, in full length.")
    ] = False,
) -> None:
    """Compare two runs call by call. Exit status 0 the same, 1 different, 2 a wrong call."""
    from parfocal.cli.align import tolerance_of
    from parfocal.workflow.recorded_runs.comparing import compare as compare_runs

    tolerance = tolerance_of(rtol, atol)
    report = compare_runs(reference, port, tolerance=tolerance, layers=_layers(layers or []), rank=rank)
    print_report(report, as_json=as_json, save=save, verbose=verbose)
    raise typer.Exit(0 if report.ok else 1)


def _layers(given: list[str]) -> dict[str, str]:
    """Which module of the reference is which of the port, as ``a.b=c.d``."""
    found = {}
    for each in given:
        reference, equals, port = each.partition("=")
        if not equals:
            raise InputError(
                phrase("--layers {each} is no pair", each=each), hint="--layers encoder.0=blocks.0"
            )
        found[reference] = port
    return found
