"""The tools under test: each module has ``ask(case) -> Answer``. Only the named one is imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from benchmarks.faults.scoring import Answer, Case

TOOLS = {
    "parfocal": "parfocal_tool:ask",
    "padiff": "padiff_tool:ask",
    "padiff-tuned": "padiff_tool:ask_tuned",
    "reprod_log": "reprod_log_tool:ask",
}


def load(tool: str) -> Callable[[Case], Answer]:
    module, _, function = TOOLS[tool].partition(":")
    found: Callable[[Case], Answer] = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return found
