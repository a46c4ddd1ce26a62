"""Statements of the older documents that no other test holds; ``statements.toml`` names all of them."""

import inspect
import re

import numpy as np
import paddle
import padiff
import PPAutoDiff
import pytest
import reprod_log
import torch

import parfocal as pf
from parfocal.backends.counterparts.lookup import find
from parfocal.cli.loading import make_inputs
from parfocal.compat.padiff.comparing import CHECK_DEFAULT, CompareConfig
from parfocal.workflow.acceptance.logs import read_log
from tests.compat.padiff.conftest import folders  # noqa: F401  (dumps go to the test's own folder)
from tests.compat.padiff.models import PaddleNet, TorchNet, floats, inputs


def test_the_classes_of_reprod_log_take_nothing_and_their_methods_return_nothing(tmp_path):
    for kind in (reprod_log.ReprodLogger, reprod_log.ReprodDiffHelper):
        assert not inspect.signature(kind).parameters
    logger = reprod_log.ReprodLogger()
    assert logger.add("x", np.ones(2)) is None
    assert logger.save(tmp_path / "x.npy") is None
    assert logger.remove("x") is None
    assert logger.clear() is None


DEMO = {  # write_log.py: one matrix that is the same on both sides, and one that is not
    name: {"demo_test_1": matrix, "demo_test_2": np.random.default_rng(seed).random((1000, 1000))}
    for matrix in [np.random.default_rng(0).random((10, 10))]
    for seed, name in enumerate(("torch", "paddle"), start=1)
}


def test_the_guides_demo_prints_the_guides_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARFOCAL_REPROD_LOG_LINES", "guide")
    for name, values in DEMO.items():
        logger = reprod_log.ReprodLogger()
        for key, value in values.items():
            logger.add(key, value)
        logger.save(f"demo_{name}.npy")
    helper = reprod_log.ReprodDiffHelper()
    helper.compare_info(*(helper.load_info(f"demo_{name}.npy") for name in DEMO))
    assert helper.report() is False
    lines = capsys.readouterr().out.splitlines()
    head = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - reprod_log\.utils - INFO - ")
    first, passed, second, failed, last = (head.sub("", line, count=1).split() for line in lines)
    assert all(head.match(line) for line in lines)
    assert (first, second) == (["demo_test_1:"], ["demo_test_2:"])
    assert passed == ["mean", "diff:", "check", "passed:", "True,", "value:", "0.0"]
    assert failed[:-1] == ["mean", "diff:", "check", "passed:", "False,", "value:"]
    # the mean distance of two numbers between 0 and 1 is a third, and of a million pairs almost so
    assert float(failed[-1]) == pytest.approx(1 / 3, abs=2e-3)
    assert last == ["diff", "check", "failed"]


# PaDiff and PPAutoDiff


def test_a_report_grows_until_it_is_cleared():
    model = padiff.create_model(PaddleNet())
    counts = []
    for _ in range(3):
        model.backward(model(paddle.to_tensor(floats(2, 10))).mean())
        counts.append(len(model.report.items))
    assert counts == [counts[0], 2 * counts[0], 3 * counts[0]]
    assert counts[0] > 0
    model.clear_report()
    assert model.report.items == []


def test_the_defaults_of_padiff_are_the_documents(tmp_path, capsys):
    assert CompareConfig(atol=1e-4, rtol=1e-7, compare_mode="mean") == CHECK_DEFAULT
    model = padiff.create_model(PaddleNet())
    model(paddle.to_tensor(floats(2, 10)))
    model.dump_report(tmp_path)
    assert padiff.check_report(tmp_path, tmp_path)
    assert "check cfg {'atol': 0.0001, 'rtol': 1e-07, 'compare_mode': 'mean'}" in capsys.readouterr().out
    torch.manual_seed(0)
    padiff.auto_diff(TorchNet(), TorchNet(), [{"x": torch.tensor(floats(3, 10))}] * 2)
    printed = capsys.readouterr().out
    assert "check cfg {'atol': 0.0, 'rtol': 1e-07, 'compare_mode': 'mean'}" in printed
    for line in ("auto_init: `True`", "single_step: `False`"):
        assert f"  {line}\n" in printed


@pytest.mark.parametrize("auto_init", [None, True, False])
def test_auto_diff_copies_the_weights_of_the_base(auto_init):
    base, raw = TorchNet(), PaddleNet()
    before = [base.linear1.weight.detach().numpy().copy(), raw.linear1.weight.numpy().copy()]
    options = {} if auto_init is None else {"auto_init": auto_init}
    padiff.auto_diff(base, raw, inputs(floats(3, 10)), atol=1e-4, **options)
    np.testing.assert_array_equal(base.linear1.weight.detach().numpy(), before[0])
    expected = before[1] if auto_init is False else before[0].T
    np.testing.assert_array_equal(raw.linear1.weight.numpy(), expected)


