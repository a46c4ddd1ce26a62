"""The data model of a Run: what happened, as frozen records.

A Run is a header plus an ordered list of records. A ``CallRecord`` is one finished call of
a module or an op, a ``GradientRecord`` one gradient that arrived at one of its tensors, a
``StateRecord`` a named tensor of the model or its optimizer at some step, an ``OptimizerRecord``
what an update was made with, a ``StepRecord`` the end of a step, a ``FloorRecord`` the noise of a
call's tensor, an ``InterruptionRecord`` where a run ended early, and a ``ValueRecord`` anything a
user logged by name.

Tensors inside records are ``TensorValue``: always dtype and shape; the bytes (``ref``), a
``sketch`` and ``stats`` only as far as the recording kept them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# 2: optimizer, floor and interruption records; ties of parameters and norms of updates.
SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class TensorRef:
    """Where a tensor's bytes lie: raw, little-endian, C order, aligned."""

    segment: int
    offset: int
    nbytes: int
    checksum: str
    rank: int = 0  # whose segment; the file's name follows from rank and segment alone


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor as it was recorded."""

    dtype: str  # "float32", "bfloat16", ...
    shape: tuple[int, ...]
    ref: TensorRef | None = None
    stats: Mapping[str, Any] | None = None
    sketch: Mapping[str, Any] | None = None


# A leaf of a call's inputs or outputs: a tensor, a plain JSON value, or for any other
# object its ``repr`` under {"repr": ...}.
Leaf = TensorValue | None | bool | int | float | str | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Structure:
    """Nested values, flattened: ``leaves`` by slot, ``shape`` to build the nesting again.

    A slot is the dotted way to the leaf: ``"0"``, ``"mask"``, ``"1.hidden.0"``. ``shape`` is
    JSON: a slot name for a leaf, ``["tuple", [...]]``, ``["list", [...]]``,
    ``["dict", {...}]`` or ``["object", "class name", {...}]`` for a container.
    """

    leaves: Mapping[str, Leaf]
    shape: Any


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One finished call of a module, or of an op when ``op`` is set."""

    order: int  # in which calls began
    parent: int | None
    depth: int
    path: str  # of the module; for an op that of the module whose code made it
    kind: str
    class_name: str
    op: str | None
    occurrence: int  # the n-th call of this path (and op), from 0, within the step
    file: str | None  # the user's call site
    line: int | None
    training: bool
    settings: Mapping[str, Any]
    inputs: Structure
    outputs: Structure
    step: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True)
class GradientRecord:
    """The gradient at one tensor of a call; ``value`` None says that none arrived.

    ``hidden``: the tensor was changed in place, and the gradient of what it was could not be observed.
    """

    call: int  # ``order`` of the call
    side: str  # "input" or "output"
    slot: str
    backward: int  # the n-th backward pass of the step
    value: TensorValue | None
    step: int = 0
    rank: int = 0
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class StateRecord:
    """A named tensor: role is "parameter", "buffer", "gradient" or "optimizer".

    A parameter or buffer that a step left as it was need not be recorded again.
    """

    role: str
    path: str
    slot: str | None  # the optimizer's slot
    moment: str  # "before" or "after" the step; "used" by its update: gradients that ranks reduced by then
    value: TensorValue | None
    step: int = 0
    rank: int = 0
    tied_to: str | None = None  # path of the same tensor under its first name; it has the value
    transposed: bool = False  # a sketch of a matrix that lies "in,out" is that of its transposition


@dataclass(frozen=True, slots=True)
class OptimizerRecord:
    """What the updates of a step are made with, from here on until another record says otherwise.

    ``groups`` is a list of ``{"settings": {...}, "parameters": [paths]}``, ``clip`` what the
    optimizer itself does to gradients: ``{"kind": "global_norm", "limit": 1.0}``.
    """

    kind: str
    groups: Any
    clip: Mapping[str, Any] | None = None
    step: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The end of a step."""

    step: int
    loss: float | None = None
    learning_rate: float | None = None
    gradient_norm: float | None = None
    rank: int = 0
    update_norm: float | None = None  # of the gradients that the update was made with, after clipping


@dataclass(frozen=True, slots=True)
class ValueRecord:
    """Something logged by name."""

    name: str
    value: Leaf
    step: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True)
class FloorRecord:
    """How far a call's tensor moves by rounding alone, measured while another run was followed."""

    call: int
    side: str  # "output": what the call gives; "input": what the code around it makes for it
    slot: str
    rms: float
    peak: float
    step: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True)
class InterruptionRecord:
    """An exception ended the recording; ``path`` is that of the innermost call under way, if any was."""

    path: str | None
    error: str  # its class
    step: int = 0
    rank: int = 0


Record = (
    CallRecord
    | GradientRecord
    | StateRecord
    | OptimizerRecord
    | StepRecord
    | FloorRecord
    | InterruptionRecord
    | ValueRecord
)


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What the whole run has in common: ``run.json``."""

    framework: str
    versions: Mapping[str, str]
    device: str = "cpu"
    dtype: str = "float32"
    seeds: Mapping[str, int] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    model_class: str = ""
    level: str = "modules"
    tensors: str = "full"
    ranks: int = 1
    complete: bool = False
    schema: int = SCHEMA_VERSION
    run_id: str = ""  # what the ranks of one launch have in common; empty for a single process


@dataclass(frozen=True, slots=True)
class Contents:
    """How much a finished run holds, so that a part that went missing later is noticed."""

    records: int
    record_bytes: int
    segment_bytes: tuple[int, ...]  # the size of every segment
