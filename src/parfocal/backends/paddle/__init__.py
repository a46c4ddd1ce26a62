"""The PaddlePaddle backend. Its tables can be read without PaddlePaddle; PaddleBackend needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parfocal.backends.paddle.backend import PaddleBackend as PaddleBackend


def __getattr__(name: str) -> Any:
    if name != "PaddleBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from parfocal.backends.paddle.backend import PaddleBackend

    return PaddleBackend
