"""Every Python and shell block of the documentation runs; translations have the same ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, original_of, originals, translations
from tests.warm import search_path

RUN = ("python", "bash")
LEFT = ("text", "toml", "console", "mermaid", "diff", "")  # shown, not run
STATUS = re.compile(r"# exit status (\d)$")
NEEDS_COMPILER = "needs a C++ compiler"  # a block that says so runs only where there is one


def found(language: str) -> list[pytest.param]:
    return [
        pytest.param(block.code, id=f"{page.stem}-{number}")
        for page in originals()
        for number, block in enumerate(
            each for each in blocks(page.read_text(encoding="utf-8")) if each.language == language
        )
    ]


# What the compilers' own code is warned of.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Tensor do not have 'place' interface:UserWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("code", found("python"))
def test_python_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if NEEDS_COMPILER in code and shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("the block needs a C++ compiler, and there is none")
    file = tmp_path / "block.py"  # compilers read the source
    file.write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(file), "exec"), {"__name__": "__documentation__"})


def run_line(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={**os.environ, "PATH": search_path()},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("code", found("bash"))
def test_shell_commands_run(code: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for line in filter(None, code.splitlines()):
        wanted = STATUS.search(line)
        done = run_line(line, tmp_path)
        assert done.returncode == (int(wanted[1]) if wanted else 0), f"{line}\n{done.stdout}{done.stderr}"


def test_a_shell_command_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no-such-command"):
        test_shell_commands_run("no-such-command\n", tmp_path)


def test_there_are_blocks_to_run() -> None:
    assert len(found("python")) >= 20
    assert len(found("bash")) >= 3


def test_every_block_has_a_known_language() -> None:
    for page in (*originals(), *translations()):
        for block in blocks(page.read_text(encoding="utf-8")):
            assert block.language in (*RUN, *LEFT), (page.name, block)


def runnable(page: Path) -> list[Block]:
    return [block for block in blocks(page.read_text(encoding="utf-8")) if block.language in RUN]


@pytest.mark.parametrize("page", translations(), ids=lambda page: page.name)
def test_a_translation_has_the_same_blocks(page: Path) -> None:
    assert runnable(page) == runnable(original_of(page))


def test_readme_shows_exactly_the_two_commands_first() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first_screen = "\n".join(text.splitlines()[:20])
    assert re.findall(r"^    (make \w+)", first_screen, re.MULTILINE) == ["make demo", "make test"]
