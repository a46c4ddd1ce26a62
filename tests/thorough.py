"""Files of tests that take long: whole models, many processes, launches. ``make test-all`` runs them too.

What they check is checked elsewhere in small as well. ``make test`` leaves them out, to be quick enough for
every change.
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
THOROUGH = (
    *("browser/test_real_reports.py", "browser/test_site.py"),
    *("docs/test_code_blocks.py", "docs/test_worked_examples.py"),
    *("examples/test_environments.py", "examples/test_newcomer.py", "examples/test_readmes.py"),
    *("faults/test_fixes.py", "faults/test_fixes_of_lines_run_often.py", "faults/test_fused_activations.py"),
    *("faults/test_loops.py", "faults/test_recorded_runs.py", "faults/test_reproduce.py"),
    *(
        "guide/test_many_cards.py",
        "guide/test_original_tool.py",
        "guide/test_processes.py",
        "guide/test_steps.py",
    ),
    *("pairs/launches/test_launches.py", "pairs/training/test_initialisation.py"),
    *("pairs/weights/test_vision.py", "pairs/weights/test_wrong_code.py"),
    *("pairs/workflow/test_notebook.py", "pairs/workflow/test_plugin_pairs.py"),
    *("pairs/workflow/test_recorded_llama.py", "pairs/workflow/test_recorded_training.py"),
    *("unit/judge/test_memory.py", "unit/test_processors.py"),
)


def is_thorough(path: Path) -> bool:
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).as_posix() in THOROUGH
