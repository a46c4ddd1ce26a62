"""The PyTorch backend, put together from its parts."""

from __future__ import annotations

from parfocal.backends.torch.models import Models


class TorchBackend(Models):
    """PyTorch, as ``protocol.py`` wants it."""
