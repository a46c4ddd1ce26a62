"""Steps, optimizers and state: marked by hand, or by watching the optimizer."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.capture.recording import record
from parfocal.errors import InputError
from tests.conformance.models import kit_for
from tests.conformance.recorded import values

RATE = 0.1


def momentum(kit, model):
    kit.need("optimizers")
    if kit.name == "torch":
        return kit.torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    return kit.paddle.optimizer.Momentum(learning_rate=RATE, momentum=0.9, parameters=model.parameters())


def clear(kit, optimizer):
    optimizer.zero_grad() if kit.name == "torch" else optimizer.clear_grad()


def small_model(kit):
    model = kit.linear(3, 1)
    return kit.fill(model)


def train(kit, model, optimizer, steps=3, mark=None):
    losses = []
    for step in range(steps):
        loss = (model(kit.tensor(values(4, 3, seed=step))) ** 2).mean()
        loss.backward()
        optimizer.step()
        clear(kit, optimizer)
        losses.append(float(kit.array(loss).reshape(-1)[0]))
        if mark is not None:
            mark(loss)
    return losses


def state(run, role, moment, slot=None):
    """By step: path -> values."""
    found = {}
    for item in run.state():
        if (item.role, item.moment, item.slot) == (role, moment, slot):
            found.setdefault(item.step, {})[item.path] = run.read(item.value)
    return found


def test_steps_from_the_optimizer(kit):
    model = small_model(kit)
    optimizer = momentum(kit, model)
    with record(model, optimizer=optimizer) as recorder:
        losses = train(kit, model, optimizer)
    run = recorder.run
    assert [(item.step, item.loss) for item in run.steps()] == list(enumerate(losses))
    assert [item.learning_rate for item in run.steps()] == [pytest.approx(RATE)] * 3
    assert [(call.step, call.occurrence) for call in run.calls()] == [(0, 0), (1, 0), (2, 0)]
    # The gradients of a step are there although the user cleared them before it was marked.
    gradients = state(run, "gradient", "before")
    norms = [np.sqrt(sum((value**2).sum() for value in step.values())) for step in gradients.values()]
    assert [item.gradient_norm for item in run.steps()] == pytest.approx(norms)


def test_steps_marked_by_hand(kit):
    model = small_model(kit)
    optimizer = momentum(kit, model)
    with record(model) as recorder:
        losses = train(kit, model, optimizer, mark=lambda loss: recorder.step(loss=loss, optimizer=optimizer))
    run = recorder.run
    assert [(item.step, item.loss) for item in run.steps()] == list(enumerate(losses))
    assert [item.learning_rate for item in run.steps()] == [pytest.approx(RATE)] * 3
    assert [(call.step, call.occurrence) for call in run.calls()] == [(0, 0), (1, 0), (2, 0)]


def schedule(kit, rate):
    """An optimizer of plain gradient descent and a schedule that halves its rate at every step."""
    kit.need("optimizers")
    model = small_model(kit)
    if kit.name == "torch":
        optimizer = kit.torch.optim.SGD(model.parameters(), lr=rate)
        return model, optimizer, kit.torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    halving = kit.paddle.optimizer.lr.ExponentialDecay(rate, 0.5)
    return model, kit.paddle.optimizer.SGD(halving, parameters=model.parameters()), halving


@pytest.mark.parametrize("moved_before_the_mark", [True, False])
@pytest.mark.parametrize("by_hand", [True, False])
def test_the_rate_is_the_one_the_update_was_made_with(kit, by_hand, moved_before_the_mark):
    model, optimizer, halving = schedule(kit, 0.8)
    options = {} if by_hand else {"optimizer": optimizer}
    with record(model, state="parameter", **options) as recorder:
        for _ in range(3):
            (model(kit.tensor(values(4, 3))) ** 2).mean().backward()
            optimizer.step()
            if moved_before_the_mark:
                halving.step()
            if by_hand:
                recorder.step(optimizer=optimizer)
            if not moved_before_the_mark:
                halving.step()
            clear(kit, optimizer)
    run = recorder.run
    assert [item.learning_rate for item in run.steps()] == pytest.approx([0.8, 0.4, 0.2])
    old, new = state(run, "parameter", "before"), state(run, "parameter", "after")
    gradients = state(run, "gradient", "before")
    for step, rate in enumerate([0.8, 0.4, 0.2]):
        for path, gradient in gradients[step].items():
            assert new[step][path] == pytest.approx(old[step][path] - rate * gradient, abs=1e-6)


def test_a_rate_is_that_of_the_optimizer_named(kit):
    """Another optimizer's update in the same step, or none, does not count."""
    model, optimizer, _ = schedule(kit, 0.8)
    _, other, _ = schedule(kit, 0.3)
    with record(model) as recorder:
        model(kit.tensor(values(4, 3))).sum().backward()
        optimizer.step()
        other.step()
        recorder.step(optimizer=optimizer)
        recorder.step(optimizer=other)  # no update in this step: the rate it has
        recorder.step()
    assert [item.learning_rate for item in recorder.run.steps()] == [
        pytest.approx(0.8),
        pytest.approx(0.3),
        None,
    ]


