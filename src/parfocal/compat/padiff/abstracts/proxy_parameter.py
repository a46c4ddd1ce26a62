"""A parameter of either framework, as NumPy sees it."""

from __future__ import annotations

from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend


class ProxyParam:
    """PaDiff's view of a parameter; ``param`` is the framework's own."""

    def __init__(self, param: Any, backend: Backend) -> None:
        self.param = param
        self.backend = backend
        self.param_type = backend.name

    @staticmethod
    def create_from(param: Any) -> ProxyParam:
        """Wrap a parameter, once."""
        return param if isinstance(param, ProxyParam) else ProxyParam(param, registry.of(param))

    def numpy(self) -> Array:
        """The values."""
        return self.backend.to_array(self.param)

    def set_data(self, np_value: Array) -> None:
        """Overwrite the values, converted to the parameter's own dtype."""
        self.backend.write(self.param, np_value.astype(self.numpy().dtype))

    def shape(self) -> list[int]:
        return list(self.backend.shape(self.param))

    def main_grad(self) -> Array | None:
        """The gradient that mixed-precision training of paddle keeps in float32, if there is one."""
        main = getattr(self.param, "main_grad", None)
        return None if main is None else self.backend.to_array(main)

    def grad(self) -> Array | None:
        """The accumulated gradient, or None."""
        return self.backend.gradient(self.param)
