"""The documentation, built and opened in a browser, asks for nothing but its own files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
# one that is translated, one with a picture of the pipeline, one with images
PAGES = ("index.md", "index.zh.md", "architecture.md", "report.md")
ASKING = "asking.md"  # a page that a test must be able to catch
SETTINGS = """
INHERIT: {config}
docs_dir: docs
strict: false
validation: {{ links: {{ not_found: ignore, unrecognized_links: ignore, anchors: ignore }} }}
nav: [index.md, architecture.md, report.md, asking.md]
"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Some pages under the project's own settings, built and served from this machine."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    for name in PAGES:
        shutil.copy(ROOT / "docs" / name, folder / "docs")
    shutil.copytree(ROOT / "docs" / "images", folder / "docs" / "images")
    (folder / "docs" / ASKING).write_text("# Asking\n\n![](https://example.invalid/picture.png)\n")
    (folder / "mkdocs.yml").write_text(SETTINGS.format(config=ROOT / "mkdocs.yml"))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "-d", "built"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietHandler, directory=str(folder / "built"))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def asked_elsewhere(browser: Browser, site: str, page: str) -> list[str]:
    """What a page asks other machines for."""
    context = browser.new_context()
    opened = context.new_page()
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(f"{site}/{page}", wait_until="networkidle")
    assert opened.locator("h1").count() == 1
    context.close()
    assert any(url.endswith(".js") for url in asked)  # the page's own: requests were seen
    return [url for url in asked if not url.startswith((site, "data:"))]


@pytest.mark.parametrize("page", ["", "zh/", "architecture/", "report/"])
def test_nothing_is_loaded_from_elsewhere(browser: Browser, site: str, page: str) -> None:
    assert asked_elsewhere(browser, site, page) == []


def test_what_is_loaded_from_elsewhere_is_seen(browser: Browser, site: str) -> None:
    assert asked_elsewhere(browser, site, "asking/") == ["https://example.invalid/picture.png"]
