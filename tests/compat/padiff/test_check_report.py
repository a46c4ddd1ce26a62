"""Comparing reports: the layer that is to blame, in both stages, and nothing else."""

import json
import os

import paddle
import pytest
import torch

from parfocal.compat.padiff import assign_weight, auto_diff, check_report, create_model
from parfocal.errors import InputError
from tests.compat.padiff.models import (
    PaddleChain,
    PaddleNet,
    PaddleOutputs,
    TorchChain,
    TorchNet,
    TorchOutputs,
    floats,
    inputs,
    scale_gradient,
)


def dumped(model, array, name, grad=False, edit=None):
    proxy = create_model(model, name=name)
    if edit:
        edit(proxy)
    torch_side = proxy.framework == "torch"
    given = (
        torch.tensor(array, requires_grad=grad)
        if torch_side
        else paddle.to_tensor(array, stop_gradient=not grad)
    )
    output = proxy(given)
    leaves = [output] if not isinstance(output, dict) else [output["features"], *output["heads"]]
    proxy.backward(sum(leaf.mean() for leaf in leaves))
    proxy.try_dump()
    return proxy.dump_path


def twins(torch_class, paddle_class):
    pair = torch_class(), paddle_class()
    assert assign_weight(*pair)
    return pair


@pytest.mark.parametrize("grad", [False, True])
def test_the_same_models_pass_with_and_without_gradients_of_the_input(grad):
    base, raw = twins(TorchNet, PaddleNet)
    paths = dumped(base, floats(3, 10), "base", grad), dumped(raw, floats(3, 10), "raw", grad)
    assert check_report(*paths, {"atol": 1e-5, "compare_mode": "strict"})
    assert check_report(*paths[::-1], {"atol": 1e-5, "compare_mode": "strict"})


def test_the_layer_is_reported_in_the_forward_stage(logs, capsys):
    base, raw = twins(TorchOutputs, PaddleOutputs)
    raw.block.linear2.bias.set_value(raw.block.linear2.bias + 1)
    paths = dumped(base, floats(3, 10), "Net"), dumped(raw, floats(3, 10), "Port")
    capsys.readouterr()
    assert not check_report(*paths, {"atol": 1e-4})
    printed = capsys.readouterr().out
    trees = logs / "report_Net_step_0.log", logs / "report_Port_step_0.log"
    difference = (
        "AssertionError: \nNot equal to tolerance rtol=1e-07, atol=0.0001\n\nMismatched elements: 1 / 1"
    )
    start, middle = printed.split(difference)
    assert start == (
        "[AutoDiff] check cfg {'atol': 0.0001, 'rtol': 1e-07, 'compare_mode': 'mean'}\n"
        f"[AutoDiff] Checking report in {paths[0]}/step_0/rank_0 and {paths[1]}/step_0/rank_0\n"
        "[AutoDiff] FAILED !!!\n"
        "[AutoDiff]     Diff found in Forward Stage\n"
        "[AutoDiff]     Type of layer is: Linear vs Linear\n"
        "[AutoDiff]     Route: Net.block.linear2\n"
        "[AutoDiff]            Port.block.linear2\n\n"
    )
    assert middle.endswith(
        "[AutoDiff] Check model struct:\n"
        f"Logs: {trees[0]}\n"
        f"      {trees[1]}\n\n"
        "[AutoDiff] The forward stage comparing failed !!!\n"
    )
    assert trees[0].read_text(encoding="utf-8") == (
        "Net\n"
        "========================================\n"
        "    TorchOutputs\n"
        "     |--- TorchNet\n"
        "     |     |--- Linear\n"
        "     |     |--- ReLU\n"
        "     |     +--- Linear    <---  *** HERE ***\n"
        "     |--- Linear\n"
        "     +--- Linear"
    )
    assert "Linear    <---  *** HERE ***" in trees[1].read_text(encoding="utf-8")


def test_paths_are_shown_in_the_trees_when_a_variable_asks_for_it(logs, monkeypatch):
    monkeypatch.setenv("PADIFF_PATH_LOG", "ON")
    base, raw = twins(TorchNet, PaddleNet)
    raw.linear1.bias.set_value(raw.linear1.bias + 1)
    assert not check_report(dumped(base, floats(3, 10), "Net"), dumped(raw, floats(3, 10), "Port"))
    text = (logs / "report_Port_step_0.log").read_text(encoding="utf-8")
    assert "    PaddleNet  (Port)\n     |--- Linear  (Port.linear1)    <---  *** HERE ***\n" in text


@pytest.mark.parametrize("grad", [False, True])
def test_the_layer_is_reported_in_the_backward_stage_not_the_root(grad, capsys):
    base, raw = twins(TorchChain, PaddleChain)
    scale_gradient(raw.second, 1.5)
    paths = dumped(base, floats(3, 10), "Net", grad), dumped(raw, floats(3, 10), "Port", grad)
    assert not check_report(*paths, {"atol": 1e-6})
    printed = capsys.readouterr().out
    assert "Diff found in Backward Stage" in printed
    assert "Route: Net.second\n" in printed
    assert check_report(*paths, {"atol": 1e-6}, diff_phase="forward")


def test_a_models_own_code_is_blamed_when_all_its_layers_agree(capsys):
    class Doubled(PaddleNet):
        def forward(self, x):
            return super().forward(x) * 2

    base, raw = twins(TorchNet, Doubled)
    assert not check_report(dumped(base, floats(3, 10), "Net"), dumped(raw, floats(3, 10), "Port"))
    printed = capsys.readouterr().out
    assert "Sublayers of TorchNet and Doubled are corresponded, but diff found at their output!" in printed
    assert "Route: Net\n" in printed


