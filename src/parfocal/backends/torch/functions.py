"""Functions with their own backward in PyTorch: subclasses of ``torch.autograd.Function``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from parfocal.backends.functions import subclasses


class Functions:
    def functions(self) -> list[type]:
        return subclasses(torch.autograd.Function)

    def derivative(
        self, function: Callable[..., Any], args: Sequence[Any], gradients: Sequence[Any]
    ) -> list[Any]:
        floating = [isinstance(arg, torch.Tensor) and arg.is_floating_point() for arg in args]
        leaves = [
            arg.detach().requires_grad_() if is_floating else arg
            for arg, is_floating in zip(args, floating, strict=True)
        ]
        with torch.enable_grad():
            output = function(*leaves)
        outputs = output if isinstance(output, (list, tuple)) else [output]
        wanted = [leaf for leaf, is_floating in zip(leaves, floating, strict=True) if is_floating]
        return list(torch.autograd.grad(outputs, wanted, list(gradients), allow_unused=True))
