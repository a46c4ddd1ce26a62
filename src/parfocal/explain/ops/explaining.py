"""From a divergence made by a model's own code to the op that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from parfocal.explain.case import Case
from parfocal.explain.causes import OpLine, ProvenChange, line
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.ops.axis_roles import other_axes
from parfocal.explain.ops.differing import differences, other_ways, otherwise
from parfocal.explain.ops.hypotheses import HYPOTHESES
from parfocal.explain.ops.joint_edits import at_several_places
from parfocal.explain.ops.lengths import lengths_missing
from parfocal.explain.ops.locating import in_one_function, located
from parfocal.explain.ops.log import LAYER, OpLog
from parfocal.explain.ops.mismatches import narrowed
from parfocal.explain.ops.op_comparison import OpComparison, make_comparison
from parfocal.explain.ops.op_words import chain
from parfocal.explain.ops.rewriting import mended, wrong_with
from parfocal.explain.ops.subgraphs import between
from parfocal.phrases import Phrase, phrase, remade
from parfocal.replay.repeat import Place


def ops(case: Case) -> Iterator[ProvenChange]:
    """The first difference that holds, or the first guess that does."""
    comparison = comparison_of(case)
    if comparison is None:
        return
    for hypothesis in (
        differences,
        *(_with_line(each) for each in (lengths_missing, *HYPOTHESES, other_axes, at_several_places)),
        otherwise,
    ):
        for proof in hypothesis(comparison):
            yield _in_modules(comparison, _with_facts(proof))
            return


def ways(case: Case) -> Iterator[ProvenChange]:
    """How the two sides compute a value in different ways."""
    comparison = comparison_of(case)
    if comparison is not None:
        proofs = islice(other_ways(comparison), 1)
        yield from (_in_modules(comparison, _with_facts(proof)) for proof in proofs)


def _in_modules(comparison: OpComparison, proof: ProvenChange) -> ProvenChange:
    """The proof with the modules whose code its lines are, where only the lines are known."""
    port, reference = proof.port, proof.reference
    return replace(
        proof,
        port=None if port is None else _in_module(comparison.port, port),
        reference=None if reference is None else _in_module(comparison.reference, reference),
    )


def _in_module(log: OpLog, where: OpLine) -> OpLine:
    """The module of an op of that line, or of another one of the same function."""
    if where.module is not None:
        return where
    here = [op for op in log.ops if (op.file, op.line) == (where.file, where.line)]
    near = here or [op for op in log.ops if in_one_function(op.file, op.line, where.file, where.line)]
    likely = [op for op in near if op.name == where.op] or near
    if any(op.owner[0] is None for op in likely):
        return where  # the code under investigation itself, whichever other modules run the same line
    return replace(where, module=likely[0].owner[0], kind=likely[0].owner[1]) if likely else where


def _with_facts(proof: ProvenChange) -> ProvenChange:
    """The proof with its facts: the message with layers named by what they do, not by their paths."""
    if proof.facts:
        return proof
    return replace(proof, facts=(remade(proof.message, _without_path),))


def _without_path(part: str) -> str:
    return part.values["does"] if isinstance(part, Phrase) and part.template == LAYER else part


def _with_line(
    hypothesis: Callable[[OpComparison], Iterator[ProvenChange]],
) -> Callable[[OpComparison], Iterator[ProvenChange]]:
    """A hypothesis that looks at no single mismatch; its proofs get a line tried on the whole call."""
    return lambda comparison: (mended(comparison, None, proof) for proof in hypothesis(comparison))


def place(case: Case) -> OpLine | None:
    """The line of the port's code that a divergence comes from, whatever the cause."""
    comparison = comparison_of(case)
    where = None if comparison is None else located(comparison)
    return where if where is None or comparison is None else _in_module(comparison.port, where)


def still_wrong(case: Case, proof: ProvenChange) -> frozenset[Place] | None:
    """Where the code is wrong with what was proven last in place; None: it was not run so."""
    comparison = comparison_of(case)
    if comparison is None or comparison.left == []:
        return frozenset()  # a change of a layer was judged at all places
    left = wrong_with(comparison, proof.fix) if isinstance(proof.fix, Patch) else comparison.left
    return None if left is None else frozenset(left)


def both_ways(case: Case) -> str:
    """What the two sides do up to the place where they part, in words."""
    comparison = comparison_of(case)
    for mismatch in [] if comparison is None else narrowed(comparison)[:1]:
        assert comparison is not None
        own, others = between(comparison, mismatch)
        if not own and not others:
            continue
        sides = [
            phrase("{chain} ({line})", chain=chain(ops), line=line(ops[-1])) if ops else phrase("nothing")
            for ops in (own, others)
        ]
        return phrase(
            "from the same values on, the port does {port}, the reference {reference}",
            port=sides[0],
            reference=sides[1],
        )
    return ""


def comparison_of(case: Case) -> OpComparison | None:
    """The ops of a call's own code on both sides; None for a layer of the framework. Computed once.

    A ``Sequential`` counts as the user's code: the user wrote its list of layers.
    """
    if (case.node.framework_layer and case.node.kind != "Sequential") or case.direction != "forward":
        return None
    if "comparison" not in case.looked_up:
        case.looked_up["comparison"] = make_comparison(case)
    found: OpComparison | None = case.looked_up["comparison"]
    return found
