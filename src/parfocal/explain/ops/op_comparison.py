"""The ops of both sides around one divergence, the values they share, and how to try a change.

The suspects are the port's ops between values that the reference has too and the value that is
wrong. A change is tried on these ops alone first, and then proven by running the port's call again
with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parfocal.attribution.experiment import Prepare
from parfocal.backends.protocol import Array, OnOp, OpCall
from parfocal.brief import told
from parfocal.capture.nested_values import flatten, replace_call
from parfocal.explain.case import Case
from parfocal.explain.case_facts import Check
from parfocal.explain.ops.expanding import expanded, expanded_layer, fills_in
from parfocal.explain.ops.log import Key, Maker, Op, OpLog, key_of
from parfocal.explain.ops.names import POINTWISE
from parfocal.explain.ops.remakes import Feeding, Remake
from parfocal.explain.ops.values import ROUNDING, Matches, laid_out, match, same
from parfocal.explain.ops.watching import watched
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.replay.repeat import Place, RepeatResult

TRIALS = limits.searches.OP_TRIALS.value
ALLOWANCE = limits.causes.NEARER_TO_RIGHT.value
INFINITE = float("inf")


class ImpossibleError(Exception):
    """The framework refuses to compute an op with a change."""


Edits = Mapping[int, Remake]  # index of an op in the log -> what it gives instead


@dataclass(slots=True)
class OpComparison:
    """``suspects`` and ``counterparts``: ops of the port and of the reference, up to the wrong value.

    ``right`` is None where nothing of the reference's own code gives what is expected.
    """

    case: Case
    port: OpLog
    reference: OpLog
    matches: Matches
    wrong: Key
    right: Key | None
    end: Op | None  # gave the wrong value
    other_end: Op | None  # gave the right one
    suspects: list[Op]
    counterparts: list[Op]
    trials: int = 0
    left: list[Place] | None = None  # still wrong with the last change that was proven; None: not tried
    on_the_way: bool = False  # judged at one value on the way alone, whatever becomes of it
    accepted: list[Edits] = field(default_factory=list)  # the changes that put that value right
    outcomes: dict[object, int] = field(default_factory=dict)  # lines that were tried, by what comes of them

    def knows(self, key: Key) -> bool:
        return key in self.matches.to_reference

    def known_to_port(self, key: Key) -> bool:
        return key in self.matches.to_port

    @property
    def check(self) -> Check:
        return self.case.checks[0]

    def elsewhere(self) -> Iterator[OpComparison]:
        """The same code seen from every other place where it gives something wrong."""
        self.case.baseline()  # once for all of them
        for check in self.case.checks[1:]:
            if check.port[3] != "forward":
                continue
            case = replace(self.case, checks=(check,))
            observed = case.observed()
            if (
                observed is not None
                and case.judge(observed, case.expected(check, observed), check) > case.limit
            ):
                comparison = _comparison(case, self.port, self.reference)
                if comparison is not None:
                    yield comparison

    def with_sources(self) -> list[Op]:
        """The suspects and the ops right before them, between which a number may be missing."""
        indices = {op.index for op in self.suspects}
        taken = {key for op in self.suspects for key in op.inputs.values()}
        return [op for op in self.port.ops if op.index in indices or taken & set(op.outputs.values())]

    def like(self, op: Op) -> Iterator[Op]:
        """The reference's ops of the same name on the same values, in whatever order."""
        wanted = [key for key in op.inputs.values() if _is_floating(self.port.values[key])]
        for other in self.reference.ops:
            if other.name != op.name or other.is_module:
                continue
            left = [key for key in other.inputs.values() if _is_floating(self.reference.values[key])]
            if len(left) != len(wanted):
                continue
            for key in wanted:
                found = next((each for each in left if self.matches.are_one(key, each)), None)
                if found is None:
                    break
                left.remove(found)
            else:
                yield other

    def seen_at(self, wrong: Key, right: Key, end: Op | None, other_end: Op | None) -> OpComparison:
        """The same code judged at an intermediate value: changes that mend it are kept as candidates."""
        return replace(
            self, wrong=wrong, right=right, end=end, other_end=other_end, on_the_way=True, accepted=[]
        )

    def judged(self, array: Array) -> float:
        """The score that a value would have in place of the wrong one."""
        if self.on_the_way:
            assert self.right is not None
            expected = laid_out(self.reference.values[self.right], array.shape, array)
            return 0.0 if expected is not None and same(array.reshape(-1), expected.reshape(-1)) else INFINITE
        return self.case.judge(array, self.case.expected(self.check, array), self.check)

    def try_remade(self, op: Op, remake: Remake) -> float:
        """The score if this op, wherever the same line makes it, gives another result."""
        return self.try_edits({each.index: remake for each in self.alike(op)}, {op.index: remake})

    def try_fed(self, user: Op, slot: str, make: Callable[[], Any]) -> float:
        """The score when one op takes another tensor."""
        edits: Edits = {user.index: Feeding({slot: make})}
        if not self.on_the_way:
            return self.try_edits(edits)
        with self.case.backend.no_grad():
            score = self.judged(self.case.backend.to_array(make()))
        if score <= self.case.limit:
            self.accepted.append(edits)
        return score

    def try_edits(self, *choices: Edits) -> float:
        """The best score of changes to ops: tried first on the ops alone, then on the whole call."""
        best = INFINITE
        for edits in choices:
            if best <= self.case.limit:
                break
            local = self.on_ops_alone(edits)
            if self.on_the_way and local is not None and local <= self.case.limit:
                self.accepted.append(edits)
                best = local
            elif not self.on_the_way and (local is None or local <= self.case.limit):
                best = min(best, self._run(edits))
        return best

    def try_prepared(self, prepare: Prepare) -> float:
        """The score when the modules of the port's call are changed before it."""
        return INFINITE if self.on_the_way else self._judged_run(prepare=prepare)

    def _run(self, edits: Edits) -> float:
        by_order = {self.port.ops[index].order: remake for index, remake in edits.items()}

        def on_op(call: OpCall) -> Any:
            remake = by_order.get(call.order)
            return None if remake is None else remake(call)

        return self._judged_run(on_op=on_op)

    def _judged_run(self, prepare: Prepare | None = None, on_op: OnOp | None = None) -> float:
        self.trials += 1
        if self.trials > self.allowed:
            return INFINITE
        repeated = self.case.run(prepare, on_op=on_op)
        # at the place of the divergence alone: another mistake may show elsewhere
        score = self.score_at(repeated, self.check)
        if score <= self.case.limit:
            others = (check for check in self.case.checks[1:] if check.port[3] == "forward")
            wrong = (check for check in others if self.score_at(repeated, check) > self.case.limit)
            self.left = [check.port for check in wrong]
        return score

    def score_at(self, repeated: RepeatResult | None, check: Check) -> float:
        """The score at a place; 0 for a tensor that was rightly passed through and therefore not compared."""
        if repeated is None:
            return INFINITE
        observed = repeated.places.get(check.port)
        if observed is None:
            return self.case.score(repeated) if check is self.check else 0.0
        return self.case.judge(observed, self.case.expected(check, observed), check)

    def alike(self, op: Op) -> list[Op]:
        """The op wherever the same place in the source makes it."""
        same_line = [o for o in self.port.ops if (o.name, o.file, o.line) == (op.name, op.file, op.line)]
        return [o for o in same_line if self._rank(o) == self._rank(op)]

    def _rank(self, op: Op) -> int:
        """Which of the ops of this name it is in a visit of its line."""
        rank, index = 0, op.index - 1
        while index >= 0 and (self.port.ops[index].file, self.port.ops[index].line) == (op.file, op.line):
            rank += self.port.ops[index].name == op.name
            index -= 1
        return rank

    def on_ops_alone(self, edits: Edits, given: Mapping[Key, Any] | None = None) -> float | None:
        """The score of the wrong value with other results of some ops; None: only the whole call can tell."""
        try:
            value = self._recomputed(edits, given)
        except ImpossibleError:
            return INFINITE
        return None if value is None else self.judged(value)

    def recomputed(self, edits: Edits) -> Array | None:
        """The wrong value with other results of some ops; None: they cannot be made again alone."""
        try:
            return self._recomputed(edits, None)
        except ImpossibleError:
            return None

    def _recomputed(self, edits: Edits, given: Mapping[Key, Any] | None) -> Array | None:
        backend = self.case.backend
        new: dict[Maker | Key, Any] = {}
        new.update((given or {}).items())
        last: Any = None
        with backend.no_grad():
            for op in self.port.cone(self.end, lambda key: False):
                sources = {slot: op.makers.get(slot, key) for slot, key in op.inputs.items()}
                fed = {slot: new[source] for slot, source in sources.items() if source in new}
                if not fed and op.index not in edits:
                    continue
                if op.is_module and op.call in self.case.precise.port.script.ties:
                    continue  # gives the recorded values whatever it is given
                if not op.repeatable:
                    return None
                output = self._again(op, fed, edits.get(op.index))
                leaves = flatten(output).leaves
                for slot, key in op.outputs.items():
                    if slot in leaves:
                        new[op.index, slot] = new[key] = leaves[slot]
                        last = leaves[slot] if op is self.end and key == self.wrong else last
        return None if last is None else backend.to_array(last)

    def _again(self, op: Op, fed: Mapping[str, Any], remake: Remake | None) -> Any:
        assert op.function is not None
        args, kwargs = replace_call(op.args, op.kwargs, fed)
        try:
            output = op.function(*args, **kwargs)
            if remake is None:
                return output
            call = OpCall(op.order or 0, "", None, op.name, op.native, args, kwargs, output, op.function)
            return remake(call)
        except Exception as error:  # whatever a framework raises for a trial that cannot be
            problem = told(error)
            self.case.problems.append(problem)
            raise ImpossibleError(problem) from error

    @property
    def allowed(self) -> int:
        """How many trials, by how much of the model each has to run."""
        nodes = self.case.precise.port.trace.nodes
        start = nodes[self.case.start]
        share = len(nodes) / max(1, start.finished - start.order)
        return min(TRIALS[1], round(TRIALS[0] * share))


