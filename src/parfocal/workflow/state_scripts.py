"""Wrong weights, and running statistics that a layer moves on wrongly, as scripts of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parfocal.attribution.observation import Observation
from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array, Backend
from parfocal.errors import InputError
from parfocal.explain.reproducing import (
    DATA,
    MAKING,
    TEMPLATE,
    ExtractedLayer,
    Reproduction,
    docstring,
    imports,
)
from parfocal.explain.scripting import built, commented, spelled
from parfocal.judge.verdict import SIDES, Divergence
from parfocal.phrases import phrase
from parfocal.replay.trace import Node
from parfocal.weights import views
from parfocal.weights.plan import Entry
from parfocal.workflow.alignment import Alignment
from parfocal.workflow.state import BUFFER_LIMIT

WEIGHTS = """Builds both models, gives the modules around {path} the weights of the comparison, and fails
until the port's are the reference's: take the mark of a comment from the line with the fix."""
LAYER = """Runs the port's layer once, in train mode, on the input that the reference had, looks at what it
keeps, and fails until it is mended: take the mark of a comment from the line with the fix."""
AFTER = """def after(module, name, *args):
    module(*args)
    return getattr(module, name)"""
MEANS = ("running_mean", "_mean")  # a variance may be divided by n or by n - 1, which is no mistake


@dataclass(frozen=True, slots=True)
class WrongWeights:
    """A tensor of the port, what it should be, and the modules around it on both sides."""

    taken: Mapping[str, ExtractedLayer]
    paths: Mapping[str, str]  # of the tensors
    owners: Mapping[str, str]
    expected: Array
    floor: float

    def complete(
        self, builds: tuple[str | None, str | None], seed: int, found: Sequence[Divergence]
    ) -> Reproduction:
        """The script for models that ``file.py:build`` and the like make."""
        known = [build for build in builds if build is not None]
        if len(known) < 2:
            raise InputError(
                phrase(
                    "{path} differs before anything runs: a script has to build both models",
                    path=self.paths["port"],
                ),
                hint=phrase('say how: reproduce(folder, reference="ref.py:build", port="port.py:build")'),
            )
        causes = [
            each.cause
            for each in found
            if each.cause is not None and each.port is not None and each.port.path == self.paths["port"]
        ]
        names = {side: spelled(side, self.owners[side]) for side in SIDES}
        making = [
            *(line for side, build in zip(SIDES, known, strict=True) for line in built(side, build, seed)),
            *(self.taken[side].script.load.format(side=names[side]) for side in SIDES),
            *(line for lines in commented([each.edit or each.fix for each in causes]) for line in lines),
        ]
        arrays = {
            f"{names[side]} {entry.path}": taken.backend.to_array(entry.value)
            for side, taken in self.taken.items()
            for entry in taken.state
        }
        own = "import parfocal\n" if any("parfocal." in line for line in making) else ""
        script = TEMPLATE.format(
            message=docstring("\n".join(dict.fromkeys(each.message for each in causes))),
            about=WEIGHTS.format(path=spelled("port", self.paths["port"])),
            imports=f"{own}{imports(self.taken)}\nfrom parfocal.cli.loading import load_model",
            helpers="",
            data=DATA,
            making="\n".join(making),
            part="tensor",
            **{f"run_{side}": self._array(side) for side in SIDES},
            floor=self.floor,
            limit=1.0,
        )
        return Reproduction(script.replace("\n" * 6, "\n" * 2), {"expected": self.expected, **arrays})

    def _array(self, side: str) -> str:
        return self.taken[side].script.array.format(call=spelled(side, self.paths[side]))


def wrong_weights(alignment: Alignment, differing: Sequence[Divergence]) -> WrongWeights | None:
    """The first difference of weights that is explained."""
    first = next((each for each in differing if each.cause is not None and each.noise.rms), None)
    if first is None or first.reference is None or first.port is None:
        return None
    paths = {"reference": first.reference.path, "port": first.port.path}
    owners = {side: path.rpartition(".")[0] for side, path in paths.items()}
    sides = {"reference": alignment.reference, "port": alignment.port}
    taken = {
        side: ExtractedLayer(
            model_side.backend, model_side.backend.modules(model_side.model)[owners[side]], None
        )
        for side, model_side in sides.items()
    }
    parts = [entry for entry in alignment.plan.entries if entry.target == paths["port"]]
    expected = _as_in_the_port(parts, alignment)
    plain = all(hasattr(np, each.backend.dtype(e.value)) for each in taken.values() for e in each.state)
    return WrongWeights(taken, paths, owners, expected, first.noise.rms) if plain else None


def _as_in_the_port(parts: Sequence[Entry], alignment: Alignment) -> Array:
    """The reference's values, lying as in the port."""
    backend = alignment.reference.backend
    state = {entry.path: entry.value for entry in backend.state(alignment.reference.model)}
    values = [views.apply(each.source_view, backend.to_array(state[each.source])) for each in parts]
    whole = np.zeros(parts[0].target_shape, np.result_type(*(each.dtype for each in values)))
    for entry, value in zip(parts, values, strict=True):
        views.apply(entry.target_view, whole)[...] = value
    return whole


