"""PaddlePaddle's checkpoint files, written in one go.

Reading is not done here: ``paddle.load`` executes whatever the file says. A ``.pdparams`` is
a pickle of NumPy arrays, which the restricted reader of ``parfocal.run`` understands.
"""

from __future__ import annotations

from collections.abc import Iterable

import paddle

from parfocal.backends.files import complete_or_absent
from parfocal.backends.paddle.tensors import Tensors
from parfocal.backends.protocol import Array


class Checkpoints(Tensors):
    """Writing ``.pdparams`` files."""

    def save_checkpoint(self, path: str, state: Iterable[tuple[str, Array]]) -> None:
        """A state dict in PaddlePaddle's own format; the file appears complete or not at all."""
        tensors = {name: self.from_array(array) for name, array in state}
        with complete_or_absent(path) as partial:
            paddle.save(tensors, partial)
