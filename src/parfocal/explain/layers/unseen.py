"""Layers whose settings differ although they agree on these inputs: would they agree on others?

A ReLU for a ReLU6 shows only where values are large, a size that is rounded up only where it is odd, a
momentum only in training. Whether it is a difference is tried on inputs made from those at hand; it is worth
knowing and no divergence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array, Backend
from parfocal.backends.vocabulary import ACTIVATIONS, family
from parfocal.errors import ParfocalError
from parfocal.explain.causes import code_of, place, said
from parfocal.explain.layers.settings import exchanged, rebuilt
from parfocal.explain.ops.values import close
from parfocal.judge import limits
from parfocal.judge.verdict import Finding, Site
from parfocal.matching.pairing import Pairing
from parfocal.phrases import phrase
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.trace import Node
from parfocal.weights.settings import differing_names

APART = limits.causes.UNSEEN_APART.value


@dataclass(frozen=True, slots=True)
class InputProbe:
    """Inputs on which a difference may show, in words, and how they are made from those at hand."""

    words: str
    make: Callable[[Array], Array]
    training: bool = False


def _of_odd_size(x: Array) -> Array:
    """Without the last row and column of images, or the last step of sequences."""
    kept = [slice(None), slice(None)] + [slice(None, -1)] * (x.ndim - 2)
    return np.asarray(x[tuple(kept[: x.ndim])])


PROBES = (
    InputProbe(phrase("on inputs 100 times as large"), lambda x: 100.0 * x),
    InputProbe(phrase("on inputs 1000 times as small"), lambda x: 1e-3 * x),
    InputProbe(phrase("on inputs that are larger by 10"), lambda x: x + 10.0),
    InputProbe(phrase("on inputs that are smaller by 10"), lambda x: x - 10.0),
    InputProbe(phrase("on inputs of another size"), _of_odd_size),
    InputProbe(phrase("in training"), lambda x: x, training=True),
)


def unseen(precise: NoiseFloors, pairing: Pairing, told: Collection[str]) -> list[Finding]:
    """One finding per difference, for all the layers that have it.

    ``told``: paths of which something is said already.
    """
    groups: dict[tuple[str, str], list[tuple[Node, Node, str]]] = {}
    seen: set[str] = set(told)
    for pair in pairing.pairs:
        ours, theirs = precise.reference.trace.nodes[pair.reference], precise.port.trace.nodes[pair.port]
        one_to_one = _is_layer(ours) and _is_layer(theirs) and pair.gives == pair.reference
        if ours.path in told or theirs.path in seen or not one_to_one:
            continue
        seen.add(theirs.path)
        for code, message, make in _differences(precise, ours, theirs):
            shown = _shown(precise, theirs, make)
            if shown is not None:
                said_so = phrase(
                    "{message}; not seen on these inputs, but {shown}", message=message, shown=shown
                )
                groups.setdefault((code, said_so), []).append((ours, theirs, message))
    return [_finding(code, message, found) for (code, message), found in groups.items()]


def _is_layer(node: Node) -> bool:
    return node.framework_layer and node.is_leaf


Make = Callable[[Any], Any]


def _differences(precise: NoiseFloors, ours: Node, theirs: Node) -> Iterator[tuple[str, str, Make]]:
    """Code, words, and the port's layer as the reference's is."""
    backend, module = precise.port.backend, precise.port.modules[theirs.path]
    other = precise.reference.modules[ours.path]
    if not isinstance(backend, LayerBuilder):
        return
    if family(ours.kind) != family(theirs.kind):
        code = "op.activation" if {ours.kind, theirs.kind} <= ACTIVATIONS else "op.kind"
        message = phrase(
            "{reference} in the reference, {port} in the port", reference=ours.kind, port=theirs.kind
        )
        yield code, message, lambda twin: exchanged(backend, ours, other, twin)
    elif backend.can_build(module):
        for name in differing_names(ours.settings, theirs.settings):
            settings = {**theirs.settings, name: ours.settings[name]}
            message = phrase(
                "{name} of {kind} is {reference} in the reference, {port} in the port",
                name=name,
                kind=theirs.kind,
                reference=said(ours.settings[name]),
                port=said(theirs.settings[name]),
            )
            make = _rebuilding(backend, settings, other)
            yield code_of(name, theirs.kind), message, make


def _rebuilding(backend: Backend, settings: dict[str, Any], source: Any) -> Make:
    return lambda twin: rebuilt(backend, twin, settings, source)


def _shown(precise: NoiseFloors, node: Node, make: Make) -> str | None:
    """The first inputs on which the two layers give different results."""
    binding = precise.port.script.ties.get(node.order)
    if binding is None or len(node.inputs) != 1 or node.inputs.keys() != binding.inputs.keys():
        return None
    ((slot, value),) = binding.inputs.items()
    if "float" not in value.data.dtype:
        return None
    layout = precise.port.script.layout(node.order, "input", slot, value)
    given = layout.apply(precise.recorded(value.data))
    backend, module = precise.port.backend, precise.port.modules[node.path]
    for probe in PROBES:
        try:
            results = [_run(backend, module, each, probe, given) for each in (None, make)]
        except ParfocalError:
            return None  # a layer that cannot be made so
        except Exception:  # noqa: BLE001  whatever a framework raises for inputs it does not take
            continue
        if not _are_alike(*results):
            return phrase("seen {words}", words=probe.words)
    return None


def _run(backend: Backend, module: Any, make: Make | None, probe: InputProbe, given: Array) -> list[Array]:
    """What a twin gives, and what it keeps then; both draw the same random numbers."""
    state = backend.rng_state()
    try:
        twin = backend.copy_as(module, None)
        twin = twin if make is None else make(twin)
        if probe.training:
            twin.train()
        x = np.ascontiguousarray(probe.make(given).astype(given.dtype))
        with backend.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a trial that the user did not ask for
            results = [backend.to_array(twin(backend.from_array(x)))]
        kept = [backend.to_array(entry.value) for entry in backend.state(twin) if entry.role == "buffer"]
        return results + kept
    finally:
        backend.set_rng_state(state)


def _are_alike(mine: list[Array], others: list[Array]) -> bool:
    if [array.shape for array in mine] != [array.shape for array in others]:
        return False
    pairs = zip(map(_flat, mine), map(_flat, others), strict=True)
    return all(close(one, other, APART) for one, other in pairs)


def _flat(array: Array) -> Array:
    return array.astype(np.float64).reshape(-1)


def _finding(code: str, message: str, found: list[tuple[Node, Node, str]]) -> Finding:
    ours, theirs, _ = found[0]
    sites = (Site(n.path, n.kind, None, n.file, n.line, n.settings) for n in (ours, theirs))
    where = place(theirs)
    if len(found) > 1:
        where = phrase("{names} and {count} more", names=where, count=len(found) - 1)
    return Finding(code, phrase("{where}: {message}", where=where, message=message), *sites)
