"""What the tests of replaying share: models that are awkward to watch, and bare runs to hold them against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.capture.nested_values import flatten
from parfocal.replay.follow import Binding, ReplayFollower, Sighting
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import Observer
from parfocal.replay.trace import Trace

IMAGE = np.random.default_rng(3).normal(size=(2, 3, 5, 5)).astype("float32")
ROWS = np.random.default_rng(4).normal(size=(4, 6)).astype("float32")


def in_place_relu(kit: Any) -> Any:
    """A module that overwrites its input and says so, as ReLU(inplace=True) does."""
    if kit.name == "torch":
        return kit.nn.ReLU(inplace=True)
    module = kit.module(lambda self, x: kit.relu_(x), "InPlaceReLU")
    module.inplace = True
    return module


def chain(kit: Any) -> Any:
    return kit.sequential(kit.conv(3, 4, 2), kit.batch_norm(4), in_place_relu(kit), kit.conv(4, 2, 2))


def pre_activation(kit: Any) -> Any:
    """The caller goes on with the tensor that the in-place layer has changed."""

    def forward(self: Any, x: Any) -> Any:
        y = self.first(x)
        z = self.second(self.relu(y))
        return z + y

    return kit.module(forward, first=kit.conv(3, 3, 1), relu=in_place_relu(kit), second=kit.conv(3, 3, 1))


def unannounced(kit: Any) -> Any:
    """A user's module changes its input in place without saying so, and the caller reuses it."""

    def inner(self: Any, x: Any) -> Any:
        kit.relu_(x)
        return self.layer(x)

    def forward(self: Any, x: Any) -> Any:
        y = self.first(x)
        return self.inner(y) + y

    return kit.module(
        forward, first=kit.linear(6, 6), inner=kit.module(inner, "Inner", layer=kit.linear(6, 6))
    )


def shared(kit: Any) -> Any:
    """One layer called three times."""

    def forward(self: Any, x: Any) -> Any:
        return self.layer(self.layer(x)) + self.layer(x * 2.0)

    return kit.module(forward, layer=kit.linear(6, 6))


def branching(kit: Any) -> Any:
    """One tensor used by two layers and by the code around them."""

    def forward(self: Any, x: Any) -> Any:
        y = self.stem(x)
        return self.left(y) * self.right(y) + y

    return kit.module(forward, stem=kit.linear(6, 6), left=kit.linear(6, 6), right=kit.linear(6, 6))


def several(kit: Any) -> Any:
    """Nested outputs and keyword inputs; one output is the input handed back."""

    def inner(self: Any, x: Any, *, scale: Any) -> Any:
        y = self.layer(x)
        return {"scaled": y * scale, "pair": (y, x)}

    def forward(self: Any, x: Any) -> Any:
        found = self.inner(x, scale=self.gate(x))
        return found["scaled"] + found["pair"][1], [found["pair"][0]]

    inner_module = kit.module(inner, "Inner", layer=kit.linear(6, 6))
    return kit.module(forward, inner=inner_module, gate=kit.linear(6, 6))


def identity(kit: Any) -> Any:
    """A module that hands its input through."""

    def forward(self: Any, x: Any) -> Any:
        y = self.layer(x)
        return self.nothing(y) + self.last(y)

    nothing = kit.module(lambda self, x: x, "Nothing")
    return kit.module(forward, layer=kit.linear(6, 6), nothing=nothing, last=kit.linear(6, 6))


def _nothing(kit: Any) -> Any:
    return kit.module(lambda self, x: x, "Nothing")


def _swish_(x: Any, kit: Any) -> Any:
    return (x.mul_ if kit.name == "torch" else x.multiply_)(x.sigmoid())


def overwritten_alias(kit: Any) -> Any:
    """An in-place layer gets what a module handed through."""

    def forward(self: Any, x: Any) -> Any:
        z = self.relu(self.nothing(self.first(x) + x))
        return self.second(z) + z

    layers = {"first": kit.linear(6, 6), "nothing": _nothing(kit), "second": kit.linear(6, 6)}
    return kit.module(forward, relu=in_place_relu(kit), **layers)


def overwritten_by_code(kit: Any) -> Any:
    """Code changes what modules gave: one handed it through, one gave a view of its input."""

    def forward(self: Any, x: Any) -> Any:
        y = self.nothing(self.first(x))
        kit.add_(y, x * 0.5)
        z = self.flat(self.second(y))
        kit.relu_(z)
        return self.last(z.reshape([4, 6]))

    flat = kit.module(lambda self, x: x.reshape([-1]), "Flat")
    layers = {"first": kit.linear(6, 6), "second": kit.linear(6, 6), "last": kit.linear(6, 6)}
    return kit.module(forward, nothing=_nothing(kit), flat=flat, **layers)


def swish_in_place(kit: Any) -> Any:
    """Of a view that is changed in place after another use, a hook gets a part of the gradient."""

    def forward(self: Any, x: Any) -> Any:
        return self.last(self.swish(self.nothing(self.first(x))))

    swish = kit.module(lambda self, x: _swish_(x, kit), "Swish")
    swish.inplace = True
    return kit.module(
        forward, first=kit.linear(6, 6), nothing=_nothing(kit), swish=swish, last=kit.linear(6, 6)
    )


