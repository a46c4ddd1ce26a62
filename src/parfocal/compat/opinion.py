"""One line of parfocal's own, on standard error, where a drop-in fails by its fixed threshold.

Where only two arrays are at hand, their difference is held against the rounding of values of their
size. Where the models are at hand they are aligned, which also gives the cause. The verdict of the
drop-in stays what it is. ``PARFOCAL_OPINION=OFF`` in the environment leaves the line out.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend
from parfocal.capture.determinism import dropping
from parfocal.phrases import joined, phrase, said
from parfocal.report.wording import PHASES

if TYPE_CHECKING:
    from parfocal.report.report import Report

VARIABLE = "PARFOCAL_OPINION"
HEAD = "parfocal: "
WIDEST = 240  # characters of a line


def is_wanted() -> bool:
    """Whether the environment leaves the line in."""
    return os.environ.get(VARIABLE, "ON").upper() not in ("OFF", "0", "FALSE")


def tell(line: str) -> None:
    """On standard error: what the old tools print stays theirs to the byte."""
    if line:
        print(said(line), file=sys.stderr)


# Two arrays


def opinion_on_values(failures: Sequence[tuple[str, float | None]]) -> str:
    """The line about values that failed, each with its ``rounding_score``; empty where nothing is known."""
    from parfocal.attribution.measures import LIMIT

    if not failures or not is_wanted():
        return ""
    within = [found for _, found in failures if found is not None and found <= LIMIT]
    if len(within) == len(failures):
        told = _within(max(within))
        return _line(told if len(within) == 1 else phrase("all {count} {told}", count=len(within), told=told))
    some = (
        phrase(
            "{count} of the {failed} values that failed are within rounding",
            count=len(within),
            failed=len(failures),
        )
        if within
        else ""
    )
    beyond = [(name, found) for name, found in failures if found is not None and found > LIMIT]
    if not beyond:
        return _line(some) if some else ""
    name, found = beyond[0]
    told = phrase("{name}: {times} the rounding of values of this size", name=name, times=_times(found))
    return _line(joined("; ", filter(None, (told, some))))


# Two models


def opinion_on_models(reference: Any, port: Any, inputs: Any, *, subject: str = "", **options: Any) -> str:
    """The line about two models that failed: both are aligned as they are; empty where it is not wanted.

    ``subject`` says what the line is about, where that is not all that was compared.
    """
    if not is_wanted():
        return ""
    from parfocal.workflow.align import align

    try:
        report = align(reference, port, inputs, transfer=False, progress=False, **options)
    except Exception as error:  # noqa: BLE001  # the drop-in has its verdict; what went wrong here is told
        raised = phrase(
            "no opinion of its own: {kind}: {error}",
            kind=type(error).__name__,
            error=getattr(error, "message", error),
        )
        return _line(raised)
    told = _told(report)
    if report.ok and options.get("mode") != "eval" and (_drops(reference) or _drops(port)):
        told = phrase("{told} with dropout off; at work, it draws other numbers on each side", told=told)
    return _line(phrase("{subject}: {told}", subject=subject, told=told) if subject else told)


def _drops(model: Any) -> bool:
    """Whether a module drops values at random as the model is now: an alignment switches that off."""
    modules = registry.of(model).modules(model)
    return any(chance > 0 and modules[path].training for path, (_, chance) in dropping(model).items())


def _told(report: Report) -> str:
    first = report.first
    if first is None:
        scores = [found for pair in report.pairs for found in (pair.forward, pair.backward)]
        return _within(max((found for found in scores if found is not None), default=0.0))
    site = first.port or first.reference
    path = (site.path or phrase("the model itself")) if site else ""
    place = phrase(" at {path} ({kind})", path=path, kind=site.op or site.kind) if site else ""
    why = first.message if first.cause is None else first.cause.message
    if first.cause is not None and first.cause.proof is None:
        why = phrase("likely cause: {why}", why=why)
    times = math.isfinite(first.score)
    size = phrase("{times} the noise", times=_times(first.score)) if times else phrase("no rounding")
    told = phrase(
        "{size}{place}, {phase}", size=size, place=place, phase=PHASES.get(first.phase, first.phase)
    )
    if why:
        told = phrase("{told}: {why}", told=told, why=why)
    fix = first.cause.fix if first.cause else ""
    return phrase("{told}; write: {fix}", told=told, fix=fix) if fix else told


def _within(found: float) -> str:
    return phrase("within rounding ({score} of the noise)", score=f"{found:.1f}")


def _times(found: float) -> str:
    """Two digits are enough."""
    if not math.isfinite(found):
        return phrase("infinitely many times")
    if found < 10:
        return phrase("{number} times", number=f"{found:.1f}")
    rounded = round(found, 1 - math.floor(math.log10(found)))
    return phrase("{number} times", number=f"{rounded:,.0f}")


def _line(told: str) -> str:
    """In the language of the terminal."""
    line = " ".join(f"{HEAD}{said(told)}".split())
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 3]}..."


class ModelState:
    """The buffers of a model, and its parameters if a step will move them, as they are now."""

    def __init__(self, model: Any, *, parameters: bool) -> None:
        self.model = model
        self.backend: Backend = registry.of(model)
        self.parameters = parameters
        self.values = self._read()

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Inside, the model is as it was then; afterwards, as it is now."""
        now = self._read()
        self._write(self.values)
        try:
            yield
        finally:
            self._write(now)

    def _read(self) -> dict[str, Array]:
        return {
            tensor.path: self.backend.to_array(tensor.value)
            for tensor in self.backend.state(self.model)
            if tensor.tied_to is None and (self.parameters or tensor.role == "buffer")
        }

    def _write(self, values: Mapping[str, Array]) -> None:
        for tensor in self.backend.state(self.model):
            if tensor.path in values:
                self.backend.write(tensor.value, values[tensor.path])
