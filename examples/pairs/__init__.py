"""Small models in torch with correct ports to paddle, to try parfocal on and to measure its noise with.

``PAIRS["resnet18"].reference(seed)`` and ``.port(seed)`` build the two sides, ``.inputs(seed)``
draws inputs. A pair with ``expected`` is a library port that really differs.
"""

from __future__ import annotations

from examples.pairs import assorted, attention, library, sequence, vision
from examples.pairs.pair import Pair

PAIRS: dict[str, Pair] = {
    pair.name: pair for module in (library, vision, attention, sequence, assorted) for pair in module.PAIRS
}

__all__ = ["PAIRS", "Pair"]
