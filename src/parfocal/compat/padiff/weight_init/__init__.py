"""Copying the base model's weights into the raw model."""

from parfocal.compat.padiff.weight_init.special_init.special_init_pool import add_special_init

__all__ = ["add_special_init"]
