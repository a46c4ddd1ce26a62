"""Models that keep a tensor they made for their next call: no run sees what another one kept."""

from __future__ import annotations

import numpy as np
import pytest

import parfocal as pf
from parfocal.backends.keeping import attributes_kept
from tests.conformance.models import kit_for
from tests.pairs.workflow.tools import PADDLE, SIDES, TORCH, X, lively


def once(self, x):
    if not self.made:
        self.table, self.made = self.bias.bias * 2.0, True
    return self.last((self.first(x) + self.table) * self.factor)


def by_key(self, x):
    key = str(x.shape[-1])
    if key not in self.tables:
        self.tables[key] = self.bias.bias * 2.0
    return self.last((self.first(x) + self.tables[key]) * self.factor)


def set_by_the_caller(self, x):
    self.inner.table = self.bias.bias * 2.0
    return self.last(self.inner(x) * 1.0)


def using(self, x):
    return (self.first(x) + self.table) * self.factor


def model(framework, forward, factor=1.0, seed=0):
    kit = kit_for(framework)
    children = {"bias": kit.linear(4, 4), "last": kit.linear(4, 3)}
    first = kit.linear(4, 4)
    if forward is set_by_the_caller:
        children["inner"] = kit.module(using, "Inner", first=first)
        children["inner"].factor = factor
    else:
        children["first"] = first
    built = lively(kit, kit.module(forward, "Keeping", **children), seed)
    built.factor, built.table, built.made, built.tables = factor, None, False, {}
    built.eval()
    return built


@pytest.mark.parametrize("sides", SIDES, ids=str)
@pytest.mark.parametrize("forward", [once, by_key, set_by_the_caller])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_correct_pair_is_the_same_and_keeps_nothing(sides, forward, mode):
    reference, port = (model(side, forward, seed=seed) for seed, side in enumerate(sides))
    report = pf.align(reference, port, X, mode=mode)
    assert report.ok, str(report)
    for each in (reference, port):
        assert (each.table, each.made, each.tables) == (None, False, {})


@pytest.mark.parametrize("sides", SIDES, ids=str)
@pytest.mark.parametrize("forward", [once, by_key, set_by_the_caller])
def test_a_mistake_beside_a_kept_tensor_is_explained(sides, forward):
    reference = model(sides[0], forward)
    port = model(sides[1], forward, 1.25, seed=1)
    report = pf.align(reference, port, X)
    causes = [each.cause for each in report.divergences if not each.inherited]
    assert [cause.code for cause in causes if cause is not None] == ["op.scale"], str(report)
    assert not [finding for finding in report.findings if finding.code == "explain.problem"]


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
@pytest.mark.parametrize("forward", [once, by_key])
def test_what_was_kept_before_stays(framework, forward):
    reference, port = model(framework, forward), model(framework, forward, seed=1)
    kit = kit_for(framework)
    with kit.backend.no_grad():
        reference(kit.tensor(X))
        kept = reference.table, reference.tables.get("4")
    pf.align(reference, port, X, backward=False)
    assert kept[0] is reference.table
    assert kept[1] is reference.tables.get("4")


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
@pytest.mark.parametrize("forward", [once, by_key])
def test_put_back_also_after_an_exception(framework, forward):
    kit, keeping = kit_for(framework), model(framework, forward)
    same = keeping.tables

    def run():
        with attributes_kept(kit.backend, keeping):
            keeping(kit.tensor(X))
            keeping.new = kit.tensor(X)
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        run()
    assert (keeping.table, keeping.made, keeping.tables) == (None, False, {})
    assert keeping.tables is same
    assert not hasattr(keeping, "new")


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
def test_what_is_no_matter_of_tensors_is_left_to_the_model(framework):
    kit, keeping = kit_for(framework), model(framework, once)
    with attributes_kept(kit.backend, keeping):
        keeping.seen = ["a"]
        keeping.made = True
    assert keeping.made
    assert keeping.seen == ["a"]


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
def test_a_copy_has_the_values_of_a_kept_tensor_and_no_graph(framework):
    kit, keeping = kit_for(framework), model(framework, by_key)
    keeping(kit.tensor(X))
    backend = kit.backend
    twin = backend.copy_as(keeping, None)
    assert np.array_equal(kit.array(twin.tables["4"]), kit.array(keeping.tables["4"]))
    assert not backend.requires_grad(twin.tables["4"])
    backend.overwrite(twin.tables["4"], np.zeros(4, "float32"))
    assert kit.array(keeping.tables["4"]).any()
    assert backend.requires_grad(keeping.tables["4"])


def counting(self, x):
    """A count of calls that is changed in place, as one of a list: such tensors are registered nowhere."""
    self.counts[0][0] = self.counts[0][0] + 1.0
    return self.last(self.first(x) * self.counts[0])


def counted(framework, seed=0):
    kit = kit_for(framework)
    children = {"first": kit.linear(4, 4), "last": kit.linear(4, 3)}
    built = lively(kit, kit.module(counting, "Counting", **children), seed)
    built.counts = [kit.tensor(np.zeros(1, "float32"))]
    built.eval()
    return built


@pytest.mark.parametrize("sides", SIDES, ids=str)
def test_what_is_changed_in_place_is_put_back(sides):
    reference, port = (counted(side, seed) for seed, side in enumerate(sides))
    report = pf.align(reference, port, X)
    assert report.ok, str(report)
    for side, each in zip(sides, (reference, port), strict=True):
        assert kit_for(side).array(each.counts[0]).tolist() == [0.0]


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
def test_weights_that_are_listed_too_are_not_put_back(framework):
    kit = kit_for(framework)
    built = counted(framework)
    state = {entry.path: entry.value for entry in kit.backend.state(built)}
    weight = state["first.weight"]
    if framework == TORCH:
        weight.requires_grad = False
    else:
        weight.stop_gradient = True
    built.listed = [weight]
    with attributes_kept(kit.backend, built):
        kit.backend.write(weight, np.ones((4, 4), "float32"))
        kit.backend.write(built.counts[0], np.ones(1, "float32"))
    assert (kit.array(weight) == 1.0).all()
    assert kit.array(built.counts[0]).tolist() == [0.0]
