"""The examples of the three old tools' documents run as they are written, on the drop-ins.

The code blocks are in the ``.txt`` files of this folder. A block leaves open what the document takes for
granted (models, data, a loss): that is given to it here. Two blocks cannot run as they are written,
in no version of Python; ``MENDED`` says what is wrong with them and how they run. The documents also
show commands that install the originals, which is not what is tested here.
"""

import inspect
import json
import os
import re
import runpy
from pathlib import Path

import numpy as np
import paddle
import padiff
import PPAutoDiff
import pytest
import reprod_log
import reprod_log.compare
import torch

from tests.compat.padiff.conftest import folders  # noqa: F401  (dumps go to the test's own folder)
from tests.compat.padiff.models import scale_gradient

HERE = Path(__file__).parent
# block -> what is written, and what must have been meant
MENDED = {
    # A positional argument may not follow a keyword, nor a line be indented otherwise than its block.
    "try_dump": ("\t\tmodel.try_dump(per_step=10, dir_path)", "    model.try_dump(10, dir_path)"),
    # The comma is a full-width one.
    "lists": ("component0，", "component0,"),
}


def blocks(document):
    """Heading -> code or text of a document."""
    text = (HERE / f"{document}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\w+)\n\n```\w+\n(.*?)```$", text, re.DOTALL | re.MULTILINE))


DOCUMENTS = {name: blocks(name) for name in ("padiff", "ppautodiff", "reprod_log")}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a block as a script in the test's own folder, and gives what it has defined."""
    monkeypatch.chdir(tmp_path)

    def run(document, name, /, edit=None, **given):
        code = DOCUMENTS[document][name]
        if document == "padiff" and name in MENDED:
            code = code.replace(*MENDED[name])
        path = tmp_path / f"{name}.py"
        path.write_text(code if edit is None else code.replace(*edit), encoding="utf-8")
        return runpy.run_path(str(path), {"paddle": paddle, "torch": torch, **given})

    return run


def test_every_block_of_the_documents_is_run_here():
    assert list(DOCUMENTS["padiff"]) == [
        *("create_model", "run", "try_dump", "dump", "lists", "layer_map", "original"),
        *("auto_diff", "assign_weight"),
    ]
    assert list(DOCUMENTS["ppautodiff"]) == ["autodiff", "success", "forward", "backward"]
    assert list(DOCUMENTS["reprod_log"]) == [
        "logger",
        "helper",
        "compare_forward",
        "compare_loss_and_backward",
    ]


@pytest.mark.parametrize("name", MENDED)
def test_a_mended_block_cannot_run_as_it_is_written(name):
    written, meant = MENDED[name]
    code = DOCUMENTS["padiff"][name]
    assert code.count(written) == 1
    with pytest.raises(SyntaxError):
        compile(code, name, "exec")
    compile(code.replace(written, meant), name, "exec")


# PaDiff


class SimpleLayer(paddle.nn.Layer):
    """The document's, which its later blocks take as given."""

    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(100, 100)

    def forward(self, x):
        return self.linear(x)


class Training:
    """What the document's loops take as given: one layer, its data, loss and optimizer."""

    def __init__(self, folder, batches=1):
        self.layer = SimpleLayer()
        batch = paddle.rand((4, 100))
        self.given = {
            "create_model": padiff.create_model,
            "SimpleLayer": lambda: self.layer,
            "inputs": batch,
            "dataloader": lambda: [batch] * batches,
            "loss_fn": lambda output: output.mean(),
            "optimizer": paddle.optimizer.SGD(0.1, parameters=self.layer.parameters()),
            "dir_path": str(folder / "dump"),
        }


def test_create_model(run):
    found = run("padiff", "create_model")
    assert found["model"].name == "Simple"
    assert type(found["model"].model).__name__ == "SimpleLayer"
    assert padiff.create_model(found["SimpleLayer"]()).name == "SimpleLayer"  # the name is optional


def test_run(run, tmp_path):
    training = Training(tmp_path)
    before = training.layer.linear.weight.numpy().copy()
    found = run("padiff", "run", **training.given)
    assert [item.type for item in found["model"].report.items] == ["forward", "backward"] * 2
    assert not np.array_equal(training.layer.linear.weight.numpy(), before)


def test_try_dump(run, tmp_path):
    training = Training(tmp_path, batches=12)
    found = run("padiff", "try_dump", **training.given)
    assert sorted(os.listdir(tmp_path / "dump")) == [
        "grads",
        "params.json",
        "report.json",
        "tensors",
        "weights",
    ]
    assert found["model"].step == 12
    assert padiff.check_report(tmp_path / "dump", tmp_path / "dump")
    assert padiff.check_params(tmp_path / "dump", tmp_path / "dump")


