"""Plain data that goes from process to process, or is kept, and whose sentences can still be translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parfocal.phrases import phrase_table, phrases_of

_PHRASES = "phrases"


def pack(data: Mapping[str, Any]) -> dict[str, Any]:
    """For JSON: how its sentences were made lies beside them."""
    return {**data, _PHRASES: phrase_table(data)}


def unpack(data: Mapping[str, Any]) -> dict[str, Any]:
    """What ``pack`` was given, with phrases for sentences; ValueError where these do not fit."""
    known = phrases_of(data.get(_PHRASES, {}))

    def restored(value: Any) -> Any:
        if isinstance(value, str):
            return known.get(value, value)
        if isinstance(value, Mapping):
            return {key: restored(item) for key, item in value.items()}
        if isinstance(value, list):
            return [restored(item) for item in value]
        return value

    return {key: restored(value) for key, value in data.items() if key != _PHRASES}
