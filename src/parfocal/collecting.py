"""Full collections of garbage, put off while an alignment or a transfer runs.

Both make many small objects that they keep. To Python that looks like garbage piling up, so it goes
through everything that the frameworks and the models consist of, again and again, and finds next to nothing.
What is dropped soon after it was made is still collected; what outlives that is looked at again at the end.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NEVER = 2**30  # collections of the generation before
OF_MANY_CALLS = 50_000  # new objects: of some 250 calls, most of which are kept


@contextmanager
def full_collections_put_off(young: int = 0) -> Iterator[Callable[[], None]]:
    """Until the end, or until the function that this gives is called.

    ``young``: so many new objects are waited for before they are looked at, and what outlives that is kept.
    Without it they are looked at as often as the user wishes, for code that may run a model many times.
    """
    thresholds = gc.get_threshold()

    def resume() -> None:
        gc.set_threshold(*thresholds)

    if thresholds[0]:  # otherwise the user has switched collecting off
        gc.set_threshold(max(thresholds[0], young), _NEVER if young else thresholds[1], _NEVER)
    try:
        yield resume
    finally:
        resume()
