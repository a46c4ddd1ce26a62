"""The sweep runs, prints its page, and says by its exit status whether all was as it should be."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import sweep
from benchmarks.sweep_page import Caught, Noise, Results
from examples.pairs.faults import Fault

FAULT = Fault("a mistake", "vit", "layers.1", lambda port: None)


def test_a_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "noise.md"
    assert sweep.main(["--pairs", "gru_tagger", "--seeds", "1", "--output", str(page)]) == 0
    text = page.read_text()
    assert "| gru_tagger | " in text
    assert "0 of 2 |" in text  # false alarms
    assert "| gru_tagger | a token that is embedded as zero | `embed` |" in text
    assert "written to" in capsys.readouterr().out


def test_an_unknown_pair_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        sweep.main(["--pairs", "vitt"])
    assert stopped.value.code == 2
    assert "no such pair: vitt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("results", "clean"),
    [
        (Results(1, noise=[Noise("vit")], faults=[Caught(FAULT, 9.0, "layers.1", ())]), True),
        (Results(1, noise=[Noise("vit", alarms=["seed 0, eval: forward of layers.0"])]), False),
        (Results(1, faults=[Caught(FAULT, 9.0, "layers.0", ("layers.0",))]), False),
        (Results(1, faults=[Caught(FAULT, 9.0, "layers.1", ("layers.2",))]), False),
        (Results(1, faults=[Caught(FAULT, 0.0, None, ())]), False),
    ],
)
def test_only_a_sweep_without_alarms_and_misses_is_clean(results: Results, clean: bool) -> None:
    assert results.clean == clean
