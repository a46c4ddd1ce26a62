"""The line to write where more than one argument differs: the reference's expression in the port's names.

Every line is tried before it is recommended: the port's call runs with the patched code, once led by the
reference's values and once freely, and must give the reference's results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice, product
from typing import Any

from parfocal.backends.protocol import Call
from parfocal.explain.case import Case
from parfocal.explain.causes import LineName, PortLine, ProvenChange, line
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.attributes import set_to
from parfocal.explain.fixes.finding import find_returned
from parfocal.explain.fixes.fixing import ModuleSetting
from parfocal.explain.fixes.naming import by_names
from parfocal.explain.fixes.patching import accumulating, exchanging
from parfocal.explain.fixes.scopes import function_at, statements_before
from parfocal.explain.fixes.sources import bounds
from parfocal.explain.fixes.spelling import SIGNS
from parfocal.explain.fixes.splicing import Patch, without_statements
from parfocal.explain.fixes.trying import patched
from parfocal.explain.ops.log import Key, Op, key_of
from parfocal.explain.ops.mismatches import Mismatch, narrowed
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.writing import EditPlace, Writer
from parfocal.judge import limits
from parfocal.phrases import remade
from parfocal.replay import repeat

MOST = limits.searches.REWRITTEN_LINES.value
MOST_STATEMENTS = limits.searches.REMOVED_STATEMENTS.value
MOST_PLACES = limits.searches.REWRITTEN_PLACES.value
CARRYING = frozenset({"add", "mul"})
WRITING = limits.searches.WRITING_WORK.value
MENDED, RIGHT, BETTER, WORSE = 3, 2, 1, 0


def mended(comparison: OpComparison, mismatch: Mismatch | None, proof: ProvenChange) -> ProvenChange:
    """The proof with a line that was tried, if there is one."""
    if isinstance(proof.fix, ModuleSetting):
        return _set_or_said(comparison, mismatch, proof, proof.fix)
    if isinstance(proof.fix, PortLine):
        return proof
    return _tried(comparison, mismatch, proof)[0]


def _set_or_said(
    comparison: OpComparison, mismatch: Mismatch | None, proof: ProvenChange, setting: ModuleSetting
) -> ProvenChange:
    """The setting, or a line of source where only that mends: other code may use the setting, too."""
    case = comparison.case.at_outputs()
    with ExitStack() as made:

        def prepare(twin: Any) -> None:
            made.enter_context(set_to(twin, setting.way, setting.value))

        if setting.line is None or case.tried(prepare, inside=False) <= case.limit:
            return proof
    said, mark = _tried(comparison, mismatch, replace(proof, fix=setting.line))
    return said if mark == MENDED else proof


def _tried(
    comparison: OpComparison, mismatch: Mismatch | None, proof: ProvenChange
) -> tuple[ProvenChange, int]:
    """The proof with the line that mends best, and how well."""
    told = (proof.fix, *proof.fix.others) if isinstance(proof.fix, Patch) else ()
    first = best = told[0] if told else None
    mark = WORSE
    carried = list(_carried(comparison, mismatch))
    allowance = comparison.case.allowance
    enough = RIGHT if comparison.case.has_others_inside else MENDED
    for patch in _candidates(comparison, mismatch, (*told, *carried)):
        if mark >= BETTER and allowance is not None and not allowance.has_room:
            break
        if patch.also and mark >= BETTER:
            break  # what one line leaves wrong elsewhere is more likely another mistake
        found = verdict(comparison, patch)
        if found > mark or (found == MENDED and _is_in(proof, patch)):
            best, mark = patch, found
        if found >= enough and (_is_in(proof, patch) or proof.code != "op.missing"):
            break  # a line of the blamed function rather than another that mends as well
    if (
        best is not None
        and mark == MENDED
        and mismatch is not None
        and _may_be_elsewhere(comparison, mismatch, proof)
    ):
        proof = proof if _is_in(proof, best) else _placed(proof, best)
    if best is not None and mark == MENDED and best in carried:
        proof = _placed(proof, best)
    if best is None or best is first:
        return proof, mark
    others = tuple(each for each in told if each != best)
    return replace(proof, fix=replace(best, others=others)), mark


def _may_be_elsewhere(comparison: OpComparison, mismatch: Mismatch, proof: ProvenChange) -> bool:
    """Whether an op is missing, and no helper returns the value just as it was given."""
    if not comparison.knows(mismatch.port) or proof.code != "op.missing":
        return False
    passing = (each.tensor for each in comparison.port.returns if each.given)
    return all(key_of(comparison.case.backend.to_array(tensor)) != mismatch.port for tensor in passing)


def _is_in(proof: ProvenChange, patch: Patch) -> bool:
    """Whether a patch is in the function that is blamed."""
    where = proof.port
    if where is None or where.file is None or where.line is None:
        return True
    return function_at(where.file, where.line) == function_at(patch.file, patch.line)


def _placed(proof: ProvenChange, patch: Patch) -> ProvenChange:
    """The proof with the patched line as the place of what is missing."""
    where = proof.port
    if where is None:
        return proof
    there = replace(where, file=patch.file, line=patch.line)

    def moved(part: str) -> str:
        is_here = isinstance(part, LineName) and part.where == (where.file, where.line)
        return line(there) if is_here else part

    return replace(proof, port=there, message=remade(proof.message, moved))


def _candidates(
    comparison: OpComparison, mismatch: Mismatch | None, told: Sequence[Patch]
) -> Iterator[Patch]:
    seen: set[Patch] = set()
    for patch in _with_names(comparison, chain(told, _rewritten(comparison, mismatch))):
        if len(seen) == MOST:
            return
        if patch not in seen:
            seen.add(patch)
            yield patch


def _with_names(comparison: OpComparison, patches: Iterable[Patch]) -> Iterator[Patch]:
    """The patches; for lines that run more than once also variants with names instead of numbers."""
    for patch in patches:
        yield patch
        runs = [
            op for op in comparison.port.ops if (op.file, op.line) == (patch.file, patch.line) and op.frames
        ]
        if len(runs) > len({op.span for op in runs}):
            yield from by_names(patch, runs[0].frames[0].names)


def _carried(comparison: OpComparison, mismatch: Mismatch | None) -> Iterator[Patch]:
    """A loop that overwrites a name with each value, where the reference accumulates them."""
    made = None if mismatch is None else mismatch.other_made
    if mismatch is not None and made is not None and made.name in CARRYING and len(made.inputs) == 2:
        for place in _uses(comparison, mismatch):
            patch = accumulating(place.spot, place.slot, SIGNS[made.name])
            if patch is not None:
                yield patch


def _rewritten(comparison: OpComparison, mismatch: Mismatch | None) -> Iterator[Patch]:
    """The right value at every place where the wrong one is computed, returned or used.

    First as a change of one line; then together with the removal of statements right before it.
    """
    own = [] if mismatch is None else [(comparison, mismatch)]
    ways = [*own, *((one, at) for one in (comparison, *comparison.elsewhere()) for at in narrowed(one))]
    places: dict[object, tuple[OpComparison, Mismatch, EditPlace]] = {}
    for one, at in ways:
        for place in _places(one, at):
            places.setdefault((at.reference, bounds(place.spot.node), place.slot), (one, at, place))
    writers: dict[object, Writer] = {}  # what can be written at a place is the same for all values
    for count, (one, at, place) in islice(product(range(MOST_STATEMENTS + 1), places.values()), MOST_PLACES):
        gone = statements_before(place.spot, count)
        if len(gone) == count:
            here = id(one), id(place.spot.node), place.slot, place.moment, count
            if here not in writers:
                comparison.case.precise.effort.charge(WRITING)
                writers[here] = Writer(one, replace(place, without=gone))
            patch = _patch(writers[here], at)
            if patch is not None:
                yield patch


def _patch(writer: Writer, mismatch: Mismatch) -> Patch | None:
    place = writer.place
    text = writer.write(*_as_it_lies(writer.comparison, mismatch))
    patch = None if text is None else exchanging(place.spot, place.slot, text)
    return None if patch is None else without_statements(patch, place.spot.source, place.without)


def _as_it_lies(comparison: OpComparison, mismatch: Mismatch) -> tuple[Key, Op | None]:
    """The right value before the reference rearranges it, if it has the port's shape there."""
    log, shape = comparison.reference, comparison.port.values[mismatch.port].shape
    key, made = mismatch.reference, mismatch.other_made
    while (
        made is not None and log.values[key].shape != shape and log.only_moves(made) and len(made.inputs) == 1
    ):
        ((slot, key),) = made.inputs.items()
        made = log.maker(made, slot)
    return (key, made) if log.values[key].shape == shape else (mismatch.reference, mismatch.other_made)


