"""Every command in Chinese leaves no English sentence; names, paths and code stay as they are."""

from __future__ import annotations

import errno
import os
import re

import numpy as np
import pytest

from parfocal.backends.vocabulary import functional_ops, kinds_of_layers, optimizers
from tests.cli.command import run_here, write_pair

# Three words of prose in a row. Code has marks between its words; ``as``, ``is`` and the like are short.
SENTENCE = re.compile(r"(?<![\w./-])[A-Za-z]?[a-z]+(?: [a-z]{2,}){2,}(?![\w./(=-])")
SYSTEM = (os.strerror(errno.ENOENT),)  # in the words of the operating system
TORCH = """
import torch
def build():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
"""
PADDLE = """
import paddle
def build():
    return paddle.nn.Sequential(
        paddle.nn.Linear(4, 4), paddle.nn.BatchNorm1D(4, epsilon=1e-3), paddle.nn.ReLU()
    )
"""


def english_in(text: str) -> list[str]:
    return [found for found in SENTENCE.findall(text) if found not in SYSTEM]


def test_english_is_found():
    assert english_in("已写入 out; the file was there already") == ["the file was there already"]
    assert english_in("paddle = False where torch is False") == ["False where torch is"]
    assert english_in("将 running_mean 改名为 _mean，torch.nn.Linear(4, 4) 即 x W + b") == []


@pytest.fixture
def pair(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PARFOCAL_LANG", "zh")
    write_pair(tmp_path, monkeypatch, TORCH, PADDLE)
    return lambda *arguments: run_here(monkeypatch, capsys, *arguments)


MODELS = ("ref.py:build", "port.py:build")
COMMANDS = {
    "describe": ((0, "describe", *MODELS[:1]), (0, "describe", *MODELS, "--input", "float32[8,4]")),
    "doctor": ((0, "doctor", "--traps"),),
    "map": (
        (0, "map", "torch.nn.BatchNorm2d", "nn.RMSNorm", "Softmin", "torch.nn.MultiheadAttention"),
        (0, "map", "gather", "F.interpolate", "torch.optim.AdamW", "paddle.optimizer.lr.LinearWarmup"),
        (2, "map", "no.such.name"),
    ),
    "align": ((1, "align", *MODELS, "--input", "float32[8,4]", "-v", "--save", "saved"),),
    "report": (
        (1, "align", *MODELS, "--input", "float32[8,4]", "--save", "saved"),
        (1, "report", "saved", "--format", "md"),
        (1, "report", "saved"),
        (2, "report", "nowhere"),
    ),
    "compare": (
        (0, "record", "--model", MODELS[0], "--input", "float32[8,4]", "--out", "a"),
        (0, "record", "--model", MODELS[1], "--input", "float32[8,4]", "--out", "b"),
        (1, "compare", "a", "b", "-v"),
        (2, "compare", "a", "nowhere"),
        (2, "compare", "a", "ref.py"),
        (2, "record", "--model", MODELS[0]),
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_english_sentence_is_left(pair, name):
    for status, *arguments in COMMANDS[name]:
        done = pair(*arguments)
        assert done.status == status, done.err
        assert re.search("[\u4e00-\u9fff]", done.out + done.err) or arguments == ["report", "saved"]
        assert english_in(done.out) == []
        assert english_in(done.err) == []


def test_arrays_and_checkpoints(pair, tmp_path):
    import torch

    np.savez(tmp_path / "a.npz", same=np.ones(3), other=np.ones(3), shape=np.ones(2), lone=np.ones(1))
    np.savez(tmp_path / "b.npz", same=np.ones(3), other=np.full(3, np.nan), shape=np.ones(5))
    torch.save(torch.nn.Sequential(torch.nn.Linear(4, 3)).state_dict(), tmp_path / "small.pt")
    state = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).state_dict()
    torch.save(state, tmp_path / "w.pt")
    convert = ("convert", "w.pt", "--port", MODELS[1], "--to", "w.pdparams")
    for status, *arguments in (
        (1, "diff", "a.npz", "b.npz"),
        (2, "diff", "a.npz", "nowhere.npz"),
        (0, *convert),
        (0, "diff", "w.pt", "w.pdparams"),
        (2, "convert", "small.pt", "--port", MODELS[1], "--to", "small.pdparams"),
    ):
        done = pair(*arguments)
        assert done.status == status, done.err
        assert (english_in(done.out), english_in(done.err)) == ([], [])


def test_help_in_chinese(pair):
    done = pair("diff", "--help")
    assert done.status == 0
    assert "比较两个文件中的具名数组" in done.out
    assert english_in(done.out) == []


def test_every_name_with_words_is_translated():
    for known in (kinds_of_layers(), functional_ops(), optimizers()):
        assert [name for name, text in known.items() if english_in(text.english) and not text.chinese] == []
