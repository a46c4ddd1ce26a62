"""Puts every own divergence to the hypotheses, in order, and keeps what passes.

Hypotheses are grouped in rounds: what can be read first, what must be solved for later. The
first round with a proof decides; further proofs of the same round are alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from parfocal.attempts import Attempts
from parfocal.attribution.divisions import NOT_DIVIDED, DividedWork
from parfocal.attribution.measures import Measure
from parfocal.backends.protocol import Array
from parfocal.explain import fused_layers
from parfocal.explain.allowance import Allowance
from parfocal.explain.backward import equals, functions, gradients
from parfocal.explain.case import Case
from parfocal.explain.case_facts import Buffers, Check
from parfocal.explain.causes import OpLine, ProvenChange, cause, nearer, number
from parfocal.explain.describing import described
from parfocal.explain.fixes.constructing import in_the_constructor
from parfocal.explain.layers import (
    argument_count,
    argument_order,
    conventions,
    masked,
    mirror,
    rates,
    relations,
    settings,
    wrong_layer,
)
from parfocal.explain.ops.explaining import both_ways, comparison_of, ops, place, still_wrong, ways
from parfocal.explain.ops.sharing import in_shared_code
from parfocal.explain.rebuilding import rebuilding
from parfocal.explain.reproducing import Reproduction, reproduction
from parfocal.explain.scripting import Rebuilding
from parfocal.judge.floors import NOTHING, Size
from parfocal.judge.verdict import Divergence, Site, made_by_the_code_of
from parfocal.matching.pairing import Pairing
from parfocal.matching.spans import starts_of_runs
from parfocal.phrases import joined, phrase
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.repeat import Place
from parfocal.weights.plan import Entry

Hypothesis = Callable[[Case], Iterator[ProvenChange]]

# A new cause is one more function in a round, and one more test.
FORWARD: tuple[tuple[Hypothesis, ...], ...] = (
    (settings.differing_settings, settings.training_flag),
    conventions.HYPOTHESES,
    (argument_count.other_arguments, argument_order.tensors_in_another_order, argument_order.other_values),
    (masked.other_mask,),
    (wrong_layer.another_layer,),
    (settings.another_kind,),
    (mirror.solved_activation,),
    (fused_layers.other_activation,),
    (fused_layers.piece_by_piece,),
    (fused_layers.first_half,),
    (ops,),
    (mirror.solved_setting,),
    (settings.another_activation,),
    (settings.other_mode,),
    (ways,),
    relations.HYPOTHESES,
)


BACKWARD: tuple[tuple[Hypothesis, ...], ...] = (
    (equals.ties,),
    (gradients.stopped,),
    (gradients.gradient_factor,),
    (gradients.clipped,),
    (functions.other_backward,),
)
ROUNDS = {"forward": FORWARD, "backward": BACKWARD}
UPDATES: tuple[Hypothesis, ...] = (rates.other_share, ops, ways)  # of a buffer that code moves on


class Explainer:
    """Explains the divergences of one open alignment."""

    def __init__(
        self,
        precise: NoiseFloors,
        pairing: Pairing,
        seen: Sequence[Measure],
        limit: float,
        doubtful: Collection[str] = (),
        buffers: Buffers = ({}, {}),
        entries: Sequence[Entry] = (),
        divided: DividedWork = NOT_DIVIDED,
        *,
        reproducing: bool = False,
        attempts: Attempts | None = None,
        thorough: bool = False,
    ) -> None:
        """``doubtful``: modules of the port of which it is not known what they correspond to.

        ``buffers``: of the reference and of the port, before anything ran. ``entries``: which weights
        of the two are the same. ``divided``: calls that divide their work otherwise with the
        code around. ``reproducing``: whether the first mistake is taken out, for a script.
        ``thorough``: the search may be as much work as it takes.
        """
        self.reproducing = reproducing
        self.entries = entries
        self.buffers = buffers
        self.reproduction: Reproduction | Rebuilding | None = None  # of the first that can be taken out
        self.attempts = attempts or Attempts()  # hypotheses that could not be asked are noted there
        self.allowance = Allowance(precise.effort, thorough=thorough)
        self.precise = precise
        self.doubtful = frozenset(doubtful)
        self.limit = limit
        self._reference_of = {pair.port: pair.reference for pair in pairing.pairs}
        self._paired = frozenset(pair.reference for pair in pairing.pairs)
        self._unjudged = fused_layers.unjudged(pairing, divided)
        self._divided = DividedWork(
            divided.reference_giving | set(self._unjudged.values()),
            divided.giving | self._unjudged.keys(),
            divided.taking,
        )
        self._starts = starts_of_runs(pairing)
        self._groups = fused_layers.CallGroups(pairing, precise.reference.trace, precise.port.trace)
        self._found: dict[int, list[Divergence]] = {}  # explained, by call
        # what is wrong in a call with what was proven there mended; a call that is not here was not tried
        self._left: dict[int, frozenset[Place]] = {}
        self._callers: set[str] = set()  # to blame for what another call is given
        self._nothing_more: set[tuple[object, ...]] = set()  # a line of a loop is looked at in one round
        self._told_lines: set[tuple[object, ...]] = (
            set()
        )  # with a cause: in the next round it is the same one
        self._seen: dict[int, list[Measure]] = {}
        wrong = (each for each in seen if each.direction == "forward" and each.score > limit)
        self._guilty = frozenset(precise.port.trace.around(each.port, each.levels) for each in wrong)
        for each in seen:
            self._seen.setdefault(precise.port.trace.around(each.port, each.levels), []).append(each)

    def explain(self, divergence: Divergence, seen: Measure) -> Divergence:
        """The divergence with its cause, or with what its error looks like."""
        path = "" if divergence.port is None else divergence.port.path
        if not self.allowance.begin(path):
            return divergence
        with self.attempts.attempt(phrase("the cause"), path):
            return self._with_cause(divergence, seen)
        return divergence

    def _with_cause(self, divergence: Divergence, seen: Measure) -> Divergence:
        case = self._case(divergence, seen)
        if case.node.path in self.doubtful:
            return divergence
        around = self._around(case, seen)
        if around is not None:
            divergence, case = around
        for hypotheses in ROUNDS[case.direction]:
            if self.allowance.is_used_up:
                self.allowance.cut(case.node.path)
                break
            proofs = [proof for hypothesis in hypotheses for proof in self._asked(hypothesis, case)]
            if proofs:
                found = proofs[0]
                proofs = [self._placed(found, case), *proofs[1:]]
                explained = self._explained(divergence, proofs)
                if self.reproducing and self.reproduction is None:
                    self.reproduction = self._reproduction(case, explained, found)
                self._found.setdefault(case.call, []).append(explained)
                self._told_lines.add(self._line_of(seen))
                self._left.pop(case.call, None)
                with self.attempts.attempt(phrase("what else is wrong"), case.node.path):
                    left = still_wrong(case, proofs[0])
                    if left is not None:
                        self._left[case.call] = left
                if explained.port is not None and explained.port.path != case.node.path:
                    self._callers.add(explained.port.path)
                return explained
        return self._described(divergence, case)

    def _around(self, case: Case, seen: Measure) -> tuple[Divergence, Case] | None:
        """A call that is given another shape, and is right when it is given the reference's: who calls it
        is to blame.
        """
        if seen.relative is not None or not seen.own or seen.direction != "forward":
            return None
        parent, other = case.node.parent, case.reference_node
        if parent is None or other is None or case.score(case.baseline()) > case.limit:
            return None
        shapes = zip(case.node.inputs.items(), other.inputs.items(), strict=False)
        for (slot, mine), (other_slot, theirs) in shapes:
            if mine.data.shape != theirs.data.shape:
                calls = seen.port, case.counterpart or 0
                unmeasured = (
                    Size(math.inf, math.inf),
                    NOTHING,
                )  # another shape: nothing to measure
                handed = Measure(*calls, "input", slot, other_slot, "forward", None, *unmeasured)
                node = self.precise.port.trace.nodes[parent]
                site = Site(node.path, node.kind, None, case.node.file, case.node.line, node.settings)
                what = phrase(
                    "input {slot} of {path}, {made_by_the_code_of}",
                    slot=slot,
                    path=case.node.path,
                    made_by_the_code_of=made_by_the_code_of(node.path),
                )
                message = phrase(
                    "shape {port} in the port, {reference} in the reference",
                    port=list(mine.data.shape),
                    reference=list(theirs.data.shape),
                )
                divergence = replace(case.divergence, port=site, what=what, message=message)
                return divergence, self._case(divergence, handed)
        return None

    def further(
        self, divergence: Divergence, seen: Measure, *, may_explain: bool, needs_proof: bool
    ) -> Divergence | None:
        """Another mistake of code that has one already; None when it follows from that one.

        ``needs_proof``: the code is guilty by what was told of it, not by its weights.

        Every stretch of code between two calls starts from the reference's values. So a place follows only
        if it is right once the mistakes told before are mended, or if it is one of these again.
        """
        nodes = self.precise.port.trace.nodes
        call = self.precise.port.trace.around(seen.port, seen.levels)
        place = seen.port, seen.side, seen.slot, seen.direction
        apart = call in self._left  # wrong also with what was told there mended
        if apart:
            if place not in self._left[call]:
                return None
        elif not needs_proof and nodes[call].path not in self._callers:
            return None
        line = self._line_of(seen)
        if line in self._nothing_more:
            return None
        explained = self.explain(divergence, seen) if may_explain else divergence
        known = [  # of the code itself, of it for what it calls, or of the code that is to blame
            each
            for order, found in self._found.items()
            for each in found
            if each is not explained
            and (call in (order, nodes[order].parent) or _of_one_module(explained, each))
        ]
        again = (
            line in self._told_lines
            if explained.cause is None
            else any(_are_alike(explained, each, apart=apart) for each in known)
        )
        if again:
            self._nothing_more.add(line)
            return None
        return replace(explained, inherited=False, reason=None)

    def _line_of(self, seen: Measure) -> tuple[object, ...]:
        """The line of code that gives a call of a module what it is given, and which of its tensors."""
        node = self.precise.port.trace.nodes[seen.port]
        return node.path, node.file, node.line, seen.side, seen.slot, seen.direction

    def explain_updates(
        self,
        updates: Sequence[tuple[Divergence, Check]],
        right: Sequence[Check],
        left: Mapping[str, Array],
    ) -> list[Divergence]:
        """Buffers of one module that a call leaves otherwise than the reference's; what a mended line
        puts right as well follows from that.

        ``right``: the module's other buffers. ``left``: in the reference's, after the run.
        """
        path = updates[0][0].port.path if updates and updates[0][0].port is not None else ""
        found = [divergence for divergence, _ in updates]
        if not self.allowance.begin(path):
            return found
        with self.attempts.attempt(phrase("an update"), path):
            return self._with_updates(updates, right, left)
        return found

    def _with_updates(
        self,
        updates: Sequence[tuple[Divergence, Check]],
        right: Sequence[Check],
        left: Mapping[str, Array],
    ) -> list[Divergence]:
        checks = [check for _, check in updates]
        cases = [
            self._update(each, (check, *(c for c in checks if c is not check), *right), left)
            for each, check in updates
        ]
        explained: list[Divergence] = []
        wrong = {check.port for check in checks}
        for case in sorted(cases, key=_moment):
            divergence = case.divergence
            for hypothesis in UPDATES if case.checks[0].port in wrong else ():
                proof = next(iter(self._asked(hypothesis, case)), None)
                if proof is not None:
                    divergence = self._explained(divergence, [_of_update(self._placed(proof, case), case)])
                    # a share is proven for all of them
                    other = frozenset() if hypothesis is rates.other_share else still_wrong(case, proof)
                    wrong &= wrong - {case.checks[0].port} if other is None else other
                    break
            explained.append(divergence)
        known = any(each.cause is not None for each in explained)
        if not known:
            return [self._described(case.divergence, case) for case in cases]
        return sorted(
            (replace(each, inherited=each.cause is None) for each in explained),
            key=lambda each: each.inherited,
        )

    def _update(self, divergence: Divergence, checks: tuple[Check, ...], left: Mapping[str, Array]) -> Case:
        calls = checks[0].port[0], checks[0].reference[0]
        return Case(
            divergence,
            self.precise,
            *calls,
            checks,
            self.limit,
            self.buffers,
            self._paired,
            self._divided,
            left=left,
            allowance=self.allowance,
        )

    def _described(self, divergence: Divergence, case: Case) -> Divergence:
        """What there is to say without a cause."""
        if divergence.cause is not None:
            return divergence
        path, where, ways, shape = case.node.path, None, "", ""
        with self.attempts.attempt(phrase("the pieces"), path):
            where = fused_layers.place_in_pieces(case)
        where = where or self._place(case)
        if where is not None:
            with self.attempts.attempt(phrase("both ways"), path):
                ways = both_ways(case)
        with self.attempts.attempt(phrase("the shape of the error"), path):
            shape = described(case)
        message = divergence.message or joined("; ", (part for part in (shape, ways) if part))
        return replace(
            divergence, message=message, port=nearer(divergence.port, where, self.precise.port.trace.nodes)
        )

    def _reproduction(
        self, case: Case, explained: Divergence, proof: ProvenChange
    ) -> Reproduction | Rebuilding | None:
        """A script that shows the mistake by itself, or one that builds both models."""
        assert explained.cause is not None
        with self.attempts.attempt(phrase("a script"), case.node.path):
            apart = reproduction(case, explained.cause)
            return apart or rebuilding(case, explained, proof, self._reference_of, self.entries)
        return None

    def _placed(self, proof: ProvenChange, case: Case) -> ProvenChange:
        """With the op's own line, also when the cause was found without looking at ops."""
        for step in (in_shared_code, in_the_constructor):
            with self.attempts.attempt(step.__name__, case.node.path):
                proof = replace(proof, fix=step(case, proof.fix))
        return proof if proof.port is not None else replace(proof, port=self._place(case))

    def _place(self, case: Case) -> OpLine | None:
        with self.attempts.attempt(phrase("the ops"), case.node.path):
            return place(case)
        return None

    def _asked(self, hypothesis: Hypothesis, case: Case) -> list[ProvenChange]:
        """A hypothesis that cannot be asked is no reason to lose the verdict, nor what it proved before."""
        proofs: list[ProvenChange] = []
        with self.attempts.attempt(hypothesis.__name__, case.node.path):
            proofs.extend(hypothesis(case))
        return proofs

    def _explained(self, divergence: Divergence, proofs: list[ProvenChange]) -> Divergence:
        first, precise = proofs[0], self.precise
        return replace(
            divergence,
            cause=cause(proofs, divergence.score),
            port=nearer(divergence.port, first.port, precise.port.trace.nodes),
            reference=nearer(divergence.reference, first.reference, precise.reference.trace.nodes),
        )

    def _case(self, divergence: Divergence, seen: Measure) -> Case:
        call = self._starts.get(seen.port, self.precise.port.trace.around(seen.port, seen.levels))
        call = self._sent_back_to(call) if seen.direction == "backward" else call
        counterpart = self._reference_of.get(call)
        if counterpart is None:
            counterpart = seen.reference if seen.own else self._maker(seen)
        others = [
            each
            for each in self._seen.get(call, ())
            if each is not seen
            and each.relative is not None
            # what the whole model is given was made by no call
            and (each.port, each.side, each.direction) != (call, "input", "forward")
        ]
        checks = tuple(_check(each) for each in (seen, *others))
        return Case(
            divergence,
            self.precise,
            call,
            counterpart,
            checks,
            self.limit,
            self.buffers,
            self._paired,
            self._divided,
            group=self._groups.of(seen.port) if seen.own else None,
            unjudged=self._unjudged,
            allowance=self.allowance,
            besides=self._guilty - {call},
        )

    def _sent_back_to(self, call: int) -> int:
        """The call, or the next around it whose output gradients are known."""
        nodes, bindings = self.precise.port.trace.nodes, self.precise.port.script.ties
        while call in self._divided.giving and call in bindings and not bindings[call].outputs:
            call = nodes[call].parent or 0
        return call

    def _maker(self, seen: Measure) -> int | None:
        """The reference's call whose own code makes what another is given: not one that only hands it on."""
        nodes = self.precise.reference.trace.nodes
        parent = nodes[seen.reference].parent
        if seen.side != "input" or seen.direction != "forward":
            return parent
        given = nodes[seen.reference].inputs[seen.reference_slot].data
        while parent is not None and any(value.data is given for value in nodes[parent].inputs.values()):
            parent = nodes[parent].parent
        return parent


