"""auto_diff in one go: options, losses, optimizers, and what it prints."""

from functools import partial

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.padiff import auto_diff, create_model
from parfocal.compat.padiff.interfaces.diff_utils import default_loss
from parfocal.errors import InputError
from tests.compat.padiff.models import (
    PaddleNet,
    PaddleNorm,
    PaddleOutputs,
    TorchNet,
    TorchNorm,
    TorchOutputs,
    floats,
    inputs,
    paddle_input,
    torch_input,
)

TRAINING_WARNING = "ignore:When training, we now always track global mean and variance:UserWarning"


def test_what_is_printed_on_success_is_the_documents(tmp_path, capsys):
    assert auto_diff(TorchNet(), PaddleNet(), inputs(floats(3, 10)), atol=1e-4) is True
    folders = [
        f"{tmp_path}/padiff_dump/{n}/auto_diff" for n in ("TorchNet(base_model)", "PaddleNet(raw_model)")
    ]
    assert capsys.readouterr().out == (
        "[AutoDiff] Your options:\n"
        "{\n"
        "  atol: `0.0001`\n"
        "  auto_init: `True`\n"
        "  single_step: `False`\n"
        "  use_loss: `False`\n"
        "  use_opt: `False`\n"
        "  rtol: `1e-07`\n"
        "  compare_mode: `mean`\n"
        "}\n"
        "[AutoDiff] Assign weight success !!!\n"
        "[AutoDiff] check cfg {'atol': 0.0001, 'rtol': 1e-07, 'compare_mode': 'mean'}\n"
        f"[AutoDiff] Checking report in {folders[0]} and {folders[1]}\n"
        "[AutoDiff] Check grads cfg: {'atol': 0.0001, 'rtol': 1e-07, 'compare_mode': 'mean'}\n"
        f"[AutoDiff] Checking grads in {folders[0]} and {folders[1]}\n"
        "[AutoDiff] grads compared.\n"
        "[AutoDiff] SUCCESS !!!\n\n"
    )


def test_a_difference_ends_with_the_documents_words(capsys):
    assert auto_diff(TorchNet(), PaddleNet(), inputs(floats(3, 10)), atol=1e-4, auto_init=False) is False
    printed, own = capsys.readouterr()
    assert "Route: TorchNet(base_model).linear1\n" in printed
    *_, before, last, _ = printed.splitlines()
    assert before == "[AutoDiff] The forward stage comparing failed !!!"
    assert own.startswith("parfocal: ")
    assert "parfocal: " not in printed
    assert last == "[AutoDiff] FAILED !!!"


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("single_step", [False, True])
def test_the_same_model_twice_passes_at_the_default_tolerance(grad, single_step):
    first, second = TorchNet(), TorchNet()
    given = torch_input(floats(3, 10), grad), torch_input(floats(3, 10), grad)
    assert auto_diff(first, second, given, single_step=single_step)


def test_forward_only_computes_no_gradients():
    base, raw = create_model(TorchNet()), create_model(PaddleNet())
    assert auto_diff(base, raw, inputs(floats(3, 10)), diff_phase="forward", atol=1e-5)
    assert all(param.grad() is None for model in (base, raw) for param in model.parameters(recursively=True))


def test_losses_are_used():
    label = floats(3, 4)
    base, raw = TorchNet(), PaddleNet()
    losses = [
        partial(torch.nn.MSELoss(), target=torch.tensor(label)),
        partial(paddle.nn.MSELoss(), label=paddle.to_tensor(label)),
    ]
    assert auto_diff(base, raw, inputs(floats(3, 10)), loss_fns=losses, atol=1e-5)
    losses[1] = partial(paddle.nn.MSELoss(reduction="sum"), label=paddle.to_tensor(label))
    assert not auto_diff(base, raw, inputs(floats(3, 10)), loss_fns=losses, atol=1e-5)
    assert not auto_diff(base, raw, inputs(floats(3, 10)), loss_fn=losses, atol=1e-5)


def optimizers(base, raw, rates=(0.1, 0.1)):
    return [
        torch.optim.SGD(base.parameters(), lr=rates[0]),
        paddle.optimizer.SGD(learning_rate=rates[1], parameters=raw.parameters()),
    ]


def test_optimizers_step_and_the_weights_are_compared(capsys):
    base, raw = TorchNet(), PaddleNet()
    before = base.linear1.weight.detach().numpy().copy()
    assert auto_diff(base, raw, inputs(floats(3, 10)), optimizers=optimizers(base, raw), atol=1e-5, steps=3)
    assert np.abs(base.linear1.weight.detach().numpy() - before).max() > 0
    assert capsys.readouterr().out.count("weights compared.") == 3
    wrong = optimizers(base, raw, (0.1, 0.5))
    assert not auto_diff(base, raw, inputs(floats(3, 10)), optimizers=wrong, atol=1e-5)
    assert "Diff found when compare weights" in capsys.readouterr().out


def test_optimizers_may_be_functions():
    base, raw = TorchNet(), PaddleNet()
    calls = []
    functions = [partial(calls.append, "base"), partial(calls.append, "raw")]
    assert auto_diff(base, raw, inputs(floats(3, 10)), optimizers=functions, atol=1e-5)
    assert calls == ["base", "raw"]


