"""The pictures of the documentation, by ``make screenshot``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import NAMES
from tests.browser.test_real_reports import resnet, three_mistakes

WIDTH = 1180


def take(folder: Path) -> None:
    """The head of the page, and one row opened, of ResNet-50 with three mistakes."""
    with tempfile.TemporaryDirectory() as room, sync_playwright() as driver:
        page_file = resnet(three_mistakes).save(room) / "report.html"
        found = next(filter(None, map(shutil.which, NAMES)))
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 980}, color_scheme="light", locale="en-US"
        )
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.screenshot(path=folder / "report.png")
        page.click(".mistake a[data-row]")
        page.wait_for_selector(".row.own .details .plot[data-drawn]")
        page.wait_for_timeout(800)  # the plots' own transitions
        page.evaluate("scrollBy(0, -110)")
        page.screenshot(path=folder / "report-row.png")
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]))
