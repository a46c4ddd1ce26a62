"""What a proven hypothesis about an op says."""

from __future__ import annotations

import numpy as np

from parfocal.explain.causes import Proof, code_of
from parfocal.explain.causes import said as words
from parfocal.explain.ops.arguments import Said, said
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.scene import Scene

SCALING = frozenset({"mul", "div"})
MASKING = frozenset({"masked_fill", "where"})
_MASKED = -1e3  # scores that low are masked


def argument_proof(scene: Scene, op: Op, other: Op | None, mine: Said, theirs: Said, score: float) -> Proof:
    ours, own = words(theirs.value), words(mine.value)
    if mine.name == "scalar":
        small = op.name in ("add", "sub") and 0.0 <= abs(float(theirs.value)) <= 1e-2
        code = "config.epsilon" if small else "op.scale" if op.name in SCALING else "config.other"
        how = "with" if other is not None else "as if with"
        message = f"{op.name} {how} {ours} in the reference, with {own} in the port"
    else:
        code = code_of(mine.name, op.name)
        message = f"{mine.name} of {op.name} is {ours} in the reference, {own} in the port"
    fix = f"write {words(mine.back(theirs.value))} instead of {words(mine.back(mine.value))} in {line(op)}"
    return Proof(code, message, fix, score, op.where, None if other is None else other.where)


def extra_proof(scene: Scene, op: Op, score: float) -> Proof:
    codes = {"dropout": "random.dropout", "cast": "dtype.precision", "mul": "op.scale", "div": "op.scale"}
    message = f"the port applies {op.name} in {line(op)}, the reference does not"
    fix = f"take {op.name} out of {line(op)}"
    if op.name == "dropout":
        rate = said(op, scene.case.backend.is_tensor).get("p")
        message = f"dropout{'' if rate is None else f' with p = {words(rate.value)}'} is on in {line(op)}: "
        message += "the reference drops nothing"
        fix = f"dropout(..., training=self.training) in {line(op)}"
    return Proof(codes.get(op.name, "op.extra"), message, fix, score, op.where)


def missing_proof(scene: Scene, missing: Op, where: str, near: Op | None, score: float) -> Proof:
    scalar = said(missing, scene.case.reference_backend.is_tensor).get("scalar")
    told = f" with {words(scalar.value)}" if scalar is not None else ""
    code = "op.missing"
    if missing.name in MASKING or (missing.name == "add" and _adds_mask(scene, missing)):
        code = "op.mask"
    elif missing.name in SCALING and scalar is not None:
        code = "op.scale"
    message = f"the reference applies {missing.name}{told} ({line(missing)}) {where}, the port does not"
    fix = f"apply {missing.name}{told} {where}"
    return Proof(code, message, fix, score, None if near is None else near.where, missing.where)


def _adds_mask(scene: Scene, op: Op) -> bool:
    arrays = [scene.reference.values[key] for key in op.inputs.values()]
    return any(
        array.dtype.kind in "fV" and float(array.astype(np.float64).min(initial=0.0)) < _MASKED
        for array in arrays
    )


def line(op: Op) -> str:
    return f"{(op.file or '?').rpartition('/')[2]}:{op.line}"


def listed(order: tuple[int, ...]) -> str:
    return ", ".join(str(index) for index in order)