@pytest.mark.filterwarnings(TRAINING_WARNING)
def test_batch_norm_trains_with_both_conventions_of_the_variance():
    base, raw = TorchNorm(), PaddleNorm()
    pair = optimizers(base, raw)
    assert auto_diff(base, raw, inputs(floats(4, 3, 12, 12)), optimizers=pair, atol=1e-5, steps=2)


def test_buffers_that_differ_are_found():
    base, raw = TorchNorm(), PaddleNorm()
    base.eval()
    raw.eval()
    pair = optimizers(base, raw, (0.0, 0.0))
    given = inputs(floats(2, 3, 8, 8))
    assert auto_diff(base, raw, given, optimizers=pair, atol=1e-4)

    def spoil(layer, given, output):
        layer.bn._mean.set_value(layer.bn._mean + 1)

    raw.register_forward_post_hook(spoil)
    assert not auto_diff(base, raw, given, optimizers=pair, atol=1e-4)


def test_gradients_of_an_earlier_run_are_not_compared():
    base, raw = TorchNet(), PaddleNet()
    auto_diff(base, raw, inputs(floats(3, 10)), auto_init=False, atol=10.0)
    assert auto_diff(base, raw, inputs(floats(3, 10)), atol=1e-5)


def test_nested_outputs_and_other_bases():
    base, raw = TorchOutputs(), PaddleOutputs()
    assert auto_diff(base, raw, inputs(floats(3, 10)), atol=1e-5, compare_mode="strict")
    assert auto_diff(raw, base, inputs(floats(3, 10))[::-1], atol=1e-5, compare_mode="strict")


def test_options_without_a_meaning_are_put_right_and_said(capsys):
    base, raw = TorchNet(), PaddleNet()
    pair = optimizers(base, raw)
    given = inputs(floats(3, 10))
    assert auto_diff(base, raw, given, atol=1e-5, diff_phase="backward")
    assert "diff_phase `backward` is not supported, set to `both` instead." in capsys.readouterr().out
    assert auto_diff(base, raw, given, optimizers=pair, atol=1e-5, diff_phase="forward", steps=2)
    printed = capsys.readouterr().out
    assert "Diff_phase is `forward`, optimizer will not be used." in printed
    assert "Diff_phase is `forward`, steps is set to `1`." in printed
    assert auto_diff(base, raw, given, atol=1e-5, steps=2)
    assert "Steps is set to `1`, because optimizers are not given." in capsys.readouterr().out


def test_older_spellings_of_options_are_understood(capsys):
    given = inputs(floats(3, 10))
    assert not auto_diff(TorchNet(), PaddleNet(), given, auto_weights=False, options={"atol": 1e-4})
    assert "auto_init: `False`" in capsys.readouterr().out


def test_wrong_arguments_are_refused(capsys):
    base, raw = TorchNet(), PaddleNet()
    given = inputs(floats(3, 10))
    with pytest.raises(InputError, match="auto_diff has no option called 'tolerance'"):
        auto_diff(base, raw, given, tolerance=1)
    with pytest.raises(InputError, match="inputs must be a pair of dicts"):
        auto_diff(TorchNet(), PaddleNet(), given[0])  # others, which dump nowhere either
    with pytest.raises(InputError, match="loss_fns must be a pair"):
        auto_diff(base, raw, given, loss_fns=[None])
    with pytest.raises(InputError, match="diff_phase is 'up'"):
        auto_diff(base, raw, given, diff_phase="up")
    with pytest.raises(InputError, match="steps is 0"):
        auto_diff(base, raw, given, steps=0)
    assert capsys.readouterr().out == ""


def test_the_default_loss_is_the_mean_of_means():
    assert float(default_loss(torch.tensor([1.0, 3.0]), "torch")) == 2
    nested = {"a": torch.tensor([1.0, 3.0]), "b": [torch.tensor([6], dtype=torch.int64), "no tensor"]}
    assert float(default_loss(nested, "torch")) == 4
    assert default_loss([paddle.to_tensor([1.0, 3.0]), paddle.to_tensor([8.0])], "paddle").item() == 5
    with pytest.raises(InputError, match="holds no tensor of torch"):
        default_loss([1, 2], "torch")


def test_a_layer_that_both_lists_leave_out_cannot_fail_the_run():
    base, raw = create_model(TorchNet()), create_model(PaddleNet())
    for proxy in (base, raw):
        proxy.update_black_list(proxy.model.linear2, "all")
        proxy.update_black_list(proxy.model, "self")
    raw.model.linear2.register_forward_post_hook(lambda layer, given, output: output + 1)
    assert auto_diff(base, raw, inputs(floats(3, 10)), atol=1e-5)
    assert not auto_diff(base.model, raw.model, inputs(floats(3, 10)), atol=1e-5)


def test_torch_inputs_for_a_paddle_model_stay_apart():
    base, raw = PaddleNet(), PaddleNet()
    assert auto_diff(base, raw, (paddle_input(floats(3, 10)), paddle_input(floats(3, 10))))


@pytest.mark.parametrize("single_step", [False, True])
def test_bfloat16_models_are_run_and_compared(single_step):
    base, raw = TorchNet().bfloat16(), TorchNet().bfloat16()
    given = [{"x": torch.tensor(floats(3, 10)).bfloat16()} for _ in range(2)]
    assert auto_diff(base, raw, given, single_step=single_step)
    with torch.no_grad():
        raw.linear2.bias += 1
    assert not auto_diff(base, raw, given, single_step=single_step, auto_init=False, atol=1e-2)
