"""Kinds of the modules of a bare file, from the port's side.

A module of the file is of the kind and layout under which its shapes are those of a unit of the
port: of the unit with the same name, or of any. A square weight fits both ways round; it lies as
the other weights around it do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from parfocal.backends import registry
from parfocal.weights import tables
from parfocal.weights.checkpoints.bare import inside_composite, with_composites
from parfocal.weights.names import likeness, normalised, tokens
from parfocal.weights.state import Owner, SideContents, StoredTensor
from parfocal.weights.units import Key, Unit, read_units, with_kinds

# What a module whose weight has so many axes may be; the likeliest first.
CANDIDATES: dict[int, tuple[str, ...]] = {
    1: ("LayerNorm", "PReLU"),
    2: ("Linear", "Embedding"),
    3: ("Conv1d", "ConvTranspose1d", "Bilinear"),
    4: ("Conv2d", "ConvTranspose2d"),
    5: ("Conv3d", "ConvTranspose3d"),
}
WEIGHTS = ("weight", "weight_v", "weight_orig")
EMBEDDING_WORDS = frozenset({"embed", "pos", "token"})


@dataclass(frozen=True, slots=True)
class Guess:
    """What a module of the file is taken for; ``square`` when its layout cannot be seen."""

    kind: str
    layout: str
    square: bool = False


def by_port(
    contents: SideContents, port: SideContents, *, assumed: bool = False
) -> tuple[SideContents, list[str]]:
    """The contents with kinds and layouts; and the square weights of which nothing says how they lie.

    ``assumed``: the file does not say which framework it is of, so only shapes speak for a layout.
    """
    contents = with_composites(contents, port)
    units = read_units(port)
    twins, everything = _twins(units), _by_key(units)
    guesses: dict[str, Guess] = {}
    for path, tensors in by_module(contents.stored).items():
        weight = main_weight(tensors)
        if weight is not None and is_unknown(contents, path):
            twin = twins.get(normalised(path))
            kinds = _kinds(path, weight, tensors, twin)
            guess = _guess(contents, tensors, kinds, _by_key([twin]) if twin else everything)
            if guess is not None:
                guesses[path] = guess
    layouts, open_paths = _settled(contents.framework, guesses, assumed)
    owners = {
        path: replace(owner, kind=guesses[path].kind, settings={"weight_layout": layouts[path]})
        if path in guesses
        else owner
        for path, owner in contents.owners.items()
    }
    weights = [tensor.path for tensor in contents.stored if tensor.module in open_paths and is_square(tensor)]
    return with_kinds(replace(contents, owners=owners), port), weights


def by_module(stored: Iterable[StoredTensor]) -> dict[str, dict[str, StoredTensor]]:
    """Module path -> local name -> tensor."""
    local: dict[str, dict[str, StoredTensor]] = defaultdict(dict)
    for tensor in stored:
        local[tensor.module][tensor.name] = tensor
    return local


def is_unknown(contents: SideContents, path: str) -> bool:
    """Whether a module's kind is still to be found out; the parts of a composite have none of their own."""
    return contents.owners[path].kind is None and not inside_composite(contents, path)


def main_weight(tensors: Mapping[str, StoredTensor]) -> StoredTensor | None:
    return next((tensors[name] for name in WEIGHTS if name in tensors), None)


def is_square(tensor: StoredTensor) -> bool:
    return len(tensor.shape) == 2 and tensor.shape[0] == tensor.shape[1]


def sounds_like_embedding(path: str) -> bool:
    return bool(EMBEDDING_WORDS.intersection(tokens(path).words))


def scopes(path: str) -> list[tuple[str, ...]]:
    """The words of a path without its numbers, then of the modules around it, up to the root."""
    parts = [part for part in path.split(".") if not part.isdigit()]
    return [tuple(parts[:count]) for count in range(len(parts), -1, -1)]


def evidence(path: str, seen: Mapping[str, bool]) -> bool | None:
    """What other modules say that lie in the nearest common scope; None when they disagree or say nothing."""
    for scope in scopes(path):
        said = {value for other, value in seen.items() if scope in scopes(other)}
        if said:
            return said.pop() if len(said) == 1 else None
    return None


def _twins(units: Sequence[Unit]) -> dict[tuple[tuple[str, ...], tuple[int, ...]], Unit]:
    """Units by name, also without the first segment that all of them share."""
    firsts = {unit.path.partition(".")[0] for unit in units}
    found = {normalised(unit.path.partition(".")[2]): unit for unit in units} if len(firsts) == 1 else {}
    return found | {normalised(unit.path): unit for unit in units}


def _by_key(units: Sequence[Unit]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = defaultdict(list)
    for unit in units:
        found[unit.key].append(unit.path)
    return found


def _guess(
    contents: SideContents,
    tensors: Mapping[str, StoredTensor],
    kinds: Sequence[str],
    known: Mapping[Key, list[str]],
) -> Guess | None:
    weight = main_weight(tensors)
    assert weight is not None  # the caller looked
    fitting: list[tuple[float, Guess]] = []
    for kind in kinds:
        for layout in registry.dialect(contents.framework).linear_layouts if kind == "Linear" else ("",):
            paths = known.get(_key(contents, tensors, kind, layout), ())
            if paths:
                near = max(likeness(weight.module, path) for path in paths)
                fitting.append((near, Guess(kind, layout, kind == "Linear" and is_square(weight))))
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _kinds(
    path: str, weight: StoredTensor, tensors: Mapping[str, StoredTensor], twin: Unit | None
) -> list[str]:
    """The kinds worth trying, that of the unit with the same name first."""
    usual = list(CANDIDATES.get(len(weight.shape), ()))
    if "bias" in tensors and "Embedding" in usual:
        usual.remove("Embedding")
    elif len(weight.shape) == 2 and sounds_like_embedding(path):
        usual.reverse()
    if twin and twin.kind in tables.FAMILIES:
        usual = [twin.kind, *usual]
    return list(dict.fromkeys(usual))


def _key(contents: SideContents, tensors: Mapping[str, StoredTensor], kind: str, layout: str) -> Key:
    """The key the module would have, were it of this kind."""
    path = next(iter(tensors.values())).module
    usual = registry.dialect(contents.framework).linear_layout
    owner = Owner(path, kind, {"weight_layout": layout or usual})
    (unit,) = read_units(SideContents(contents.framework, tuple(tensors.values()), {path: owner}))
    return unit.key


def _settled(framework: str, guesses: Mapping[str, Guess], assumed: bool) -> tuple[dict[str, str], list[str]]:
    """The layout of every module; a square weight lies as the others around it do."""
    usual, unusual = registry.dialect(framework).linear_layouts
    seen = {
        path: guess.layout == unusual
        for path, guess in guesses.items()
        if guess.kind == "Linear" and not guess.square
    }
    layouts, open_paths = {}, []
    for path, guess in guesses.items():
        layouts[path] = guess.layout or usual
        if guess.square and (assumed or any(seen.values())):
            turned = evidence(path, seen)
            layouts[path] = unusual if turned else usual
            if turned is None:
                open_paths.append(path)
    return layouts, open_paths
