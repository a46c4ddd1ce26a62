"""What to write so that gradients at ties and kinks are the reference's.

The reference's function is written in the port's framework. Where that framework chooses another gradient
for it, other functions are written that make the choice explicit. Every line is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parfocal.explain.case import Case
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.expressions import grouped
from parfocal.explain.fixes.literals import written
from parfocal.explain.fixes.patching import exchanging
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.fixes.trying import patched
from parfocal.explain.ops.arguments import told
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.op_comparison import OpComparison, is_same
from parfocal.explain.ops.writing import EditPlace, Writer, writing_comparison
from parfocal.judge import limits
from parfocal.judge.verdict import Fix

MOST_STEPS = limits.searches.KINK_STEPS.value


@dataclass(frozen=True, slots=True)
class OpWording:
    """The tensors of an op, what it was told, and how functions are called in the file."""

    tensors: list[str]
    arguments: Mapping[str, Any]
    call: Callable[..., str]


def written_at_ties(case: Case, name: str, file: str | None, line: int | None, words: Fix) -> Fix:
    """The op at a line as the reference has it; ``words`` where no line was found that helps."""
    comparison = writing_comparison(case)
    if comparison is None:
        return words
    for op in comparison.port.ops:
        if (op.name, op.file, op.line) == (name, file, line):
            for patch in _candidates(comparison, op):
                if _is_right(case, patch):
                    return patch
    return words


def _is_right(case: Case, patch: Patch) -> bool:
    with patched(case.precise.port.modules.values(), patch) as functions:
        return bool(functions) and case.tried() <= case.limit


def _candidates(comparison: OpComparison, op: Op) -> Iterator[Patch]:
    """For the op, or one that only rearranges its result: the first that gives the reference's value."""
    last: Op | None = op
    for _ in range(MOST_STEPS):
        spot = None if last is None else fixing.spot_of(last)
        if last is None or spot is None or len(last.outputs) != 1:
            return
        (mine,) = last.outputs.values()
        for theirs in comparison.reference.ops:
            key = next(iter(theirs.outputs.values()), None)
            if key is None or theirs.is_module or not is_same(comparison, mine, key):
                continue
            writer = Writer(comparison, EditPlace(spot, None, last.index))
            for text in _texts(writer, theirs):
                patch = exchanging(spot, None, text)
                if patch is not None:
                    yield patch
        takers = [each for each in comparison.port.taking(mine) if comparison.port.only_moves(each)]
        last = takers[0] if takers else None


def _texts(writer: Writer, theirs: Op) -> Iterator[str]:
    comparison = writer.comparison
    key = next(iter(theirs.outputs.values()))
    text = writer.computed(key, theirs)
    if text is not None:
        yield text
    tensors = [
        writer.write(each, comparison.reference.maker(theirs, slot)) for slot, each in theirs.inputs.items()
    ]
    texts = [grouped(each) for each in tensors if each is not None]
    if len(texts) != len(tensors):
        return

    def call(function: str, *given: str) -> str:
        name = writer.spell(f"{writer.framework}.{function}")
        return "" if name is None else f"{name}({', '.join(given)})"

    arguments = told(theirs, comparison.case.reference_backend.is_tensor)
    for choice in CHOICES.get(theirs.name, ()):
        text = choice(OpWording(texts, arguments, call))
        if text:
            yield text


def _leaky(words: OpWording) -> str:
    (x,), slope = words.tensors, written(words.arguments.get("negative_slope", 0.01))
    return words.call("where", f"{x} > 0", x, f"{slope} * {x}")


def _leaky_from_zero(words: OpWording) -> str:
    (x,), slope = words.tensors, written(words.arguments.get("negative_slope", 0.01))
    return words.call("where", f"{x} >= 0", x, f"{slope} * {x}")


def _positive(words: OpWording) -> str:
    (x,) = words.tensors
    return words.call("where", f"{x} > 0", x, words.call("zeros_like", x))


def _within(words: OpWording) -> str:
    """Clipped elements pass no gradient; elements exactly at a bound do."""
    (x,) = words.tensors
    low, high = (_bound(words.arguments, name) for name in ("min", "max"))
    inside = " & ".join(
        f"({x} {sign} {written(bound)})" for sign, bound in ((">=", low), ("<=", high)) if bound is not None
    )
    held = x
    for function, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            held = words.call(function, held, words.call("full_like", x, written(bound)))
    return words.call("where", inside, x, held) if inside else ""


def _bound(arguments: Mapping[str, Any], name: str) -> float | None:
    found = arguments.get(name, arguments.get(f"{name}imum", arguments.get(f"{name}_val")))
    return float(found) if isinstance(found, (int, float)) else None


def _half_each(sign: str) -> Callable[[OpWording], str]:
    """Equal elements share the gradient."""

    def choose(words: OpWording) -> str:
        a, b = words.tensors
        return f"0.5 * ({a} + {b} {sign} {words.call('abs', f'{a} - {b}')})"

    return choose


Choice = Callable[[OpWording], str]
CHOICES: dict[str, tuple[Choice, ...]] = {
    "leaky_relu": (_leaky, _leaky_from_zero),
    "relu": (_positive,),
    "clamp": (_within,),
    "hardtanh": (_within,),
    "maximum": (_half_each("+"),),
    "minimum": (_half_each("-"),),
}
