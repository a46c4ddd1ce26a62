"""Functions with their own backward in PaddlePaddle: subclasses of ``paddle.autograd.PyLayer``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import paddle

from parfocal.backends.functions import subclasses


class Functions:
    def functions(self) -> list[type]:
        return subclasses(paddle.autograd.PyLayer)

    def derivative(
        self, function: Callable[..., Any], args: Sequence[Any], gradients: Sequence[Any]
    ) -> list[Any]:
        leaves, wanted = [], []
        for arg in args:
            if isinstance(arg, paddle.Tensor) and arg.is_floating_point():
                leaf = arg.detach()
                leaf.stop_gradient = False
                wanted.append(leaf)
            else:
                leaf = arg
            leaves.append(leaf)
        with paddle.enable_grad():
            output = function(*leaves)
        outputs = output if isinstance(output, (list, tuple)) else [output]
        return list(paddle.grad(outputs, wanted, list(gradients), allow_unused=True))
