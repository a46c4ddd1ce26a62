"""PaddlePaddle's layers made to order, and the lines of code that make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import paddle

from parfocal.backends.building import RecipeBuilder
from parfocal.backends.paddle.models import Models
from parfocal.backends.paddle.recipes import RECIPES


class Building(Models, RecipeBuilder):
    """What the search for a cause asks of a backend: layers made to order."""

    recipes = RECIPES
    home = paddle.nn

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        with paddle.utils.unique_name.guard():  # names of the user's later layers stay as they would be
            return super().layer(kind, settings)
