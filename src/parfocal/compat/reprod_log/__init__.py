"""``reprod_log`` 1.0.1 on top of parfocal: the same names, files and report lines, checked in full.

Differs from the original only where that was wrong: NaN never passes, integers do not wrap around,
shapes must agree, missing keys are named and fail, and ``report`` returns its verdict.
"""

from parfocal.compat.reprod_log.ReprodDiffHelper import ReprodDiffHelper
from parfocal.compat.reprod_log.ReprodLogger import ReprodLogger

from . import compare, utils

__all__ = ["ReprodDiffHelper", "ReprodLogger", "compare", "utils"]
