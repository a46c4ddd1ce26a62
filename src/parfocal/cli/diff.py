"""``parfocal diff A B``: compare two files or folders of named arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parfocal.errors import InputError
from parfocal.phrases import joined, phrase

if TYPE_CHECKING:
    from parfocal.judge.named import NamedRow


def diff(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="A",
            help="Of the reference: .npy, .npz, a Run folder, a folder of .npy files, or a checkpoint "
            "(.pth, .pt, .bin, .safetensors, .pdparams, *.index.json).",
        ),
    ],
    second: Annotated[Path, typer.Argument(metavar="B", help="The same, of the port.")],
    method: Annotated[
        list[str], typer.Option("--method", "-m", help="mean, max, min, rmse, relative or all; repeatable.")
    ] = ["mean"],  # noqa: B006  (typer copies it)
    threshold: Annotated[
        float, typer.Option("--threshold", "-t", help="What a value may be at most.")
    ] = 1e-6,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    log: Annotated[Path | None, typer.Option("--log", help="Also write the reprod_log text here.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Rows of the table; 0 for all.")] = 40,
) -> None:
    """Compare named arrays of two files, worst first. Exit status 0 the same, 1 different, 2 a wrong call.

    Checkpoints of two frameworks are compared in one layout and under common names.
    """
    from parfocal.judge.named import compare_named

    *sides, notes = _load(first, second)
    rows = compare_named(sides[0], sides[1], method=method, threshold=threshold)
    passed = all(row.passed for row in rows)
    if log is not None:
        _write_log((sides[0], sides[1]), method, threshold, log)
    ordered = sorted(rows, key=lambda row: (row.passed, -row.badness))
    if as_json:
        typer.echo(json.dumps({**_as_json(ordered, threshold, passed), "notes": list(notes)}, indent=2))
    else:
        _print_table(ordered, threshold, limit, passed, notes)
    raise typer.Exit(0 if passed else 1)


def _load(first: Path, second: Path) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """The arrays of both sides under common names, and what must be known of how these were found."""
    from parfocal.run.files import load_arrays
    from parfocal.weights.checkpoints.reading import is_checkpoint, load_checkpoint, of_arrays

    if first.exists() and second.exists() and first.samefile(second):
        raise InputError(
            phrase(
                "{first} and {second} are one and the same: what is compared with itself never differs",
                first=first,
                second=second,
            ),
            hint=phrase("give the file of the other side"),
        )
    if not (is_checkpoint(first) or is_checkpoint(second)):
        return load_arrays(first), load_arrays(second), ()
    from parfocal.weights.checkpoints.pairing import pair_checkpoints

    ours, theirs = (
        load_checkpoint(path) if is_checkpoint(path) else of_arrays(path, load_arrays(path))
        for path in (first, second)
    )
    pair = pair_checkpoints(ours, theirs)
    return pair.first, pair.second, pair.notes


def _label(row: NamedRow) -> str:
    return "/".join(row.name) or "(array)"


def _as_json(rows: Sequence[NamedRow], threshold: float, passed: bool) -> dict[str, Any]:
    return {
        "ok": passed,
        "threshold": threshold,
        "compared": len(rows),
        "failed": sum(not row.passed for row in rows),
        "rows": [
            {
                "name": list(row.name),
                "ok": row.passed,
                "problem": row.problem,
                "verdicts": dict(row.verdicts),
                "comparison": row.comparison.to_json() if row.comparison else None,
            }
            for row in rows
        ],
    }


def _print_table(
    rows: Sequence[NamedRow], threshold: float, limit: int, passed: bool, notes: Sequence[str]
) -> None:
    from rich.console import Console
    from rich.table import Table

    from parfocal.cli.console import make_console
    from parfocal.phrases import said

    console: Console = make_console()
    methods = tuple(rows[0].verdicts)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(said(phrase("name")), overflow="fold")
    table.add_column("")
    for method in methods:
        table.add_column(method, justify="right")
    table.add_column(said(phrase("largest difference")), overflow="fold")
    shown = rows[:limit] if limit > 0 else rows
    for row in shown:
        verdict = f"[green]{said(phrase('same'))}[/]" if row.passed else f"[red]{said(phrase('DIFFERS'))}[/]"
        numbers = [f"{row.values[method]:.3e}" if method in row.values else "-" for method in methods]
        table.add_row(
            _escape(_label(row)),
            verdict,
            *numbers,
            _escape(said(joined("; ", filter(None, (row.remark, _worst(row)))))),
        )
    console.print(table)
    if len(shown) < len(rows):
        more = phrase("... and {count} more rows (--limit 0 shows all)", count=len(rows) - len(shown))
        console.print(said(more))
    for note in notes:
        console.print(_escape(said(phrase("note: {note}", note=note))))
    failed = sum(not row.passed for row in rows)
    summary = phrase(
        "{count} compared, {failed} above {threshold}",
        count=len(rows),
        failed=failed,
        threshold=f"{threshold:g}",
    )
    word = f"[green]{said(phrase('same'))}[/]" if passed else f"[red]{said(phrase('different'))}[/]"
    console.print(said(phrase("{verdict}: {summary}", verdict=word, summary=summary)))


def _worst(row: NamedRow) -> str:
    comparison = row.comparison
    if comparison is None or comparison.max_index is None or not comparison.max_abs > 0:
        return ""
    place = ", ".join(map(str, comparison.max_index or ()))
    return phrase(
        "{difference} at [{place}]: {first} vs {second}",
        difference=f"{comparison.max_abs:.3e}",
        place=place,
        first=f"{comparison.max_a:.6g}",
        second=f"{comparison.max_b:.6g}",
    )


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _write_log(sides: tuple[Any, Any], method: list[str], threshold: float, path: Path) -> None:
    """The report that reprod_log writes; its copy on the screen would only be in the table's way."""
    from contextlib import redirect_stdout
    from io import StringIO

    from parfocal.compat.reprod_log import ReprodDiffHelper

    helper = ReprodDiffHelper()
    helper.compare_info(*sides)
    with redirect_stdout(StringIO()):
        helper.report(diff_method=method, diff_threshold=threshold, path=path)
