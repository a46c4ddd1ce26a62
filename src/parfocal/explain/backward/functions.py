"""Custom autograd functions, on either side: the gradients they return are recorded and exchanged.

A custom backward is wrong if its counterpart returns another gradient for the same input, and the result is
right with the counterpart's. One without a counterpart is wrong if the result is right with the derivative
of its own forward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.functions import OwnFunctions
from parfocal.backends.protocol import Array, Backend
from parfocal.capture.nested_values import flatten, replace
from parfocal.capture.sites import Sites
from parfocal.explain.backward.gradients import trials_of
from parfocal.explain.case import Case
from parfocal.explain.causes import OpLine, ProvenChange, line, number, rounded
from parfocal.explain.layers.relations import factor_between
from parfocal.explain.ops.values import same
from parfocal.phrases import phrase

Arrays = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class BackwardRun:
    """One run of a function's own backward: the gradients it took and gave, and what forward was given."""

    function: type
    taken: Arrays
    given: Arrays
    args: tuple[Any, ...] | None

    @property
    def where(self) -> OpLine:
        code = _code(self.function)
        return OpLine(
            self.function.__name__, code.co_filename, max(line for *_, line in code.co_lines() if line)
        )

    @property
    def spelled(self) -> str:
        where = self.where
        return f"{self.function.__name__} ({line(where)})"


class _Context:
    """A stand-in for the context in which a function saves tensors for its backward; it saves nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


@dataclass(slots=True)
class BackwardListener:
    """Records the runs of custom backwards; ``instead``: what the n-th of them is made to return."""

    backend: Backend
    instead: Mapping[int, Arrays] = field(default_factory=dict)
    sent: list[BackwardRun] = field(default_factory=list)
    _args: dict[int, tuple[Any, tuple[Any, ...]]] = field(default_factory=dict)  # by context, kept alive

    @contextmanager
    def listening(self) -> Iterator[None]:
        before = [(each, name, each.__dict__[name]) for each in own_functions(self.backend) for name in _BOTH]
        try:
            for each, name, method in before:
                wrap = self._forward if name == "forward" else self._backward
                setattr(each, name, staticmethod(wrap(each, method.__func__)))
            yield
        finally:
            for each, name, method in before:
                setattr(each, name, method)

    def _forward(self, function: type, forward: Callable[..., Any]) -> Callable[..., Any]:
        def run(context: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs:
                self._args[id(context)] = context, args
            return forward(context, *args, **kwargs)

        return run

    def _backward(self, function: type, backward: Callable[..., Any]) -> Callable[..., Any]:
        def run(context: Any, *gradients: Any) -> Any:
            given = backward(context, *gradients)
            _, args = self._args.get(id(context), (None, None))
            index = len(self.sent)
            self.sent.append(BackwardRun(function, self._arrays(gradients), self._arrays(given), args))
            return self._exchanged(given, self.instead[index]) if index in self.instead else given

        return run

    def _arrays(self, tensors: Any) -> Arrays:
        leaves = flatten(tensors).leaves.values()
        return tuple(self.backend.to_array(leaf) for leaf in leaves if self.backend.is_tensor(leaf))

    def _exchanged(self, given: Any, arrays: Arrays) -> Any:
        leaves = flatten(given).leaves
        slots = [slot for slot, leaf in leaves.items() if self.backend.is_tensor(leaf)]
        new = {
            slot: self.backend.from_array(array.reshape(self.backend.shape(leaves[slot])))
            for slot, array in zip(slots, arrays, strict=True)
        }
        return replace(given, new)


_BOTH = ("forward", "backward")


def own_functions(backend: Backend) -> list[type]:
    """The custom functions of the user's code."""
    if not isinstance(backend, OwnFunctions):
        return []
    sites = Sites((backend.name,))
    plain = [
        each
        for each in backend.functions()
        if all(isinstance(each.__dict__.get(name), staticmethod) for name in _BOTH)
    ]
    return [each for each in plain if sites.is_users(_code(each).co_filename)]


def _code(function: type) -> Any:
    return inspect.unwrap(function.__dict__["backward"].__func__).__code__


def other_backward(case: Case) -> Iterator[ProvenChange]:
    """A custom backward, of the port or of the reference, that makes the difference."""
    mine, theirs = own_functions(case.backend), own_functions(case.reference_backend)
    if not mine and not theirs:
        return
    ears = BackwardListener(case.backend), BackwardListener(case.reference_backend)
    with ears[0].listening():
        case.run()
    with ears[1].listening():
        case.run_reference()
    for proofs in (_unlike_its_counterpart, _unlike_its_derivative, _only_in_the_reference):
        for proof in proofs(case, *(ear.sent for ear in ears)):
            yield proof
            return


