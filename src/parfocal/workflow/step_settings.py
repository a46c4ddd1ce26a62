"""What the steps of a data set say they are set to: two sides whose values alone do not tell why they differ.

A step is any object with a call that the data set holds, however deep: a transform of a library or of one's
own. Only attributes are read, nothing is run.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np

from parfocal.judge import limits
from parfocal.judge.verdict import Cause, Claim, Grounds
from parfocal.phrases import phrase

MOST_OBJECTS = limits.searches.STEP_OBJECTS.value
MOST_ITEMS = limits.searches.STEP_ITEMS.value
SAME = limits.causes.SAME_SETTING.value
UNSET = ("data.resize", "data.colour")  # codes of likely causes that say no setting

Settings = dict[str, Any]  # numbers, texts, and lists of numbers
StepSettings = dict[str, Settings]  # by the step: its class, and its number where there are several


def step_settings(source: Any) -> StepSettings:
    found: StepSettings = {}
    for step in _held(source):
        if callable(step) and (settings := _settings(step)):
            kind = type(step).__name__
            number = sum(name.partition(" ")[0] == kind for name in found)
            found[f"{kind} {number + 1}" if number else kind] = settings
    return found


def leaves_open(cause: Cause | None) -> bool:
    """Whether what the values say names no setting: other pixels or colours look alike whatever did it."""
    return cause is None or (cause.proof is None and cause.code in UNSET)


def setting_causes(ours: StepSettings, theirs: StepSettings) -> Iterator[Cause]:
    """Settings of one name in steps of one name that can be compared and differ."""
    for step in (each for each in ours if each in theirs):
        for name, right in ours[step].items():
            wrong = theirs[step].get(name)
            if not _comparable(right, wrong) or _same(right, wrong):
                continue
            message = phrase(
                "{step} has {name} = {reference} in the reference, {port} in the port",
                step=step,
                name=name,
                reference=repr(right),
                port=repr(wrong),
            )
            fix = phrase(
                "write {name}={right} for the port's {step}", name=name, right=repr(right), step=step
            )
            yield Claim("data.setting", message, fix).likely(Grounds.SETTINGS)


def _held(source: Any) -> Iterator[Any]:
    """The objects that a data set holds, in order and each once, itself first."""
    seen: dict[int, Any] = {}
    waiting = [source]
    while waiting and len(seen) < MOST_OBJECTS:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType, str, bytes, Enum, numbers.Number)):
            continue
        seen[id(value)] = value
        if isinstance(value, (list, tuple, Mapping)):
            inner = list(value.values() if isinstance(value, Mapping) else value)
            inner = inner if len(inner) <= MOST_ITEMS else []
        else:
            yield value
            inner = list(getattr(value, "__dict__", {}).values())
        waiting += reversed(inner)


def _settings(step: Any) -> Settings:
    values = {
        name: _plain(value)
        for name, value in getattr(step, "__dict__", {}).items()
        if not name.startswith("_")
    }
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    """None for what is no setting that another library would have in the same form."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, bool):
        return None  # a mode more often than a setting
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)) and 0 < len(value) <= MOST_ITEMS:
        return list(value) if all(type(each) in (int, float) for each in value) else None
    return None


def _comparable(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) or isinstance(theirs, list):
        return isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)
    return theirs is not None and isinstance(ours, str) == isinstance(theirs, str)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, str):
        return bool(ours == theirs)
    return bool(np.allclose(ours, theirs, rtol=SAME, atol=0.0))
