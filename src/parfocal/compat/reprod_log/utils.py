"""The public helpers of the old tool: the logger's set-up, conversions and the printed check.

The report's lines are made here, in ``check_print_diff``; the rest of the package only fills in
the differences it prints.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from parfocal.backends import registry
from parfocal.compat.opinion import opinion_on_values
from parfocal.compat.reprod_log.values import to_tensors, to_value
from parfocal.errors import InputError
from parfocal.phrases import joined, phrase
from parfocal.run.storage import storage_errors

METHODS = ("min", "max", "mean")  # in the order in which "all" prints them
_OWN_HANDLERS = ("reprod_log stdout", "reprod_log file")
LINE_FORM = "PARFOCAL_REPROD_LOG_LINES"  # in the environment: a key of LINE_FORMS
# How a line of a report begins: as reprod_log 1.0.1 writes it, and as the guide's document shows it.
LINE_FORMS = {
    "1.0.1": ("[%(asctime)s] %(name)s %(levelname)s: %(message)s", "%Y/%m/%d %H:%M:%S", "root"),
    "guide": ("%(asctime)s - %(name)s - %(levelname)s - %(message)s", None, "reprod_log.utils"),
}


def init_logger(
    log_file: str | os.PathLike[str] | None = None, name: str = "root", log_level: int = logging.DEBUG
) -> logging.Logger:
    """The logger ``name``, writing to stdout and to ``log_file``; folders are created.

    A second call replaces what the first one set up, so nothing is printed twice or lands in an
    earlier file.
    """
    logger = logging.getLogger(name)
    handlers = _open_handlers(log_file)
    _close_handlers(logger)
    for handler in handlers:
        logger.addHandler(handler)
    logger.setLevel(log_level)
    return logger


@contextmanager
def report_logger(log_file: str | os.PathLike[str] | None) -> Iterator[logging.Logger]:
    """A logger for one report, gone afterwards.

    It is called as the report's lines say, "root" as a rule, but is not the process's root logger:
    frameworks hang handlers of their own on that one, which would print every line again.
    """
    _, _, name = _line_form()
    logger = logging.Logger(name, logging.INFO)
    for handler in _open_handlers(log_file):
        logger.addHandler(handler)
    try:
        yield logger
    finally:
        _close_handlers(logger)


def _line_form() -> tuple[str, str | None, str]:
    wanted = os.environ.get(LINE_FORM) or "1.0.1"
    if wanted not in LINE_FORMS:
        raise InputError(
            phrase("{variable} is {wanted}", variable=LINE_FORM, wanted=repr(wanted)),
            hint=phrase("there are: {names}", names=joined(", ", LINE_FORMS)),
        )
    return LINE_FORMS[wanted]


def _open_handlers(log_file: str | os.PathLike[str] | None) -> list[logging.Handler]:
    line, date, _ = _line_form()
    handlers: list[logging.Handler] = [logging.StreamHandler(stream=sys.stdout)]
    if log_file is not None:
        with storage_errors("write", log_file):
            os.makedirs(os.path.dirname(log_file) or ".", exist_ok=True)
            handlers.append(logging.FileHandler(log_file, "w", encoding="utf-8"))
    for handler, name in zip(handlers, _OWN_HANDLERS, strict=False):
        handler.setFormatter(logging.Formatter(line, datefmt=date))
        handler.set_name(name)
    return handlers


def _close_handlers(logger: logging.Logger) -> None:
    for handler in [one for one in logger.handlers if one.get_name() in _OWN_HANDLERS]:
        logger.removeHandler(handler)
        handler.close()


def np2torch(data: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a dict as torch tensors: floats as float32, integers and bools as they are."""
    return _from_numpy("torch", data)


