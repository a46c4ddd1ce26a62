"""The log of differences that ``reprod_log`` and its drop-in write, read back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from parfocal.run.storage import storage_errors

# "[2021/12/20 15:19:14] root INFO: logits:" and "2021-09-28 01:07:44,832 - reprod_log.utils - INFO - logits:"
_HEAD = re.compile(r"^.*?\bINFO(?::| -) ?")
_VALUE = re.compile(r"(min|max|mean) diff: check passed: (?:True|False), value: (\S+)")
_VERDICT = re.compile(r"diff check (passed|failed)")


@dataclass(frozen=True, slots=True)
class DifferenceLog:
    """What is told of every key, and the verdict; None if the log breaks off before it."""

    file: str
    keys: frozenset[str]
    means: Mapping[str, float]  # of those whose mean difference is told
    passed: bool | None


def read_log(path: Path) -> DifferenceLog:
    with storage_errors("read", path):
        text = path.read_text(encoding="utf-8", errors="replace")
    key, keys, means, passed = "", set(), {}, None
    for line in text.splitlines():
        told = _HEAD.sub("", line)
        value, verdict = _VALUE.search(told), _VERDICT.search(told)
        if value:
            keys.add(key)
            if value[1] == "mean":
                means[key] = _number(value[2])
        elif verdict:
            passed = verdict[1] == "passed"
        elif told.rstrip().endswith(":"):
            key = told.strip()[:-1].strip()
    return DifferenceLog(path.name, frozenset(keys), means, passed)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
