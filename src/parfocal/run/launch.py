"""Which rank this process is, of how many, and which launch they belong to.

Torch's and Paddle's launchers say the first two in the environment. For the third they have
no common word: ``PARFOCAL_RUN_ID`` decides where it is set (needed when the ranks run on
several machines); otherwise it is the launcher's process, which the ranks on one machine share.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from parfocal.errors import InputError
from parfocal.phrases import phrase

RUN_ID_VARIABLE = "PARFOCAL_RUN_ID"

# (rank, number of ranks), by launcher
_VARIABLES = (("RANK", "WORLD_SIZE"), ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))


@dataclass(frozen=True, slots=True)
class Launch:
    rank: int = 0
    ranks: int = 1
    run_id: str = ""


def current_launch(environment: Mapping[str, str] | None = None) -> Launch:
    """This process's place; rank 0 of 1 without a launcher. Spread into ``RunWriter``."""
    environment = os.environ if environment is None else environment
    for rank_name, ranks_name in _VARIABLES:
        if rank_name in environment and ranks_name in environment:
            ranks = _number(environment, ranks_name)
            if ranks > 1:
                rank = _number(environment, rank_name)
                return Launch(rank, ranks, environment.get(RUN_ID_VARIABLE) or _parent_id())
    return Launch()


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise InputError(
            phrase(
                "the environment says {name}={value}, not a number",
                name=name,
                value=repr(environment[name]),
            )
        ) from None


def _parent_id() -> str:
    """The launcher's process number and start time: numbers are used again, both together are not."""
    parent = os.getppid()
    try:
        status = Path(f"/proc/{parent}/stat").read_text()
    except OSError:  # not Linux
        return f"process-{parent}"
    started = status.rpartition(")")[2].split()[19]
    return f"process-{parent}-{started}"
