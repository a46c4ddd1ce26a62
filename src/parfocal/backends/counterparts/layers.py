"""Layers and losses that correspond, read off the tables of kinds and recipes of both backends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from parfocal.backends.building import Argument, Recipe
from parfocal.backends.counterparts.entry import ArgumentPair, Category, Counterpart, Relation
from parfocal.backends.counterparts.names import names
from parfocal.backends.paddle import kinds as paddle_kinds
from parfocal.backends.paddle import recipes as paddle_recipes
from parfocal.backends.paddle.losses import LOSSES as PADDLE_LOSSES
from parfocal.backends.paddle.settings import SETTINGS as PADDLE_SETTINGS
from parfocal.backends.torch import kinds as torch_kinds
from parfocal.backends.torch import recipes as torch_recipes
from parfocal.backends.torch.losses import LOSSES as TORCH_LOSSES
from parfocal.backends.torch.settings import SETTINGS as TORCH_SETTINGS
from parfocal.backends.vocabulary.kinds import family
from parfocal.backends.vocabulary.meanings import kinds_of_layers

# Values by which the meaning of a converted argument is shown; of every other setting True and False.
SAMPLES: dict[str, tuple[Any, ...]] = {"approximate": ("none", "tanh")}

# Kinds without a recipe of their own whose arguments are those of another kind.
ARGUMENTS_AS = {"SyncBatchNorm": "BatchNorm2d"}
# Arguments of that other kind that the class does not have.
LACKING = {"paddle.nn.SyncBatchNorm": ("use_global_stats",)}


def layers() -> list[Counterpart]:
    """Every layer and loss of either framework."""
    found: list[Counterpart] = []
    for kind in dict.fromkeys((*TORCH_SETTINGS, *PADDLE_SETTINGS)):
        ours, theirs = _torch_classes(kind), _paddle_classes(kind)
        if ours and theirs:
            found += [_entry(kind, kind, one, other) for one in ours for other in theirs]
        else:
            found += _without_counterpart(kind, ours, theirs)
    return found


def _without_counterpart(kind: str, ours: list[str], theirs: list[str]) -> Iterator[Counterpart]:
    """With the relations of the other framework that come nearest, or with none."""
    for one in ours:
        related = [
            (each, name) for each in _relations(kind, PADDLE_SETTINGS) for name in _paddle_classes(each)
        ]
        yield from (_entry(kind, each, one, name, exact=False) for each, name in related)
        if not related:
            yield _alone(kind, f"torch.nn.{one}")
    for other in theirs:
        related = [(each, name) for each in _relations(kind, TORCH_SETTINGS) for name in _torch_classes(each)]
        yield from (_entry(each, kind, name, other, exact=False) for each, name in related)
        if not related:
            yield _alone(kind, f"paddle.nn.{other}")


def _entry(kind: str, other_kind: str, torch: str, paddle: str, *, exact: bool = True) -> Counterpart:
    return Counterpart(
        _category(kind),
        f"torch.nn.{torch}",
        f"paddle.nn.{paddle}",
        kinds_of_layers().get(kind),
        kind,
        tuple(
            pair
            for pair in _arguments(
                _recipe(torch_recipes.RECIPES, kind), _recipe(paddle_recipes.RECIPES, other_kind)
            )
            if pair.paddle not in LACKING.get(f"paddle.nn.{paddle}", ())
        ),
        exact,
    )


def _recipe(recipes: Mapping[str, Recipe], kind: str) -> Recipe | None:
    return recipes.get(ARGUMENTS_AS.get(kind, kind))


def _alone(kind: str, name: str) -> Counterpart:
    return names().alone(_category(kind), name, kinds_of_layers().get(kind), kind)


def _category(kind: str) -> Category:
    return Category.LOSS if kind in TORCH_LOSSES or kind in PADDLE_LOSSES else Category.LAYER


def _relations(kind: str, known: Any) -> list[str]:
    """Kinds of the same family, with the same number of axes where both have one."""
    rank = re.search(r"[123]d$", kind)
    return [
        each
        for each in known
        if family(each) == family(kind)
        and (rank is None or not re.search(r"[123]d$", each) or each.endswith(rank.group()))
    ]


def _torch_classes(kind: str) -> list[str]:
    named = [name for name, other in torch_kinds.RENAMED.items() if other == kind and name != "NLLLoss2d"]
    return list(dict.fromkeys([*([kind] if kind in TORCH_SETTINGS else []), *named]))


def _paddle_classes(kind: str) -> list[str]:
    if kind not in PADDLE_SETTINGS:
        return []
    recipe = paddle_recipes.RECIPES.get(kind)
    named = [name for name, other in paddle_kinds.RENAMED.items() if other == kind]
    found = list(dict.fromkeys([*([recipe.name] if recipe else []), *named]))
    return found or [re.sub(r"([123])d$", r"\1D", kind)]


def _arguments(ours: Recipe | None, theirs: Recipe | None) -> Iterator[ArgumentPair]:
    if ours is None or theirs is None:
        return
    for setting in dict.fromkeys((*ours.arguments, *theirs.arguments)):
        mine, yours = ours.arguments.get(setting, ()), theirs.arguments.get(setting, ())
        if mine and yours:
            for argument in yours:
                yield _pair(setting, mine[0], argument)
        else:
            for argument in mine or yours:
                yield _lacking(setting, argument, theirs if mine else ours, is_torch=bool(mine))


def _lacking(setting: str, argument: Argument, other: Recipe, *, is_torch: bool) -> ArgumentPair:
    """An argument of one side; of the other the value that it always behaves as, if there is one."""
    torch, paddle = (argument.name, None) if is_torch else (None, argument.name)
    if setting in other.fixed:
        return ArgumentPair(torch, paddle, Relation.FIXED, (argument.convert(other.fixed[setting]),))
    return ArgumentPair(torch, paddle, Relation.ONE_SIDED)


def _pair(setting: str, mine: Argument, yours: Argument) -> ArgumentPair:
    """How paddle's value follows from torch's, found out by converting a few values."""
    relation = _relation(setting, yours)
    values: tuple[Any, ...] = ()
    if relation is Relation.CONVERTED:
        samples = SAMPLES.get(setting, (True, False))
        values = tuple((sample, yours.convert(sample)) for sample in samples)
    return ArgumentPair(mine.name, yours.name, relation, values)


def _relation(setting: str, argument: Argument) -> Relation:
    if argument.only(False) and not argument.only(True):
        return Relation.PRESENCE
    if setting not in SAMPLES and argument.convert(0.25) == 0.75:
        return Relation.COMPLEMENT
    samples = SAMPLES.get(setting, (True, False))
    converted = tuple(argument.convert(sample) for sample in samples)
    if converted == samples:
        return Relation.SAME
    return Relation.OPPOSITE if converted == (False, True) and setting not in SAMPLES else Relation.CONVERTED
