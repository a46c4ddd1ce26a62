"""Layers made from common settings say the same settings of themselves again."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from parfocal.backends import registry
from parfocal.errors import UnsupportedError
from tests.conformance.layers import PAIRS

SIDES = {"torch": 0, "paddle": 1}
CANNOT_RUN = {("paddle", "GRU")}  # as it is in PAIRS, without a bias


def recipes(backend: Any) -> dict[str, Any]:
    return dict(backend.recipes)


def layer_of(backend: Any, kind: str) -> Any:
    name, args, kwargs = PAIRS[kind][SIDES[backend.name]]
    return getattr(importlib.import_module(f"{backend.name}.nn"), name)(*args, **kwargs)


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_settings_survive_being_built(name: str) -> None:
    backend: Any = registry.get(name)
    tried = 0
    for kind in recipes(backend):
        if kind not in PAIRS:
            continue
        original = layer_of(backend, kind)
        settings = backend.settings(original)
        if (name, kind) in CANNOT_RUN:
            with pytest.raises(UnsupportedError, match="cannot be built with bias=False"):
                backend.layer(kind, settings)
            continue
        again = backend.layer(kind, settings)
        assert backend.settings(again) == settings, kind
        assert type(again) is type(original), kind
        assert backend.can_build(original), kind
        tried += 1
    assert tried > 40


def test_the_line_of_code_says_what_is_not_the_default() -> None:
    paddle_backend: Any = registry.get("paddle")
    settings = {"normalized_shape": (768,), "epsilon": 1e-5, "affine": True, "bias": True}
    assert paddle_backend.spell("LayerNorm", settings) == "paddle.nn.LayerNorm(768)"
    assert (
        paddle_backend.spell("LayerNorm", settings, ["epsilon"]) == "paddle.nn.LayerNorm(768, epsilon=1e-05)"
    )
    assert (
        paddle_backend.spell("LayerNorm", {**settings, "epsilon": 1e-6})
        == "paddle.nn.LayerNorm(768, epsilon=1e-06)"
    )
    torch_backend: Any = registry.get("torch")
    assert torch_backend.spell("GELU", {"approximate": "tanh"}) == "torch.nn.GELU(approximate='tanh')"


def test_what_a_class_cannot_have_is_refused() -> None:
    backend: Any = registry.get("paddle")
    with pytest.raises(UnsupportedError, match="MaxPool2D cannot be built with dilation="):
        backend.layer("MaxPool2d", {"kernel_size": (2, 2), "dilation": (2, 2)})
    with pytest.raises(UnsupportedError, match="no recipe for a Nonsense in paddle"):
        backend.layer("Nonsense", {})