def _is_floating(array: Array) -> bool:
    return array.dtype.kind in "fV"


def make_comparison(case: Case) -> OpComparison | None:
    """Runs both calls once, op by op; None when there is nothing to see."""
    port = watched(case, own=True)
    if port is None:
        return None
    reference = OpLog() if case.counterpart is None else watched(case, own=False) or OpLog()
    bindings, names = case.precise.port.script.ties, {op.name for op in port.ops}
    alone = {op.name for op in port.ops if op.is_module and op.call not in bindings}
    # what the port does in one step too, by a function or by a layer that stands for one
    alike = (
        {op.name for op in port.ops if not op.is_module} | alone | (POINTWISE if alone & POINTWISE else set())
    )
    reference = expanded(reference, case.reference_backend.is_tensor, alike, names, fills=fills_in(port))
    reference = expanded_layer(case, reference)
    _add_boundary(case, reference)
    return _comparison(case, port, reference)


def _comparison(case: Case, port: OpLog, reference: OpLog) -> OpComparison | None:
    check = case.checks[0]
    wrong = _key_at(port, case.call, check.port)
    if wrong is None:
        return None
    right = _key_at(reference, case.counterpart, check.reference)
    if right is None:
        right = next(
            (key for key in (key_of(case.recorded(check.reference)),) if key in reference.values), None
        )
    matches = match(
        _before(port, check.port), _before(reference, check.reference), _rounding(case, port.values[wrong])
    )
    end = _maker_at(port, check.port) or port.giving(wrong)
    other = _maker_at(reference, check.reference) or (None if right is None else reference.giving(right))
    suspects = port.cone(end, lambda key: key in matches.to_reference)
    counterparts = reference.cone(other, lambda key: key in matches.to_port)
    return OpComparison(case, port, reference, matches, wrong, right, end, other, suspects, counterparts)