def test_a_gradient_that_stops_on_one_side_is_found(capsys):
    class Detached(PaddleChain):
        def forward(self, x):
            return self.third(self.second(self.first(x).detach()))

    base, raw = twins(TorchChain, Detached)
    paths = dumped(base, floats(3, 10), "Net"), dumped(raw, floats(3, 10), "Port")
    assert not check_report(*paths, {"atol": 1e-5})
    printed = capsys.readouterr().out
    assert "number of tensors for compare is not equal, 1 vs 0" in printed
    assert "Route: Net.second\n" in printed


def test_a_black_listed_layer_is_not_compared():
    base, raw = twins(TorchChain, PaddleChain)
    raw.second.register_forward_post_hook(lambda layer, given, output: output + 1)
    raw.third.register_forward_post_hook(lambda layer, given, output: output - raw.third.weight.sum(0))
    paths = dumped(base, floats(3, 10), "a"), dumped(raw, floats(3, 10), "b")
    assert check_report(*paths, {"atol": 1e-4}, "forward")  # the two errors cancel out in the end

    def hide_last(proxy):
        proxy.update_black_list([proxy.model], "self")

    paths = dumped(base, floats(3, 10), "c", edit=hide_last), dumped(raw, floats(3, 10), "d", edit=hide_last)
    assert not check_report(*paths, {"atol": 1e-4}, "forward")

    def hide_both(proxy):
        hide_last(proxy)
        proxy.update_black_list([proxy.model.second], "all")

    paths = dumped(base, floats(3, 10), "e", edit=hide_both), dumped(raw, floats(3, 10), "f", edit=hide_both)
    assert check_report(*paths, {"atol": 1e-4}, "forward")


def test_structures_that_differ_inside_do_not_hide_the_layer(capsys):
    class WithoutActivation(PaddleNet):
        def __init__(self):
            super().__init__()
            del self.act

        def forward(self, x):
            return self.linear2(paddle.nn.functional.relu(self.linear1(x)) + x)

    base, raw = twins(TorchNet, WithoutActivation)
    paths = dumped(base, floats(3, 10), "a"), dumped(raw, floats(3, 10), "b")
    assert check_report(*paths, {"atol": 1e-5})
    raw.linear2.bias.set_value(raw.linear2.bias + 1)
    assert not check_report(
        dumped(base, floats(3, 10), "a2"), dumped(raw, floats(3, 10), "b2"), {"atol": 1e-5}
    )
    assert "Route: a2.linear2\n" in capsys.readouterr().out


def test_mean_mode_tells_about_elements_that_differ(capsys):
    base, raw = twins(TorchNet, PaddleNet)

    def spike(layer, given, output):
        step = paddle.zeros_like(output)
        step[0, 0] = 1e-3
        return output + step

    raw.linear2.register_forward_post_hook(spike)
    paths = dumped(base, floats(300, 10), "a"), dumped(raw, floats(300, 10), "b")
    assert check_report(*paths, {"atol": 1e-4})
    own = capsys.readouterr().err
    assert "parfocal: within the tolerance on average only (compare_mode mean): 1 tensors\n" in own
    assert "    a: 1 of 1200 elements differ, by 0.00" in own
    assert not check_report(*paths, {"atol": 1e-4, "compare_mode": "strict"})


def test_settings_do_not_leak_into_the_next_call():
    base, raw = twins(TorchNet, PaddleNet)
    raw.linear2.bias.set_value(raw.linear2.bias + 0.01)
    paths = dumped(base, floats(3, 10), "a"), dumped(raw, floats(3, 10), "b")
    assert check_report(*paths, {"atol": 1.0, "compare_mode": "strict"})
    assert not check_report(*paths)
    auto_diff(base, raw, inputs(floats(3, 10)), atol=1.0, auto_init=False)
    assert not check_report(*paths)


def test_two_models_of_one_name_have_a_tree_file_each(logs):
    torch.manual_seed(1)
    paths = dumped(TorchNet(), floats(3, 10), "Net"), dumped(TorchNet(), floats(3, 10), "Net")
    assert not check_report(*paths)
    assert sorted(os.listdir(logs)) == [
        "report_Net(base_model)_step_0.log",
        "report_Net(raw_model)_step_0.log",
    ]


def test_a_model_called_another_number_of_times_fails(capsys):
    proxy, other = create_model(TorchNet(), name="once"), create_model(TorchNet(), name="twice")
    other.model.load_state_dict(proxy.model.state_dict())
    for model, times in ((proxy, 1), (other, 2)):
        for _ in range(times):
            model(torch.tensor(floats(2, 10)))
        model.try_dump()
    assert not check_report(proxy.dump_path, other.dump_path)
    assert "base_model was called 1 times, raw_model 2 times" in capsys.readouterr().out


def test_wrong_phases_are_refused(tmp_path):
    with pytest.raises(InputError, match="Illegal diff_phase 'sideways'"):
        check_report(tmp_path, tmp_path, diff_phase="sideways")


@pytest.mark.parametrize("foreign", [True, False])
def test_torch_dumps_of_padiff_itself_have_no_gradients_to_compare(foreign, capsys):
    base, raw = twins(TorchChain, PaddleChain)
    paths = dumped(base, floats(3, 10), "a"), dumped(raw, floats(3, 10), "b")
    file = os.path.join(paths[0], "step_0", "rank_0", "report.json")
    with open(file, encoding="utf-8") as opened:
        document = json.load(opened)
    for node in (document["tree"][0], *document["tree"][0]["children"]):
        node["bwd_grads"] = []
        if foreign:
            del node["kind"], node["builtin"]
    with open(file, "w", encoding="utf-8") as opened:
        json.dump(document, opened)
    assert check_report(*paths) is foreign
    assert ("holds no gradients of layer inputs" in capsys.readouterr().out) is foreign
