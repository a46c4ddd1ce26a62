"""The example notebook, executed in a real kernel: reports and plans show as HTML, progress is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[3] / "examples"
pytestmark = pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries


def outputs_of(cell: nbformat.NotebookNode, kind: str) -> list[str]:
    return [output.data[kind] for output in cell.outputs if kind in output.get("data", {})]


def test_the_example_runs_and_shows_html(tmp_path):
    for name in ("notebook.ipynb", "encoder_torch.py", "encoder_paddle.py"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    notebook = nbformat.read(tmp_path / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # what is committed was not run
    told: list[str] = []

    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    heard = client.process_message

    def process(message, cell, cell_index):
        if message["msg_type"] == "update_display_data":
            told.append(message["content"]["data"]["text/plain"])
        return heard(message, cell, cell_index)

    client.process_message = process
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    (wrong,) = outputs_of(code[1], "text/html")
    assert "DIFFERENT" in wrong
    assert "config.epsilon" in wrong
    (plan,) = outputs_of(code[2], "text/html")
    assert "<table>" in plan
    assert "embedding.weight" in plan
    assert (tmp_path / "report" / "report.html").is_file()
    (right,) = outputs_of(code[4], "text/html")
    assert "SAME" in right
    assert any(text.endswith(" ...") for text in told)
    assert told[-1] == ""  # the line is gone when the work is done
