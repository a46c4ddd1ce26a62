"""What is said of work that the two sides divide otherwise between modules and the code around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parfocal.attribution.divisions import Division
from parfocal.brief import some
from parfocal.explain.causes import line as line_name
from parfocal.judge.verdict import Finding, side_name, tensor_words
from parfocal.phrases import phrase
from parfocal.replay.trace import Trace

SHOWN = 3  # modules that are named


def division_findings(divided: Iterable[Division], reference: Trace, port: Trace) -> Iterator[Finding]:
    """One for every line of code that does what the other side's module does, with all such modules."""
    groups: dict[tuple[object, ...], list[Division]] = {}
    for each in divided:
        known = each.meeting
        line = None if known is None else (known.op, known.file, known.line)
        groups.setdefault((each.is_given, each.made_by_port, line), []).append(each)
    for group in groups.values():
        first = group[0]
        own, other = port.nodes[first.spots[0][0]], reference.nodes[first.references[0]]
        yield Finding("work.divided", _message(group, port), other.site, own.site)


def _message(group: list[Division], port: Trace) -> str:
    first = group[0]
    _, side, slot = next(spot for spot in first.spots if (spot[1] == "output") == first.is_given)
    paths = list(dict.fromkeys(port.nodes[each[0]].path for division in group for each in division.spots))
    what = phrase("{tensor} of {whose}", tensor=tensor_words(side, slot), whose=some(paths, SHOWN))
    if first.meeting is None:
        return phrase(
            "{what} differs, and the code behind it makes up for it: compared where the two meet again",
            what=what,
        )
    has, across = ("reference", "port") if first.made_by_port else ("port", "reference")
    known = first.meeting
    line = "" if known.file is None else f" ({line_name(known)})"
    return phrase(
        "{what}: what the {has} has there the {across} has after {op}{line}; compared behind it",
        what=what,
        has=side_name(has),
        across=side_name(across),
        op=known.op,
        line=line,
    )
