"""The ways that older versions of PyTorch need; ``capabilities.py`` says what they do not have.

Whatever is put in the place of something of PyTorch's gives way again to exactly what was found there.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import MethodType
from typing import Any

import torch
from torch.nn.modules import activation, transformer
from torch.overrides import resolve_name

from parfocal.backends.module_calls import backward_watched


class FastPath:
    """The switch that ``torch.backends.mha`` is in later versions.

    The transformer layers do not take their fused path where ``torch.overrides.has_torch_function`` says that
    an argument is of another kind. Asked by one of them, it says so while the path is off; anybody else gets
    PyTorch's answer.
    """

    _ASKING = (activation.__name__, transformer.__name__)

    def __init__(self) -> None:
        self._found: Callable[[Any], bool] | None = None  # while the path is off

    def get_fastpath_enabled(self) -> bool:
        return self._found is None

    def set_fastpath_enabled(self, enabled: bool) -> None:
        if enabled == self.get_fastpath_enabled():
            return
        if self._found is not None:
            torch.overrides.has_torch_function, self._found = self._found, None
            return
        self._found = found = torch.overrides.has_torch_function

        def has_torch_function(arguments: Any) -> bool:
            return sys._getframe(1).f_globals.get("__name__") in self._ASKING or found(arguments)

        torch.overrides.has_torch_function = has_torch_function


class _Engine:
    """In the place of the engine, whose own functions cannot be exchanged."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self.run_backward = found.run_backward

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


def is_autocast_available(device_type: str) -> bool:
    """``torch.amp.is_autocast_available``: a device that cannot is refused."""
    try:
        torch.autocast(device_type)
    except RuntimeError:
        return False
    return True


def _calls_hooks(step: Any) -> bool:
    """Whether PyTorch's function that calls the hooks is around an optimizer's ``step``."""
    caller = torch.optim.Optimizer.profile_hook_step(step).__code__
    while step is not None:
        if getattr(step, "__code__", None) is caller:
            return True
        step = getattr(step, "__wrapped__", None)
    return False


def _unhooked(kind: Any) -> bool:
    """Whether the compiler has taken that function away and marked ``step`` as if it were there."""
    return getattr(kind.step, "hooked", False) and not _calls_hooks(kind.step)


def _kinds(kind: Any) -> Iterator[Any]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


@contextmanager
def steps_hooked() -> Iterator[None]:
    """All optimizers call the hooks of their steps, as they do until a model is compiled.

    An optimizer whose scheduler has taken hold of its ``step`` has hooks by ``step_hooked`` alone.
    """
    with ExitStack() as undo:
        for kind in _kinds(torch.optim.Optimizer):
            if "step" in vars(kind) and _unhooked(kind):
                undo.callback(setattr, kind, "step", kind.step)
                kind.step = torch.optim.Optimizer.profile_hook_step(kind.step)
        yield


@contextmanager
def step_hooked(optimizer: Any) -> Iterator[None]:
    """This one calls its hooks, whoever has taken hold of its ``step`` before."""
    if not (isinstance(optimizer, torch.optim.Optimizer) and _unhooked(type(optimizer))):
        yield
        return
    own, step = "step" in vars(optimizer), optimizer.step

    @wraps(step)
    def unbound(_: Any, *args: Any, **kwargs: Any) -> Any:
        return step(*args, **kwargs)

    optimizer.step = calling = MethodType(torch.optim.Optimizer.profile_hook_step(unbound), optimizer)
    try:
        yield
    finally:
        if optimizer.step is calling:  # no scheduler was made meanwhile
            if own:
                optimizer.step = step
            else:
                del optimizer.step


@contextmanager
def engine_watched(
    on_start: Callable[[Sequence[Any]], None], on_end: Callable[[bool], None]
) -> Iterator[None]:
    """Call back around every backward pass."""
    owner = torch.autograd.Variable
    found = owner._execution_engine
    owner._execution_engine = engine = _Engine(found)
    try:
        with backward_watched(engine, ("run_backward",), on_start, on_end):
            yield
    finally:
        owner._execution_engine = found


def name_of(func: Any) -> str | None:
    """PyTorch's name of a function. It looks at all it has for that, and warns of what is deprecated."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'.*' is deprecated, please use", UserWarning)
        return resolve_name(func)


@contextmanager
def indices_seen() -> Iterator[None]:
    """Tell function modes of ``tensor[index]``."""
    own = vars(torch.Tensor).get("__getitem__")
    getitem = torch.Tensor.__getitem__
    name_of(getitem)  # PyTorch looks up all names at once, and not ours

    def telling(tensor: Any, index: Any) -> Any:
        if torch._C._is_torch_function_mode_enabled():
            return torch.overrides.handle_torch_function(telling, (tensor,), tensor, index)
        return getitem(tensor, index)

    telling.__module__, telling.__name__ = "torch.Tensor", "__getitem__"  # what is told
    torch.Tensor.__getitem__ = telling
    try:
        yield
    finally:
        if own is None:
            del torch.Tensor.__getitem__
        else:
            torch.Tensor.__getitem__ = own


@contextmanager
def safe_globals(allowed: Sequence[Any]) -> Iterator[None]:
    """``torch.serialization.safe_globals``: an entry may be a pair of a function and its other name."""
    found = list(torch.serialization.get_safe_globals())
    torch.serialization.add_safe_globals(
        [_named(*each) if isinstance(each, tuple) else each for each in allowed]
    )
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(found)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same function under another name, as these versions go by the names that functions say."""

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    call.__module__, _, call.__name__ = name.rpartition(".")
    return call