def unannounced_swish(kit: Any) -> Any:
    """The same, without a word."""
    model = swish_in_place(kit)
    del model.swish.inplace
    return model


def nothing_overwritten(kit: Any) -> Any:
    """A block that says that it works in place, and means its layers; its input is used elsewhere too."""

    def block(self: Any, x: Any) -> Any:
        return self.relu(self.layer(x))

    def forward(self: Any, x: Any) -> Any:
        y = self.stem(x)
        return self.block(y) + y * y

    inner = kit.module(block, "Block", layer=kit.linear(6, 6), relu=in_place_relu(kit))
    inner.inplace = True
    return kit.module(forward, stem=kit.linear(6, 6), block=inner)


MODELS = {
    "chain": (chain, IMAGE),
    "pre_activation": (pre_activation, IMAGE),
    "unannounced": (unannounced, ROWS),
    "shared": (shared, ROWS),
    "branching": (branching, ROWS),
    "several": (several, ROWS),
    "identity": (identity, ROWS),
    "overwritten_alias": (overwritten_alias, ROWS),
    "overwritten_by_code": (overwritten_by_code, ROWS),
    "swish_in_place": (swish_in_place, ROWS),
    "unannounced_swish": (unannounced_swish, ROWS),
    "nothing_overwritten": (nothing_overwritten, ROWS),
}


def build(kit: Any, name: str, *, training: bool = False, seed: int = 0) -> tuple[Any, np.ndarray]:
    make, values = MODELS[name]
    model = make(kit)
    random = np.random.default_rng(seed)
    for entry in kit.backend.state(model):
        if entry.tied_to is None and kit.backend.dtype(entry.value) == "float32":
            shape = kit.backend.shape(entry.value)
            drawn = (
                random.uniform(0.5, 1.5, shape) if entry.role == "buffer" else random.normal(0, 0.5, shape)
            )
            kit.backend.write(entry.value, drawn.astype("float32"))
    model.train() if training else model.eval()
    return model, values


@dataclass(frozen=True)
class Outcome:
    """Everything one run of a model shows, in bytes."""

    outputs: dict[str, bytes]
    gradients: dict[str, bytes]
    input_gradient: bytes
    buffers: dict[str, bytes]


class Run:
    """A run with gradients, bare or under watch."""

    def __init__(self, kit: Any, model: Any, values: np.ndarray) -> None:
        self.kit, self.backend, self.model = kit, kit.backend, model
        self.leaf = self.backend.from_array(values, requires_grad=True)
        # as align does it: a leaf itself may not be changed in place
        self.input = self.backend.substitute(self.leaf, values)
        self.outputs: dict[str, bytes] = {}
        self.gradients: dict[str, bytes] = {}

    def drive(self, output: Any) -> None:
        leaves = flatten(output).leaves
        self.outputs = {slot: self.backend.to_array(leaf).tobytes() for slot, leaf in leaves.items()}
        random = np.random.default_rng(9)
        seeds = [
            self.backend.from_array(random.normal(size=self.backend.shape(leaf)).astype("float32"))
            for leaf in leaves.values()
        ]
        self.backend.backward(list(leaves.values()), seeds)
        self.gradients = {
            entry.path: self.backend.gradient(entry.value).tobytes()
            for entry in self.backend.state(self.model)
            if self.backend.gradient(entry.value) is not None
        }

    def outcome(self) -> Outcome:
        buffers = {
            entry.path: self.backend.to_array(entry.value).tobytes()
            for entry in self.backend.state(self.model)
            if entry.role == "buffer"
        }
        return Outcome(self.outputs, self.gradients, self.backend.gradient(self.leaf).tobytes(), buffers)


def bare(kit: Any, model: Any, values: np.ndarray) -> Outcome:
    run = Run(kit, model, values)
    run.drive(model(run.input))
    kit.backend.clear_gradients(model)
    return run.outcome()


def observed(kit: Any, model: Any, values: np.ndarray, ledger: Ledger | None) -> tuple[Trace, Outcome]:
    run = Run(kit, model, values)
    trace = Observer(kit.backend, model, ledger, gradients=True).run((run.input,), {}, run.drive)
    return trace, run.outcome()


def followed(kit: Any, model: Any, values: np.ndarray, trace: Trace, ledger: Ledger) -> list[Sighting]:
    """What is seen when the model is led along a trace of the same calls; arrays are kept."""
    sightings: list[Sighting] = []

    def report(sighting: Sighting) -> None:
        arrays = {
            name: None if array is None else np.array(array)
            for name, array in (("observed", sighting.observed), ("expected", sighting.expected))
        }
        sightings.append(_with(sighting, **arrays))

    ties = {node.order: Binding(node.inputs, node.outputs, node.in_place) for node in trace.nodes}
    run = Run(kit, model, values)
    follower = ReplayFollower(kit.backend, ties, lambda data: ledger.get(data.stored), report, gradients=True)
    with follower.following(model, (run.input,), {}) as output:
        run.drive(output)
    return sightings


def _with(sighting: Sighting, **changes: Any) -> Sighting:
    return sighting._replace(**changes)
