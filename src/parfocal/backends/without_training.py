"""What a framework without optimizers answers: a backend of tiers 1 and 2 is a whole one with this."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class WithoutTraining:
    """The part of tier 3 that is asked of every framework, also where nothing is trained."""

    def is_optimizer(self, value: object) -> bool:
        return False

    def is_scheduler(self, value: object) -> bool:
        return False

    def watch_updates(
        self, before: Callable[[Any], None], after: Callable[[Any], None]
    ) -> AbstractContextManager[None]:
        return nullcontext()
