"""Chinese, a table for every room. Reference and port are 参考模型 and 移植模型, a floor of noise is 噪声下限."""

from __future__ import annotations

from parfocal.locale.zh.ranks import TEXTS as _RANKS
from parfocal.locale.zh.report import TEXTS as _REPORT

TABLES = {"report": _REPORT, "ranks": _RANKS}
