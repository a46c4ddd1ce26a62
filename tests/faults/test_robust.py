"""align ends with a report: what cannot be repeated or asked is a note, and the verdict stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.attempts import STRICT
from parfocal.explain import explainer
from parfocal.explain.backward.parameters import ParameterExplainer
from parfocal.workflow import alignment, reporting
from tests.faults.tools import mend, numbers, own, seeded, the_cause

LENGTH, WIDTH, WORDS = 10, 6, 20
IDS = np.random.default_rng(4).integers(0, WORDS, (2, LENGTH))


class TorchTable(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(LENGTH, WIDTH))

    def forward(self, x: Any) -> Any:
        return x + self.table


class TorchText(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.embed = torch.nn.Embedding(WORDS, WIDTH), TorchTable()
        self.head = torch.nn.Linear(WIDTH, 3)

    def forward(self, ids: Any) -> Any:
        return self.head(torch.tanh(self.embed(self.words(ids))))


class PaddleTable(paddle.nn.Layer):
    def __init__(self, *, trained: bool = False) -> None:
        super().__init__()
        self.table = self.create_parameter([LENGTH, WIDTH])
        self.table.stop_gradient = not trained

    def forward(self, x: Any) -> Any:
        return x + self.table


class LengthToo(PaddleTable):
    """It takes something that the reference's does not."""

    def forward(self, x: Any, ids: Any) -> Any:
        return x + self.table[: ids.shape[1]]


class LengthAlone(PaddleTable):
    """It takes none of what the reference's takes."""

    def forward(self, ids: Any) -> Any:
        return self.table[: ids.shape[1]]


class PaddleText(paddle.nn.Layer):
    def __init__(self, table: Callable[[], paddle.nn.Layer]) -> None:
        super().__init__()
        self.words, self.embed = paddle.nn.Embedding(WORDS, WIDTH), table()
        self.head = paddle.nn.Linear(WIDTH, 3)

    def forward(self, ids: Any) -> Any:
        hidden = self.words(ids)
        if isinstance(self.embed, LengthToo):
            hidden = self.embed(hidden, ids)
        elif isinstance(self.embed, LengthAlone):
            hidden = hidden + self.embed(ids)
        else:
            hidden = self.embed(hidden)
        return self.head(paddle.tanh(hidden))


class NeverCalled(PaddleText):
    """The table is taken out of its layer, which is not called at all."""

    def forward(self, ids: Any) -> Any:
        return self.head(paddle.tanh(self.words(ids) + self.embed.table))


TABLES = {
    "as it is": lambda: PaddleText(PaddleTable),
    "given more": lambda: PaddleText(LengthToo),
    "given something else": lambda: PaddleText(LengthAlone),
    "not called": lambda: NeverCalled(PaddleTable),
}


@pytest.mark.parametrize("build", TABLES.values(), ids=list(TABLES))
def test_a_table_that_the_port_froze(build: Callable[[], paddle.nn.Layer]) -> None:
    reference, port = seeded(TorchText), build()
    report = pf.align(reference, port, IDS)
    cause = the_cause(report)
    assert cause.code == "grad.detached"
    assert cause.message == "embed.table is frozen in the port, the reference trains it"
    assert cause.fix == "port.embed.table.stop_gradient = False"
    assert not [each for each in report.findings if each.code == "explain.problem"]
    mend(port, cause.fix)
    assert pf.align(reference, port, IDS).ok


def test_a_table_that_the_reference_froze() -> None:
    reference = seeded(TorchText)
    reference.embed.table.requires_grad_(False)
    cause = the_cause(pf.align(reference, PaddleText(lambda: LengthToo(trained=True)), IDS))
    assert cause.message == "embed.table is frozen in the reference, the port trains it"


def test_a_table_that_both_froze_is_no_difference() -> None:
    reference = seeded(TorchText)
    reference.embed.table.requires_grad_(False)
    assert pf.align(reference, PaddleText(LengthToo), IDS).ok


class TorchLevel(torch.nn.Module):
    def __init__(self, size: int, first: bool) -> None:
        super().__init__()
        self.layer, self.size, self.first = torch.nn.Linear(WIDTH, WIDTH), size, first

    def forward(self, x: Any) -> Any:
        hidden = self.layer(x)
        return torch.relu(hidden) if self.first else torch.tanh(hidden)


class TorchLevels(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.large, self.small = TorchLevel(24, True), TorchLevel(16, False)
        self.head = torch.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.small(self.large(x)[:, :16]))


