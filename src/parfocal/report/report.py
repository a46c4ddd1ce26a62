"""The answer to a comparison: a verdict, what led to it, and ways to read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from parfocal.errors import (
    DivergedError,
    EmptyComparisonError,
    InputError,
    StorageError,
    UnsupportedError,
)
from parfocal.judge.comparison import to_plain
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Divergence, Finding, PairResult, Site
from parfocal.phrases import current_language, joined, phrase, phrase_table
from parfocal.report.coverage import Coverage, words_of
from parfocal.run.storage import write_atomically
from parfocal.weights.plan import Plan

if TYPE_CHECKING:
    from parfocal.explain.reproducing import Reproduction

INCOMPLETE = "run.incomplete"  # the finding that a recording was cut short
OTHER_STEPS = "run.steps"  # the finding that the two runs do not have the same steps
PARTIAL = (INCOMPLETE, OTHER_STEPS)  # what was compared is not all
SCHEMA = 1  # of a report's JSON
NOT_IN_JSON = frozenset(("reproduction", "edit"))  # fields that live in the process alone


@dataclass(frozen=True, slots=True)
class DepthPoint:
    """One paired call on the way through the port, for the picture along the depth."""

    path: str
    own: float  # its own error in units of noise
    carried: float  # relative difference of its output in the natural runs


@dataclass(frozen=True, slots=True)
class Curve:
    """A number of both sides over updates: a learning rate, a loss, a metric."""

    name: str
    reference: tuple[float, ...]
    port: tuple[float, ...]
    along: str = field(default="update", kw_only=True)  # what is counted from one value to the next
    # the step from which two correct trainings part as well
    horizon: int | None = field(default=None, kw_only=True)


class Reproducible(Protocol):
    """A mistake that can be shown by itself, given how to build the models."""

    def complete(
        self, builds: tuple[str | None, str | None], seed: int, found: Sequence[Divergence]
    ) -> Reproduction: ...


@dataclass(frozen=True, slots=True)
class Report:
    """What a comparison found. ``ok`` is the verdict; ``print(report)`` fits one screen.

    ``coverage`` says what was compared and what was not. A good verdict on nothing is an error.
    """

    reference_name: str
    port_name: str
    divergences: tuple[Divergence, ...] = ()
    findings: tuple[Finding, ...] = ()
    pairs: tuple[PairResult, ...] = ()
    unpaired_reference: tuple[Site, ...] = ()
    unpaired_port: tuple[Site, ...] = ()
    transfer: Plan | None = None
    coverage: Coverage = field(default_factory=Coverage)
    along: tuple[DepthPoint, ...] = ()
    curves: tuple[Curve, ...] = ()
    limit: float = 0.0
    scale: Literal["noise", "growth"] = "noise"  # scores: error by noise, or by the error that went in
    tolerance: Tolerance | None = None  # None: judged by scores
    # of the first mistake that can be taken out: the models are aligned once more for it
    reproduction: Callable[[], Reproducible | None] = field(default=lambda: None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.ok and self.coverage.empty:
            nothing = phrase(
                "nothing of {port} was compared with {reference}",
                port=self.port_name,
                reference=self.reference_name,
            )
            reasons = joined("; ", (words_of(each) for each in self.coverage.left_out))
            raise EmptyComparisonError(
                joined(": ", (nothing, reasons)) if reasons else nothing,
                hint=phrase(
                    "see that both sides hold the same kind of thing, and that not all of it is left out"
                ),
            )

    @property
    def ok(self) -> bool:
        return not self.divergences

    @property
    def has_calls(self) -> bool:
        """Whether calls of models were compared, or something else: a schedule, data, a metric."""
        return any(each.what == "calls" for each in self.coverage.compared)

    @property
    def first(self) -> Divergence | None:
        return self.divergences[0] if self.divergences else None

    def raise_if_diverged(self) -> None:
        """Raise a DivergedError with the whole text when the two are not the same."""
        if not self.ok:
            raise DivergedError(str(self))

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values; ``phrases`` says how its sentences were made."""
        data: dict[str, Any] = {"ok": self.ok, "schema": SCHEMA}
        for item in fields(self):
            if item.name not in NOT_IN_JSON:
                data[item.name] = _plain(getattr(self, item.name))
        data["phrases"] = phrase_table(data)
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Report:
        """The report whose ``to_json`` gave this. What needs the models (``reproduce``) is gone."""
        from parfocal.report.json_reader import report_from

        return report_from(data)

    @staticmethod
    def load(path: str | Path) -> Report:
        """Read a ``report.json``, or the one in a folder that ``save`` wrote."""
        from parfocal.report.json_reader import load_report

        found = Path(path)
        return load_report(found / "report.json" if found.is_dir() else found)

    def save(self, folder: str | Path) -> Path:
        """Write report.json, report.txt and report.html into a folder; returns the folder."""
        from parfocal.report.page.page import to_html

        target = Path(folder)
        texts = {
            "report.json": json.dumps(self.to_json(), indent=2),
            "report.txt": f"{self}\n",
            "report.html": to_html(self),
        }
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():  # whole or not at all
                write_atomically(target / name, text.encode(errors="backslashreplace"))
        except OSError as error:
            raise StorageError(
                phrase(
                    "cannot write the report to {target}: {strerror}", target=target, strerror=error.strerror
                )
            ) from error
        return target

    def reproduce(
        self, folder: str | Path, *, reference: str | None = None, port: str | None = None, seed: int = 0
    ) -> Path:
        """Write a script that shows the first explained mistake; it fails until the fix is made.

        A framework's layer is taken out of its model. For a mistake in a model's own code, or in its
        gradients, the script builds both: ``reference`` and ``port`` are ``file.py:build`` or
        ``package.module:build``, and ``seed`` is that of the weights they are built with. The weights are
        saved as they are now, so call this before the models are trained further.
        """
        if self.ok:
            raise InputError(phrase("there is nothing to reproduce: the port is the same as the reference"))
        found = self.reproduction()
        if found is None:
            raise UnsupportedError(
                phrase("there is nothing that can be run apart from the models"),
                hint=phrase(
                    "only an explained mistake in weights, or in what a call computes, keeps or sends back"
                ),
            )
        return found.complete((reference, port), seed, self.divergences).save(folder)

    def text(self, *, verbose: bool = False, language: str | None = None) -> str:
        """In words: one screen, or everything with ``verbose``; ``language`` is ``zh`` or ``en``."""
        from parfocal.report.text import render

        return render(self, verbose=verbose, language=language or current_language())

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        from parfocal.report.page.notebook import to_cell

        return to_cell(self)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        kept = (item.name for item in fields(value) if item.name not in NOT_IN_JSON)
        return {name: _plain(getattr(value, name)) for name in kept}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return to_plain(value) if isinstance(value, (float, complex)) else str(value)
