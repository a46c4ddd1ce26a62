"""``parfocal report``: a saved report once more, in another form; two recorded runs as a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parfocal.errors import InputError, StorageError

if TYPE_CHECKING:
    from parfocal.report.report import Report

SAVED = "report.json"


def report(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="REPORT|RUN_A RUN_B", help="report.json, a folder with such, or two runs."),
    ],
    form: Annotated[str, typer.Option("--format", "-f", help="txt, json, md or junit.")] = "txt",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of printing.")
    ] = None,
) -> None:
    """Show a saved report. Exit status 0 the same, 1 different, 2 a wrong call."""
    from parfocal.report.formats import TEXTS
    from parfocal.run.storage import write_atomically

    if form not in TEXTS:
        raise InputError(f"--format {form} is none of {', '.join(TEXTS)}", hint="e.g. --format md")
    reports = _reports(sources)
    text = TEXTS[form](reports)
    if output is None:
        typer.echo(text, nl=False)
    else:
        try:
            write_atomically(output, text.encode())
        except OSError as error:
            raise StorageError(f"cannot write {output}: {error.strerror}") from error
    raise typer.Exit(0 if all(each.ok for each in reports.values()) else 1)


def _reports(sources: list[Path]) -> dict[str, Report]:
    """What is to be shown, by where it was found."""
    from parfocal.report.json_reader import load_report

    if len(sources) == 2 and all(map(_is_run, sources)):
        from parfocal.workflow.recorded_runs.comparing import compare

        return {f"{sources[0]} {sources[1]}": compare(*sources)}
    return {str(path): load_report(path) for source in sources for path in _saved(source)}


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def _saved(source: Path) -> list[Path]:
    """The reports of a folder: its own, or those in the folders below it."""
    if not source.is_dir():
        return [source]
    own = source / SAVED
    found = [own] if own.is_file() else sorted(source.rglob(SAVED))
    if found:
        return found
    if _is_run(source):
        raise InputError(
            f"{source} is one recorded run, and a report is about two",
            hint=f"parfocal report {source} THE_OTHER_RUN compares them",
        )
    raise InputError(
        f"there is no {SAVED} in {source} or below it",
        hint="report.save(folder), parfocal align --save or parfocal compare --save write one",
    )