def _unlike_its_counterpart(
    case: Case, sent: list[BackwardRun], others: list[BackwardRun]
) -> Iterator[ProvenChange]:
    for function in dict.fromkeys(each.function for each in sent):
        wanted = {
            index: other
            for index, each in enumerate(sent)
            if each.function is function and (other := _counterpart(each, others)) is not None
        }
        score = _with(case, {index: other.given for index, other in wanted.items()})
        if score > case.limit:
            continue
        index, other = next(
            (pair for pair in wanted.items() if not _alike(sent[pair[0]], pair[1])),
            next(iter(wanted.items())),
        )
        code, how = _compared(sent[index], other)
        message = phrase("backward of {spelled} sends back {how}", spelled=sent[index].spelled, how=how)
        fix = phrase(
            "let backward of {spelled} send back what the reference's does: {other_spelled}",
            spelled=sent[index].spelled,
            other_spelled=other.spelled,
        )
        yield ProvenChange(code, message, fix, score, sent[index].where, other.where)


def _counterpart(each: BackwardRun, others: list[BackwardRun]) -> BackwardRun | None:
    """A custom backward of the reference that was given the same gradient and returns as many."""
    fitting = (
        other
        for other in others
        if [a.size for a in each.given] == [a.size for a in other.given]
        and [a.size for a in each.taken] == [a.size for a in other.taken]
        and all(same(a.reshape(-1), b.reshape(-1)) for a, b in zip(each.taken, other.taken, strict=True))
    )
    return next(fitting, None)


def _alike(mine: BackwardRun, theirs: BackwardRun) -> bool:
    return all(same(a.reshape(-1), b.reshape(-1)) for a, b in zip(mine.given, theirs.given, strict=True))


def _compared(mine: BackwardRun, theirs: BackwardRun) -> tuple[str, str]:
    """The code of the cause, and how the gradients of the two backwards are related."""
    for observed, expected in zip(mine.given, theirs.given, strict=True):
        expected = expected.reshape(observed.shape)
        factor = factor_between(observed, expected)
        if factor is not None and np.allclose(observed, expected * factor, rtol=1e-4, atol=0):
            words = phrase(
                "{factor} times what that of {spelled} does for the same gradient",
                factor=number(rounded(factor)),
                spelled=theirs.spelled,
            )
            return "grad.scale", words
    wrong = sum(int((~np.isclose(a.reshape(-1), b.reshape(-1))).sum()) for a, b in _both(mine, theirs))
    words = phrase(
        "other values than that of {spelled} does for the same gradient: {wrong} of {size} differ",
        spelled=theirs.spelled,
        wrong=wrong,
        size=sum(a.size for a in mine.given),
    )
    return "grad.function", words


def _both(mine: BackwardRun, theirs: BackwardRun) -> Iterator[tuple[Array, Array]]:
    return zip(mine.given, theirs.given, strict=True)


def _unlike_its_derivative(
    case: Case, sent: list[BackwardRun], others: list[BackwardRun]
) -> Iterator[ProvenChange]:
    for function in dict.fromkeys(each.function for each in sent):
        score = _with(case, _derivatives(case.backend, sent, function))
        if score <= case.limit:
            first = next(each for each in sent if each.function is function)
            message = phrase(
                "backward of {spelled} is not the derivative of its forward, which the reference has",
                spelled=first.spelled,
            )
            fix = phrase(
                "let backward of {spelled} send back the derivative of its forward", spelled=first.spelled
            )
            yield ProvenChange("grad.function", message, fix, score, first.where)


def _only_in_the_reference(
    case: Case, sent: list[BackwardRun], others: list[BackwardRun]
) -> Iterator[ProvenChange]:
    for function in dict.fromkeys(each.function for each in others):
        instead = _derivatives(case.reference_backend, others, function)
        score = _with(case, instead, own=False)
        if score <= case.limit:
            first = next(each for each in others if each.function is function)
            message = phrase(
                "the reference's {spelled} has a backward that is not the derivative of its forward, the "
                "port sends that derivative back",
                spelled=first.spelled,
            )
            fix = phrase(
                "send the gradient through a function with the backward of {spelled}", spelled=first.spelled
            )
            yield ProvenChange("grad.function", message, fix, score, None, first.where)


def _derivatives(backend: Backend, sent: Sequence[BackwardRun], function: type) -> dict[int, Arrays]:
    """The gradients that autograd itself would compute; empty if one of them is not known."""
    assert isinstance(backend, OwnFunctions)
    forward = function.__dict__["forward"].__func__
    found: dict[int, Arrays] = {}
    for index, each in enumerate(sent):
        if each.function is not function:
            continue
        if each.args is None:
            return {}
        gradients = [backend.from_array(array) for array in each.taken]
        given = backend.derivative(lambda *args: forward(_Context(), *args), each.args, gradients)
        arrays = tuple(backend.to_array(gradient) for gradient in given if gradient is not None)
        if [array.size for array in arrays] != [array.size for array in each.given]:
            return {}
        found[index] = arrays
    return found


def _with(case: Case, instead: Mapping[int, Arrays], *, own: bool = True) -> float:
    """The score when other gradients are sent back."""
    if not instead:
        return float("inf")
    ear = BackwardListener(case.backend if own else case.reference_backend, instead)
    with ear.listening():
        return case.tried() if own else trials_of(case).run_reference(None)
