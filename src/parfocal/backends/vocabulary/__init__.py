"""The names that mean the same on every side: kinds, settings, ops, optimizers and their slots.

Each has one meaning, given in a line. Backends translate; nobody else has to know that one
framework says ``eps`` and another ``_epsilon``. Add names freely, never change one.
"""

from __future__ import annotations

from parfocal.backends.vocabulary.kinds import ACTIVATIONS, family
from parfocal.backends.vocabulary.meanings import functional_ops, kinds_of_layers, optimizers
from parfocal.backends.vocabulary.settings import CONVENTIONS, SETTINGS
from parfocal.backends.vocabulary.training import OPTIMIZER_SETTINGS, SLOTS

__all__ = [
    "ACTIVATIONS",
    "CONVENTIONS",
    "OPTIMIZER_SETTINGS",
    "SETTINGS",
    "SLOTS",
    "family",
    "functional_ops",
    "kinds_of_layers",
    "optimizers",
]
