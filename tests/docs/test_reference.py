"""The pages of reference hold everything there is, as it is now."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

import parfocal
from parfocal.cli import help_page
from parfocal.cli.main import app
from parfocal.locale import CHINESE, ENGLISH
from parfocal.report import codes_page, gaps_page, limits_page
from tests.docs.pages import ROOT

API = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


MADE = {
    "cli": help_page.page,
    "codes": codes_page.page,
    "gaps": gaps_page.page,
    "limits": limits_page.page,
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(("language", "suffix"), [(ENGLISH, ".md"), (CHINESE, ".zh.md")])
def test_a_page_made_from_the_source_is_up_to_date(name: str, language: str, suffix: str) -> None:
    assert page(f"{name}{suffix}") == MADE[name](language), "run `make docs`"


@pytest.mark.parametrize("file", ["cli.md", "cli.zh.md"])
def test_every_command_has_a_section(file: str) -> None:
    assert all(f"## `parfocal {each.name}`" in page(file) for each in app.registered_commands)


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
