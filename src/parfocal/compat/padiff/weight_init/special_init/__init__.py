"""Functions that copy the weights of one particular class into another."""

from parfocal.compat.padiff.weight_init.special_init import builtin
from parfocal.compat.padiff.weight_init.special_init.special_init_pool import (
    add_special_init,
    build_name,
    global_special_init_pool,
)

builtin.register_all()

__all__ = ["add_special_init", "build_name", "global_special_init_pool"]
