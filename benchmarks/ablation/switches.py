"""Which tables have switches, and what becomes of an entry that is switched off or counted."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

VARIABLE = "PARFOCAL_ABLATION"
SITE = Path(__file__).with_name("started")  # Python runs the sitecustomize.py that is in there as it starts
COUNT, OFF = "count", "off"
NUMBERS = "parfocal.judge.limits."


def yields_nothing(*_: Any, **__: Any) -> Iterator[Any]:
    return iter(())


def says_no(*_: Any, **__: Any) -> bool:
    return False


def leaves_it(first: Any, *_: Any, **__: Any) -> Any:
    return first


# module -> the names of its tables, and what stands for an entry that is switched off
TABLES: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "parfocal.explain.explainer": (("ROUNDS", "UPDATES"), yields_nothing),
    "parfocal.explain.ops.differing": (("RULES", "LAST_RULES", "WAYS"), yields_nothing),
    "parfocal.explain.ops.hypotheses": (("HYPOTHESES",), yields_nothing),
    "parfocal.explain.rates": (("HYPOTHESES",), yields_nothing),
    "parfocal.explain.loss_causes": (("HYPOTHESES",), yields_nothing),
    "parfocal.explain.metric_causes": (("HYPOTHESES",), yields_nothing),
    "parfocal.explain.sample_labels": (("HYPOTHESES",), yields_nothing),
    "parfocal.explain.samples": (("MOVES",), yields_nothing),
    "parfocal.attribution.refining": (("EXCUSES",), says_no),
    "parfocal.attribution.divergences": (("RUNGS",), says_no),
    "parfocal.attribution.pairing_repairs": (("PAIRING_REPAIRS",), leaves_it),
}


def switched(module: Any, setting: str) -> None:
    """Change a module that was just loaded, as the setting says: ``off:NAME`` or ``count:FOLDER``."""
    way, _, what = setting.partition(":")
    if module.__name__.startswith(NUMBERS):
        if way == OFF:
            _scale(module, what)
        return
    names, neutral = TABLES[module.__name__]
    change = _counted(Path(what), neutral) if way == COUNT else _without(what, neutral)
    for name in names:
        setattr(module, name, changed(getattr(module, name), change, module.__name__))


def changed(value: Any, change: Callable[[str, Any], Any], module: str) -> Any:
    """A table with every function in it changed, however it is nested."""
    if isinstance(value, dict):
        return {key: changed(each, change, module) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(changed(each, change, module) for each in value)
    return change(name_of(value, module), value) if callable(value) and _is_asked(value) else value


def _is_asked(entry: Any) -> bool:
    """An excuse has two functions: the first is asked, the second does what follows."""
    return not isinstance(entry, type) and not entry.__qualname__.startswith("Excuses.")


def name_of(entry: Any, table: str) -> str:
    """By the file it is written in; a function without a name by that of the table and its line."""
    home = getattr(entry, "__module__", table).rpartition(".")[2]
    name = entry.__name__.strip("<>")
    return f"{home}.{name}" if name != "lambda" else f"{home}.lambda{entry.__code__.co_firstlineno}"


def _without(what: str, neutral: Callable[..., Any]) -> Callable[[str, Any], Any]:
    return lambda name, entry: neutral if name == what else entry


def _counted(folder: Path, neutral: Callable[..., Any]) -> Callable[[str, Any], Any]:
    tally = Tally(folder)

    def change(name: str, entry: Any) -> Any:
        @wraps(entry)
        def each(*args: Any, **kwargs: Any) -> Any:
            tally.note(name, False)
            found = entry(*args, **kwargs)
            if neutral is yields_nothing:
                return _noting(found, name, tally)
            if found if neutral is says_no else found is not args[0]:
                tally.note(name, True)
            return found

        return each

    return change


def _noting(found: Any, name: str, tally: Tally) -> Iterator[Any]:
    for number, each in enumerate(found):
        if not number:
            tally.note(name, True)
        yield each


@dataclass
class Tally:
    """What this process has counted; a file is written with all that spoke, as workers may be killed."""

    folder: Path
    process: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    spoke: Counter[str] = field(default_factory=Counter)

    def note(self, name: str, spoke: bool) -> None:
        if self.process != os.getpid():  # a fork begins anew
            self.process, self.asked, self.spoke = os.getpid(), Counter(), Counter()
        self.asked[name] += not spoke
        self.spoke[name] += spoke
        if spoke or self.asked[name] == 1:
            path = self.folder / f"{id(self)}-{self.process}.json"
            path.write_text(json.dumps([self.asked, self.spoke]))


def _scale(module: Any, what: str) -> None:
    """``verdicts.CALL*4``: the number, four times as large."""
    table, _, rest = what.partition(".")
    sign = next((each for each in "*/" if each in rest), "")
    name, _, by = rest.partition(sign or "*")
    if module.__name__ != NUMBERS + table or not sign:
        return
    limit = getattr(module, name)
    factor = float(by) if sign == "*" else 1 / float(by)
    value = limit.value
    scaled = (
        tuple(_times(each, factor) for each in value) if isinstance(value, tuple) else _times(value, factor)
    )
    setattr(module, name, type(limit)(scaled))


def _times(value: float, factor: float) -> float:
    return type(value)(max(round(value * factor), 1) if isinstance(value, int) else value * factor)
