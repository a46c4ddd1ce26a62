"""Wrong calls of ``align``: each is one clear error, raised before or instead of a verdict."""

from __future__ import annotations

import re

import numpy as np
import pytest

import parfocal as pf
from parfocal.errors import EmptyComparisonError, InputError, MissingFrameworkError
from tests.conformance.models import kit_for
from tests.pairs.workflow.tools import PADDLE, SIDES, TORCH, X, custom, mlp, snapshot

INPUTS_HINT = "a tuple is passed by position, a dict by keyword; pf.sides(a, b) gives each side its own"


def refusal(kind, *args, **options):
    """The error that ``align`` raises, which must be of exactly this class."""
    with pytest.raises(kind) as caught:
        pf.align(*args, **options)
    assert type(caught.value) is kind
    return caught.value


def test_inputs_of_the_wrong_shape_name_the_side_and_the_layer():
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X[:, :3])
    where, _, why = error.message.partition(" (Linear): ")
    assert where == "the forward pass of the reference raised RuntimeError in 0"
    assert why.removeprefix("addmm: ") == "mat1 and mat2 shapes cannot be multiplied (6x3 and 4x8)"
    assert error.hint == INPUTS_HINT


def test_inputs_that_only_the_port_cannot_take():
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), pf.sides(X, X[:, :3]))
    assert error.message.startswith("the forward pass of the port raised ValueError in 0 (Linear): ")
    assert "the [0] dimension of Input(Y) is [4]" in error.message
    assert "/paddle/" not in error.message


@pytest.mark.parametrize("side", [0, 1])
def test_a_model_that_raises_is_named_with_its_innermost_module(side):
    def broken(self, x):
        raise KeyError("no such head")

    def outer(self, x):
        return self.last(self.inner(x))

    models = []
    for number, framework in enumerate((TORCH, PADDLE)):
        kit = kit_for(framework)
        inner = kit.module(broken if number == side else lambda self, x: x, "Neck")
        models.append(kit.module(outer, "Model", inner=inner, last=kit.linear(4, 3)))
    error = refusal(InputError, *models, X)
    words = ("reference", "port")[side]
    told, line = error.message.split(", test_misuse.py:")
    assert told == f"the forward pass of the {words} raised KeyError in inner (Neck)"
    assert line.endswith(": 'no such head'")
    assert isinstance(error.__cause__, KeyError)


def test_a_model_that_raises_in_its_own_code():
    def whole(self, x):
        self.last(x)
        raise RuntimeError("first line\nsecond line")

    error = refusal(
        InputError, mlp(TORCH), custom(PADDLE, whole, last=(4, 3), first=(4, 8)), X, transfer=False
    )
    assert "raised RuntimeError in its own code (Custom), test_misuse.py:" in error.message
    assert error.message.endswith(": first line")


def test_a_model_that_exits_gives_no_verdict():
    def leaves(self, x):
        raise SystemExit(1)

    error = refusal(InputError, custom(TORCH, leaves, last=(4, 3)), custom(PADDLE, leaves, last=(4, 3)), X)
    assert "the forward pass of the reference raised SystemExit in its own code (Custom)" in error.message
    port = custom(PADDLE, leaves, last=(4, 3))
    error = refusal(InputError, custom(TORCH, lambda self, x: self.last(x), last=(4, 3)), port, X)
    assert "the forward pass of the port raised SystemExit in its own code (Custom)" in error.message


def test_a_mistake_of_our_own_is_not_blamed_on_the_user(monkeypatch):
    def fails(array):
        raise AssertionError("ours")

    monkeypatch.setattr("parfocal.replay.observe.fingerprint", fails)
    with pytest.raises(AssertionError, match="ours"):
        pf.align(mlp(TORCH), mlp(PADDLE), X)


def test_a_model_against_itself():
    model = mlp(TORCH)
    error = refusal(InputError, model, model, X)
    assert str(error) == "a model compared with itself is always the same\n  hint: pass two models"


