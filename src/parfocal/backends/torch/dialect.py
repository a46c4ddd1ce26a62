"""How code for PyTorch is written."""

from __future__ import annotations

from parfocal.backends.dialects import Dialect, Scripting, functions
from parfocal.backends.torch.optimizers import SPELLING

DIALECT = Dialect(
    name="torch",
    rate_in_use="scheduler.get_last_lr()[0]",
    optimizers=SPELLING,
    functions=functions("torch", log_sigmoid="torch.nn.functional.logsigmoid"),
    words={
        "axis": "dim",
        "minimum": "min",
        "maximum": "max",
        "flip.axis": "dims",
        "roll.axis": "dims",
        "epsilon": "eps",
        "hardtanh.min": "min_val",
        "hardtanh.max": "max_val",
        "hardshrink.threshold": "lambd",
        "softshrink.threshold": "lambd",
    },
    axis="dim",
    concat="cat",
    permute="permute({})",
    shape="{}",
    counts=tuple,
    cast="to({})",
    dtype_is_text=False,
    transposed_factor="{}.T",
    splits_by_length=frozenset({"split"}),
    frozen=("requires_grad", False),
    overwrite=("{0}.data = {0}.data.", ".contiguous()"),
    overwrite_transposed="permute({0})",
    overwrite_picked="index_select({1}, torch.tensor({0}))",
    script=Scripting(
        load="{side}.load_state_dict({{name: torch.from_numpy(data['{side} ' + name]) "
        "for name in {side}.state_dict()}})",
        tensor="torch.from_numpy(data[{name!r}])",
        leaf="torch.from_numpy(data[{name!r}]).requires_grad_()",
        array="{call}.detach().numpy()",
    ),
)
