"""What commands are given by name: models, and inputs from files or descriptions."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.workflow.input_descriptions import make_inputs, read_inputs
from parfocal.workflow.loading import load_attribute, where_raised
from parfocal.workflow.side_code import SideCode

__all__ = ["given_inputs", "load_model", "make_inputs", "read_inputs"]


def load_model(spec: str, option: str, seed: int | None = None) -> Any:
    """The model behind ``file.py:name`` or ``package.module:name``: built when it is a function or class.

    ``seed``: of the random weights it is built with.
    """
    with SideCode().active():
        return _loaded(spec, option, seed)


def _loaded(spec: str, option: str, seed: int | None) -> Any:
    attribute, found = load_attribute(spec, option)
    if not callable(found) or (hasattr(found, "state_dict") and not isinstance(found, type)):
        return _checked(
            found, phrase("{option} {spec}: {attribute} is", option=option, spec=spec, attribute=attribute)
        )  # a model that is there already
    try:
        made = _build(found, seed)
    except (Exception, SystemExit) as error:
        where = where_raised(error, __file__)
        raise InputError(
            phrase(
                "{option} {spec}: {attribute}() raised {name}: {error}{where}",
                option=option,
                spec=spec,
                attribute=attribute,
                name=type(error).__name__,
                error=error,
                where=where,
            ),
            hint=phrase("it must build the model without arguments"),
        ) from error
    return _checked(
        made, phrase("{option} {spec}: {attribute}() gives", option=option, spec=spec, attribute=attribute)
    )


def _checked(made: Any, words: str) -> Any:
    """What was named, if it is a model."""
    from parfocal.backends import registry

    if made is None:
        raise InputError(phrase("{words} None", words=words), hint=phrase("return the model"))
    try:
        is_model = registry.of(made).is_model(made)
    except InputError:
        is_model = False
    if not is_model:
        raise InputError(
            phrase("{words} {described}, not a model", words=words, described=_described(made)),
            hint=phrase("name a function that builds one"),
        )
    return made


def _described(made: Any) -> str:
    kind = type(made).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def _build(maker: Any, seed: int | None) -> Any:
    """Seeded only now: the framework was loaded with the module that uses it."""
    from parfocal.capture.determinism import seeded

    with nullcontext() if seed is None else seeded(seed):
        return maker()


def given_inputs(command: str, described: list[str] | None, path: Path | None, seed: int) -> Any:
    """Random ones as described, or those of a file."""
    if (path is None) == (not described):
        raise InputError(
            phrase(
                "{command} needs inputs: either --input (once per input) or --inputs FILE", command=command
            ),
            hint=phrase("e.g. --input x=float32[4,3,224,224]"),
        )
    return read_inputs(path) if path is not None else make_inputs(described or [], seed)