@pytest.mark.parametrize("wrong", [{"a": 1}, np.zeros(3), int, None, "model.py"])
def test_something_that_is_no_model(wrong):
    kind = type(wrong)
    for pair in ((wrong, mlp(PADDLE)), (mlp(TORCH), wrong)):
        error = refusal(InputError, *pair, X)
        assert error.message == (
            f"an object of type {kind.__module__}.{kind.__qualname__} belongs to no known framework; "
            "expected a tensor, module, optimizer or scheduler of paddle or torch"
        )


def test_a_tensor_is_no_model():
    assert refusal(InputError, mlp(TORCH), kit_for(PADDLE).tensor([1.0]), X).message == (
        "the port is a Tensor, not a model"
    )


def test_a_framework_that_is_not_installed(monkeypatch):
    from parfocal.backends import registry

    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setattr(registry, "available", lambda: ("paddle",))
    error = refusal(MissingFrameworkError, mlp(TORCH), mlp(PADDLE), X)
    assert error.message == "PyTorch is not installed: no module named 'torch' in this environment"
    assert error.hint == "pip install 'parfocal[torch]'"


@pytest.mark.parametrize("values", [np.nan, np.inf])
def test_weights_that_are_not_finite(values):
    model = mlp(TORCH)
    backend = kit_for(TORCH).backend
    backend.write(model[0].bias, np.full(8, values, "float32"))
    error = refusal(InputError, model, mlp(PADDLE), X)
    assert re.fullmatch(
        r"output 0 of the reference has \d+ NaN or infinite values of 18; the first that is not finite is "
        r"the parameter 0.bias of the reference",
        error.message,
    )
    assert "check the reference's weights and the inputs" in error.hint


@pytest.mark.parametrize(("weight", "bias"), [(0.0, 0.0), (0.0, 2.0), (1e-12, 0.0)])
def test_outputs_that_say_nothing(weight, bias):
    model = mlp(TORCH)
    backend = kit_for(TORCH).backend
    backend.write(model[2].weight, np.full((3, 8), weight, "float32"))
    backend.write(model[2].bias, np.full(3, bias, "float32"))
    error = refusal(EmptyComparisonError, model, mlp(PADDLE), X)
    assert re.match(
        r"the reference's outputs are all zero, constant or tiny \(at most [\d.e-]+\): ", error.message
    )
    assert "re-scale the random ones so that signals live" in error.hint


def test_a_model_without_a_floating_output():
    def forward(self, x):
        return self.a(x).argmax(-1)

    models = [custom(framework, forward, a=(4, 3)) for framework in (TORCH, PADDLE)]
    error = refusal(EmptyComparisonError, *models, X, backward=False)
    assert error.message == "the reference gives no floating-point output, so there is nothing to compare"


def two_outputs(self, x):
    return self.a(x), self.b(x)


@pytest.mark.parametrize("backward", [True, False])
def test_two_outputs_against_one(backward):
    reference = custom(TORCH, two_outputs, a=(4, 4), b=(4, 3))
    port = custom(PADDLE, lambda self, x: self.a(x), a=(4, 4), b=(4, 3))
    error = refusal(InputError, reference, port, X, backward=backward)
    assert error.message == (
        "the reference gives 2 outputs (0 [6, 4], 1 [6, 3]), the port only 1 (0 [6, 4]): "
        "nothing there stands for 1"
    )
    assert error.hint == (
        "return 1 from the port too, or put a module around the reference whose forward returns only 0"
    )


def test_outputs_by_name_against_fewer():
    def named(self, x):
        return {"scores": self.a(x), "hidden": tuple(self.b(x) * factor for factor in range(1, 10))}

    reference = custom(TORCH, named, a=(4, 4), b=(4, 3))
    port = custom(PADDLE, lambda self, x: {"scores": self.a(x), "last": self.b(x)}, a=(4, 4), b=(4, 3))
    error = refusal(InputError, reference, port, X)
    assert "10 outputs (scores [6, 4], hidden.0 [6, 3], " in error.message
    assert (
        ", 2 more), the port only 2 (scores [6, 4], last [6, 3]): nothing there stands for " in error.message
    )
    assert error.hint.startswith("return hidden.")


