"""What the commands print."""

from __future__ import annotations

TEXTS = {
    "hint: {hint}": "提示：{hint}",
    "a mistake of parfocal's own; please report it with the lines above": "parfocal 自身的错误；请附上以上内容报告",
}
