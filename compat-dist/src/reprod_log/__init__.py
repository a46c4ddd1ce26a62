"""The top-level name of reprod_log 1.0.1; the code is ``parfocal.compat.reprod_log``."""

from reprod_log import compare, utils
from reprod_log.ReprodDiffHelper import ReprodDiffHelper
from reprod_log.ReprodLogger import ReprodLogger

__all__ = ["ReprodDiffHelper", "ReprodLogger", "compare", "utils"]
