"""The contents of a bare file, as matching wants them: names in shape, roles, ties, owners.

A file knows names, shapes and dtypes only. Which tensors are buffers, which are one and the same,
and which modules there must have been is told by names and by the other side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from parfocal.weights import tables
from parfocal.weights.checkpoints.tensors import FileTensor
from parfocal.weights.names import normalised
from parfocal.weights.state import Owner, SideContents, StoredTensor, read_mapping
from parfocal.weights.units import telling_kind
from parfocal.weights.views import Shape

# What wrappers of whole models put in front of, or into, the names of tensors.
WRAPPER_PREFIXES = ("module", "_orig_mod", "_fsdp_wrapped_module", "_layers")
# Local names that mean a buffer wherever they stand.
BUFFERS = frozenset({
    "running_mean", "running_var", "_mean", "_variance", "num_batches_tracked", "position_ids",
    "token_type_ids", "inv_freq", "attn_mask", "causal_mask", "masked_bias", "relative_position_index",
    "relative_coords_table", "rotary_emb", "freqs_cis", "cos_cached", "sin_cached", "weight_u",
})  # fmt: skip
# Names that only one framework uses.
TELLING = {
    "torch": frozenset(
        {"running_mean", "running_var", "num_batches_tracked", "in_proj_weight", "in_proj_bias"}
    ),
    "paddle": frozenset({"_mean", "_variance"}),
}
_CELL = re.compile(r"^(.*\.)?(\d+)\.cell(_fw|_bw)?\.(\w+)$")


def framework_by_names(names: Iterable[str]) -> str | None:
    """The framework whose own names are among these."""
    local = {name.rpartition(".")[2] for name in names}
    found = [framework for framework, words in TELLING.items() if local & words]
    return found[0] if len(found) == 1 else None


def without_prefixes(
    tensors: Mapping[str, FileTensor], others: Iterable[str]
) -> tuple[dict[str, FileTensor], list[str]]:
    """The tensors without what wrappers put before their names, and notes of what was taken off."""
    other_names = list(others)
    notes: list[str] = []
    names = {name: name for name in tensors}
    for word in WRAPPER_PREFIXES:
        if not any(word in name.split(".") for name in other_names):
            shorter = {name: _without(new, word) for name, new in names.items()}
            if len(set(shorter.values())) == len(shorter) and shorter != names:
                names = shorter
                notes.append(f"{word!r} was taken out of the names of the checkpoint")
    forms = {normalised(name) for name in other_names}
    while prefix := _common_prefix(names.values()):
        shorter = {name: new.removeprefix(prefix) for name, new in names.items()}
        if _overlap(shorter.values(), forms) <= _overlap(names.values(), forms):
            break
        names = shorter
        notes.append(f"the prefix {prefix!r} was taken off the names of the checkpoint")
    return {names[name]: tensor for name, tensor in tensors.items()}, notes


def _without(name: str, word: str) -> str:
    *parts, last = name.split(".")
    return ".".join([*(part for part in parts if part != word), last])


def _common_prefix(names: Iterable[str]) -> str:
    """The first segment with its dot, if all names share it."""
    firsts = {name.partition(".")[0] if "." in name else "" for name in names}
    return f"{firsts.pop()}." if len(firsts) == 1 and "" not in firsts else ""


def _overlap(names: Iterable[str], forms: set[tuple[tuple[str, ...], tuple[int, ...]]]) -> int:
    return sum(normalised(name) in forms for name in names)


def contents_of(
    framework: str, tensors: Mapping[str, FileTensor], other: SideContents | None = None
) -> SideContents:
    """Names, shapes and dtypes as contents; roles come from names, dtypes and the other side."""
    known = {normalised(tensor.path): tensor.role for tensor in other.stored} if other else {}
    roles = {name: _role(name, tensor, tensors, known) for name, tensor in tensors.items()}
    bare = read_mapping(framework, tensors, roles)
    ties = _ties(tensors)
    stored = tuple(replace(tensor, tied_to=ties.get(tensor.path)) for tensor in bare.stored)
    return replace(bare, stored=stored, owners=_owners(framework, stored))


def _role(
    name: str,
    tensor: FileTensor,
    tensors: Mapping[str, FileTensor],
    known: Mapping[tuple[tuple[str, ...], tuple[int, ...]], str],
) -> str:
    module, _, local = name.rpartition(".")
    spectral = local == "weight_v" and f"{module}.weight_orig".lstrip(".") in tensors
    if local in BUFFERS or spectral or tensor.dtype.kind in "biu":
        return "buffer"
    return known.get(normalised(name), "parameter")


def _ties(tensors: Mapping[str, FileTensor]) -> dict[str, str]:
    """Names of tensors that are the same as an earlier one."""
    first: dict[object, str] = {}
    ties = {}
    for name, tensor in tensors.items():
        known = first.setdefault(tensor.memory, name)
        if known != name:
            ties[name] = known
    for name, tensor in tensors.items():
        twin = _recurrent_twin(name)
        if twin is not None and twin in tensors and name not in ties and _equal(tensor, tensors[twin]):
            ties[name] = twin
    return ties


def _recurrent_twin(name: str) -> str | None:
    """paddle lists a recurrent layer's tensors twice: ``0.cell_bw.weight_ih``, ``weight_ih_l0_reverse``."""
    match = _CELL.match(name)
    if not match:
        return None
    layer, number, direction, local = match.groups()
    return f"{layer or ''}{local}_l{number}{'_reverse' if direction == '_bw' else ''}"


