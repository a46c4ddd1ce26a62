"""What the parts of one recording share: the model under watch, where records go, where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.protocol import Backend
from parfocal.capture.filters import Filter
from parfocal.capture.keep import Keeper, describe
from parfocal.capture.steps import Steps
from parfocal.run.records import Leaf, ValueRecord
from parfocal.run.writer import RunWriter

MAX_ITEMS = 8  # of a tuple that is a setting
MAX_NAME = 80  # characters of a text that is one


@dataclass(frozen=True, slots=True)
class Session:
    """One recording."""

    model: Any
    backend: Backend
    writer: RunWriter
    keeper: Keeper
    chosen: Filter
    marks: Keeper | None = None  # keeps fingerprints of parameters and buffers that nobody asked for
    steps: Steps = field(default_factory=Steps)

    @property
    def rank(self) -> int:
        return self.writer.rank

    @property
    def wanted(self) -> bool:
        """Whether the step that is under way is recorded."""
        return self.chosen.wants_step(self.steps.step)

    def log(self, name: str, value: Any) -> None:
        """Record a value under a name."""
        self.log_leaf(name, self.keeper.leaf(value))

    def log_leaf(self, name: str, leaf: Leaf) -> None:
        """Record what was kept of a value, or named texts, under a name."""
        self.writer.append(ValueRecord(name, leaf, self.steps.step, self.rank))


def module_settings(backend: Backend, module: Any) -> dict[str, Any]:
    """What a module says of itself; of people's own modules also every plain attribute."""
    found = plain_settings(backend.settings(module))
    if not backend.is_framework_layer(module):
        attributes = backend.plain_attributes(module)
        found.update({n: v for n, v in attributes.items() if n not in found and _is_plain(v)})
    return found


def _is_plain(value: Any) -> bool:
    """A number, a flag, a short text, or a few of them."""
    if isinstance(value, (tuple, list)):
        kinds = type(value) in (tuple, list) and len(value) <= MAX_ITEMS
        return kinds and all(_is_plain(item) and not isinstance(item, (tuple, list)) for item in value)
    if isinstance(value, str):
        return len(value) <= MAX_NAME
    return type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63)


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that can be stored: what has no plain form is described."""
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return (
            type(value)(_plain(item) for item in value) if type(value) in (tuple, list) else describe(value)
        )
    return describe(value)
