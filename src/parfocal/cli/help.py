"""The texts of ``--help`` in the language of the terminal.

A command is built anew for each call, so that changing its texts changes nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parfocal.locale import CHINESE

if TYPE_CHECKING:
    from typer.core import TyperCommand, TyperGroup


def translate_help(group: TyperGroup, language: str) -> None:
    """Give a command and its sub-commands their texts in a language; English is what they have."""
    if language != CHINESE:
        return
    from parfocal.locale.zh.help import HELP

    _translate(group, HELP)
    for command in group.commands.values():
        _translate(command, HELP)  # type: ignore[arg-type]
        command.rich_help_panel = HELP["Commands"]  # type: ignore[attr-defined]


def _translate(command: TyperCommand | TyperGroup, texts: dict[str, str]) -> None:
    command.help = texts.get(command.help or "", command.help)
    for option in (*command.params, command.get_help_option(command.context_class(command))):
        if option is None:
            continue
        option.help = texts.get(option.help or "", option.help)  # type: ignore[attr-defined]
        panel = "Arguments" if option.param_type_name == "argument" else "Options"
        option.rich_help_panel = texts[panel]  # type: ignore[attr-defined]
