"""The PyTorch backend. Its tables can be read without PyTorch; TorchBackend needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parfocal.backends.torch.backend import TorchBackend as TorchBackend


def __getattr__(name: str) -> Any:
    if name != "TorchBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from parfocal.backends.torch.backend import TorchBackend

    return TorchBackend