def _moment(case: Case) -> tuple[bool, int]:
    """When the port's code makes what a buffer is left with: later ones may be made of it."""
    comparison = comparison_of(case)
    made = None if comparison is None else comparison.end
    return made is None, 0 if made is None else made.index


def _of_update(proof: ProvenChange, case: Case) -> ProvenChange:
    """A number of an update that makes all of it so many times as large is a momentum."""
    ratio = rates.update_ratio(case) if proof.code in ("op.scale", "op.order", "config.other") else None
    if ratio is None:
        return proof
    message = phrase(
        "what is new counts {ratio} times as much as in the reference: {message}",
        ratio=number(ratio),
        message=proof.message,
    )
    return replace(proof, code="buffer.momentum", message=message)


def _check(seen: Measure) -> Check:
    return Check(
        (seen.port, seen.side, seen.slot, seen.direction),
        (seen.reference, seen.side, seen.reference_slot, seen.direction),
        seen.floor,
    )


def _of_one_module(one: Divergence, other: Divergence) -> bool:
    return one.port is not None and other.port is not None and one.port.path == other.port.path


def _are_alike(found: Divergence, known: Divergence, *, apart: bool) -> bool:
    """The same line for the same reason; an order of calls that differs shows at each of them.

    ``apart``: the place is still wrong with what was known mended, so an order there is another mistake.
    """
    new, old = found.cause, known.cause
    if new is None or old is None or _line(found) != _line(known):
        return False
    return new.code == old.code or old.code == "op.order" or (new.code == "op.order" and not apart)


def _line(divergence: Divergence) -> tuple[str | None, int | None] | None:
    return None if divergence.port is None else (divergence.port.file, divergence.port.line)
