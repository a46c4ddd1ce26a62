"""How each framework writes an op on named tensors: an op of one model, written for the other framework.

Ops that only rearrange values are written from the shapes before and after, so it does not matter which
of many functions the other side used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.explain.fixes.borders import BY_AXIS, shortest
from parfocal.explain.fixes.literals import indexed, written
from parfocal.explain.fixes.spelling import SIGNS, arguments_of, function_of
from parfocal.explain.fixes.splicing import ATOMS
from parfocal.judge import limits

Spell = Callable[[str], str | None]  # a function's full name, as the file can write it
MOST_AXES = limits.searches.ALL_ORDERS_WRITTEN.value
TIGHT = (ast.Mult, ast.Div, ast.MatMult, ast.Pow)
REVERSED = {"rsub": "-", "rdiv": "/", "rpow": "**"}
COMPARED = {
    "less_than": "<",
    "less_equal": "<=",
    "greater_than": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "logical_and": "&",
    "logical_or": "|",
}
BETWEEN = {**SIGNS, **COMPARED}
CREATED = frozenset({"full", "zeros", "ones", "full_like", "zeros_like", "ones_like", "arange", "tensor"})


@dataclass(frozen=True, slots=True)
class ExpressionOp:
    """An op: its inputs as text and as values, its arguments, and its result."""

    name: str
    operands: Sequence[str]
    taken: Sequence[Array]
    arguments: Mapping[str, Any]  # under common names
    given: Array


def expressed(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    """The op as code of a framework; None where that is not known."""
    if step.name in BETWEEN or step.name in REVERSED:
        return _between(step)
    writer = WRITERS.get(step.name)
    if writer is not None:
        return writer(step, framework, spell)
    if step.name in CREATED:
        return _created(step, framework, spell)
    function, said = function_of(step.name, framework), arguments_of(step.name, framework, step.arguments)
    name = None if function is None else spell(function)
    if name is None or said is None or len(step.operands) != 1:
        return None
    return f"{name}({', '.join((step.operands[0], *([said] if said else [])))})"


def moved(text: str, taken: Array, given: Array, framework: str) -> str | None:
    """The same values in another shape, or with their axes in another order."""
    if taken.shape == given.shape and np.array_equal(taken, given):
        return text
    if taken.size != given.size:
        return None
    for axis in range(given.ndim):
        if given.shape[axis] == 1 and taken.shape == given.shape[:axis] + given.shape[axis + 1 :]:
            return f"{grouped(text)}.unsqueeze({axis})"
    if not np.allclose(taken.reshape(-1), given.reshape(-1), equal_nan=True):
        return None
    shape = ", ".join(map(str, (-1, *given.shape[1:])))
    return f"{grouped(text)}.reshape({registry.dialect(framework).shape.format(shape)})"


def permuted(text: str, axes: Sequence[int], framework: str) -> str:
    return f"{grouped(text)}.{registry.dialect(framework).permuting(axes)}"


def grouped(text: str) -> str:
    """In parentheses, if it is not one word or call."""
    body = ast.parse(f"({text})", mode="eval").body
    plain = isinstance(body, ATOMS) or (isinstance(body, ast.Constant) and not text.lstrip().startswith("-"))
    return text if plain else f"({text})"


def _between(step: ExpressionOp) -> str | None:
    sign = BETWEEN.get(step.name) or REVERSED[step.name]
    operands = list(step.operands)
    if len(operands) == 1:
        scalar = step.arguments.get("scalar")
        if not isinstance(scalar, (int, float)) or isinstance(scalar, bool):
            return None
        operands.append(written(scalar))
    if len(operands) != 2:
        return None
    if step.name in REVERSED:
        operands.reverse()
    left, right = operands
    return f"{_beside(left, sign, left=True)} {sign} {_beside(right, sign, left=False)}"


def _beside(text: str, sign: str, *, left: bool) -> str:
    """An operand as it can stand beside a sign."""
    body = ast.parse(f"({text})", mode="eval").body
    tighter = (*TIGHT, ast.Add, ast.Sub) if left else TIGHT
    stands = sign in "+-" and isinstance(body, ast.BinOp) and isinstance(body.op, tighter)
    return text if stands else grouped(text)


def _moved(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    return moved(step.operands[0], step.taken[0], step.given, framework) if step.operands else None


def _transposed(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    taken, given = step.taken[0], step.given
    for axes in permutations(range(taken.ndim)) if taken.ndim <= MOST_AXES else ():
        shuffled = taken.transpose(axes)
        if shuffled.shape == given.shape and np.array_equal(
            shuffled, given, equal_nan=given.dtype.kind == "f"
        ):
            return permuted(step.operands[0], axes, framework)
    return None


def _repeated(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    """Every value, or the whole, several times along one axis."""
    taken, given, text = step.taken[0], step.given, grouped(step.operands[0])
    if taken.ndim != given.ndim:
        return None
    counts = [after // before for before, after in zip(taken.shape, given.shape, strict=True)]
    axes = [axis for axis, count in enumerate(counts) if count > 1]
    if len(axes) == 1 and np.array_equal(np.repeat(taken, counts[axes[0]], axes[0]), given):
        said = registry.dialect(framework).axis
        return f"{text}.repeat_interleave({counts[axes[0]]}, {said}={axes[0]})"
    if np.array_equal(np.tile(taken, counts), given):
        return f"{text}.tile({registry.dialect(framework).counts(counts)})"
    return None


def _expanded(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    shape = ", ".join(map(str, step.given.shape))
    return f"{grouped(step.operands[0])}.expand({registry.dialect(framework).shape.format(shape)})"


def _picked(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    index = step.arguments.get("index")
    text = None if len(step.operands) != 1 or index is None else indexed(index)
    return None if text is None else f"{grouped(step.operands[0])}[{text}]"


def _joined(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    dialect = registry.dialect(framework)
    word = dialect.concat if step.name == "concat" else step.name
    name = spell(f"{framework}.{word}")
    axis = step.arguments.get("axis", 0)
    return None if name is None else f"{name}([{', '.join(step.operands)}], {dialect.axis}={axis})"


def _called(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    """Functions of several tensors and nothing else, called alike in both."""
    name = spell(f"{framework}.{step.name}")
    return None if name is None else f"{name}({', '.join(step.operands)})"


def _einsum(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    name, equation = spell(f"{framework}.einsum"), step.arguments.get("equation")
    if name is None or not isinstance(equation, str):
        return None
    return f'{name}("{equation}", {", ".join(step.operands)})'


def _linear(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    """By a weight that lies as the reference has it: out of [out, in]."""
    if len(step.operands) < 2:
        return None
    taken, weight, *bias = step.operands
    wide = step.taken[1].shape == (step.given.shape[-1], step.taken[0].shape[-1])
    name = spell(f"{framework}.matmul")
    if name is None:
        return None
    factor = registry.dialect(framework).transposed_factor.format(grouped(weight)) if wide else weight
    text = f"{name}({taken}, {factor})"
    return f"{text} + {grouped(bias[0])}" if bias else text


def _filled(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    if len(step.operands) != 2:
        return None
    value = next(
        (v for k, v in step.arguments.items() if isinstance(v, (int, float)) and not isinstance(v, bool)),
        None,
    )
    if value is None:
        return None
    return f"{grouped(step.operands[0])}.masked_fill({step.operands[1]}, {written(value)})"


def _cast(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    dialect = registry.dialect(framework)
    dtype = dialect.dtype(step.given.dtype.name, spell)
    return None if dtype is None else f"{grouped(step.operands[0])}.{dialect.cast.format(dtype)}"


def _same(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    return step.operands[0] if step.operands else None


def _negative(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    return f"-{grouped(step.operands[0])}"


def _inverted(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    return f"~{grouped(step.operands[0])}"


def _bordered(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    name, borders = spell(f"{framework}.nn.functional.pad"), step.arguments.get(BY_AXIS)
    if name is None or borders is None:
        return None
    pad = shortest(borders, framework)
    said = [f"{name}({step.operands[0]}", written(list(pad))]
    said += (
        [f'mode="{step.arguments["mode"]}"'] if step.arguments.get("mode", "constant") != "constant" else []
    )
    said += [f"value={written(step.arguments['value'])}"] if step.arguments.get("value") else []
    rank = step.taken[0].ndim
    formats = registry.dialect(framework).pad_formats
    if rank in formats and len(pad) == 2 * (rank - 2):
        said.append(f'data_format="{formats[rank]}"')
    return f"{', '.join(said)})"


def _created(step: ExpressionOp, framework: str, spell: Spell) -> str | None:
    """A tensor of one value, or of numbers in a row."""
    given = step.given
    dtype = registry.dialect(framework).dtype(given.dtype.name, spell)
    if dtype is None or given.dtype.kind not in "fiub" or not given.size:
        return None
    if (given == given.flat[0]).all():
        name = spell(f"{framework}.full")
        return (
            None
            if name is None
            else f"{name}({list(given.shape)}, {written(given.flat[0].item())}, dtype={dtype})"
        )
    steps = np.diff(given) if given.ndim == 1 else np.zeros(0)
    name = spell(f"{framework}.arange")
    if name is None or given.dtype.kind not in "iu" or not steps.size or (steps != steps[0]).any():
        return None
    first, step_size = int(given[0]), int(steps[0])
    said = [str(number) for number in (first, first + step_size * given.size, step_size)]
    return f"{name}({', '.join(said[:2] if step_size == 1 else said)})"


Writer = Callable[[ExpressionOp, str, Spell], str | None]
WRITERS: dict[str, Writer] = {
    **dict.fromkeys(("reshape", "squeeze", "unsqueeze"), _moved),
    **dict.fromkeys(("identity", "contiguous", "clone", "detach", "dropout"), _same),
    **dict.fromkeys(("concat", "stack"), _joined),
    **dict.fromkeys(("matmul", "where", "maximum", "minimum"), _called),
    **dict.fromkeys(("repeat_interleave", "tile"), _repeated),
    "transpose": _transposed,
    "expand": _expanded,
    "getitem": _picked,
    "einsum": _einsum,
    "linear": _linear,
    "masked_fill": _filled,
    "cast": _cast,
    "neg": _negative,
    "logical_not": _inverted,
    "pad": _bordered,
}
