"""Black and white lists, layer maps, and the variables that change what is recorded."""

import sys
import types

import paddle
import pytest
import torch

from parfocal.compat.padiff import create_model
from parfocal.errors import InputError
from tests.compat.padiff.models import PaddleChain, PaddleEncoder, PaddleNet, TorchNet, TorchOutputs, floats


def recorded(proxy):
    """The paths of all calls of one run, in the order in which they began."""
    array = floats(2, 10)
    proxy.clear_report()
    proxy(torch.tensor(array) if proxy.framework == "torch" else paddle.to_tensor(array))
    return [node.path for root in proxy.report.roots for node in root.walk() if node.layer_type != "api"]


@pytest.fixture(params=[TorchNet, PaddleNet])
def net(request):
    return create_model(request.param())


@pytest.fixture
def nested():
    return create_model(TorchOutputs())


def test_everything_is_recorded_in_order(net, nested):
    assert recorded(net) == ["", "linear1", "act", "linear2"]
    assert recorded(nested) == [
        *("", "block", "block.linear1", "block.act", "block.linear2"),
        *("heads.0", "heads.1"),
    ]


def test_black_list_all_leaves_the_layer_and_its_sublayers_out(nested):
    nested.update_black_list([nested.model.block], "all")
    assert recorded(nested) == ["", "heads.0", "heads.1"]


def test_black_list_all_of_a_layer_without_sublayers(net):
    net.update_black_list(net.model.linear1, "all")
    assert recorded(net) == ["", "act", "linear2"]


def test_black_list_self_keeps_the_sublayers(nested):
    nested.update_black_list([nested.model.block], "self")
    assert recorded(nested)[:3] == ["", "block.linear1", "block.act"]
    assert [child.path for child in nested.report.roots[0].children[:2]] == ["block.linear1", "block.act"]


def test_black_list_sublayers_keeps_the_layer(nested):
    nested.update_black_list([nested.model.block], "sublayers")
    assert recorded(nested) == ["", "block", "heads.0", "heads.1"]


def test_the_black_list_takes_classes(nested):
    nested.update_black_list_with_class(torch.nn.Linear)
    assert recorded(nested) == ["", "block", "block.act"]


def test_the_model_itself_can_be_left_out(net):
    net.update_black_list(net.model, "self")
    assert recorded(net) == ["linear1", "act", "linear2"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("self", ["", "block"]),
        ("sublayers", ["", "block.linear1", "block.act", "block.linear2"]),
        ("all", ["", "block", "block.linear1", "block.act", "block.linear2"]),
    ],
)
def test_white_list_modes(nested, mode, expected):
    nested.update_white_list([nested.model.block], mode)
    assert recorded(nested) == expected


def test_the_white_list_wins_over_the_black_list(net):
    net.update_black_list([net.model.linear1], "all")
    net.update_white_list([net.model.linear1, net.model.linear2])
    assert recorded(net) == ["", "linear1", "linear2"]


def test_the_white_list_takes_classes(net):
    kind = torch.nn.Linear if net.framework == "torch" else paddle.nn.Linear
    net.update_white_list_with_class(kind, mode="all")
    assert recorded(net) == ["", "linear1", "linear2"]


def test_wrong_modes_and_foreign_layers_are_refused(net):
    with pytest.raises(InputError, match="mode is 'both'; the modes are: self, sublayers, all"):
        net.update_black_list(net.model.linear1, "both")
    with pytest.raises(InputError, match="Linear is not a layer of"):
        net.update_black_list([PaddleNet().linear1])
    with pytest.raises(InputError, match="is not a layer of"):
        net.set_layer_map([TorchNet()])


def test_a_mapped_layer_hides_what_is_inside_and_keeps_the_given_order():
    proxy = create_model(PaddleEncoder())
    layers = proxy.model.encoder.layers
    proxy.set_layer_map([layers[1], layers[0]])
    assert [node.path for node in proxy.marker.layer_map] == ["encoder.layers.1", "encoder.layers.0"]
    proxy(paddle.to_tensor(floats(2, 3, 16)))
    calls = [(node.path, node.layer_type) for node in proxy.report.roots[0].walk()]
    assert calls == [
        ("", "net"),
        ("encoder", "net"),
        ("encoder.layers.0", "in map"),
        ("encoder.layers.1", "in map"),
    ]


