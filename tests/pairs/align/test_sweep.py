"""The sweep runs, prints its page, and says by its exit status whether all was as it should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle
import pytest
import torch
from benchmarks.sweep import __main__ as sweep
from benchmarks.sweep.measuring import observations
from benchmarks.sweep.page import page_of
from benchmarks.sweep.results import Caught, Hidden, Noise, Outcome, Scored, Sweep, quantiles

from parfocal.judge.floors import NOTHING, Size, score
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.workflow.align import align

FOUND = Caught("vit", "a mistake", ("layers.1",), 9.0, "layers.1")
QUIET = Noise("vit", [Scored("Linear", "forward", 1.25, 3, "layers.0.fc1")], paired=3, calls=3, runs=1)


def swept(noise: Noise = QUIET, fault: Caught = FOUND, hidden: Hidden | None = None) -> Sweep:
    disguised = [] if hidden is None else [hidden]
    return Sweep("native", 1, [Outcome("vit", noise, [fault], hidden=disguised)])


def test_a_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "noise.md"
    given = ["--pairs", "gru_tagger", "--seeds", "1", "--processors", "native", "--processes", "1"]
    assert sweep.main([*given, "--output", str(page)]) == 0
    text = page.read_text()
    assert "| gru_tagger | " in text
    assert "| native | 2 | " in text  # runs
    assert "GRU" in text.partition("| kind |")[2]  # in a row of its own, or among what is equal to the bit
    assert "| 0 of 2 |" in text  # false alarms
    assert "| gru_tagger | a token that is embedded as zero | `embed` |" in text
    assert "written to" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "what"), [("--pairs", "pair"), ("--processors", "processor")])
def test_what_is_unknown_is_refused(option: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        sweep.main([option, "vitt"])
    assert stopped.value.code == 2
    assert f"no such {what}: vitt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "clean"),
    [
        (swept(), True),
        (swept(noise=Noise("vit", alarms=["seed 0, eval: forward of layers.0"])), False),
        (swept(fault=Caught("vit", "a mistake", ("layers.1",), 9.0, "layers.0", ("layers.0",))), False),
        (swept(fault=Caught("vit", "a mistake", ("layers.1",), 9.0, "layers.1", ("layers.2",))), False),
        (swept(fault=Caught("vit", "a mistake", ("layers.1",), 0.0, None)), False),
        (swept(hidden=Hidden("vit", "renamed", 3, 3, ok=False)), False),
    ],
)
def test_only_a_sweep_without_alarms_and_misses_is_clean(found: Sweep, clean: bool) -> None:
    assert found.clean == clean


def test_the_page_shows_both_sides_of_the_limit() -> None:
    text = page_of([swept()], "torch 2, paddle 3")
    assert "Of 1 tensors of correct calls the largest score is **1.25**" in text
    assert "scores **9** (a mistake, vit)" in text
    assert "| Linear | 1 | 1.25 | 1.25 | 1.25 | forward of `layers.0.fc1`, vit, native |" in text


def test_a_missed_mistake_is_the_smallest() -> None:
    missed = Caught("vit", "a mistake", ("layers.1",), 0.0, None)
    text = page_of([swept(), swept(fault=missed)], "torch 2, paddle 3")
    assert "scores **0** (a mistake, vit)" in text
    assert "**nothing**" in text


def test_a_mistake_near_the_noise_is_shown_and_need_not_be_found() -> None:
    missed = Caught("vit", "epsilon", ("layers.1",), 0.0, None)
    found = Sweep("native", 1, [Outcome("vit", QUIET, [FOUND], [missed])])
    assert found.clean
    text = page_of([found], "torch 2, paddle 3")
    assert "scores **9** (a mistake, vit)" in text
    assert "| vit | epsilon | `layers.1` | 0 | **nothing** |" in text.partition("near the noise")[2]


def test_quantiles_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).random(5000)
    found = quantiles([Scored("Linear", "forward", float(each), 0, "") for each in values])
    assert found == pytest.approx((np.median(values), np.percentile(values, 99.9), values.max()))
    assert quantiles([]) == (0.0, 0.0, 0.0)


def test_the_score_is_the_error_over_the_largest_of_all_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against NumPy, with the one random floor left out; the cheapest floor alone would not accuse."""
    torch.manual_seed(0)
    reference, port = torch.nn.Linear(600, 40), paddle.nn.Linear(600, 40)
    given = np.random.default_rng(0).standard_normal((8, 600)).astype("float32")
    monkeypatch.setattr(NoiseFloors, "moved", lambda *_: NOTHING)
    with observations(scored=True) as seen:
        align(reference, port, given, explain=False)
    (found,) = [each for each in seen[-1][1] if each.what == "forward"]
    ours = reference(torch.from_numpy(given)).detach().numpy().astype("float64")
    theirs = port(paddle.to_tensor(given)).numpy().astype("float64")
    weight, bias = (each.detach().numpy().astype("float64") for each in (reference.weight, reference.bias))
    exact = given.astype("float64") @ weight.T + bias

    def size(array: np.ndarray) -> Size:
        return Size(float(np.sqrt((array**2).mean())), float(np.abs(array).max()))

    floor = size(ours) * 2.0**-23 | size(ours - exact) | size(theirs - exact)
    assert found.score == pytest.approx(score(size(theirs - ours), floor), rel=1e-3)
    assert found.kind == "Linear"
