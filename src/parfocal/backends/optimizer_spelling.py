"""How an optimizer is written in code of a framework, from its table of settings; no framework imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Common name of a setting -> the framework's; several names where each takes a part of the value.
SettingNames = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class OptimizerSpelling:
    """One framework's optimizers. Without a table settings are written in their common names."""

    module: str = ""
    settings: Mapping[str, SettingNames] = field(default_factory=dict)  # by common kind
    shared: Mapping[str, str] = field(default_factory=dict)  # settings that every optimizer has
    classes: Mapping[str, str] = field(default_factory=dict)  # by common kind, where called otherwise
    arguments: Mapping[str, str] = field(default_factory=dict)  # of the constructor, likewise
    decays: Mapping[str, str] = field(default_factory=dict)  # by common kind, what the weight decay is called

    def written(self, kind: str, settings: Mapping[str, Any]) -> str:
        """The call that makes it; what there is no argument for is left out."""
        if not self.module:
            return _call(kind, [f"{name}={value!r}" for name, value in settings.items()])
        decoupled = settings.get("decay") == "decoupled" and kind == "Adam"
        name = "AdamW" if decoupled else self.classes.get(kind, kind)
        known: dict[str, str | tuple[str, ...]] = {**self.shared, **self.settings.get(kind, {})}
        if kind in self.decays:
            known["weight_decay"] = self.decays[kind]
        written: list[str] = []
        for each, value in settings.items():
            key = known.get(each)
            if isinstance(key, tuple):
                written += [f"{part}={number!r}" for part, number in zip(key, value, strict=True)]
            elif key is not None:
                written.append(f"{self.arguments.get(key, key)}={value!r}")
        return _call(f"{self.module}.{name}", written)


def _call(name: str, arguments: list[str]) -> str:
    return f"{name}({', '.join(['...', *arguments])})"
