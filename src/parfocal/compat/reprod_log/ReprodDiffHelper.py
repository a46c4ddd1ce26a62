"""The comparison of two logs: load, compare, report.

The module bears the class's name because the original's does, so that
``from reprod_log.ReprodDiffHelper import ReprodDiffHelper`` keeps working.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parfocal.compat.opinion import tell
from parfocal.compat.reprod_log.differences import DifferenceTree, absolute, figures, map_pairs, pair_up
from parfocal.compat.reprod_log.utils import (
    check_print_diff,
    methods_of,
    opinion_line,
    report_logger,
)
from parfocal.errors import EmptyComparisonError, FileFormatError, InputError, StorageError
from parfocal.phrases import phrase
from parfocal.run.files import load_arrays


class MissingLogError(StorageError, FileNotFoundError):
    """There is no such log."""


class ReprodDiffHelper:
    """Compares what two ``ReprodLogger`` saved, prints the differences and writes them to a file."""

    def __init__(self) -> None:
        self.diff_dict: DifferenceTree | None = None

    def load_info(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """The values of a saved log by key, the caller's to change. Nothing in the file is executed.

        A file that is not there is a ``FileNotFoundError`` too, as the original raises it.
        """
        try:
            info = load_arrays(path)
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise MissingLogError(error.message, hint=error.hint) from error.__cause__
            raise
        if list(info) == [""]:
            raise FileFormatError(
                phrase("{path} holds a single value, not a dict of arrays by key", path=os.fspath(path)),
                hint=phrase("save it with ReprodLogger.add and ReprodLogger.save"),
            )
        return {key: _writable(value) for key, value in info.items()}

    def compare_info(self, info1: Mapping[str, Any], info2: Mapping[str, Any]) -> dict[str, Any]:
        """Compare two logs; ``report`` then tells the result.

        Returns ``|info1[key] - info2[key]|`` by key, exact in every dtype. Where there is no such
        number (NaN, another shape, a key that one log lacks) it is infinite, so that no threshold
        lets it pass.
        """
        for name, info in (("info1", info1), ("info2", info2)):
            if not isinstance(info, Mapping):
                raise InputError(
                    phrase(
                        "{name} is a {kind}, not a dict of arrays by key", name=name, kind=type(info).__name__
                    ),
                    hint=phrase("pass what load_info returned, or the data of a ReprodLogger"),
                )
        pairs = pair_up(info1, info2, names=("info1", "info2"))
        self.diff_dict = map_pairs(pairs, figures)
        return map_pairs(pairs, absolute)

    def report(
        self,
        diff_method: str | Sequence[str] = "mean",
        diff_threshold: float = 1e-6,
        path: str | os.PathLike[str] | None = "./diff.txt",
        *,
        exit_on_failure: bool = False,
    ) -> bool:
        """Print the last comparison, write it to ``path`` unless that is None, and return the verdict.

        ``diff_method`` is "min", "max", "mean", "all" or a list of these. A value passes when it is not
        greater than ``diff_threshold``. With ``exit_on_failure`` a failing report ends the process with
        status 1.
        """
        if self.diff_dict is None:
            raise EmptyComparisonError(
                phrase("report has nothing to tell: no two logs were compared"),
                hint=phrase("call compare_info(info1, info2) first"),
            )
        methods = methods_of(diff_method)
        if isinstance(diff_threshold, bool) or not isinstance(diff_threshold, (int, float, np.number)):
            raise InputError(
                phrase(
                    "diff_threshold is {diff_threshold}, not a number", diff_threshold=repr(diff_threshold)
                ),
                hint="e.g. 1e-6",
            )
        with report_logger(path) as logger:
            passed = check_print_diff(self.diff_dict, methods, diff_threshold, print_func=logger.info)
            logger.info("diff check passed" if passed else "diff check failed")
        if not passed:
            tell(opinion_line(self.diff_dict, methods, diff_threshold))
        if exit_on_failure and not passed:
            raise SystemExit(1)
        return passed


def _writable(value: Any) -> Any:
    """The arrays in a nesting as copies: those of a file are read-only views of it."""
    if isinstance(value, dict):
        return {key: _writable(item) for key, item in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value
