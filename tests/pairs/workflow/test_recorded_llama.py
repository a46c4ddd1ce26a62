"""Compare: a Llama of two libraries, trained for two steps: batches, grouped keys, rotary tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import paddle
import pytest
import torch
from paddle.nn import functional as F

from tests.pairs.workflow.llama import batches, paddle_llama, paddle_loss, torch_llama, torch_loss
from tests.pairs.workflow.recordings import Side, compare_sides, digest

EITHER = pytest.mark.parametrize("tensors", ["full", "sketch"])


def sides(folder: Path, **changes: Any) -> tuple[Side, Side]:
    reference = torch_llama()
    port = paddle_llama(reference, folder, **changes)
    return (
        Side(reference, torch_loss, lambda m: torch.optim.AdamW(m.parameters(), lr=1e-3, weight_decay=0.01)),
        Side(
            port,
            paddle_loss,
            lambda m: paddle.optimizer.AdamW(1e-3, parameters=m.parameters(), weight_decay=0.01),
        ),
    )


@EITHER
def test_a_correct_port_is_the_same(tmp_path: Path, tensors: str) -> None:
    report = compare_sides(tmp_path, *sides(tmp_path), batches(), tensors=tensors)
    assert report.ok, str(report)
    assert report.coverage.count("calls") == report.coverage.of("calls") == 60
    assert report.coverage.count("updates of parameters") == 42


ATTENTION = "model.layers.1.self_attn"
MISTAKES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "epsilon": ({"second_epsilon": 1e-3}, "model.layers.1.post_attention_layernorm", "config.epsilon"),
    "scale": ({"scaling": 0.3}, ATTENTION, "config.other"),
    "mask": ({"causal": False}, ATTENTION, None),
    "keys": ({"interleave": True}, ATTENTION, None),
    "activation": ({"act": F.gelu}, "model.layers.1.mlp", None),
}


@EITHER
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_where_it_is(tmp_path: Path, tensors: str, name: str) -> None:
    changes, place, code = MISTAKES[name]
    report = compare_sides(tmp_path, *sides(tmp_path, wrong_layer=1, **changes), batches(), tensors=tensors)
    found = digest(report)
    assert found is not None
    assert found[:4] == ("forward", 0, 0, place), str(report)
    if code is not None:
        assert found[4] == code


@EITHER
def test_tables_that_broadcast_are_never_first_for_their_shape(tmp_path: Path, tensors: str) -> None:
    """The port makes tables of one sample, the library of as many as there are positions."""
    right = compare_sides(tmp_path / "right", *made(tmp_path / "right"), batches(1), tensors=tensors)
    assert right.ok, str(right)
    wrong = compare_sides(
        tmp_path / "wrong", *made(tmp_path / "wrong", theta=9000.0), batches(1), tensors=tensors
    )
    assert wrong.first is not None
    assert (wrong.first.phase, wrong.first.port.path) == ("forward", "model.rotary_emb")
    assert "shapes" not in wrong.first.message


def made(folder: Path, **changes: Any) -> tuple[Side, Side]:
    folder.mkdir()
    reference, port = sides(folder, **changes)

    class EverySample(torch.nn.Module):
        """The library's tables for every sample of the batch."""

        def __init__(self, tables: Any) -> None:
            super().__init__()
            self.inside = (tables,)  # and no module of its own: its calls are this one's code

        def forward(self, x: Any, position_ids: Any) -> Any:
            return self.inside[0](x, position_ids.expand(x.shape[0], -1))

    reference.model.model.rotary_emb = EverySample(reference.model.model.rotary_emb)
    return reference, port


@EITHER
def test_labels_that_are_not_shifted_are_the_loss(tmp_path: Path, tensors: str) -> None:
    def unshifted(logits: Any, ids: Any) -> Any:
        return F.cross_entropy(logits.reshape([-1, logits.shape[-1]]), ids.reshape([-1]))

    reference, port = sides(tmp_path)
    report = compare_sides(tmp_path, reference, replace(port, loss=unshifted), batches(), tensors=tensors)
    assert digest(report) == ("loss", 0, 0, "", None), str(report)
