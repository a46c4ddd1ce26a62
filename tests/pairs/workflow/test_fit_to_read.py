"""Reports of pairs with many mistakes, and with tables of numbers in them, can be read."""

from __future__ import annotations

import re

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

WIDTH, DEPTH, TOKENS = 16, 20, 8
TABLE = np.sin(np.arange(TOKENS * WIDTH, dtype="float32")).reshape(TOKENS, WIDTH)


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH)
        self.register_buffer("table", torch.from_numpy(TABLE.copy()))

    def forward(self, x):
        hidden = self.up(self.norm(x) + self.table)
        return x + self.down(torch.nn.functional.gelu(hidden))


class PaddleBlock(paddle.nn.Layer):
    """Wrong in a way of its own at every depth: epsilon, scale, a table written down as other numbers."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.norm = paddle.nn.LayerNorm(WIDTH, epsilon=1e-5 * (2 + index))
        self.up = paddle.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = paddle.nn.Linear(2 * WIDTH, WIDTH)
        self.index = index

    def forward(self, x):
        hidden = self.norm(x) + paddle.to_tensor(TABLE * (1 + self.index % 2) + 0.25 * (self.index % 3))
        hidden = paddle.nn.functional.gelu(self.up(hidden))
        return x + self.down(hidden) * (1 + 0.1 * (self.index % 4))


class TorchTable(torch.nn.Module):
    """A table handed to a function as a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return torch.nn.functional.softplus(self.fc(x) * torch.tensor(TABLE))


class PaddleTable(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        cosine = paddle.to_tensor(np.cos(np.arange(TOKENS * WIDTH, dtype="float32")).reshape(TOKENS, WIDTH))
        return paddle.nn.functional.softplus(self.fc(x) * cosine)


def inputs() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, TOKENS, WIDTH)).astype("float32")


def check_readable(report: pf.Report) -> None:
    lines = str(report).splitlines()
    assert len(lines) <= 60
    assert all(len(line) <= 80 for line in lines if not line.startswith("  fix"))
    texts = [each.message for each in report.findings]
    for divergence in report.divergences:
        texts.append(divergence.message)
        if divergence.cause is not None:
            texts += [divergence.cause.message, divergence.cause.fix]
    for text in texts:
        assert "array(" not in text
        assert "Tensor(" not in text
        assert not re.search(r"(-?\d+\.\d+(e-?\d+)?,\s*){5}", text), text  # numbers in a long row


def test_twenty_mistakes_fit_a_screen():
    torch.manual_seed(0)
    reference = torch.nn.Sequential(*(TorchBlock() for _ in range(DEPTH)))
    port = paddle.nn.Sequential(*(PaddleBlock(index) for index in range(DEPTH)))
    report = pf.align(reference, port, inputs())
    assert not report.ok
    assert len([each for each in report.divergences if not each.inherited]) >= DEPTH
    check_readable(report)
    assert len(report.text(verbose=True).splitlines()) > len(str(report).splitlines())


def test_a_table_of_other_numbers_is_told_by_its_shape():
    torch.manual_seed(0)
    report = pf.align(TorchTable(), PaddleTable(), inputs())
    assert not report.ok
    check_readable(report)


def test_what_a_model_raises_is_told_on_one_line():
    class Raising(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(4, 4)

        def forward(self, x):
            raise ValueError(f"bad values {np.zeros((40, 40)).tolist()}")

    with pytest.raises(pf.ParfocalError) as caught:
        pf.align(Raising(), Raising(), np.ones((2, 4), "float32"))
    assert "bad values [[0.0, 0.0" in str(caught.value)
    assert max(map(len, str(caught.value).splitlines())) < 400
