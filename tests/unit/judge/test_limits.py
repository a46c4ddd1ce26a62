"""The register of numbers: every number that decides something is in it, and its page is made from it."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from parfocal.judge import limits
from parfocal.report.limits_page import page, reasons

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "parfocal"
ROOMS = ("judge", "weights", "capture", "replay", "matching", "attribution", "explain", "workflow")

# Numbers that decide neither a verdict nor a cause, by what they are for.
EXCEPTIONS = {
    "sizes of blocks, buffers and batches of work: results are the same with others": """
        judge/floors.py:_BLOCK judge/kernels.py:PIECE,_CHUNK,_FEW,_AT_ONCE judge/metrics.py:_SLICE_BYTES
        judge/parallel.py:THREADED_BLOCKS,SPANS,MAX_WORKERS
        judge/reading.py:BLOCK_BYTES,KEPT_BYTES,_ALIGNMENT judge/reading.py:_WORTH_ALIGNING
        judge/ulp.py:_DIGIT,_LENGTH judge/moments.py:_FARTHEST,_LAID_OUT judge/sketch.py:_CANCELLING
        replay/ledger.py:SHARE,LEAST,_PIECE,_RESERVED,_ALIGNMENT,_LARGE replay/noise_floors.py:HELD_SHARE
        replay/observe.py:RECENT capture/recording.py:SMALL_BYTES weights/copying.py:STRIP,PIECE,THREADS
        weights/fingerprint.py:SMALL weights/checkpoints/tensors.py:MAPPED,CHUNK
        weights/print_index.py:COMPARED_STRETCHES
        workflow/training/judging.py:SMALL
        workflow/training/pending.py:HELD workflow/recorded_runs/reading.py:OPEN_STEPS
        judge/speed.py:_ELEMENTS,_ROUNDS workflow/guide/data_files.py:SMALL,READ_AT_MOST
        workflow/guide/data_facts.py:SMALL
    """,
    "how much is shown to a person or kept of a text": """
        judge/picture.py:SAMPLE,BINS,CELLS,DECADES,LEVELS attribution/measures.py:PICTURES
        attribution/sides.py:NAMED explain/describing.py:SHOWN explain/layers/rearranging.py:SHOWN
        explain/ops/lengths.py:SHOWN explain/ops/solving.py:SHOWN workflow/alignment.py:SUSPECTS
        workflow/guide/data_facts.py:FEW workflow/data_cards.py:SHAPES
        workflow/align_findings.py:SHOWN workflow/guide/checking.py:COUNTS
        workflow/guide/processes.py:LAST_LINES workflow/pictures.py:PICTURES explain/ops/modules.py:MANY
        workflow/recorded_runs/tensors.py:PICTURES,ACCUSED judge/picture.py:FEWEST
        workflow/training/rate_phase.py:NAMED weights/convert.py:SHOWN weights/diagnose.py:NEAREST,COMPARED
        weights/finishing.py:SHOWN weights/plan.py:LISTED,SHOWN weights/plan_cell.py:SHOWN
        weights/settings.py:REPEATED replay/user_errors.py:RAISED explain/updates/writing.py:MOST_NAMES
        capture/keep.py:MAX_TEXT,MAX_STRING,_SAMPLES capture/proof.py:_SHOWN
        capture/session.py:MAX_ITEMS,MAX_NAME
    """,
    "the recipe of a fingerprint: both sides must use the same, whichever it is": """
        judge/projection.py:ROWS,PATTERNS,GROUPS,TILES,SMALL,_PLUS,_GOLDEN,_MIX,_LAST_SHIFT
        weights/fingerprint.py:STRETCHES,COMB
    """,
    "seeds": """
        attribution/sides.py:_WEIGHTING_SEED workflow/training/free_running.py:SEED
        workflow/training/judging.py:SEED workflow/training/shadows.py:SEED
    """,
    "facts of formats, of NumPy and of arithmetic": """
        judge/chance.py:SPREADS
        judge/metrics.py:_EXACT_IN_FLOAT64 judge/floors.py:_FIVE judge/moments.py:_SIX
        weights/checkpoints/archives.py:LOCAL_HEADER
        weights/checkpoints/writing.py:ALIGNMENT,ZIP64_FIELD,LARGE,EPOCH weights/plan_file.py:VERSION
        workflow/guide/data_facts.py:ANY capture/shared_draws.py:FINEST
        workflow/guide/state.py:SCHEMA workflow/guide/judging_training.py:PERCENT workflow/seeding.py:LARGEST
        explain/ops/rewriting.py:MENDED,RIGHT,BETTER,WORSE workflow/recorded_runs/recomputed.py:STEP
    """,
    "guards against hostile or endless input": """
        weights/checkpoints/archives.py:MAX_PICKLE_BYTES,MAX_REPEATED_BYTES
        weights/checkpoints/reading.py:MAX_INDEX_BYTES workflow/acceptance/verification.py:LARGEST
        workflow/guide/processes.py:STARTING replay/stateful_arguments.py:MOST
        capture/nested_values.py:MAX_DEPTH
    """,
    "asked of a framework before anything is compared": """
        capture/determinism.py:SAMPLES capture/selftest.py:_CLOSE capture/state.py:CHANGED
    """,
}


def excepted() -> set[str]:
    return {
        f"{file}:{name}"
        for listed in EXCEPTIONS.values()
        for file, _, names in (entry.partition(":") for entry in listed.split())
        for name in names.split(",")
    }


def holds_a_number(value: ast.expr) -> bool:
    """Whether an expression is a number, arithmetic with one, or a tuple of them."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return holds_a_number(value.operand)
    if isinstance(value, ast.BinOp):
        return holds_a_number(value.left) or holds_a_number(value.right)
    return isinstance(value, ast.Tuple) and bool(value.elts) and all(map(holds_a_number, value.elts))


