"""PaddlePaddle's layers made to order, and the lines of code that make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import paddle

from parfocal.backends.building import arguments_of, fitting, spelt
from parfocal.backends.paddle.kinds import is_framework_class
from parfocal.backends.paddle.models import Models
from parfocal.backends.paddle.recipes import RECIPES


class Building(Models):
    """What the search for a cause asks of a backend: layers made to order."""

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        chosen = fitting(RECIPES, kind, settings, "paddle")
        keywords = arguments_of(chosen, settings)
        with paddle.utils.unique_name.guard():  # names of the user's later layers stay as they would be
            return getattr(paddle.nn, chosen.name)(**keywords)

    def spell(self, kind: str, settings: Mapping[str, Any], always: Iterable[str] = ()) -> str:
        chosen = fitting(RECIPES, kind, settings, "paddle")
        shown = [argument.name for name in always for argument in chosen.arguments.get(name, ())]
        keywords = arguments_of(chosen, settings)
        return spelt("paddle.nn", getattr(paddle.nn, chosen.name), keywords, shown)

    def can_build(self, module: Any) -> bool:
        kind = self.kind(module)
        made = kind in RECIPES and getattr(paddle.nn, RECIPES[kind].name) is type(module)
        return made and is_framework_class(type(module))
