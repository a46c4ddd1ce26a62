"""The script of a mistake that needs both models: what it says, given how to build them and the fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.errors import InputError
from parfocal.explain.causes import PortChange, PortCode, spelled_path
from parfocal.explain.fixes.joining import parts_of
from parfocal.explain.reproducing import (
    DATA,
    OUTPUT,
    TEMPLATE,
    ExtractedLayer,
    Reproduction,
    docstring,
    imports,
    places,
)
from parfocal.judge.verdict import SIDES, Divergence, Fix, fix_text
from parfocal.phrases import phrase

Kind = Literal["output", "input", "parameter"]
ABOUT = """Builds both models, runs {reference} and {port} with the weights and inputs of the
comparison, compares the {what}, and fails until the port is mended: take the mark of a
comment from the line with the fix, or make it in the port's source where it says so."""
GRADIENT = '''def gradient(framework, leaf, result, seeds):
    """The gradient of a leaf for these gradients at the outputs; zeros where there is none."""
    ends = {places: output(result, *places) for places in seeds}
    alive = [places for places, end in ends.items() if not getattr(end, 'stop_gradient', end.grad_fn is None)]
    if alive:
        framework.autograd.backward([ends[each] for each in alive], [seeds[each] for each in alive])
    return np.zeros(tuple(leaf.shape)) if leaf.grad is None else leaf.grad.numpy()'''
UNDROPPED = """def undropped(module, *args, **kwargs):
    with no_dropout(module):
        return module(*args, **kwargs)"""


def is_inside(path: str, outer: str) -> bool:
    return not outer or f"{path}.".startswith(f"{outer}.")


