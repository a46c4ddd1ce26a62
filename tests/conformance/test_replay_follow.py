"""Led along its own trace a model shows no error; a planted fault shows where it is and only there."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.replay.ledger import Ledger
from parfocal.replay.perturbing import Perturber
from parfocal.replay.repeat import Repeater, own_script
from tests.conformance.replayed import MODELS, ROWS, Run, bare, build, followed, observed

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")


def wrong(sightings):
    """The places at which what was computed is not what was recorded."""
    return [
        (each.order, each.side, each.slot, each.direction)
        for each in sightings
        if each.observed is None or each.expected is None or not np.array_equal(each.observed, each.expected)
    ]


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_along_its_own_trace_shows_no_error(kit, name, training):
    with Ledger() as ledger:
        trace, _ = observed(kit, *build(kit, name, training=training), ledger)
        sightings = followed(kit, *build(kit, name, training=training), trace, ledger)
    assert wrong(sightings) == []
    directions = {each.direction for each in sightings}
    assert "forward" in directions
    assert all(each.layout.is_identity for each in sightings)


def fault(kit, path, factor=1.01):
    """Makes the layer at this path another one."""

    def plant(model):
        layer = kit.backend.modules(model)[path]
        kit.backend.write(layer.bias, (kit.array(layer.bias) + np.float32(factor)).astype("float32"))

    return plant


@pytest.mark.parametrize(
    ("name", "path"), [("branching", "left"), ("branching", "stem"), ("several", "inner.layer")]
)
def test_a_planted_fault_shows_at_its_own_output_and_nowhere_else(kit, name, path):
    with Ledger() as ledger:
        trace, _ = observed(kit, *build(kit, name), ledger)
        model, values = build(kit, name)
        fault(kit, path)(model)
        sightings = followed(kit, model, values, trace, ledger)
    guilty = next(node.order for node in trace.nodes if node.path == path)
    assert wrong(sightings) == [(guilty, "output", "0", "forward")]


def test_a_fault_in_the_code_around_the_layers_shows_at_what_the_code_gives(kit):
    def model(factor):
        def forward(self, x):
            return self.last(self.first(x) * factor) + 1.0

        return kit.fill(kit.module(forward, first=kit.linear(6, 6), last=kit.linear(6, 6)))

    with Ledger() as ledger:
        trace, _ = observed(kit, model(1.0), ROWS, ledger)
        sightings = followed(kit, model(1.5), ROWS, trace, ledger)
    # the input of the next layer going forward, the output gradient of the one before going backward
    assert wrong(sightings) == [(2, "input", "0", "forward"), (1, "output", "0", "backward")]


def test_a_backward_that_goes_nowhere_is_seen(kit):
    def model(detached):
        def forward(self, x):
            y = self.first(x)
            return self.last(y.detach() if detached else y) + y * 0.0

        return kit.fill(kit.module(forward, first=kit.linear(6, 6), last=kit.linear(6, 6)))

    with Ledger() as ledger:
        trace, _ = observed(kit, model(False), ROWS, ledger)
        sightings = followed(kit, model(True), ROWS, trace, ledger)
    places = wrong(sightings)
    assert places
    assert all(direction == "backward" for *_, direction in places)


def test_a_gradient_that_comes_back_wrong_to_a_block_is_not_blamed_on_what_is_inside(kit):
    def model(cut):
        def forward(self, x):
            y = self.block(x)
            return self.left(y) + self.right(y.detach() if cut else y)

        block = kit.sequential(kit.linear(6, 6), kit.linear(6, 6))
        return kit.fill(kit.module(forward, block=block, left=kit.linear(6, 6), right=kit.linear(6, 6)))

    with Ledger() as ledger:
        trace, _ = observed(kit, model(False), ROWS, ledger)
        sightings = followed(kit, model(True), ROWS, trace, ledger)
    paths = {node.order: node.path for node in trace.nodes}
    places = {(paths[order], side, direction) for order, side, _, direction in wrong(sightings)}
    assert ("block", "output", "backward") in places
    assert not any(path.startswith("block.") for path, *_ in places)


def test_following_changes_no_weights_and_leaves_no_hooks(kit, backend):
    with Ledger() as ledger:
        trace, _ = observed(kit, *build(kit, "chain"), ledger)
        model, values = build(kit, "chain")
        before = bare(kit, model, values)
        followed(kit, model, values, trace, ledger)
        backend.clear_gradients(model)
        assert bare(kit, model, values) == before


def test_a_call_repeated_alone_gives_what_it_gave(kit, backend):
    for name in ("branching", "pre_activation", "several"):
        with Ledger() as ledger:
            model, values = build(kit, name)
            trace, _ = observed(kit, model, values, ledger)
            repeater = Repeater(backend, model, trace, own_script(trace))
            for node in trace.nodes:
                repeated = repeater.repeat([node.order], None, lambda data: ledger.get(data.stored))
                for slot, value in node.outputs.items():
                    place = (node.order, "output", slot, "forward")
                    if place in repeated.places:
                        assert np.array_equal(repeated.places[place], ledger.get(value.data.stored)), (
                            node.path
                        )


@pytest.mark.parametrize("name", MODELS)
def test_a_call_repeated_forward_only_gives_what_it_gives_with_gradients(kit, backend, name):
    with Ledger() as ledger:
        model, values = build(kit, name)
        trace, _ = observed(kit, model, values, ledger)
        repeater = Repeater(backend, model, trace, own_script(trace))
        for node in trace.nodes:
            both = repeater.repeat([node.order], None, lambda data: ledger.get(data.stored))
            alone = repeater.repeat([node.order], None, lambda data: ledger.get(data.stored), backward=False)
            forward = {place for place in both.places if place[3] == "forward"}
            assert alone.places.keys() == forward, node.path
            assert all(np.array_equal(alone.places[each], both.places[each]) for each in forward), node.path
            assert not alone.parameters


# of one that is overwritten without a word, the caller goes on with what was made of it
@pytest.mark.parametrize("name", [name for name in MODELS if name != "unannounced"])
def test_a_call_repeated_alone_sends_back_what_it_sent_back(kit, backend, name):
    """What it is given is made for it and not exchanged once more, and still its gradients are seen."""
    with Ledger() as ledger:
        model, values = build(kit, name)
        trace, _ = observed(kit, model, values, ledger)
        repeater = Repeater(backend, model, trace, own_script(trace))
        seen = 0
        for node in trace.nodes:
            repeated = repeater.repeat([node.order], None, lambda data: ledger.get(data.stored))
            for slot, value in node.inputs.items():
                observed_there = repeated.places.get((node.order, "input", slot, "backward"))
                if observed_there is not None and value.gradient is not None:
                    recorded = ledger.get(value.gradient.stored)
                    assert np.allclose(observed_there, recorded, rtol=1e-5, atol=1e-5), node.path
                    seen += 1
    assert seen


def test_what_a_repeated_call_takes_is_fetched_once(kit, backend):
    """A layer going forward: its input to be given, its output to be looked at."""
    with Ledger() as ledger:
        model, values = build(kit, "branching")
        trace, _ = observed(kit, model, values, ledger)
        stem = next(node for node in trace.nodes if node.path == "stem")
        fetched = []

        def supply(data):
            fetched.append(data)
            return ledger.get(data.stored)

        Repeater(backend, model, trace, own_script(trace)).repeat([stem.order], None, supply, backward=False)
    assert fetched == [stem.inputs["0"].data, stem.outputs["0"].data]


def test_calls_of_one_module_repeated_together_add_up_to_its_gradient(kit, backend):
    with Ledger() as ledger:
        model, values = build(kit, "shared")
        trace, outcome = observed(kit, model, values, ledger)
        repeater = Repeater(backend, model, trace, own_script(trace))
        orders = [node.order for node in trace.nodes if node.path == "layer"]
        repeated = repeater.repeat(orders, None, lambda data: ledger.get(data.stored))
    whole = np.frombuffer(outcome.gradients["layer.weight"], "float32").reshape(6, 6)
    assert np.allclose(repeated.parameters["layer.weight"], whole, rtol=1e-5, atol=1e-5)


def test_a_call_repeated_in_float64_is_more_precise(kit, backend):
    with Ledger() as ledger:
        model, values = build(kit, "branching")
        trace, _ = observed(kit, model, values, ledger)
        stem = next(node for node in trace.nodes if node.path == "stem")
        repeater = Repeater(backend, model, trace, own_script(trace))
        repeated = repeater.repeat(
            [stem.order], "float64", lambda data: ledger.get(data.stored).astype("float64")
        )
    weight, bias = (kit.array(tensor).astype("float64") for tensor in (model.stem.weight, model.stem.bias))
    exact = values.astype("float64") @ (weight.T if kit.name == "torch" else weight) + bias
    found = repeated.places[stem.order, "output", "0", "forward"]
    assert found.dtype == np.float64
    assert np.allclose(found, exact, rtol=1e-14, atol=1e-14)


def test_repeating_leaves_the_model_alone_and_may_change_the_twin(kit, backend):
    with Ledger() as ledger:
        model, values = build(kit, "branching")
        trace, _ = observed(kit, model, values, ledger)
        before = bare(kit, model, values)
        stem = next(node for node in trace.nodes if node.path == "stem")
        repeater = Repeater(backend, model, trace, own_script(trace))

        def without_bias(twin):
            backend.write(twin.bias, np.zeros(6, "float32"))

        repeated = repeater.repeat([stem.order], None, lambda data: ledger.get(data.stored), without_bias)
        recorded = ledger.get(stem.outputs["0"].data.stored)
    difference = recorded - repeated.places[stem.order, "output", "0", "forward"]
    assert np.allclose(difference, kit.array(model.stem.bias), atol=1e-5)
    assert bare(kit, model, values) == before


@pytest.mark.parametrize("name", MODELS)
def test_shaking_moves_a_model_by_about_what_was_asked(kit, backend, name):
    with Ledger() as ledger:
        model, values = build(kit, name)
        trace, outcome = observed(kit, model, values, ledger)
        amounts = {node.order: 1e-4 for node in trace.nodes if node.is_leaf}
        run = Run(kit, model, values)
        with backend.watch(model, None, Perturber(backend, trace, amounts).on_exit):
            run.drive(model(run.input))
        backend.clear_gradients(model)
    for slot, shaken in run.outputs.items():
        a, b = (np.frombuffer(raw, "float32") for raw in (shaken, outcome.outputs[slot]))
        moved = np.linalg.norm(a - b) / np.linalg.norm(b)
        assert 1e-6 < moved < 1e-2, slot
    assert bare(kit, model, values).outputs == outcome.outputs
    assert run.gradients.keys() == outcome.gradients.keys()
    assert run.gradients != outcome.gradients


def test_shaking_by_nothing_changes_nothing(kit, backend):
    with Ledger() as ledger:
        model, values = build(kit, "branching")
        trace, outcome = observed(kit, model, values, ledger)
        run = Run(kit, model, values)
        shaker = Perturber(backend, trace, {node.order: 0.0 for node in trace.nodes})
        with backend.watch(model, None, shaker.on_exit):
            run.drive(model(run.input))
        backend.clear_gradients(model)
    assert run.outputs == outcome.outputs
    assert run.gradients == outcome.gradients


def test_gradients_are_shaken_too_where_values_do_not_reach_them(kit, backend):
    """The gradient of a single layer's weights hangs on its input and its output gradient alone."""
    model = kit.fill(kit.module(lambda self, x: self.layer(x), layer=kit.linear(6, 6)))
    with Ledger() as ledger:
        trace, outcome = observed(kit, model, ROWS, ledger)
        run = Run(kit, model, ROWS)
        with backend.watch(model, None, Perturber(backend, trace, {1: 1e-3}).on_exit):
            run.drive(model(run.input))
        backend.clear_gradients(model)
    a, b = (np.frombuffer(side["layer.weight"], "float32") for side in (run.gradients, outcome.gradients))
    assert 1e-4 < np.linalg.norm(a - b) / np.linalg.norm(b) < 1e-2


def test_what_is_not_led_into_a_call_is_computed_back_through_it(kit, backend):
    """Led along an input, a call takes the recorded gradient there for its own; otherwise it computes one."""
    with Ledger() as ledger:
        model, values = build(kit, "branching")
        trace, _ = observed(kit, model, values, ledger)
        (stem,) = (node for node in trace.nodes if node.path == "stem")
        takers = [node for node in trace.nodes if node.path in ("left", "right")]
        place = stem.order, "output", "0", "backward"

        def sent_back(slots):
            takes = {stem.order: ("0",), **{node.order: slots for node in takers}}
            repeater = Repeater(backend, model, trace, own_script(trace, takes, takes))
            wide = repeater.repeat([0], "float64", lambda data: ledger.get(data.stored).astype("float64"))
            return wide.places[place]

        given, computed = sent_back(("0",)), sent_back(())
    assert takers
    assert not np.array_equal(computed, given)  # what was recorded is rounded to float32
    assert np.allclose(computed, given, rtol=1e-5, atol=1e-6)
