"""Replaying's tools: aliases, substituted values, counts of changes, copies in another dtype."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest

from parfocal.backends.muting import Muted, rate_of
from parfocal.backends.torch.watch import fast_path
from parfocal.capture.overwrites import Overwrites
from parfocal.errors import UnsupportedError
from tests.conformance.models import kit_for

X = [[1.0, -2.0, 3.0]]


def gradient_at(backend, tensor):
    """A list that gets the tensor's gradient when it arrives."""
    seen = []
    backend.watch_gradient(tensor, lambda gradient: seen.append(backend.to_array(gradient).tolist()))
    return seen


def test_an_alias_has_the_gradient_of_its_own_uses_alone(kit, backend):
    x = kit.tensor(X, grad=True)
    middle = x * 2.0
    first, second = backend.alias(middle), backend.alias(middle)
    seen = gradient_at(backend, first), gradient_at(backend, second), gradient_at(backend, middle)
    backend.backward([(first * 3.0 + second * 5.0).sum()], [None])
    assert seen == ([[[3.0] * 3]], [[[5.0] * 3]], [[[8.0] * 3]])
    assert backend.gradient(x).tolist() == [[16.0] * 3]


def test_an_alias_is_another_object_on_the_same_memory(kit, backend):
    x = kit.tensor(X)
    alias = backend.alias(x)
    assert alias is not x
    kit.add_(alias, kit.tensor([[1.0, 1.0, 1.0]]))
    assert kit.array(x).tolist() == [[2.0, -1.0, 4.0]]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3, 4)])
def test_an_alias_of_any_shape_has_the_same_values(kit, backend, shape):
    values = np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)
    assert np.array_equal(kit.array(backend.alias(kit.tensor(values, grad=True))), values)
    assert backend.shape(backend.alias(kit.tensor(values))) == shape


def test_a_substitute_of_a_leaf_can_be_changed_in_place_by_a_model(kit, backend):
    leaf = kit.tensor(X, grad=True)
    changed = kit.relu_(backend.alias(backend.substitute(leaf, np.array(X, "float32"))))
    backend.backward([changed.sum()], [None])
    assert backend.gradient(leaf).tolist() == [[1.0, 0.0, 1.0]]


def test_substituted_values_go_on_and_the_gradient_goes_back_unchanged(kit, backend):
    x = kit.tensor(X, grad=True)
    middle = x * 2.0
    other = backend.substitute(middle, np.array([[10.0, 20.0, 30.0]], "float32"))
    seen = gradient_at(backend, middle)
    backend.backward([(other * other).sum()], [None])
    assert kit.array(other).tolist() == [[10.0, 20.0, 30.0]]
    assert kit.array(middle).tolist() == [[2.0, -4.0, 6.0]]
    assert seen == [[[20.0, 40.0, 60.0]]]
    assert backend.gradient(x).tolist() == [[40.0, 80.0, 120.0]]


def test_a_hook_on_a_substituted_tensor_replaces_its_gradient(kit, backend):
    x = kit.tensor(X, grad=True)
    other = backend.substitute(x * 2.0, np.ones((1, 3), "float32"))
    backend.watch_gradient(other, lambda gradient: gradient * 0.0 + 7.0)
    backend.backward([other.sum()], [None])
    assert backend.gradient(x).tolist() == [[14.0] * 3]


def test_a_substitute_takes_the_dtype_of_the_tensor_it_stands_for(kit, backend):
    wide = kit.tensor(X, dtype="float64", grad=True) * 1.0
    other = backend.substitute(wide, np.array(X, "float32"))
    assert backend.dtype(other) == "float64"
    assert backend.requires_grad(other)


def test_a_substitute_of_a_tensor_outside_autograd_is_outside_too(kit, backend):
    ids = backend.from_array(np.array([1, 2], "int64"))
    other = backend.substitute(ids, np.array([3, 4], "int64"))
    assert kit.array(other).tolist() == [3, 4]
    assert not backend.requires_grad(other)
    assert kit.array(ids).tolist() == [1, 2]


def test_substitutes_own_their_memory(kit, backend):
    array = np.array(X, "float32")
    other = backend.substitute(kit.tensor(X, grad=True) * 1.0, array)
    array[:] = 99.0
    assert kit.array(other).tolist() == X


