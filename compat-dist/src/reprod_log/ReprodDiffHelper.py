"""``parfocal.compat.reprod_log.ReprodDiffHelper`` under its old name."""  # noqa: N999

from parfocal.compat.reprod_log.ReprodDiffHelper import ReprodDiffHelper

__all__ = ["ReprodDiffHelper"]
