"""A divergence as a script of its own: two layers, the recorded input and weights, the score.

Layers that a line of code makes are taken out of their models; for what a model's own code does,
see ``rebuilding``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as serialised

from parfocal.backends import registry
from parfocal.backends.building import LayerBuilder
from parfocal.backends.dialects import Scripting
from parfocal.backends.protocol import Array, Backend
from parfocal.errors import StorageError, UnsupportedError
from parfocal.explain.case import Case
from parfocal.explain.causes import PortChange, PortLine
from parfocal.judge.verdict import Cause, Divergence
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, Value
from parfocal.run.storage import write_atomically

DATA, SCRIPT = "data.safetensors", "reproduce.py"
TEMPLATE = '''"""{message}

{about}
"""

from pathlib import Path

import numpy as np
{imports}
from safetensors.numpy import load_file


{helpers}


data = load_file(Path(__file__).with_name("{data}"))
{making}
print("reference", {run_reference}.ravel()[:4])
observed = {run_port}
error = np.sqrt(np.mean(np.square(observed.astype(np.float64) - data["expected"])))
score = error / {floor!r}  # in units of what rounding makes unavoidable here
print("port     ", observed.ravel()[:4])
print(f"score {{score:.3g}}, allowed {limit:g}")
assert score <= {limit:g}, "the port's {part} is not the reference's"
'''
ABOUT = """Runs the port's layer on the input that the reference had, and fails until it is mended:
take the mark of a comment from the line with the fix."""
OUTPUT = """def output(value, *places):
    for place in places:
        if isinstance(value, dict) or (isinstance(value, (tuple, list)) and isinstance(place, int)):
            value = value[place]
        elif isinstance(place, str):
            value = getattr(value, place)
    return value"""
MAKING = """reference = {reference}
port = {port}
{first_fix}{loading}
reference.{reference_mode}()
port.{port_mode}()
{last_fix}"""
PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A script and the arrays it needs."""

    script: str
    arrays: Mapping[str, Array]

    def complete(
        self, builds: tuple[str | None, str | None], seed: int, found: Sequence[Divergence]
    ) -> Reproduction:
        """It needs no model."""
        return self

    def save(self, folder: str | Path) -> Path:
        """Write both into a folder; returns the script's path."""
        target = Path(folder)
        data = serialised({name: np.ascontiguousarray(array) for name, array in self.arrays.items()})
        try:
            target.mkdir(parents=True, exist_ok=True)
            write_atomically(target / DATA, data)
            write_atomically(target / SCRIPT, self.script.encode())
        except OSError as error:
            raise StorageError(
                phrase(
                    "cannot write the reproduction to {target}: {strerror}",
                    target=target,
                    strerror=error.strerror,
                )
            ) from error
        return target / SCRIPT


def reproduction(case: Case, cause: Cause) -> Reproduction | None:
    """None when no line of code makes one of the two layers, or the fix is not such a line."""
    fix = _fix(case, cause)
    sides = {
        "reference": ExtractedLayer(case.reference_backend, case.reference_module, case.reference_node),
        "port": ExtractedLayer(case.backend, case.module, case.node),
    }
    if fix is None or not _can_be_apart(case, sides):
        return None
    observed = case.observed()
    expected = None if observed is None else case.expected(case.checks[0], observed)
    places = {"reference": case.checks[0].reference, "port": case.checks[0].port}
    runs = {side: taken.run(side, places[side][2]) for side, taken in sides.items()}
    if expected is None or not case.checks[0].floor.rms or None in runs.values():
        return None
    arrays: dict[str, Array] = {"expected": expected}
    for slot, value in sides["reference"].inputs.items():
        arrays[f"reference input {slot}"] = case.supply(value.data)
    arrays |= {f"port input {slot}": case.input(slot) for slot in sides["port"].inputs}
    for side, taken in sides.items():
        arrays |= {f"{side} {entry.path}": taken.backend.to_array(entry.value) for entry in taken.state}
    makes = fix.change is PortChange.LAYER
    making = MAKING.format(
        **{side: taken.line for side, taken in sides.items()},
        first_fix=f"# port{fix.rest}  # the fix\n" if makes else "",
        last_fix="" if makes else f"# port{fix.rest}  # the fix\n",
        loading="\n".join(
            taken.script.load.format(side=side) for side, taken in sides.items() if taken.state
        ),
        **{f"{side}_mode": taken.mode for side, taken in sides.items()},
    )
    script = TEMPLATE.format(
        message=docstring(cause.message),
        about=ABOUT,
        imports=imports(sides),
        helpers=OUTPUT,
        data=DATA,
        making=making,
        part="layer",
        **{f"run_{side}": text for side, text in runs.items()},
        floor=case.checks[0].floor.rms,
        limit=case.limit,
    )
    return Reproduction(script, arrays)


