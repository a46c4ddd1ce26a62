"""``parfocal.compat.reprod_log.ReprodLogger`` under its old name."""  # noqa: N999

from parfocal.compat.reprod_log.ReprodLogger import ReprodLogger

__all__ = ["ReprodLogger"]
