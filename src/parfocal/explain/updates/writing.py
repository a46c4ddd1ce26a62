"""How the port's optimizer is written with a setting of the reference: the fix of a setting that differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from parfocal.phrases import phrase

Written = Callable[[str, Mapping[str, Any]], str]  # how an optimizer of the port is written
OF_A_WHOLE_OPTIMIZER = ("kind", "decay", "momentum")  # what names another class, which a group cannot
MOST_NAMES = 6  # that are written out in a line


class PortParameter(NamedTuple):
    """What a group of parameters is picked by."""

    path: str
    ndim: int


# Groups of parameters that people make, and how they are written.
GROUPS: tuple[tuple[str, Callable[[PortParameter], bool]], ...] = (
    ("p for p in port.parameters() if p.ndim <= 1", lambda each: each.ndim <= 1),
    ("p for p in port.parameters() if p.ndim > 1", lambda each: each.ndim > 1),
    (
        'p for n, p in port.named_parameters() if n.endswith("bias")',
        lambda each: each.path.endswith("bias"),
    ),
    (
        'p for n, p in port.named_parameters() if not n.endswith("bias")',
        lambda each: not each.path.endswith("bias"),
    ),
)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting of the port's optimizer that should be the reference's."""

    name: str
    value: Any  # the reference's
    reference: tuple[str, Mapping[str, Any]]  # kind and settings
    port: str  # kind
    where: Sequence[PortParameter]  # the parameters that it differs for
    every: Sequence[PortParameter]

    @property
    def kind(self) -> str:
        """The class that has the setting: the reference's, where the port's may lack it."""
        return self.reference[0] if self.name in OF_A_WHOLE_OPTIMIZER else self.port

    def fix(self, written: Written) -> str:
        line = written(self.kind, to_write(self.name, self.value, self.reference[1]))
        paths = [each.path for each in self.where]
        few = len(self.where) < len(self.every)
        if self.name == "epsilon_place":
            return _smaller_epsilon(self.reference[1], self.port, written)
        if few and self.name not in OF_A_WHOLE_OPTIMIZER:
            return phrase(
                "give {parameters} a group of its own, set as {line}",
                parameters=_written_parameters(self.where, self.every),
                line=line,
            )
        fix = phrase("write {line}", line=line)
        return fix + phrase(" for {places}", places=places_of(paths)) if few else fix


def places_of(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return paths[0]
    return phrase("{names} and {count} more", names=paths[0], count=len(paths) - 1)


def to_write(name: str, ours: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a line has to have for this one to be the reference's."""
    if name in ("beta1", "beta2"):
        return {"betas": settings.get("betas")}
    if name == "decay":
        return {"decay": ours, "weight_decay": settings.get("weight_decay", 0.0)}
    if name == "momentum":
        return {name: ours, **({"nesterov": True} if settings.get("nesterov") else {})}
    if name == "kind":
        hidden = ("lr", "decay", "epsilon_place")
        return {key: value for key, value in settings.items() if key not in hidden and value}
    return {name: ours}


def _written_parameters(where: Sequence[PortParameter], every: Sequence[PortParameter]) -> str:
    """Code that picks these parameters of the port: by what they alone have in common, or by name."""
    paths = [each.path for each in where]
    for picked, has in GROUPS:
        if {each.path for each in every if has(each)} == set(paths):
            return f"[{picked}]"
    if len(paths) > MOST_NAMES:
        return places_of(paths)
    names = ", ".join(f'"{path}"' for path in paths)
    return f"[p for n, p in port.named_parameters() if n in {{{names}}}]"


def _smaller_epsilon(settings: Mapping[str, Any], port: str, written: Written) -> str:
    """Inside and outside of a root are the same for an epsilon too small to matter."""
    line = written(port, {"epsilon": float(settings.get("epsilon", 0.0)) ** 2})
    return phrase("write {line}: inside of the root epsilon counts as its square does outside", line=line)
