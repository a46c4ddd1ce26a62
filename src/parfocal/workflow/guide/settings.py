"""``parfocal.toml``: the two sides of a reproduction and what is compared, read and checked.

Whatever is wrong with the file is one error with the file's name and the line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from parfocal.backends import registry
from parfocal.brief import brief
from parfocal.errors import InputError
from parfocal.judge import limits
from parfocal.judge.verdict import SIDES
from parfocal.phrases import joined, phrase
from parfocal.run.storage import storage_errors
from parfocal.workflow.guide.data_facts import ANY, DataFacts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TELLING_RUNS = limits.verdicts.TELLING_RUNS.value
FILE = "parfocal.toml"
WEIGHTS = "weights"  # one checkpoint for both of the following
CHECKPOINT_KEYS = (WEIGHTS, "published", "initial")  # of the reference
FACTORIES = (
    *("model", "evaluation_data", "metric", "loss", "optimizer", "scheduler", "clip"),
    *("training_data", "parallel", "reduce"),
)


@dataclass(frozen=True, slots=True)
class SideSettings:
    """One side: its framework, its interpreter where it has one, and what makes its parts."""

    name: str  # "reference" or "port"
    framework: str
    python: str  # "": the interpreter that runs parfocal
    factories: Mapping[str, str]  # of FACTORIES -> file.py:name
    places: Mapping[str, str]  # key -> "parfocal.toml:12: port.model"
    published: str = ""  # a checkpoint that every step up to the backward pass is compared with
    initial: str = ""  # a checkpoint that the training begins with; "": from scratch
    plan: str = ""  # of the port: how weights are copied, where that has to be said


@dataclass(frozen=True, slots=True)
class Project:
    """Everything that ``parfocal.toml`` says, with what it does not say filled in."""

    folder: Path
    reference: SideSettings
    port: SideSettings
    inputs: tuple[str, ...] | str  # descriptions, or a file
    label: tuple[str, ...] | str  # likewise; empty: there is none
    data: tuple[str, ...] = ()  # files and folders that the datasets read
    seed: int = 0
    time_limit: float = 600.0  # seconds that a side may take for one piece of work
    together: bool = True  # both sides in one process where that is possible
    updates: int = 5  # that are compared for optimizer, regularisation and backward
    rates: int = 100  # updates whose learning rate is compared
    seeds: int = 8  # from which weights are initialised
    samples: int = 512  # of a dataset that are compared
    batch_size: int = 16  # of a dataset that gives single samples
    lockstep: int = 8  # updates of the training that are compared phase by phase
    epochs: int = 1
    runs: int = TELLING_RUNS  # trainings of each side, at most: one is enough where ``within`` allows it
    schedule: Literal["update", "epoch"] = "update"  # after which the training steps the scheduler
    order: Literal["same", "any"] = "same"  # of the training data on the two sides
    draws: Literal["own", "shared"] = "own"  # where both sides' random numbers for training data come from
    benchmark: Mapping[str, float] = field(default_factory=dict)  # published metrics
    within: float = 0.0015  # that a trained metric may be off
    evaluation_data: DataFacts = field(default_factory=DataFacts)  # as the paper states them
    training_data: DataFacts = field(default_factory=DataFacts)
    places: Mapping[str, str] = field(default_factory=dict)  # key -> "parfocal.toml:3: seed"
    include: tuple[str, ...] = ()  # files, folders and patterns that are handed in beside the checkpoints
    ranks: int = 0  # of a launch on this machine; 0: many cards are left out
    file: str = FILE  # a folder may have several plans

    @property
    def sides(self) -> tuple[SideSettings, SideSettings]:
        return self.reference, self.port

    @property
    def epochs_of_schedule(self) -> int:
        """How many steps of a schedule a training takes that steps it once an epoch; 0: it does not."""
        return self.epochs if self.schedule == "epoch" else 0

    @property
    def published(self) -> str:
        return self.reference.published

    @property
    def initial(self) -> str:
        return self.reference.initial

    @property
    def plan(self) -> str:
        return self.port.plan

    @property
    def store(self) -> Path:
        """Where everything lies that is remembered."""
        return self.folder / ".parfocal"

    def has(self, factory: str) -> bool:
        """Whether both sides have it."""
        return all(factory in side.factories for side in self.sides)

    def place(self, key: str) -> str:
        return self.places.get(key, f"{self.file}: {key}")


@dataclass(frozen=True, slots=True)
class _Key:
    """One key of the file: its type, what it must be in words, and whether a value is."""

    words: str
    fits: Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _texts(value: Any) -> bool:
    return _text(value) or (isinstance(value, list) and bool(value) and all(map(_text, value)))


def _numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, (int, float)) for each in value.values())


def _shape(value: Any) -> bool:
    return isinstance(value, list) and all(_count(each) or each == ANY for each in value)


_TEXT = _Key(phrase("a text"), _text)
_COUNT = _Key(phrase("a whole number above 0"), _count)
_POSITIVE = _Key(phrase("a number above 0"), lambda value: isinstance(value, (int, float)) and value > 0)
_SPEC = _Key(phrase("file.py:name or package.module:name"), lambda value: _text(value) and ":" in value)
DATA_SETS = ("evaluation_data", "training_data")
_FACT_KEYS = {
    **dict.fromkeys(("samples", "classes"), _COUNT),
    "shape": _Key(phrase("lengths like [3, 224, 224], -1 for one that varies"), _shape),
    "dtype": _TEXT,
    "ignored": _Key(
        phrase("a whole number"), lambda value: isinstance(value, int) and not isinstance(value, bool)
    ),
}
_SIDE_KEYS = {
    "framework": _TEXT,
    "python": _TEXT,
    **dict.fromkeys(FACTORIES, _SPEC),
}
_KEYS: Mapping[str, Mapping[str, _Key]] = {
    "": {
        "seed": _Key(
            phrase("a whole number from 0"), lambda value: isinstance(value, int) and 0 <= value < 2**32
        ),
        "time_limit": _POSITIVE,
        "data": _Key(phrase('a file or folder like "pictures", or several in a list'), _texts),
        "together": _Key(phrase("true or false"), lambda value: isinstance(value, bool)),
    },
    "reference": {**_SIDE_KEYS, **dict.fromkeys(CHECKPOINT_KEYS, _TEXT)},
    "port": {**_SIDE_KEYS, "plan": _TEXT},
    "input": {
        "model": _Key(phrase('descriptions like "x=float32[4,3,32,32]", or a file of arrays'), _texts),
        "label": _Key(phrase('a description like "int64[4]:0..10", or a file of arrays'), _texts),
    },
    "compare": dict.fromkeys(("updates", "rates", "seeds", "samples", "batch_size"), _COUNT),
    "training": {
        "epochs": _COUNT,
        "runs": _COUNT,
        "lockstep": _COUNT,
        "schedule": _Key(phrase('"update" or "epoch"'), lambda value: value in ("update", "epoch")),
        "order": _Key(phrase('"same" or "any"'), lambda value: value in ("same", "any")),
        "draws": _Key(phrase('"own" or "shared"'), lambda value: value in ("own", "shared")),
        "within": _POSITIVE,
        "benchmark": _Key(phrase("numbers by the metric's name"), _numbers),
    },
    **dict.fromkeys(DATA_SETS, _FACT_KEYS),
    "accept": {
        "include": _Key(
            phrase('a file, a folder or a pattern like "logs/*.txt", or several in a list'), _texts
        )
    },
    "many_cards": {
        "ranks": _Key(phrase("a whole number above 1"), lambda value: _count(value) and value > 1),
    },
}
_ARRAY_FILES = (".npz", ".npy", ".safetensors")


def read_project(path: str | Path) -> Project:
    """The project of a ``parfocal.toml``, or of the folder that has one."""
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            phrase("there is no {file} in {folder}", file=file.name, folder=file.parent),
            hint=phrase("parfocal init DIR writes one; run check in that folder"),
        )
    with storage_errors("read", file):
        text = file.read_text(encoding="utf-8")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(phrase("{file} is not valid TOML: {error}", file=file, error=error)) from error
    places = _Places(file, text)
    _check_keys(document, places)
    return _project(document, places)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where every key stands, for errors."""

    file: Path
    text: str

    def line(self, section: str, key: str) -> int:
        """The line of a key in its section; of the section where the key is not found."""
        inside, found = section == "", 1
        for number, line in enumerate(self.text.splitlines(), 1):
            header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line)
            if header:
                inside = header[1] == section
                if inside or header[1] == f"{section}.{key}".lstrip("."):
                    found = number
            elif inside and re.match(rf"\s*['\"]?{re.escape(key)}['\"]?\s*[=.]", line):
                return number
        return found

    def of(self, section: str, key: str) -> str:
        return f"{self.file.name}:{self.line(section, key)}: {f'{section}.{key}'.lstrip('.')}"


