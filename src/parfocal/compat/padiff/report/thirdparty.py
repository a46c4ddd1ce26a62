"""Custom operators under watch: the functions named in ``PADDLE_THIRDPARTY_API``.

The variable lists full names, separated by commas (``paddle3d.ops.iou3d_nms,my_ops.gelu``). The
functions are wrapped in their modules while a model is recorded, and put back afterwards.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from parfocal.errors import InputError
from parfocal.phrases import phrase

VARIABLE = "PADDLE_THIRDPARTY_API"
OnFunction = Callable[[str, tuple[Any, ...], dict[str, Any], Any], None]


@contextmanager
def watch_functions(on_function: OnFunction) -> Iterator[None]:
    """Call back with full name, arguments and output after every call of a listed function."""
    names = [name for name in os.environ.get(VARIABLE, "").replace(" ", "").split(",") if name]
    with ExitStack() as undo:
        for name in names:
            module_name, _, attribute = name.rpartition(".")
            module, function = _find(module_name, attribute, name)
            undo.callback(setattr, module, attribute, function)
            setattr(module, attribute, _wrapped(name, function, on_function))
        yield


def _find(module_name: str, attribute: str, name: str) -> tuple[Any, Callable[..., Any]]:
    try:
        module = importlib.import_module(module_name)
        function = getattr(module, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            phrase(
                "{variable} names {name}, which cannot be found: {error}",
                variable=VARIABLE,
                name=repr(name),
                error=error,
            ),
            hint=phrase("give the full name of module and function, e.g. paddle3d.ops.iou3d_nms"),
        ) from error
    return module, function


def _wrapped(name: str, function: Callable[..., Any], on_function: OnFunction) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        output = function(*args, **kwargs)
        on_function(name, args, kwargs, output)
        return output

    return call
