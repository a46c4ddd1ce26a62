"""A plan as a JSON file that a person can read, edit and hand back.

Reading checks every field and says where a wrong one stands (``entries[3].target_view``). Fields
that only inform (shapes, rule, evidence, confidence) may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from parfocal.brief import brief
from parfocal.errors import FileFormatError, InputError, StorageError
from parfocal.judge.verdict import SettingDifference
from parfocal.phrases import phrase
from parfocal.weights import views
from parfocal.weights.plan import Ambiguity, Basis, Entry, Exchange, Leftover, Plan, PlanNote, Presumption

FORMAT = "parfocal.plan"
VERSION = 1


def to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON values, which ``load`` understands."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "entries": [_entry_to_json(entry) for entry in plan.entries],
        "unmatched_reference": [asdict(item) for item in plan.unmatched_reference],
        "unmatched_port": [asdict(item) for item in plan.unmatched_port],
        "ambiguous": [asdict(item) for item in plan.ambiguous],
        "presumed": [{**asdict(item), "basis": item.basis.name.lower()} for item in plan.presumed],
        "permuted": [asdict(item) for item in plan.permuted],
        "idle_reference": [asdict(item) for item in plan.idle_reference],
        "idle_port": [asdict(item) for item in plan.idle_port],
        "notes": [_note_to_json(note) for note in plan.noted],
        "verified": plan.verified,
    }


def save(plan: Plan, path: Path) -> None:
    """Write the plan; one entry a line would hide the views, so it is indented."""
    document = to_json(plan)
    try:
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            phrase("cannot write the plan to {path}: {error}", path=path, error=error.strerror or error)
        ) from error


def load(path: Path) -> Plan:
    """Read a plan; a FileFormatError names the place of anything wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(
            phrase("cannot read the plan {path}: {error}", path=path, error=error.strerror or error)
        ) from error
    except UnicodeDecodeError as error:
        raise FileFormatError(phrase("{path} is not a plan: it is not UTF-8 text", path=path)) from error
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileFormatError(
            phrase(
                "{path} is not valid JSON: {msg} at line {lineno}, column {colno}",
                path=path,
                msg=error.msg,
                lineno=error.lineno,
                colno=error.colno,
            ),
            hint=phrase("a comma too many or a quote too few after editing is the usual reason"),
        ) from error
    return _plan(document, _Reader(path))


class _Reader:
    """Fetches typed fields and knows where it is."""

    def __init__(self, path: Path, place: str = "") -> None:
        self.path = path
        self.place = place

    def at(self, place: str) -> _Reader:
        return _Reader(self.path, f"{self.place}{place}")

    def wrong(self, what: str, hint: str = "") -> FileFormatError:
        where = f"{self.place}: " if self.place else ""
        return FileFormatError(
            phrase("{path} is not a usable plan: {where}{what}", path=self.path, where=where, what=what),
            hint=hint,
        )

    def field(
        self, mapping: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any = ...
    ) -> Any:
        if name not in mapping:
            if default is ...:
                raise self.wrong(phrase("the field {name} is missing", name=repr(name)))
            return default
        value = mapping[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, float, (int, float))):
            wanted = kind.__name__ if isinstance(kind, type) else " or ".join(each.__name__ for each in kind)
            raise self.wrong(
                phrase(
                    "the field {name} is {value}, expected a {wanted}",
                    name=repr(name),
                    value=brief(value),
                    wanted=wanted,
                )
            )
        return value

    def mapping(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(phrase("expected an object, found {value}", value=brief(value)))
        return value

    def strings(self, mapping: dict[str, Any], name: str) -> tuple[str, ...]:
        values = self.field(mapping, name, list, [])
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(
                phrase(
                    "the field {name} must be a list of strings, found {values}",
                    name=repr(name),
                    values=brief(values),
                )
            )
        return tuple(values)

    def shape(self, mapping: dict[str, Any], name: str) -> tuple[int, ...]:
        values = self.field(mapping, name, list, [])
        if not all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in values):
            raise self.wrong(
                phrase(
                    "the field {name} must be a list of sizes, found {values}",
                    name=repr(name),
                    values=brief(values),
                )
            )
        return tuple(values)

    def view(self, mapping: dict[str, Any], name: str) -> views.View:
        try:
            return views.from_json(mapping.get(name, []))
        except InputError as error:
            raise self.wrong(
                phrase("the field {name}: {message}", name=repr(name), message=error.message), hint=error.hint
            ) from error