def test_autodiff_copies_the_weights_of_the_module(capsys):
    layer, module = PaddleNet(), TorchNet()
    before = module.linear1.weight.detach().numpy().copy()
    assert PPAutoDiff.autodiff(layer, module, floats(3, 10), options={"atol": 1e-4})
    np.testing.assert_array_equal(module.linear1.weight.detach().numpy(), before)
    np.testing.assert_array_equal(layer.linear1.weight.numpy(), before.T)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_autodiff_takes_functions_in_place_of_layers(activation, capsys):
    """The port's activation is a function, the reference's a layer."""

    class Layer(PaddleNet):
        def forward(self, x):
            return self.linear2(getattr(paddle.nn.functional, activation)(self.linear1(x)))

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = torch.nn.Linear(10, 10), torch.nn.Linear(10, 4)
            self.act = torch.nn.ReLU()

        def forward(self, x):
            return self.linear2(self.act(self.linear1(x)))

    same = PPAutoDiff.autodiff(Layer(), Module(), floats(3, 10), options={"atol": 1e-4})
    assert same is (activation == "relu")


# The guide


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_inputs_of_the_guide_can_be_described(dtype):
    made = make_inputs([f"image={dtype}[2,3,224,244]", "label=int64[2]:0..1000"], 0)
    assert (made["image"].shape, made["image"].dtype) == ((2, 3, 224, 244), dtype)
    assert (made["label"].shape, made["label"].dtype) == ((2,), "int64")
    assert 0 <= made["label"].min() <= made["label"].max() < 1000


TRANSFER = """
import numpy as np
import torch
import paddle

def transfer():
    input_fp = "alexnet-owt-7be5be79.pth"
    output_fp = "alexnet_paddle.pdparams"
    torch_dict = torch.load(input_fp)
    paddle_dict = {}
    fc_names = [
        "classifier.1.weight", "classifier.4.weight", "classifier.6.weight"
    ]
    for key in torch_dict:
        weight = torch_dict[key].cpu().detach().numpy()
        flag = [i in key for i in fc_names]
        if any(flag):
            print("weight {} need to be trans".format(key))
            weight = weight.transpose()
        paddle_dict[key] = weight
    paddle.save(paddle_dict, output_fp)

transfer()
"""


def alexnet(nn, convolution):
    """As AlexNet is divided and named, in small."""
    features = nn.Sequential(convolution(3, 4, 3), nn.ReLU())
    dropped = (nn.Dropout(), nn.Linear(16, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 8), nn.ReLU())
    return {"features": features, "classifier": nn.Sequential(*dropped, nn.Linear(8, 5))}


# What some versions warn of; the script is the guide's.
@pytest.mark.filterwarnings("ignore:You are using `torch.load` with:FutureWarning")
def test_the_guides_conversion_gives_what_ours_does(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    reference = torch.nn.ModuleDict(alexnet(torch.nn, torch.nn.Conv2d))
    torch.save(reference.state_dict(), "alexnet-owt-7be5be79.pth")
    exec(compile(TRANSFER, "torch2paddle.py", "exec"), {})
    assert capsys.readouterr().out.count("need to be trans") == 3
    port = paddle.nn.LayerDict(alexnet(paddle.nn, paddle.nn.Conv2D))
    pf.convert("alexnet-owt-7be5be79.pth", port, "ours.pdparams")
    theirs, ours = (paddle.load(file) for file in ("alexnet_paddle.pdparams", "ours.pdparams"))
    assert set(ours) == set(theirs) == set(port.state_dict())
    for name, value in ours.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(theirs[name]))


def test_the_map_shows_which_arguments_of_a_loader_one_side_lacks():
    (found,) = find("torch.utils.data.DataLoader")
    lone = {
        (row.torch or row.paddle).name: row.torch is not None
        for row in found.arguments
        if not (row.torch and row.paddle)
    }
    assert lone["pin_memory"] is True
    assert lone["use_shared_memory"] is False
    assert "batch_size" not in lone


def counted(kind):
    """Of binary predictions, in a loop."""

    def metric(scores, labels):
        pairs = [(bool(score > 0.5), bool(label)) for score, label in zip(scores, labels, strict=True)]
        hits = sum(guessed and right for guessed, right in pairs)
        return hits / sum(pair[0 if kind == "Precision" else 1] for pair in pairs)

    return metric


def of_paddle(kind):
    def metric(scores, labels):
        counter = getattr(paddle.metric, kind)()
        counter.update(np.asarray(scores), np.asarray(labels))
        return counter.accumulate()

    return metric


@pytest.mark.parametrize(("kind", "other"), [("Precision", "Recall"), ("Recall", "Precision")])
def test_metrics_of_paddle_are_compared_by_their_numbers(kind, other):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 200)
    scores = (0.6 * labels + 0.6 * generator.random(200)).astype("float32")
    assert pf.compare_metric(counted(kind), of_paddle(kind), scores, labels).ok
    assert not pf.compare_metric(counted(kind), of_paddle(other), scores, labels).ok