@dataclass(frozen=True, slots=True)
class ExtractedLayer:
    """A layer to be taken out of its model."""

    backend: Backend
    module: Any
    node: Node | None

    @property
    def path(self) -> str:
        return "" if self.node is None else self.node.path

    @property
    def script(self) -> Scripting:
        found = registry.dialect(self.backend.name).script
        if found is None:
            raise UnsupportedError(
                phrase("there is no way to write a script for {name}", name=self.backend.name)
            )
        return found

    @property
    def inputs(self) -> Mapping[str, Value]:
        return {} if self.node is None else self.node.inputs

    @property
    def state(self) -> list[Any]:
        return list(self.backend.state(self.module))

    @property
    def line(self) -> str:
        assert isinstance(self.backend, LayerBuilder)
        assert self.node is not None
        return self.backend.spell(self.node.kind, self.node.settings)

    @property
    def mode(self) -> str:
        return "train" if self.node is not None and self.node.training else "eval"

    def run(self, side: str, slot: str) -> str | None:
        """The call on the recorded inputs, and the output that is looked at, as an array."""
        call = self.call(side)
        return None if call is None else self.script.array.format(call=f"output({call}, {places(slot)})")

    def call(self, side: str, instead: Mapping[str, str] | None = None) -> str | None:
        """The call on the recorded inputs; ``instead``: what to write for some of them."""
        assert self.node is not None
        tensors = {slot: self.tensor(f"{side} input {slot}") for slot in self.inputs} | dict(instead or {})
        args, kwargs = self.node.arguments
        parts = [_spelled(value, str(index), tensors) for index, value in enumerate(args)]
        for name, value in kwargs.items():
            said = _spelled(value, name, tensors)
            parts.append(None if said is None else f"{name}={said}")
        return None if None in parts else f"{side}({', '.join(part for part in parts if part is not None)})"

    def tensor(self, name: str) -> str:
        return self.script.tensor.format(name=name)


def docstring(message: str) -> str:
    return message.replace("\\", "/").replace('"', "'")


def imports(sides: Mapping[str, ExtractedLayer]) -> str:
    return "\n".join(f"import {name}" for name in sorted({taken.backend.name for taken in sides.values()}))


def places(slot: str) -> str:
    """The way to an output, as arguments."""
    return ", ".join(place if place.isdigit() else repr(place) for place in slot.split("."))


def _spelled(value: Any, slot: str, tensors: Mapping[str, str]) -> str | None:
    """An argument as it is written; None for an object that no line of code makes."""
    if slot in tensors:
        return tensors[slot]
    if isinstance(value, PLAIN):
        return repr(value)
    if type(value) not in (tuple, list, dict):
        return None
    items = value.items() if isinstance(value, dict) else enumerate(value)
    parts = {key: _spelled(item, f"{slot}.{key}", tensors) for key, item in items}
    if None in parts.values():
        return None
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in parts.items())}}}"
    inner = ", ".join(part for part in parts.values() if part is not None)
    return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if parts else "()"


def _fix(case: Case, cause: Cause) -> PortLine | None:
    """The fix where it is about the layer alone: another one in its place, or another mode."""
    fix = cause.edit
    if not isinstance(fix, PortLine) or fix.path != case.node.path:
        return None
    return None if fix.change is PortChange.ATTRIBUTE else fix


def _can_be_apart(case: Case, sides: Mapping[str, ExtractedLayer]) -> bool:
    plain = all(
        taken.node is not None
        and isinstance(taken.backend, LayerBuilder)
        and taken.backend.can_build(taken.module)
        for taken in sides.values()
    )
    own = case.checks[0].port[:2] == (case.call, "output")
    return plain and own and case.direction == "forward" and case.start == case.call
