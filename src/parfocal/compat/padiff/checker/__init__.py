"""Offline comparison of two dumps."""

from parfocal.compat.padiff.checker.check_params import check_grads, check_params, check_weights
from parfocal.compat.padiff.checker.check_report import check_report

__all__ = ["check_grads", "check_params", "check_report", "check_weights"]
