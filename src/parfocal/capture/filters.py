"""Which calls are recorded: by path, by kind and by step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from parfocal.brief import brief
from parfocal.errors import InputError
from parfocal.phrases import phrase


@dataclass(frozen=True, slots=True)
class Filter:
    """A path pattern (``layer1.*.conv?``) also stands for everything below what it names."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    kinds: frozenset[str] | None = None
    every: int = 1
    _paths: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    def wants_step(self, step: int) -> bool:
        return step % self.every == 0

    def wants_path(self, path: str) -> bool:
        wanted = self._paths.get(path)
        if wanted is None:
            wanted = (not self.include or _matches(path, self.include)) and not _matches(path, self.exclude)
            self._paths[path] = wanted
        return wanted

    def wants_call(self, path: str, kind: str) -> bool:
        return (self.kinds is None or kind in self.kinds) and self.wants_path(path)


def make_filter(
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    kinds: Collection[str] | None = None,
    every: int = 1,
) -> Filter:
    """A filter from what a user wrote; a lone string counts as one pattern or kind."""
    if not isinstance(every, int) or every < 1:
        raise InputError(
            phrase("every is {every}, must be 1 or more", every=brief(every)),
            hint=phrase("every=10 records each tenth step"),
        )
    return Filter(
        include=_as_tuple("include", include),
        exclude=_as_tuple("exclude", exclude),
        kinds=None if kinds is None else frozenset(_as_tuple("kinds", kinds)),
        every=every,
    )


def _as_tuple(name: str, values: Collection[str]) -> tuple[str, ...]:
    found = (values,) if isinstance(values, str) else tuple(values) if isinstance(values, Iterable) else None
    if found is None or not all(isinstance(each, str) for each in found):
        raise InputError(
            phrase("{name} is {values}, not a list of names", name=name, values=brief(values)),
            hint=phrase('e.g. ["layer1.*"]'),
        )
    return found


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*") for pattern in patterns)
