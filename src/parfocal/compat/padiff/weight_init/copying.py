"""The transfer as PaDiff's documents describe it: names may say nothing, definition order then decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parfocal.backends import registry
from parfocal.errors import TransferError
from parfocal.weights.plan import Plan
from parfocal.weights.state import read_model
from parfocal.weights.transfer import transfer
from parfocal.weights.units import Unit, read_units


def copy_weights(
    base: Any, raw: Any, mapped: Mapping[str, str] | None = None, *, partial: bool = False
) -> Plan:
    """Copy by names, kinds and shapes; where these leave it open, by definition order.

    ``mapped`` is base path -> raw path of layers that the user has mapped.
    """
    mapped = mapped or {}
    ordered = _by_definition_order(base, raw, mapped)
    try:
        plan = transfer(base, raw, layers=mapped, partial=partial)
    except TransferError:
        if ordered is None:
            raise
        return transfer(base, raw, layers=ordered, partial=partial)
    return transfer(base, raw, layers=ordered, partial=partial) if plan.ambiguous and ordered else plan


def units_of(model: Any) -> list[Unit]:
    """The layers with weights, in definition order."""
    contents = read_model(registry.of(model), model)
    return [unit for unit in read_units(contents) if unit.required]


def _by_definition_order(base: Any, raw: Any, mapped: Mapping[str, str]) -> dict[str, str] | None:
    """Base path -> raw path of all layers with weights, when these are alike one by one."""
    first = _outside(units_of(base), list(mapped))
    second = _outside(units_of(raw), list(mapped.values()))
    if len(first) != len(second) or any(a.key != b.key for a, b in zip(first, second, strict=True)):
        return None
    return {**mapped, **{a.path: b.path for a, b in zip(first, second, strict=True)}}


def _outside(units: list[Unit], heads: list[str]) -> list[Unit]:
    return [unit for unit in units if not any(is_inside(unit.module, head) for head in heads)]


def is_inside(path: str, head: str) -> bool:
    """Whether a path is that of the head or below it; everything is below the root."""
    return not head or path == head or path.startswith(f"{head}.")
