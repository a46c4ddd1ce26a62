"""A real Chromium, and pages opened in it that must neither complain nor ask for anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from parfocal.report.report import Report

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "there is no Chromium: make browser, apt-get install chromium, or CHROMIUM=/path/to/it"
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


@dataclass
class Opened:
    """A page, and what it said and asked for."""

    page: Page
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def seen(self, selector: str) -> list[str]:
        """The texts of all elements that are visible."""
        found = self.page.locator(f"{selector}:visible")
        return [text.strip() for text in found.all_inner_texts()]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Save a report and open its page; at the end nobody may have complained or asked for anything."""
    opened: list[Opened] = []

    def show_it(report: Report, **settings: Any) -> Opened:
        address = (report.save(tmp_path / f"report{len(opened)}") / "report.html").as_uri()
        context = browser.new_context(**{"locale": "en-US", **settings})
        context.set_offline(True)
        page = context.new_page()
        each = Opened(page)
        page.on("console", lambda said: each.problems.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: each.problems.append(str(error)))
        page.on(
            "dialog", lambda dialog: (each.problems.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )
        page.on("request", lambda request: each.requests.append(request.url))
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        each.requests.remove(address)
        opened.append(each)
        return each

    yield show_it
    for each in opened:
        each.page.context.close()
        assert each.problems == []
        assert [url for url in each.requests if not url.startswith("data:")] == []
