"""For a run in float64: code that asks for float32 is given float64.

A model's own code says ``x.float()`` or ``torch.arange(n, dtype=torch.float32)``, and divides whole
numbers; what it computes from them would be rounded as before. What is drawn at random stays as it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_MAKING = frozenset(
    {
        *(torch.arange, torch.linspace, torch.logspace, torch.full, torch.tensor, torch.as_tensor),
        *(torch.zeros, torch.ones, torch.eye, torch.scalar_tensor),
    }
)
_WHOLE = frozenset({torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})


class Widened(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        func = torch.Tensor.double if func is torch.Tensor.float else func
        args = tuple(map(_wider, args))
        kwargs = {name: _wider(value) for name, value in (kwargs or {}).items()}
        output = func(*args, **kwargs)
        if not isinstance(output, torch.Tensor) or output.dtype is not torch.float32:
            return output
        if func in _MAKING:
            return func(*args, **{**kwargs, "dtype": torch.float64})
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        if tensors and all(each.dtype in _WHOLE for each in tensors):  # a quotient or a root of them
            return func(
                *(each.double() if isinstance(each, torch.Tensor) else each for each in args), **kwargs
            )
        return output


def _wider(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value
