"""The PaddlePaddle backend, put together from its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import paddle

from parfocal.backends.building import RecipeBuilder
from parfocal.backends.functions import FunctionClass
from parfocal.backends.paddle.checkpoints import Checkpoints
from parfocal.backends.paddle.initialisers import Initialisers
from parfocal.backends.paddle.launching import Launching
from parfocal.backends.paddle.recipes import RECIPES
from parfocal.backends.paddle.recording import Recording
from parfocal.backends.paddle.surgery import Surgery
from parfocal.backends.paddle.updating import Updating


class PaddleBackend(
    Updating, Checkpoints, Recording, Surgery, FunctionClass, RecipeBuilder, Initialisers, Launching
):
    """PaddlePaddle, as ``protocol.py`` wants it."""

    function_class = paddle.autograd.PyLayer
    grad = staticmethod(paddle.grad)
    recipes: ClassVar = {kind: each for kind, each in RECIPES.items() if hasattr(paddle.nn, each.name)}
    home = paddle.nn

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        with paddle.utils.unique_name.guard():  # names of the user's later layers stay as they would be
            return super().layer(kind, settings)
