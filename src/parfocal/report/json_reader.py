"""A report read back from its JSON: every value is checked against the type of its field.

The fields of the frozen dataclasses are the schema; there is no second list of them to keep in step.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from parfocal.brief import brief, some
from parfocal.errors import FileFormatError, InputError, ParfocalError, StorageError
from parfocal.judge.verdict import Cause, Finding, Grounds
from parfocal.phrases import Phrase, phrase, phrases_of
from parfocal.report.report import NOT_IN_JSON, SCHEMA, Report
from parfocal.weights.plan import Plan

_INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_NAMES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}
_BESIDE = frozenset(("ok", "schema", "phrases"))  # of a report's JSON: these are no fields of a report
_SENTENCES = frozenset(
    (
        *("message", "fix", "what", "detail", "why", "port_name", "reference_name"),
        *("rule", "reason", "evidence", "taken"),  # of the plan of weights
    )
)  # fields that hold phrases


def report_from(data: Any, source: str = "the report's JSON") -> Report:
    """The report whose ``to_json`` gave ``data``; ``source`` names it in errors."""
    reader = _Reader(source)
    if not isinstance(data, Mapping):
        raise reader.wrong("", data, phrase("an object with the fields of a report"))
    reader.check_schema(data)
    reader.read_phrases(data.get("phrases", {}))
    told = {name: value for name, value in data.items() if name not in _BESIDE}
    report = cast(Report, reader.dataclass_of(Report, told, ""))
    if data.get("ok") is not report.ok:
        raise FileFormatError(
            phrase(
                "{source}: ok is {value}, and there are {divergences} divergences",
                source=source,
                value=brief(data.get("ok")),
                divergences=len(report.divergences),
            ),
            hint=phrase("the file was changed by hand, or cut: save the report again"),
        )
    return report


def load_report(path: str | Path) -> Report:
    """Read a ``report.json``."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            phrase("{path} is no JSON: byte {start} is no UTF-8", path=path, start=error.start)
        ) from error
    except OSError as error:
        raise StorageError(
            phrase("cannot read {path}: {strerror}", path=path, strerror=error.strerror)
        ) from error
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        where = (
            f"line {error.lineno}, column {error.colno}: {error.msg}"
            if isinstance(error, json.JSONDecodeError)
            else "nested too deeply"
        )
        raise FileFormatError(
            phrase("{path} is no JSON: {where}", path=path, where=where),
            hint=phrase("a report.json that report.save(folder) wrote"),
        ) from error
    return report_from(data, str(path))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


