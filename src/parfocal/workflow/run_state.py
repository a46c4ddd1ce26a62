"""What two recorded runs say of buffers: running statistics of paired layers, before and after a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parfocal.backends.protocol import Array
from parfocal.judge.verdict import Finding
from parfocal.replay.trace import Node
from parfocal.workflow.recorded import Recorded
from parfocal.workflow.statistics import Statistic

# One framework's name for a statistic -> the common one.
NAMES = {"_mean": "running_mean", "_variance": "running_var"}
Layer = tuple[Node, Node, float]  # of the reference and of the port, and the error that both were given


def statistics(layers: Iterable[Layer], reference: Recorded, port: Recorded) -> Iterator[Statistic]:
    """Those of layers that both runs have in full; a layer that is called again is one all the same."""
    called: dict[tuple[str, str], list[Layer]] = {}
    for layer in layers:
        called.setdefault((layer[0].path, layer[1].path), []).append(layer)
    for (source, target), calls in called.items():
        ours, theirs = _of(reference, source), _of(port, target)
        node, other, _ = calls[0]
        for name in ours.keys() & theirs.keys() if node.inputs else ():
            (before, expected), (_, observed) = ours[name][1], theirs[name][1]
            if expected.shape == observed.shape:
                given = max(given for _, _, given in calls)
                yield Statistic(theirs[name][0], before, expected, observed, node, other, len(calls), given)


def findings(reference: Recorded, port: Recorded) -> Iterator[Finding]:
    """What could not be compared."""
    for words, own, other in (("port", port, reference), ("reference", reference, port)):
        if other.went_back and not own.went_back:
            yield Finding(
                "run.forward", f"no gradients in the run of the {words}: only what goes forward counts"
            )


def _of(side: Recorded, owner: str) -> dict[str, tuple[str, tuple[Array, Array]]]:
    """Common name -> path and the values before and after, of a module's buffers that are there in full."""
    found = {}
    for path, moments in side.buffers.items():
        module, _, name = path.rpartition(".")
        values = [moments.get(moment) for moment in ("before", "after")]
        if module == owner and all(value is not None and value.ref is not None for value in values):
            arrays = [side.run.read(value) for value in values if value is not None]
            if arrays[0].dtype.kind == "f":  # a counter of batches is no statistic
                found[NAMES.get(name, name)] = path, (arrays[0], arrays[1])
    return found
