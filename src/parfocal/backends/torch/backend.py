"""The PyTorch backend, put together from its parts."""

from __future__ import annotations

from parfocal.backends.torch.building import Building
from parfocal.backends.torch.checkpoints import Checkpoints
from parfocal.backends.torch.functions import Functions
from parfocal.backends.torch.initialisers import Initialisers
from parfocal.backends.torch.launching import Launching
from parfocal.backends.torch.recording import Recording
from parfocal.backends.torch.surgery import Surgery
from parfocal.backends.torch.updating import Updating


class TorchBackend(Updating, Checkpoints, Recording, Surgery, Functions, Building, Initialisers, Launching):
    """PyTorch, as ``protocol.py`` wants it."""
