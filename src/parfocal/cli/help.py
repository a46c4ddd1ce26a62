"""The texts of ``--help`` in the language of the terminal.

A command is built anew for each call, so that changing its texts changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from parfocal.locale import ENGLISH, catalogue
from parfocal.phrases import phrase, translate

if TYPE_CHECKING:
    from typer.core import TyperGroup


def translate_help(group: TyperGroup, language: str) -> None:
    """Give a command and its sub-commands their texts in a language; English is what they have."""
    if language == ENGLISH:
        return
    texts = catalogue(language)
    panels = {
        "command": phrase("Commands"),
        "argument": phrase("Arguments"),
        "option": phrase("Options"),
    }
    for command in (group, *group.commands.values()):
        for each in speakers(command):
            each.help = texts.get(each.help or "", each.help)
            each.rich_help_panel = translate(panels[getattr(each, "param_type_name", "command")], language)


def speakers(command: Any) -> Iterator[Any]:
    """A command and its parameters: whatever has a ``help``."""
    yield command
    yield from command.params
    option = command.get_help_option(command.context_class(command))
    if option is not None:
        yield option
