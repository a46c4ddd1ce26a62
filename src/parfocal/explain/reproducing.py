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
from safetensors.numpy import save_file

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array, Backend
from parfocal.errors import StorageError
from parfocal.explain.case import Case
from parfocal.judge.verdict import Cause

DATA, SCRIPT = "data.safetensors", "reproduce.py"
# How each framework loads weights and runs a layer on an array.
SPELLING = {
    "torch": {
        "load": "{side}.load_state_dict({{name: torch.from_numpy(data['{side} ' + name]) "
        "for name in {side}.state_dict()}})",
        "run": "{side}(torch.from_numpy(data['{side} input'])).detach().numpy()",
    },
    "paddle": {
        "load": "{side}.set_state_dict({{name: paddle.to_tensor(data['{side} ' + name]) "
        "for name in {side}.state_dict()}})",
        "run": "{side}(paddle.to_tensor(data['{side} input'])).numpy()",
    },
}
TEMPLATE = '''"""{message}

Runs the port's layer on the input that the reference had, and fails until it is mended:
put the line with the fix in the place of the one above it.
"""

from pathlib import Path

import numpy as np
{imports}
from safetensors.numpy import load_file

data = load_file(Path(__file__).with_name("{data}"))
reference = {reference}
port = {port}
# port = {fix}  # the fix
{loading}
reference.{mode}()
port.{mode}()

print("reference", {run_reference}.ravel()[:4])
observed = {run_port}
error = np.sqrt(np.mean(np.square(observed.astype(np.float64) - data["expected"])))
score = error / {floor!r}  # in units of what rounding makes unavoidable here
print(f"score {{score:.3g}}, allowed {limit:g}")
assert score <= {limit:g}, "the port's layer is not the reference's"
'''


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A script and the arrays it needs."""

    script: str
    arrays: Mapping[str, Array]

    def save(self, folder: str | Path) -> Path:
        """Write both into a folder; returns the script's path."""
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
            save_file(
                {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}, target / DATA
            )
            (target / SCRIPT).write_text(self.script, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write the reproduction to {target}: {error.strerror}") from error
        return target / SCRIPT


def reproduction(case: Case, cause: Cause) -> Reproduction | None:
    """None when one of the two layers cannot be made by a line of code, or the fix is none."""
    node, other = case.node, case.reference_node
    start = f"{cause.fix} ".partition(" = ")
    if other is None or not start[1] or not _can_be_apart(case):
        return None
    observed = case.observed()
    expected = None if observed is None else case.expected(case.checks[0], observed)
    if expected is None or not case.checks[0].floor.rms:
        return None
    sides = {
        "reference": (case.reference_backend, case.reference_module),
        "port": (case.backend, case.module),
    }
    arrays: dict[str, Array] = {"expected": expected, "port input": case.input("0")}
    arrays["reference input"] = case.supply(other.inputs["0"].data)
    for side, (backend, module) in sides.items():
        arrays |= {f"{side} {entry.path}": backend.to_array(entry.value) for entry in backend.state(module)}
    spelling = {side: SPELLING[backend.name] for side, (backend, _) in sides.items()}
    script = TEMPLATE.format(
        message=cause.message,
        imports="\n".join(
            f"import {name}" for name in sorted({case.backend.name, case.reference_backend.name})
        ),
        data=DATA,
        reference=_line(case.reference_backend, other.kind, other.settings),
        port=_line(case.backend, node.kind, node.settings),
        fix=start[2].strip(),
        loading="\n".join(spelling[side]["load"].format(side=side) for side in sides if _state(*sides[side])),
        mode="train" if node.training else "eval",
        run_reference=spelling["reference"]["run"].format(side="reference"),
        run_port=spelling["port"]["run"].format(side="port"),
        floor=case.checks[0].floor.rms,
        limit=case.limit,
    )
    return Reproduction(script, arrays)


def _can_be_apart(case: Case) -> bool:
    sides = ((case.backend, case.module), (case.reference_backend, case.reference_module))
    plain = all(isinstance(backend, LayerBuilder) and backend.can_build(module) for backend, module in sides)
    nodes = (case.node, case.reference_node)
    alone = all(node is not None and list(node.inputs) == ["0"] and node.is_leaf for node in nodes)
    return plain and alone and case.direction == "forward" and case.start == case.call


def _line(backend: Backend, kind: str, settings: Mapping[str, Any]) -> str:
    assert isinstance(backend, LayerBuilder)
    return backend.spell(kind, settings)


def _state(backend: Backend, module: Any) -> bool:
    return bool(backend.state(module))
