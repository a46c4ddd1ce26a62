"""What holds for all tests."""

from __future__ import annotations

import os

from parfocal.attempts import STRICT

os.environ[STRICT] = "1"  # also for the commands that tests start