def test_auto_layer_map_finds_layers_with_a_special_init(capsys):
    proxy = create_model(PaddleEncoder())
    assert proxy.auto_layer_map("raw")
    assert [node.path for node in proxy.marker.layer_map] == [
        "encoder.layers.0.self_attn",
        "encoder.layers.1.self_attn",
    ]
    text = "++++    raw_model found `paddle::MultiHeadAttention` add to layer_map   ++++\n"
    assert capsys.readouterr().out == f"[AutoDiff] Auto set layer_map start searching...\n{text}{text}\n"
    with pytest.raises(InputError, match="either 'base' or 'raw'"):
        proxy.auto_layer_map("left")


def test_wrapping_layers_can_be_skipped_by_a_variable(nested, monkeypatch):
    monkeypatch.setenv("PADIFF_SIKP_WRAP_LAYER", "TRUE")
    assert recorded(nested) == ["", "block.linear1", "block.linear2", "heads.0", "heads.1"]


def test_functions_are_recorded_when_a_variable_asks_for_it(net, monkeypatch):
    monkeypatch.setenv("PADIFF_API_CHECK", "ON")
    recorded(net)
    calls = [(node.layer_type, node.kind) for node in net.report.roots[0].children]
    assert calls == [("net", "Linear"), ("net", "ReLU"), ("api", "add"), ("net", "Linear")]
    assert len(net.report.items) == 2 * 5
    monkeypatch.delenv("PADIFF_API_CHECK")
    recorded(net)
    assert len(net.report.items) == 2 * 4


def test_custom_operators_are_recorded_by_name_and_put_back(monkeypatch):
    operators = types.ModuleType("my_operators")
    operators.double = lambda x: x * 2
    original = operators.double
    monkeypatch.setitem(sys.modules, "my_operators", operators)
    monkeypatch.setenv("PADIFF_API_CHECK", "ON")
    monkeypatch.setenv("PADDLE_THIRDPARTY_API", "my_operators.double")

    class Model(PaddleChain):
        def forward(self, x):
            return super().forward(operators.double(x))

    proxy = create_model(Model())
    recorded(proxy)
    assert "my_operators.double" in [node.name for node in proxy.report.roots[0].children]
    assert operators.double is original
    monkeypatch.setenv("PADDLE_THIRDPARTY_API", "my_operators.triple")
    with pytest.raises(InputError, match=r"PADDLE_THIRDPARTY_API names 'my_operators\.triple'"):
        recorded(proxy)


def test_a_whole_training_step_of_the_model_is_recorded():
    class Pipeline(PaddleNet):
        def train_batch(self, data, optimizer=None):
            return self.linear2(self.linear1(data)).mean()

        def forward_backward_pipeline(self, data, scaler=None):
            self.train_batch(data).backward()

    proxy = create_model(Pipeline())
    proxy.train_batch(paddle.to_tensor(floats(2, 10)), optimizer=None)
    assert [root.path for root in proxy.report.roots] == ["linear1", "linear2"]
    proxy.forward_backward_pipeline(paddle.to_tensor(floats(2, 10)))
    assert [root.path for root in proxy.report.roots] == ["linear1", "linear2"] * 2
    assert proxy.report.roots[3].input_gradients["0"] is not None


def test_a_model_that_raises_leaves_no_half_recorded_call():
    class Broken(TorchNet):
        def forward(self, x):
            super().forward(x)
            raise ValueError("broken")

    proxy = create_model(Broken())
    with pytest.raises(ValueError, match="broken"):
        recorded(proxy)
    assert proxy.report.roots == []
    assert proxy.report.items == []
    assert not proxy.model.linear1._forward_hooks


def test_a_call_that_raises_and_is_caught_is_not_in_the_report():
    class Fragile(torch.nn.Module):
        def forward(self, x):
            raise ValueError("fragile")

    class Careful(TorchNet):
        def __init__(self):
            super().__init__()
            self.fragile = Fragile()

        def forward(self, x):
            try:
                self.fragile(x)
            except ValueError:
                return super().forward(x)

    assert recorded(create_model(Careful())) == ["", "linear1", "act", "linear2"]
