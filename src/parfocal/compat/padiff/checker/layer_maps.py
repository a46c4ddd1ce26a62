"""The layer maps of two dumps: which mapped layer of the base is which of the raw model."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from parfocal.compat.padiff.checker.dumps import Dump
from parfocal.compat.padiff.utils import log
from parfocal.compat.padiff.weight_init.special_init.special_init_pool import global_special_init_pool
from parfocal.weights.tables import FAMILIES

Mapped = tuple[str, str]  # route and class of a mapped layer


def mapped_paths(dumps: tuple[Dump, Dump]) -> dict[str, str]:
    """Base route -> raw route, in the order in which both were given."""
    first, second = ([route for route, _ in dump.layer_map] for dump in dumps)
    return dict(zip(first, second, strict=False))


def check_layer_map(dumps: tuple[Dump, Dump]) -> bool:
    """Show the layer maps, and say where they do not fit together."""
    if not any(dump.layer_map for dump in dumps):
        return True
    log("Start check layer_map:")
    kinds = tuple(_framework_kinds(dump) for dump in dumps)
    for base, raw in zip_longest(*(dump.layer_map for dump in dumps)):
        if base is None or raw is None:
            print(
                "\nError: The number of submodels which need special init is not the same! "
                "Check your layer_map first!"
            )
            return False
        if not _may_correspond(base, raw, kinds):
            print("\nError: When check layer_map in order, find that raw_model can not matchs base_model.")
            print(f"    base_model:  `{base[1]}` at `{base[0]}`")
            print(f"    raw_model: `{raw[1]}` at `{raw[0]}`")
            log("Check layer_map FAILED!!!\n")
            return False
        print(
            f"++++    base_model `{base[1]}` at `{base[0]}` <==>  raw_model `{raw[1]}` at `{raw[0]}`   ++++"
        )
    log("Check layer_map SUCCESS!!!\n")
    return True


def _may_correspond(base: Mapped, raw: Mapped, kinds: tuple[Mapping[str, str], ...]) -> bool:
    """Whether the map may be meant: only two layers of the frameworks of different families may not be.

    What a class of the user's does, and whether a special init copies it, a map does not tell.
    """
    if f"{base[1]}###{raw[1]}" in global_special_init_pool.funcs:
        return True
    first, second = kinds[0].get(base[0]), kinds[1].get(raw[0])
    if first is None or second is None:
        return True
    return FAMILIES.get(first, first) == FAMILIES.get(second, second)


def _framework_kinds(dump: Dump) -> dict[str, str]:
    """Route -> kind of every layer of the framework that was called."""
    tree = dump.document["tree"]
    found: dict[str, str] = {}
    waiting = list(tree) if isinstance(tree, list) else [tree]
    while waiting:
        entry = waiting.pop()
        waiting += entry["children"]
        if entry.get("builtin"):
            found[entry["route"]] = entry["kind"]
    return found