def wrong_statistics(
    alignment: Alignment, observation: Observation, found: Sequence[Divergence]
) -> Reproduction | None:
    """The first layer of a framework that moves its statistics on wrongly, taken out of its model."""
    for each in found:
        if each.cause is not None and each.port is not None and each.reference is not None:
            nodes = _only_calls(alignment, each.reference.path, each.port.path)
            fix = None if nodes is None else _fix(alignment.port.backend, *nodes)
            if nodes is not None and fix is not None:
                return _layer(alignment, observation, nodes, each.cause.message, fix)
    return None


def _fix(backend: Backend, ours: Node, theirs: Node) -> str | None:
    """The port's layer with the reference's momentum; None where one of them is no plain number."""
    momentum = ours.settings.get("momentum")
    if not isinstance(momentum, float) or theirs.settings.get("momentum") in (None, momentum):
        return None
    if not isinstance(backend, LayerBuilder) or not theirs.framework_layer:
        return None
    return f"port = {backend.spell(theirs.kind, {**theirs.settings, 'momentum': momentum}, ['momentum'])}"


def _only_calls(alignment: Alignment, *paths: str) -> tuple[Node, Node] | None:
    traces = alignment.reference.trace, alignment.port.trace
    found = [
        [node for node in trace.nodes if node.path == path] for trace, path in zip(traces, paths, strict=True)
    ]
    once = all(len(calls) == 1 and list(calls[0].inputs) == ["0"] for calls in found)
    return (found[0][0], found[1][0]) if once else None


def _layer(
    alignment: Alignment, observation: Observation, nodes: tuple[Node, Node], message: str, fix: str
) -> Reproduction | None:
    """None where a layer cannot be made by a line of code, or what it was given was not kept."""
    sides = dict(zip(SIDES, (alignment.reference, alignment.port), strict=True))
    taken = {
        side: ExtractedLayer(
            model_side.backend, model_side.backend.modules(model_side.model)[node.path], node
        )
        for (side, model_side), node in zip(sides.items(), nodes, strict=True)
    }
    entry = _mean(alignment.plan.entries, *nodes)
    can_be_built = all(
        isinstance(each.backend, LayerBuilder) and each.backend.can_build(each.module)
        for each in taken.values()
    )
    data = nodes[0].inputs["0"].data
    if entry is None or not can_be_built or data.stored is None:
        return None
    given = observation.precise.recorded(data)
    layout = observation.precise.port.script.layouts.get((nodes[1].order, "input", "0"))
    expected = views.apply(entry.source_view, alignment.reference.natural.buffers[entry.source])
    arrays = {
        "expected": expected,
        "reference input 0": given,
        "port input 0": given if layout is None else layout.apply(given),
    }
    for side, model_side in sides.items():
        arrays |= _state_before(side, taken[side], model_side.buffers_before)
    names = dict(zip(SIDES, (path.rpartition(".")[2] for path in (entry.source, entry.target)), strict=True))
    floor = float(np.finfo(np.float32).eps) * max(data.size.rms, float(np.sqrt(np.mean(expected**2))))
    return Reproduction(_script(taken, names, message, fix, floor), arrays)


def _mean(entries: Sequence[Entry], ours: Node, theirs: Node) -> Entry | None:
    """What was copied from the mean that the one layer keeps to that of the other."""
    for entry in entries:
        (source, _, _), (target, _, name) = (path.rpartition(".") for path in (entry.source, entry.target))
        if (source, target) == (ours.path, theirs.path) and name in MEANS:
            return entry
    return None


def _state_before(side: str, taken: ExtractedLayer, buffers: Mapping[str, Array]) -> dict[str, Array]:
    """A layer's weights, and its buffers as they were before anything ran."""
    arrays = {}
    for tensor in taken.state:
        before = buffers.get(f"{taken.path}.{tensor.path}" if taken.path else tensor.path)
        arrays[f"{side} {tensor.path}"] = taken.backend.to_array(tensor.value) if before is None else before
    return arrays


def _script(
    taken: Mapping[str, ExtractedLayer], names: Mapping[str, str], message: str, fix: str, floor: float
) -> str:
    making = MAKING.format(
        **{side: each.line for side, each in taken.items()},
        first_fix=f"# {fix}  # the fix\n",
        last_fix="",
        loading="\n".join(each.script.load.format(side=side) for side, each in taken.items()),
        reference_mode="train",
        port_mode="train",
    )
    calls = {
        side: f"after({side}, {names[side]!r}, {each.tensor(f'{side} input 0')})"
        for side, each in taken.items()
    }
    return TEMPLATE.format(
        message=docstring(message),
        about=LAYER,
        imports=imports(taken),
        helpers=AFTER,
        data=DATA,
        making=making,
        part=f"{names['port']} after a step",
        **{f"run_{side}": taken[side].script.array.format(call=call) for side, call in calls.items()},
        floor=floor,
        limit=BUFFER_LIMIT,
    )
