"""The correct pairs that faults are planted into. Both sides are written alike, layer by layer in
the same order, so that tools which pair by order of definition can follow."""

from __future__ import annotations

from examples.pairs.pair import Pair

from benchmarks.faults.pairs import classifiers, pictures, sequences, transformers

PAIRS: dict[str, Pair] = {
    pair.name: pair for module in (classifiers, transformers, pictures, sequences) for pair in module.PAIRS
}
