"""The files of an acceptance folder: of each checkpoint both sides and their difference.

The guide spells the names in two ways (``forward_torch.npy`` and ``forward_diff.log`` in one chapter,
``forward_pytorch.npy`` and ``forward_diff_log.txt`` in
the others). Both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

MANIFEST = "manifest.json"
AGREED_EXACTLY = "agreed_exactly"  # of the manifest: checkpoints that were seen to agree to the last bit
WITHIN = "within"  # of the manifest: how far the project lets a metric be off after training
BY_CHANCE = "by_chance"  # of the manifest: how far chance lets trained metrics be off, by name
STATED = "stated"  # of the manifest: by data set, what the project says that the paper says of it
TRAINED = "train_align"
UPDATED = "bp_align"
_LOSS = re.compile(r"loss_\d+")  # of its values


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One of the guide's five points at which a reproduction is checked."""

    name: str
    title: str
    threshold: float  # what the mean difference of a value may be
    reference: str  # what the reference's file is called after, besides its framework
    by_chance: Mapping[str, float] = field(default_factory=dict)  # what else a value may be off, by name

    @property
    def port_file(self) -> str:
        return f"{self.name}_paddle.npy"


# The guide allows 1e-6 where both sides compute the same, and 0.15 % of a metric after training.
CHECKPOINTS = (
    Checkpoint("forward", "forward pass", 1e-6, "torch"),
    Checkpoint("metric", "metric on real data", 1e-6, "torch"),
    Checkpoint("loss", "loss", 1e-6, "torch"),
    Checkpoint(UPDATED, "losses over several steps", 1e-6, "torch"),
    Checkpoint(TRAINED, "metric after training", 1.5e-3, "benchmark"),
)


def allowing(checkpoint: Checkpoint, within: float | None, by_chance: Mapping[str, float]) -> Checkpoint:
    """With the distance that a project sets for trained metrics, and what chance makes of each of them.

    Of the losses over several steps it is what updates make of a rounding error.
    """
    if checkpoint.name not in (TRAINED, UPDATED):
        return checkpoint
    losses = checkpoint.name == UPDATED
    own = {name: off for name, off in by_chance.items() if bool(_LOSS.fullmatch(name)) == losses}
    return replace(checkpoint, threshold=(not losses and within) or checkpoint.threshold, by_chance=own)


class Spelling(Enum):
    """How the guide spells the reference's framework and the logs: the chapter on the tool, or the steps."""

    TOOL = "torch"
    STEPS = "pytorch"


_LOG_ENDINGS = {Spelling.TOOL: "_diff.log", Spelling.STEPS: "_diff_log.txt"}


def reference_file(checkpoint: Checkpoint, spelling: Spelling) -> str:
    side = spelling.value if checkpoint.reference == "torch" else checkpoint.reference
    return f"{checkpoint.name}_{side}.npy"


def log_file(checkpoint: Checkpoint, spelling: Spelling) -> str:
    return f"{checkpoint.name}{_LOG_ENDINGS[spelling]}"


@dataclass(frozen=True, slots=True)
class SubmittedCheckpoint:
    """Where the files of one checkpoint lie; several places for one file are one too many."""

    checkpoint: Checkpoint
    reference: tuple[Path, ...]
    port: tuple[Path, ...]
    log: tuple[Path, ...]

    @property
    def nothing(self) -> bool:
        return not (self.reference or self.port or self.log)


def judged_names() -> frozenset[str]:
    """Every file name that is judged, wherever it lies."""
    return frozenset(
        name
        for checkpoint in CHECKPOINTS
        for spelling in Spelling
        for name in (
            reference_file(checkpoint, spelling),
            checkpoint.port_file,
            log_file(checkpoint, spelling),
        )
    ) | {MANIFEST}


def find_files(folder: Path) -> tuple[SubmittedCheckpoint, ...]:
    """The files of every checkpoint, wherever they lie below a folder."""
    places: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            places.setdefault(path.name, []).append(path)
    return tuple(_submitted(checkpoint, places) for checkpoint in CHECKPOINTS)


def _submitted(checkpoint: Checkpoint, places: Mapping[str, list[Path]]) -> SubmittedCheckpoint:
    def find(names: Iterable[str]) -> tuple[Path, ...]:
        return tuple(path for name in dict.fromkeys(names) for path in places.get(name, ()))

    return SubmittedCheckpoint(
        checkpoint,
        find(reference_file(checkpoint, spelling) for spelling in Spelling),
        find((checkpoint.port_file,)),
        find(log_file(checkpoint, spelling) for spelling in Spelling),
    )