def test_one_output_against_two_is_said_and_the_one_is_compared():
    reference = custom(TORCH, lambda self, x: self.b(self.a(x)), a=(4, 4), b=(4, 3))
    port = custom(PADDLE, lambda self, x: (self.b(self.a(x)), self.a(x)), a=(4, 4), b=(4, 3))
    report = pf.align(reference, port, X)
    assert report.ok, str(report)
    messages = {finding.code: finding.message for finding in report.findings}
    assert messages["output.extra"] == "1 more output in the port than in the reference; not compared"


@pytest.mark.parametrize("backward", [True, False])
def test_an_output_of_another_shape_is_a_divergence(backward):
    reference = custom(TORCH, two_outputs, a=(4, 4), b=(4, 3))
    port = custom(PADDLE, lambda self, x: (self.a(x), self.b(x)[:, :2]), a=(4, 4), b=(4, 3))
    first = pf.align(reference, port, X, backward=backward).first
    assert (first.phase, first.port.path, first.what) == ("forward", "", "output 1")
    assert first.message == "shape [6, 2] in the port, [6, 3] in the reference"


def test_a_loss_that_is_not_one_number():
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X, loss=lambda output: output * 2.0)
    assert error.message == "the loss of the reference gives a tensor [6, 3], not one number of torch"
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X, loss=lambda output: 0.5)
    assert error.message == "the loss of the reference gives 0.5, not one number of torch"


def test_a_loss_that_raises():
    def loss(output):
        return kit_for(TORCH).torch.mean(output)

    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X, loss=loss)
    assert error.message.startswith("the loss of the port raised TypeError, test_misuse.py:")
    assert ": mean()" in error.message
    assert error.hint == "loss=(reference_loss, port_loss) gives each side its own"


@pytest.mark.parametrize("loss", [3, (None,), (None, None, None), ("mse", "mse")])
def test_a_loss_that_is_no_function(loss):
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X, loss=loss)
    assert error.message == f"loss={loss!r} is neither a function of the output nor a pair of such functions"


def test_nothing_to_go_backward_through():
    def forward(self, ids):
        return self.table(ids)

    models = []
    for framework in (TORCH, PADDLE):
        kit = kit_for(framework)
        model = kit.module(forward, table=kit.nn.Embedding(5, 3))
        kit.freeze(model.table.weight)
        models.append(model)
    ids = np.array([[1, 2], [3, 4]])
    error = refusal(InputError, *models, ids)
    assert error.message == (
        "no output of the reference depends on anything trainable: there is nothing to go backward through"
    )
    assert error.hint == "pass backward=False, or check that the parameters require gradients"
    assert pf.align(*models, ids, backward=False).ok


def test_gradients_that_are_off_altogether():
    with kit_for(TORCH).backend.no_grad():
        error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X)
    assert error.hint == "gradients of torch are off: align outside of no_grad"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "test"}, "there is no mode 'test'; the modes are: eval, train, keep"),
        ({"memory": "lots"}, "memory='lots' is not an amount of memory"),
        ({"tolerance": 1e-5}, "tolerance=1e-05 is not a pf.Tolerance"),
        ({"layers": ["0"]}, "layers=['0'] is not a dict of paths"),
        ({"layers": {"0": None}}, "layers={'0': None} is not a dict of paths"),
        ({"transfer": 3}, "transfer=3 is neither True, False, a pf.Plan nor the path of one"),
        ({"ignore": 3}, "ignore=3 is not a list of path patterns"),
        ({"ignore": ["0", None]}, "ignore=['0', None] is not a list of path patterns"),
        ({"layers": {"9": "0"}}, "layers= names '9', which the reference does not have"),
        ({"layers": {"0": "9"}}, "layers= names '9', which the port does not have"),
    ],
)
def test_options_with_a_wrong_value_leave_the_port_as_it_was(options, message):
    port = mlp(PADDLE, seed=5)
    before = snapshot(PADDLE, port)
    assert refusal(InputError, mlp(TORCH), port, X, **options).message == message
    assert snapshot(PADDLE, port) == before


def test_sides_within_other_inputs():
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), pf.sides(pf.sides(X, X), X))
    assert "pf.sides(...) stands inside other inputs" in error.message


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(pf.ParfocalError) as caught:
        pf.align(mlp(TORCH), mlp(PADDLE), X, transfer=tmp_path / "plan.json")
    assert "plan.json" in str(caught.value)


