"""How far apart: figures about the difference of two arrays, and sketches of one."""

from parfocal.judge.comparison import Comparison, SideFacts
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.tolerance import Tolerance

__all__ = ["Comparison", "SideFacts", "Tolerance", "compare_arrays"]
