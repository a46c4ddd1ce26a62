"""All faults and all correct rewritings, by name."""

from __future__ import annotations

from benchmarks.faults.catalogue import classifiers, pictures, sequences, transformers
from benchmarks.faults.catalogue.rewritings import REWRITINGS
from benchmarks.faults.fault import Fault

__all__ = ["FAULTS", "REWRITINGS"]

_ALL = (*classifiers.FAULTS, *transformers.FAULTS, *pictures.FAULTS, *sequences.FAULTS)
FAULTS: dict[str, Fault] = {fault.name: fault for fault in _ALL}
if len(FAULTS) != len(_ALL):
    raise ValueError("two faults have the same name")
