"""Two natural runs side by side: the port is looked at while it runs, and nothing is changed.

For a fixed tolerance no floors and no own errors are needed, so this is the cheapest way: the
reference's outputs are kept for modules that are known to correspond, and each is compared the
moment the port has made its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from parfocal.backends.protocol import Array, Backend, Call
from parfocal.capture.overwrites import Sight
from parfocal.capture.tree import flatten
from parfocal.judge.layouts import fit
from parfocal.judge.sketch import Fingerprint
from parfocal.replay.follow import Report, Side, Sighting, Supply
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import FLOATING, Observer
from parfocal.replay.trace import Data, Node, Value, unmarked


class Outline(Observer):
    """Notes every call, but keeps only the outputs of the chosen modules."""

    def __init__(
        self, backend: Backend, model: Any, ledger: Ledger | None, chosen: Collection[str], *, gradients: bool
    ) -> None:
        super().__init__(backend, model, ledger, gradients=gradients)
        self.chosen = chosen

    def _enter(self, call: Call) -> None:
        self._begin(call)

    def _exit(self, call: Call, output: Any) -> None:
        node = self.trace.nodes[call.order]
        node.finished = len(self.trace.nodes)
        if call.path in self.chosen:
            node.outputs = self._values(flatten(output).leaves)

    def _mark(self, array: Array) -> Fingerprint:
        return unmarked(array.size)


class Witness(Outline):
    """Compares the outputs of the chosen modules of the port with the reference's, as they come.

    ``recorded``: path of the port's module -> the reference's calls of its counterpart, in order.
    ``partners`` says afterwards which call each sighting was compared with.
    """

    def __init__(
        self,
        backend: Backend,
        model: Any,
        recorded: Mapping[str, list[Node]],
        supply: Supply,
        report: Report,
        partners: dict[tuple[int, Side, str], tuple[int, str]],
        *,
        gradients: bool,
    ) -> None:
        super().__init__(backend, model, None, recorded, gradients=gradients)
        self.recorded = recorded
        self.supply = supply
        self.report = report
        self.partners = partners

    def _exit(self, call: Call, output: Any) -> None:
        node = self.trace.nodes[call.order]
        node.finished = len(self.trace.nodes)
        calls = self.recorded.get(call.path, [])
        if node.occurrence >= len(calls):
            return
        other = calls[node.occurrence]
        for (slot, tensor), (name, value) in zip(self._floating(output), other.outputs.items(), strict=False):
            self.partners[call.order, "output", slot] = (other.order, name)
            own = node.outputs[slot] = Value(self._shape_only(tensor))
            self._compare(call.order, slot, value.data, "forward", tensor)
            if self.gradients and value.gradient is not None and self.backend.requires_grad(tensor):
                own.differentiable = True
                sight = self._overwrites.sight(tensor)
                self._sights.append((own, sight))
                arrived = partial(self._returned, call.order, slot, value.gradient, sight)
                self.backend.watch_gradient(tensor, arrived)

    def _returned(self, order: int, slot: str, recorded: Data, sight: Sight, gradient: Any) -> None:
        if self._complete and not sight.lost:
            self._compare(order, slot, recorded, "backward", gradient)

    def _floating(self, output: Any) -> list[tuple[str, Any]]:
        return [
            (slot, leaf)
            for slot, leaf in flatten(output).leaves.items()
            if self.backend.is_tensor(leaf) and self.backend.dtype(leaf) in FLOATING
        ]

    def _shape_only(self, tensor: Any) -> Data:
        shape = self.backend.shape(tensor)
        count = 1
        for extent in shape:
            count *= extent
        return Data(shape, self.backend.dtype(tensor), unmarked(count), None)

    def _compare(self, order: int, slot: str, recorded: Data, direction: Any, tensor: Any) -> None:
        observed, array = self.backend.to_array(tensor, copy=False), self.supply(recorded)
        layout = fit(array, observed)
        expected = array if layout is None else layout.apply(array)
        self.report(Sighting(order, "output", slot, direction, observed, expected, layout, recorded))
