"""Functions that bring a backward of their own: a capability of backends that can list them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable


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


class FunctionClass:
    """The same for a framework whose functions are subclasses of one class."""

    function_class: ClassVar[type]
    grad: ClassVar[
        Callable[..., Any]
    ]  # of outputs with respect to inputs, given the gradients of the outputs

    def functions(self) -> list[type]:
        return subclasses(self.function_class)

    def derivative(
        self: Any, function: Callable[..., Any], args: Sequence[Any], gradients: Sequence[Any]
    ) -> list[Any]:
        leaves, wanted = [], []
        for arg in args:
            leaf = arg
            if self.is_tensor(arg) and arg.is_floating_point():
                leaf = arg.detach()
                self.require_grad(leaf)
                wanted.append(leaf)
            leaves.append(leaf)
        with self.with_grad():
            output = function(*leaves)
        outputs = output if isinstance(output, (list, tuple)) else [output]
        return list(self.grad(outputs, wanted, list(gradients), allow_unused=True))


def subclasses(of: type) -> list[type]:
    """All there are, at whatever depth."""
    direct: list[type] = of.__subclasses__()
    return [found for each in direct for found in (each, *subclasses(each))]
