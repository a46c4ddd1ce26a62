"""``parfocal export RUN_A RUN_B --guide DIR``: recorded runs as the guide's files and logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parfocal.cli.accept import SPELLING, print_verification, write_difference_log
from parfocal.phrases import phrase, said
from parfocal.workflow.acceptance.layout import Spelling

# What both scripts must do for each of the guide's files to be the same.
NEEDS = {
    "forward": phrase("the same weights and the same first batch, and nothing that drops at random"),
    "metric": phrase("a number that both scripts log (recorder.log) from the same weights and data"),
    "loss": phrase("what forward needs, and the same labels"),
    "bp_align": phrase("what loss needs, and the same batches, rates and updates at every step"),
    "train_align": phrase("a number that both scripts log several times, such as a metric after every epoch"),
}


def export(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The reference's recorded run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The port's recorded run.")],
    guide: Annotated[
        Path, typer.Option("--guide", metavar="DIR", help="The acceptance folder that is written.")
    ],
    spelling: SPELLING = Spelling.TOOL,
) -> None:
    """Write the files of the guide's checkpoints. Exit status 0 accepted, 1 not, 2 a wrong call.

    What the runs do not hold is told, and the folder says that it is a part.
    """
    from parfocal.judge.verdict import SIDES
    from parfocal.run.reader import load_run
    from parfocal.workflow.acceptance.recorded import values_of_runs
    from parfocal.workflow.acceptance.verification import verify
    from parfocal.workflow.acceptance.writing import write_folder

    found, missing = values_of_runs(run_a, run_b)
    headers = [load_run(run).header for run in (run_a, run_b)]
    folder, packed = write_folder(
        guide,
        found,
        spelling=spelling,
        write_log=write_difference_log,
        texts={},
        facts={
            "versions": {side: dict(header.versions) for side, header in zip(SIDES, headers, strict=True)},
            "commands": [list(header.command) for header in headers],
            "spelling": spelling.value,
            "partial": bool(missing),
        },
    )
    typer.echo(said(phrase("wrote {folder} and {packed}", folder=folder, packed=packed)))
    for name, why in missing.items():
        typer.echo(said(phrase("without {name}: {why}", name=name, why=why)))
    verified = verify(folder, partial=bool(missing))
    print_verification(verified)
    for one in verified.checkpoints:
        if not one.ok:
            typer.echo(said(phrase("{name} needs {what}", name=one.name, what=NEEDS[one.name])))
    if not verified.ok:
        _tell_beginning(run_a, run_b)
    raise typer.Exit(0 if verified.ok else 1)


def _tell_beginning(run_a: Path, run_b: Path) -> None:
    """Other weights make every file wrong: that is mended before anything else."""
    from parfocal.workflow.recorded_runs.comparing import compare

    first = compare(run_a, run_b).first
    if first is not None and first.phase == "weights" and first.cause is not None:
        typer.echo(said(first.cause.message))
        typer.echo(said(phrase("fix: {fix}", fix=first.cause.fix)))
