"""Recording a script as it is: the first model it calls, steps as its optimizers make them.

Nothing in the script changes. A framework is watched from the moment the script imports it;
the model is the first module with parameters that is called from outside of any other.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Backend
from parfocal.capture.recorder import Recorder
from parfocal.capture.recording import LATER, record
from parfocal.errors import InputError
from parfocal.phrases import phrase


class _Enough(BaseException):
    """Ends the script after the last wanted step, past any ``except Exception`` of its own."""


def record_script(
    script: Path,
    arguments: Sequence[str],
    out: Path,
    *,
    steps: int = 0,
    prepare: Callable[[Any], None] | None = None,
    **options: Any,
) -> Path:
    """Run a script under watch and return the folder of its run; ``steps`` ends it after so many.

    ``prepare`` is given the model right before its first call.
    Other options are those of ``record``. An exception or exit of the script is passed on, after
    the run was closed: as incomplete, unless the script exited in good order.
    """
    if not script.is_file():
        raise InputError(
            phrase("there is no script {script}", script=script),
            hint=phrase("give the path of a Python file"),
        )
    watch = _ScriptWatch(out, steps, prepare, options)
    with watch, _command_line(script, arguments):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except _Enough:
            pass
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                raise
    if watch.recorder is None:
        raise InputError(
            phrase("{script} called no model with parameters, so there is nothing to record", script=script),
            hint=phrase("the script must run the model itself, in this process"),
        )
    return watch.recorder.path


class _ScriptWatch(ExitStack):
    """Waits for a framework, then for a model, then records it until closed."""

    def __init__(
        self, out: Path, steps: int, prepare: Callable[[Any], None] | None, options: dict[str, Any]
    ) -> None:
        super().__init__()
        self.recorder: Recorder | None = None
        self._out = out
        self._steps = steps
        self._prepare = prepare
        self._options = options

    def __enter__(self) -> _ScriptWatch:
        super().__enter__()
        self.enter_context(_when_imported(registry.names(), self._watch_framework))
        return self

    def _watch_framework(self, name: str) -> None:
        backend = registry.get(name)
        self.enter_context(backend.watch_outermost(lambda model: self._on_model(backend, model)))
        self.enter_context(backend.watch_updates(self._before_update, self._after_update))

    def _on_model(self, backend: Backend, model: Any) -> None:
        if self.recorder is None and any(entry.role == "parameter" for entry in backend.state(model)):
            prepare, self._prepare = self._prepare, None
            if prepare is not None:
                prepare(model)
            self.recorder = self.enter_context(record(model, self._out, optimizer=LATER, **self._options))

    def _before_update(self, optimizer: Any) -> None:
        if self.recorder is not None:
            self.recorder.before_update(optimizer)

    def _after_update(self, optimizer: Any) -> None:
        if self.recorder is None:
            return
        self.recorder.after_update()
        if self.recorder.steps_done == self._steps:
            raise _Enough


@contextmanager
def _command_line(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    """The script sees its own name and arguments, and finds its neighbours."""
    argv, path = sys.argv, sys.path
    sys.argv, sys.path = [str(script), *arguments], [str(script.resolve().parent), *path]
    try:
        yield
    finally:
        sys.argv, sys.path = argv, path


@contextmanager
def _when_imported(names: Sequence[str], callback: Callable[[str], None]) -> Iterator[None]:
    """Call back once for every named package: at once if it is loaded, else right after its import."""
    finder = _Finder(set(names) - sys.modules.keys(), callback)
    sys.meta_path.insert(0, finder)
    try:
        for name in names:
            if name in sys.modules:
                callback(name)
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Finds a named package as Python would, and has its loader say when it is done."""

    def __init__(self, awaited: set[str], callback: Callable[[str], None]) -> None:
        self._awaited = awaited
        self._callback = callback

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._awaited:
            return None
        self._awaited.discard(fullname)  # the search below comes by here again
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, lambda: self._callback(fullname))
        return spec


class _Loader(Loader):
    """Another loader, with a word afterwards."""

    def __init__(self, loader: Any, done: Callable[[], None]) -> None:
        self._loader = loader
        self._done = done

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module knows its own loader only, as if nobody had been in between.
        module.__loader__ = self._loader
        assert module.__spec__ is not None
        module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._done()