def test_the_version_counts_changes_in_place_and_nothing_else(kit, backend):
    x = kit.tensor(X, grad=True) * 1.0
    before = backend.version(x)
    _ = x * 2.0 + 1.0
    assert backend.version(x) == before
    kit.relu_(x)
    assert backend.version(x) > before


def test_a_change_through_an_alias_is_seen_at_the_alias(kit, backend):
    x = kit.tensor(X, grad=True) * 1.0
    alias = backend.alias(x)
    before = backend.version(alias)
    kit.add_(alias, kit.tensor(X))
    assert backend.version(alias) > before


def test_a_copy_in_float64_computes_in_float64(kit, backend):
    model = kit.fill(kit.sequential(kit.conv(2, 3, 2), kit.batch_norm(3)))
    model.eval()
    twin = backend.copy_as(model, "float64")
    x = np.random.default_rng(0).normal(size=(2, 2, 4, 4))
    output = twin(kit.tensor(x, dtype="float64"))
    assert backend.dtype(output) == "float64"
    assert {backend.dtype(e.value) for e in backend.state(twin)} - {"int64"} == {"float64"}
    assert {backend.dtype(e.value) for e in backend.state(model)} - {"int64"} == {"float32"}
    for ours, theirs in zip(backend.state(model), backend.state(twin), strict=True):
        assert np.array_equal(kit.array(ours.value), kit.array(theirs.value))


def test_a_copy_shares_nothing_and_has_no_gradients(kit, backend):
    model = kit.fill(kit.linear(3, 2))
    backend.backward([model(kit.tensor(X)).sum()], [None])
    twin = backend.copy_as(model, None)
    assert all(backend.gradient(e.value) is None for e in backend.state(twin))
    assert all(backend.gradient(e.value) is not None for e in backend.state(model))
    before = {e.path: kit.array(e.value) for e in backend.state(model)}
    for entry in backend.state(twin):
        backend.write(entry.value, np.zeros(backend.shape(entry.value), "float32"))
    assert all(np.array_equal(kit.array(e.value), before[e.path]) for e in backend.state(model))


def test_a_copy_keeps_train_flags_and_what_is_frozen(kit, backend):
    model = kit.sequential(kit.linear(3, 3), kit.linear(3, 2))
    kit.freeze(model[0].weight)
    model.eval()
    model[1].training = True
    twin = backend.copy_as(model, None)
    assert backend.training_flags(twin) == backend.training_flags(model)
    assert [e.trainable for e in backend.state(twin)] == [e.trainable for e in backend.state(model)]


def test_a_module_that_cannot_be_copied_is_named(kit, backend):
    model = kit.module(lambda self, x: x, name="Stubborn")
    model.lock = (step for step in range(3))  # generators cannot be copied
    with pytest.raises(UnsupportedError, match="a Stubborn cannot be copied: cannot pickle 'generator'"):
        backend.copy_as(model, None)


def test_only_modules_that_say_so_work_in_place(kit, backend):
    saying = kit.module(lambda self, x: x)
    saying.inplace = True
    assert backend.works_in_place(saying)
    assert not backend.works_in_place(kit.linear(2, 2))
    if kit.name == "torch":
        assert backend.works_in_place(kit.nn.ReLU(inplace=True))
        assert not backend.works_in_place(kit.nn.ReLU())


def recurrent(kit, dropout):
    layers = {"num_layers": 2, "dropout": dropout}
    first = kit.nn.LSTM(3, 4, **layers)
    return kit.sequential(kit.linear(3, 3), first)


def test_recurrent_layers_go_backward_in_eval(kit, backend):
    model = recurrent(kit, 0.5)
    model.eval()
    x = np.random.default_rng(0).normal(size=(5, 2, 3)).astype("float32")
    with backend.recurrence_in_training(model):
        outputs = [model(kit.tensor(x, grad=True))[0] for _ in range(2)]
        backend.backward([outputs[0].sum()], [None])
    assert np.array_equal(kit.array(outputs[0]), kit.array(outputs[1]))  # nothing was dropped
    assert all(backend.gradient(e.value) is not None for e in backend.state(model) if e.trainable)


