"""Steps that may fail without costing the verdict: tried in one place, and told when they fail.

A hypothesis runs a user's code in ways it was not written for, and a framework may raise anything then.
What raises is no reason to lose a report. It is noted with its name, its place and the error. The tests of
parfocal itself set ``PARFOCAL_STRICT``: there an error that nobody foresaw is raised, so that none hides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from parfocal.brief import told
from parfocal.errors import ParfocalError
from parfocal.phrases import phrase

STRICT = "PARFOCAL_STRICT"


@dataclass(frozen=True, slots=True)
class Failure:
    """One step that raised."""

    step: str  # the name of the hypothesis, or what was to be found out
    path: str  # of the module it was asked of
    kind: str  # of the exception
    reason: str

    def __str__(self) -> str:
        return phrase(
            "{step} of {path}: {kind}: {reason}",
            step=self.step,
            path=self.path or phrase("the model"),
            kind=self.kind,
            reason=self.reason,
        )


class Attempts:
    """Keeps the failures of steps, each once."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []

    @contextmanager
    def attempt(self, step: str, path: str) -> Iterator[None]:
        """A step: where it raises it is noted, and goes no further."""
        try:
            yield
        except Exception as error:  # whatever a framework or a user's code raises
            if os.environ.get(STRICT) and not isinstance(error, ParfocalError):
                raise
            self.note(step, path, error)

    def note(self, step: str, path: str, error: Exception) -> None:
        reason = error.message if isinstance(error, ParfocalError) else told(error)
        failure = Failure(step, path, type(error).__name__, reason)
        if failure not in self.failures:
            self.failures.append(failure)
