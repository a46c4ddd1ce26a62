"""The dumps: PaDiff's folders and JSON, steps and ranks, moving them, and what must not be lost."""

import json
import os
import shutil

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.padiff import (
    check_grads,
    check_params,
    check_report,
    check_weights,
    create_model,
    get_dump_root_path,
    set_dump_root_path,
)
from parfocal.errors import EmptyComparisonError, FileFormatError, InputError
from tests.compat.padiff.models import PaddleNet, TorchNet, TorchNorm, floats


def run(proxy, array, grad=False):
    torch_side = proxy.framework == "torch"
    given = (
        torch.tensor(array, requires_grad=grad)
        if torch_side
        else paddle.to_tensor(array, stop_gradient=not grad)
    )
    proxy.backward(proxy(given).mean())


@pytest.fixture(params=[TorchNet, PaddleNet])
def proxy(request):
    return create_model(request.param())


def load(*parts):
    with open(os.path.join(*map(str, parts)), encoding="utf-8") as file:
        return json.load(file)


def test_try_dump_makes_steps_and_ranks(proxy, tmp_path):
    for _ in range(2):
        run(proxy, floats(2, 10))
        proxy.try_dump()
    root = tmp_path / "padiff_dump" / type(proxy.model).__name__
    assert proxy.dump_path == str(root)
    assert sorted(os.listdir(root)) == ["step_0", "step_1"]
    folder = root / "step_1" / "rank_0"
    assert sorted(os.listdir(folder)) == ["grads", "params.json", "report.json", "tensors", "weights"]
    assert "weights_0.npy" in os.listdir(folder / "weights")
    assert "grads_0.npy" in os.listdir(folder / "grads")
    assert "tensor_0.npy" in os.listdir(folder / "tensors")