def _check_keys(document: Mapping[str, Any], places: _Places) -> None:
    for name, value in document.items():
        if name not in _KEYS[""] and name not in _KEYS:
            raise _unknown(places.of("", name), [*_KEYS[""], *(key for key in _KEYS if key)])
        section, items = ("", {name: value}) if name in _KEYS[""] else (name, value)
        if not isinstance(items, dict):
            raise InputError(
                phrase("{place} is {value}, not a table", place=places.of("", name), value=brief(value)),
                hint=phrase("write [{name}]", name=name),
            )
        for key, item in items.items():
            known = _KEYS[section].get(key)
            if known is None:
                raise _unknown(places.of(section, key), list(_KEYS[section]))
            if not known.fits(item):
                place = places.of(section, key)
                raise InputError(
                    phrase(
                        "{place} is {value}, not {words}", place=place, value=brief(item), words=known.words
                    )
                )


def _unknown(place: str, known: list[str]) -> InputError:
    return InputError(
        phrase("{place} is not known", place=place),
        hint=phrase("known here: {names}", names=joined(", ", known)),
    )


def _project(document: Mapping[str, Any], places: _Places) -> Project:
    sides = [_side(document, name, places) for name in SIDES]
    given = document.get("input", {})
    if "model" not in given:
        raise InputError(
            phrase(
                "{place} is missing: there is nothing to run the models on",
                place=places.of("input", "model"),
            ),
            hint=phrase('write e.g. model = ["x=float32[4,3,32,32]"] under [input]'),
        )
    chosen = {
        **{key: document[key] for key in _KEYS[""] if key in document},
        "data": _data(document.get("data", []), places),
        **document.get("compare", {}),
        **document.get("training", {}),
        **document.get("many_cards", {}),
        "include": _listed(document.get("accept", {}).get("include", [])),
        **{name: _facts(document.get(name, {})) for name in DATA_SETS},
    }
    found = {
        f"{section}.{key}".lstrip("."): places.of(section, key)
        for section, keys in _KEYS.items()
        for key in keys
    }
    return Project(
        places.file.parent.resolve(),
        sides[0],
        sides[1],
        _described(given["model"]),
        _described(given.get("label", ())),
        places=found,
        file=places.file.name,
        **chosen,
    )


