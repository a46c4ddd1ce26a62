"""Watching calls and backward passes, for frameworks that let hooks be set or a function be exchanged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from parfocal.backends.calls import CallTracker, ModulePosition
from parfocal.backends.module_tree import ModuleTree, first_paths
from parfocal.backends.protocol import OnEnter, OnExit, OnOp
from parfocal.native.library import lend_threads


class ModuleCalls(ModuleTree):
    """The watching that ``ModelBackend`` asks for."""

    openmp: tuple[str, ...] = ()  # libraries whose threads the kernels run on

    @staticmethod
    @abstractmethod
    def watched_children(module: Any) -> Mapping[str, Any]:
        """The children whose calls can be watched: none of a module that runs as one piece."""

    @staticmethod
    @abstractmethod
    def set_hooks(module: Any, begin: Callable[..., Any], end: Callable[..., Any]) -> Iterator[Any]:
        """Handles of hooks around a module's calls; the user's own hooks run inside of them.

        They call ``begin(module, args, kwargs)`` and ``end(module, args, output)``, the latter also while an
        exception is under way.
        """

    @abstractmethod
    def watch_ops(self, tracker: CallTracker, on_op: OnOp) -> AbstractContextManager[None]:
        """While inside, ops that the user's modules make are reported."""

    @contextmanager
    def watch(
        self,
        model: Any,
        on_enter: OnEnter | None = None,
        on_exit: OnExit | None = None,
        on_op: OnOp | None = None,
    ) -> Iterator[None]:
        lend_threads(*self.openmp)
        modules = first_paths(model, self.watched_children)
        places = {
            id(module): ModulePosition(path, self.runs_framework_code(module))
            for path, module in modules.items()
        }
        tracker = CallTracker(places, on_enter, on_exit)
        with ExitStack() as undo:
            callbacks = tracker.hooks()
            handles: list[Any] = []
            undo.callback(_remove, handles)
            for module in modules.values():
                handles += self.set_hooks(module, *callbacks)
            if on_op is not None:
                undo.enter_context(self.watch_ops(tracker, on_op))
            yield

    @contextmanager
    def watch_outermost(self, on_model: Callable[[Any], None]) -> Iterator[None]:
        kind: Any = self.module_class
        original = kind.__call__
        inside = False

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:
                return original(self, *args, **kwargs)
            inside = True
            try:
                on_model(self)
                return original(self, *args, **kwargs)
            finally:
                inside = False

        kind.__call__ = call
        try:
            yield
        finally:
            kind.__call__ = original


def _remove(handles: list[Any]) -> None:
    """Take hooks off, the last one first."""
    while handles:
        handles.pop().remove()


@contextmanager
def backward_watched(
    owner: Any,
    names: Sequence[str],
    on_start: Callable[[Sequence[Any]], None],
    on_end: Callable[[bool], None],
) -> Iterator[None]:
    """Call back around the functions of ``owner`` through which every backward pass goes."""
    depth = 0

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if depth == 0:
                on_start(tuple(outputs))
            depth += 1
            finished = False
            try:
                result = original(outputs, *args, **kwargs)
                finished = True
            finally:
                depth -= 1
                if depth == 0:
                    on_end(finished)
            return result

        return run

    with ExitStack() as undo:
        for name in names:
            original = getattr(owner, name)
            undo.callback(setattr, owner, name, original)
            setattr(owner, name, watched(original))
        yield
