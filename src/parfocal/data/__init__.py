"""Facts that people read, as TOML files with both languages side by side, read into frozen dataclasses.

A file is checked against the fields of its dataclass when it is first read, and an error says which entry
and which key is wrong. Nothing is read before something asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from importlib.resources import files
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")


class DataError(ValueError):
    """A file of facts is not what its reader expects."""


@dataclass(frozen=True, slots=True)
class Text:
    """One sentence in both languages."""

    english: str
    chinese: str

    def words(self, language: str) -> str:
        return self.chinese if language == "zh" else self.english


def read(kind: type[T], file: str) -> T:
    """A file of this package as ``kind``: a dataclass with a field for each key, or a dict of such."""
    return parse(kind, text_of(file), file)


def text_of(file: str) -> str:
    return files(__name__).joinpath(file).read_text(encoding="utf-8")


def parse(kind: type[T], text: str, file: str) -> T:
    try:
        made: T = _made(kind, tomllib.loads(text), file)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{file}: {error}") from error
    return made


def check_unique(names: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{where}: {name} stands twice")
        seen.add(name)


def _made(kind: Any, value: Any, where: str) -> Any:
    """A value of TOML as a type says: a dataclass, a tuple, a mapping, an enum or a plain value."""
    if get_origin(kind) is tuple:
        (part, *_), entries = get_args(kind), _checked(list, value, where)
        made = tuple(_made(part, each, f"{where}: {_name(each, n)}") for n, each in enumerate(entries, 1))
        check_unique((each.id for each in made if hasattr(each, "id")), where)
        return made
    if get_origin(kind) in (Mapping, dict):
        table, (_, part) = _checked(dict, value, where), get_args(kind)
        return {name: _made(part, each, f"{where}: {name}") for name, each in table.items()}
    if is_dataclass(kind):
        return _record(kind, _checked(dict, value, where), where)
    if kind is Any:
        return tuple(_made(Any, each, where) for each in value) if isinstance(value, list) else value
    if issubclass(kind, Enum):
        known = {each.value: each for each in kind}
        if value not in known:
            raise DataError(f"{where}: {value!r} is none of {', '.join(map(repr, known))}")
        return known[value]
    if kind is str and not _checked(str, value, where).strip():
        raise DataError(f"{where}: the text is empty")
    return _checked(kind, value, where)


def _record(kind: Any, table: Mapping[str, Any], where: str) -> Any:
    types = _types(kind)
    required = {each.name for each in fields(kind) if each.default is each.default_factory is MISSING}
    for wrong, keys in (("unknown", table.keys() - types), ("missing", required - table.keys())):
        if keys:
            raise DataError(f"{where}: {wrong} key {', '.join(sorted(keys))}")
    return kind(**{key: _made(types[key], value, f"{where}: {key}") for key, value in table.items()})


def _name(entry: Any, number: int) -> str:
    return str(entry.get("id", number) if isinstance(entry, dict) else number)


def _checked(kind: type[T], value: Any, where: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"{where}: expected {kind.__name__}, not {value!r}")
    return value


@lru_cache
def _types(kind: Any) -> dict[str, Any]:
    """What each key holds; of one that may be left out, what it holds where it stands."""
    hints = get_type_hints(kind)
    return {key: get_args(hint)[0] if get_origin(hint) is UnionType else hint for key, hint in hints.items()}
