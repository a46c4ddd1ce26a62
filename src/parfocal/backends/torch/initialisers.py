"""How PyTorch's layers are initialised when nothing is said, and how each initialiser is written.

Names are the common ones of ``explain/initialisers.py``.
"""

from __future__ import annotations

_KAIMING = {"weight": "Kaiming uniform, a=√5", "bias": "uniform by fan-in"}
DEFAULTS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("Linear", "Conv1d", "Conv2d", "Conv3d", "Bilinear"), _KAIMING),
    **{f"ConvTranspose{rank}d": _KAIMING for rank in (1, 2, 3)},
    "Embedding": {"weight": "normal, std 1"},
}

WRITTEN: dict[str, str] = {
    "constant": "torch.nn.init.constant_({tensor}, {value})",
    "Kaiming uniform, a=√5": "torch.nn.init.kaiming_uniform_({tensor}, a=5**0.5)",
    "Kaiming uniform": 'torch.nn.init.kaiming_uniform_({tensor}, nonlinearity="relu")',
    "Kaiming normal": 'torch.nn.init.kaiming_normal_({tensor}, nonlinearity="relu")',
    "Kaiming uniform by fan-out": 'torch.nn.init.kaiming_uniform_({tensor}, 0, "fan_out", "relu")',
    "Kaiming normal by fan-out": 'torch.nn.init.kaiming_normal_({tensor}, 0, "fan_out", "relu")',
    "Xavier uniform": "torch.nn.init.xavier_uniform_({tensor})",
    "Xavier normal": "torch.nn.init.xavier_normal_({tensor})",
    "uniform": "torch.nn.init.uniform_({tensor}, {low}, {high})",
    "normal": "torch.nn.init.normal_({tensor}, {mean}, {std})",
    "truncated normal": "torch.nn.init.trunc_normal_({tensor}, {mean}, {std}, {low}, {high})",
}


class Initialisers:
    """What ``InitialisingBackend`` asks for."""

    def default_initialiser(self, kind: str, name: str) -> str | None:
        return DEFAULTS.get(kind, {}).get(name)

    def written_initialiser(self, name: str) -> str | None:
        return WRITTEN.get(name)