def test_an_empty_batch():
    error = refusal(EmptyComparisonError, mlp(TORCH), mlp(PADDLE), X[:0])
    assert error.message == (
        "the reference's outputs have no elements (shapes [0, 3]), so there is nothing to compare"
    )
    assert error.hint == "give a batch of at least one sample"


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize(
    ("give", "words"),
    [
        (lambda y: None, "None"),
        (lambda y: (each for each in [y]), "a generator"),
        (lambda y: y.detach().numpy(), "a ndarray"),
        (lambda y: 3.5, "a float"),
        (lambda y: (), "a tuple"),
    ],
)
def test_an_output_without_a_tensor(give, words, backward):
    def nothing(self, x):
        return give(self.a(x))

    def plain(self, x):
        return self.a(x)

    forwards = ((nothing, plain), (plain, nothing))
    for (for_reference, for_port), side, framework in zip(
        forwards, ("reference", "port"), (TORCH, PADDLE), strict=True
    ):
        models = custom(TORCH, for_reference, a=(4, 3)), custom(PADDLE, for_port, a=(4, 3))
        error = refusal(EmptyComparisonError, *models, X, backward=backward)
        assert error.message == f"the {side} gives {words} with no {framework} tensor in it"


def test_integers_alone_are_refused_before_anything_goes_backward():
    models = [
        custom(framework, lambda self, x: self.a(x).argmax(-1), a=(4, 3)) for framework in (TORCH, PADDLE)
    ]
    error = refusal(EmptyComparisonError, *models, X)
    assert error.message == "the reference gives no floating-point output, so there is nothing to compare"


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_loss_that_is_not_finite(value):
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X, loss=lambda y: y.square().mean() * float(value))
    assert error.message == f"the loss of the reference is {value}"


def test_a_loss_that_is_not_finite_in_the_port_is_a_difference():
    losses = (lambda y: y.mean(), lambda y: y.mean() * float("inf"))
    report = pf.align(mlp(TORCH), mlp(PADDLE), X, loss=losses)
    assert (report.first.phase, report.ok) == ("loss", False)


@pytest.mark.parametrize("side", [0, 1])
def test_a_loss_that_is_detached(side):
    losses = [lambda y: y.mean(), lambda y: y.mean()]
    losses[side] = lambda y: y.detach().mean()
    error = refusal(InputError, mlp(TORCH), mlp(PADDLE), X, loss=tuple(losses))
    words = ("reference", "port")[side]
    assert error.message == (
        f"the loss of the {words} depends on nothing trainable: there is nothing to go backward through"
    )
    assert pf.align(mlp(TORCH), mlp(PADDLE), X, loss=tuple(losses), backward=False).ok


def test_one_pattern_to_ignore_may_stand_alone():
    reference, port = mlp(TORCH), mlp(PADDLE)
    report = pf.align(reference, port, X, ignore="0")
    assert report.ok, str(report)
    assert {pair.port.path for pair in report.pairs} >= {"2"}
    assert not [finding for finding in report.findings if finding.code == "ignored.nothing"]


def test_a_pattern_that_matches_nothing_is_said():
    report = pf.align(mlp(TORCH), mlp(PADDLE), X, ignore=["0", "head.*"])
    messages = [finding.message for finding in report.findings if finding.code == "ignored.nothing"]
    assert messages == ["ignore='head.*' matches the path of no call on either side"]


@pytest.mark.parametrize("frameworks", SIDES)
def test_none_of_this_fires_on_a_right_call(frameworks):
    reference, port = (mlp(framework, seed) for seed, framework in enumerate(frameworks))
    report = pf.align(reference, port, X, loss=lambda output: (output**2).mean(), memory="1MB", mode="train")
    assert report.ok, str(report)


@pytest.mark.parametrize("side", ["reference", "port"])
def test_weights_that_were_never_made_are_named(side):
    made, empty = mlp(TORCH), mlp(TORCH).to("meta")
    models = (empty, made) if side == "reference" else (made, empty)
    error = refusal(InputError, *models, X)
    assert error.message == f"4 tensors of the {side} are on the meta device, without values: 0.weight ..."
