"""The PaddlePaddle backend, put together from its parts."""

from __future__ import annotations

import paddle

from parfocal.backends.functions import FunctionClass
from parfocal.backends.paddle.building import Building
from parfocal.backends.paddle.checkpoints import Checkpoints
from parfocal.backends.paddle.initialisers import Initialisers
from parfocal.backends.paddle.launching import Launching
from parfocal.backends.paddle.recording import Recording
from parfocal.backends.paddle.surgery import Surgery
from parfocal.backends.paddle.updating import Updating


class PaddleBackend(
    Updating, Checkpoints, Recording, Surgery, FunctionClass, Building, Initialisers, Launching
):
    """PaddlePaddle, as ``protocol.py`` wants it."""

    function_class = paddle.autograd.PyLayer
    grad = staticmethod(paddle.grad)