@pytest.mark.parametrize("gamma", [0.5, 0.4])
def test_learning_rates_can_be_logged_and_compared(gamma):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], 0.1)
    reference = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    port = paddle.optimizer.lr.StepDecay(0.1, 3, gamma)
    rates = {"torch": [], "paddle": []}
    for _ in range(10):
        rates["torch"].append(reference.get_last_lr()[0])
        rates["paddle"].append(port())
        optimizer.step()
        reference.step()
        port.step()
    logs = []
    for values in rates.values():
        logger = reprod_log.ReprodLogger()
        logger.add("lr", values)
        logs.append(logger.data)
    helper = reprod_log.ReprodDiffHelper()
    helper.compare_info(*logs)
    assert helper.report(path=None) is (gamma == 0.5)


LOOP = """
loss_list = []
for idx in range(max_iter):
    image = paddle.to_tensor(fake_data)
    target = paddle.to_tensor(fake_label)

    output = model(image)
    loss = criterion(output, target)
    loss.backward()
    for name, tensor in model.named_parameters():
        grad = tensor.grad
        print(name, tensor.grad.shape)
        break
    optimizer.step()
    optimizer.clear_grad()
    loss_list.append(loss)
"""


def test_the_guides_loop_is_recorded_as_it_is(tmp_path, capsys):
    model = PaddleNet()
    optimizer = paddle.optimizer.Momentum(0.1, parameters=model.parameters())
    given = {
        "paddle": paddle,
        "model": model,
        "optimizer": optimizer,
        "criterion": paddle.nn.CrossEntropyLoss(),
        "fake_data": floats(6, 10),
        "fake_label": np.arange(6) % 4,
        "max_iter": 3,
    }
    with pf.record(model, tmp_path / "run", optimizer=optimizer) as recorder:
        exec(compile(LOOP, "train.py", "exec"), given)
    printed = capsys.readouterr().out
    assert printed.count("linear1.weight ") == printed.count("[10, 10]") == 3
    losses = [float(loss) for loss in given["loss_list"]]
    assert [step.loss for step in recorder.run.steps()] == losses
    assert losses[2] < losses[0]
    gradients = [(item.step, item.path) for item in recorder.run.state() if item.role == "gradient"]
    assert {(step, "linear1.weight") for step in range(3)} <= set(gradients)


INITIALIZERS = {
    "KaimingNormal": "kaiming_normal_",
    "KaimingUniform": "kaiming_uniform_",
    "XavierNormal": "xavier_normal_",
    "XavierUniform": "xavier_uniform_",
}


@pytest.mark.parametrize(("ours", "theirs"), INITIALIZERS.items())
def test_the_guides_initializers_correspond_and_begin_alike(ours, theirs):
    assert [each.counterpart.paddle for each in find(f"torch.nn.init.{theirs}")] == [
        f"paddle.nn.initializer.{ours}"
    ]

    def reference():
        layer = torch.nn.Linear(64, 32, bias=False)
        getattr(torch.nn.init, theirs)(layer.weight)
        return layer

    def port(name=ours):
        initializer = getattr(paddle.nn.initializer, name)()
        return paddle.nn.Linear(64, 32, weight_attr=initializer, bias_attr=False)

    assert pf.compare_init(reference, port, seeds=4).ok
    other = next(name for name in INITIALIZERS if name != ours)
    assert not pf.compare_init(reference, lambda: port(other), seeds=4).ok


class Numbers(paddle.io.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return np.full(3, index, "float32"), np.int64(index)


def test_the_sampler_for_several_cards_reads_all_on_one():
    sampler = paddle.io.DistributedBatchSampler(
        dataset=Numbers(), batch_size=4, shuffle=True, drop_last=False
    )
    loader = paddle.io.DataLoader(Numbers(), batch_sampler=sampler)
    labels = [label.numpy().tolist() for _, label in loader]
    assert [len(each) for each in labels] == [4, 4, 2]
    assert sorted(n for each in labels for n in each) == list(range(10))
    sampler.set_epoch(0)  # every epoch has an order of its own
    reference = [(torch.full((3,), float(n)), n) for each in labels for n in each]
    assert pf.compare_data(torch.utils.data.DataLoader(reference, batch_size=4), loader).ok


# The alignment document


ALIGNED = {
    "step1": {"logits": 1.973553542811146e-09},
    "step2": {"top1_acc": 0.0, "mean_class_accuracy": 0.0},
    "step3": {"loss": 0.0},
    "step4": {f"loss_{number}": 0.0 for number in range(5)},
}


@pytest.mark.parametrize("step", ALIGNED)
def test_the_logs_of_the_alignment_document_are_read(tmp_path, step):
    head, log = "[2021/12/20 15:19:14] root INFO: ", tmp_path / "check.log"
    lines = []
    for key, value in ALIGNED[step].items():
        lines += [f"{key}: ", f"       mean diff: check passed: True, value: {value}"]
    log.write_text("".join(f"{head}{line}\n" for line in [*lines, "diff check passed"]))
    told = read_log(log)
    assert told.passed is True
    assert told.means == ALIGNED[step]