def np2paddle(data: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a dict as paddle tensors: floats as float32, integers and bools as they are."""
    return _from_numpy("paddle", data)


def torch2np(data: Any) -> dict[str, Any]:
    """A model's output as a dict of arrays; one that is not a dict comes under "output"."""
    return to_numpy(data)


def paddle2np(data: Any = None) -> dict[str, Any]:
    """A model's output as a dict of arrays; one that is not a dict comes under "output"."""
    return to_numpy(data)


def to_numpy(output: Any) -> dict[str, Any]:
    """An output of either framework, nested as it may be, as a dict of arrays."""
    value = to_value(output, "output")
    return value if isinstance(value, dict) and not isinstance(output, (tuple, list)) else {"output": value}


def _from_numpy(framework: str, data: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise InputError(
            phrase("the inputs are a {kind}, not a dict", kind=type(data).__name__),
            hint=phrase("pass {{argument name of the model's forward: array}}"),
        )
    backend = registry.get(framework)
    return {name: to_tensors(backend, value, "float32") for name, value in data.items()}


def methods_of(diff_method: str | Sequence[str]) -> tuple[str, ...]:
    """The methods asked for, "all" spelled out, each once."""
    asked = (diff_method,) if isinstance(diff_method, str) else tuple(diff_method)
    unknown = [method for method in asked if method != "all" and method not in METHODS]
    if unknown or not asked:
        raise InputError(
            phrase(
                "diff_method is {diff_method}; known are min, max, mean, all", diff_method=repr(diff_method)
            ),
            hint=phrase('give one of them, or a list such as ["min", "max"]'),
        )
    spelled_out = (one for method in asked for one in (METHODS if method == "all" else (method,)))
    return tuple(dict.fromkeys(spelled_out))


def check_print_diff(
    diff_dict: Mapping[str, Any],
    diff_method: str | Sequence[str] = "mean",
    diff_threshold: float = 1e-6,
    print_func: Callable[[str], Any] = print,
    indent: str = "\t",
    level: int = 0,
) -> bool:
    """Print every difference with its verdict; True when there are some and all of them pass.

    ``diff_dict`` holds under each key the "min", "max" and "mean" of a difference, or a dict of such.
    A value passes when it is not greater than ``diff_threshold``, so NaN does not.
    """
    methods = methods_of(diff_method)
    margin = indent * level
    if not diff_dict:
        print_func(f"{margin}nothing was compared")
        return False
    verdicts = []
    for key, difference in diff_dict.items():
        if _is_leaf(difference):
            print_func(f"{margin}{key}: ")
            verdicts.append(_print_leaf(difference, methods, diff_threshold, print_func, margin + indent))
        else:
            print_func(f"{margin}{key}")
            verdicts.append(
                check_print_diff(difference, methods, diff_threshold, print_func, indent, level + 1)
            )
    return all(verdicts)


def _is_leaf(difference: Mapping[str, Any]) -> bool:
    # A user's own keys may be called "min", "max" and "mean": those have dicts below them.
    return set(difference) == set(METHODS) and not any(
        isinstance(value, Mapping) for value in difference.values()
    )


def _print_leaf(
    difference: Mapping[str, Any],
    methods: tuple[str, ...],
    threshold: float,
    print_func: Callable[[str], Any],
    margin: str,
) -> bool:
    # Of a Difference: why it has no values, or what else must be known of them.
    for told in (getattr(difference, "problem", ""), getattr(difference, "note", "")):
        if told:
            print_func(f"{margin}{told}")
    verdicts = []
    for method in methods:
        value = difference[method]
        verdicts.append(bool(value <= threshold))
        print_func(f"{margin}{method} diff: check passed: {verdicts[-1]}, value: {value}")
    return all(verdicts)


def opinion_line(
    diff_dict: Mapping[str, Any], diff_method: str | Sequence[str], diff_threshold: float
) -> str:
    """parfocal's own line about the values that ``check_print_diff`` lets fail; it may be empty."""
    methods = methods_of(diff_method)
    failures = [
        (name, getattr(difference, "score", None))
        for name, difference in _leaves(diff_dict)
        if not all(difference[method] <= diff_threshold for method in methods)
    ]
    return opinion_on_values(failures)


def _leaves(diff_dict: Mapping[str, Any], lead: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, difference in diff_dict.items():
        if _is_leaf(difference):
            yield f"{lead}{key}", difference
        else:
            yield from _leaves(difference, f"{lead}{key}.")
