"""Chinese, a table for every room. Reference and port are 参考模型 and 移植模型, a floor of noise is 噪声下限."""

from __future__ import annotations

from parfocal.locale.zh.backend_errors import TEXTS as _BACKEND_ERRORS
from parfocal.locale.zh.cli import TEXTS as _CLI
from parfocal.locale.zh.code_guides import TEXTS as _CODE_GUIDES
from parfocal.locale.zh.codes import TEXTS as _CODES
from parfocal.locale.zh.commands import TEXTS as _COMMANDS
from parfocal.locale.zh.compat_errors import TEXTS as _COMPAT_ERRORS
from parfocal.locale.zh.errors import TEXTS as _ERRORS
from parfocal.locale.zh.explain import TEXTS as _EXPLAIN
from parfocal.locale.zh.explain_backward import TEXTS as _BACKWARD
from parfocal.locale.zh.explain_layers import TEXTS as _LAYERS
from parfocal.locale.zh.explain_ops import TEXTS as _OPS
from parfocal.locale.zh.file_errors import TEXTS as _FILE_ERRORS
from parfocal.locale.zh.guide import TEXTS as _GUIDE
from parfocal.locale.zh.random_data import TEXTS as _RANDOM_DATA
from parfocal.locale.zh.ranks import TEXTS as _RANKS
from parfocal.locale.zh.record_errors import TEXTS as _RECORD_ERRORS
from parfocal.locale.zh.recorded_runs import TEXTS as _RECORDED_RUNS
from parfocal.locale.zh.report import TEXTS as _REPORT
from parfocal.locale.zh.training_errors import TEXTS as _TRAINING_ERRORS
from parfocal.locale.zh.weights import TEXTS as _WEIGHTS
from parfocal.locale.zh.workflow import TEXTS as _WORKFLOW

TABLES = {
    "report": _REPORT,
    "weights": _WEIGHTS,
    "workflow": _WORKFLOW,
    "workflow.recorded_runs": _RECORDED_RUNS,
    "workflow.guide": _GUIDE,
    "workflow.random_data": _RANDOM_DATA,
    "ranks": _RANKS,
    "cli": _CLI,
    "commands": _COMMANDS,
    "errors": _ERRORS,
    "file errors": _FILE_ERRORS,
    "record errors": _RECORD_ERRORS,
    "backend errors": _BACKEND_ERRORS,
    "compat errors": _COMPAT_ERRORS,
    "training errors": _TRAINING_ERRORS,
    "codes": _CODES,
    "code guides": _CODE_GUIDES,
    "explain": _EXPLAIN,
    "explain.layers": _LAYERS,
    "explain.ops": _OPS,
    "explain.backward": _BACKWARD,
}
