"""The backend of toybox, put together. Toybox has no optimizers, which ends tier 3 before it begins."""

from __future__ import annotations

from parfocal_toybox.surgery import Surgery

from parfocal.backends.without_training import WithoutTraining


class ToyboxBackend(Surgery, WithoutTraining):
    """Toybox, as ``parfocal.backends.protocol`` wants it."""