@dataclass(frozen=True, slots=True)
class Watched:
    """One tensor that both modules compute, and its values in the reference, lying as in the port."""

    kind: Kind  # an output, or what the gradient is of
    slots: tuple[str, str]  # of the reference and of the port; of a parameter its name in the module
    expected: Array
    floor: float
    score: float  # of the port as it is


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """Everything that a script needs, except the functions that build the models and the fixes."""

    taken: Mapping[str, ExtractedLayer]
    modes: Mapping[str, Mapping[str, bool]]  # the flags for training by path, the module's own first
    buffers: Mapping[str, Mapping[str, Array]]  # before anything ran
    watched: Watched
    arrays: Mapping[str, Array]
    limit: float

    @property
    def can_be_called(self) -> bool:
        """Whether what the modules have and are called with can be written down, as NumPy knows it."""
        return all(
            taken.call(side) is not None
            and all(hasattr(np, taken.backend.dtype(entry.value)) for entry in taken.state)
            for side, taken in self.taken.items()
        ) and all(array.dtype.kind in "biufc" for array in self.arrays.values())

    def complete(
        self, builds: tuple[str | None, str | None], seed: int, found: Sequence[Divergence]
    ) -> Reproduction:
        """The script for models that ``file.py:build`` and the like make; weights are read only now."""
        path = self.taken["port"].path
        known = [build for build in builds if build is not None]
        if len(known) < 2:
            raise InputError(
                phrase(
                    "the mistake is in {path} itself: a script for it has to build both models",
                    path=path or phrase("the model"),
                ),
                hint=phrase('say how: reproduce(folder, reference="ref.py:build", port="port.py:build")'),
            )
        inside = [each for each in found if each.port is not None and is_inside(each.port.path, path)]
        causes = [each.cause for each in inside if each.cause is not None and not each.inherited]
        making, results = (
            self._making(known, seed, [each.edit or each.fix for each in causes]),
            self._results(),
        )
        modules = {side: spelled(side, taken.path) for side, taken in self.taken.items()}
        helpers = [OUTPUT, *([] if self._forward else [GRADIENT]), *([UNDROPPED] if self._training else [])]
        script = TEMPLATE.format(
            message=docstring("\n".join(dict.fromkeys(each.message for each in causes))),
            about=ABOUT.format(**modules, what=self._what),
            imports="\n".join(self._imports(making)),
            helpers="\n\n\n".join(helpers),
            data=DATA,
            making=making,
            part="result" if self._forward else "gradient",
            **{f"run_{side}": text for side, text in results.items()},
            floor=self.watched.floor,
            limit=self.limit,
        )
        return Reproduction(script, {**self.arrays, **self._weights()})

    @property
    def _what(self) -> str:
        kind, (_, slot) = self.watched.kind, self.watched.slots
        return f"output {slot}" if self._forward else f"gradient of {kind} {slot}"

    @property
    def _forward(self) -> bool:
        return self.watched.kind == "output"

    @property
    def _training(self) -> bool:
        return any(flag for flags in self.modes.values() for flag in flags.values())

    def _imports(self, making: str) -> list[str]:
        own = ["from parfocal.capture.determinism import no_dropout"] if self._training else []
        own += ["from parfocal.cli.loading import load_model"]
        needed = [line for line in ("import sys", "import parfocal") if f"{line.split()[1]}." in making]
        return [*needed, imports(self.taken), *own]

    def _making(self, builds: Sequence[str], seed: int, fixes: Sequence[Fix]) -> str:
        first, last = commented(list(dict.fromkeys(fixes)))
        modules = [spelled(side, taken.path) for side, taken in self.taken.items()]
        lines = [
            *(line for side, build in zip(SIDES, builds, strict=True) for line in built(side, build, seed)),
            *first,
            *(line for side in SIDES for line in self._mode_lines(side)),
            *last,
            *([] if modules == list(SIDES) else [f"reference, port = {', '.join(modules)}"]),
            *(each.script.load.format(side=side) for side, each in self.taken.items() if each.state),
        ]
        return "\n".join((*lines, *(() if self._forward else self._leaves())))

    def _mode_lines(self, side: str) -> list[str]:
        (path, flag), *others = self.modes[side].items()
        whole = f"{spelled(side, path)}.{'train' if flag else 'eval'}()"
        return [whole, *(f"{spelled(side, inner)}.training = {flag}" for inner, flag in others)]

    def _leaves(self) -> list[str]:
        """Lines that name the tensor whose gradient is compared."""
        lines = []
        for (side, taken), slot in zip(self.taken.items(), self.watched.slots, strict=True):
            new = taken.script.leaf.format(name=f"{side} input {slot}")
            lines.append(f"{side}_leaf = {new if self.watched.kind == 'input' else spelled(side, slot)}")
        return lines

    def _results(self) -> dict[str, str]:
        """The expressions for the two arrays."""
        texts = {}
        for (side, taken), slot in zip(self.taken.items(), self.watched.slots, strict=True):
            instead = {slot: f"{side}_leaf.clone()"} if self.watched.kind == "input" else {}
            call = taken.call(side, instead) or ""
            if self._training:
                call = call.replace(f"{side}(", f"undropped({side}, ", 1)
            if self._forward:
                texts[side] = taken.script.array.format(call=f"output({call}, {places(slot)})")
                continue
            begin = f"{side} gradient "
            seeds = ", ".join(
                f"({places(name[len(begin) :])},): {taken.tensor(name)}"
                for name in self.arrays
                if name.startswith(begin)
            )
            texts[side] = f"gradient({taken.backend.name}, {side}_leaf, {call}, {{{seeds}}})"
        return texts

    def _weights(self) -> dict[str, Array]:
        arrays = {}
        for side, taken in self.taken.items():
            for entry in taken.state:
                whole = f"{taken.path}.{entry.path}" if taken.path else entry.path
                before = self.buffers[side].get(whole)
                arrays[f"{side} {entry.path}"] = (
                    taken.backend.to_array(entry.value) if before is None else before
                )
        return arrays


def spelled(side: str, path: str) -> str:
    return spelled_path(path, side)


def built(side: str, build: str, seed: int) -> list[str]:
    """The lines that make a model, from whatever folder they are run."""
    place, _, name = build.rpartition(":")
    if not (place and name):
        raise InputError(
            phrase(
                "{side}={build} is neither file.py:name nor package.module:name", side=side, build=repr(build)
            )
        )
    if not place.endswith(".py"):
        folder = f"sys.path.insert(0, {str(Path.cwd())!r})"
        return [folder, f"{side} = load_model({build!r}, {side!r}, {seed})"]
    file = Path(place).resolve()
    if not file.is_file():
        raise InputError(
            phrase("{side}={build}: there is no file {place}", side=side, build=repr(build), place=place)
        )
    return [f"{side} = load_model({f'{file}:{name}'!r}, {side!r}, {seed})"]


def commented(fixes: Sequence[Fix]) -> tuple[list[str], list[str]]:
    """Every fix as a comment: what makes layers comes first, what sets a mode comes after the modes."""
    first: list[str] = []
    last: list[str] = []
    source: list[str] = []
    for part in (part for fix in fixes for part in parts_of(fix)):
        if isinstance(part, PortCode):
            target = last if part.change is PortChange.MODE else first
            target.append(f"# {part.text}  # the fix")
        else:
            source += fix_text(part).splitlines()
    if source:
        last += ["# To be made in the port's source:", *(f"#     {line}" for line in source)]
    return first, last
