"""Functions that bring a backward of their own: a capability of backends that can list them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class OwnFunctions(Protocol):
    """A class of such a function has ``forward`` and ``backward``, which are looked up when they run."""

    def functions(self) -> list[type]:
        """All classes of functions with their own backward that there are, the framework's own too."""

    def derivative(
        self, function: Callable[..., Any], args: Sequence[Any], gradients: Sequence[Any]
    ) -> list[Any]:
        """What the framework itself sends back through a function: one for each floating tensor of ``args``.

        None where nothing comes back.
        """


def subclasses(of: type) -> list[type]:
    """All there are, at whatever depth."""
    direct: list[type] = of.__subclasses__()
    return [found for each in direct for found in (each, *subclasses(each))]
