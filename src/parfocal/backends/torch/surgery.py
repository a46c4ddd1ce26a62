"""Tier 2 for PyTorch, replaying: modules in another dtype, without dropout, with gradients kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from parfocal.backends.calls import drop_own_hooks
from parfocal.backends.module_copies import ModuleCopies
from parfocal.backends.muting import rate_of
from parfocal.backends.torch.capabilities import TELLS_AUTOCAST
from parfocal.backends.torch.models import Models
from parfocal.backends.torch.older import is_autocast_available
from parfocal.backends.torch.tensors import DTYPES, Widened

_ATTENTION = torch.nn.functional.scaled_dot_product_attention
_DROPPING = frozenset(
    found
    for space in (torch.nn.functional, torch)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
    for spelled in (name, f"{name}_")
    if (found := getattr(space, spelled, None)) is not None
)


_ASKING: Any = torch.Tensor.requires_grad.__set__


class _Undropped(TorchFunctionMode):
    """What drops gives back what it is given, and attention drops nothing.

    A model in training may ask for the gradient of what it is given (for the sake of checkpoints). Torch
    lets only leaves be asked; a watched input is none, and has its gradient already.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DROPPING:
            return args[0] if args else kwargs["input"]
        if func == _ASKING and args[1] is True and args[0].requires_grad:
            return None
        if func is _ATTENTION:
            args, kwargs = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args, dict(kwargs)
            kwargs.pop("dropout_p", None)
        return func(*args, **kwargs)


class _Heard(TorchFunctionMode):
    """Tells of every function that is asked to drop something, which then does what it does."""

    def __init__(self, on_drop: Callable[[float], None]) -> None:
        super().__init__()
        self._on_drop = on_drop

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        rate = 0.0
        if func in _DROPPING and _argument(args, kwargs, 2, ("training", "train"), True):
            rate = rate_of(_argument(args, kwargs, 1, ("p",), 0.5))
        elif func is _ATTENTION:
            rate = rate_of(_argument(args, kwargs, 4, ("dropout_p",), 0.0))
        if rate > 0:
            self._on_drop(rate)
        return func(*args, **kwargs)


def _argument(
    args: tuple[Any, ...], kwargs: dict[str, Any], position: int, names: tuple[str, ...], default: Any
) -> Any:
    if len(args) > position:
        return args[position]
    return next((kwargs[name] for name in names if name in kwargs), default)


class Surgery(Models, ModuleCopies):
    """What replaying asks of a backend for modules."""

    recurrent = (torch.nn.RNNBase,)

    def no_functional_dropout(self) -> AbstractContextManager[None]:
        return _Undropped()

    def watch_dropout(self, on_drop: Callable[[float], None]) -> AbstractContextManager[None]:
        return _Heard(on_drop)

    def widened(self) -> AbstractContextManager[None]:
        return Widened()

    def mixed_precision(self, model: Any, level: str, dtype: str) -> AbstractContextManager[Any]:
        # one level only: what O2 does besides is a matter of how the weights are kept
        return torch.autocast(self._device_type(model), DTYPES[dtype])

    def lowers(self, model: Any, dtype: str) -> bool:
        available = torch.amp.is_autocast_available if TELLS_AUTOCAST else is_autocast_available
        return bool(available(self._device_type(model)))

    def _device_type(self, model: Any) -> str:
        first = next(iter(model.parameters()), None)
        return "cpu" if first is None else str(first.device.type)

    @contextmanager
    def gradients_kept(self, model: Any) -> Iterator[None]:
        kept = [(parameter, parameter.grad) for parameter in model.parameters()]
        try:
            for parameter, _ in kept:
                parameter.grad = None
            yield
        finally:
            for parameter, gradient in kept:
                parameter.grad = gradient

    def make_bare(self, twin: Any) -> None:
        for part in twin.modules():
            drop_own_hooks(part._forward_pre_hooks, part._forward_pre_hooks_with_kwargs)
            drop_own_hooks(part._forward_hooks, part._forward_hooks_always_called)
        for parameter in twin.parameters():
            parameter.grad = None

    def convert(self, twin: Any, dtype: str) -> Any:
        return twin.to(DTYPES[dtype])
