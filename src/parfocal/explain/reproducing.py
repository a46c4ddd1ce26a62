"""A divergence as a script of its own: two layers, the recorded input and weights, the score.

Only layers that a line of code makes can be taken out of their models; what a model's own code
does cannot be run apart from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as serialised

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array, Backend
from parfocal.errors import StorageError
from parfocal.explain.case import Case
from parfocal.explain.causes import spelled_path
from parfocal.judge.verdict import Cause
from parfocal.replay.trace import Node, Value
from parfocal.run.storage import write_atomically

DATA, SCRIPT = "data.safetensors", "reproduce.py"
# How each framework loads weights, makes a tensor of an array and an array of a tensor.
SPELLING = {
    "torch": {
        "load": "{side}.load_state_dict({{name: torch.from_numpy(data['{side} ' + name]) "
        "for name in {side}.state_dict()}})",
        "tensor": "torch.from_numpy(data[{name!r}])",
        "array": "{call}.detach().numpy()",
    },
    "paddle": {
        "load": "{side}.set_state_dict({{name: paddle.to_tensor(data['{side} ' + name]) "
        "for name in {side}.state_dict()}})",
        "tensor": "paddle.to_tensor(data[{name!r}])",
        "array": "{call}.numpy()",
    },
}
TEMPLATE = '''"""{message}

Runs the port's layer on the input that the reference had, and fails until it is mended:
take the mark of a comment from the line with the fix.
"""

from pathlib import Path

import numpy as np
{imports}
from safetensors.numpy import load_file


def output(value, *places):
    for place in places:
        value = value[place] if isinstance(value, (tuple, list)) else value
    return value


data = load_file(Path(__file__).with_name("{data}"))
reference = {reference}
port = {port}
{first_fix}{loading}
reference.{reference_mode}()
port.{port_mode}()
{last_fix}
print("reference", {run_reference}.ravel()[:4])
observed = {run_port}
error = np.sqrt(np.mean(np.square(observed.astype(np.float64) - data["expected"])))
score = error / {floor!r}  # in units of what rounding makes unavoidable here
print("port     ", observed.ravel()[:4])
print(f"score {{score:.3g}}, allowed {limit:g}")
assert score <= {limit:g}, "the port's layer is not the reference's"
'''
PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A script and the arrays it needs."""

    script: str
    arrays: Mapping[str, Array]

    def save(self, folder: str | Path) -> Path:
        """Write both into a folder; returns the script's path."""
        target = Path(folder)
        data = serialised({name: np.ascontiguousarray(array) for name, array in self.arrays.items()})
        try:
            target.mkdir(parents=True, exist_ok=True)
            write_atomically(target / DATA, data)
            write_atomically(target / SCRIPT, self.script.encode())
        except OSError as error:
            raise StorageError(f"cannot write the reproduction to {target}: {error.strerror}") from error
        return target / SCRIPT


def reproduction(case: Case, cause: Cause) -> Reproduction | None:
    """None when one of the two layers cannot be made by a line of code, or the fix is none."""
    fix = _fix(case, cause)
    sides = {
        "reference": Taken(case.reference_backend, case.reference_module, case.reference_node),
        "port": Taken(case.backend, case.module, case.node),
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
    makes = fix.startswith("port = ")
    script = TEMPLATE.format(
        message=cause.message.replace("\\", "/").replace('"', "'"),
        imports="\n".join(f"import {name}" for name in sorted({t.backend.name for t in sides.values()})),
        data=DATA,
        **{side: taken.line for side, taken in sides.items()},
        first_fix=f"# {fix}  # the fix\n" if makes else "",
        last_fix="" if makes else f"# {fix}  # the fix\n",
        loading="\n".join(
            taken.spelling["load"].format(side=side) for side, taken in sides.items() if taken.state
        ),
        **{f"{side}_mode": taken.mode for side, taken in sides.items()},
        **{f"run_{side}": text for side, text in runs.items()},
        floor=case.checks[0].floor.rms,
        limit=case.limit,
    )
    return Reproduction(script, arrays)


@dataclass(frozen=True, slots=True)
class Taken:
    """A layer to be taken out of its model."""

    backend: Backend
    module: Any
    node: Node | None

    @property
    def spelling(self) -> Mapping[str, str]:
        return SPELLING[self.backend.name]

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
        assert self.node is not None
        args, kwargs = self.node.arguments
        said = [(str(index), "", value) for index, value in enumerate(args)]
        said += [(name, f"{name}=", value) for name, value in kwargs.items()]
        if not self.inputs.keys() <= {name for name, _, _ in said}:
            return None  # inside a list or a dict
        parts = []
        for name, before, value in said:
            if name in self.inputs:
                parts.append(before + self.spelling["tensor"].format(name=f"{side} input {name}"))
            elif isinstance(value, PLAIN):
                parts.append(f"{before}{value!r}")
            else:
                return None
        places = slot.split(".")
        if not all(place.isdigit() for place in places):
            return None
        call = f"output({side}({', '.join(parts)}), {', '.join(places)})"
        return self.spelling["array"].format(call=call)


def _fix(case: Case, cause: Cause) -> str | None:
    """The fix with the layer called ``port``; None when it is not about the layer alone."""
    path = spelled_path(case.node.path)
    rest = cause.fix[len(path) :]
    alone = cause.fix.startswith(path) and (rest.startswith(" = ") or rest in (".train()", ".eval()"))
    return f"port{rest}" if alone else None


def _can_be_apart(case: Case, sides: Mapping[str, Taken]) -> bool:
    plain = all(
        taken.node is not None
        and isinstance(taken.backend, LayerBuilder)
        and taken.backend.can_build(taken.module)
        for taken in sides.values()
    )
    own = case.checks[0].port[:2] == (case.call, "output")
    return plain and own and case.direction == "forward" and case.start == case.call
