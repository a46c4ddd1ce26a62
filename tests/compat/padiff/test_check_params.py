"""Comparing weights, buffers and gradients in the layouts of both frameworks."""

import json
import os

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.padiff import assign_weight, check_grads, check_params, check_weights, create_model
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

TRAINING_WARNING = "ignore:When training, we now always track global mean and variance:UserWarning"
IDS = np.random.default_rng(0).integers(0, 11, (3, 5))
PAIRS = [
    (TorchNet, PaddleNet, floats(3, 10)),
    (TorchLSTM, PaddleLSTM, IDS),
    (TorchEncoder, PaddleEncoder, floats(2, 3, 16)),
]


def proxies(torch_class, paddle_class):
    pair = create_model(torch_class(), name="Net"), create_model(paddle_class(), name="Port")
    assert assign_weight(*pair)
    return pair


def run(pair, array):
    for proxy, given in zip(pair, (torch.tensor(array), paddle.to_tensor(array)), strict=True):
        output = proxy(given)
        first = output[0] if isinstance(output, tuple) else output
        proxy.backward((first * first).mean())


def dump(pair):
    for proxy in pair:
        proxy.dump_params(proxy.dump_path)
        proxy.dump_weights(proxy.dump_path)
        proxy.dump_grads(proxy.dump_path)
    return [proxy.dump_path for proxy in pair]


@pytest.mark.parametrize(("torch_class", "paddle_class", "array"), PAIRS)
def test_layouts_of_both_frameworks_compare(torch_class, paddle_class, array):
    pair = proxies(torch_class, paddle_class)
    run(pair, array)
    paths = dump(pair)
    strict = {"atol": 1e-5, "compare_mode": "strict"}
    for check in (check_params, check_weights, check_grads):
        assert check(*paths, strict)
        assert check(*paths[::-1], strict)


@pytest.mark.parametrize(("torch_class", "paddle_class", "array"), PAIRS)
def test_one_changed_weight_anywhere_is_found(torch_class, paddle_class, array):
    pair = proxies(torch_class, paddle_class)
    paths = dump(pair)
    for parameter in pair[1].model.parameters():
        before = parameter.numpy().copy()
        changed = before.copy()
        changed.flat[-1] += 1
        parameter.set_value(changed)
        pair[1].dump_weights(paths[1])
        assert not check_weights(*paths, {"atol": 1e-5, "compare_mode": "strict"}), parameter.name
        parameter.set_value(before)
    pair[1].dump_weights(paths[1])
    assert check_weights(*paths, {"atol": 1e-5, "compare_mode": "strict"})


def test_the_list_of_differences_is_the_documents(logs, capsys):
    pair = proxies(TorchNet, PaddleNet)
    pair[1].model.linear1.bias.set_value(pair[1].model.linear1.bias + 1)
    paths = dump(pair)
    capsys.readouterr()
    assert not check_weights(*paths, {"atol": 1e-4})
    printed, own = capsys.readouterr()
    assert own == "parfocal: Net.linear1.bias: 8,600,000 times the rounding of values of this size\n"
    assert printed == (
        "[AutoDiff] Check weights cfg: {'atol': 0.0001, 'rtol': 1e-07, 'compare_mode': 'mean'}\n"
        f"[AutoDiff] Checking weights in {paths[0]} and {paths[1]}\n"
        "[AutoDiff] Diff found when compare weights, please check report \n"
        f"        {logs}/weights_diff\n"
    )
    text = (logs / "weights_diff").read_text(encoding="utf-8")
    assert text.startswith(
        "=========================\n"
        "weights value is different.\n"
        "between base_model: Linear(in_features=10, out_features=10, bias=True)\n"
        "        raw_model:  Linear(in_features=10, out_features=10, dtype=float32)\n"
        "\n"
        "base_model param path:\n"
        "    Net.linear1.bias\n"
        "raw_model param path:\n"
        "    Port.linear1.bias\n"
        "\n"
        "AssertionError:  \n"
        "Not equal to tolerance rtol=1e-07, atol=0.0001\n"
    )
    assert text.count("value is different") == 1
    check_weights(*paths, {"atol": 1e-4})
    assert (logs / "weights_diff").read_text(encoding="utf-8") == text  # not added to an earlier call's


def test_a_gradient_on_one_side_only_is_a_difference(logs):
    pair = proxies(TorchChain, PaddleChain)
    run(pair, floats(3, 10))
    pair[0].model.zero_grad()
    paths = dump(pair)
    assert not check_grads(*paths)
    assert check_weights(*paths)
    text = (logs / "grads_diff").read_text(encoding="utf-8")
    assert "RuntimeError:  Found grad in base_model is `None`, when another is not!" in text
    assert text.count("value is different") == 6


