"""assign_weight within lists and maps, and the report of its failure."""

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.padiff import add_special_init, assign_weight, create_model
from parfocal.compat.padiff.weight_init.special_init import global_special_init_pool
from tests.compat.padiff.models import (
    PaddleChain,
    PaddleEncoder,
    PaddleLSTM,
    PaddleNet,
    PaddleNorm,
    TorchChain,
    TorchEncoder,
    TorchLSTM,
    TorchNet,
    TorchNorm,
    floats,
)


def same(first, second):
    return np.array_equal(first.detach().numpy(), second.numpy())


@pytest.fixture
def pool(monkeypatch):
    """The registry of special inits, put back afterwards."""
    for name in ("funcs", "registered_base_models", "registered_raw_models"):
        monkeypatch.setattr(global_special_init_pool, name, getattr(global_special_init_pool, name).copy())


def outputs(base, raw, array):
    base.eval()
    raw.eval()
    with torch.no_grad(), paddle.no_grad():
        first, second = base(torch.tensor(array)), raw(paddle.to_tensor(array))
    pair = [value[0] if isinstance(value, tuple) else value for value in (first, second)]
    return pair[0].numpy(), pair[1].numpy()


@pytest.mark.parametrize(
    ("classes", "array"),
    [
        ((TorchNet, PaddleNet), floats(3, 10)),
        ((TorchNorm, PaddleNorm), floats(2, 3, 8, 8)),
        ((TorchLSTM, PaddleLSTM), np.arange(10).reshape(2, 5)),
        ((TorchEncoder, PaddleEncoder), floats(2, 3, 16)),
    ],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_the_raw_model_then_gives_the_base_models_outputs(classes, array, mapped):
    base, raw = (create_model(each()) for each in classes)
    if mapped:
        base.auto_layer_map("base")
        raw.auto_layer_map("raw")
    assert assign_weight(base, raw) is True
    np.testing.assert_allclose(*outputs(base.model, raw.model, array), atol=1e-5)


def test_paddle_can_be_the_base():
    base, raw = PaddleNet(), TorchNet()
    assert assign_weight(base, raw)
    np.testing.assert_array_equal(base.linear1.weight.numpy().T, raw.linear1.weight.detach().numpy())


def test_names_that_say_nothing_go_by_definition_order():
    class Numbered(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.p = paddle.nn.Linear(4, 4)
            self.q = paddle.nn.Linear(4, 4)

    class Lettered(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = torch.nn.Linear(4, 4)
            self.n = torch.nn.Linear(4, 4)

    base, raw = Lettered(), Numbered()
    assert assign_weight(base, raw)
    assert same(base.m.bias, raw.p.bias)
    assert same(base.n.bias, raw.q.bias)


class Narrow(PaddleNet):
    """linear1 is too narrow; what follows is not reached."""

    def __init__(self):
        super().__init__()
        self.linear1 = paddle.nn.Linear(10, 7)


def test_a_failure_names_both_sides_and_writes_the_trees(logs, capsys):
    base, raw = TorchNet(), Narrow()
    before = raw.linear2.weight.numpy().copy()
    assert assign_weight(base, raw) is False
    printed = capsys.readouterr().out
    assert printed.startswith(
        "[AutoDiff] Assign weight Failed !!!\n"
        "\n"
        "RuntimeError:  Error occured when trying init weights, between:\n"
        "    base_model: `Linear(in_features=10, out_features=10, bias=True)`\n"
        "                `TorchNet(base_model).linear1.weight`\n"
        "    raw_model: `Linear(in_features=10, out_features=7, dtype=float32)`\n"
        "               `Narrow(raw_model).linear1.weight`\n"
        "AssertionError:  Shape of param `weight` in torch::Linear and param `weight` in paddle::Linear "
        "is not the same. [10, 10] vs [7, 10]\n"
    )
    assert (
        "Weight init log saved to \n"
        f"    {logs}/weight_init_TorchNet(base_model).log\n"
        f"    {logs}/weight_init_Narrow(raw_model).log\n"
        "\n"
        "Please view the reports and checkout the layer marked with `<---  *** HERE ***` !\n"
        "Hint:\n"
        "    1. Check the definition order of params is same in submodels.\n"
    ) in printed
    assert (logs / "weight_init_Narrow(raw_model).log").read_text(encoding="utf-8") == (
        "Narrow(raw_model)\n"
        "========================================\n"
        "    Narrow\n"
        "     |--- Linear    <---  *** HERE ***\n"
        "     |--- Linear\n"
        "     +--- ReLU  (skip)"
    )
    assert np.array_equal(raw.linear2.weight.numpy(), before)  # nothing was written


def test_paths_are_shown_in_the_trees_when_a_variable_asks_for_it(logs, monkeypatch):
    monkeypatch.setenv("PADIFF_PATH_LOG", "ON")
    assert not assign_weight(create_model(TorchNet(), "a"), create_model(Narrow(), "b"))
    text = (logs / "weight_init_b.log").read_text(encoding="utf-8")
    assert "     |--- Linear  (b.linear1)    <---  *** HERE ***\n" in text


def test_another_number_of_layers_is_told(capsys):
    assert assign_weight(TorchNet(), PaddleChain()) is False
    assert "Assign weight Failed !!!" in capsys.readouterr().out

    class Longer(PaddleChain):
        def __init__(self):
            super().__init__()
            self.fourth = paddle.nn.Linear(4, 4)

    assert assign_weight(TorchChain(), Longer()) is False
    printed = capsys.readouterr().out
    assert "RuntimeError:  Given models return difference number of sublayers. Check your model." in printed
    assert "fourth" in printed


def test_unassigned_layers_keep_their_weights():
    base, raw = create_model(TorchNet()), create_model(PaddleNet())
    before = raw.model.linear1.weight.numpy().copy()
    raw.update_unassigned_weights_list([raw.model.linear1])
    base.update_unassigned_weights_list([base.model.linear1])
    assert assign_weight(base, raw)
    assert np.array_equal(raw.model.linear1.weight.numpy(), before)
    assert same(base.model.linear2.bias, raw.model.linear2.bias)


def test_unassigned_layers_need_not_correspond():
    base, raw = create_model(TorchNet()), create_model(Narrow())
    assert assign_weight(base, raw) is False
    for proxy in (base, raw):
        proxy.update_unassigned_weights_list(proxy.model.linear1, mode="all")
    assert assign_weight(base, raw) is True
    assert same(base.model.linear2.bias, raw.model.linear2.bias)


def test_black_listed_layers_need_not_correspond():
    base, raw = create_model(TorchNet()), create_model(Narrow())
    for proxy in (base, raw):
        proxy.update_black_list(proxy.model.linear1, mode="all")
    assert assign_weight(base, raw) is True
    assert same(base.model.linear2.bias, raw.model.linear2.bias)


def test_layers_outside_of_the_white_list_are_still_copied():
    base, raw = create_model(TorchNet()), create_model(PaddleNet())
    for proxy in (base, raw):
        proxy.update_white_list(proxy.model.linear2)
    assert assign_weight(base, raw)
    assert same(base.model.linear1.bias, raw.model.linear1.bias)
    assert same(base.model.linear2.bias, raw.model.linear2.bias)


def test_a_layer_within_the_lists_must_correspond():
    base, raw = create_model(TorchNet()), create_model(Narrow())
    for proxy in (base, raw):
        proxy.update_black_list(proxy.model.linear2, mode="all")
    before = raw.model.linear2.weight.numpy().copy()
    assert assign_weight(base, raw) is False
    assert np.array_equal(raw.model.linear2.weight.numpy(), before)


def test_a_special_init_of_the_user_is_called_in_its_direction(pool, capsys):
    class TorchOwn(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.value = torch.nn.Parameter(torch.ones(3))

    class PaddleOwn(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.rows = self.create_parameter([1, 3])

    class TorchUser(TorchNet):
        def __init__(self):
            super().__init__()
            self.own = TorchOwn()

    class PaddleUser(PaddleNet):
        def __init__(self):
            super().__init__()
            self.own = PaddleOwn()

    def init(base, raw):
        raw.rows.set_value(base.value.detach().numpy().reshape(1, 3) * 2)

    def mapped():
        base, raw = create_model(TorchUser()), create_model(PaddleUser())
        base.set_layer_map([base.model.own])
        raw.set_layer_map([raw.model.own])
        return base, raw

    base, raw = mapped()
    assert assign_weight(base, raw)
    assert "*** Special init `torch::TorchOwn` and `paddle::PaddleOwn` is not supported ***" in (
        capsys.readouterr().out
    )
    add_special_init("torch", "TorchOwn", "paddle", "PaddleOwn", init)
    base, raw = mapped()
    assert assign_weight(base, raw)
    assert raw.model.own.rows.numpy().tolist() == [[2, 2, 2]]
    assert same(base.model.linear1.bias, raw.model.linear1.bias)
    raw.auto_layer_map("raw")
    assert [node.path for node in raw.marker.layer_map] == ["own"]


def test_a_special_init_that_raises_is_a_failure(pool, capsys):
    def broken(base, raw):
        raise ValueError("no such weight")

    add_special_init("torch", "LSTM", "paddle", "LSTM", broken)
    base, raw = create_model(TorchLSTM()), create_model(PaddleLSTM())
    base.auto_layer_map("base")
    raw.auto_layer_map("raw")
    before = raw.model.head.weight.numpy().copy()
    assert assign_weight(base, raw) is False
    printed = capsys.readouterr().out
    assert "Special init `torch::LSTM` and `paddle::LSTM` failed.\nValueError:  no such weight\n" in printed
    assert np.array_equal(raw.model.head.weight.numpy(), before)


def test_mapped_layers_go_by_the_map_not_by_their_names(pool):
    def copy(first, second):
        second.bias.set_value(first.bias.detach().numpy())

    add_special_init("torch", "Linear", "paddle", "Linear", copy)
    base, raw = create_model(TorchNet(out=10)), create_model(PaddleNet(out=10))
    base.set_layer_map([base.model.linear1, base.model.linear2])
    raw.set_layer_map([raw.model.linear2, raw.model.linear1])
    assert assign_weight(base, raw)
    assert same(base.model.linear1.bias, raw.model.linear2.bias)
    assert same(base.model.linear2.bias, raw.model.linear1.bias)
