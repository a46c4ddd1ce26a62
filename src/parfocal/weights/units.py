"""Reads the contents of a side into units: the pieces that are matched as a whole.

A unit is a module that owns state, a composite such as a MultiheadAttention or an LSTM with
everything below it, or a single raw parameter of a user's module. Its slots have canonical roles
and shapes, so units of different frameworks compare directly.

The seam for checkpoints: ``read_units`` takes ``SideContents`` only. For a bare mapping of names to
arrays use ``state.read_mapping`` and then ``with_kinds``, which fills in the kinds of modules from
the other side (same path, or the only kind that fits the shapes) and from telling names.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from parfocal.backends import registry
from parfocal.weights import tables
from parfocal.weights.names import normalised
from parfocal.weights.state import Owner, SideContents, StoredTensor
from parfocal.weights.views import IDENTITY, Shape, View, shape_of, transpose

Key = tuple[str, tuple[tuple[str, Shape], ...]]


@dataclass(frozen=True, slots=True)
class Slot:
    """One canonical tensor of a unit: a view of a stored one."""

    role: str
    stored: StoredTensor
    view: View
    shape: Shape
    required: bool = True

    @property
    def memory(self) -> str:
        """The path under which the tensor's memory is known: that of its first occurrence."""
        return self.stored.tied_to or self.stored.path


@dataclass(frozen=True, slots=True)
class Unit:
    """What is matched as a whole."""

    path: str  # of the module, or of the tensor for a raw parameter
    module: str  # path of the module whose call uses it
    kind: str
    family: str
    slots: tuple[Slot, ...]
    rank: int  # position in definition order
    flexible: bool = False  # a square weight of a user's class: [out, in] or [in, out], who knows
    heads: tuple[int, ...] = field(default=(), compare=False)

    @property
    def required(self) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if slot.required)

    @property
    def key(self) -> Key:
        """What two units must have in common to be one layer: family, roles and shapes."""
        counted = self.required or self.slots
        return self.family, tuple(sorted((slot.role, slot.shape) for slot in counted))

    def slot(self, role: str) -> Slot | None:
        return next((slot for slot in self.slots if slot.role == role), None)


def read_units(contents: SideContents) -> list[Unit]:
    """All units of a side in definition order."""
    claimed: dict[str, list[StoredTensor]] = defaultdict(list)
    homes = _homes(contents)
    for tensor in contents.stored:
        claimed[homes[tensor.module]].append(tensor)
    units: list[Unit] = []
    holding: set[str] = set()
    for path in contents.owners:
        holding.update(itertools.takewhile(lambda above: above not in holding, _above(path)))
    for path in contents.owners:
        if path in claimed:
            alone = path != "" and path not in holding
            units.extend(_units_of(contents, contents.owners[path], claimed[path], alone))
    units = [replace(unit, rank=rank) for rank, unit in enumerate(units)]
    return _settle_orientation(units)


def _homes(contents: SideContents) -> dict[str, str]:
    """Module path -> path of the module whose unit takes its tensors in."""
    homes: dict[str, str] = {}
    composites = {path for path, owner in contents.owners.items() if owner.kind in tables.COMPOSITES}
    for path in dict.fromkeys([*contents.owners, *(tensor.module for tensor in contents.stored)]):
        around = [above for above in (path, *_above(path)) if above in composites] if composites else []
        head, mark, _ = path.partition("parametrizations")
        home = around[-1] if around else head.rstrip(".") if mark else path
        homes[path] = home if home in contents.owners else path
    return homes


