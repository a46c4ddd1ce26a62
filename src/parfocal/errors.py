"""Every error parfocal raises on purpose.

One base class; each error carries a stable ``code`` for programs and a ``hint``
that tells a person what to do next. The message itself says what happened, where,
and with which values.
"""

from __future__ import annotations

from typing import ClassVar


class ParfocalError(Exception):
    """Base of all errors raised on purpose. The command line turns it into exit status 2."""

    code: ClassVar[str] = "parfocal"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class InputError(ParfocalError):
    """An argument has a wrong value, type or shape."""

    code = "input"


class MissingFrameworkError(ParfocalError):
    """A framework that is needed is not installed."""

    code = "framework.missing"


class UnsupportedError(ParfocalError):
    """The framework cannot do what was asked (no kernel, no such feature)."""

    code = "unsupported"


class FileFormatError(ParfocalError):
    """A file is not what it should be: truncated, damaged or foreign."""

    code = "file.format"


class UnsafeFileError(FileFormatError):
    """A file asks for code to be executed; nothing of it was run."""

    code = "file.unsafe"


class StorageError(ParfocalError):
    """The operating system refused to read or write (disk full, no permission)."""

    code = "storage"


class EmptyComparisonError(ParfocalError):
    """Nothing was compared, so there is no verdict."""

    code = "compare.empty"


class TransferError(ParfocalError):
    """Weights could not be copied completely; the target was left as it was.

    ``plan`` is how far the matching came (a ``parfocal.weights.plan.Plan``), or None.
    """

    code = "transfer"

    def __init__(self, message: str, *, hint: str = "", plan: object = None) -> None:
        super().__init__(message, hint=hint)
        self.plan = plan


class DivergedError(ParfocalError):
    """Two models, runs or files that should agree do not; raised only when asked for."""

    code = "diverged"
