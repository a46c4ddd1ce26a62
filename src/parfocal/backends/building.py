"""Making a framework's layer from common settings: the inverse of ``reading.py``, through a table.

A recipe is a class name and, for each common setting, the argument that takes it. The same recipe
builds the layer and spells the line of code that builds it, so what is recommended was tried.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Protocol, runtime_checkable

from parfocal.backends.module_tree import ModuleTree
from parfocal.backends.vocabulary.kinds import family
from parfocal.errors import UnsupportedError
from parfocal.phrases import phrase

Convert = Callable[[Any], Any]


@runtime_checkable
class LayerBuilder(Protocol):
    """A capability of backends: layers made to order."""

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        """A new layer with weights of its own; refuses kinds and settings it has no recipe for."""

    def spell(self, kind: str, settings: Mapping[str, Any], always: Iterable[str] = ()) -> str:
        """The line of code for it; settings in ``always`` are written even if they are the default."""

    def can_build(self, module: Any) -> bool:
        """Whether ``layer`` makes layers of the module's own class."""


@dataclass(frozen=True, slots=True)
class Argument:
    """Takes a setting under a name of the framework's own, perhaps as another value.

    ``only``: the argument is written only when this holds of the setting's value.
    """

    name: str
    convert: Convert = lambda value: value
    only: Callable[[Any], bool] = lambda value: True


@dataclass(frozen=True, slots=True)
class Recipe:
    """``fixed``: settings the class always has; another value cannot be built."""

    name: str
    arguments: Mapping[str, tuple[Argument, ...]]
    fixed: Mapping[str, Any] = field(default_factory=dict)


def recipe(name: str, *plain: str, fixed: Mapping[str, Any] | None = None, **renamed: Any) -> Recipe:
    """``plain`` settings go under their own names; ``renamed`` gives a name or one or more Arguments."""
    arguments = {setting: (Argument(setting),) for setting in plain}
    for setting, given in renamed.items():
        if isinstance(given, str):
            arguments[setting] = (Argument(given),)
        else:
            arguments[setting] = given if isinstance(given, tuple) else (given,)
    return Recipe(name, arguments, fixed or {})


def fitting(recipes: Mapping[str, Recipe], kind: str, settings: Mapping[str, Any], framework: str) -> Recipe:
    """The kind's recipe, or that of its nearest relation where the kind itself cannot have the settings.

    A ``ZeroPad2d`` that ought to reflect is a ``ReflectionPad2d`` or a ``Pad2d``, whichever there is.
    """
    if kind not in recipes:
        raise UnsupportedError(
            phrase("there is no recipe for a {kind} in {framework}", kind=kind, framework=framework)
        )
    own = recipes[kind]
    refused = _refused(own, settings)
    if not refused:
        return own
    related = [
        other
        for name, other in recipes.items()
        if _related(name, kind) and (refused in other.arguments or refused in other.fixed)
    ]
    return next((each for each in related if not _refused(each, settings)), own)


def _related(name: str, kind: str) -> bool:
    ranks = {end for end in (name[-2:], kind[-2:]) if end in ("1d", "2d", "3d")}
    return family(name) == family(kind) and len(ranks) <= 1


def _refused(recipe: Recipe, settings: Mapping[str, Any]) -> str:
    """The first setting that the class cannot have."""
    wrong = (name for name, value in recipe.fixed.items() if name in settings and settings[name] != value)
    return next(wrong, "")


def arguments_of(recipe: Recipe, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The call's keyword arguments; refuses a setting that the class cannot have."""
    name = _refused(recipe, settings)
    if name:
        raise UnsupportedError(
            phrase(
                "{name} cannot be built with {setting}={value}",
                name=recipe.name,
                setting=name,
                value=repr(settings[name]),
            )
        )
    found: dict[str, Any] = {}
    for setting, value in settings.items():
        for argument in recipe.arguments.get(setting, ()):
            if argument.only(value):
                found[argument.name] = argument.convert(value)
    return found


def spelt(prefix: str, kind: Any, keywords: Mapping[str, Any], always: Iterable[str] = ()) -> str:
    """The line that makes the layer: required arguments first, of the others what is not the default."""
    parts: list[str] = []
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        if name not in keywords:
            continue
        value = short(keywords[name])
        if parameter.default is inspect.Parameter.empty:
            parts.append(repr(value))
        elif name in always or not _same(value, parameter.default):
            parts.append(f"{name}={value!r}")
    known = inspect.signature(kind.__init__).parameters
    unknown = _unknown(kind, frozenset(keywords))  # of newer versions: this one says nothing of them
    parts += [f"{name}={short(keywords[name])!r}" for name in keywords if name not in {*known, *unknown}]
    return f"{prefix}.{kind.__name__}({', '.join(parts)})"


def _same(value: Any, default: Any) -> bool:
    return bool(type(value) is type(default) and value == default) or (value == default and value is not None)


@cache
def _unknown(kind: Any, names: frozenset[str]) -> frozenset[str]:
    """Those of the names that are no argument of a class in this version of the framework."""
    parameters = inspect.signature(kind.__init__).parameters
    anything = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return frozenset() if anything else names - parameters.keys()


def short(value: Any) -> Any:
    """One number for all axes where they agree."""
    if isinstance(value, (tuple, list)) and value and all(item == value[0] for item in value):
        return value[0]
    return value


def channel_format(first: str, last: str, name: str = "data_format") -> Argument:
    """A setting ``channels_last`` as one of two words."""
    return Argument(name, lambda value: last if value else first, lambda value: bool(value))


def absent(*names: str) -> tuple[Argument, ...]:
    """A setting that is False takes tensors away: these arguments become False then."""
    return tuple(Argument(name, lambda value: False, lambda value: value is False) for name in names)


class RecipeBuilder(ModuleTree):
    """``LayerBuilder`` by a table of recipes for the classes of one module of the framework."""

    recipes: ClassVar[Mapping[str, Recipe]]
    home: ClassVar[Any]  # the module that has the classes

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        chosen = self._recipe(kind, settings)
        made, given = getattr(self.home, chosen.name), arguments_of(chosen, settings)
        unknown = _unknown(made, frozenset(given))
        built = made(**{name: value for name, value in given.items() if name not in unknown})
        if unknown:  # arguments of newer versions, which say what this one does without them anyway
            self._check_built(built, chosen, settings, unknown)
        return built

    def spell(self, kind: str, settings: Mapping[str, Any], always: Iterable[str] = ()) -> str:
        chosen = self._recipe(kind, settings)
        shown = [argument.name for name in always for argument in chosen.arguments.get(name, ())]
        made = getattr(self.home, chosen.name)
        return spelt(self.home.__name__, made, arguments_of(chosen, settings), shown)

    def can_build(self, module: Any) -> bool:
        kind = self.kind(module)
        made = kind in self.recipes and getattr(self.home, self.recipes[kind].name) is type(module)
        return made and self.is_framework_layer(module)

    def _check_built(
        self, built: Any, chosen: Recipe, settings: Mapping[str, Any], unknown: frozenset[str]
    ) -> None:
        found = self.settings(built)
        for setting, value in settings.items():
            own = {argument.name for argument in chosen.arguments.get(setting, ())}
            if own & unknown and not (setting in found and _same(found[setting], value)):
                raise UnsupportedError(
                    phrase(
                        "{name} cannot be built with {setting}={value}",
                        name=chosen.name,
                        setting=setting,
                        value=repr(value),
                    )
                )

    def _recipe(self, kind: str, settings: Mapping[str, Any]) -> Recipe:
        return fitting(self.recipes, kind, settings, self.home.__name__.partition(".")[0])
