"""Names the first place where the port computes something else, given the run of both sides.

That is the first module call whose input agrees with its counterpart's and whose output does not,
the innermost one if modules are nested. Modules without weights are counterparts when they are of
the same kind and see the same values.
"""

from __future__ import annotations

from parfocal.phrases import joined, phrase
from parfocal.weights.draft import Draft
from parfocal.weights.fingerprint import WeightFingerprint, distances, noise_of
from parfocal.weights.observe import FinishedCall, ObservedRun
from parfocal.weights.scopes import Scopes, inside
from parfocal.weights.settings import IGNORED, setting_differences, setting_words
from parfocal.weights.state import SideContents

FIRST = phrase("first difference: ")


def first_difference(
    draft: Draft, contents: tuple[SideContents, SideContents], seen: ObservedRun, run: ObservedRun
) -> str:
    """One sentence about where the two part."""
    partners = _Partners(draft, contents, seen)
    calls = sorted(run.calls, key=lambda call: call.order)
    guilty = [(call, twin) for call in calls if (twin := partners.that_differs(call))]
    for call, twin in guilty:
        if any(other is not call and inside(other.path, call.path) for other, _ in guilty):
            continue  # something inside it is to blame
        mine, yours = contents[0].owners.get(twin.path), contents[1].owners.get(call.path)
        differing = setting_differences(mine.settings, yours.settings, IGNORED) if mine and yours else []
        settings = joined("; ", map(setting_words, sorted(differing, key=lambda each: each.name)))
        more = settings or _between(partners, calls, call.path)
        words = phrase(
            "{first}{path} gives another output than {other} of the reference on the same input",
            first=FIRST,
            path=call.path or phrase("the model"),
            other=twin.path or phrase("the model"),
        )
        return phrase("{words} ({more})", words=words, more=more) if more else words
    where = _between(partners, calls, "") or phrase("outside of all linked modules")
    return phrase("{first}{where}", first=FIRST, where=where)


def _between(partners: _Partners, calls: list[FinishedCall], scope: str) -> str:
    """The first linked module inside the scope that gets another input than its counterpart."""
    before = phrase("the start")
    for call in calls:
        twin = partners.linked(call)
        if twin is None or call.path == scope or not inside(call.path, scope):
            continue
        if not _agree(twin.inputs, call.inputs):
            return phrase(
                "the input of {path} is not that of {reference} in the reference: look at what the code "
                "does between {before} and {path}",
                path=call.path,
                reference=twin.path,
                before=before,
            )
        before = call.path
    return ""


class _Partners:
    def __init__(self, draft: Draft, contents: tuple[SideContents, SideContents], seen: ObservedRun) -> None:
        self._linked = {link.port.module: link.reference.module for link in draft.links.values()}
        self._scopes = Scopes(draft, seen)
        self._contents = contents
        self._seen = seen

    def linked(self, call: FinishedCall) -> FinishedCall | None:
        module = self._linked.get(call.path)
        return self._seen.at(module, call.occurrence) if module is not None else None

    def that_differs(self, call: FinishedCall) -> FinishedCall | None:
        """The counterpart that gives another output on the same input, if there is one."""
        same = [twin for twin in self._candidates(call) if _agree(twin.inputs, call.inputs)]
        # What appears anywhere in the reference is right: the modules are only cut in other places.
        if not same or any(_agree(each.outputs, call.outputs) for each in (*same, *self._seen.calls)):
            return None
        return same[0]

    def _candidates(self, call: FinishedCall) -> list[FinishedCall]:
        linked = self.linked(call)
        if linked:
            return [linked]
        twins = self._scopes.twins(call.path, call.occurrence)
        if twins:
            return twins
        owner = self._contents[1].owners.get(call.path)
        kinds = self._contents[0].owners
        return [each for each in self._seen.calls if owner and kinds[each.path].kind == owner.kind]


def _agree(first: tuple[WeightFingerprint, ...], second: tuple[WeightFingerprint, ...]) -> bool:
    return distances(first, second) <= noise_of(first, second)
