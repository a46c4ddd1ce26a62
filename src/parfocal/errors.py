"""Every error parfocal raises on purpose.

One base class; each error carries a stable ``code`` for programs and a ``hint``
that tells a person what to do next. The message itself says what happened, where,
and with which values. Printed, it is in the language of the terminal; its fields stay English.
"""

from __future__ import annotations

from typing import ClassVar

from parfocal.phrases import current_language, phrase, translate


class ParfocalError(Exception):
    """Base of all errors raised on purpose. The command line turns it into exit status 2."""

    code: ClassVar[str] = "parfocal"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        language = current_language()
        message = translate(self.message, language)
        if not self.hint:
            return message
        return f"{message}\n  {translate(phrase('hint: {hint}', hint=self.hint), language)}"


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
