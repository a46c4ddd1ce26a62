"""Brings the Chinese catalogue up to date with the code, and compiles it: ``make messages``.

A sentence that is new gets an entry without a translation, and one that nothing says any more goes. What is
there stays as it is: translations, comments of translators, and the header.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path

import hatch_build
import typer
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from typer.core import TyperGroup

from parfocal.cli.help import speakers
from parfocal.cli.main import app
from parfocal.phrases import has_words
from parfocal.workflow.guide.starting import PROSE

SOURCES = Path(__file__).parents[1] / "src"
CATALOGUE = Path(__file__).parents[1] / hatch_build.CATALOGUE
PHRASES = ("phrase", "joined")


def main() -> None:
    before = CATALOGUE.read_text(encoding="utf-8")
    after = updated(before, said_in(SOURCES))
    if after != before:
        CATALOGUE.write_text(after, encoding="utf-8")
    hatch_build.compile_catalogue()
    entries = [message for message in read_po(StringIO(after)) if message.id]
    missing = [message.id for message in entries if not message.string]
    for template in missing:
        print(f"no translation: {template!r}")
    print(f"{hatch_build.CATALOGUE}: {len(entries)} sentences, {len(missing)} without a translation")


def updated(text: str, said: Catalog) -> str:
    """The text of a catalogue, with an entry for everything that is said."""
    catalogue = read_po(StringIO(text), abort_invalid=True)
    catalogue.update(said, no_fuzzy_matching=True)
    for message in list(catalogue):
        if not message.string and not has_words(message.id):  # values and punctuation need no translation
            catalogue.delete(message.id)
    entries = BytesIO()
    # without Babel's header, which has dates
    write_po(
        entries,
        catalogue,
        width=0,
        omit_header=True,
        sort_by_file=True,
        ignore_obsolete=True,
        include_lineno=False,
    )
    header, _, _ = text.partition("\n\n")
    return f"{header}\n\n{entries.getvalue().decode().rstrip()}\n"


def said_in(sources: Path) -> Catalog:
    """Every sentence that parfocal can say, and where."""
    said = Catalog()
    for command, text in help_texts():
        said.add(text, locations=[(command, 0)])
    for path in sorted(sources.rglob("*")):
        name = path.relative_to(sources).as_posix()
        extract = EXTRACTORS.get(path.suffix)
        if extract:
            for line, template in extract(path.read_text(encoding="utf-8")):
                said.add(template, locations=[(name, line)])
    return said


def templates_in(source: str) -> Iterator[tuple[int, str]]:
    """What ``phrase`` and ``joined`` are called with.

    Babel's own extractor does not see a call within the parentheses of another: ``print(phrase(...))``.
    """
    for call in phrase_calls(ast.parse(source)):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value:
            yield first.lineno, first.value


def phrase_calls(tree: ast.AST) -> Iterator[ast.Call]:
    nodes = list(ast.walk(tree))
    imported = {
        each.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "parfocal.phrases"
        for each in node.names
    }
    marks = imported.intersection(PHRASES)  # other functions are called joined as well
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in marks:
            yield node


def prose_in(text: str) -> Iterator[tuple[int, str]]:
    """What the files that ``parfocal init`` writes tell people."""
    for number, line in enumerate(text.split("\n"), 1):
        for prose in PROSE.findall(line):
            yield number, prose


def help_texts() -> Iterator[tuple[str, str]]:
    """What ``--help`` says, after the file of the command."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for command in (group, *group.commands.values()):
        file = f"{command.callback.__module__.replace('.', '/')}.py"
        for each in speakers(command):
            if each.help:
                yield file, each.help


EXTRACTORS = {".py": templates_in, ".txt": prose_in}


if __name__ == "__main__":
    main()
