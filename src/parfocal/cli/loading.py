"""What commands are given by name: models, and inputs from files or descriptions."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from contextlib import nullcontext
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from parfocal.errors import InputError, MissingFrameworkError, ParfocalError

_INPUT = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<dtype>[a-z]+\d*)"
    r"\[\s*(?P<shape>(?:\d+(?:\s*,\s*\d+)*)?)\s*\](?::(?P<range>.+))?"
)

_folders: set[Path] = set()  # of the files that models were loaded from


def load_model(spec: str, option: str, seed: int | None = None) -> Any:
    """The model behind ``file.py:name`` or ``package.module:name``: built when it is a function or class.

    ``seed``: of the random weights it is built with.
    """
    place, _, attribute = spec.rpartition(":")
    if not (place and attribute):
        raise InputError(f"{option} {spec!r} is neither file.py:name nor package.module:name")
    module = _import(place, spec, option)
    found = getattr(module, attribute, None)
    if found is None:
        raise InputError(f"{option} {spec}: {place} has no {attribute!r}", hint=_offered(module))
    if not callable(found) or (hasattr(found, "state_dict") and not isinstance(found, type)):
        return _checked(found, f"{option} {spec}: {attribute} is")  # a model that is there already
    try:
        made = _build(found, seed)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{option} {spec}: {attribute}() raised {type(error).__name__}: {error}{_where(error)}",
            hint="it must build the model without arguments",
        ) from error
    return _checked(made, f"{option} {spec}: {attribute}() gives")


def _checked(made: Any, words: str) -> Any:
    """What was named, if it is a model."""
    from parfocal.backends import registry

    if made is None:
        raise InputError(f"{words} None", hint="return the model")
    try:
        is_model = registry.of(made).is_model(made)
    except InputError:
        is_model = False
    if not is_model:
        raise InputError(f"{words} {_described(made)}, not a model", hint="name a function that builds one")
    return made


def _described(made: Any) -> str:
    kind = type(made).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _offered(module: Any) -> str:
    """What a module has that may have been meant."""
    own = [
        name
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    return f"it has {', '.join(own[:8])}" if own else ""


def _build(maker: Any, seed: int | None) -> Any:
    """Seeded only now: the framework was loaded with the module that uses it."""
    from parfocal.capture.determinism import seeded

    with nullcontext() if seed is None else seeded(seed):
        return maker()


def _import(place: str, spec: str, option: str) -> Any:
    if "" not in sys.path:  # as for python -m: modules of the current folder count
        sys.path.insert(0, "")
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place).resolve()
        if not path.is_file():
            raise InputError(f"{option} {spec}: there is no file {place}")
        return _import_file(path)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        raise _missing(error, spec, option) from error
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{option} {spec}: importing {place} raised {type(error).__name__}: {error}{_where(error)}",
            hint="run in the folder that has the module, with its dependencies installed",
        ) from error


def _import_file(path: Path) -> Any:
    """As a script is run: its neighbours can be imported, and are its own."""
    name = _free_name(path)
    _forget_namesakes(path.parent)
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


def _forget_namesakes(folder: Path) -> None:
    """A neighbour of the other model's file would be imported in place of one called the same."""
    for other in _folders - {folder}:
        for file in (*other.glob("*.py"), *other.glob("*/__init__.py")):
            name = file.stem if file.parent == other else file.parent.name
            mine = (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()
            if mine and getattr(sys.modules.get(name), "__file__", None) == str(file):
                for each in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                    del sys.modules[each]
    _folders.add(folder)


def _missing(error: ModuleNotFoundError, spec: str, option: str) -> ParfocalError:
    """A framework that is not installed is worth its own words."""
    from parfocal.backends import registry

    if error.name in registry.BUILTIN:
        return MissingFrameworkError(
            f"{option} {spec} needs {registry.TITLES[error.name]}, which is not installed",
            hint=f"pip install 'parfocal[{error.name}]'",
        )
    return InputError(
        f"{option} {spec}: there is no module named {error.name!r}",
        hint="run in the folder that has the module, with its dependencies installed",
    )


def _where(error: BaseException) -> str:
    """The last lines of the user's own trace, below the message."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename != __file__]
    theirs = [each for each in frames if not each.filename.startswith("<frozen ")]
    return "".join(f"\n{line}" for line in traceback.format_list(theirs[-2:])).rstrip().replace("\n\n", "\n")


def given_inputs(command: str, described: list[str] | None, path: Path | None, seed: int) -> Any:
    """Random ones as described, or those of a file."""
    if (path is None) == (not described):
        raise InputError(
            f"{command} needs inputs: either --input (once per input) or --inputs FILE",
            hint="e.g. --input x=float32[4,3,224,224]",
        )
    return read_inputs(path) if path is not None else make_inputs(described or [], seed)


def read_inputs(path: Path) -> Any:
    """Unnamed arrays (``arr_0``, or the only one of an .npy) go by position, named ones by keyword."""
    from parfocal.run.files import load_arrays

    arrays = load_arrays(path)
    for positional in ([""], [f"arr_{index}" for index in range(len(arrays))]):
        if set(arrays) == set(positional):
            return tuple(arrays[name] for name in positional)
    return arrays


def make_inputs(descriptions: list[str], seed: int) -> Any:
    """Random arrays for ``x=float32[4,3,224,224]``, ``ids=int64[2,16]:0..1000``; unnamed by position."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(seed))
    made: list[tuple[str | None, Any]] = []
    for text in descriptions:
        found = _INPUT.fullmatch(text.strip())
        if found is None:
            raise InputError(
                f"--input {text!r} is not understood",
                hint="write name=dtype[shape], e.g. x=float32[4,3,224,224] or ids=int64[2,16]:0..1000",
            )
        shape = tuple(int(extent) for extent in found["shape"].split(",") if extent.strip())
        made.append((found["name"], _random(generator, found["dtype"], shape, found["range"], text)))
    names = [name for name, _ in made]
    if all(name is None for name in names):
        return tuple(array for _, array in made)
    if None in names or len(set(names)) < len(names):
        raise InputError(f"--input: name all inputs once each, or none; the names are {names}")
    return dict(made)


def _random(generator: Any, dtype: str, shape: tuple[int, ...], limits: str | None, text: str) -> Any:
    kind, bounds = _numeric(dtype, text), _bounds(limits, text)
    try:
        if kind.kind == "b":
            return generator.integers(0, 2, shape).astype(bool)
        if kind.kind in "iu":
            low, high = bounds or (0, 2)
            return generator.integers(int(low), int(high), shape).astype(kind)
        if bounds:
            return generator.uniform(*bounds, shape).astype(kind)
        return generator.standard_normal(shape).astype(kind)
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(f"--input {text!r} cannot be made: {error}") from error


def _numeric(dtype: str, text: str) -> Any:
    import numpy as np

    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in "biufc":
        raise InputError(f"--input {text!r}: there is no dtype {dtype!r}", hint="e.g. float32, int64, bool")
    return kind


def _bounds(limits: str | None, text: str) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = (float(each) for each in limits.split("..", 1))
    except ValueError:
        raise InputError(f"--input {text!r}: the range {limits!r} is not low..high") from None
    if not -inf < low < high < inf:
        raise InputError(f"--input {text!r}: the range {limits!r} is empty")
    return low, high