class _Reader:
    """Turns JSON values into what a type says, and names the place where one does not fit."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.phrases: Mapping[str, Phrase] = {}

    def wrong(self, place: str, value: Any, wanted: str) -> FileFormatError:
        return FileFormatError(
            phrase(
                "{source}: {place} is {value}, and should be {wanted}",
                source=self.source,
                place=place or phrase("it"),
                value=brief(value),
                wanted=wanted,
            ),
            hint=phrase("a report.json that report.save(folder) wrote"),
        )

    def check_schema(self, data: Mapping[str, Any]) -> None:
        if "schema" not in data:
            raise FileFormatError(
                phrase(
                    "{source} is no report: it has no field 'schema' among {value}",
                    source=self.source,
                    value=some(sorted(map(str, data))),
                ),
                hint=phrase("a report.json that report.save(folder) wrote"),
            )
        if data["schema"] != SCHEMA:
            raise FileFormatError(
                phrase(
                    "{source}: schema is {value}, and this parfocal reads {schema}",
                    source=self.source,
                    value=brief(data["schema"]),
                    schema=SCHEMA,
                ),
                hint=phrase("read it with the version of parfocal that wrote it"),
            )

    def read_phrases(self, table: Any) -> None:
        """How the sentences of the report were made, so that they can be translated."""
        if not isinstance(table, Mapping):
            raise self.wrong("phrases", table, phrase("an object"))
        try:
            self.phrases = phrases_of(table)
        except ValueError as error:
            raise FileFormatError(
                phrase("{source}: phrases: {error}", source=self.source, error=error),
                hint=phrase("a report.json that report.save(folder) wrote"),
            ) from error

    def dataclass_of(self, kind: type, value: Any, place: str) -> Any:
        if not isinstance(value, Mapping):
            raise self.wrong(
                place, value, phrase("an object with the fields of a {kind}", kind=kind.__name__)
            )
        value = _FORMER[kind](value, self.phrases) if kind in _FORMER else value
        known = {item.name: item for item in fields(kind) if item.name not in NOT_IN_JSON}
        unknown = [name for name in value if name not in known]
        if unknown:
            raise self._misfit(place, kind, phrase("there is no field {unknown}", unknown=repr(unknown[0])))
        given = {}
        for name, item in known.items():
            if name in value:
                given[name] = self.read(_hints(kind)[name], value[name], f"{place}.{name}".lstrip("."))
            elif item.default is MISSING and item.default_factory is MISSING:
                raise self._misfit(place, kind, phrase("the field {name} is missing", name=repr(name)))
        try:
            return kind(**given)
        except InputError as error:
            raise FileFormatError(
                phrase(
                    "{source}: {place}: {message}",
                    source=self.source,
                    place=place or phrase("it"),
                    message=error.message,
                ),
                hint=error.hint,
            ) from error
        except (TypeError, ValueError) as error:
            raise FileFormatError(
                phrase(
                    "{source}: {place}: {error}", source=self.source, place=place or phrase("it"), error=error
                )
            ) from error

    def _misfit(self, place: str, kind: type, problem: str) -> ParfocalError:
        names = ", ".join(item.name for item in fields(kind) if item.name not in NOT_IN_JSON)
        where = f"{place}: " if place else ""
        return FileFormatError(
            phrase("{source}: {where}{problem}", source=self.source, where=where, problem=problem),
            hint=phrase("the fields of a {kind} are {names}", kind=kind.__name__, names=names),
        )

    def read(self, wanted: Any, value: Any, place: str) -> Any:
        """The value as ``wanted``, a type hint of a field."""
        origin = get_origin(wanted)
        if wanted is Any:
            return _frozen(value)
        if origin in (Union, types.UnionType):
            return self._one_of(get_args(wanted), value, place)
        if origin is Literal:
            if value not in get_args(wanted):
                raise self.wrong(
                    place, value, phrase("one of {choices}", choices=", ".join(map(repr, get_args(wanted))))
                )
            return value
        if origin is tuple:
            return self._tuple(get_args(wanted), value, place)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(get_args(wanted), value, place)
        if isinstance(wanted, type) and is_dataclass(wanted):
            return self.dataclass_of(wanted, value, place)
        if isinstance(wanted, type) and issubclass(wanted, Enum):
            return self._member(wanted, value, place)
        return self._scalar(wanted, value, place)

    def _one_of(self, kinds: Sequence[Any], value: Any, place: str) -> Any:
        if value is None and type(None) in kinds:
            return None
        rest = [kind for kind in kinds if kind is not type(None)]
        for kind in rest[:-1]:
            if _fits(kind, value):
                return self.read(kind, value, place)
        return self.read(rest[-1], value, place)

    def _tuple(self, kinds: Sequence[Any], value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise self.wrong(place, value, phrase("a list"))
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            kinds = (kinds[0],) * len(value)
        if len(kinds) != len(value):
            raise self.wrong(place, value, phrase("a list of {count}", count=len(kinds)))
        return tuple(
            self.read(kind, item, f"{place}[{index}]")
            for index, (kind, item) in enumerate(zip(kinds, value, strict=True))
        )

    def _mapping(self, kinds: Sequence[Any], value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.wrong(place, value, phrase("an object"))
        return {name: self.read(kinds[1], item, f"{place}.{name}") for name, item in value.items()}

    def _member(self, kind: type[Enum], value: Any, place: str) -> Enum:
        try:
            return kind(value)
        except ValueError:
            allowed = ", ".join(repr(member.value) for member in kind)
            raise self.wrong(place, value, phrase("one of {choices}", choices=allowed)) from None

    def _scalar(self, kind: Any, value: Any, place: str) -> Any:
        if kind is complex and isinstance(value, list):
            return complex(*self._tuple((float, float), value, place))
        if not _fits(kind, value):
            raise self.wrong(place, value, _NAMES.get(kind, f"a {getattr(kind, '__name__', kind)}"))
        if kind is float:
            return _INFINITE[value] if isinstance(value, str) else float(value)
        if kind is str and place.rpartition(".")[2].partition("[")[0] in _SENTENCES:
            return self.phrases.get(value, value)
        return value


def _former_finding(value: Mapping[str, Any], phrases: Mapping[str, Phrase]) -> Mapping[str, Any]:
    """The setting was a sentence; the phrase that it was has the name and both values."""
    if not isinstance(value.get("setting"), str):
        return value
    sentence = phrases.get(value["setting"])
    return {**value, "setting": None if sentence is None else sentence.values}


def _former_plan(value: Mapping[str, Any], _phrases: Mapping[str, Phrase]) -> Mapping[str, Any]:
    """Notes were sentences; which of them was what stood in other fields, by the same sentences."""
    if not isinstance(value.get("notes"), list):
        return value
    first = value.get("first_difference")
    noted = [{"message": note, "is_first_difference": note == first} for note in value["notes"]]
    former = ("notes", "first_difference", "settings")
    return {**{name: item for name, item in value.items() if name not in former}, "noted": noted}


def _former_cause(value: Mapping[str, Any], _phrases: Mapping[str, Phrase]) -> Mapping[str, Any]:
    """Whether a cause was proven was not written, only a score, which may have been measured or not."""
    if "score_after" not in value:
        return value
    kept = {name: item for name, item in value.items() if name != "score_after"}
    return {**kept, "proof": None, "rests_on": Grounds.NOT_SAID.value}


# Objects that were written otherwise before, as they are written now.
_FORMER: dict[type, Callable[[Mapping[str, Any], Mapping[str, Phrase]], Mapping[str, Any]]] = {
    Cause: _former_cause,
    Finding: _former_finding,
    Plan: _former_plan,
}


def _fits(kind: Any, value: Any) -> bool:
    """Whether a JSON value can stand for a plain type."""
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number or (isinstance(value, str) and value in _INFINITE)
    if kind is str:
        return isinstance(value, str)
    return False


def _frozen(value: Any) -> Any:
    """A setting: the sequences that layers are set with are tuples."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, Mapping):
        return {name: _frozen(item) for name, item in value.items()}
    return value
