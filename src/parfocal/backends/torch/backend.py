"""The PyTorch backend, put together from its parts."""

from __future__ import annotations

import torch

from parfocal.backends.building import RecipeBuilder
from parfocal.backends.functions import FunctionClass
from parfocal.backends.torch.checkpoints import Checkpoints
from parfocal.backends.torch.initialisers import Initialisers
from parfocal.backends.torch.launching import Launching
from parfocal.backends.torch.recipes import RECIPES
from parfocal.backends.torch.recording import Recording
from parfocal.backends.torch.surgery import Surgery
from parfocal.backends.torch.updating import Updating


class TorchBackend(
    Updating, Checkpoints, Recording, Surgery, FunctionClass, RecipeBuilder, Initialisers, Launching
):
    """PyTorch, as ``protocol.py`` wants it."""

    function_class = torch.autograd.Function
    grad = staticmethod(torch.autograd.grad)
    recipes = RECIPES
    home = torch.nn
