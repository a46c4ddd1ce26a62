"""The PaddlePaddle backend, put together from its parts."""

from __future__ import annotations

from parfocal.backends.paddle.building import Building
from parfocal.backends.paddle.checkpoints import Checkpoints
from parfocal.backends.paddle.functions import Functions
from parfocal.backends.paddle.initialisers import Initialisers
from parfocal.backends.paddle.recording import Recording
from parfocal.backends.paddle.schedules import Scheduling
from parfocal.backends.paddle.surgery import Surgery


class PaddleBackend(Scheduling, Checkpoints, Recording, Surgery, Functions, Building, Initialisers):
    """PaddlePaddle, as ``protocol.py`` wants it."""
