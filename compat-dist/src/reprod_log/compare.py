"""``parfocal.compat.reprod_log.compare`` under its old name."""

from parfocal.compat.reprod_log.compare import (
    check_data,
    compare_forward,
    compare_loss_and_backward,
    compute_diff,
)

__all__ = ["check_data", "compare_forward", "compare_loss_and_backward", "compute_diff"]
