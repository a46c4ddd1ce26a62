"""What parfocal needs from a framework, in three tiers.

A backend is one object with the methods below. Tier 1 is about tensors, tier 2 about
models that run, tier 3 (in ``training_protocol.py``) about training. Everything outside
``backends/`` speaks to a framework only through this protocol, so paths, kinds, settings,
dtype names and optimizer slots have **one spelling** on every side:

- paths are dotted (``layer1.0.conv1``), the root module's path is ``""``;
- kinds and setting names are the common ones listed in ``vocabulary.py``;
- arrays are NumPy; bfloat16 is ``ml_dtypes.bfloat16`` and keeps its name;
- BatchNorm statistics are buffers, whatever the framework calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from numpy.typing import NDArray

from parfocal.backends.draws import Draws
from parfocal.backends.training_protocol import (
    InitialisingBackend,
    SchedulingBackend,
    TrainingBackend,
    UpdatingBackend,
)

Array = NDArray[Any]
Role = Literal["parameter", "buffer"]
Mode = Literal["eval", "train", "keep"]
OnEnter = Callable[["Call"], "tuple[tuple[Any, ...], dict[str, Any]] | None"]
OnExit = Callable[["Call", Any], Any]
OnOp = Callable[["OpCall"], Any]


class StateTensor(NamedTuple):
    """One parameter or buffer of a model. ``value`` is the framework's own live tensor."""

    path: str  # "layer1.0.bn1.running_mean": the framework's own local name at the end
    module: str  # path of the module that owns it
    name: str  # the framework's own local name, e.g. "running_mean" or "_mean"
    role: Role
    trainable: bool
    persistent: bool  # part of the framework's state dict
    tied_to: str | None  # path of the first occurrence of the very same tensor
    value: Any


@dataclass(slots=True)
class Call:
    """One call of one module while a model is being watched.

    The same object is handed to ``on_enter`` and ``on_exit``; ``note`` belongs to the watcher.
    """

    order: int  # 0, 1, 2, ... in the order in which calls begin
    parent: int | None  # ``order`` of the enclosing call
    depth: int
    path: str  # of the module; the first registered path for a shared module
    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    note: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class OpCall:
    """One functional call or tensor operator made by a user's module itself.

    What a framework's layer does inside is that layer, and what an op calls in turn is that op.
    ``args`` are as passed: of an op in place the first one is a copy of what was there before.
    A hook on a tensor's gradient counts too (``register_hook``); its output is the hook's handle.
    """

    order: int
    module: str  # path of the module whose code made it
    call: int | None  # ``order`` of the enclosing module call
    name: str  # common name (vocabulary.py), or the framework's own where there is none
    native: str  # the framework's own name
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any
    function: Callable[..., Any] | None = None  # calls the op again, unreported
    note: dict[str, Any] = field(default_factory=dict)


class TensorBackend(Protocol):
    """Tier 1: arrays in and out."""

    name: str  # "torch", "paddle"
    framework_version: str
    dtypes: frozenset[str]  # names that exist on both sides of ``to_array``/``from_array``

    def threads(self) -> int:
        """How many threads a kernel on the CPU may use."""

    def devices(self) -> list[str]:
        """As ``device()`` spells them; the CPU first."""

    def is_tensor(self, value: object) -> bool: ...
    def dtype(self, tensor: Any) -> str: ...
    def shape(self, tensor: Any) -> tuple[int, ...]: ...
    def device(self, tensor: Any) -> str: ...

    def to_array(self, tensor: Any, *, copy: bool = True) -> Array:
        """The values, detached and on the CPU. ``copy=False`` may share memory with the tensor."""

    def from_array(
        self, array: Array, *, requires_grad: bool = False, device: str = "cpu", copy: bool = True
    ) -> Any:
        """A new tensor; ``device`` as ``device()`` spells it ("cpu", "cuda:0").

        It owns its memory; without ``copy`` it may lie on that of the array.
        """

    def cast(self, tensor: Any, dtype: str) -> Any:
        """The tensor in another dtype, still part of the autograd graph."""

    def write(self, tensor: Any, array: Array) -> None:
        """Overwrite a tensor's values in place, outside autograd. Shape and dtype must agree."""

    def requires_grad(self, tensor: Any) -> bool: ...
    def is_leaf(self, tensor: Any) -> bool: ...

    def require_grad(self, tensor: Any) -> None:
        """Take back that a tensor's gradient was switched off."""