def test_dump(run, tmp_path):
    """``weights.json`` has the weights after the optimizer's step, ``params.json`` those before it."""
    training = Training(tmp_path)
    before = training.layer.linear.weight.numpy().copy()
    run("padiff", "dump", **training.given)
    after = training.layer.linear.weight.numpy()
    assert not np.array_equal(before, after)
    for name, expected in (("params", before), ("weights", after)):
        tree = json.loads((tmp_path / "dump" / f"{name}.json").read_text())["tree"]
        (entry,) = tree["children"]
        np.testing.assert_array_equal(np.load(entry["weights"]["weight"]), expected)
    for check in (padiff.check_report, padiff.check_params, padiff.check_grads, padiff.check_weights):
        assert check(str(tmp_path / "dump"), str(tmp_path / "dump"))


def test_lists(run, tmp_path):
    layer = paddle.nn.Sequential(*(paddle.nn.Linear(4, 4) for _ in range(4)))
    components = {f"component{number}": layer[number] for number in range(3)}
    given = {"create_model": padiff.create_model, "SimpleLayer": lambda: layer, **components}
    model = run("padiff", "lists", **given)["model"]
    model(paddle.rand((2, 4)))
    recorded = [node.path for root in model.report.roots for node in root.walk()]
    assert recorded == ["", "2"]  # the white list wins over the black list


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = torch.nn.Linear(100, 100)
        self.linear2 = torch.nn.Linear(100, 10)

    def forward(self, x):
        return self.linear2(self.linear1(x))


