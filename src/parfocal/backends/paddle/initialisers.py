"""How PaddlePaddle's layers are initialised when nothing is said, and how each initialiser is written.

Names are the common ones of ``explain/initialisers.py``.
"""

from __future__ import annotations

_ZERO = "constant 0"
DEFAULTS: dict[str, dict[str, str]] = {
    "Linear": {"weight": "Xavier uniform", "bias": _ZERO},
    **{f"Conv{rank}d": {"weight": "Kaiming normal", "bias": _ZERO} for rank in (1, 2, 3)},
    **{f"ConvTranspose{rank}d": {"weight": "Xavier uniform", "bias": _ZERO} for rank in (1, 2, 3)},
    "Embedding": {"weight": "Xavier uniform"},
}

_HOME = "paddle.nn.initializer"
WRITTEN: dict[str, str] = {
    "constant": f"{_HOME}.Constant({{value}})({{tensor}})",
    "Kaiming uniform, a=√5": (
        f'{_HOME}.KaimingUniform(negative_slope=5**0.5, nonlinearity="leaky_relu")({{tensor}})'
    ),
    "Kaiming uniform": f"{_HOME}.KaimingUniform()({{tensor}})",
    "Kaiming normal": f"{_HOME}.KaimingNormal()({{tensor}})",
    "Xavier uniform": f"{_HOME}.XavierUniform()({{tensor}})",
    "Xavier normal": f"{_HOME}.XavierNormal()({{tensor}})",
    "uniform": f"{_HOME}.Uniform({{low}}, {{high}})({{tensor}})",
    "normal": f"{_HOME}.Normal({{mean}}, {{std}})({{tensor}})",
    "truncated normal": f"{_HOME}.TruncatedNormal({{mean}}, {{std}}, {{low}}, {{high}})({{tensor}})",
}


class Initialisers:
    """What ``InitialisingBackend`` asks for."""

    def default_initialiser(self, kind: str, name: str) -> str | None:
        return DEFAULTS.get(kind, {}).get(name)

    def written_initialiser(self, name: str) -> str | None:
        return WRITTEN.get(name)
