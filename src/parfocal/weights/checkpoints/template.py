"""Kinds of the modules of two bare files, a checkpoint and a template, from names and shapes alone.

Between frameworks a 2-D weight is transposed if it is a Linear's and left as it is if it is an
Embedding's. Shapes decide where a weight is not square; a square one follows the others around it,
its bias (only a Linear has one) or its name. What nothing decides is ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from parfocal.backends import registry
from parfocal.weights.checkpoints.bare import with_composites
from parfocal.weights.checkpoints.kinds import (
    CANDIDATES,
    by_module,
    evidence,
    is_square,
    is_unknown,
    main_weight,
    sounds_like_embedding,
)
from parfocal.weights.names import normalised, tokens
from parfocal.weights.plan import Ambiguity
from parfocal.weights.state import Owner, SideContents, StoredTensor
from parfocal.weights.units import with_kinds

# Words that name a Linear when nothing else does, in the spelling of ``names``.
LINEAR_WORDS = frozenset({"linear", "q", "k", "v", "o", "gate", "up", "down", "mlp", "qkv"})
Class = Literal["biased", "embedding", "other"]


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A module with a 2-D weight."""

    path: str
    group: Class
    turned: bool | None  # the two frameworks store it the other way round; None: the shapes do not say
    names: tuple[str, str]  # of the weight, in the template and in the checkpoint


def by_template(
    contents: SideContents, template: SideContents, *, assumed: bool = False
) -> tuple[SideContents, SideContents, list[Ambiguity]]:
    """Both contents with kinds; and the square weights of which nothing says how they lie."""
    contents, template = with_composites(contents, template), with_composites(template, contents)
    contents, template = _with_ranks(contents, template), _with_ranks(template, contents)
    if contents.framework == template.framework and not assumed:
        return with_kinds(contents, template), with_kinds(template, contents), []
    mine, yours = _matrices(contents), _matrices(template)
    forms = {normalised(path): path for path in mine}
    twins = {path: forms[normalised(path)] for path in yours if normalised(path) in forms}
    paired = {path: _pair(yours[path], mine[twin]) for path, twin in twins.items()}
    lone = [
        {path: _alone(tensors) for path, tensors in side.items() if path not in taken}
        for side, taken in ((mine, set(twins.values())), (yours, set(twins)))
    ]
    turned, ambiguous = _decide({**paired, **lone[1]}, assumed)
    turned_mine = _decide({**paired, **lone[0]}, assumed)[0]
    owners = {path: _owner(template, path, tensors, turned[path]) for path, tensors in yours.items()}
    owners_mine = {path: _owner(contents, path, mine[path], turned_mine[path]) for path in lone[0]}
    owners_mine |= {twin: _owner(contents, twin, mine[twin], turned[path]) for path, twin in twins.items()}
    first = replace(contents, owners={**contents.owners, **owners_mine})
    second = replace(template, owners={**template.owners, **owners})
    return with_kinds(first, second), with_kinds(second, first), ambiguous


def _with_ranks(contents: SideContents, other: SideContents) -> SideContents:
    """A module whose weight has another number of axes than its namesake's is of another kind, too."""
    weights = [_weights(side) for side in (contents, other)]
    ranks = {normalised(path): len(weight.shape) for path, weight in weights[1].items()}
    owners = dict(contents.owners)
    for path, weight in weights[0].items():
        rank = len(weight.shape)
        if is_unknown(contents, path) and ranks.get(normalised(path), rank) != rank and rank in CANDIDATES:
            owners[path] = replace(owners[path], kind=CANDIDATES[rank][0])
    return replace(contents, owners=owners)


def _weights(contents: SideContents) -> dict[str, StoredTensor]:
    found = {path: main_weight(tensors) for path, tensors in by_module(contents.stored).items()}
    return {path: weight for path, weight in found.items() if weight is not None}


def _matrices(contents: SideContents) -> dict[str, dict[str, StoredTensor]]:
    """The modules with a 2-D weight whose kind nobody knows, outside of composites."""
    found = {}
    for path, tensors in by_module(contents.stored).items():
        weight = main_weight(tensors)
        if weight is not None and len(weight.shape) == 2 and is_unknown(contents, path):
            found[path] = tensors
    return found


def _pair(yours: Mapping[str, StoredTensor], mine: Mapping[str, StoredTensor]) -> _Matrix:
    """A module that both files have."""
    target, source = main_weight(yours), main_weight(mine)
    assert target is not None  # _matrices looked
    assert source is not None
    turned = None if is_square(target) else source.shape == target.shape[::-1]
    return _Matrix(target.module, _group(yours), turned, (target.path, source.path))


def _alone(tensors: Mapping[str, StoredTensor]) -> _Matrix:
    """A module whose counterpart has another name: its own shape says nothing, its group does."""
    weight = main_weight(tensors)
    assert weight is not None  # _matrices looked
    group = _group(tensors)
    return _Matrix(
        weight.module,
        group,
        None if is_square(weight) else group != "embedding",
        (weight.path, "its counterpart"),
    )


def _group(tensors: Mapping[str, StoredTensor]) -> Class:
    if "bias" in tensors:
        return "biased"
    return "embedding" if sounds_like_embedding(next(iter(tensors.values())).module) else "other"


def _decide(matrices: Mapping[str, _Matrix], assumed: bool) -> tuple[dict[str, bool], list[Ambiguity]]:
    seen = {path: each for path, each in matrices.items() if each.turned is not None}
    turned: dict[str, bool] = {path: bool(each.turned) for path, each in seen.items()}
    ambiguous = []
    for path, each in matrices.items():
        if each.turned is None:
            alike = {other: bool(one.turned) for other, one in seen.items() if one.group == each.group}
            found = _square(each, alike, assumed)
            turned[path] = True if found is None else found
            if found is None:
                ambiguous.append(_ambiguity(each, alike))
    return turned, ambiguous


def _square(each: _Matrix, alike: Mapping[str, bool], assumed: bool) -> bool | None:
    """Whether a square weight is turned: as the others are, else by its bias or its name."""
    if alike:
        return evidence(each.path, alike)
    if assumed:
        return None
    if each.group == "other":
        return True if LINEAR_WORDS.intersection(tokens(each.path).words) else None
    return each.group == "biased"


def _ambiguity(each: _Matrix, alike: Mapping[str, bool]) -> Ambiguity:
    why = "others around it are some transposed, some not" if alike else "no other weight tells"
    return Ambiguity(
        (each.names[0],),
        (f"{each.names[1]} as it is", f"{each.names[1]} transposed"),
        f"a square weight fits both ways (an Embedding's as it is, a Linear's transposed), and {why}",
    )


def _owner(contents: SideContents, path: str, tensors: Mapping[str, StoredTensor], turned: bool) -> Owner:
    if turned:
        return Owner(path, "Linear", {"weight_layout": registry.dialect(contents.framework).linear_layout})
    kind = "Linear" if "bias" in tensors else "Embedding"
    return Owner(path, kind, {"weight_layout": "out,in"})
