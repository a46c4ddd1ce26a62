"""What a row of the table of differences is when it stands in a port, and what is to be found then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

GENERATOR = np.random.default_rng(5)
LOGITS = GENERATOR.standard_normal((24, 5)).astype("float32")
LABELS = GENERATOR.integers(0, 5, 24)
Run = Callable[[], Any]  # a comparison, made when it is called


@dataclass(frozen=True)
class Planted:
    """One difference in a port, and its twin: the port that follows the fix.

    ``plant`` is found in ``phase`` with the cause ``code``; where it ``raises``, these are the words of the
    error, whose own code is ``code``. Where both frameworks agree, ``plant`` is a mistake in the same place.
    """

    twin: Run
    plant: Run
    phase: str
    code: str
    raises: str = ""


def raising(twin: Run, plant: Run, words: str) -> Planted:
    return Planted(twin, plant, "", "input", words)


def gap_of(name: str) -> str:
    """A row can have several cases: ``one-cycle-end: momentum`` is one of ``one-cycle-end``."""
    return name.partition(":")[0]
