"""PaDiff's functions for users."""

from parfocal.compat.padiff.interfaces.interfaces import (
    assign_weight,
    auto_diff,
    check_dataloader,
    create_model,
)

__all__ = ["assign_weight", "auto_diff", "check_dataloader", "create_model"]