def numbers(source: str) -> Iterator[str]:
    """The names of a module that are given a number at its top level."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.AnnAssign):
            targets: list[ast.expr] = [statement.target]
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        else:
            continue
        if statement.value is not None and holds_a_number(statement.value):
            yield from (
                each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
            )


@functools.cache
def written() -> set[str]:
    return {
        f"{file.relative_to(SOURCE).as_posix()}:{name}"
        for room in ROOMS
        for file in (SOURCE / room).rglob("*.py")
        for name in numbers(file.read_text(encoding="utf-8"))
    }


def test_every_number_that_decides_is_in_the_register() -> None:
    found = written()
    assert found - excepted() == set(), (
        "give it an entry in judge/limits/, and its reason in data/limits.toml"
    )
    assert excepted() - found == set(), "an exception that is no longer needed"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("LIMIT = 4.0", ["LIMIT"]),
        ("LIMIT: float = -1e3", ["LIMIT"]),
        ("NEAR = 8 * LIMIT", ["NEAR"]),
        ("FEWEST, MOST = 3, 5", ["FEWEST", "MOST"]),
        ("LARGE = 1 << 20", ["LARGE"]),
        ("LIMIT = limits.verdicts.CALL.value", []),
        ("NEAR = limits.pairing.REPAIR_NEAR.value * LIMIT", []),
        ("TRUE = True", []),
        ("NAME = 'three'", []),
        ("def f():\n    few = 3", []),
    ],
)
def test_a_number_is_seen(line: str, names: list[str]) -> None:
    assert list(numbers(line)) == names


def test_every_entry_says_why() -> None:
    names = {table: list(numbers) for table, numbers in limits.tables().items()}
    assert {table: list(words.limit) for table, words in reasons().items()} == names
    for words in reasons().values():
        for name, why in words.limit.items():
            assert re.fullmatch(r"[A-Z][A-Z0-9_]+", name)
            assert why.reason.english.endswith("."), name
            assert why.reason.chinese.endswith("。"), name


def test_both_languages_say_the_same_figures() -> None:
    """Those of measurements, which change; a reason may write a number in words."""
    told = [why.measured for words in reasons().values() for why in words.limit.values() if why.measured]
    assert len(told) > 20
    assert [text for text in told if figures_in(text.english) != figures_in(text.chinese)] == []


def figures_in(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d[\d,.]*(?:e-?\d+)?(?<![,.])", text))


def test_every_entry_is_used() -> None:
    code = "\n".join(
        file.read_text(encoding="utf-8")
        for room in ROOMS
        for file in (SOURCE / room).rglob("*.py")
        if file.parent.name != "limits"
    )
    used = set(re.findall(r"\blimits\.([a-z]+\.[A-Z0-9_]+)\.value", code))
    assert used == {f"{table}.{name}" for table, numbers in limits.tables().items() for name in numbers}


def test_the_page_is_made_from_the_register() -> None:
    assert (ROOT / "docs" / "limits.md").read_text(encoding="utf-8") == page()
