"""Records to JSON lines and back, strictly.

A record is a JSON object with a ``type`` tag; its fields are coded as ``codecs.py`` says,
so a new record class is one entry in ``RECORD_TYPES``. What cannot be read back exactly is
refused on writing; on reading, the first wrong field is named together with file and line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from parfocal.errors import FileFormatError, InputError
from parfocal.phrases import phrase
from parfocal.run.codecs import decode_fields, encode_fields
from parfocal.run.jsonvalues import FieldError
from parfocal.run.records import (
    SCHEMA_VERSION,
    CallRecord,
    Contents,
    FloorRecord,
    GradientRecord,
    InterruptionRecord,
    OptimizerRecord,
    Record,
    RunHeader,
    StateRecord,
    StepRecord,
    ValueRecord,
)
from parfocal.run.texts import fields_text

RECORD_TYPES: dict[str, type[Any]] = {
    "call": CallRecord,
    "gradient": GradientRecord,
    "state": StateRecord,
    "optimizer": OptimizerRecord,
    "floor": FloorRecord,
    "interruption": InterruptionRecord,
    "step": StepRecord,
    "value": ValueRecord,
}
_TAGS = {cls: tag for tag, cls in RECORD_TYPES.items()}


def encode_record(record: Record) -> bytes:
    """One line, newline included."""
    tag = _TAGS.get(type(record))
    if tag is None:
        raise InputError(
            phrase(
                "cannot store a {kind}; records are {tags}",
                kind=type(record).__name__,
                tags=", ".join(c.__name__ for c in _TAGS),
            )
        )
    try:
        return fields_text(record, "", type=tag).encode("ascii") + b"\n"
    except (FieldError, RecursionError) as error:
        raise _unstorable(record, error) from None


def decode_record(line: bytes, where: str) -> Record:
    """The record of one line; ``where`` names file and line in errors."""
    with _reading(where):
        data = _parse_object(line)
        tag = data.pop("type", None)
        cls = RECORD_TYPES.get(tag) if isinstance(tag, str) else None
        if cls is None:
            raise FieldError(
                "type",
                phrase(
                    "is {tag}; allowed are {record_types}",
                    tag=repr(tag),
                    record_types=", ".join(RECORD_TYPES),
                ),
            )
        record: Record = decode_fields(cls, data, "")
        return record


def encode_header(header: RunHeader, contents: Contents | None) -> bytes:
    """The text of ``run.json``; ``contents`` is known only once the run is closed."""
    data = {"type": "run", **_encoded(header)}
    if contents is not None:
        data["contents"] = _encoded(contents)
    return _dump(data) + b"\n"


def decode_header(text: bytes, where: str) -> tuple[RunHeader, Contents | None]:
    """Header and contents of a ``run.json``; a newer schema is refused by its number."""
    with _reading(where):
        data = _parse_object(text)
        if data.pop("type", None) != "run":
            raise FieldError("type", phrase("is not 'run': this file does not describe a Run"))
        _check_schema(data.get("schema"), where)
        contents = data.pop("contents", None)
        header: RunHeader = decode_fields(RunHeader, data, "")
        if header.ranks < 1:
            raise FieldError("ranks", phrase("is {ranks}, at least 1 is needed", ranks=header.ranks))
        if contents is None:
            return header, None
        return header, decode_fields(Contents, contents, "contents")


def _check_schema(schema: object, where: str) -> None:
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise FieldError("schema", phrase("is {schema}, not a version number", schema=repr(schema)))
    if schema > SCHEMA_VERSION:
        raise FileFormatError(
            phrase(
                "{where}: schema version {schema}; this parfocal reads up to {schema_version}",
                where=where,
                schema=schema,
                schema_version=SCHEMA_VERSION,
            ),
            hint=phrase("the run was written by a newer parfocal: upgrade"),
        )


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Everything that can be wrong with the text is one ``FileFormatError`` that says where."""
    try:
        yield
    except FieldError as error:
        raise FileFormatError(
            phrase(
                "{where}: field {field} {problem}",
                where=where,
                field=repr(error.field),
                problem=error.problem,
            )
        ) from None
    except RecursionError:
        raise FileFormatError(phrase("{where}: nested too deeply", where=where)) from None
    except ValueError as error:  # also of JSON and of Unicode
        raise FileFormatError(
            phrase("{where}: not a JSON object: {error}", where=where, error=error)
        ) from None


def _dump(data: object) -> bytes:
    return json.dumps(data, allow_nan=False, indent=2).encode("ascii")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse_object(text: bytes) -> dict[str, Any]:
    data = json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    if not isinstance(data, dict):
        raise ValueError(f"found {type(data).__name__}")
    return data


def _unstorable(instance: Any, error: FieldError | RecursionError) -> InputError:
    """What cannot be stored is one error that names the field."""
    problem = (
        phrase("field {field} {problem}", field=repr(error.field), problem=error.problem)
        if isinstance(error, FieldError)
        else phrase("nested too deeply")
    )
    return InputError(phrase("cannot store {kind}: {problem}", kind=type(instance).__name__, problem=problem))


def _encoded(instance: Any) -> dict[str, Any]:
    try:
        return encode_fields(instance, "")
    except (FieldError, RecursionError) as error:
        raise _unstorable(instance, error) from None