def _plan(document: Any, reader: _Reader) -> Plan:
    top = reader.mapping(document)
    if top.get("format") != FORMAT:
        raise reader.wrong(
            phrase(
                "its format is {found}, expected {format}", found=repr(top.get("format")), format=repr(FORMAT)
            )
        )
    if top.get("version") != VERSION:
        raise reader.wrong(
            phrase(
                "its version is {found}, this release reads version {version}",
                found=repr(top.get("version")),
                version=VERSION,
            )
        )
    return Plan(
        entries=tuple(_entry(*item) for item in _items(top, "entries", reader)),
        unmatched_reference=tuple(_left(*item) for item in _items(top, "unmatched_reference", reader, [])),
        unmatched_port=tuple(_left(*item) for item in _items(top, "unmatched_port", reader, [])),
        ambiguous=tuple(_ambiguity(*item) for item in _items(top, "ambiguous", reader, [])),
        presumed=tuple(_presumption(*item) for item in _items(top, "presumed", reader, [])),
        permuted=tuple(_exchange(*item) for item in _items(top, "permuted", reader, [])),
        idle_reference=tuple(_left(*item) for item in _items(top, "idle_reference", reader, [])),
        idle_port=tuple(_left(*item) for item in _items(top, "idle_port", reader, [])),
        noted=tuple(_notes(top, reader)),
        verified=reader.field(top, "verified", (bool, type(None)), None),
    )


def _items(
    top: dict[str, Any], name: str, reader: _Reader, default: Any = ...
) -> list[tuple[dict[str, Any], _Reader]]:
    found = []
    for number, item in enumerate(reader.field(top, name, list, default)):
        inside = reader.at(f"{name}[{number}]")
        found.append((inside.mapping(item), inside))
    return found


def _entry(item: dict[str, Any], reader: _Reader) -> Entry:
    unknown = sorted(set(item) - set(Entry.__dataclass_fields__))
    if unknown:
        raise reader.wrong(
            phrase(
                "there is no field {unknown}; the fields are: {fields}",
                unknown=repr(unknown[0]),
                fields=", ".join(Entry.__dataclass_fields__),
            )
        )
    return Entry(
        source=reader.field(item, "source", str),
        target=reader.field(item, "target", str),
        source_view=reader.view(item, "source_view"),
        target_view=reader.view(item, "target_view"),
        rule=reader.field(item, "rule", str, phrase("by hand")),
        source_shape=reader.shape(item, "source_shape"),
        target_shape=reader.shape(item, "target_shape"),
        evidence=reader.strings(item, "evidence"),
        confidence=float(reader.field(item, "confidence", (int, float), 1.0)),
    )


def _left(item: dict[str, Any], reader: _Reader) -> Leftover:
    return Leftover(
        path=reader.field(item, "path", str),
        shape=reader.shape(item, "shape"),
        reason=reader.field(item, "reason", str, ""),
        nearest=reader.strings(item, "nearest"),
    )


def _ambiguity(item: dict[str, Any], reader: _Reader) -> Ambiguity:
    return Ambiguity(
        targets=reader.strings(item, "targets"),
        candidates=reader.strings(item, "candidates"),
        reason=reader.field(item, "reason", str, ""),
    )


def _presumption(item: dict[str, Any], reader: _Reader) -> Presumption:
    basis = reader.field(item, "basis", str)
    if basis.upper() not in Basis.__members__:
        known = ", ".join(name.lower() for name in Basis.__members__)
        raise reader.wrong(
            phrase("the field 'basis' is {basis}, expected one of: {known}", basis=repr(basis), known=known)
        )
    return Presumption(
        targets=reader.strings(item, "targets"),
        candidates=reader.strings(item, "candidates"),
        taken=reader.field(item, "taken", str, ""),
        basis=Basis[basis.upper()],
    )


def _notes(top: dict[str, Any], reader: _Reader) -> Iterator[PlanNote]:
    """A text, or an object with what it is about. Older files name the first difference by its text."""
    first = reader.field(top, "first_difference", str, None)
    for number, item in enumerate(reader.field(top, "notes", list, [])):
        if isinstance(item, str):
            yield PlanNote(item, is_first_difference=item == first)
        else:
            inside = reader.at(f"notes[{number}]")
            yield _note(inside.mapping(item), inside)


def _note(item: dict[str, Any], reader: _Reader) -> PlanNote:
    setting = reader.field(item, "setting", (dict, type(None)), None)
    inside = reader.at(".setting")
    return PlanNote(
        message=reader.field(item, "message", str),
        setting=None
        if setting is None
        else SettingDifference(*(inside.field(setting, name, str) for name in ("name", "reference", "port"))),
        is_first_difference=reader.field(item, "is_first_difference", bool, False),
    )


def _exchange(item: dict[str, Any], reader: _Reader) -> Exchange:
    return Exchange(
        targets=reader.strings(item, "targets"),
        fitting=reader.strings(item, "fitting"),
        named=reader.strings(item, "named"),
        certain=reader.field(item, "certain", bool),
    )


def _note_to_json(note: PlanNote) -> str | dict[str, Any]:
    """Most are a text and no more, which is easier to read and to edit."""
    return note.message if note == PlanNote(note.message) else asdict(note)


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    return {
        "source": entry.source,
        "target": entry.target,
        "source_view": views.to_json(entry.source_view),
        "target_view": views.to_json(entry.target_view),
        "rule": entry.rule,
        "source_shape": list(entry.source_shape),
        "target_shape": list(entry.target_shape),
        "evidence": list(entry.evidence),
        "confidence": entry.confidence,
    }