def _places(comparison: OpComparison, mismatch: Mismatch) -> Iterator[EditPlace]:
    backend = comparison.case.backend
    end = len(comparison.port.ops) if mismatch.user is None else mismatch.user.index
    begin = 0 if mismatch.made is None else mismatch.made.index
    for each in sorted(comparison.port.returns, key=lambda each: (not each.given, -each.moment)):
        if begin <= each.moment <= end and key_of(backend.to_array(each.tensor)) == mismatch.port:
            spot = find_returned(each.file, each.line)
            if spot is not None:
                yield EditPlace(spot, None, each.moment, each.around)
    made = None if mismatch.made is None else fixing.spot_of(mismatch.made)
    making = [] if made is None or mismatch.made is None else [EditPlace(made, None, mismatch.made.index)]
    uses = list(_uses(comparison, mismatch))
    # a value that both sides have is right where it is made, unless nothing else helps
    yield from (*uses, *making) if comparison.knows(mismatch.port) else (*making, *uses)


def _uses(comparison: OpComparison, mismatch: Mismatch) -> Iterator[EditPlace]:
    user, slot = mismatch.user, mismatch.slot
    if user is None:
        order, side, slot, _ = comparison.check.port
        if side == "output":
            spot = fixing.at_the_end(comparison.case.module) if order == comparison.case.call else None
            if spot is not None:
                yield EditPlace(spot, None, len(comparison.port.ops))
            return
        user = next((op for op in comparison.port.ops if op.call == order), None)
    spot = None if user is None else fixing.spot_of(user)
    if user is not None and spot is not None and slot is not None:
        yield EditPlace(spot, slot, user.index)