def _listed(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _facts(given: Mapping[str, Any]) -> DataFacts:
    shape = {"shape": tuple(given["shape"])} if "shape" in given else {}
    return DataFacts(**{**given, **shape})


def _data(value: str | list[str], places: _Places) -> tuple[str, ...]:
    named = _listed(value)
    for name in named:
        if not (places.file.parent / name).exists():
            raise InputError(
                phrase(
                    "{place} names {name}: there is no such file or folder",
                    place=places.of("", "data"),
                    name=repr(name),
                ),
                hint=phrase("give its path relative to parfocal.toml, or absolute"),
            )
    return named


def _side(document: Mapping[str, Any], name: str, places: _Places) -> SideSettings:
    given = document.get(name)
    if given is None:
        raise InputError(
            phrase("{file} has no [{name}]", file=places.file.name, name=name),
            hint=phrase("write [{name}] with framework and model", name=name),
        )
    for key, example in (("framework", registry.names()[-1]), ("model", "file.py:build")):
        if key not in given:
            raise InputError(
                phrase("{place} is missing", place=places.of(name, key)),
                hint=phrase('write {key} = "{example}" under [{name}]', key=key, example=example, name=name),
            )
    if given["framework"] not in registry.names():
        raise InputError(
            phrase(
                "{place} is {value}; there are {names}",
                place=places.of(name, "framework"),
                value=repr(given["framework"]),
                names=joined(", ", registry.names()),
            )
        )
    factories = {key: given[key] for key in FACTORIES if key in given}
    for key, spec in factories.items():
        file = spec.rpartition(":")[0]
        if file.endswith(".py") and not (places.file.parent / file).is_file():
            place = places.of(name, key)
            raise InputError(
                phrase("{place} is {spec}: there is no file {file}", place=place, spec=repr(spec), file=file)
            )
    return SideSettings(
        name,
        given["framework"],
        given.get("python", ""),
        factories,
        {key: places.of(name, key) for key in (*_SIDE_KEYS, *CHECKPOINT_KEYS, "plan")},
        *_checkpoints(given, name, places),
        given.get("plan", ""),
    )


def _checkpoints(given: Mapping[str, Any], name: str, places: _Places) -> tuple[str, str]:
    """What the steps up to the backward pass are compared with, and what the training begins with."""
    for key in CHECKPOINT_KEYS:
        if key in given and not (places.file.parent / given[key]).is_file():
            raise InputError(
                phrase(
                    "{place} is {spec}: there is no file {file}",
                    place=places.of(name, key),
                    spec=repr(given[key]),
                    file=places.file.parent / given[key],
                ),
                hint=phrase("give its path relative to parfocal.toml, or absolute"),
            )
    both, published, initial = (given.get(key, "") for key in CHECKPOINT_KEYS)
    if both and (published or initial):
        written = [f'{key} = "{given.get(key, both)}"' for key in CHECKPOINT_KEYS[1:]]
        raise InputError(
            phrase(
                "{place} is one checkpoint for two needs, and {keys} is there as well",
                place=places.of(name, WEIGHTS),
                keys=joined(", ", [key for key in CHECKPOINT_KEYS[1:] if key in given]),
            ),
            hint=phrase(
                "in place of weights write {published} for the steps up to the backward pass, and {initial} "
                "for the training; without initial it begins from scratch",
                published=written[0],
                initial=written[1],
            ),
        )
    return both or published, both or initial


def _described(value: Any) -> tuple[str, ...] | str:
    """A file's name, or descriptions."""
    if isinstance(value, str):
        return value if value.endswith(_ARRAY_FILES) else (value,)
    return tuple(value)
