"""One difference between torch and paddle, as data.

Names and facts that programs use are fields; sentences stand in a ``Wording``, one for each language.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(Enum):
    """What a difference is about. The value is the title of its section."""

    PARAMETERS = "Parameters and loading"
    NORMALISATION = "Normalisation"
    WINDOWS = "Convolution, pooling and resizing"
    ACTIVATIONS = "Activations and random numbers"
    LOSSES = "Losses"
    SEQUENCES = "Recurrence, attention and embedding"
    INITIALISATION = "Initialisation"
    OPTIMIZERS = "Optimizers and clipping"
    SCHEDULES = "Learning rates"
    TENSORS = "Tensor functions"
    DATA = "Data and metrics"


class Status(Enum):
    """How a difference is known."""

    VERIFIED = "verified"  # both frameworks were run and gave what is stated
    READ = "read"  # from signatures, documentation or reports alone


class Symptom(Enum):
    """Where a difference shows."""

    LOADING = "loading"
    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"
    TRAINING = "training"
    EVALUATION = "evaluation after training"
    DATA = "data"
    METRIC = "metric"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences of one language. ``seen`` is what one sees, ``fix`` what to write."""

    title: str
    torch: str
    paddle: str
    seen: str
    fix: str


@dataclass(frozen=True, slots=True)
class Gap:
    """One difference. ``id`` is stable: entries are added, none is renamed.

    ``torch`` and ``paddle`` are the dotted names it concerns. ``absent`` lists those of them that the
    other framework has no counterpart of.
    """

    id: str
    family: Family
    status: Status
    symptoms: tuple[Symptom, ...]
    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    english: Wording
    absent: tuple[str, ...] = ()
    chinese: Wording | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of both frameworks."""
        return (*self.torch, *self.paddle)

    def words(self, language: str = "en") -> Wording:
        """The sentences in a language; in English where there is no translation."""
        return self.chinese if language == "zh" and self.chinese is not None else self.english


def ranked(pattern: str) -> tuple[str, ...]:
    """``torch.nn.Conv{}d`` for one, two and three axes."""
    return tuple(pattern.format(rank) for rank in (1, 2, 3))