def _above(path: str) -> Iterator[str]:
    """The paths of all modules around a module, the innermost first."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def _units_of(contents: SideContents, owner: Owner, tensors: list[StoredTensor], alone: bool) -> list[Unit]:
    """``alone``: no module is inside of this one, so that a call of it is all that uses its own tensors."""
    if owner.kind not in tables.FAMILIES:
        return _user_units(contents, owner, tensors, alone)
    slots = [slot for tensor in tensors for slot in _slots(contents, owner, tensor)]
    # PaddlePaddle's recurrent layers list a tensor twice; the cells' own names are the ones to trust.
    slots = list({slot.role: slot for slot in slots}.values())
    slots = _common_roles(slots)
    # Estimates of a spectral norm are buffers, also where a bare file does not say so.
    normed = [slot.role.removesuffix("_orig") for slot in slots if slot.role.endswith("_orig")]
    estimates = {f"{name}{end}" for name in normed for end in ("_u", "_v")}
    slots = [replace(slot, required=False) if slot.role in estimates else slot for slot in slots]
    if not slots:
        return []
    return [_unit(contents, owner, owner.path, tables.FAMILIES[owner.kind], slots)]


def _common_roles(slots: list[Slot]) -> list[Slot]:
    """A user's class may bear a framework's name and call its weight ``gamma``."""
    roles = {slot.role for slot in slots}
    return [
        replace(slot, role=common)
        if (common := tables.COMMON_NAMES.get(slot.role, slot.role)) not in roles
        else slot
        for slot in slots
    ]


def _slots(contents: SideContents, owner: Owner, tensor: StoredTensor) -> list[Slot]:
    if tensor.name in tables.COUNTERS:
        return []
    prefix = owner.path + "." if owner.path else ""
    name = tables.local_name(owner.kind, tensor.path.removeprefix(prefix))
    # A composite's own submodules know their own layout.
    settings = contents.owners.get(tensor.module, owner).settings
    found = []
    for piece in tables.pieces(contents.framework, owner.kind, name):
        view = piece.view(tensor.shape, settings)
        found.append(
            Slot(piece.role, tensor, view, shape_of(view, tensor.shape), _required(tensor, piece.role))
        )
    return found


def _required(tensor: StoredTensor, role: str) -> bool:
    return tensor.role == "parameter" or role in tables.REQUIRED_BUFFERS


def _unit(
    contents: SideContents, owner: Owner, path: str, family: str, slots: Iterable[Slot], **more: Any
) -> Unit:
    return Unit(
        path=path,
        module=owner.path,
        kind=owner.kind or "",
        family=family,
        slots=tuple(slots),
        rank=0,
        heads=_heads(contents, owner.path),
        **more,
    )


def _heads(contents: SideContents, path: str) -> tuple[int, ...]:
    """What the module or the nearest module around it says about attention heads."""
    for above in (path, *_above(path)):
        owner = contents.owners.get(above)
        if owner and (owner.heads or owner.head_sizes):
            return (*owner.heads, *(-size for size in owner.head_sizes))
    return ()


def _user_units(contents: SideContents, owner: Owner, tensors: list[StoredTensor], alone: bool) -> list[Unit]:
    parameters = [tensor for tensor in tensors if tensor.role == "parameter"]
    roles = [tables.COMMON_NAMES.get(tensor.name) for tensor in parameters]
    units: list[Unit] = []
    rest = [tensor for tensor in tensors if tensor.role != "parameter" and tensor.name not in tables.COUNTERS]
    if set(roles) == {"weight", "bias"} and len(roles) == 2:
        units.append(
            _common_unit(contents, owner, dict(zip([str(role) for role in roles], parameters, strict=True)))
        )
    elif roles == ["weight"] and len(parameters[0].shape) == 1 and alone:
        slot = Slot("weight", parameters[0], IDENTITY, parameters[0].shape)
        units.append(_unit(contents, owner, owner.path, "norm", [slot]))
    else:
        rest = [tensor for tensor in tensors if tensor.name not in tables.COUNTERS]
    for tensor in rest:
        slot = Slot("value", tensor, IDENTITY, tensor.shape, tensor.role == "parameter")
        units.append(_unit(contents, owner, tensor.path, "raw" if slot.required else "buffer", [slot]))
    return units


def _common_unit(contents: SideContents, owner: Owner, named: Mapping[str, StoredTensor]) -> Unit:
    """A user's own norm (1-D weight and bias) or linear layer (2-D weight, in either layout)."""
    weight, bias = named["weight"], named["bias"]
    view: View = IDENTITY
    family, flexible = ("norm", False) if len(weight.shape) == 1 else ("affine", False)
    if len(weight.shape) == 2 and len(bias.shape) == 1:
        rows, columns = weight.shape
        flexible = rows == columns
        if columns == bias.shape[0] and not flexible:
            view = (transpose(1, 0),)
    slots = [
        Slot("weight", weight, view, shape_of(view, weight.shape)),
        Slot("bias", bias, IDENTITY, bias.shape),
    ]
    return _unit(contents, owner, owner.path, family, slots, flexible=flexible)


