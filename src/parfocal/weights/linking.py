"""Links: one unit of the reference with one of the port, and the copies that follow from it.

Pairing slots by role and putting their views together is all there is to it, because both units
are in canonical form already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parfocal.phrases import joined, phrase
from parfocal.weights.plan import AS_IT_IS, Entry
from parfocal.weights.row_parts import orders
from parfocal.weights.units import Slot, Unit
from parfocal.weights.views import Shape, View, describe, transpose

WORDS = {
    "transpose": phrase("transposed"),
    "reshape": phrase("reshaped"),
    "slice": phrase("part of a packed tensor"),
    "index": phrase("interleaved"),
}


@dataclass(frozen=True, slots=True)
class Link:
    """A reference unit and a port unit taken for the same layer."""

    reference: Unit
    port: Unit
    evidence: tuple[str, ...]
    confidence: float
    decided: bool = True  # False: the best guess so far, to be confirmed by values
    turned: bool = False  # the reference's square weight is read the other way round


def entries_of(link: Link) -> list[Entry]:
    """The copies of a link: every role that both units have."""
    found = []
    for slot in link.port.slots:
        source = link.reference.slot(slot.role)
        if source is not None:
            turn = link.turned and slot.role in ("weight", "value")
            found.append(entry(source, slot, link.evidence, link.confidence, turned=turn))
    return found


def entry(
    source: Slot,
    target: Slot,
    evidence: tuple[str, ...],
    confidence: float,
    *,
    source_view: View = (),
    target_view: View = (),
    turned: bool = False,
) -> Entry:
    """One copy, through the canonical forms; extra views look at parts of these."""
    from_source = (*source.view, *source_view, *((transpose(1, 0),) if turned else ()))
    onto_target = (*target.view, *target_view)
    return Entry(
        source=source.memory,
        target=target.memory,
        source_view=simplified(from_source),
        target_view=simplified(onto_target),
        rule=rule_words(from_source, onto_target),
        source_shape=source.stored.shape,
        target_shape=target.stored.shape,
        evidence=evidence,
        confidence=confidence,
    )


def simplified(view: View) -> View:
    """Two transposes of a matrix in a row are none."""
    steps: list[object] = []
    for step in view:
        if steps and steps[-1] == step == transpose(1, 0):
            steps.pop()
        else:
            steps.append(step)
    return tuple(steps)  # type: ignore[arg-type]


def rule_words(source_view: View, target_view: View) -> str:
    """The copy in words: what is done to the reference's tensor or to the port's."""
    kinds = [step.kind for step in (*simplified(source_view), *simplified(target_view))]
    if kinds.count("transpose") == 2 and len(kinds) == 2 and describe(source_view) == describe(target_view):
        return AS_IT_IS
    words = dict.fromkeys(WORDS[kind] for kind in kinds)
    return joined(", ", words) or AS_IT_IS


def raw_views(source: Shape, target: Shape) -> list[View]:
    """Ways to see a raw parameter of one shape as one of another, the plainest first.

    The same shape as it is; any order of the axes that gives the shape (axes of length 1 do not
    count); the same elements in another shape last.
    """
    found: list[View] = [()] if source == target else []
    long_source = tuple(length for length in source if length != 1)
    long_target = tuple(length for length in target if length != 1)
    if sorted(long_source) == sorted(long_target) and len(long_source) <= 4:
        for permutation in orders(range(len(long_source))):
            if tuple(long_source[axis] for axis in permutation) == long_target:
                view = _permuted(source, target, long_source, permutation)
                if view not in found:
                    found.append(view)
    return found


def _permuted(source: Shape, target: Shape, squeezed: Shape, permutation: Sequence[int]) -> View:
    from parfocal.weights.views import reshape

    steps: View = () if squeezed == source else (reshape(*squeezed),)
    if list(permutation) != sorted(permutation):
        steps = (*steps, transpose(*permutation))
    after = tuple(squeezed[axis] for axis in permutation)
    return steps if after == target else (*steps, reshape(*target))
