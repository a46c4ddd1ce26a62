"""What a side holds, as plain data: stored tensors and the modules that own them.

Matching needs names, shapes and kinds only, never a live model. A model gives them through its
backend (``read_model``); a bare checkpoint gives its own list of ``StoredTensor`` with no modules, and
kinds are then taken from the other side or from the names (see ``units.read_units``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.protocol import Backend, StateTensor
from parfocal.weights.views import Shape

# Attributes in which attention modules of the world keep their number of heads.
HEADS = ("num_heads", "n_heads", "n_head", "nhead", "heads", "num_attention_heads", "num_kv_heads",
         "num_key_value_heads", "n_kv_heads", "h")  # fmt: skip
HEAD_SIZES = ("head_dim", "head_size", "dim_head", "attention_head_size", "d_k")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as it is stored: full path, owner, local name, shape, dtype."""

    path: str
    module: str  # path of the owner
    name: str  # the framework's own local name
    shape: Shape
    dtype: str
    role: str  # "parameter" or "buffer"
    tied_to: str | None = None  # path of the first occurrence of the very same tensor


@dataclass(frozen=True, slots=True)
class Owner:
    """One module: its common kind (None when nobody knows) and what it says of itself."""

    path: str
    kind: str | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    own: bool = True  # the framework's own class, not the user's
    heads: tuple[int, ...] = ()  # how many attention heads its attributes speak of
    head_sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SideContents:
    """Everything of one side that matching looks at."""

    framework: str
    stored: tuple[StoredTensor, ...]
    owners: Mapping[str, Owner]


def read_model(backend: Backend, model: Any, state: Iterable[StateTensor] | None = None) -> SideContents:
    """The contents of a live model; ``state`` is its backend's, where that was read already."""
    owners = {path: _owner(backend, path, module) for path, module in backend.modules(model).items()}
    stored = tuple(_stored(backend, tensor) for tensor in (backend.state(model) if state is None else state))
    return SideContents(backend.name, stored, owners)


def read_mapping(
    framework: str, arrays: Mapping[str, Any], roles: Mapping[str, str] | None = None
) -> SideContents:
    """The contents of a bare name -> array mapping; nothing is known of its modules."""
    stored = tuple(
        StoredTensor(
            path=path,
            module=path.rpartition(".")[0],
            name=path.rpartition(".")[2],
            shape=tuple(array.shape),
            dtype=str(array.dtype),
            role=(roles or {}).get(path, "parameter"),
        )
        for path, array in arrays.items()
    )
    owners = {tensor.module: Owner(tensor.module, None) for tensor in stored}
    return SideContents(framework, stored, owners)


def _stored(backend: Backend, tensor: StateTensor) -> StoredTensor:
    return StoredTensor(
        path=tensor.path,
        module=tensor.module,
        name=tensor.name,
        shape=backend.shape(tensor.value),
        dtype=backend.dtype(tensor.value),
        role=tensor.role,
        tied_to=tensor.tied_to,
    )


def _owner(backend: Backend, path: str, module: Any) -> Owner:
    attributes = getattr(module, "__dict__", {})
    return Owner(
        path=path,
        kind=backend.kind(module),
        settings=backend.settings(module),
        own=backend.is_framework_layer(module),
        heads=_numbers(attributes, HEADS),
        head_sizes=_numbers(attributes, HEAD_SIZES),
    )


def _numbers(attributes: Mapping[str, Any], names: tuple[str, ...]) -> tuple[int, ...]:
    if attributes.keys().isdisjoint(names):  # of nearly all modules
        return ()
    found = (attributes.get(name) for name in names)
    return tuple(dict.fromkeys(value for value in found if isinstance(value, int) and value > 1))
