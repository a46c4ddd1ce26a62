"""``parfocal map NAME``: the counterpart of a layer, function, optimizer, schedule or initialiser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from parfocal.phrases import current_language, joined, phrase, said

if TYPE_CHECKING:
    from rich.console import Console

    from parfocal.backends.counterparts.lookup import ArgumentSide, Match


def map_names(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...", help="torch.nn.BatchNorm2d, nn.Linear, F.interpolate, paddle.optimizer.AdamW."
        ),
    ],
    to: Annotated[
        str | None, typer.Option("--to", help="torch or paddle, for a name that both frameworks have.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what a name of one framework is in the other, and how the two differ.

    Exit status 0 found, 2 a name that no table knows.
    """
    from parfocal.backends.counterparts.lookup import also_known, find
    from parfocal.cli.console import make_console
    from parfocal.report.mapping import to_json

    found = [match for name in names for match in find(name, to)]
    if as_json:
        typer.echo(json.dumps([to_json(match) for match in found], indent=2))
        return
    console = make_console()
    for number, match in enumerate(found):
        if number:
            console.print()
        _print(console, match)
    for name in names:
        if also_known(name, to):
            other = phrase("{name} is another name in paddle: --to torch shows that one", name=name)
            typer.echo(f"parfocal: {said(other)}", err=True)


def _print(console: Console, match: Match) -> None:
    from rich.markup import escape

    from parfocal.report.mapping import CATEGORIES, headline, instead, meaning

    language = current_language()
    console.print(f"[bold]{escape(said(headline(match)))}[/]")
    entry = match.counterpart
    category, about = CATEGORIES[entry.category], meaning(match, language)
    told = phrase("{category}: {meaning}", category=category, meaning=about) if about else category
    console.print(escape(said(told)))
    if match.missing:
        told = phrase(
            "not installed: {missing}; its arguments and defaults are shown as far as tables know them",
            missing=joined(" and ", match.missing),
        )
        console.print(escape(said(told)))
    if entry.name(match.target) is None:
        other = instead(match, language) or phrase("nothing is known that stands in for it")
        console.print(escape(said(phrase("instead: {other}", other=other))))
    else:
        _print_arguments(console, match)
        _print_parameters(console, match)
    _print_gaps(console, match)


def _print_arguments(console: Console, match: Match) -> None:
    from parfocal.report.mapping import relation

    if not match.arguments:
        return
    console.print(f"\n{said(phrase('arguments'))}")
    rows = [
        (*_cells(row.torch), *_cells(row.paddle), relation(row))
        if match.source == "torch"
        else (*_cells(row.paddle), *_cells(row.torch), relation(row))
        for row in match.arguments
    ]
    default = phrase("default")
    _print_table(console, (match.source, default, match.target, default, ""), rows)


def _print_parameters(console: Console, match: Match) -> None:
    from parfocal.report.mapping import layout, moves

    if not match.parameters:
        return
    console.print(f"\n{said(phrase('parameters and buffers'))}")
    rows = []
    for each in match.parameters:
        sides = layout(each.torch, each.torch_axes), layout(each.paddle, each.paddle_axes)
        rows.append((*(sides if match.source == "torch" else sides[::-1]), moves(each)))
    _print_table(console, (match.source, match.target, phrase("from torch to paddle")), rows)


def _print_gaps(console: Console, match: Match) -> None:
    from rich.markup import escape

    from parfocal.report.mapping import STATUSES

    if not match.gaps:
        console.print(f"\n{said(phrase('no difference is known beyond names and defaults'))}")
        return
    console.print(f"\n{said(phrase('differences'))}")
    for gap in match.gaps:
        words = gap.words(current_language())
        title = f"[bold]{escape(words.title)}[/]"
        told = phrase("{title} ({id}, {status})", title=title, id=gap.id, status=STATUSES[gap.status])
        console.print(f"  {said(told)}")
        for label, text in (
            ("torch", words.torch),
            ("paddle", words.paddle),
            (phrase("seen"), words.seen),
            (phrase("fix"), words.fix),
        ):
            _print_indented(console, said(label), text)


def _print_indented(console: Console, label: str, text: str) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(width=10)
    table.add_column(overflow="fold")
    table.add_row(f"    {label}", _plain(text))
    console.print(table)


def _print_table(console: Console, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, title in enumerate(header):
        table.add_column(f"  {said(title)}" if number == 0 else said(title), overflow="fold")
    for first, *rest in rows:
        table.add_row(f"  {_plain(first)}", *(_plain(said(cell)) for cell in rest))
    console.print(table)


def _cells(side: ArgumentSide | None) -> tuple[str, str]:
    return ("-", "") if side is None else (side.name, side.default or "")


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
