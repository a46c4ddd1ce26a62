"""Optimizers and schedules: one spelling of kind, settings and state, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.errors import InputError, UnsupportedError
from tests.conformance.models import TRAINING, kit_for

STEPS = 3

# kind -> torch's arguments, paddle's class and arguments, slots that must agree in value
PAIRS = {
    "SGD": (("SGD", {"lr": 0.1}), ("SGD", {"learning_rate": 0.1}), set()),
    "Momentum": (
        ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
        ("Momentum", {"learning_rate": 0.1, "momentum": 0.8, "use_nesterov": True, "weight_decay": 0.1}),
        {"momentum"},
    ),
    "Adam": (
        ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-7, "weight_decay": 0.1, "amsgrad": True}),
        (
            "Adam",
            {
                "learning_rate": 0.1,
                "beta1": 0.8,
                "beta2": 0.9,
                "epsilon": 1e-7,
                "weight_decay": 0.1,
                "amsgrad": True,
            },
        ),
        {"moment1", "moment2", "moment2_max", "step"},
    ),
    "AdamW": (
        ("AdamW", {"lr": 0.1, "weight_decay": 0.2}),
        ("AdamW", {"learning_rate": 0.1, "weight_decay": 0.2}),
        {"moment1", "moment2", "step"},
    ),
    "Adamax": (
        ("Adamax", {"lr": 0.1}),
        ("Adamax", {"learning_rate": 0.1}),
        {"moment1", "infinity_norm", "step"},
    ),
    "Adagrad": (
        ("Adagrad", {"lr": 0.1, "eps": 1e-6}),
        ("Adagrad", {"learning_rate": 0.1}),
        {"square_sum"},
    ),
    "Adadelta": (
        ("Adadelta", {"lr": 0.1, "rho": 0.9}),
        ("Adadelta", {"learning_rate": 0.1, "rho": 0.9}),
        {"average_squared_gradient", "average_squared_update"},
    ),
    "RMSProp": (
        ("RMSprop", {"lr": 0.1, "alpha": 0.9, "eps": 1e-6, "centered": True}),
        ("RMSProp", {"learning_rate": 0.1, "rho": 0.9, "epsilon": 1e-6, "centered": True}),
        {"average_squared_gradient", "average_gradient"},
    ),
    "NAdam": (
        ("NAdam", {"lr": 0.1}),
        ("NAdam", {"learning_rate": 0.1}),
        {"moment1", "moment2", "momentum_product", "step"},
    ),
    "RAdam": (("RAdam", {"lr": 0.1}), ("RAdam", {"learning_rate": 0.1}), {"moment1", "moment2", "step"}),
    "Rprop": (
        ("Rprop", {"lr": 0.01, "step_sizes": (1e-5, 50.0)}),
        ("Rprop", {"learning_rate": 0.01, "learning_rate_range": (1e-5, 50.0)}),
        {"previous_gradient", "step_size"},
    ),
    "ASGD": (("ASGD", {"lr": 0.1, "lambd": 0.0}), ("ASGD", {"learning_rate": 0.1, "batch_num": 1}), set()),
    "LBFGS": (("LBFGS", {"lr": 0.5}), ("LBFGS", {"learning_rate": 0.5}), set()),
}
# Settings that only one side has.
ONE_SIDED = {"lambd", "alpha", "t0", "batch_num"}
# Settings that each framework has fixed in its own way.
CONVENTIONS = {"epsilon_place"}


def make(kit, kind, model):
    kit.need("optimizers")
    torch_side, paddle_side, _ = PAIRS[kind]
    if kit.name == "torch":
        return getattr(kit.torch.optim, torch_side[0])(model.parameters(), **torch_side[1])
    name, arguments = paddle_side
    return getattr(kit.paddle.optimizer, name)(parameters=model.parameters(), **arguments)


def scale_model(kit):
    """A model whose one parameter has the same layout everywhere."""
    model = kit.module(lambda self, x: x * self.scale)
    model.scale = kit.parameter([0.5, -1.0, 2.0])
    return model


def trained(kit, kind):
    model = scale_model(kit)
    optimizer = make(kit, kind, model)
    for step in range(STEPS):
        kit.backend.clear_gradients(model)
        loss = (model(kit.tensor([1.0, 2.0 + step, -3.0])) * model.scale).sum()
        kit.backend.backward([loss], [None])
        kit.backend.optimizer_step(optimizer)
    return model, optimizer


@pytest.mark.parametrize("kind", sorted(PAIRS))
def test_kind_and_settings_are_spelled_alike(kind):
    sides = []
    for name in TRAINING:
        kit = kit_for(name)
        model = scale_model(kit)
        optimizer = make(kit, kind, model)
        assert kit.backend.is_optimizer(optimizer)
        assert kit.backend.optimizer_kind(optimizer) == kind
        settings = kit.backend.optimizer_settings(optimizer, model)
        assert list(settings) == ["scale"]
        assert None not in [value for name, value in settings["scale"].items() if name != "line_search"]
        sides.append(
            {name: value for name, value in settings["scale"].items() if name not in ONE_SIDED | CONVENTIONS}
        )
    first, second = sides
    assert set(first) == set(second)
    for name, value in first.items():
        assert (
            second[name] == pytest.approx(value) if not isinstance(value, str) else second[name] == value
        ), name


@pytest.mark.parametrize("kind", sorted(set(PAIRS) - {"LBFGS"}))
def test_state_has_the_same_numbers_after_the_same_steps(kind):
    states = []
    for name in TRAINING:
        kit = kit_for(name)
        model, optimizer = trained(kit, kind)
        states.append(kit.backend.optimizer_state(optimizer, model)["scale"])
    first, second = states
    agree = PAIRS[kind][2]
    assert agree <= set(first)
    assert agree <= set(second)
    for slot in agree:
        assert first[slot].shape == second[slot].shape, slot
        # paddle forms 1 - beta in single precision: 1.3e-5 of moment2 at beta2 = 0.999
        np.testing.assert_allclose(first[slot], second[slot], rtol=5e-5, atol=1e-7, err_msg=slot)
    if "step" in agree:
        assert first["step"] == STEPS


def test_state_is_empty_before_the_first_step(kit, backend):
    kit.need("optimizers")
    model = scale_model(kit)
    assert backend.optimizer_state(make(kit, "Adam", model), model) == {"scale": {}}


def test_an_optimizer_of_another_model_is_refused(kit, backend):
    optimizer = make(kit, "SGD", scale_model(kit))
    with pytest.raises(InputError, match="none of the optimizer's 1 parameters"):
        backend.optimizer_settings(optimizer, scale_model(kit))


def test_tied_parameters_come_once_and_statistics_never(kit, backend):
    kit.need("optimizers")
    shared = kit.linear(2, 2)
    norm = kit.batch_norm(3)
    model = kit.module(lambda self, x: x, a=shared, b=shared, norm=norm)
    settings = backend.optimizer_settings(make(kit, "SGD", model), model)
    assert list(settings) == ["a.weight", "a.bias", "norm.weight", "norm.bias"]


def test_groups_say_the_learning_rate_that_takes_effect(kit, backend):
    kit.need("optimizers")
    model = kit.sequential(kit.linear(2, 2), kit.linear(2, 2))
    first, second = model[0], model[1]
    if kit.name == "torch":
        groups = [
            {"params": first.parameters(), "lr": 0.01},
            {"params": second.parameters(), "weight_decay": 0.3},
        ]
        optimizer = kit.torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.2)
    else:
        groups = [
            {"params": first.parameters(), "learning_rate": 0.1},
            {"params": second.parameters(), "weight_decay": 0.3},
        ]
        optimizer = kit.paddle.optimizer.Momentum(0.1, 0.9, groups, weight_decay=0.2)
    settings = backend.optimizer_settings(optimizer, model)
    assert settings["0.weight"]["lr"] == pytest.approx(0.01)
    assert settings["1.bias"]["lr"] == pytest.approx(0.1)
    assert settings["0.weight"]["weight_decay"] == pytest.approx(0.2)
    assert settings["1.bias"]["weight_decay"] == pytest.approx(0.3)
    assert backend.learning_rate(optimizer) == pytest.approx(0.01)


def test_groups_of_adam_keep_their_own_betas(kit, backend):
    kit.need("optimizers")
    model = kit.sequential(kit.linear(2, 2), kit.linear(2, 2))
    if kit.name == "torch":
        groups = [{"params": model[0].parameters(), "betas": (0.5, 0.6)}, {"params": model[1].parameters()}]
        optimizer = kit.torch.optim.AdamW(groups)
    else:
        groups = [
            {"params": model[0].parameters(), "beta1": 0.5, "beta2": 0.6},
            {"params": model[1].parameters()},
        ]
        optimizer = kit.paddle.optimizer.AdamW(parameters=groups)
    output = model(kit.tensor([[1.0, 2.0]], grad=True))
    backend.backward([output.sum()], [None])
    backend.optimizer_step(optimizer)
    settings = backend.optimizer_settings(optimizer, model)
    assert settings["0.weight"]["betas"] == (0.5, 0.6)
    assert settings["1.weight"]["betas"] == (0.9, 0.999)
    assert backend.optimizer_state(optimizer, model)["0.weight"]["step"] == 1


def test_paddles_decay_function_and_parameter_attributes():
    kit = kit_for("paddle")
    paddle, backend = kit.paddle, kit.backend
    own = paddle.ParamAttr(learning_rate=0.5, regularizer=paddle.regularizer.L1Decay(0.7))
    model = kit.sequential(kit.linear(2, 2), kit.nn.Linear(2, 2, weight_attr=own))
    decaying = {model[0].weight.name}
    adamw = paddle.optimizer.AdamW(
        0.1,
        parameters=model.parameters(),
        weight_decay=0.3,
        apply_decay_param_fun=lambda name: name in decaying,
    )
    # Only accepted as an argument where there is a GPU.
    adamw._lr_ratio = lambda parameter: 0.25 if parameter is model[0].bias else 1.0
    settings = backend.optimizer_settings(adamw, model)
    assert {path: values["weight_decay"] for path, values in settings.items()} == {
        "0.weight": 0.3,
        "0.bias": 0.0,
        "1.weight": 0.0,
        "1.bias": 0.0,
    }
    assert settings["0.bias"]["lr"] == pytest.approx(0.025)
    assert settings["1.weight"]["lr"] == pytest.approx(0.05)
    sgd = paddle.optimizer.SGD(0.1, parameters=model.parameters(), weight_decay=0.3)
    settings = backend.optimizer_settings(sgd, model)
    assert (settings["1.weight"]["decay"], settings["1.weight"]["weight_decay"]) == ("l1", 0.7)
    assert (settings["1.bias"]["decay"], settings["1.bias"]["weight_decay"]) == ("l2", 0.3)


def test_plain_sgd_and_subclasses_have_their_kind(kit, backend):
    model = scale_model(kit)
    optimizer = make(kit, "Adam", model)
    subclass = type("OwnAdam", (type(optimizer),), {})
    own = subclass(model.parameters()) if kit.name == "torch" else subclass(parameters=model.parameters())
    assert backend.optimizer_kind(own) == "Adam"


def schedule(kit, model, kind):
    kit.need("optimizers")
    if kit.name == "torch":
        optimizer = kit.torch.optim.SGD(model.parameters(), lr=0.4)
        schedules = kit.torch.optim.lr_scheduler
        if kind == "step":
            return optimizer, schedules.StepLR(optimizer, step_size=1, gamma=0.5)
        return optimizer, schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    schedules = kit.paddle.optimizer.lr
    if kind == "step":
        scheduler = schedules.StepDecay(0.4, step_size=1, gamma=0.5)
    else:
        scheduler = schedules.ReduceOnPlateau(0.4, factor=0.5, patience=0)
    return kit.paddle.optimizer.SGD(scheduler, parameters=model.parameters()), scheduler


def test_a_schedule_moves_the_learning_rate(kit, backend):
    model = scale_model(kit)
    optimizer, scheduler = schedule(kit, model, "step")
    assert backend.is_scheduler(scheduler)
    assert not backend.is_scheduler(optimizer)
    rates = []
    for _ in range(3):
        rates.append(backend.learning_rate(optimizer))
        backend.backward([model(kit.tensor([1.0, 1.0, 1.0])).sum()], [None])
        backend.optimizer_step(optimizer)
        backend.scheduler_step(scheduler)
    assert rates == pytest.approx([0.4, 0.2, 0.1])
    assert backend.optimizer_settings(optimizer, model)["scale"]["lr"] == pytest.approx(0.05)


def test_a_plateau_needs_its_metric(kit, backend):
    optimizer, scheduler = schedule(kit, scale_model(kit), "plateau")
    for metric in (1.0, 0.5, 0.5):
        backend.scheduler_step(scheduler, metric)
    assert backend.learning_rate(optimizer) == pytest.approx(0.2)
    with pytest.raises(InputError, match="got no metric"):
        backend.scheduler_step(scheduler)


def test_lbfgs_cannot_be_stepped_without_its_loss(kit, backend):
    optimizer = make(kit, "LBFGS", scale_model(kit))
    with pytest.raises(UnsupportedError, match="LBFGS computes the loss again"):
        backend.optimizer_step(optimizer)
