"""Finds the pairs of modules that the user's rules take care of, and lets the rules copy.

What lies inside such a pair is taken out of both sides before anything is matched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parfocal.errors import TransferError
from parfocal.phrases import phrase
from parfocal.weights.rules import Rule
from parfocal.weights.state import SideContents
from parfocal.weights.writer import WritableModel


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule and the two modules it is for."""

    rule: Rule
    reference_path: str
    port_path: str
    reference: Any
    port: Any


def pair(
    reference: WritableModel, port: WritableModel, rules: Sequence[Rule], layers: Mapping[str, str]
) -> list[AppliedRule]:
    """Modules that a rule fits: as ``layers`` says, otherwise the first with the first, in order."""
    mine, yours = reference.backend.modules(reference.model), port.backend.modules(port.model)
    found: list[AppliedRule] = []
    for rule in rules:
        taken = {each.reference_path for each in found}, {each.port_path for each in found}
        left = [
            p for p, m in mine.items() if rule.fits_reference(reference.backend.name, m) and p not in taken[0]
        ]
        right = [p for p, m in yours.items() if rule.fits_port(port.backend.name, m) and p not in taken[1]]
        said = [(path, layers[path]) for path in left if layers.get(path) in right]
        rest = (
            [path for path in left if path not in dict(said)],
            [path for path in right if path not in dict(said).values()],
        )
        if len(rest[0]) != len(rest[1]) and rest[0] and rest[1]:
            raise TransferError(
                phrase(
                    "the rule {reference_class} -> {port_class} fits {count} modules of the "
                    "reference ({modules}) and {port_count} of the port ({port_modules})",
                    reference_class=rule.reference_class,
                    port_class=rule.port_class,
                    count=len(rest[0]),
                    modules=", ".join(rest[0]),
                    port_count=len(rest[1]),
                    port_modules=", ".join(rest[1]),
                ),
                hint=phrase("say which belong together: layers={{'reference path': 'port path'}}"),
            )
        pairs = [*said, *zip(*rest, strict=True)] if rest[0] and rest[1] else said
        found += [AppliedRule(rule, a, b, mine[a], yours[b]) for a, b in pairs]
    return found


def without(
    contents: tuple[SideContents, SideContents], ruled: Sequence[AppliedRule]
) -> tuple[SideContents, SideContents]:
    """Both sides without what the rules take care of."""
    return (
        _cut(contents[0], [each.reference_path for each in ruled]),
        _cut(contents[1], [each.port_path for each in ruled]),
    )


def copy(ruled: Sequence[AppliedRule]) -> None:
    """Let every rule do its work."""
    for each in ruled:
        try:
            each.rule.function(each.reference, each.port)
        except Exception as error:
            raise TransferError(
                phrase(
                    "the rule {reference_class} -> {port_class} failed for {reference_path} -> "
                    "{port_path}: {kind}: {error}",
                    reference_class=each.rule.reference_class,
                    port_class=each.rule.port_class,
                    reference_path=each.reference_path,
                    port_path=each.port_path,
                    kind=type(error).__name__,
                    error=error,
                ),
                hint=phrase(
                    "the function gets (reference_module, port_module) and copies all weights itself"
                ),
            ) from error


def notes(ruled: Sequence[AppliedRule]) -> list[str]:
    return [
        phrase(
            "{reference_path} -> {port_path}: copied by a rule of the user",
            reference_path=each.reference_path,
            port_path=each.port_path,
        )
        for each in ruled
    ]


def _cut(contents: SideContents, paths: Sequence[str]) -> SideContents:
    def inside(path: str) -> bool:
        return any(not top or path == top or path.startswith(top + ".") for top in paths)

    stored = tuple(tensor for tensor in contents.stored if not inside(tensor.module))
    owners = {path: owner for path, owner in contents.owners.items() if not inside(path)}
    return replace(contents, stored=stored, owners=owners) if paths else contents
