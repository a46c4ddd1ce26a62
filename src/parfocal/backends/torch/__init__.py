"""The PyTorch backend, put together from its parts."""

from __future__ import annotations

from parfocal.backends.torch.recording import Recording
from parfocal.backends.torch.surgery import Surgery
from parfocal.backends.torch.watch import Watching


class TorchBackend(Watching, Recording, Surgery):
    """PyTorch, as ``protocol.py`` wants it."""
