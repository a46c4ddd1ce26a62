"""What a user does not want judged: such a layer is led along like any other, but never blamed.

The layers around it are therefore judged as if it were right. The results of the whole model are
not judged where it is not: they follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from parfocal.attribution.measures import LIMIT, Measure
from parfocal.attribution.whole_model import WholeModelResult
from parfocal.brief import brief
from parfocal.errors import InputError
from parfocal.matching.pairing import Pairing
from parfocal.phrases import phrase
from parfocal.replay.trace import Trace


def patterns_of(ignore: object) -> tuple[str, ...]:
    """The patterns a user gave; a lone string counts as one."""
    if isinstance(ignore, str):
        return (ignore,)
    patterns = tuple(ignore) if isinstance(ignore, Iterable) else (ignore,)
    if all(isinstance(pattern, str) for pattern in patterns):
        return patterns
    raise InputError(
        phrase("ignore={ignore} is not a list of path patterns", ignore=brief(ignore)),
        hint=phrase('e.g. ignore=["head.*", "*.dropout"]'),
    )


@dataclass(frozen=True, slots=True)
class IgnoredCalls:
    """The calls of two traces whose path, on either side, matches one of the patterns."""

    patterns: Sequence[str]
    reference: Trace
    port: Trace

    def path(self, path: str) -> bool:
        return any(fnmatchcase(path, pattern) for pattern in self.patterns)

    def unmatched(self) -> list[str]:
        """Patterns that match no path."""
        paths = {node.path for trace in (self.reference, self.port) for node in trace.nodes}
        return [each for each in self.patterns if not any(fnmatchcase(path, each) for path in paths)]

    def judged_pairs(self, pairing: Pairing) -> Pairing:
        kept = [pair for pair in pairing.pairs if not self._either(pair.reference, pair.port)]
        return replace(pairing, pairs=tuple(kept))

    def judged(self, measures: Iterable[Measure]) -> list[Measure]:
        return [measure for measure in measures if not self._blames(measure)]

    def overlooked(self, measures: Iterable[Measure]) -> list[Measure]:
        """What would have been blamed."""
        return [measure for measure in measures if measure.score > LIMIT and self._blames(measure)]

    def judged_parameters(self, ends: Iterable[WholeModelResult]) -> list[WholeModelResult]:
        return [end for end in ends if not (self._owner(end.reference) or self._owner(end.port))]

    def _blames(self, measure: Measure) -> bool:
        if not self.patterns:
            return False
        levels = measure.levels
        return self._either(
            self.reference.around(measure.reference, levels), self.port.around(measure.port, levels)
        )

    def _either(self, reference: int, port: int) -> bool:
        return self.path(self.reference.nodes[reference].path) or self.path(self.port.nodes[port].path)

    def _owner(self, parameter: str) -> bool:
        return self.path(parameter.rpartition(".")[0])
