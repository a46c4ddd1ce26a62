"""PyTorch's layers made to order, and the lines of code that make them."""

from __future__ import annotations

import torch

from parfocal.backends.building import RecipeBuilder
from parfocal.backends.torch.models import Models
from parfocal.backends.torch.recipes import RECIPES


class Building(Models, RecipeBuilder):
    """What the search for a cause asks of a backend: layers made to order."""

    recipes = RECIPES
    home = torch.nn
