"""The top-level name of PaDiff 0.3; the code is ``parfocal.compat.padiff``.

Every public module of PaDiff is the module of the same name there: ``padiff.checker`` *is*
``parfocal.compat.padiff.checker``, so what one sets the other sees.
"""

import sys
from importlib import import_module

from parfocal.compat.padiff import (
    __version__,  # noqa: F401
    add_special_init,
    assign_weight,
    auto_diff,
    check_dataloader,
    check_grads,
    check_params,
    check_report,
    check_weights,
    create_model,
    get_dump_root_path,
    set_dump_root_path,
)

MODULES = (
    "abstracts",
    "abstracts.marker",
    "abstracts.proxy_model",
    "abstracts.proxy_parameter",
    "checker",
    "checker.check_params",
    "checker.check_report",
    "cinn_diff",
    "dump_tools",
    "interfaces",
    "interfaces.diff_utils",
    "interfaces.interfaces",
    "report",
    "report.report",
    "utils",
    "weight_init",
    "weight_init.special_init",
    "weight_init.special_init.special_init_pool",
    "weight_init.weights",
)
for _name in MODULES:
    sys.modules[f"{__name__}.{_name}"] = import_module(f"parfocal.compat.padiff.{_name}")
    if "." not in _name:
        globals()[_name] = sys.modules[f"{__name__}.{_name}"]

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