def _equal(first: FileTensor, second: FileTensor) -> bool:
    return first.shape == second.shape and bool(np.array_equal(first.read(), second.read()))


def _owners(framework: str, stored: Iterable[StoredTensor]) -> dict[str, Owner]:
    """Every module with tensors, and the one around a parametrization; the kinds that are beyond doubt."""
    local: dict[str, dict[str, Shape]] = {}
    for tensor in stored:
        head, mark, _ = tensor.module.partition("parametrizations")
        if mark:
            local.setdefault(head.rstrip("."), {})
        local.setdefault(tensor.module, {})[tensor.name] = tensor.shape
    owners = {
        path: Owner(path, telling_kind(shapes) or told_by_shapes(shapes)) for path, shapes in local.items()
    }
    for path in owners if framework == "paddle" else ():
        # Only paddle.compat packs attention, and it keeps its matrices as torch does.
        if "in_proj_weight" in local.get(path.rpartition(".")[0], {}):
            owners[path] = replace(owners[path], settings={"weight_layout": "out,in"})
    return owners


def told_by_shapes(shapes: Mapping[str, Shape]) -> str | None:
    """The kind of a module whose shapes leave no doubt."""
    weight, bias = shapes.get("weight", ()), shapes.get("bias", ())
    if len(weight) == 2 and weight == bias:
        return "LayerNorm"
    if len(weight) == 3 and len(bias) == 2:
        return "Bilinear"
    hidden = shapes.get("weight_hh", ())
    if len(hidden) == 2 and "weight_ih" in shapes:
        return {4: "LSTMCell", 3: "GRUCell", 1: "RNNCell"}.get(hidden[0] // max(1, hidden[1]))
    return None


def with_composites(contents: SideContents, other: SideContents) -> SideContents:
    """Add the composites of the other side (attention, recurrent layers) that must be here, too."""
    kinds = {
        normalised(path): owner.kind
        for path, owner in other.owners.items()
        if owner.kind in tables.COMPOSITES
    }
    owners: dict[str, Owner] = {}
    for path, owner in contents.owners.items():
        for above in _above(path):
            kind = kinds.get(normalised(above))
            if kind and above not in contents.owners:
                owners.setdefault(above, Owner(above, kind))
        owners[path] = owner
    return replace(contents, owners=owners)


def inside_composite(contents: SideContents, path: str) -> bool:
    """Whether a module is a part of an attention or a recurrent layer."""
    owners = (contents.owners.get(above) for above in _above(path))
    return any(owner is not None and owner.kind in tables.COMPOSITES for owner in owners)


def _above(path: str) -> list[str]:
    """The paths of the modules around this one, outermost first."""
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(len(parts))] if path else []
