"""How code for toybox is written."""

from __future__ import annotations

from parfocal.backends.dialects import Dialect

_NAMES = ("relu", "gelu", "softmax", "sigmoid", "tanh", "exp", "sqrt", "neg", "mean", "sum")

DIALECT = Dialect(
    name="toybox",
    functions={name: f"toybox.{name}" for name in _NAMES},
    words={"epsilon": "tiny"},
    linear_layout="in,out",
)
