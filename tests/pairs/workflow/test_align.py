"""``align`` on small pairs: who may stand on which side, what may go in, and what comes out."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import pytest

import parfocal as pf
from parfocal.replay import ledger
from tests.conformance.models import kit_for
from tests.pairs.workflow.tools import IMAGES, PADDLE, SIDES, TORCH, X, custom, lively, mlp

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")

NHWC = IMAGES.transpose(0, 2, 3, 1).copy()


def conv_net(framework, seed=0, *, last=True, layout="NCHW"):
    """Convolution, norm, activation, convolution, mean: with everything a layout can get wrong."""
    kit = kit_for(framework)
    if framework == TORCH:
        layers = kit.nn.Conv2d(3, 4, 3), kit.nn.BatchNorm2d(4), kit.nn.ReLU(), kit.nn.Conv2d(4, 5, 2)
    else:
        form = {"data_format": layout}
        layers = (
            kit.nn.Conv2D(3, 4, 3, **form), kit.nn.BatchNorm2D(4, **form), kit.nn.ReLU(),
            kit.nn.Conv2D(4, 5, 2, **form),
        )  # fmt: skip
    names = ("stem", "norm", "activation", "head")

    def forward(self, x):
        y = self.head(self.activation(self.norm(self.stem(x))))
        return y.mean((1, 2) if layout == "NHWC" else (2, 3)) if last else y

    return lively(kit, kit.module(forward, "Net", **dict(zip(names, layers, strict=True))), seed)


@pytest.mark.parametrize("frameworks", SIDES, ids=lambda pair: "-".join(pair))
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_any_framework_may_stand_on_either_side(frameworks, mode):
    reference, port = (conv_net(framework, seed) for seed, framework in enumerate(frameworks))
    report = pf.align(reference, port, IMAGES, mode=mode)
    assert report.ok, str(report)
    assert report.first is None
    assert report.coverage.count("calls") == report.coverage.of("calls") == 4
    assert report.coverage.count("parameter gradients") >= 6
    assert report.coverage.directions == ("forward", "backward")
    assert {pair.port.path for pair in report.pairs} == {"", "stem", "norm", "activation", "head"}
    assert all(pair.reference.path == pair.port.path for pair in report.pairs)


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_sides_in_different_layouts(backward, last):
    reference, port = conv_net(TORCH, 0, last=last), conv_net(PADDLE, 1, last=last, layout="NHWC")
    report = pf.align(reference, port, pf.sides(IMAGES, NHWC), backward=backward)
    assert report.ok, str(report)
    assert report.coverage.count("calls") == 4


def test_a_mistake_in_another_layout_is_found_where_it_is():
    reference, port = conv_net(TORCH), conv_net(PADDLE, 1, layout="NHWC")
    port.norm._epsilon = 1e-2
    report = pf.align(reference, port, pf.sides(IMAGES, NHWC))
    assert (report.first.phase, report.first.port.path, report.first.reference.path) == (
        "forward",
        "norm",
        "norm",
    )
    assert [each.port.path for each in report.divergences if not each.inherited] == ["norm"]


def two(self, x, y):
    return self.a(x) * 2.0 + self.b(y)


def pair_of(forward, **sizes):
    return [custom(framework, forward, seed, **sizes) for seed, framework in enumerate((TORCH, PADDLE))]


@pytest.mark.parametrize(
    "inputs",
    [
        (X, X[::-1].copy()),
        {"x": X, "y": X[::-1].copy()},
        {"y": X, "x": X[::-1].copy()},
        pf.sides((X, X + 1), {"x": X, "y": X + 1}),
    ],
    ids=["tuple", "dict", "dict in another order", "sides"],
)
def test_inputs_by_position_and_by_keyword(inputs):
    report = pf.align(*pair_of(two, a=(4, 3), b=(4, 3)), inputs)
    assert report.ok, str(report)


def test_inputs_that_differ_between_the_sides_are_found():
    report = pf.align(*pair_of(two, a=(4, 3), b=(4, 3)), pf.sides((X, X + 1), (X, X + 2)))
    first, *rest = report.divergences
    assert (first.phase, first.what) == ("forward", "input 1 of the whole model")
    assert first.message == "the two sides were given different inputs"
    assert all(each.inherited for each in rest)


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
def test_native_tensors_of_either_framework_as_inputs(framework):
    tensor = kit_for(framework).tensor(X)
    assert pf.align(mlp(TORCH), mlp(PADDLE, 1), tensor).ok
    assert np.array_equal(kit_for(framework).array(tensor), X)


def test_nested_inputs_and_outputs_and_integers():
    def forward(self, batch, *, scale):
        ids, (x, _) = batch["ids"], batch["rest"]
        y = self.a(self.table(ids)) + x
        return {"logits": y * scale, "hidden": [self.b(y)], "ids": ids}

    models = []
    for seed, framework in enumerate((TORCH, PADDLE)):
        kit = kit_for(framework)
        children = {"table": kit.nn.Embedding(9, 4), "a": kit.linear(4, 4), "b": kit.linear(4, 2)}
        models.append(lively(kit, kit.module(forward, **children), seed))
    ids = np.random.default_rng(0).integers(0, 9, 6)
    inputs = {"batch": {"ids": ids, "rest": [X, "unused"]}, "scale": 0.5}
    report = pf.align(*models, inputs)
    assert report.ok, str(report)
    assert report.coverage.count("calls") == 3


def test_one_loss_for_both_and_one_for_each():
    torch = kit_for(TORCH).torch
    paddle = kit_for(PADDLE).paddle

    def cross_entropies():
        labels = np.array([0, 1, 2, 0, 1, 2])
        ours = torch.nn.CrossEntropyLoss()
        theirs = paddle.nn.CrossEntropyLoss()
        return (
            lambda output: ours(output, torch.from_numpy(labels)),
            lambda output: theirs(output, paddle.to_tensor(labels)),
        )

    for loss in (lambda output: (output**2).mean(), cross_entropies()):
        report = pf.align(mlp(TORCH), mlp(PADDLE, 1), X, loss=loss)
        assert report.ok, str(report)


def test_losses_that_differ_come_before_the_gradients_that_follow():
    losses = (lambda output: (output**2).mean(), lambda output: (output**2).sum())
    report = pf.align(mlp(TORCH), mlp(PADDLE, 1), X, loss=losses)
    first, *rest = report.divergences
    assert (first.phase, first.what, first.inherited) == ("loss", "the loss", False)
    assert first.message == "the outputs agree and the losses do not: the two loss functions differ"
    assert rest
    assert all(each.inherited for each in rest)


def test_without_backward_nothing_of_it_is_compared():
    report = pf.align(mlp(TORCH), mlp(PADDLE, 1), X, backward=False)
    assert report.ok
    assert report.coverage.directions == ("forward",)
    assert report.coverage.count("parameter gradients") == 0
    assert all(pair.backward is None for pair in report.pairs)


def scaled_gradient(factor):
    """Right going forward; going backward the gradient is multiplied."""

    def forward(self, x):
        y = self.a(x)
        return self.b(y * factor - (y * (factor - 1.0)).detach())

    return forward


def test_a_mistake_in_the_backward_pass_alone():
    reference = custom(TORCH, scaled_gradient(1.0), a=(4, 5), b=(5, 3))
    port = custom(PADDLE, scaled_gradient(2.0), 1, a=(4, 5), b=(5, 3))
    report = pf.align(reference, port, X)
    first = report.first
    assert (first.phase, first.port.path) == ("backward", "")
    assert first.what == "gradient of output 0 of a, made by the model's own code"
    assert pf.align(reference, port, X, backward=False).ok


def penalised(framework):
    """A model that asks for gradients of its own in the forward pass."""
    kit = kit_for(framework)

    def forward(self, x):
        y = self.b(kit.functional.sigmoid(self.a(x)))
        (slope,) = (kit.torch.autograd.grad if framework == TORCH else kit.paddle.grad)(
            y.sum(), x, create_graph=True
        )
        return y + (slope * slope).sum(1, keepdim=True)

    return forward


@pytest.mark.parametrize("tolerance", [None, pf.Tolerance(rtol=1e-4, atol=1e-5)], ids=["noise", "fixed"])
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_a_model_that_asks_for_gradients_itself(scale, tolerance):
    models = [custom(side, penalised(side), 3, a=(4, 6), b=(6, 1)) for side in (TORCH, PADDLE)]
    loss = (lambda y: (y * y).mean(), lambda y: (y * y).mean() * scale)
    report = pf.align(*models, X, loss=loss, tolerance=tolerance)
    assert report.ok == (scale == 1.0), str(report)


def test_the_first_of_two_mistakes_comes_first_and_both_are_own():
    report = pf.align(*faulty_pair("b", "a"), X)
    own = [each for each in report.divergences if not each.inherited]
    assert [each.port.path for each in own if each.phase == "forward"] == ["a", "b"]
    assert report.first.port.path == "a"


def test_one_mistake_blames_nobody_downstream():
    report = pf.align(*faulty_pair("a"), X)
    own = [each for each in report.divergences if not each.inherited]
    assert {each.port.path for each in own} == {"a"}
    assert any(each.inherited for each in report.divergences)
    assert report.divergences == tuple(sorted(report.divergences, key=lambda each: each.inherited))


def faulty_pair(*faulty):
    """Three activations in a row; the named ones have another slope in the port."""

    def forward(self, x):
        return self.last(self.c(self.two(self.b(self.one(self.a(self.first(x)))))))

    models = []
    for seed, framework in enumerate((TORCH, PADDLE)):
        kit = kit_for(framework)
        slopes = {name: 0.3 if framework == PADDLE and name in faulty else 0.2 for name in "abc"}
        children = {name: kit.nn.LeakyReLU(slope) for name, slope in slopes.items()}
        linears = {
            "first": kit.linear(4, 6),
            "one": kit.linear(6, 6),
            "two": kit.linear(6, 6),
            "last": kit.linear(6, 3),
        }
        models.append(lively(kit, kit.module(forward, **children, **linears), seed))
    return models


@pytest.mark.parametrize("atol", [1e-3, 1e-12])
def test_a_fixed_tolerance_decides_by_itself(atol):
    tolerance = pf.Tolerance(atol=atol)
    port = conv_net(PADDLE, 1)  # the same but for two units in the last place
    port.head.register_forward_post_hook(lambda layer, given, output: output * (1 + 2.0**-22))
    report = pf.align(conv_net(TORCH), port, IMAGES, tolerance=tolerance)
    assert report.ok == (atol == 1e-3), str(report)
    loose = pf.align(*faulty_pair("b"), X, tolerance=pf.Tolerance(atol=100.0))
    assert loose.ok


def test_a_fixed_tolerance_names_the_first_call_beyond_it():
    reference, port = conv_net(TORCH), conv_net(PADDLE, 1)
    port.norm._epsilon = 0.5
    report = pf.align(reference, port, IMAGES, tolerance=pf.Tolerance(rtol=1e-3, atol=1e-4))
    assert (report.first.phase, report.first.port.path) == ("forward", "norm")


def test_little_memory_gives_the_same_verdict_and_leaves_nothing_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    written = []
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda *args: written.append(1) or real(*args))
    plain = pf.align(*faulty_pair("b"), X)
    assert not written
    spilled = pf.align(*faulty_pair("b"), X, memory="1KB")
    assert len(written) > 5
    assert list(tmp_path.iterdir()) == []
    verdicts = [
        [(each.phase, each.port.path, each.what, each.score) for each in report.divergences]
        for report in (plain, spilled)
    ]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]
    assert pf.align(mlp(TORCH), mlp(PADDLE, 1), X, memory="1KB").ok
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", [None, "b"], ids=["correct", "wrong"])
def test_what_the_default_keeps_in_memory_changes_no_verdict(monkeypatch, fault):
    """A large run is kept in memory for a part only."""

    def aligned():
        pair = (mlp(TORCH), mlp(PADDLE, 1)) if fault is None else faulty_pair(fault)
        report = pf.align(*pair, X)
        return [(each.port.path, each.phase, each.inherited, each.score) for each in report.divergences]

    small = aligned()
    spilled = []
    usual = ledger.Ledger._spill
    monkeypatch.setattr(ledger, "LEAST", 0)
    monkeypatch.setattr(
        ledger.Ledger, "_spill", lambda self, *array: (spilled.append(array), usual(self, *array))
    )
    assert aligned() == small
    assert bool(small) == (fault is not None)
    assert spilled


def test_a_map_of_layers_is_followed():
    def forward(self, x):
        return self.a(x) + self.b(x)

    def swapped(self, x):
        return self.b(x) + self.a(x)

    reference = custom(TORCH, forward, a=(4, 3), b=(4, 3))
    port = custom(PADDLE, swapped, 1, a=(4, 3), b=(4, 3))
    report = pf.align(reference, port, X, layers={"a": "b", "b": "a"})
    assert report.ok, str(report)
    pairs = {(pair.reference.path, pair.port.path): pair.why for pair in report.pairs}
    assert pairs["a", "b"] == pairs["b", "a"] == "layers"


def test_weights_that_differ_without_transfer_come_first():
    reference, port = mlp(TORCH), mlp(PADDLE)
    pf.transfer(reference, port)
    assert pf.align(reference, port, X, transfer=False).ok
    backend = kit_for(PADDLE).backend
    weight = backend.to_array(port[2].weight)
    weight[0, 0] += 0.5
    backend.write(port[2].weight, weight)
    report = pf.align(reference, port, X, transfer=False)
    first = report.first
    assert (first.phase, first.port.path, first.what) == ("weights", "2.weight", "1 of 24 values")
    assert [each.phase for each in report.divergences if not each.inherited] == ["weights"]
    assert np.array_equal(backend.to_array(port[2].weight), weight)  # compared, not mended


def test_an_extra_parameter_in_the_port_is_named():
    reference = custom(TORCH, lambda self, x: self.b(self.a(x)), a=(4, 5), b=(5, 3))
    port = custom(PADDLE, lambda self, x: self.b(self.a(x)) + self.c(x), 1, a=(4, 5), b=(5, 3), c=(4, 3))
    report = pf.align(reference, port, X)
    assert report.first.phase == "weights"
    assert {each.port.path for each in report.divergences if each.phase == "weights" and each.port} == {
        "c.weight", "c.bias",
    }  # fmt: skip


def test_a_saved_plan_is_used(tmp_path):
    reference, port = mlp(TORCH), mlp(PADDLE, 1)
    plan = pf.transfer(reference, port)
    plan.save(tmp_path / "plan.json")
    fresh = mlp(PADDLE, 2)
    report = pf.align(reference, fresh, X, transfer=tmp_path / "plan.json")
    assert report.ok
    assert [(e.source, e.target) for e in report.transfer.entries] == [
        (e.source, e.target) for e in plan.entries
    ]


def test_raise_if_diverged():
    pf.align(mlp(TORCH), mlp(PADDLE, 1), X).raise_if_diverged()
    with pytest.raises(pf.ParfocalError, match=r"^DIFFERENT: Custom \(paddle"):
        pf.align(*faulty_pair("a"), X).raise_if_diverged()


def test_a_model_that_changes_its_input_in_place():
    def forward(self, x):
        return self.a(kit_for(self.framework).relu_(x))

    models = pair_of(forward, a=(4, 3))
    for model, framework in zip(models, (TORCH, PADDLE), strict=True):
        model.framework = framework
    before = X.copy()
    report = pf.align(*models, X)
    assert report.ok, str(report)
    assert np.array_equal(X, before)


def patches(framework, seed, *, flat_inside, scale=1.0):
    """Patches of an image, made into rows inside the block or by the code around it."""
    kit = kit_for(framework)

    def rows(y):
        shape = list(y.shape)
        return y.reshape([shape[0], shape[1], -1]).swapaxes(1, 2)

    def embed(self, x):
        y = self.conv(x) * scale
        return rows(y) if flat_inside else y

    def forward(self, x):
        y = self.embed(x)
        return self.head(y if flat_inside else rows(y))

    block = kit.module(embed, "Embed", conv=kit.conv(3, 8, 3))
    return lively(kit, kit.module(forward, "Net", embed=block, head=kit.linear(8, 3)), seed)


@pytest.mark.parametrize("flat_inside", [(False, True), (True, False)])
def test_images_on_one_side_and_rows_of_pixels_on_the_other(flat_inside):
    reference, port = (
        patches(framework, seed, flat_inside=flat)
        for seed, (framework, flat) in enumerate(zip((TORCH, PADDLE), flat_inside, strict=True))
    )
    report = pf.align(reference, port, IMAGES)
    assert report.ok, str(report)
    assert {pair.port.path for pair in report.pairs} >= {"embed", "embed.conv", "head"}
    wrong = patches(PADDLE, 1, flat_inside=flat_inside[1], scale=1.5)
    first = pf.align(reference, wrong, IMAGES).first
    assert (first.phase, first.port.path, first.what) == ("forward", "embed", "output 0")


def test_a_model_in_training_may_ask_for_the_gradient_of_its_input():
    def forward(self, x):
        rows = x[:, None]
        if self.training:
            rows.requires_grad = True  # as is done for the sake of checkpoints
        return self.a(rows)

    kits = kit_for(TORCH), kit_for(PADDLE)
    reference = lively(kits[0], kits[0].module(forward, a=kits[0].linear(X.shape[-1], 4)), 0)
    port = kits[1].module(lambda self, x: self.a(x.unsqueeze(1)), a=kits[1].linear(X.shape[-1], 4))
    assert pf.align(reference, port, X, mode="train").ok
    port = kits[1].module(lambda self, x: self.a(x.unsqueeze(1)) * 2.0, a=kits[1].linear(X.shape[-1], 4))
    assert not pf.align(reference, port, X, mode="train").ok  # explained, with every function watched
