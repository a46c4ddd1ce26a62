# ruff: noqa: N999  # the name is PPAutoDiff's own
"""The top-level name of PPAutoDiff; the code is ``parfocal.compat.ppautodiff``."""

from parfocal.compat.ppautodiff import autodiff

__all__ = ["autodiff"]
