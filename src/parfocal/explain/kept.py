"""The values that a call leaves in its buffers, compared as if they were further outputs of the call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parfocal.backends.module_tree import join
from parfocal.backends.protocol import Array
from parfocal.replay.repeat import Place, Repeater
from parfocal.replay.trace import Trace

KEPT = "buffer "  # begins the slot


def kept_place(call: int, name: str) -> Place:
    """``name``: of the buffer, as seen from the call's module."""
    return call, "output", KEPT + name, "forward"


def is_kept(place: Place) -> bool:
    return place[1] == "output" and place[2].startswith(KEPT)


def path_of(place: Place, trace: Trace) -> str:
    """Of the buffer, as seen from the whole model."""
    return join(trace.nodes[place[0]].path, place[2].removeprefix(KEPT))


def kept_by(repeater: Repeater, call: int, twin: Any, places: Iterable[Place]) -> dict[Place, Array]:
    """The values of the buffers among the places, after the twin has made its call."""
    wanted = [place for place in places if is_kept(place)]
    if not wanted:
        return {}
    start, backend = repeater.trace.nodes[call].path, repeater.backend
    held = {join(start, entry.path): entry.value for entry in backend.state(twin)}
    paths = {place: path_of(place, repeater.trace) for place in wanted}
    return {place: backend.to_array(held[path]) for place, path in paths.items() if path in held}