def _before(log: OpLog, place: Place) -> dict[Key, Array]:
    """The values that existed when the one at a place was made: later ones explain nothing."""
    user = next((op for op in log.ops if op.call == place[0] and place[1] == "input"), None)
    end = log.ended if user is None else user.index
    if end is None or end == len(log.ops):
        return log.values
    earlier = {key for op in log.ops[:end] for key in (*op.inputs.values(), *op.outputs.values())}
    later = {key for op in log.ops[end:] for key in op.outputs.values()}
    if user is None:  # what the call gave was exchanged for what it should give
        later |= {key for op in log.ops[end:] for key in op.inputs.values()}
        earlier |= set(log.results.values())
    return {key: array for key, array in log.values.items() if key in earlier or key not in later}


def _rounding(case: Case, observed: Array) -> float:
    """How many units in the last place two values may be apart and still be one: fewer for a small error."""
    expected = case.expected(case.checks[0], observed)
    epsilon = EPSILON.get(observed.dtype.name, 0.0)
    if expected is None or not epsilon or expected.shape != observed.shape:
        return ROUNDING
    right = expected.astype(np.float64)
    finite = np.isfinite(right) & np.isfinite(observed)
    size = float(np.linalg.norm(right[finite]))
    error = float(np.linalg.norm(observed.astype(np.float64)[finite] - right[finite]))
    apart = error / size / epsilon if size else INFINITE
    return float(np.clip(apart / ALLOWANCE, 2.0, ROUNDING))


def _key_at(log: OpLog, call: int | None, place: Place) -> Key | None:
    """The value at a place of a call or of one that it makes."""
    order, side, slot, _ = place
    if order == call and side == "output":
        return log.results.get(slot)
    made = next((op for op in log.ops if op.call == order), None)
    if made is None:
        return None
    return (made.inputs if side == "input" else made.outputs).get(slot)


def _maker_at(log: OpLog, place: Place) -> Op | None:
    order, side, slot, _ = place
    made = next((op for op in log.ops if op.call == order), None)
    if made is None:
        return log.maker_of_result(slot) if side == "output" and slot in log.results else None
    return made if side == "output" else log.maker(made, slot) if slot in made.inputs else None


def _add_boundary(case: Case, log: OpLog) -> None:
    """Values at the borders of the reference's call and of the calls inside it are known too."""
    if case.counterpart is None:
        bindings = case.precise.port.script.ties
        values = [
            value
            for order in (case.call, *case.node.children)
            if order in bindings
            for value in (bindings[order].inputs if order == case.call else bindings[order].outputs).values()
        ]
    else:
        nodes = case.precise.reference.trace.nodes
        own = nodes[case.counterpart]
        values = list(own.inputs.values())
        values += [value for order in own.children for value in nodes[order].outputs.values()]
    for value in values:
        array = case.supply(value.data)
        log.values.setdefault(key_of(array), array)


def is_same(comparison: OpComparison, mine: Key, theirs: Key) -> bool:
    """Whether two values are the same numbers in the same places."""
    a, b = comparison.port.values[mine], comparison.reference.values[theirs]
    return a.shape == b.shape and same(a.reshape(-1), b.reshape(-1))
