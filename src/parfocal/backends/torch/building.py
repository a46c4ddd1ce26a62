"""PyTorch's layers made to order, and the lines of code that make them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from parfocal.backends.building import arguments_of, fitting, spelt
from parfocal.backends.torch.kinds import is_framework_class
from parfocal.backends.torch.models import Models
from parfocal.backends.torch.recipes import RECIPES


class Building(Models):
    """What the search for a cause asks of a backend: layers made to order."""

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        chosen = fitting(RECIPES, kind, settings, "torch")
        return getattr(torch.nn, chosen.name)(**arguments_of(chosen, settings))

    def spell(self, kind: str, settings: Mapping[str, Any], always: Iterable[str] = ()) -> str:
        chosen = fitting(RECIPES, kind, settings, "torch")
        shown = [argument.name for name in always for argument in chosen.arguments.get(name, ())]
        return spelt("torch.nn", getattr(torch.nn, chosen.name), arguments_of(chosen, settings), shown)

    def can_build(self, module: Any) -> bool:
        kind = self.kind(module)
        made = kind in RECIPES and getattr(torch.nn, RECIPES[kind].name) is type(module)
        return made and is_framework_class(type(module))
