"""Where in the user's source a module gets a buffer."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from parfocal.explain.fixes.sources import read


def registered_at(kind: type[Any], name: str) -> tuple[str | None, int | None]:
    """File and line of ``self.register_buffer("name", ...)`` in a class or one it is made from."""
    for each in kind.__mro__:
        try:
            file = inspect.getsourcefile(each)
            lines, first = inspect.getsourcelines(each)
        except (OSError, TypeError):
            continue  # typed at a prompt, or built in
        source = read(file)
        for _, call in () if source is None else source.calls:
            inside = first <= call.lineno < first + len(lines)
            if inside and _says(call, name):
                return file, call.lineno
    return None, None


def _says(call: ast.Call, name: str) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "register_buffer"):
        return False
    said = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "name")]
    return any(isinstance(each, ast.Constant) and each.value == name for each in said)