class PaddleTwo(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear1 = paddle.nn.Linear(100, 100)
        self.linear2 = paddle.nn.Linear(100, 10)

    def forward(self, x):
        return self.linear2(self.linear1(x))


@pytest.mark.parametrize("classes", [(Two, PaddleTwo), (PaddleTwo, Two), (PaddleTwo, PaddleTwo)])
def test_layer_map(run, classes, capsys):
    given = {"create_model": padiff.create_model, "SimpleLayer0": classes[0], "SimpleLayer1": classes[1]}
    found = run("padiff", "layer_map", **given)
    array = paddle.rand((3, 100)).numpy()
    inputs = [{"x": (torch.tensor if one is Two else paddle.to_tensor)(array)} for one in classes]
    assert padiff.auto_diff(found["model0"], found["model1"], inputs, atol=1e-4) is True
    printed = capsys.readouterr().out
    assert "FAILED" not in printed
    assert "[AutoDiff] Assign weight success !!!\n" in printed
    assert "[AutoDiff] Check layer_map SUCCESS!!!\n" in printed


def test_original(run):
    layer = SimpleLayer()
    layer.XXX = "whatever the original has"
    run("padiff", "original", create_model=padiff.create_model, SimpleLayer=lambda: layer)
    assert padiff.create_model(layer).model is layer


def test_auto_diff(run, capsys):
    run("padiff", "auto_diff")
    printed = capsys.readouterr().out
    assert printed.startswith("[AutoDiff] Your options:\n{\n  atol: `0.0001`\n  auto_init: `True`\n")
    assert "[AutoDiff] Assign weight success !!!\n" in printed
    assert printed.endswith("[AutoDiff] SUCCESS !!!\n\n")


def test_auto_diff_finds_a_mistake_in_the_documents_layer(run, capsys):
    wrong = ("x = self.linear1(x)\n      return x\n\nmodule", "return self.linear1(x) * 1.5\n\nmodule")
    assert DOCUMENTS["padiff"]["auto_diff"].count(wrong[0]) == 1
    run("padiff", "auto_diff", edit=wrong)
    assert capsys.readouterr().out.endswith("[AutoDiff] FAILED !!!\n\n")


def test_assign_weight(run, capsys):
    found = run("padiff", "assign_weight")
    assert capsys.readouterr().out == "[AutoDiff] Assign weight success !!!\n"
    module, layer = found["module"], found["layer"]
    np.testing.assert_array_equal(module.linear1.weight.detach().numpy().T, layer.linear1.weight.numpy())


def test_padiffs_signatures():
    assert documented(padiff.auto_diff, 5) == "base_model, raw_model, inputs, loss_fns=None, optimizers=None"
    assert documented(padiff.assign_weight) == "base_model, raw_model"
    for check in (padiff.check_report, padiff.check_params, padiff.check_weights, padiff.check_grads):
        assert documented(check, 3) == "report_path_0, report_path_1, cfg=None"


# PPAutoDiff


def test_autodiff(run, capsys):
    run("ppautodiff", "autodiff")
    assert without_numbers(capsys.readouterr().out) == without_numbers(DOCUMENTS["ppautodiff"]["success"])


def test_autodiff_of_models_with_other_weights(run, capsys):
    """As the document's call stacks show it: ``auto_weights=False``."""
    torch.manual_seed(0)
    paddle.seed(0)
    run("ppautodiff", "autodiff", edit=("auto_weights=True", "auto_weights=False"))
    printed = capsys.readouterr().out
    assert told(printed) == without_numbers(DOCUMENTS["ppautodiff"]["forward"])
    stacks = printed.partition("Paddle Stacks:")[2]
    for frame in (
        "forward\n                x = self.linear1(x)\n",
        "<module>\n                autodiff(layer, ",
    ):
        assert stacks.count(frame) == 2


def test_autodiff_of_models_with_another_gradient(run, capsys):
    """The document shows what is printed, and not the model; this one has a wrong gradient in ``linear2``."""
    torch.manual_seed(0)
    paddle.seed(0)
    line = "layer = SimpleLayer()\n"
    run(
        *("ppautodiff", "autodiff"),
        edit=(line, line + "scale_gradient(layer.linear2, 9.0)\n"),
        scale_gradient=scale_gradient,
    )
    assert told(capsys.readouterr().out) == without_numbers(DOCUMENTS["ppautodiff"]["backward"])


def told(printed):
    """What comes before the call stacks."""
    return without_numbers(printed.partition("Paddle Stacks:")[0] + "Paddle Stacks:\n")


def without_numbers(text):
    """The measured values as ``#``; of arrays the name alone, as NumPy breaks their lines by their digits."""
    text = re.sub(r"^ ([xy]): array\(.*(\n {2,}.*)*", r" \1: array", text, flags=re.MULTILINE)
    measured = r"(?<=output diff is ).*|(?<= difference: ).*|(?<=elements: )\d+|\([\d.]+%\)"
    return re.sub(measured, "#", text)


def test_ppautodiffs_signature():
    assert documented(PPAutoDiff.autodiff).startswith(
        "layer, module, example_inp, auto_weights=True, options="
    )


# reprod_log


def test_logger_and_helper(run, tmp_path, capsys):
    run("reprod_log", "logger")
    logs = [
        np.load(tmp_path / f"forward_{name}.npy", allow_pickle=True).item() for name in ("paddle", "torch")
    ]
    assert [list(log) for log in logs] == [["logits", "label"]] * 2
    found = run("reprod_log", "helper")
    assert all(isinstance(value, np.ndarray) for value in found["info1"].values())
    verdicts = re.findall(r"diff check (\w+)$", capsys.readouterr().out, re.MULTILINE)
    assert verdicts == ["passed", "passed", "failed", *["passed"] * 5]
    assert "mean diff: check passed: True, value: " in (tmp_path / "diff.txt").read_text()
    assert "max diff: check passed: True, value: " in (tmp_path / "forward_diff.log").read_text()


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.linear(x)


class PaddleClassifier(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(6, 3)

    def forward(self, x):
        return self.linear(x)


@pytest.fixture
def classifiers():
    models = {"torch_model": Classifier(), "paddle_model": PaddleClassifier()}
    assert padiff.assign_weight(*models.values())
    generator = np.random.default_rng(0)
    return {**models, "x": generator.standard_normal((4, 6)), "label": generator.integers(0, 3, 4)}


@pytest.mark.parametrize("name", ["compare_forward", "compare_loss_and_backward"])
def test_comparisons_of_models(run, classifiers, name, capsys):
    run("reprod_log", name, **classifiers)
    printed = capsys.readouterr().out
    assert "passed: False" not in printed
    assert printed.endswith("diff check passed\n")
    if name == "compare_loss_and_backward":
        assert printed.count("diff check passed in iter ") == 10


def test_reprod_logs_signatures():
    logger, helper = reprod_log.ReprodLogger, reprod_log.ReprodDiffHelper
    assert documented(logger.add) == "self, key, val"
    assert documented(logger.remove, 2) == "self, key"
    assert documented(logger.remove) == "self, key, value=None"
    assert documented(logger.clear) == "self"
    assert documented(logger.save) == documented(helper.load_info) == "self, path"
    assert documented(helper.compare_info) == "self, info1, info2"
    assert documented(helper.report, 4) == "self, diff_method='mean', diff_threshold=1e-06, path='./diff.txt'"
    compare = reprod_log.compare
    assert documented(compare.compare_forward) == (
        "torch_model, paddle_model, input_dict, diff_threshold=1e-06, diff_method='mean'"
    )
    assert documented(compare.compare_loss_and_backward) == (
        "torch_model, paddle_model, torch_loss, paddle_loss, input_dict, lr=0.001, steps=10, "
        "diff_threshold=1e-06, diff_method='mean'"
    )


def documented(function, count=None):
    """The first parameters of a function, names and defaults, as the documents write them."""
    parameters = list(inspect.signature(function).parameters.values())[:count]
    return ", ".join(str(one.replace(annotation=one.empty)) for one in parameters)