class PaddleLevel(paddle.nn.Layer):
    """Keeps arrays and tensors of its own size, which say neither yes nor no when they are compared."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = paddle.nn.Linear(WIDTH, WIDTH)
        self.__dict__["places"] = np.arange(size)
        self.__dict__["grid"] = paddle.arange(size)
        self.size = size

    def forward(self, x: Any) -> Any:
        hidden = self.layer(x)
        return paddle.tanh(hidden)


class PaddleLevels(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.large, self.small = PaddleLevel(24), PaddleLevel(16)
        self.head = paddle.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.small(self.large(x)[:, :16]))


def test_a_line_that_is_right_for_some_modules_with_arrays_of_their_own() -> None:
    cause = the_cause(pf.align(seeded(TorchLevels), PaddleLevels(), numbers(2, 24, WIDTH)))
    assert cause.code == "op.activation"
    assert "if self.size == 24 else paddle.tanh(hidden)" in cause.fix


STEPS: dict[str, tuple[Any, str, str]] = {
    "shared code": (explainer, "in_shared_code", "in_shared_code of embed"),
    "constructors": (explainer, "in_the_constructor", "in_the_constructor of embed"),
    "what is left": (explainer, "still_wrong", "what else is wrong of embed"),
    "second look": (alignment, "_paired_or_lying_otherwise", "a second look of the model"),
    "settings": (reporting, "unseen", "settings without effect of the model"),
    "all of it": (explainer.Explainer, "_with_cause", "the cause of embed"),
}


class Louder(PaddleTable):
    def forward(self, x: Any) -> Any:
        return x * 1.5 + self.table


def _breaking(name: str) -> Callable[..., Any]:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("shapes 24 and 16")

    broken.__name__ = name
    return broken


@pytest.mark.parametrize("step", STEPS.values(), ids=list(STEPS))
def test_a_step_that_raises_is_told_and_the_verdict_stands(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str, str]
) -> None:
    owner, name, told = step
    monkeypatch.setattr(owner, name, _breaking(name))
    with pytest.raises(ValueError, match="24 and 16"):
        pf.align(seeded(TorchText), PaddleText(lambda: Louder(trained=True)), IDS)
    monkeypatch.delenv(STRICT)
    report = pf.align(seeded(TorchText), PaddleText(lambda: Louder(trained=True)), IDS)
    (found,) = own(report)
    assert found.port is not None
    assert (found.phase, found.port.path) == ("forward", "embed")
    told_of = [each.message for each in report.findings if each.code == "explain.problem"]
    assert told_of == [f"could not be asked: {told}: ValueError: shapes 24 and 16"]


def test_one_hypothesis_that_raises_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ParameterExplainer, "_untied", _breaking("_untied"))
    monkeypatch.delenv(STRICT)
    embed = seeded(TorchText)
    embed.embed.table.requires_grad_(False)
    report = pf.align(embed, PaddleText(lambda: LengthToo(trained=True)), IDS)
    assert the_cause(report).code == "grad.detached"
    monkeypatch.setattr(ParameterExplainer, "_frozen", _breaking("_frozen"))
    report = pf.align(embed, PaddleText(lambda: LengthToo(trained=True)), IDS)
    (found,) = own(report)
    assert (found.phase, found.cause) == ("gradient", None)
    assert [each.message for each in report.findings if each.code == "explain.problem"] == [
        "could not be asked: frozen of embed.table: ValueError: shapes 24 and 16",
        "could not be asked: untied of embed.table: ValueError: shapes 24 and 16",
    ]


# Odd models: one text of code for both frameworks, with a place for a mistake.

Change = Callable[[Any], Any]


class _Words:
    def __init__(self, join: Any, tanh: Any) -> None:
        self.join, self.tanh = join, tanh


_TORCH = _Words(lambda parts, axis: torch.cat(parts, axis), torch.tanh)
_PADDLE = _Words(lambda parts, axis: paddle.concat(parts, axis), paddle.tanh)


def _levels(words: _Words, self: Any, x: Any, change: Change) -> Any:
    hidden = self.first(x)
    outs = [self.last(words.tanh(self.second(change(hidden[:, :size])))) for size in (12, 8, 4)]
    return words.join(outs, 1)


def _often(words: _Words, self: Any, x: Any, change: Change) -> Any:
    for turn in range(4):
        hidden = words.tanh(self.first(x))
        x = x + (change(hidden) if turn == 2 else hidden)
    return self.last(x)


def _nested(words: _Words, self: Any, x: Any, change: Change) -> Any:
    hidden = self.first(x)
    return {"a": self.last(change(hidden)), "b": (words.tanh(hidden), [self.second(hidden)])}


def _overwriting(words: _Words, self: Any, x: Any, change: Change) -> Any:
    hidden = self.nothing(self.first(x))
    hidden += self.second(x)
    return self.last(words.tanh(change(hidden)))


def _remembering(words: _Words, self: Any, x: Any, change: Change) -> Any:
    self.__dict__["memory"] = self.first(x)
    hidden = self.second(change(self.__dict__["memory"]))
    return self.last(words.tanh(hidden) + self.__dict__["memory"])


CODES = (_levels, _often, _nested, _overwriting, _remembering)
CHANGES: dict[str, Change] = {
    "right": lambda x: x,
    "scaled": lambda x: x * 1.1,
    "cut": lambda x: x.detach(),
    "rolled": lambda x: paddle.roll(x, 1, -1),
    "not a number": lambda x: x * float("nan"),
}


def _odd(words: _Words, code: Any, change: Change) -> Any:
    base, linear, nothing = (
        (torch.nn.Module, torch.nn.Linear, torch.nn.Identity)
        if words is _TORCH
        else (paddle.nn.Layer, paddle.nn.Linear, paddle.nn.Identity)
    )

    class Odd(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)
            self.last, self.nothing, self.unused = linear(WIDTH, 5), nothing(), linear(WIDTH, 2)

        def forward(self, x: Any) -> Any:
            return code(words, self, x, change)

    return Odd()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("code", CODES, ids=lambda code: code.__name__.strip("_"))
def test_odd_models_end_with_a_report(code: Any, name: str) -> None:
    reference = seeded(lambda: _odd(_TORCH, code, CHANGES["right"]))
    report = pf.align(reference, _odd(_PADDLE, code, CHANGES[name]), numbers(2, 12, WIDTH))
    assert report.ok is (name == "right"), str(report)
    assert str(report)
    assert not [each for each in report.findings if each.code == "explain.problem"]
