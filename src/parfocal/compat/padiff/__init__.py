"""PaDiff's interface on top of parfocal: ``import parfocal.compat.padiff as padiff``.

Importing it imports no framework, patches nothing and changes no print options.
"""

from parfocal.compat.padiff.checker import check_grads, check_params, check_report, check_weights
from parfocal.compat.padiff.dump_tools import get_dump_root_path, set_dump_root_path
from parfocal.compat.padiff.interfaces import assign_weight, auto_diff, check_dataloader, create_model
from parfocal.compat.padiff.weight_init.special_init import add_special_init

__version__ = "0.3.0"

__all__ = [
    "add_special_init",
    "assign_weight",
    "auto_diff",
    "check_dataloader",
    "check_grads",
    "check_params",
    "check_report",
    "check_weights",
    "create_model",
    "get_dump_root_path",
    "set_dump_root_path",
]