def verdict(comparison: OpComparison, patch: Patch) -> int:
    """How much of the call is right with a patch: all, every compared place, or the wrong place alone."""
    case, whole = comparison.case, comparison.case.at_outputs()
    with patched(case.precise.port.modules.values(), patch) as functions:
        if not functions:
            return WORSE
        free = whole.run(inside=False)  # calls may come in another order than before
        if whole.score(free) <= case.limit:
            return MENDED
        comes_of_it = _results(comparison, whole, free)
        if comes_of_it in comparison.outcomes:  # another spelling of what was tried
            return comparison.outcomes[comes_of_it]
        calls = CallOrder()
        led = case.run(listener=calls)
    found = _judged(comparison, whole, free, led, calls)
    if comes_of_it is not None:
        comparison.outcomes[comes_of_it] = found
    return found


def _results(comparison: OpComparison, whole: Case, free: repeat.RepeatResult | None) -> object:
    """What the call gives, bit by bit, and from where it is seen; None where it gives nothing."""
    given = [] if free is None else [free.places.get(check.port) for check in whole.checks]
    if not given or any(array is None for array in given):
        return None
    return comparison.check.port, tuple(key_of(array) for array in given if array is not None)


def _judged(
    comparison: OpComparison,
    whole: Case,
    free: repeat.RepeatResult | None,
    led: repeat.RepeatResult | None,
    calls: CallOrder,
) -> int:
    case = comparison.case
    # leading goes by the order of calls: in another order only the free run tells, with all its rounding
    if led is None or calls.paths != [node.path for node in case.precise.port.trace.subtree(case.start)]:
        return MENDED if whole.with_drift().score(free) <= case.limit else WORSE
    if case.score(led) <= case.limit:
        if case.has_others_inside:
            return RIGHT
        return MENDED if whole.with_drift().score(free) <= case.limit else RIGHT
    observed = led.places.get(comparison.check.port)
    if observed is None:
        return WORSE
    right = case.judge(observed, case.expected(comparison.check, observed), comparison.check) <= case.limit
    return BETTER if right else WORSE


def wrong_with(comparison: OpComparison, patch: Patch) -> list[repeat.Place] | None:
    """Where else the call is wrong with a patch; None: that cannot be told."""
    case, calls = comparison.case, CallOrder()
    with patched(case.precise.port.modules.values(), patch) as functions:
        led = case.run(listener=calls) if functions else None
    if not functions:
        return None
    if led is None or calls.paths != [node.path for node in case.precise.port.trace.subtree(case.start)]:
        return None  # of calls in another order nothing can be told by their places
    others = [check for check in case.checks[1:] if check.port[3] == "forward"]
    return [check.port for check in others if comparison.score_at(led, check) > case.limit]


class CallOrder:
    """Records which modules are called, in order."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def entered(self, call: Call) -> None:
        self.paths.append(call.path)

    def left(self, call: Call, computed: Any, given: Any) -> None:
        pass
