"""The arguments of a class or function of an installed framework, with their defaults."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from typing import Any

from parfocal.backends import registry

PACKAGES = {"torchvision": "torch"}  # beside a framework's own
REQUIRED = inspect.Parameter.empty
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def signature_of(name: str) -> dict[str, Any] | None:
    """Argument -> default as Python writes it, None where there is none; None if this cannot be told."""
    try:
        found = resolve(name) if _framework(name) in registry.available() else None
    except (ImportError, RuntimeError):  # a package that is not installed, or was built for another framework
        return None
    if inspect.isclass(found):
        return _of_class(found)
    return _of_callable(found) or _of_documentation(found, name.rpartition(".")[2])


def _framework(name: str) -> str:
    root = name.partition(".")[0]
    return PACKAGES.get(root, root)


def resolve(name: str) -> Any:
    """The object behind a dotted name; None where this version has none."""
    root, *rest = name.split(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = importlib.import_module(root)
        path = root
        for part in rest:
            path = f"{path}.{part}"
            if not hasattr(found, part):
                try:
                    importlib.import_module(path)
                except ImportError:
                    return None
            found = getattr(found, part, None)
    return found


def _of_class(kind: type) -> dict[str, Any] | None:
    """Of the first constructor that names its arguments: some only pass them on to a base."""
    passed_on: set[str] = set()  # what a constructor on the way gives by itself
    for base in kind.__mro__:
        if "__init__" in vars(base):
            found = _of_callable(vars(base)["__init__"])
            if found is not None:
                return {name: default for name, default in found.items() if name not in {"self", *passed_on}}
            passed_on.add("mode")  # torch's recurrent layers say of which kind they are
    return None


def _of_callable(function: Any) -> dict[str, Any] | None:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return None
    named = {name: each for name, each in parameters.items() if each.kind not in _VARIABLE}
    if parameters and len(named) < len(parameters) and set(named) <= {"self"}:
        return None
    if inspect.isbuiltin(function) and set(parameters) == {"object"}:
        return None  # what Python 3.13 says of any function in C with one argument
    return {
        name: None if each.default is REQUIRED else _written(each.default) for name, each in named.items()
    }


def _written(default: Any) -> str:
    return getattr(default, "__name__", repr(default)) if callable(default) else repr(default)


def _of_documentation(function: Any, name: str) -> dict[str, Any] | None:
    """From the lines ``name(argument, other=1) -> Tensor``: the one with most arguments."""
    balanced = r"([^()]*(?:\([^()]*\)[^()]*)*)"
    pattern = rf"^\s*(?:\.\. function::\s*)?{re.escape(name)}\({balanced}\)"
    lines = re.findall(pattern, function.__doc__ or "", re.MULTILINE)
    if not lines:
        return None
    found = [_arguments(line) for line in lines]
    return max(found, key=len)


def _arguments(text: str) -> dict[str, Any]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    found: dict[str, Any] = {}
    for part in parts:
        name, equals, default = part.partition("=")
        name = name.split(":")[0].strip().lstrip("*")
        if name.isidentifier():
            found[name] = default.strip() if equals else None
    return found