@pytest.mark.parametrize("training", [True, False])
def test_recurrent_layers_are_as_before_also_after_an_exception(kit, backend, training):
    model = recurrent(kit, 0.5)
    model.train() if training else model.eval()
    flags, dropout = backend.training_flags(model), model[1].dropout

    def fail():
        with backend.recurrence_in_training(model):
            assert model[1].training
            assert model[1].dropout == (0.5 if training else 0.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert backend.training_flags(model) == flags
    assert model[1].dropout == dropout == 0.5


def test_other_layers_are_left_alone_while_recurrent_ones_train(kit, backend):
    model = recurrent(kit, 0.0)
    model.eval()
    with backend.recurrence_in_training(model):
        assert not model[0].training


def test_gradients_are_absent_for_a_while_and_then_as_before(kit, backend):
    model = kit.fill(kit.sequential(kit.linear(3, 2), kit.linear(2, 1)))
    backend.backward([model[0](kit.tensor(X)).sum()], [None])
    before = {e.path: backend.gradient(e.value) for e in backend.state(model)}
    assert before["0.weight"].any()
    assert before["1.weight"] is None

    def fail():
        with backend.gradients_kept(model):
            assert all(backend.gradient(e.value) is None for e in backend.state(model))
            backend.backward([model(kit.tensor(X)).sum() * 9.0], [None])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    for entry in backend.state(model):
        if before[entry.path] is None:
            assert backend.gradient(entry.value) is None
        else:
            assert np.array_equal(backend.gradient(entry.value), before[entry.path])


def test_kept_gradients_go_on_accumulating(kit, backend):
    model = kit.fill(kit.linear(3, 2))
    backend.backward([model(kit.tensor(X)).sum()], [None])
    once = backend.gradient(model.weight)
    with backend.gradients_kept(model):
        backend.backward([model(kit.tensor(X)).sum()], [None])
    backend.backward([model(kit.tensor(X)).sum()], [None])
    assert np.array_equal(backend.gradient(model.weight), 2 * once)


def test_overwritten_values_are_used_going_backward_and_not_counted(kit, backend):
    x = kit.tensor(X, grad=True)
    y = x * 1.0
    kit.relu_(y)
    version = backend.version(y)
    backend.overwrite(y, np.array([[0.0, 5.0, 7.0]], "float32"))
    assert backend.version(y) == version
    backend.backward([(y * y).sum()], [None])
    assert kit.array(y).tolist() == [[0.0, 5.0, 7.0]]
    assert backend.gradient(x).tolist() == [[0.0, 10.0, 14.0]]


def test_overwriting_reaches_aliases_and_keeps_the_dtype(kit, backend):
    x = kit.tensor(X, dtype="float64")
    alias = backend.alias(x)
    backend.overwrite(x, np.ones((1, 3), "float32"))
    assert backend.dtype(x) == "float64"
    assert kit.array(alias).tolist() == [[1.0, 1.0, 1.0]]


def test_overwriting_copies(kit, backend):
    x, array = kit.tensor(X), np.ones((1, 3), "float32")
    backend.overwrite(x, array)
    array[:] = 9.0
    assert kit.array(x).tolist() == [[1.0, 1.0, 1.0]]


def test_a_copy_of_a_watched_model_is_not_watched(kit, backend):
    model = kit.sequential(kit.linear(2, 2), kit.linear(2, 1))
    seen, own = [], []
    kit.after_calls(model[0], lambda module, args, output: own.append(1))
    with backend.watch(model, seen.append):
        twin = backend.copy_as(model, None)
        twin(kit.tensor([[1.0, 2.0]]))
        assert (len(seen), len(own)) == (0, 1)  # the user's own hooks stay
        model(kit.tensor([[1.0, 2.0]]))
    assert (len(seen), len(own)) == (3, 2)


def test_a_duplicate_takes_part_in_autograd_as_the_tensor_does(kit, backend):
    leaf = kit.tensor([[1.0, 2.0]], grad=True)
    made = leaf * 2.0
    for tensor in (kit.tensor([[1.0, 2.0]]), leaf, made):
        twin = backend.duplicate(tensor)
        assert kit.array(twin).tobytes() == kit.array(tensor).tobytes()
        assert backend.requires_grad(twin) == backend.requires_grad(tensor)
        assert backend.is_leaf(twin) == backend.is_leaf(tensor)
        backend.overwrite(twin, np.zeros((1, 2), dtype="float32"))
        assert kit.array(tensor).any()
    (backend.duplicate(made) * 3.0).sum().backward()
    assert backend.gradient(leaf) is None


def test_a_duplicate_is_laid_out_alike():
    kit = kit_for("torch")
    tensor = kit.torch.ones(2, 3, 4, 5).contiguous(memory_format=kit.torch.channels_last)
    assert kit.backend.duplicate(tensor).stride() == tensor.stride()
    expanded = kit.torch.ones(1).expand(3, 4)
    assert kit.backend.duplicate(expanded).stride() == (0, 0)


def test_the_fused_path_is_open_while_unwatched():
    kit = kit_for("torch")
    enabled = fast_path.get_fastpath_enabled
    model = kit.linear(1, 1)
    with kit.backend.watch(model), kit.backend.watch(model):
        assert not enabled()
        with kit.backend.unwatched():
            assert enabled()
        assert not enabled()
    assert enabled()
    with kit.backend.unwatched():
        assert enabled()


def dropped(kit, x):
    return kit.array(kit.functional.dropout(kit.tensor(x), 0.5, training=True))


def test_dropout_by_a_function_lets_everything_pass_for_a_while(kit, backend):
    x = np.ones((40, 40), "float32")
    with backend.no_functional_dropout():
        assert np.array_equal(dropped(kit, x), x)
    assert (dropped(kit, x) == 0.0).any()


def test_an_attention_drops_nothing_for_a_while(kit, backend):
    x = kit.tensor(np.random.default_rng(0).normal(size=(2, 5, 3, 4)).astype("float32"))
    attend = partial(kit.functional.scaled_dot_product_attention, x, x, x)
    with backend.no_functional_dropout():
        assert np.array_equal(kit.array(attend(dropout_p=0.5)), kit.array(attend()))
        assert np.array_equal(kit.array(attend(None, 0.5)), kit.array(attend()))
    assert not np.array_equal(kit.array(attend(dropout_p=0.5)), kit.array(attend()))


def test_dropout_by_a_function_works_again_after_an_exception(kit, backend):
    def fail():
        with backend.no_functional_dropout():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (dropped(kit, np.ones((40, 40), "float32")) == 0.0).any()


def test_what_functions_are_asked_to_drop_is_heard(kit, backend):
    x = kit.tensor(np.ones((2, 5, 3, 4), "float32"))
    functional, heard = kit.functional, []
    with backend.no_functional_dropout(), backend.watch_dropout(heard.append):
        functional.dropout(x, 0.25)
        functional.dropout(x, p=0.5, training=True)
        functional.dropout(x, 0.75, training=False)
        functional.dropout(x, 0.0)
        functional.dropout(x, Muted(0.125))
        functional.dropout2d(x, 0.5)
        functional.scaled_dot_product_attention(x, x, x, dropout_p=0.375)
        functional.scaled_dot_product_attention(x, x, x)
    assert heard == [0.25, 0.5, 0.125, 0.5, 0.375]
    functional.dropout(x, 0.25)
    assert len(heard) == 5


def test_who_listens_changes_nothing_and_leaves_also_after_an_exception(kit, backend):
    before = kit.functional.dropout

    def fail():
        with backend.watch_dropout(lambda rate: None):
            assert (dropped(kit, np.ones((40, 40), "float32")) == 0.0).any()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert kit.functional.dropout is before


def test_a_muted_rate_stays_what_it_was_in_a_copy():
    muted = copy.deepcopy(Muted(0.3))
    assert (muted, rate_of(muted), rate_of(0.2), rate_of(None)) == (0.0, 0.3, 0.2, 0.0)


def narrow(backend, x):
    """What code makes that asks for float32: of a tensor, and of nothing."""
    if backend.name == "torch":
        import torch

        return x.float(), x.to(torch.float32), torch.arange(3, dtype=torch.float32), torch.linspace(0, 1, 3)
    if backend.name == "toybox":
        import toybox

        return x.astype("float32"), x.astype(np.float32), toybox.arange(3), toybox.arange(3, "float32")
    import paddle

    return (
        x.astype("float32"),
        paddle.cast(x, "float32"),
        paddle.arange(3, dtype="float32"),
        paddle.linspace(0, 1, 3),
    )


def test_code_that_asks_for_float32_is_given_float64(backend):
    x = backend.from_array(np.array([0.1, 1 / 3]))
    with backend.widened():
        given = narrow(backend, x)
    assert [backend.dtype(each) for each in given] == ["float64"] * 4
    assert backend.to_array(given[0]).tolist() == [0.1, 1 / 3]
    assert [backend.dtype(each) for each in narrow(backend, x)] == ["float32"] * 4


def test_it_is_given_float32_again_after_an_exception(backend):
    x = backend.from_array(np.array([0.1]))
    with pytest.raises(ZeroDivisionError), backend.widened():
        raise ZeroDivisionError
    assert [backend.dtype(each) for each in narrow(backend, x)] == ["float32"] * 4


def test_other_dtypes_and_random_numbers_stay_as_they_are(backend, kit):
    whole = backend.from_array(np.array([1, 2]))
    x = kit.tensor(X)
    with backend.widened():
        assert backend.dtype(backend.cast(whole, "int32")) == "int32"
        assert backend.dtype(x * 2.0) == "float32"
        backend.seed(0)
        drawn = backend.random_values()
    backend.seed(0)
    assert np.array_equal(drawn, backend.random_values())


def test_an_assigned_value_is_a_step_of_the_graph(kit, backend):
    x = kit.tensor(X, grad=True)
    middle = x * 2.0
    before, version = gradient_at(backend, middle), backend.version(middle)
    alias = backend.alias(middle)
    value = alias * 5.0
    backend.assign(middle, value)
    assert kit.array(middle).tolist() == [[10.0, -20.0, 30.0]]
    assert backend.version(middle) > version
    after = gradient_at(backend, middle)
    backend.backward([(middle * 3.0).sum()], [None])
    assert (after, before) == ([[[3.0] * 3]], [[[15.0] * 3]])
    assert backend.gradient(x).tolist() == [[30.0] * 3]


def test_a_value_on_the_same_memory_may_be_needed_by_the_graph(kit, backend):
    """The layer that overwrites keeps its result for the way back."""
    x = kit.tensor(X, grad=True)
    middle = x * 2.0
    if kit.name == "torch":
        stand_in = backend.substitute(middle, backend.to_array(middle, copy=False), copy=False)
    else:
        stand_in = backend.alias(middle)
    seen = gradient_at(backend, stand_in)
    kit.relu_(stand_in)
    backend.assign(middle, stand_in)
    assert kit.array(middle).tolist() == [[2.0, 0.0, 6.0]]
    backend.backward([(middle * 3.0).sum()], [None])
    assert seen == [[[3.0, 0.0, 3.0]]]


def test_only_hooks_on_views_of_torch_can_lose_sight(kit, backend):
    x = kit.tensor(X, grad=True) * 1.0
    assert backend.changes_behind_hooks(x) is None
    alias = backend.alias(x)
    count = backend.changes_behind_hooks(alias)
    if kit.name != "torch":
        assert count is None
        return
    before = count()
    seen = gradient_at(backend, alias)
    kit.relu_(alias)
    assert count() > before
    backend.backward([(alias * 3.0).sum()], [None])
    assert seen == []  # which is why it is counted


def test_sights_are_lost_to_others_and_not_to_what_we_assign(kit, backend):
    x = kit.tensor(X, grad=True) * 1.0
    alias = backend.alias(x)
    overwrites = Overwrites(backend)
    sight = overwrites.sight(backend.changes_behind_hooks(alias))
    seen = gradient_at(backend, alias)
    overwrites.assign(alias, backend.substitute(alias, np.array(X, "float32")) * 2.0)
    assert not sight.lost
    backend.backward([(alias * 3.0).sum()], [None])
    assert seen == [[[6.0] * 3]]
    later = overwrites.sight(backend.changes_behind_hooks(alias))
    kit.add_(alias, kit.tensor(X))
    assert later.lost == sight.lost == (not sight.stays)
