"""The documentation's page of commands, made from their help; run it to print the page.

``python -m parfocal.cli.help_page zh`` prints it in Chinese.
"""

from __future__ import annotations

import re
import sys

import typer
from typer.cli import get_docs_for_click
from typer.core import TyperGroup

from parfocal.cli.help import translate_help
from parfocal.cli.main import app
from parfocal.locale import CHINESE, ENGLISH

TITLES = {ENGLISH: "Command line", CHINESE: "命令行"}
# What typer writes itself, by pattern.
CHINESE_MARKS = {
    r"^\*\*Usage\*\*:$": "**用法**：",
    r"^\*\*Arguments\*\*:$": "**参数**：",
    r"^\*\*Options\*\*:$": "**选项**：",
    r"^\*\*Commands\*\*:$": "**命令**：",
    r"  \[required\]$": "（必需）",
    r"  \[default: ([^;]*); (.*)\]$": r"（默认 \1，\2）",
    r"  \[default: (.*)\]$": r"（默认 \1）",
    r"  \[(.*)\]$": r"（\1）",
    r"^(\* `[^`]*`): ": r"\1：",
}


def page(language: str = ENGLISH) -> str:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    translate_help(command, language)
    if language == CHINESE:
        for each in command.commands.values():
            each.short_help = (each.help or "").partition("。")[0] + "。"
    context = typer.Context(command, info_name="parfocal")
    text = get_docs_for_click(obj=command, ctx=context, name="parfocal", title=TITLES[language])
    if language == CHINESE:
        for pattern, mark in CHINESE_MARKS.items():
            text = re.sub(pattern, mark, text, flags=re.MULTILINE)
    return f"{text.strip()}\n"


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:2]))
