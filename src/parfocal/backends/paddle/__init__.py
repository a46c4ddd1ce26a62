"""The PaddlePaddle backend, put together from its parts."""

from __future__ import annotations

from parfocal.backends.paddle.models import Models


class PaddleBackend(Models):
    """PaddlePaddle, as ``protocol.py`` wants it."""
