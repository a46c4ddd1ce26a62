"""``parfocal report``: a saved report once more, in another form; two recorded runs as a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parfocal.errors import InputError, StorageError
from parfocal.phrases import joined, phrase, said

if TYPE_CHECKING:
    from parfocal.report.report import Report

SAVED = "report.json"
PAGE = "html"


def report(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="REPORT|RUN_A RUN_B", help="report.json, a folder with such, or two runs."),
    ],
    form: Annotated[str, typer.Option("--format", "-f", help="html, txt, json, md or junit.")] = PAGE,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write to this file. HTML goes beside its report.json by itself."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the HTML in a browser.")] = False,
) -> None:
    """Show a saved report again. Exit status 0 the same, 1 different, 2 a wrong call."""
    from parfocal.report.formats import TEXTS

    if form not in (PAGE, *TEXTS):
        raise InputError(
            phrase("--format {form} is none of {value}", form=form, value=joined(", ", (PAGE, *TEXTS))),
            hint=phrase("e.g. --format md"),
        )
    if show and form != PAGE:
        raise InputError(
            phrase("--open shows HTML, and --format is {form}", form=form), hint=phrase("leave out --format")
        )
    reports = _reports(sources)
    if form == PAGE:
        _write_pages(reports, output, show=show)
    elif output is None:
        typer.echo(TEXTS[form](reports), nl=False)
    else:
        _write(output, TEXTS[form](reports))
    raise typer.Exit(0 if all(each.ok for each in reports.values()) else 1)


def _write_pages(reports: dict[str, Report], output: Path | None, *, show: bool) -> None:
    import webbrowser

    from parfocal.report.page.page import to_html

    if output is not None and len(reports) > 1:
        raise InputError(
            phrase(
                "--output {output} is one file, and there are {count} reports",
                output=output,
                count=len(reports),
            ),
            hint=phrase("without it each page is written beside its report.json"),
        )
    for name, each in reports.items():
        source = Path(name)
        target = output or (source.with_suffix(".html") if source.is_file() else Path("report.html"))
        _write(target, to_html(each))
        typer.echo(str(target))
        if show and not webbrowser.open(target.resolve().as_uri()):
            told = said(phrase("no browser was found; open the file yourself"))
            typer.echo(f"parfocal: {told}", err=True)


def _write(target: Path, text: str) -> None:
    from parfocal.run.storage import write_atomically

    try:
        write_atomically(target, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise StorageError(
            phrase("cannot write {target}: {strerror}", target=target, strerror=error.strerror)
        ) from error


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
            phrase("{source} is one recorded run, and a report is about two", source=source),
            hint=phrase("parfocal report {source} THE_OTHER_RUN compares them", source=source),
        )
    raise InputError(
        phrase("there is no {saved} in {source} or below it", saved=SAVED, source=source),
        hint=phrase("report.save(folder), parfocal align --save or parfocal compare --save write one"),
    )
