"""Stage: the parameters that the first step starts from, by fingerprints that do not depend on their layout.

Weights may be kept otherwise and mean the same, so a difference counts only where a call that uses the
parameter gives something else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from parfocal.brief import some
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Claim, Divergence, Finding, Grounds, ProvenBy
from parfocal.matching.values import distance
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.workflow.recorded_runs.call_errors import JUMP, jump
from parfocal.workflow.recorded_runs.gradients import sites_of
from parfocal.workflow.recorded_runs.pair import NOTHING_FOUND, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.parameters import ParameterTie, arrangement_of
from parfocal.workflow.recorded_runs.rank_causes import weights_cause
from parfocal.workflow.recorded_runs.tensors import Arrangement, RelativeDistance
from parfocal.workflow.recorded_runs.ties import tied_otherwise

COPY = phrase("copy the reference's weights into the port: pf.transfer, or parfocal convert")
SAME_BEGINNING = phrase(
    "let both begin with the same weights: save those of the reference before its first step, and record "
    "both scripts with parfocal record --weights FILE, which gives them to either model"
)
FEWEST_OTHERS, MOST_DRAWN = limits.recorded.OTHER_BEGINNING.value
DIFFERENT = limits.recorded.WEIGHTS_DIFFER.value
EQUAL = limits.recorded.WEIGHTS_EQUAL.value


def compare_weights(pair: StepPair, diverged: bool) -> StageOutcome:
    """Only where the runs begin: later weights are what updates made of these."""
    if not pair.first:
        return NOTHING_FOUND
    if not (pair.reference.parameters and pair.port.parameters):
        return StageOutcome(left_out=_missing(pair))
    found: list[Divergence] = []
    findings: list[Finding] = []
    others: dict[str, Divergence] = {}
    count = 0
    for tie in pair.parameters:
        if tie.port and pair.weight_error(tie) is None:
            continue
        count += 1
        divergence = _judge(pair, tie)
        if divergence is None:
            continue
        if _has_other_values(divergence):
            others[tie.name] = divergence
        if _is_seen(pair, tie):
            found.append(divergence)
        elif _was_given_the_same(pair, tie):
            findings.append(_finding(divergence))
    total = len(pair.port.parameters)
    begun = _other_beginning(pair, others)
    if begun is not None and found:
        found = [begun, *(each for each in found if each not in others.values())]
    return StageOutcome(tuple(found), tuple(findings), (Compared("parameters", count, total),))


def _has_other_values(divergence: Divergence) -> bool:
    """Not the same in another order, nor those of another parameter, nor none at all."""
    cause = divergence.cause
    return cause is not None and cause.code == "weight.mismatched" and divergence.error is not None


def _other_beginning(pair: StepPair, others: Mapping[str, Divergence]) -> Divergence | None:
    """Of runs that begin from weights of their own: one thing to say, and before all else."""
    drawn = [tie for tie in pair.parameters if tie.port and _was_drawn(pair, tie)]
    if len(others) < FEWEST_OTHERS or len(others) < MOST_DRAWN * len(drawn):
        return None
    message = phrase(
        "the runs begin with other weights: {count} of {total} parameters have other values ({names})",
        count=len(others),
        total=len(pair.port.parameters),
        names=some(list(others)),
    )
    cause = Claim("weight.mismatched", message, SAME_BEGINNING).likely(Grounds.VALUES)
    return replace(max(others.values(), key=lambda each: each.score), cause=cause)


def _was_drawn(pair: StepPair, tie: ParameterTie) -> bool:
    """Whether it holds different numbers: all zeros or ones are the same on every side."""
    own = pair.port.parameters[tie.port].before
    return own is not None and own.fingerprint.minimum != own.fingerprint.maximum


def _was_given_the_same(pair: StepPair, tie: ParameterTie) -> bool:
    """Whether what uses it says anything of it: other inputs give other outputs in any case."""
    return all(user.errors.given <= JUMP * pair.unit for user in tie.users)


def _missing(pair: StepPair) -> tuple[LeftOut, ...]:
    reason = {
        (True, False): Reason.ONLY_REFERENCE,
        (False, True): Reason.ONLY_PORT,
    }.get((bool(pair.reference.parameters), bool(pair.port.parameters)))
    return () if reason is None else (LeftOut(phrase("parameters"), reason),)


def _is_seen(pair: StepPair, tie: ParameterTie) -> bool:
    """Whether a call that uses the parameter gives something else than its inputs explain."""
    if not tie.users:
        return pair.output_error > JUMP * pair.unit
    limit = pair.limit
    return any(jump(user.errors.given, user.errors.made) > limit for user in tie.users)


def _finding(divergence: Divergence) -> Finding:
    words = divergence.cause.message if divergence.cause is not None else divergence.message
    message = phrase("{words}; what is computed with it is the same", words=words)
    return Finding("run.weights", message, divergence.reference, divergence.port)


def _judge(pair: StepPair, tie: ParameterTie) -> Divergence | None:
    apart = pair.weight_error(tie)
    cause = None
    if not tie.port:
        message = phrase("the port has no parameter for {reference}", reference=tie.reference)
        cause = Claim("weight.missing", message, COPY).likely(Grounds.STRUCTURE)
        apart = RelativeDistance(math.inf)
    elif apart is not None:
        cause = tied_otherwise(tie, pair.reference, pair.port) if apart.error > DIFFERENT else None
        cause = cause or _explain(pair, tie, apart)
    if cause is None or apart is None:
        return None
    noise = NOTHING if apart.comparison is None else Size(EQUAL, EQUAL)
    return Divergence(
        "weights",
        *sites_of(tie),
        phrase("parameter {name}", name=tie.name),
        apart.comparison,
        noise,
        apart.error / EQUAL,
        cause=cause,
        step=pair.step,
        rank=pair.rank,
    )


def _explain(pair: StepPair, tie: ParameterTie, apart: RelativeDistance) -> Cause | None:
    own, other = pair.port.parameters[tie.port].before, pair.reference.parameters[tie.reference].before
    if own is None or other is None or apart.error <= DIFFERENT:
        return None
    of_rank = weights_cause(pair, tie)
    if of_rank is not None:
        return of_rank
    if _same_values(own, other):
        return _other_order(pair, tie, own, other, apart)
    belongs = [
        path
        for path, moments in pair.reference.parameters.items()
        if path != tie.reference and moments.before is not None and _same_values(own, moments.before)
    ]
    if belongs and own.fingerprint.minimum != own.fingerprint.maximum:
        message = phrase(
            "{port} has the values that belong to {belongs}, not those of {reference}",
            port=tie.port,
            belongs=belongs[0],
            reference=tie.reference,
        )
    else:
        message = phrase(
            "{port} has other values than {reference} of the reference",
            port=tie.port,
            reference=tie.reference,
        )
    return Claim("weight.mismatched", message, COPY).likely(Grounds.VALUES)


def _same_values(own: TensorData, other: TensorData) -> bool:
    """In any order."""
    return distance(own.fingerprint, other.fingerprint) <= EQUAL


def _other_order(
    pair: StepPair, tie: ParameterTie, own: TensorData, other: TensorData, apart: RelativeDistance
) -> Cause:
    """A square matrix that was not transposed, or any other order of the same values.

    Sketches tell only that the order is another: then the likelier comes first.
    """
    message = phrase(
        "{port} has the values of {reference} in another order", port=tie.port, reference=tie.reference
    )
    left = distance(own.fingerprint, other.fingerprint)  # whatever the order
    permuted = Claim("weight.permuted", message, COPY).proven(
        ProvenBy.RELATED, apart.error / EQUAL, left / EQUAL
    )
    if len(own.shape) != 2 or own.shape[0] != own.shape[1]:
        return permuted
    message = phrase(
        "{port} is a square matrix that lies the wrong way round: {reference} transposed",
        port=tie.port,
        reference=tie.reference,
    )
    transposed = Claim(
        "weight.transposed", message, phrase("transpose {port} when it is copied", port=tie.port)
    )
    arrays = pair.port.tensors.array(own), pair.reference.tensors.array(other)
    if arrays[0] is None or arrays[1] is None:
        return replace(transposed.likely(Grounds.VALUES), alternatives=(permuted,))
    lies = arrangement_of(tie, pair.reference, pair.port, own, other)
    turned = arrays[1] if lies is Arrangement.TRANSPOSED else arrays[1].T
    after = compare_arrays(arrays[0], turned).rel_l2
    if after > DIFFERENT:
        return permuted
    return transposed.proven(ProvenBy.RELATED, apart.error / DIFFERENT, after / DIFFERENT)
