"""The helpers: the logger's set-up, the printed check and the conversions."""

import logging
import re

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.reprod_log import ReprodLogger, utils
from parfocal.errors import InputError


@pytest.fixture
def name(request):
    """A logger of the test's own, emptied afterwards."""
    yield request.node.name
    logger = logging.getLogger(request.node.name)
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


def test_init_logger_writes_to_stdout_and_file(name, tmp_path, capsys):
    logger = utils.init_logger(str(tmp_path / "new" / "run.log"), name=name)
    logger.debug("hello")
    printed = capsys.readouterr().out
    assert re.fullmatch(rf"\[\d{{4}}/\d\d/\d\d \d\d:\d\d:\d\d\] {name} DEBUG: hello\n", printed)
    assert (tmp_path / "new" / "run.log").read_text() == printed
    assert logger is logging.getLogger(name)


def test_init_logger_again_replaces_what_it_had_set_up_and_nothing_else(name, tmp_path, capsys):
    foreign = logging.NullHandler()
    logging.getLogger(name).addHandler(foreign)
    utils.init_logger(tmp_path / "first.log", name=name)
    logger = utils.init_logger(tmp_path / "second.log", name=name, log_level=logging.INFO)
    logger.debug("too low")
    logger.info("hello")
    assert capsys.readouterr().out.count("hello") == 1
    assert (tmp_path / "first.log").read_text() == ""
    assert "hello" in (tmp_path / "second.log").read_text()
    assert foreign in logger.handlers


def test_check_print_diff_takes_plain_dicts_and_returns_the_verdict():
    lines = []
    diff = {
        "a": {"mean": np.float32(0.1), "max": 1.0, "min": 0.0},
        "n": {"b": {"mean": 0, "max": 0, "min": 0}},
    }
    passed = utils.check_print_diff(diff, ["min", "mean"], 0.5, print_func=lines.append, indent="  ")
    assert passed is True
    assert lines == [
        "a: ",
        "  min diff: check passed: True, value: 0.0",
        "  mean diff: check passed: True, value: 0.10000000149011612",
        "n",
        "  b: ",
        "    min diff: check passed: True, value: 0",
        "    mean diff: check passed: True, value: 0",
    ]
    assert utils.check_print_diff(diff, "max", 0.5, print_func=lines.append) is False
    assert utils.check_print_diff({}, print_func=lines.append) is False


@pytest.mark.parametrize(
    ("convert", "framework"), [(utils.np2torch, torch), (utils.np2paddle, paddle)], ids=["torch", "paddle"]
)
def test_integers_stay_integers_and_floats_become_float32(convert, framework):
    given = {
        "ids": np.array([[1, 2**40]]),
        "small": np.array([3], np.int32),
        "mask": np.array([True]),
        "x": np.array([0.5]),
        "half": np.array([0.5], np.float16),
        "pair": (np.ones(2), [np.arange(2)]),
        "flag": True,
    }
    tensors = convert(given)
    assert [tensors[key].dtype for key in ("ids", "small", "mask", "x", "half")] == [
        framework.int64,
        framework.int32,
        framework.bool,
        framework.float32,
        framework.float32,
    ]
    assert tensors["ids"].numpy().tolist() == [[1, 2**40]]
    assert tensors["pair"][1][0].dtype == framework.int64
    assert tensors["flag"] is True
    with pytest.raises(InputError, match="the inputs are a list, not a dict"):
        convert([1])


@pytest.mark.parametrize(
    ("convert", "tensor"),
    [(utils.torch2np, torch.tensor), (utils.paddle2np, paddle.to_tensor)],
    ids=["torch", "paddle"],
)
def test_outputs_become_dicts_of_arrays(convert, tensor):
    assert convert(tensor([1.5]))["output"].tolist() == [1.5]
    assert convert({"a": tensor([1, 2])})["a"].tolist() == [1, 2]
    nested = convert((tensor([1.0]), {"h": (tensor([2.0]), None)}))
    assert nested["output"]["0"].tolist() == [1.0]
    assert nested["output"]["1"]["h"]["0"].tolist() == [2.0]
    assert list(nested["output"]["1"]["h"]) == ["0"]
    with pytest.raises(InputError, match="'output' is a NoneType"):
        convert(None)


@pytest.mark.parametrize(
    ("tensor", "framework"), [(torch.tensor, torch), (paddle.to_tensor, paddle)], ids=["torch", "paddle"]
)
def test_the_logger_takes_tensors(tensor, framework):
    logger = ReprodLogger()
    values = tensor([0.5, -3.0])
    logger.add("float32", values)
    logger.add("int64", tensor([2**40]))
    logger.add(
        "bfloat16",
        tensor([0.5, 1.0078125]).astype(framework.bfloat16)
        if framework is paddle
        else tensor([0.5, 1.0078125]).to(framework.bfloat16),
    )
    values[0] = 9.0
    assert logger.data["float32"].tolist() == [0.5, -3.0]
    assert logger.data["int64"].tolist() == [2**40]
    assert logger.data["bfloat16"].tolist() == [0.5, 1.0078125]
    assert logger.data["bfloat16"].dtype == np.float32


def test_the_logger_takes_tensors_that_want_gradients():
    logger = ReprodLogger()
    logger.add("torch", torch.ones(2, requires_grad=True))
    logger.add("paddle", paddle.create_parameter([2], "float32"))
    assert {key: value.shape for key, value in logger.data.items()} == {"torch": (2,), "paddle": (2,)}
