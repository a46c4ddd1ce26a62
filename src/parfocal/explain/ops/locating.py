"""The line of the port's source that is nearest to a mistake, known or not."""

from __future__ import annotations

from parfocal.explain.causes import OpLine
from parfocal.explain.fixes.scopes import function_at
from parfocal.explain.ops.log import Key, Op, OpLog, key_of
from parfocal.explain.ops.mismatches import Mismatch, narrowed
from parfocal.explain.ops.names import LAYOUT, SELECTING
from parfocal.explain.ops.op_comparison import OpComparison


def located(comparison: OpComparison) -> OpLine | None:
    """The first suspect of the innermost mismatch; else the line that passes a value on unchanged."""
    for mismatch in narrowed(comparison):
        where = line_of_use(comparison, mismatch)
        if where is not None:
            return where
    return _first(comparison, comparison.suspects).where if comparison.suspects else None


def behind(comparison: OpComparison, mismatch: Mismatch) -> list[Op]:
    """The port's ops between values that both sides have and the wrong one; none when it is known itself."""
    return [] if comparison.knows(mismatch.port) else comparison.port.cone(mismatch.made, comparison.knows)


def _first(comparison: OpComparison, suspects: list[Op]) -> Op:
    """The first op that changes values, or else rearranges them, or else takes a part of them."""
    moving = [op for op in suspects if op.name not in SELECTING]
    changing = [op for op in moving if not comparison.port.only_moves(op)]
    return (changing or moving or suspects)[0]


def line_of_use(comparison: OpComparison, mismatch: Mismatch) -> OpLine | None:
    """The first op that makes a value wrong; for a value that was right, the line that lacks an op on it."""
    suspects = behind(comparison, mismatch)
    if suspects:
        return _first(comparison, suspects).where
    made = mismatch.made
    passed = _last_return(comparison, mismatch, made)
    if passed is not None:
        return passed
    if mismatch.user is not None:
        return mismatch.user.where
    return None if made is None else made.where


def line_beside(comparison: OpComparison, mismatch: Mismatch) -> OpLine | None:
    """For an op that the port lacks: the port's line for the other ops of the reference's line."""
    made = mismatch.other_made
    if made is None or (made.function is None and not made.is_module):
        return None  # a step of something larger has no line of its own
    backend = comparison.case.backend
    helpers = [
        each for each in comparison.port.returns if key_of(backend.to_array(each.tensor)) == mismatch.port
    ]
    if any(each.given for each in helpers):
        return None  # which does nothing to what it is given
    # a helper of the port that gives the value back is where the op is missing, not the call of it
    calls = not helpers
    given_back = _given_back(comparison, comparison.port)
    mine = _lines(comparison.port, given_back if calls else {})
    theirs = _lines(comparison.reference, _given_back(comparison, comparison.reference) if calls else {})
    lines = {
        where
        for wanted in theirs.get(mismatch.reference, ())
        for key, places in theirs.items()
        if key != mismatch.reference and wanted in places and comparison.known_to_port(key)
        for where in mine.get(comparison.matches.to_port[key], ())
    }
    if len(lines) != 1:
        return None
    file, line = lines.pop()
    if calls and (
        mismatch.user is None or not in_one_function(file, line, mismatch.user.file, mismatch.user.line)
    ):
        return None
    return OpLine(made.name, file, line)


def in_one_function(file: str | None, line: int | None, other: str | None, there: int | None) -> bool:
    """Whether two lines are of the same function."""
    return file == other and _function(file, line) == _function(other, there)


def _function(file: str | None, line: int | None) -> tuple[str, int] | None:
    """The innermost function around a line."""
    return None if file is None or line is None else function_at(file, line)


Lines = dict[Key, set[tuple[str | None, int | None]]]


def _given_back(comparison: OpComparison, log: OpLog) -> Lines:
    """Values that helper functions return and were not given, by the lines that call the helpers."""
    backend = comparison.case.backend if log is comparison.port else comparison.case.reference_backend
    found: Lines = {}
    for each in log.returns:
        file, span = each.caller
        if span is not None and not each.given:
            found.setdefault(key_of(backend.to_array(each.tensor)), set()).add((file, span[0]))
    return found


def _lines(log: OpLog, given_back: Lines) -> Lines:
    """The line of every value: the call of the helper that returns it, or else the line of its op."""
    found = dict(given_back)
    for op in log.ops:
        for key in op.outputs.values():
            if not log.only_moves(op):
                found.setdefault(key, {(op.file, op.line)})
    return found


def _last_return(comparison: OpComparison, mismatch: Mismatch, made: Op | None) -> OpLine | None:
    """The last function that returned a value before its use, preferably one that was also given it."""
    begin = 0 if made is None else made.index
    end = len(comparison.port.ops) if mismatch.user is None else mismatch.user.index
    backend = comparison.case.backend
    if _given_back_too(comparison, mismatch.port):
        return None  # what is missing comes after it
    for each in sorted(comparison.port.returns, key=lambda each: (not each.given, -each.moment)):
        if begin < each.moment <= end and key_of(backend.to_array(each.tensor)) == mismatch.port:
            name = "return" if made is None else made.name
            return OpLine(name, each.file, each.line)
    return None


def _given_back_too(comparison: OpComparison, key: Key) -> bool:
    """Whether a helper of the reference gives the same value back, so that the port's is right."""
    backend = comparison.case.reference_backend
    theirs = (
        key_of(backend.to_array(each.tensor)) for each in comparison.reference.returns if not each.given
    )
    return any(comparison.matches.are_one(key, other) for other in theirs)


def order_of_making(comparison: OpComparison, mine: Op, order: tuple[int, ...], theirs: Op) -> OpLine | None:
    """The line that computes values in another order than the reference; None: only their use differs."""
    slots = list(mine.inputs)
    own = [before_moving(comparison.port, mine, slots[index]) for index in order]
    others = [before_moving(comparison.reference, theirs, slot) for slot in theirs.inputs]
    if any(op is None or op.is_module for op in (*own, *others)):
        return None
    indices, wanted = ([op.index for op in side if op is not None] for side in (own, others))
    if _ranks(indices) == _ranks(wanted):
        return None
    first = own[indices.index(min(indices))]
    return None if first is None else first.where


def before_moving(log: OpLog, op: Op, slot: str) -> Op | None:
    """The op that computed an input of another, skipping ops that only rearrange it."""
    made = log.maker(op, slot)
    while made is not None and made.name in LAYOUT and len(made.inputs) == 1:
        made = log.maker(made, next(iter(made.inputs)))
    return made


def _ranks(numbers: list[int]) -> list[int]:
    return sorted(range(len(numbers)), key=numbers.__getitem__)
