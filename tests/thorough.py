"""What ``make test`` leaves out, to be quick enough for every change; ``make test-all`` runs it too.

Tests that take long (whole models, many processes, launches, browsers), of which what they check is checked
elsewhere in small as well; and checks of the source itself, which are ``make lint``'s.
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
# Folders, files, and single functions of files.
LONG = (
    "browser",
    *(
        "cli/test_doctor.py::test_a_path_that_was_asked_for",
        "compat/padiff/test_check_params.py::test_one_changed_weight_anywhere_is_found",
    ),
    "compat/padiff/test_single_step.py::test_resnet50_passes_whichever_is_the_base",
    *("docs/test_code_blocks.py", "docs/test_worked_examples.py"),
    *("examples/test_environments.py", "examples/test_newcomer.py", "examples/test_readmes.py"),
    *("faults/test_benchmark_fixes.py", "faults/test_fixes.py", "faults/test_fixes_of_lines_run_often.py"),
    *("faults/test_fused_activations.py", "faults/test_loops.py", "faults/test_recorded_runs.py"),
    "faults/test_reproduce.py",
    *(
        "guide/test_epoch_schedules.py",
        "guide/test_known_results.py",
        "guide/test_many_cards.py",
        "guide/test_original_tool.py",
        "guide/test_own_projects.py",
        "guide/test_processes.py",
        "guide/test_steps.py",
    ),
    "pairs/align/test_clean.py::test_a_correct_port_from_a_library_aligns",
    *("pairs/align/test_compiled.py", "pairs/align/test_library_blocks.py", "pairs/align/test_sweep.py"),
    *("pairs/align/test_timm.py", "pairs/launches/test_launches.py", "rounding"),
    *(
        "pairs/training/test_initialisation.py",
        "pairs/weights/test_experts.py",
        "pairs/weights/test_vision.py",
    ),
    *(
        "pairs/weights/test_wrong_code.py",
        "pairs/workflow/test_notebook.py",
        "pairs/workflow/test_plugin_pairs.py",
    ),
    "pairs/workflow/test_recorded_chaos.py::test_other_optimizers_and_activations_too",
    *("pairs/workflow/test_recorded_llama.py", "pairs/workflow/test_recorded_training.py"),
    *(
        "unit/judge/test_memory.py",
        "unit/native/test_paths.py",
        "unit/run/test_kill.py",
        "unit/test_processors.py",
    ),
    *("unit/workflow/recorded_runs/test_memory.py", "versions", "warm"),
)
OF_THE_SOURCE = (
    *("unit/judge/test_codes.py", "unit/judge/test_limits.py", "unit/locale", "unit/test_facts.py"),
    "unit/test_framework_names.py",
)
THOROUGH = frozenset((*LONG, *OF_THE_SOURCE))


def is_thorough(path: Path, function: str = "") -> bool:
    if not path.is_relative_to(TESTS):
        return False
    inside = path.relative_to(TESTS)
    names = {each.as_posix() for each in (inside, *inside.parents)} | {f"{inside.as_posix()}::{function}"}
    return not THOROUGH.isdisjoint(names)
