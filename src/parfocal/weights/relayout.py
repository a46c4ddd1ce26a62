"""Linked layers whose weights agree in size and differ in what lies where.

Two cases. Both sides fuse q, k and v (or gate and up), one in another order or interleaved by
head: nothing shows it but a wrong output, so it is tried only where a module fails to reproduce its
twin. And a convolution over patches against a Linear layer over flattened ones: the same numbers in
another shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from parfocal.judge import limits
from parfocal.phrases import joined, phrase
from parfocal.weights.choices import Choice, Option
from parfocal.weights.fused import may_be_fused, rows
from parfocal.weights.linking import Link, entries_of, entry
from parfocal.weights.names import tokens
from parfocal.weights.plan import AS_IT_IS, PORT, REFERENCE, Entry
from parfocal.weights.row_parts import orders, rows_view, said_heads
from parfocal.weights.units import Key, Unit
from parfocal.weights.views import Shape, View, reshape, transpose

FUSED_WORDS = frozenset({"qkv", "kv", "qk", "gate", "up", "glu", "in"})
MOST_GROUPS = limits.transfer.PARTS.value


def part_counts(link: Link) -> list[int]:
    """Into how many equal parts the rows may fall: 3 for qkv, 2 for kv and gate-up; mostly none."""
    weight = link.reference.slot("weight")
    if weight is None or not (may_be_fused(link.reference) and may_be_fused(link.port)):
        return []
    height, width = weight.shape[0], math.prod(weight.shape[1:])
    named = bool(FUSED_WORDS & {*tokens(link.reference.path).words, *tokens(link.port.path).words})
    return [count for count in (3, 2) if height % count == 0 and (named or height == count * width)]


def relayout_choice(link: Link) -> Choice | None:
    """As it is, then every order of the parts, one after the other or interleaved on either side."""
    counts = part_counts(link)
    if not counts:
        return None
    options = [Option(tuple(entries_of(link)), AS_IT_IS)]
    for count in counts:
        size = rows(link.reference) // count
        for mine, yours in _groups(link, size):
            for order in orders(range(count)):
                if (mine, yours) == (1, 1) and list(order) == sorted(order):
                    continue
                words = phrase(
                    "{count} parts in the order {order}{how}",
                    count=count,
                    order=joined(", ", map(str, order)),
                    how=_how(mine, yours),
                )
                options.append(Option(tuple(_entries(link, size, mine, yours, order)), words, reordered=True))
    return Choice((link.reference,), (link.port,), options, "layout", evidence=link.evidence, open=False)


def _how(mine: int, yours: int) -> str:
    if mine == yours:
        return ""
    return phrase(
        ", interleaved in {count} groups in the {side}",
        count=max(mine, yours),
        side=REFERENCE if mine > 1 else PORT,
    )


def _groups(link: Link, size: int) -> Iterator[tuple[int, int]]:
    """Interleaving on neither side, on the reference's, on the port's."""
    yield 1, 1
    said = list(said_heads((link.reference, link.port), size))
    usual = [size, *(2**power for power in range(1, 7))]
    fitting = [n for n in dict.fromkeys([*said, *usual]) if n > 1 and size % n == 0]
    for number in fitting[: max(MOST_GROUPS, len(said))]:
        yield number, 1
        yield 1, number


def _entries(link: Link, size: int, mine: int, yours: int, order: Sequence[int]) -> Iterator[Entry]:
    groups = max(mine, yours)
    for slot in link.port.required:
        source = link.reference.slot(slot.role)
        assert source is not None  # linked units have equal roles
        for place, number in enumerate(order):
            yield entry(
                source,
                slot,
                link.evidence,
                link.confidence,
                source_view=rows_view(source.shape, number * size, size, groups, interleaved=mine > 1),
                target_view=rows_view(slot.shape, place * size, size, groups, interleaved=yours > 1),
            )


def flattened(unit: Unit) -> Key:
    """What a convolution over patches and a Linear layer over flattened patches have in common."""
    return "flattened", tuple(sorted((slot.role, _rows_and_rest(slot.shape)) for slot in unit.required))


def _rows_and_rest(shape: Shape) -> Shape:
    return (shape[0], math.prod(shape[1:])) if len(shape) > 1 else shape


def reshape_choice(link: Link) -> Choice | None:
    """The flat weight seen as the other one's shape, its axes in every order; None for anything else."""
    source, target = link.reference.slot("weight"), link.port.slot("weight")
    if source is None or target is None or min(len(source.shape), len(target.shape)) != 2:
        return None
    full = max(source.shape, target.shape, key=len)
    options = []
    for order in orders(range(1, len(full))):
        stored = (full[0], *(full[axis] for axis in order))
        back = (0, *(order.index(axis) + 1 for axis in range(1, len(full))))
        view: View = (reshape(*stored), *((transpose(*back),) if list(order) != sorted(order) else ()))
        options.append(
            Option(tuple(_reshaped(link, view, len(source.shape) == 2)), f"axes {list(order)} flattened")
        )
    return Choice((link.reference,), (link.port,), options, "orientation", evidence=link.evidence)


def _reshaped(link: Link, view: View, on_source: bool) -> Iterator[Entry]:
    for slot in link.port.required:
        source = link.reference.slot(slot.role)
        assert source is not None  # the key compared the roles
        turned = view if slot.role == "weight" else ()
        yield entry(
            source,
            slot,
            link.evidence,
            link.confidence,
            source_view=turned if on_source else (),
            target_view=() if on_source else turned,
        )
