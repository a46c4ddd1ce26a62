"""The registry of special inits, by the classes of the base and the raw layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Init = Callable[[Any, Any], object]


def build_name(base_framework: str, base_model_name: str, raw_framework: str, raw_model_name: str) -> str:
    """The registry's key: ``torch::LSTM###paddle::LSTM``."""
    return f"{base_framework}::{base_model_name}###{raw_framework}::{raw_model_name}"


class SpecialInitPool:
    """Functions ``(base layer, raw layer)`` that copy the weights of the one into the other."""

    def __init__(self) -> None:
        self.funcs: dict[str, Init] = {}
        self.registered_base_models: set[str] = set()
        self.registered_raw_models: set[str] = set()

    def register(
        self, base_framework: str, base_model_name: str, raw_framework: str, raw_model_name: str
    ) -> Callable[[Init], Init]:
        """A decorator that adds a function."""

        def add(function: Init) -> Init:
            self.add(base_framework, base_model_name, raw_framework, raw_model_name, function)
            return function

        return add

    def add(
        self,
        base_framework: str,
        base_model_name: str,
        raw_framework: str,
        raw_model_name: str,
        function: Init,
    ) -> None:
        """Add a function, in place of one for the same classes."""
        self.registered_base_models.add(f"{base_framework}::{base_model_name}")
        self.registered_raw_models.add(f"{raw_framework}::{raw_model_name}")
        self.funcs[build_name(base_framework, base_model_name, raw_framework, raw_model_name)] = function


global_special_init_pool = SpecialInitPool()


def add_special_init(
    base_framework: str, base_model_name: str, raw_framework: str, raw_model_name: str, func: Init
) -> None:
    """Use ``func(base_layer, raw_layer)`` for mapped layers of these classes, in this direction."""
    global_special_init_pool.add(base_framework, base_model_name, raw_framework, raw_model_name, func)
