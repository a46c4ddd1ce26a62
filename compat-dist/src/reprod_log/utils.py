"""``parfocal.compat.reprod_log.utils`` under its old name."""

from parfocal.compat.reprod_log.utils import (
    check_print_diff,
    init_logger,
    np2paddle,
    np2torch,
    paddle2np,
    torch2np,
)

__all__ = ["check_print_diff", "init_logger", "np2paddle", "np2torch", "paddle2np", "torch2np"]
