"""The layer maps of two dumps: which mapped layer of the base is which of the raw model."""

from __future__ import annotations

from itertools import zip_longest

from parfocal.compat.padiff.checker.dumps import Dump
from parfocal.compat.padiff.utils import log
from parfocal.compat.padiff.weight_init.special_init.special_init_pool import global_special_init_pool


def mapped_paths(dumps: tuple[Dump, Dump]) -> dict[str, str]:
    """Base route -> raw route, in the order in which both were given."""
    first, second = ([route for route, _ in dump.layer_map] for dump in dumps)
    return dict(zip(first, second, strict=False))


def check_layer_map(dumps: tuple[Dump, Dump]) -> bool:
    """Show the layer maps, and say where they do not fit together."""
    if not any(dump.layer_map for dump in dumps):
        return True
    log("Start check layer_map:")
    for base, raw in zip_longest(*(dump.layer_map for dump in dumps)):
        if base is None or raw is None:
            print(
                "\nError: The number of submodels which need special init is not the same! "
                "Check your layer_map first!"
            )
            return False
        if not _corresponding(base[1], raw[1]):
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


def _corresponding(base: str, raw: str) -> bool:
    return base == raw or f"{base}###{raw}" in global_special_init_pool.funcs