def test_an_optimizer_of_the_users_own_without_a_rate_is_let_be():
    kit = kit_for("torch")
    model = small_model(kit)

    class Signs(kit.torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {})

        def step(self, closure=None):
            return None

    optimizer = Signs(model.parameters())
    with record(model) as recorder:
        model(kit.tensor(values(4, 3))).sum().backward()
        optimizer.step()
        recorder.step()
    assert [item.learning_rate for item in recorder.run.steps()] == [None]


def test_gradients_accumulated_over_several_passes(kit):
    model = small_model(kit)
    optimizer = momentum(kit, model)
    with record(model, optimizer=optimizer) as recorder:
        losses = []
        for part in range(3):
            loss = (model(kit.tensor(values(4, 3, seed=part))) ** 2).mean()
            loss.backward()
            losses.append(float(kit.array(loss).reshape(-1)[0]))
        optimizer.step()
    run = recorder.run
    (step,) = run.steps()
    assert step.loss == pytest.approx(sum(losses))
    assert step.learning_rate == pytest.approx(RATE)
    assert sorted({found.backward for found in run.gradients()}) == [0, 1, 2]
    assert [call.occurrence for call in run.calls()] == [0, 1, 2]
    whole = {entry.path: kit.backend.gradient(entry.value) for entry in kit.backend.state(model)}
    assert step.gradient_norm == pytest.approx(np.sqrt(sum((each**2).sum() for each in whole.values())))
    last = {item.path: run.read(item.value) for item in run.state() if item.role == "gradient"}
    assert all(np.array_equal(last[path], whole[path]) for path in whole)


def test_two_players_with_an_optimizer_each(kit):
    """As a GAN is trained: two losses, two updates, and each update is a step with its own rate."""
    model = kit.sequential(kit.linear(2, 3), kit.linear(3, 1))
    kit.fill(model)
    maker, critic = model[0], model[1]
    first, second = momentum(kit, critic), momentum(kit, maker)
    second_rate = 0.025
    if kit.name == "torch":
        second.param_groups[0]["lr"] = second_rate
    else:
        second.set_lr(second_rate)
    with record(model, optimizer=(first, second), state=("parameter", "optimizer")) as recorder:
        for _ in range(2):
            for optimizer in (first, second):
                loss = (critic(maker(kit.tensor(values(4, 2)))) ** 2).mean()
                loss.backward()
                optimizer.step()
                clear(kit, first)
                clear(kit, second)
    run = recorder.run
    steps = run.steps()
    assert [item.learning_rate for item in steps] == pytest.approx([RATE, second_rate] * 2)
    assert all(item.loss is not None and item.gradient_norm for item in steps)
    old, new = state(run, "parameter", "before"), state(run, "parameter", "after")
    for step in range(4):
        changed = {
            path.split(".")[0] for path in old[step] if not np.array_equal(old[step][path], new[step][path])
        }
        assert changed == ({"1"} if step % 2 == 0 else {"0"})
    assert {path.split(".")[0] for path in state(run, "optimizer", "after", "momentum")[3]} == {"0", "1"}


def test_a_given_loss_counts_more_than_the_one_seen(kit):
    model = small_model(kit)
    with record(model) as recorder:
        model(kit.tensor(values(1, 3))).sum().backward()
        recorder.step(loss=1.25)
    assert [item.loss for item in recorder.run.steps()] == [1.25]


