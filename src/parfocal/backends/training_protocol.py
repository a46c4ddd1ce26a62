"""What parfocal needs from a framework to compare trainings: tier 3 of ``protocol.py``.

A framework without optimizers takes ``without_training.py`` for all of it. Settings, slots and kinds of
optimizers have the common names of ``vocabulary``, on every side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from parfocal.backends.histories import History
    from parfocal.backends.protocol import Array


class TrainingBackend(Protocol):
    """Optimizers: one update, and what it is made from."""

    def is_optimizer(self, value: object) -> bool: ...
    def is_scheduler(self, value: object) -> bool: ...

    def sgd(self, model: Any, learning_rate: float) -> Any:
        """A new optimizer of the framework's own for all parameters: plain gradient descent."""

    def optimizer_step(self, optimizer: Any, closure: Callable[[], Any] | None = None) -> None:
        """One update; ``closure`` computes loss and gradients anew, for those that ask for it."""

    def needs_closure(self, optimizer: Any) -> bool:
        """Whether a step computes the loss several times."""

    def scheduler_step(self, scheduler: Any, metric: float | None = None) -> None: ...

    def watch_optimizer(
        self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Call back around every step of the optimizer, whoever makes it."""

    def watch_updates(
        self, before: Callable[[Any], None], after: Callable[[Any], None]
    ) -> AbstractContextManager[None]:
        """Call back around every step of every optimizer, with that optimizer."""

    def optimizer_kind(self, optimizer: Any) -> str:
        """Common name: "SGD", "Momentum", "Adam", "AdamW", ... (torch's SGD with momentum is Momentum)."""

    def optimizer_settings(self, optimizer: Any, model: Any) -> dict[str, dict[str, Any]]:
        """Parameter path -> effective settings under common names (lr, weight_decay, betas, ...)."""

    def optimizer_state(
        self, optimizer: Any, model: Any, *, copy: bool = True
    ) -> dict[str, dict[str, Array]]:
        """Parameter path -> common slot name ("momentum", "moment1", "moment2", ...) -> values.

        Without ``copy`` they may be the optimizer's own memory, which the next update changes.
        """

    def gradient_clip(self, optimizer: Any) -> dict[str, Any] | None:
        """What the optimizer itself does to gradients before an update, or None.

        ``kind`` is "global_norm", "norm" (of each parameter by itself) or "value"; ``limit`` what is
        allowed, and for values ``least`` too.
        """

    def learning_rate(self, optimizer: Any) -> float:
        """The learning rate the next step will use (of the first group)."""


class SchedulingBackend(Protocol):
    """Schedulers: how a learning rate goes on."""

    def optimizer_rates(self, optimizer: Any) -> list[float]:
        """The learning rate of every parameter group, as the next update reads it."""

    def schedule_rates(self, scheduler: Any) -> list[float]:
        """The same as a scheduler gives it: of its optimizer where it has one, or its own."""

    def scheduler_of(self, optimizer: Any) -> Any | None:
        """The scheduler that the optimizer reads its rate from, where it holds one."""

    def optimizer_of(self, scheduler: Any) -> Any | None:
        """The optimizer whose rate the scheduler sets, where it holds one."""

    def needs_metric(self, scheduler: Any) -> bool:
        """Whether a step of the scheduler asks how well the training does."""

    def schedule_state(self, scheduler: Any) -> Any:
        """Where the scheduler stands, with its optimizer's rates, for ``set_schedule_state``."""

    def set_schedule_state(self, scheduler: Any, state: Any) -> None:
        """The scheduler goes on from there."""

    def schedule_kept(self, scheduler: Any) -> AbstractContextManager[None]:
        """The scheduler, and its optimizer's rates, are stepped meanwhile and put back exactly."""


class UpdatingBackend(Protocol):
    """What an update reads and writes, set from outside, and how it is written in code."""

    def address(self, tensor: Any) -> int | None:
        """Where the values lie in main memory; None where they do not."""

    def clear_by_optimizer(self, optimizer: Any) -> None:
        """Clear gradients as the framework's optimizers do when nothing more is said."""

    def write_gradient(self, tensor: Any, array: Array | None) -> None:
        """Make this the accumulated gradient of a leaf; None: it has none."""

    def write_optimizer_state(
        self, optimizer: Any, model: Any, state: Mapping[str, Mapping[str, Array]]
    ) -> None:
        """Other values in the slots that the optimizer has already; others are passed over."""

    def copied_optimizer_state(self, optimizer: Any) -> Any:
        """All that the optimizer keeps from step to step, as a copy for ``exchange_optimizer_state``."""

    def exchange_optimizer_state(self, optimizer: Any, state: Any) -> Any:
        """Give the optimizer another state; returns the one it had."""

    def optimizer_history(self, optimizer: Any, model: Any) -> History | None:
        """What one that asks for the loss anew remembers of its steps; None: nothing, or not known."""

    def write_optimizer_history(self, optimizer: Any, model: Any, history: History) -> None:
        """It remembers this instead; arrays by the paths of its own parameters."""

    def clipped_by_optimizer(self, optimizer: Any, model: Any) -> dict[str, Array] | None:
        """Parameter path -> gradient as the optimizer's own clipping leaves it; None: it clips nothing."""

    def optimizer_clip_off(self, optimizer: Any) -> AbstractContextManager[None]:
        """While inside, the optimizer does not clip."""

    def learning_rates_set(
        self, optimizer: Any, model: Any, rates: Mapping[str, float]
    ) -> AbstractContextManager[None]:
        """While inside, updates use these rates, by parameter path."""

    def optimizer_paths(self, optimizer: Any, model: Any) -> tuple[list[str], int]:
        """The parameters of the model that the optimizer has; how many it has that are not the model's."""

    def written_settings(self, kind: str, settings: Mapping[str, Any]) -> str:
        """How an optimizer with these settings is written; what there is no argument for is left out."""

    def written_clearing(self) -> str:
        """How gradients are cleared so that a parameter without a part in a step has none."""

    def written_clip(self, kind: str, limit: float) -> str:
        """How gradients are clipped by ``kind`` as ``gradient_clip`` names it."""


class InitialisingBackend(Protocol):
    """How weights begin."""

    def default_initialiser(self, kind: str, name: str) -> str | None:
        """The common name of what initialises a layer's tensor when nothing is said; None: not known."""

    def written_initialiser(self, name: str) -> str | None:
        """How an initialiser is written, with places for the tensor and its numbers; None: no one line."""


@runtime_checkable
class LaunchingBackend(Protocol):
    """A capability some backends have: a training on several ranks of one machine."""

    def launcher(self, ranks: int, logs: str) -> list[str]:
        """What stands between the interpreter and a script: the framework's own launcher, on the CPU.

        ``logs`` is a folder for what the launcher itself writes.
        """

    def join_ranks(self) -> None:
        """In a launched process: find the other ranks."""

    def leave_ranks(self) -> None:
        """The last thing that a rank does."""

    def data_parallel(self, model: Any) -> Any:
        """The model in the framework's own wrapper, which averages gradients over the ranks."""
