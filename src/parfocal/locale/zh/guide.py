"""The guided reproduction: the words of init, check, status, accept and export. A step is 步骤, a side 一侧."""

from __future__ import annotations

TEXTS = {
    "both launches differ from one process: {message}": "两侧的多进程训练均与单进程不同：{message}",
}
