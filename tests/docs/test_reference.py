"""The pages of reference hold everything there is, as it is now."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import parfocal
from parfocal.cli.main import app
from tests.docs.pages import ROOT

API = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def test_the_page_of_commands_is_made_from_their_help(tmp_path: Path) -> None:
    made = tmp_path / "cli.md"
    command = [*(sys.executable, "-m", "typer", "parfocal.cli.main", "utils", "docs")]
    options = ["--name", "parfocal", "--title", "Command line", "--output", str(made)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    text = made.read_text(encoding="utf-8")
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == text, "run `make docs`"
    assert all(f"## `parfocal {each.name}`" in text for each in app.registered_commands)


def test_every_public_name_is_documented() -> None:
    told = {name.rpartition(".")[2] for name in API.findall(page("api.md"))}
    assert set(parfocal.__all__) - told - {"ParfocalError"} == set()  # errors are told as a module


def test_everything_documented_exists() -> None:
    names = [name for each in ("api.md", "backends.md") for name in API.findall(page(each))]
    assert len(names) > 25
    for name in names:
        module, _, attribute = name.rpartition(".")
        if not hasattr(import_module(module), attribute):
            import_module(name)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")