def test_buffers_are_compared(logs):
    pair = proxies(TorchNorm, PaddleNorm)
    assert check_weights(*dump(pair))
    pair[1].model.bn._mean.set_value(pair[1].model.bn._mean + 1)
    assert not check_weights(*dump(pair))
    text = (logs / "weights_diff").read_text(encoding="utf-8")
    assert "    Net.bn.running_mean\n" in text
    assert "    Port.bn._mean\n" in text


def test_a_users_own_buffers_are_compared():
    class TorchBuffer(TorchNet):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(3))

    class PaddleBuffer(PaddleNet):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", paddle.ones([3]))

    pair = proxies(TorchBuffer, PaddleBuffer)
    assert check_weights(*dump(pair))
    pair[1].model.scale.set_value(paddle.zeros([3]))
    assert not check_weights(*dump(pair))


@pytest.mark.filterwarnings(TRAINING_WARNING)
def test_the_two_conventions_of_the_running_variance_are_no_difference(capsys):
    pair = proxies(TorchNorm, PaddleNorm)
    run(pair, floats(2, 3, 4, 4))
    assert check_weights(*dump(pair), {"atol": 1e-6})
    assert "Net.bn.running_var: the running variance differs by no more than torch's division by n - 1" in (
        capsys.readouterr().err
    )


@pytest.mark.filterwarnings(TRAINING_WARNING)
@pytest.mark.parametrize("change", [1.01, 0.99])
def test_a_running_variance_beyond_the_conventions_is_a_difference(change):
    pair = proxies(TorchNorm, PaddleNorm)
    run(pair, floats(2, 3, 12, 12))
    pair[1].model.bn._variance.set_value(pair[1].model.bn._variance * change)
    assert not check_weights(*dump(pair), {"atol": 1e-6})


def test_in_eval_mode_no_convention_is_allowed_for():
    pair = proxies(TorchNorm, PaddleNorm)
    for proxy in pair:
        proxy.eval()
    run(pair, floats(2, 3, 4, 4))
    assert check_weights(*dump(pair), {"atol": 1e-6})
    pair[1].model.bn._variance.set_value(pair[1].model.bn._variance * 0.99)
    assert not check_weights(*dump(pair), {"atol": 1e-6})


def test_models_of_another_structure_are_told_apart(capsys):
    pair = create_model(TorchNet(), name="Net"), create_model(PaddleChain(), name="Port")
    assert not check_weights(*dump(pair))
    printed = capsys.readouterr().out
    assert "==========Err occurs when compare weights!!!==========" in printed
    assert "Found model with difference number of sublayers. Check your model." in printed


def test_a_bias_on_one_side_only_is_named(capsys):
    pair = proxies(TorchNet, PaddleNet)
    pair[1].model.linear1.bias = None
    assert not check_weights(*dump(pair))
    printed = capsys.readouterr().out
    assert "bias on one side only" in printed
    assert "(raw_model):   Port.linear1" in printed


def test_layers_outside_of_the_lists_are_not_compared():
    pair = proxies(TorchNet, PaddleNet)
    pair[1].model.linear1.bias.set_value(pair[1].model.linear1.bias + 1)
    for proxy in pair:
        proxy.update_black_list(proxy.model.linear1)
    assert check_weights(*dump(pair))


def test_dumps_of_padiff_itself_are_read(tmp_path):
    """No kinds, shapes or buffers in the tree; absolute paths; statistics among paddle's weights."""
    pair = proxies(TorchNorm, PaddleNorm)
    for proxy in pair:
        proxy.eval()
    run(pair, floats(2, 3, 4, 4))
    paths = dump(pair)
    for path in paths:
        file = os.path.join(path, "params.json")
        with open(file, encoding="utf-8") as opened:
            document = json.load(opened)
        strip(document["tree"])
        del document["layer_map"]
        with open(file, "w", encoding="utf-8") as opened:
            json.dump(document, opened)
    assert check_params(*paths, {"atol": 1e-5})
    pair[1].model.conv.bias.set_value(pair[1].model.conv.bias + 1)
    pair[1].dump_params(paths[1])
    assert not check_params(*paths, {"atol": 1e-5})


def strip(entry):
    for key in ("kind", "weight_layout", "elements", "shapes"):
        del entry[key]
    statistics = entry.pop("buffers")
    if "_mean" in statistics:
        entry["weights"].update(statistics)
    for child in entry["children"]:
        strip(child)