class ModelBackend(TensorBackend, Protocol):
    """Tier 2: models that run, under watch."""

    def is_model(self, value: object) -> bool: ...

    def obstacle(self, model: Any) -> str:
        """What a model is whose calls and weights cannot be followed ("a TorchScript module"); else empty."""

    def modules(self, model: Any) -> dict[str, Any]:
        """Path -> module, root first, each module once (a shared one under its first path)."""

    def kind(self, module: Any) -> str:
        """The common kind ("Linear", "BatchNorm2d"), or the class's own name if it has none."""

    def is_framework_layer(self, module: Any) -> bool:
        """Whether the class itself is the framework's own, not the user's."""

    def settings(self, module: Any) -> dict[str, Any]:
        """What the module says of itself, under common names (epsilon, stride, bias, ...)."""

    def state(self, model: Any) -> list[StateTensor]:
        """All parameters and buffers in registration order, tied ones included."""

    def buffers(self, model: Any) -> list[tuple[str, Any]]:
        """Path and tensor of every entry of ``state`` that is a buffer."""

    def plain_attributes(self, module: Any) -> dict[str, Any]:
        """What the module keeps besides parameters, children, hooks and flags; buffers by their dict."""

    def gradient(self, tensor: Any, *, copy: bool = True) -> Array | None:
        """The accumulated gradient of a leaf, dense also where the framework keeps rows; or None.

        Without ``copy`` it stays what it is until more is accumulated, also when it is cleared.
        """

    def gradient_tensor(self, tensor: Any) -> Any:
        """The accumulated gradient of a leaf as the framework's own tensor, or None."""

    def training_flags(self, model: Any) -> dict[str, bool]: ...

    def mode(self, model: Any, mode: Mode) -> AbstractContextManager[None]:
        """Set eval or train for a while; every module's own flag is restored exactly."""

    def watch(
        self,
        model: Any,
        on_enter: OnEnter | None = None,
        on_exit: OnExit | None = None,
        on_op: OnOp | None = None,
    ) -> AbstractContextManager[None]:
        """Call back around every module call, and after every op when ``on_op`` is given.

        ``on_enter`` may return ``(args, kwargs)`` to replace the inputs; ``on_exit`` and ``on_op``
        may return a replacement for the output; None keeps what is there. Calls nest and repeat.
        A user's own hooks on a module count as part of its call. Ops outside of any call of the
        model, and those of the callbacks themselves, are not reported.
        Everything is restored on leaving, also when the model or a callback raises.
        """

    def unwatched(self) -> AbstractContextManager[None]:
        """What a watch changes in the framework as a whole is for a while as if there was none."""

    def watch_gradient(self, tensor: Any, callback: Callable[[Any], Any]) -> Callable[[], None] | None:
        """Call back with the gradient of any tensor, leaf or not; returns the remover.

        None when the tensor takes no part in autograd. The callback gets the full (accumulated)
        gradient of that tensor once per backward pass and may return a replacement. It is the
        gradient of the value the tensor has now, also when an op in place changes it later.
        """

    def backward(
        self, outputs: Sequence[Any], gradients: Sequence[Any | None], *, retain: bool = False
    ) -> None: ...

    def clear_gradients(self, model: Any) -> None:
        """Every parameter's gradient becomes absent (not zero)."""

    def no_grad(self) -> AbstractContextManager[None]: ...
    def with_grad(self) -> AbstractContextManager[None]:
        """What is computed becomes part of a graph, also inside of ``no_grad``."""

    def seed(self, value: int) -> None: ...
    def rng_state(self) -> Any: ...
    def set_rng_state(self, state: Any) -> None: ...
    def draws_from(self, draws: Draws) -> AbstractContextManager[None]:
        """What the framework draws at random comes from ``draws`` for a while, as far as that can be had."""

    def read_in_turn(self, loader: Any) -> Iterator[Any]:
        """The batches of a loader of the framework, each read when it is asked for and by the same thread, as
        far as that can be had."""

    def random_values(self) -> Array:
        """The next few numbers of the random generator: equal after equal histories."""

    def save_checkpoint(self, path: str, state: Iterable[tuple[str, Array]]) -> None:
        """A state dict in the framework's own file format; the file appears complete or not at all."""

    def deterministic(self) -> AbstractContextManager[None]:
        """Ask the framework for deterministic kernels where it has them; restored on leaving."""

    def alias(self, tensor: Any) -> Any:
        """Another tensor on the same memory: its gradient is that of its own uses alone."""

    def duplicate(self, tensor: Any) -> Any:
        """The same values in memory of its own, laid out alike and outside of the tensor's graph.

        It takes part in autograd as the tensor does, and is a leaf where that is one.
        """

    @property
    def leaves_gradients_alone(self) -> bool:
        """Whether the engine writes to no gradient that it has shown to a hook, while that is held."""

    def substitute(self, tensor: Any, array: Array, *, copy: bool = True) -> Any:
        """A new tensor with the array's values that passes its gradient on to ``tensor`` unchanged.

        Without ``copy`` it may lie on the array's own memory.
        """

    def overwrite(self, tensor: Any, array: Array) -> None:
        """Other values in the very same tensor, unnoticed by autograd: not counted as a change."""

    def assign(self, tensor: Any, value: Any) -> None:
        """Other values in the very same tensor, as a step of the graph: gradients go back to ``value``."""

    def version(self, tensor: Any) -> int:
        """How often the tensor was changed in place."""

    def changes_behind_hooks(self, tensor: Any) -> Callable[[], int] | None:
        """Counts the changes in place that hide the tensor's gradient from hooks set before them.

        None where a hook sees the gradient whatever is done to the tensor. It keeps no memory alive.
        """

    def counts_changes(self, tensor: Any) -> bool:
        """Whether ``version`` sees changes of this tensor; torch keeps no count in inference mode."""

    def grad_enabled(self) -> bool:
        """Whether what is computed now becomes part of a graph."""

    def watch_backward(
        self, on_start: Callable[[Sequence[Any]], None], on_end: Callable[[bool], None]
    ) -> AbstractContextManager[None]:
        """Call back around every backward pass: with the tensors it starts from; with whether it got through.

        Passes inside a pass (recomputation) belong to the outer one.
        """

    def watch_outermost(self, on_model: Callable[[Any], None]) -> AbstractContextManager[None]:
        """Call back with a module right before it is called from outside of any other module."""

    def recurrence_in_training(self, model: Any) -> AbstractContextManager[None]:
        """Recurrent layers as in training but without dropout: some kernels go backward in no other mode."""

    def no_functional_dropout(self) -> AbstractContextManager[None]:
        """Functions that drop at random let everything pass for a while, whoever calls them."""

    def watch_dropout(self, on_drop: Callable[[float], None]) -> AbstractContextManager[None]:
        """Call back with the rate whenever code asks a function to drop something, muted or not."""

    def widened(self) -> AbstractContextManager[None]:
        """While inside, code that asks for float32 is given float64."""

    def mixed_precision(self, model: Any, level: str, dtype: str) -> AbstractContextManager[Any]:
        """While inside, what gains by it is computed in ``dtype``, the rest as it is.

        ``level`` "O1": products; "O2": all but what needs to be exact. Where the framework has no kernels on
        the model's device (see ``lowers``), operands and results are rounded instead.
        """

    def lowers(self, model: Any, dtype: str) -> bool:
        """Whether mixed precision really computes in this dtype on the model's device."""

    def gradients_kept(self, model: Any) -> AbstractContextManager[None]:
        """Parameters without gradients for a while; on leaving they have those from before."""

    def works_in_place(self, module: Any) -> bool:
        """Whether the module says that it overwrites its input."""

    def copy_as(self, module: Any, dtype: str | None) -> Any:
        """A deep copy of a module, in another floating dtype unless None: no gradients, nobody watches it."""


class Backend(
    ModelBackend, TrainingBackend, SchedulingBackend, UpdatingBackend, InitialisingBackend, Protocol
):
    """All three tiers: what ``registry.backend`` gives."""


@runtime_checkable
class CheckpointReader(Protocol):
    """A capability some backends have: reading their own files without executing anything of them."""

    def load_checkpoint(self, path: str) -> dict[str, Any]:
        """The file's mapping with every tensor as an array; nested mappings and lists stay nested."""