def test_ranks_have_folders_of_their_own(proxy, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    run(proxy, floats(2, 10))
    proxy.try_dump()
    assert os.listdir(os.path.join(proxy.dump_path, "step_0")) == ["rank_3"]


def test_only_the_first_process_of_a_machine_empties_the_folder(proxy, monkeypatch):
    run(proxy, floats(2, 10))
    proxy.try_dump()
    monkeypatch.setenv("RANK", "1")
    create_model(proxy.model)
    assert os.listdir(proxy.dump_path) == ["step_0"]
    monkeypatch.setenv("RANK", "0")
    create_model(proxy.model)
    assert os.listdir(proxy.dump_path) == []


def test_report_json_is_padiffs(proxy, tmp_path):
    run(proxy, floats(2, 10))
    proxy.dump_report(tmp_path / "dump")
    report = load(tmp_path, "dump", "report.json")
    name = type(proxy.model).__name__
    assert (report["model_name"], report["framework"]) == (name, proxy.framework)
    assert report["file_path"] == f"{tmp_path}/dump/report.json"
    assert report["layer_map"] == {"route": [], "fullname": []}
    (root,) = report["tree"]
    assert [child["route"] for child in root["children"]] == [
        f"{name}.{n}" for n in ("linear1", "act", "linear2")
    ]
    node = root["children"][2]
    assert node["name"] == "Linear"
    assert node["type"] == "net"
    assert node["metas"] == {"fwd_step": 4, "bwd_step": 5, "net_id": 2}
    assert "self.linear2" in node["stack"]
    (output,) = node["fwd_outputs"]
    assert output["shape"] == "[2, 4]"
    assert output["dtype"] == f"{proxy.framework}.float32"
    assert np.load(output["path"]).shape == (2, 4)


def test_the_gradients_of_layer_inputs_are_stored_on_either_side(proxy, tmp_path):
    run(proxy, floats(2, 10), grad=True)
    proxy.dump_report(tmp_path)
    (root,) = load(tmp_path, "report.json")["tree"]
    for node in (root, *root["children"]):
        (gradient,) = node["bwd_grads"]
        assert np.abs(np.load(gradient["path"])).sum() > 0


def test_params_json_is_padiffs_and_has_buffers(tmp_path):
    proxy = create_model(TorchNorm(), name="norm")
    proxy.backward(proxy(torch.tensor(floats(2, 3, 8, 8))).sum())
    proxy.dump_params(tmp_path)
    tree = load(tmp_path, "params.json")["tree"]
    assert (tree["name"], tree["route"], tree["available"]) == ("TorchNorm", "norm", True)
    conv, norm = tree["children"]
    assert conv["repr"] == "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))"
    assert list(conv["weights"]) == list(conv["grads"]) == ["weight", "bias"]
    assert list(norm["buffers"]) == ["running_mean", "running_var", "num_batches_tracked"]
    assert np.load(conv["weights"]["weight"]).shape == (4, 3, 3, 3)


def test_weights_and_grads_can_be_dumped_alone(proxy, tmp_path):
    run(proxy, floats(2, 10))
    proxy.dump_weights(tmp_path)
    proxy.dump_grads(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["grads", "grads.json", "padiff_dump", "weights", "weights.json"]
    assert check_weights(tmp_path, tmp_path)
    assert check_grads(tmp_path, tmp_path)


def test_a_dump_can_be_moved_and_read_from_anywhere(proxy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(proxy, floats(2, 10))
    proxy.try_dump("relative/dump")
    shutil.move("relative", "elsewhere")
    os.mkdir("below")
    monkeypatch.chdir(tmp_path / "below")
    assert check_report("../elsewhere/dump", "../elsewhere/dump")
    assert check_params("../elsewhere/dump", "../elsewhere/dump")


def test_every_step_in_a_folder_is_checked(proxy, tmp_path):
    other = create_model(type(proxy.model)(), name="other")
    other.model.set_state_dict(proxy.model.state_dict()) if proxy.framework == "paddle" else (
        other.model.load_state_dict(proxy.model.state_dict())
    )
    for step in range(12):
        run(proxy, floats(2, 10))
        proxy.try_dump()
        run(other, floats(2, 10) + (step == 10))
        other.try_dump()
    assert not check_report(proxy.dump_path, other.dump_path)
    assert not check_params(proxy.dump_path, other.dump_path)
    for path in (proxy.dump_path, other.dump_path):
        shutil.rmtree(os.path.join(path, "step_10"))
        shutil.rmtree(os.path.join(path, "step_11"))  # its gradients had step 10's added
    assert check_report(proxy.dump_path, other.dump_path)
    assert check_params(proxy.dump_path, other.dump_path)


def test_steps_that_are_missing_on_one_side_are_an_error(proxy):
    for _ in range(2):
        run(proxy, floats(2, 10))
        proxy.try_dump()
    shutil.copytree(os.path.join(proxy.dump_path, "step_0"), os.path.join(proxy.dump_path, "copy", "step_0"))
    with pytest.raises(InputError, match=r"the steps and ranks differ: 1/0 only in .*, none only in"):
        check_report(proxy.dump_path, os.path.join(proxy.dump_path, "copy"))


def test_nothing_to_compare_is_an_error(proxy, tmp_path):
    with pytest.raises(EmptyComparisonError, match=r"nothing to compare: no report\.json in"):
        check_report(tmp_path, tmp_path)
    proxy.dump_report(tmp_path)
    with pytest.raises(EmptyComparisonError, match="no tensor of"):
        check_report(tmp_path, tmp_path)


def test_a_damaged_dump_is_named(proxy, tmp_path):
    run(proxy, floats(2, 10))
    proxy.dump_report(tmp_path)
    (tmp_path / "tensors" / "tensor_0.npy").write_bytes(b"no numbers")
    with pytest.raises(FileFormatError, match=r"tensor_0\.npy is not a \.npy file"):
        check_report(tmp_path, tmp_path)
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(FileFormatError, match=r"report\.json is not a dump of PaDiff"):
        check_report(tmp_path, tmp_path)


@pytest.mark.parametrize("form", [(2, "dump"), (2,), ()], ids=str)
def test_both_forms_of_try_dump(proxy, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    proxy.dump_freq = 1 if form else 2
    dumped = []
    for step in range(4):
        run(proxy, floats(2, 10))
        proxy.try_dump(*form)
        folder = "dump" if len(form) == 2 else f"{proxy.dump_path}/step_{step}/rank_0"
        dumped.append(os.path.exists(folder))
        if len(form) == 2:
            shutil.rmtree(folder, ignore_errors=True)
        assert proxy.report.items == []
    # the document counts calls, the original's own form steps from 0
    assert dumped == ([False, True, False, True] if form else [True, False, True, False])


def test_try_dump_refuses_what_it_cannot_understand(proxy):
    with pytest.raises(InputError, match="takes a number of steps and a folder"):
        proxy.try_dump(2, 3)
    with pytest.raises(InputError, match="per_step is 0"):
        proxy.try_dump(0)
    proxy.dump_freq = 3
    with pytest.raises(InputError, match="per_step is 10; with dump_freq=3"):
        proxy.try_dump(per_step=10)


def test_ten_steps_as_the_document_writes_them(proxy, tmp_path):
    seen = []
    for _ in range(20):
        run(proxy, floats(2, 10))
        proxy.try_dump("dumps", per_step=10)
        seen.append(os.path.exists("dumps"))
        shutil.rmtree("dumps", ignore_errors=True)
    assert [number for number, there in enumerate(seen, start=1) if there] == [10, 20]


class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(4, 2)
        self.head = torch.nn.Linear(4, 2)


@pytest.mark.parametrize(
    ("left_out", "mode", "kept"),
    [
        ("attention", "sublayers", {"attention", "head"}),
        ("attention.out_proj", "self", {"attention", "head"}),
        ("attention", "all", {"head"}),
        ("", "sublayers", set()),
        ("head", "sublayers", {"attention", "attention.out_proj", "head"}),
    ],
)
def test_parameters_leave_out_what_the_black_list_does(tmp_path, left_out, mode, kept):
    model = Blocks()
    proxy = create_model(model, name="blocks")
    proxy.update_black_list([model.get_submodule(left_out)], mode)
    proxy.dump_params(tmp_path)
    tree = json.loads((tmp_path / "params.json").read_text())["tree"]
    entries = [tree]
    for each in entries:
        entries += each["children"]
    assert {each["route"].partition(".")[2] for each in entries if each["weights"]} == kept


def test_steps_between_dumps_are_not_recorded():
    proxy = create_model(TorchNet(), dump_freq=2)
    counts = []
    for _ in range(4):
        run(proxy, floats(2, 10))
        counts.append(len(proxy.report.items))
        proxy.try_dump()
    assert counts == [8, 0, 8, 0]


def test_two_models_of_one_name_do_not_wipe_each_other():
    first = create_model(TorchNet())
    run(first, floats(2, 10))
    first.try_dump()
    second = create_model(TorchNet())
    run(second, floats(2, 10))
    second.try_dump()
    assert first.dump_path != second.dump_path
    assert not check_report(first.dump_path, second.dump_path)
    assert check_report(first.dump_path, first.dump_path)


def test_the_same_model_starts_afresh_in_the_same_folder():
    model = TorchNet()
    first = create_model(model)
    run(first, floats(2, 10))
    first.try_dump()
    second = create_model(model)
    assert second.dump_path == first.dump_path
    assert os.listdir(second.dump_path) == []


class TorchHalf(TorchNet):
    def forward(self, x):
        return super().forward(x).bfloat16()


class PaddleHalf(PaddleNet):
    def forward(self, x):
        return super().forward(x).astype("bfloat16")


@pytest.mark.parametrize("model", [TorchHalf, PaddleHalf])
def test_bfloat16_is_dumped_and_compared_as_values(model, tmp_path):
    proxy = create_model(model())
    array = floats(2, 10)
    output = proxy(torch.tensor(array) if proxy.framework == "torch" else paddle.to_tensor(array))
    proxy.model.to(dtype=torch.bfloat16 if proxy.framework == "torch" else "bfloat16")
    proxy.dump_report(tmp_path)
    proxy.dump_weights(tmp_path)
    (entry,) = load(tmp_path, "report.json")["tree"][0]["fwd_outputs"]
    assert entry["dtype"] == f"{proxy.framework}.bfloat16"
    values = np.load(entry["path"])
    assert values.dtype == np.float32
    wide = output.float().detach() if proxy.framework == "torch" else output.astype("float32")
    np.testing.assert_array_equal(values, wide.numpy())
    assert check_report(tmp_path, tmp_path)
    assert check_weights(tmp_path, tmp_path)


def test_the_root_of_dumps_can_be_set(tmp_path):
    set_dump_root_path(str(tmp_path / "here"))
    assert get_dump_root_path() == str(tmp_path / "here")
    assert create_model(TorchNet(), name="net").dump_path == f"{tmp_path}/here/net"


def test_the_proxy_offers_the_originals_interface(proxy):
    assert proxy.eval() is not None
    assert not proxy.model.training
    proxy.train()
    assert proxy.model.linear1.training
    assert list(proxy.state_dict()) == ["linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"]
    assert len(list(proxy.parameters())) == 4
    wrapped = list(proxy.parameters(recursively=True))
    assert [param.shape() for param in wrapped] == [list(p.shape) for p in proxy.model.parameters()]
    assert list(proxy.parameters(recursively=False)) == []
    assert [child.class_name for child in proxy.children()] == ["Linear", "Linear", "ReLU"]
    assert [name for name, _ in proxy.named_submodels()] == ["", "linear1", "linear2", "act"]
    assert str(proxy) == f"Model({proxy.framework}::{type(proxy.model).__name__})"
    assert "cpu" in proxy.get_device()
    with pytest.raises(AttributeError, match="nonsense"):
        proxy.nonsense  # noqa: B018


def loaded_weights(folder, name):
    """Route -> array for every weight that a JSON file of a dump points to."""
    found = {}
    waiting = [load(folder, name)["tree"]]
    while waiting:
        entry = waiting.pop()
        waiting += entry["children"]
        for key, path in {**entry["weights"], **entry["buffers"], **entry["grads"]}.items():
            found[entry["route"], key, os.path.basename(os.path.dirname(path)).partition("_")[0]] = np.load(
                path
            )
    return found


@pytest.mark.parametrize("order", [("params", "weights"), ("weights", "params"), ("grads", "params")])
def test_one_kind_of_dump_leaves_the_files_of_another_alone(proxy, tmp_path, order):
    run(proxy, floats(2, 10))
    getattr(proxy, f"dump_{order[0]}")(tmp_path)
    before = loaded_weights(tmp_path, f"{order[0]}.json")
    for parameter in proxy.parameters():  # what an optimizer's step does
        moved = parameter.detach().numpy() + 1
        with torch.no_grad(), paddle.no_grad():
            parameter.copy_(torch.tensor(moved)) if proxy.framework == "torch" else parameter.set_value(moved)
        parameter.grad = parameter.grad * 3
    getattr(proxy, f"dump_{order[1]}")(tmp_path)
    after = loaded_weights(tmp_path, f"{order[0]}.json")
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[key], after[key]) for key in before)
    changed = loaded_weights(tmp_path, f"{order[1]}.json")
    assert not any(np.array_equal(before[key], changed[key]) for key in before.keys() & changed.keys())


def test_the_same_dump_again_replaces_itself(proxy, tmp_path):
    folder = tmp_path / "dump"
    run(proxy, floats(2, 10))
    for _ in range(3):
        proxy.dump_params(folder)
        proxy.dump_grads(folder)
        proxy.dump_weights(folder)
    assert sorted(os.listdir(folder)) == [
        "grads", "grads.json", "grads_1", "params.json", "weights", "weights.json", "weights_1",
    ]  # fmt: skip
    assert check_params(folder, folder)
    assert check_weights(folder, folder)
    assert check_grads(folder, folder)
