"""Full collections of garbage, put off while an alignment runs.

An alignment makes many small objects that it keeps. To Python that looks like garbage piling up, so it goes
through everything that the frameworks and the models consist of, again and again, and finds next to nothing.
What is dropped soon after it was made is still collected, only not as often; what outlives that is looked at
again when the alignment is over.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NEVER = 2**30  # collections of the generation before
_YOUNG = 50_000  # new objects: of some 250 calls, most of which are kept


@contextmanager
def full_collections_put_off() -> Iterator[Callable[[], None]]:
    """Until the end, or until the function that this gives is called."""
    thresholds = gc.get_threshold()

    def resume() -> None:
        gc.set_threshold(*thresholds)

    if thresholds[0]:  # otherwise the user has switched collecting off
        gc.set_threshold(max(thresholds[0], _YOUNG), _NEVER, _NEVER)
    try:
        yield resume
    finally:
        resume()