def _settle_orientation(units: list[Unit]) -> list[Unit]:
    """Square weights of a user's class lie as the other ones of the same class do."""
    turned = {
        unit.kind: bool(unit.slots[0].view)
        for unit in units
        if unit.family == "affine" and unit.kind not in tables.FAMILIES and not unit.flexible
    }
    return [
        replace(with_turned_weight(unit) if turned[unit.kind] else unit, flexible=False)
        if unit.flexible and unit.kind in turned
        else unit
        for unit in units
    ]


def with_turned_weight(unit: Unit) -> Unit:
    """The same unit with its square weight read the other way round."""
    slots = tuple(
        replace(slot, view=() if slot.view else (transpose(1, 0),))
        if slot.role in ("weight", "value")
        else slot
        for slot in unit.slots
    )
    return replace(unit, slots=slots)


def parts_of(unit: Unit) -> list[Unit]:
    """A composite taken apart: attention into q, k, v and out; a recurrent layer into its cells."""
    groups: dict[str, list[Slot]] = defaultdict(list)
    for slot in unit.slots:
        if unit.family == "attention":
            name, _, role = slot.role.rpartition(".")
        elif unit.family == "recurrent":
            name, role = tables.recurrent_part(slot.role)
        else:
            return [unit]
        groups[name or slot.role].append(replace(slot, role=role if name else "value"))
    family = {"attention": "affine", "recurrent": "cell"}[unit.family]
    return [
        replace(
            unit,
            path=f"{unit.path}.{name}" if unit.path else name,
            family=family if len(slots) > 1 or slots[0].role != "value" else "raw",
            slots=tuple(slots),
        )
        for name, slots in groups.items()
    ]


def with_kinds(contents: SideContents, other: SideContents) -> SideContents:
    """Fill in the kinds that a bare mapping lacks, from the other side or from telling names."""
    by_path = {
        normalised(path): owner for path, owner in other.owners.items() if owner.kind in tables.FAMILIES
    }
    local: dict[str, dict[str, Shape]] = defaultdict(dict)
    for tensor in contents.stored:
        local[tensor.module][tensor.name] = tensor.shape
        head, mark, rest = tensor.path.partition(".parametrizations.")
        if mark:
            local[head][tables.local_name(None, f"parametrizations.{rest}")] = tensor.shape
    layout = {"weight_layout": registry.dialect(contents.framework).linear_layout}
    owners = {}
    for path, owner in contents.owners.items():
        twin = by_path.get(normalised(path))
        kind = owner.kind or telling_kind(local[path]) or (twin.kind if twin else None)
        kind = kind or _kind_by_rank(local[path])
        owners[path] = replace(owner, kind=kind, settings=owner.settings or layout)
    return replace(contents, owners=owners)


def telling_kind(tensors: Mapping[str, Shape]) -> str | None:
    """The kind of a module whose local names leave no doubt."""
    names = set(tensors)
    if names & {"running_mean", "_mean"}:
        return "BatchNorm"
    if names & {"in_proj_weight", "q_proj_weight"}:
        return "MultiheadAttention"
    if "weight_ih_l0" in names:
        rows, columns = tensors["weight_ih_l0"][0], tensors["weight_hh_l0"][1]
        return {4: "LSTM", 3: "GRU"}.get(rows // columns, "RNN")
    return "PReLU" if names == {"_weight"} else None


def _kind_by_rank(tensors: Mapping[str, Shape]) -> str | None:
    weight = next((tensors[name] for name in ("weight", "weight_orig", "weight_v") if name in tensors), None)
    if weight is None:
        return "InstanceNorm2d" if "scale" in tensors else None
    return {1: "LayerNorm", 2: "Linear", 3: "Conv1d", 4: "Conv2d", 5: "Conv3d"}.get(len(weight))
