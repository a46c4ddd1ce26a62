"""Which extreme: read from the environment, and put there for a command and what that starts in turn."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "PARFOCAL_ROUNDING"
SITE = Path(__file__).with_name("started")  # Python runs the sitecustomize.py that is in there as it starts


@dataclass(frozen=True, slots=True)
class Rounding:
    """``seed``: of the noise; None: both sides give the same bits."""

    seed: int | None

    @staticmethod
    def parse(text: str) -> Rounding:
        kind, _, seed = text.partition(":")
        if kind == "equal" and not seed:
            return Rounding(None)
        if kind == "noisy" and seed.isdecimal():
            return Rounding(int(seed))
        raise ValueError(f"{VARIABLE}={text!r} is neither 'equal' nor 'noisy:SEED', such as noisy:1")

    def key(self, side: str) -> int | None:
        """What the noise of a side is drawn by; None: there is none."""
        return None if self.seed is None else zlib.crc32(f"{side}:{self.seed}".encode())


def environment(text: str, present: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables with which a process and all that it starts compute at this extreme."""
    Rounding.parse(text)
    others = [path for path in present.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {VARIABLE: text, "PYTHONPATH": os.pathsep.join((str(SITE), *others))}
