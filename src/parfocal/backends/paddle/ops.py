"""Functional ops under watch; not there yet."""

from __future__ import annotations

from contextlib import AbstractContextManager

from parfocal.backends.calls import CallTracker
from parfocal.backends.protocol import OnOp
from parfocal.errors import UnsupportedError


def watch_ops(tracker: CallTracker, on_op: OnOp) -> AbstractContextManager[None]:
    raise UnsupportedError("functional ops cannot be watched yet")
