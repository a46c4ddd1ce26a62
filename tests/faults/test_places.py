"""Where a mistake is: the module whose code it is, also one that only the port has, its file and line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import paddle
import pytest
import torch
from paddle.nn import functional

import parfocal as pf
from tests.faults.tools import numbers, own, seeded

WIDTH = 6


class Reference(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.head = torch.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        hidden = torch.tanh(self.first(x)) * 1.5
        hidden = torch.relu(self.second(hidden)) + hidden
        return self.head(hidden)


class Wrapper(paddle.nn.Layer):
    """Two layers and the code around them, which the reference's model has itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.5
        return functional.relu(self.second(hidden)) + hidden


class Scaled(Wrapper):
    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.4  # wrong
        return functional.relu(self.second(hidden)) + hidden


class Activated(Wrapper):
    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.5
        return functional.gelu(self.second(hidden)) + hidden  # wrong


class Missing(Wrapper):
    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.5
        return self.second(hidden) + hidden  # wrong


class Detached(Wrapper):
    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.5
        return functional.relu(self.second(hidden).detach()) + hidden  # wrong


class Unfollowed(Wrapper):
    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.5
        with paddle.no_grad():
            more = functional.relu(self.second(hidden))  # wrong
        return more + hidden


class Hooked(Wrapper):
    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.5
        hidden.register_hook(lambda gradient: gradient * 2.0)  # wrong
        return functional.relu(self.second(hidden)) + hidden


class Port(paddle.nn.Layer):
    def __init__(self, wrapper: type[Wrapper]) -> None:
        super().__init__()
        self.wrapper, self.head = wrapper(), paddle.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.wrapper(x))


class Around(paddle.nn.Layer):
    """One more that only the port has."""

    def __init__(self, wrapper: type[Wrapper]) -> None:
        super().__init__()
        self.model = Port(wrapper)

    def forward(self, x: Any) -> Any:
        return self.model(x)


def _wrong_line(kind: type) -> int:
    lines, start = inspect.getsourcelines(kind)
    return next(start + index for index, text in enumerate(lines) if text.rstrip().endswith("# wrong"))


MISTAKES: dict[type[Wrapper], tuple[str, str]] = {
    Scaled: ("forward", "op.scale"),
    Activated: ("forward", "op.activation"),
    Missing: ("forward", "op.missing"),
    Detached: ("backward", "grad.detached"),
    Unfollowed: ("backward", "grad.detached"),
    Hooked: ("backward", "grad.scale"),
}


@pytest.mark.parametrize(("model", "path"), [(Port, "wrapper"), (Around, "model.wrapper")])
@pytest.mark.parametrize("wrapper", MISTAKES, ids=lambda kind: kind.__name__)
def test_a_wrapper_that_only_the_port_has(wrapper: type[Wrapper], model: Any, path: str) -> None:
    phase, code = MISTAKES[wrapper]
    (found,) = own(pf.align(seeded(Reference), model(wrapper), numbers(4, WIDTH)))
    assert found.cause is not None
    assert found.port is not None
    assert (found.phase, found.cause.code) == (phase, code)
    assert (found.port.path, found.port.kind) == (path, wrapper.__name__)
    assert (found.port.file, found.port.line) == (__file__, _wrong_line(wrapper))
    assert found.reference is not None
    assert found.reference.path == ""


def test_a_correct_wrapper_is_the_same() -> None:
    assert pf.align(seeded(Reference), Around(Wrapper), numbers(4, WIDTH)).ok


class Code(paddle.nn.Layer):
    """No layer inside, only code."""

    def forward(self, hidden: Any) -> Any:
        return paddle.tanh(hidden) * 1.4  # wrong


class CutCode(Code):
    def forward(self, hidden: Any) -> Any:
        return paddle.tanh(hidden).detach() * 1.5  # wrong


class WithCode(paddle.nn.Layer):
    def __init__(self, code: type[Code]) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.head, self.parts = paddle.nn.Linear(WIDTH, 3), paddle.nn.LayerList([code()])

    def forward(self, x: Any) -> Any:
        hidden = self.parts[0](self.first(x))
        return self.head(functional.relu(self.second(hidden)) + hidden)


@pytest.mark.parametrize("code", [Code, CutCode], ids=lambda kind: kind.__name__)
def test_a_module_of_code_alone(code: type[Code]) -> None:
    (found,) = own(pf.align(seeded(Reference), WithCode(code), numbers(4, WIDTH)))
    assert found.port is not None
    assert (found.port.path, found.port.kind) == ("parts.0", code.__name__)
    assert (found.port.file, found.port.line) == (__file__, _wrong_line(code))


class TorchWrapper(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        hidden = torch.tanh(self.first(x)) * 1.4  # wrong
        return torch.relu(self.second(hidden)) + hidden


class TorchAround(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wrapper, self.head = TorchWrapper(), torch.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.wrapper(x))


class Plain(paddle.nn.Layer):
    def __init__(self, last: Callable[[Any], Any] = functional.relu) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.head, self.last = paddle.nn.Linear(WIDTH, 3), last

    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x)) * 1.5
        hidden = self.last(self.second(hidden)) + hidden
        return self.head(hidden)


def test_a_wrapper_that_only_the_reference_has() -> None:
    (found,) = own(pf.align(seeded(TorchAround), Plain(), numbers(4, WIDTH)))
    assert found.port is not None
    assert found.port.path == ""
    assert found.reference is not None
    assert found.reference.path == "wrapper"
    assert (found.reference.file, found.reference.line) == (__file__, _wrong_line(TorchWrapper))


def test_code_of_the_model_itself_stays_the_model_s() -> None:
    """A layer of the framework that has no partner is called by the code of the model."""
    (found,) = own(pf.align(seeded(Reference), Plain(functional.gelu), numbers(4, WIDTH)))
    assert found.port is not None
    assert (found.port.path, found.port.kind) == ("", "Plain")
