"""``assign_weight``: the transfer, within PaDiff's lists and layer maps.

Layers of the layer map are copied by their special init, or by the transfer's own rules where none
is registered, and layers of the unassigned list not at all. The black and white lists say what is
recorded and compared: weights outside of them are copied where they correspond, but nothing is
demanded of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from parfocal.backends.protocol import Array, StateTensor
from parfocal.compat.padiff.abstracts.tree import ModuleNode
from parfocal.compat.padiff.partners import Partners
from parfocal.compat.padiff.utils import log
from parfocal.compat.padiff.weight_init.copying import copy_weights, is_inside, units_of
from parfocal.compat.padiff.weight_init.failure import failure_text
from parfocal.compat.padiff.weight_init.special_init import build_name, global_special_init_pool
from parfocal.errors import ParfocalError, TransferError
from parfocal.phrases import phrase
from parfocal.weights.plan import Plan
from parfocal.weights.units import Unit

if TYPE_CHECKING:
    from parfocal.compat.padiff.abstracts.proxy_model import ProxyModel

Models = tuple["ProxyModel", "ProxyModel"]
Values = Mapping[str, Array]


class SpecialInitError(ParfocalError):
    """A special init raised."""

    code = "padiff.special_init"


def assign_weight_(base_model: ProxyModel, raw_model: ProxyModel) -> bool:
    """Give the raw model the base model's weights; on failure the raw model is left as it was."""
    return assign((base_model, raw_model)) is not None


def assign(models: Models) -> Partners | None:
    """As ``assign_weight_``; which modules hold the same weights then, or None on failure."""
    raw_model = models[1]
    restricted = any(_restricted(model) for model in models)
    before = _values(raw_model) if restricted else {}  # without lists the transfer undoes itself
    try:
        plan = _assign_within_lists(models, before) if restricted else copy_weights(*_originals(models))
    except TransferError as error:
        _restore(raw_model, before)
        log("Assign weight Failed !!!\n")
        print(failure_text(models, _demanded(models), error))
        return None
    except SpecialInitError as error:
        _restore(raw_model, before)
        print(error.message)
        log("Assign weight Failed !!!")
        return None
    log("Assign weight success !!!")
    return Partners.of(plan)


def _restricted(model: ProxyModel) -> bool:
    marker = model.marker
    lists = (marker.black_list, marker.black_list_recursively, marker.layer_map)
    unassigned = (marker.unassigned_weights_list, marker.unassigned_weights_list_recursively)
    return marker.use_white_list or any(map(bool, (*lists, *unassigned)))


def _originals(models: Models) -> tuple[Any, Any]:
    return models[0].model, models[1].model


def _assign_within_lists(models: Models, before: Values) -> Plan:
    raw = models[1]
    _special_inits(models)
    mapped = _values(raw)
    plan = copy_weights(*_originals(models), layer_map(models), partial=True)
    # What was copied along although it is none of the transfer's business gets its values back.
    _restore(
        raw, {tensor.path: mapped[tensor.path] for tensor in _tensors(raw) if _is_mapped(raw, tensor.module)}
    )
    kept = {node.path for node in raw.marker.tree().walk() if not raw.marker.assigned(node)}
    _restore(raw, {tensor.path: before[tensor.path] for tensor in _tensors(raw) if tensor.module in kept})
    missing = _missing(plan, models)
    if missing:
        raise TransferError("\n".join(missing))
    return plan


def _missing(plan: Plan, models: Models) -> list[str]:
    """What the plan leaves over of all that must be assigned."""
    demanded = [{slot.stored.path for unit in units for slot in unit.required} for units in _demanded(models)]
    leftovers = (plan.unmatched_reference, plan.unmatched_port)
    missing = [
        f"{leftover.path}: {leftover.reason}"
        for found, paths in zip(leftovers, demanded, strict=True)
        for leftover in found
        if leftover.path in paths
    ]
    return missing + [
        f"{', '.join(undecided.targets)}: {undecided.reason}"
        for undecided in plan.ambiguous
        if demanded[1].intersection(undecided.targets)
    ]


def _special_inits(models: Models) -> None:
    base, raw = models
    for first, second in zip(base.marker.layer_map, raw.marker.layer_map, strict=False):
        names = base.marker.fullname(first.module), raw.marker.fullname(second.module)
        key = build_name(base.framework, first.class_name, raw.framework, second.class_name)
        function = global_special_init_pool.funcs.get(key)
        if function is None:
            _copy_mapped(models, (first, second))
            continue
        try:
            function(first.module, second.module)
        except Exception as error:
            raise SpecialInitError(
                phrase(
                    "Special init `{reference}` and `{port}` failed.\n{kind}:  {error}",
                    reference=names[0],
                    port=names[1],
                    kind=type(error).__name__,
                    error=error,
                )
            ) from error


def _copy_mapped(models: Models, layers: tuple[ModuleNode, ModuleNode]) -> None:
    """Copy a mapped layer without a special init; a class of the user's may be left to the user."""
    try:
        copy_weights(layers[0].module, layers[1].module)
    except TransferError as error:
        pairs = list(zip(models, layers, strict=True))
        if all(model.backend.is_framework_layer(layer.module) for model, layer in pairs):
            raise
        names = [model.marker.fullname(layer.module) for model, layer in pairs]
        log(f"*** Special init `{names[0]}` and `{names[1]}` is not supported ***")
        log("    Checkout the parameters are inited by yourself,")
        log("    or call `add_special_init` to register your init logic!")
        log(f"    They were not copied: {error.message.splitlines()[-1].strip()}")


def _demanded(models: Models) -> tuple[list[Unit], list[Unit]]:
    """The units of both models that must be assigned."""
    base, raw = ([unit for unit in units_of(model.model) if _is_demanded(model, unit)] for model in models)
    return base, raw


def _is_demanded(model: ProxyModel, unit: Unit) -> bool:
    node = next(node for node in model.marker.tree().walk() if node.path == unit.module)
    return model.marker.weighed(node) and not _is_mapped(model, unit.module)


def layer_map(models: Models) -> dict[str, str]:
    """Base path -> raw path of mapped layers."""
    base, raw = ([node.path for node in model.marker.layer_map] for model in models)
    return dict(zip(base, raw, strict=False))


def _is_mapped(model: ProxyModel, path: str) -> bool:
    heads = [entry.path for entry in model.marker.layer_map]
    return any(is_inside(path, head) for head in heads)


def _tensors(model: ProxyModel) -> list[StateTensor]:
    return [tensor for tensor in model.backend.state(model.model) if tensor.tied_to is None]


def _values(model: ProxyModel) -> dict[str, Array]:
    return {tensor.path: model.backend.to_array(tensor.value) for tensor in _tensors(model)}


def _restore(model: ProxyModel, values: Values) -> None:
    for tensor in _tensors(model):
        if tensor.path in values:
            model.backend.write(tensor.value, values[tensor.path])
