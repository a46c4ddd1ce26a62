"""The one reason for which tests of the compiled loops are skipped."""

from __future__ import annotations

import pytest

from parfocal.native.library import LIBRARY

needs_library = pytest.mark.skipif(
    LIBRARY is None, reason="no compiled loops: built without a C compiler, or PARFOCAL_CPU=none"
)
