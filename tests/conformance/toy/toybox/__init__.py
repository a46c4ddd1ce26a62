"""A framework small enough to read in ten minutes: tensors on NumPy arrays, a tape, a handful of layers."""

from __future__ import annotations

from toybox import functions, layers, tape
from toybox.files import load, save
from toybox.functions import *  # noqa: F403
from toybox.layers import Layer
from toybox.tape import Tensor, recording, seed, tracked, untracked

__version__ = "0.1"
__all__ = [
    *functions.__all__,
    "Layer",
    "Tensor",
    "layers",
    "load",
    "recording",
    "save",
    "seed",
    "tape",
    "tracked",
    "untracked",
]
