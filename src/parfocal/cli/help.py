"""The texts of ``--help`` in the language of the terminal.

A command is built anew for each call, so that changing its texts changes nothing else. Its parts are those of
click, which newer versions of typer bring along and older ones import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from parfocal.locale import CHINESE


def translate_help(group: Any, language: str) -> None:
    """Give a command and its sub-commands their texts in a language; English is what they have."""
    if language != CHINESE:
        return
    from parfocal.locale.zh.help import HELP

    for command in (group, *group.commands.values()):
        _translate(command, HELP)
        command.rich_help_panel = HELP["Commands"]


def _translate(command: Any, texts: Mapping[str, str]) -> None:
    command.help = texts.get(command.help, command.help)
    for option in filter(None, (*command.params, command.get_help_option(typer.Context(command)))):
        option.help = texts.get(option.help, option.help)
        panel = "Arguments" if option.param_type_name == "argument" else "Options"
        option.rich_help_panel = texts[panel]