def test_marking_by_hand_and_by_the_optimizer_exclude_each_other(kit):
    model = small_model(kit)
    message = "takes its steps from the optimizer it was given"
    with record(model, optimizer=momentum(kit, model)) as recorder, pytest.raises(InputError, match=message):
        recorder.step()


def test_what_comes_after_the_last_mark_is_a_step_if_it_went_backward(kit):
    model = small_model(kit)
    with record(model) as recorder:
        model(kit.tensor(values(1, 3))).sum().backward()
        recorder.step()
        model(kit.tensor(values(1, 3)))
    assert [item.step for item in recorder.run.steps()] == [0]
    with record(model) as recorder:
        model(kit.tensor(values(1, 3))).sum().backward()
    assert [item.step for item in recorder.run.steps()] == [0]


def test_weights_and_optimizer_state_before_and_after(kit):
    model = small_model(kit)
    optimizer = momentum(kit, model)
    before = {entry.path: kit.array(entry.value) for entry in kit.backend.state(model)}
    with record(model, optimizer=optimizer, state=("parameter", "optimizer", "gradient")) as recorder:
        train(kit, model, optimizer)
    run = recorder.run
    old, new = state(run, "parameter", "before"), state(run, "parameter", "after")
    gradients = state(run, "gradient", "before")
    for path, values_before in before.items():
        velocity = np.zeros_like(values_before)
        assert np.array_equal(old[0][path], values_before)
        for step in range(3):
            velocity = 0.9 * velocity + gradients[step][path]
            assert new[step][path] == pytest.approx(old[step][path] - RATE * velocity, abs=1e-6)
            slots = state(run, "optimizer", "after", "momentum")[step]
            assert slots[path] == pytest.approx(velocity, abs=1e-6)
            if step:
                assert np.array_equal(old[step][path], new[step - 1][path])


# paddle says so at every call
@pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
def test_buffers_before_and_after(kit):
    model = kit.batch_norm(2)
    model.train()
    with record(model, state="buffer") as recorder:
        model(kit.tensor(values(4, 2, 3, 3) + 5.0))
        recorder.step()
    run = recorder.run
    name = "_mean" if kit.name == "paddle" else "running_mean"
    assert (state(run, "buffer", "before")[0][name] == 0).all()
    after = state(run, "buffer", "after")[0][name]
    assert after == pytest.approx(0.1 * (values(4, 2, 3, 3) + 5.0).mean((0, 2, 3)), rel=1e-5)


def test_every_second_step(kit):
    model = small_model(kit)
    optimizer = momentum(kit, model)
    with record(model, optimizer=optimizer, every=2, state="parameter") as recorder:
        losses = train(kit, model, optimizer, steps=4)
    run = recorder.run
    assert {call.step for call in run.calls()} == {0, 2}
    assert {found.step for found in run.gradients()} == {0, 2}
    assert {item.step for item in run.state()} == {0, 2}
    assert [item.loss for item in run.steps()] == losses  # a loss is always worth keeping


def test_two_optimizers(kit):
    model = kit.sequential(kit.linear(3, 3), kit.linear(3, 1))
    optimizers = [momentum(kit, model[0]), momentum(kit, model[1])]
    with record(model, optimizer=optimizers, state="optimizer") as recorder:
        model(kit.tensor(values(2, 3))).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    run = recorder.run
    assert [item.step for item in run.steps()] == [0, 1]
    slots = {
        item.path for item in run.state() if (item.role, item.step, item.moment) == ("optimizer", 1, "after")
    }
    assert {"0.weight", "1.weight"} <= slots


def test_the_optimizer_is_left_as_it_was(kit):
    model = small_model(kit)
    optimizer = momentum(kit, model)
    before = dict(vars(optimizer))
    with pytest.raises(ZeroDivisionError), record(model, optimizer=optimizer):
        train(kit, model, optimizer, steps=1, mark=lambda loss: 1 / 0)
    assert vars(optimizer).keys() == before.keys()
    if kit.name == "torch":
        assert not optimizer._optimizer_step_pre_hooks
        assert not optimizer._optimizer_step_post_hooks
