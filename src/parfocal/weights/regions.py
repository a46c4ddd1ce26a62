"""Regions: the parts of the two models that the user's ``layers`` argument ties together.

Units inside a mapped reference path may only be linked with units inside the port path it is
mapped to, and the other way round; the innermost mapping counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from parfocal.errors import InputError
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.weights.state import SideContents
from parfocal.weights.units import Unit


def regions_of(
    references: Sequence[Unit],
    ports: Sequence[Unit],
    layers: Mapping[str, str],
    contents: tuple[SideContents, SideContents],
) -> tuple[dict[str, str], dict[str, str]]:
    """Unit path -> region, for both sides; a unit outside every mapping is in none."""
    for reference, port in layers.items():
        _known(reference, contents[0], "reference")
        _known(port, contents[1], "port")
    by_port = {port: f"{reference} -> {port}" for reference, port in layers.items()}
    if len(by_port) != len(layers):
        twice = next(port for port in layers.values() if list(layers.values()).count(port) > 1)
        raise InputError(
            phrase("layers= maps two reference paths to the same port path {twice}", twice=repr(twice))
        )
    by_reference = {reference: f"{reference} -> {port}" for reference, port in layers.items()}
    return _labels(references, by_reference), _labels(ports, by_port)


def _labels(units: Sequence[Unit], names: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for unit in units:
        around = [path for path in names if unit.path == path or unit.path.startswith(path + ".") or not path]
        if around:
            found[unit.path] = names[max(around, key=len)]
    return found


def _known(path: str, contents: SideContents, side: str) -> None:
    paths = {*contents.owners, *(tensor.path for tensor in contents.stored)}
    if path not in paths:
        raise InputError(
            phrase(
                "layers= names {path}, which the {side} does not have{alike}",
                path=repr(path),
                side=side_name(side),
                alike=_alike(path, paths),
            )
        )


def _alike(path: str, paths: Iterable[str]) -> str:
    close = get_close_matches(path, list(paths), n=3)
    return phrase("; alike: {close}", close=", ".join(close)) if close else ""
