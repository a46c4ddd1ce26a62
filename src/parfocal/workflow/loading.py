"""What a user names by ``file.py:name`` or ``package.module:name``: imported as a script would be."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from itertools import count
from pathlib import Path
from typing import Any

from parfocal.errors import InputError, MissingFrameworkError, ParfocalError
from parfocal.phrases import joined, phrase


def load_attribute(spec: str, option: str) -> tuple[str, Any]:
    """Name and value of what a spec names; ``option`` is where the user wrote it."""
    place, _, attribute = spec.rpartition(":")
    if not (place and attribute):
        raise InputError(
            phrase(
                "{option} {spec} is neither file.py:name nor package.module:name",
                option=option,
                spec=repr(spec),
            )
        )
    module = _import(place, spec, option)
    found = getattr(module, attribute, None)
    if found is None:
        raise InputError(
            phrase(
                "{option} {spec}: {place} has no {attribute}",
                option=option,
                spec=spec,
                place=place,
                attribute=repr(attribute),
            ),
            hint=_offered(module),
        )
    return attribute, found


def _offered(module: Any) -> str:
    """What a module has that may have been meant."""
    own = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    return phrase("it has {own}", own=joined(", ", own[:8])) if own else ""


def _import(place: str, spec: str, option: str) -> Any:
    if "" not in sys.path:  # as for python -m: modules of the current folder count
        sys.path.insert(0, "")
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place).resolve()
        if not path.is_file():
            raise InputError(
                phrase("{option} {spec}: there is no file {place}", option=option, spec=spec, place=place)
            )
        return _import_file(path)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        raise _missing(error, spec, option) from error
    except (Exception, SystemExit) as error:
        raise InputError(
            phrase(
                "{option} {spec}: importing {place} raised {name}: {error}{where_raised}",
                option=option,
                spec=spec,
                place=place,
                name=type(error).__name__,
                error=error,
                where_raised=where_raised(error),
            ),
            hint=phrase("run in the folder that has the module, with its dependencies installed"),
        ) from error


def _import_file(path: Path) -> Any:
    """As a script is run: its neighbours can be imported, and are its own."""
    name = _free_name(path)
    if sys.path[:1] != [str(path.parent)]:
        sys.path.insert(0, str(path.parent))
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def _free_name(path: Path) -> str:
    """The file's name, or with a number where another module has it: a port's file may be called the same."""
    for number in count(1):
        name = path.stem if number == 1 else f"{path.stem}_{number}"
        if name in sys.modules:
            continue
        known = importlib.util.find_spec(name) if name.isidentifier() else None
        if known is None or (known.origin and Path(known.origin).resolve() == path):
            return name
    raise AssertionError("numbers do not end")


def _missing(error: ModuleNotFoundError, spec: str, option: str) -> ParfocalError:
    """A framework that is not installed is worth its own words."""
    from parfocal.backends import registry

    if error.name in registry.BUILTIN:
        return MissingFrameworkError(
            phrase(
                "{option} {spec} needs {titles}, which is not installed",
                option=option,
                spec=spec,
                titles=registry.TITLES[error.name],
            ),
            hint=f"pip install 'parfocal[{error.name}]'",
        )
    return InputError(
        phrase(
            "{option} {spec}: there is no module named {name}",
            option=option,
            spec=spec,
            name=repr(error.name),
        ),
        hint=phrase("run in the folder that has the module, with its dependencies installed"),
    )


def where_raised(error: BaseException, *own: str) -> str:
    """The last lines of the user's own trace, below the message; ``own`` are files of parfocal."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        each
        for each in frames
        if each.filename not in (__file__, *own) and not each.filename.startswith("<frozen ")
    ]
    return "".join(f"\n{line}" for line in traceback.format_list(theirs[-2:])).rstrip().replace("\n\n", "\n")
