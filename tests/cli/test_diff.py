"""``parfocal diff``: files of every kind against every other, the worst first, the status as verdict."""

from __future__ import annotations

import contextlib
import io
import json
from itertools import product

import numpy as np
import pytest

import parfocal as pf
from parfocal.run.files import save_reprod_log
from tests.cli.command import run_apart, run_here

ARRAYS = {
    "conv.weight": np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4),
    "fc.bias": np.arange(5, dtype="float32"),
    "ids": np.arange(6, dtype="int64"),
}


def write_npz(path, arrays):
    np.savez(path, **arrays)


def write_reprod_log(path, arrays):
    save_reprod_log(path, arrays)


def write_safetensors(path, arrays):
    from safetensors.numpy import save_file

    save_file(arrays, path)


WRITERS = {"npz": write_npz, "npy": write_reprod_log, "safetensors": write_safetensors}


@pytest.fixture
def diff(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run_here(monkeypatch, capsys, "diff", *arguments)


def files(folder, first, second, kinds=("npz", "npz")):
    paths = [folder / f"{name}.{kind}" for name, kind in zip("ab", kinds, strict=True)]
    for path, arrays, kind in zip(paths, (first, second), kinds, strict=True):
        WRITERS[kind](path, arrays)
    return paths


@pytest.mark.parametrize("kinds", list(product(WRITERS, WRITERS)), ids="-".join)
def test_every_kind_of_file_against_every_other(diff, tmp_path, kinds):
    assert diff(*files(tmp_path, ARRAYS, ARRAYS, kinds)).status == 0
    changed = {**ARRAYS, "fc.bias": ARRAYS["fc.bias"] + 1}
    done = diff(*files(tmp_path, ARRAYS, changed, kinds), "--json")
    assert done.status == 1
    report = json.loads(done.out)
    assert (report["compared"], report["failed"]) == (3, 1)
    assert report["rows"][0]["name"] == ["fc.bias"]


def test_plain_arrays(diff, tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    np.save(tmp_path / "b.npy", np.ones(3) + 1e-3)
    np.save(tmp_path / "copy.npy", np.ones(3))
    assert diff("a.npy", "copy.npy").status == 0
    done = diff("a.npy", "b.npy")
    assert done.status == 1
    assert "(array)" in done.out


def test_recorded_runs(diff, tmp_path):
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    for name, scale in (("one", 1.0), ("same", 1.0), ("other", 2.0)):
        with pf.record(model, tmp_path / name):
            model(torch.ones(1, 3) * scale)
    assert diff("one", "same").status == 0
    assert diff("one", "other").status == 1


def test_the_worst_comes_first(diff, tmp_path):
    first = {"fine": np.zeros(3), "bad": np.zeros(3), "worse": np.zeros(3), "gone": np.zeros(3)}
    second = {"fine": np.zeros(3), "bad": np.full(3, 0.1), "worse": np.full(3, 0.5), "new": np.zeros(3)}
    done = diff(*files(tmp_path, first, second))
    names = [line.split()[0] for line in done.out.splitlines()[1:6]]
    assert names[2:] == ["worse", "bad", "fine"]
    assert set(names[:2]) == {"gone", "new"}
    assert "missing in the second" in done.out
    assert "missing in the first" in done.out
    assert done.out.splitlines()[-1] == "different: 5 compared, 4 above 1e-06"


def test_the_place_of_the_largest_difference_is_shown(diff, tmp_path):
    changed = ARRAYS["conv.weight"].copy()
    changed[1, 2] = 7.0
    done = diff(*files(tmp_path, {"w": changed}, {"w": ARRAYS["conv.weight"]}))
    assert "at [1, 2]: 7 vs 0.0909091" in done.out


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), 1),
        (("--threshold", "0.01"), 1),
        (("--threshold", "0.03"), 0),
        (("--method", "max", "--threshold", "0.03"), 1),
        (("--method", "min", "--threshold", "0"), 0),
        (("-m", "max", "-m", "mean", "-t", "0.2"), 0),
        (("--method", "all", "--threshold", "0.05"), 1),
        (("--method", "rmse", "--threshold", "0.06"), 0),
        (("--method", "relative", "--threshold", "0.01"), 1),
    ],
)
def test_methods_and_thresholds(diff, tmp_path, options, status):
    a = np.ones(4)
    b = a.copy()
    b[0] += 0.1  # mean 0.025, max 0.1, rmse and relative 0.05
    assert diff(*files(tmp_path, {"x": a}, {"x": b}), *options).status == status


@pytest.mark.parametrize("threshold", ["1e-6", "1e30"])
def test_nan_never_passes_against_a_number(diff, tmp_path, threshold):
    spoilt = ARRAYS["fc.bias"].copy()
    spoilt[2] = np.nan
    paths = files(tmp_path, {"x": spoilt}, {"x": ARRAYS["fc.bias"]})
    done = diff(*paths, "--threshold", threshold)
    assert done.status == 1
    assert "NaN or infinity on one side only at 1 places" in done.out
    assert json.loads(diff(*paths, "--json").out)["rows"][0]["comparison"]["max_abs"] == "inf"


def test_nan_in_the_same_places_is_the_same_and_said(diff, tmp_path):
    spoilt = np.array([np.nan, 1.0])
    done = diff(*files(tmp_path, {"x": spoilt}, {"x": spoilt}))
    assert done.status == 0
    assert "NaN or infinity on both sides at 1 place" in done.out


def test_other_shapes_differ(diff, tmp_path):
    done = diff(*files(tmp_path, {"x": np.ones((2, 3))}, {"x": np.ones((3, 2))}))
    assert done.status == 1
    assert "shape" in done.out


def test_axes_of_length_1_are_told_and_compared_by_value(diff, tmp_path):
    values = np.arange(90.0)
    paths = files(tmp_path, {"x": values, "s": np.array(1.0)}, {"x": values[:, None], "s": np.ones(1)})
    done = diff(*paths, "--log", "diff.log")
    assert done.status == 0
    assert "shapes (90,) and (90, 1) differ by axes of length 1 only" in " ".join(done.out.split())
    assert without_times(tmp_path / "diff.log")[-1] == "diff check passed"
    assert diff(*files(tmp_path, {"x": values}, {"x": values[::-1, None]})).status == 1


def test_folders_of_arrays(diff, tmp_path):
    for side, bias in (("a", 0), ("b", 1e-3)):
        folder = tmp_path / side / "layer1"
        folder.mkdir(parents=True)
        np.save(folder / "weight.npy", ARRAYS["conv.weight"])
        np.save(tmp_path / side / "bias.npy", ARRAYS["fc.bias"] + bias)
        save_reprod_log(tmp_path / side / "log.npy", {"logits": ARRAYS["fc.bias"]})
    done = diff("a", "b", "--json")
    report = json.loads(done.out)
    assert done.status == 1
    assert {tuple(row["name"]): row["ok"] for row in report["rows"]} == {
        ("bias",): False,
        ("layer1/weight",): True,
        ("log", "logits"): True,
    }
    np.save(tmp_path / "b" / "bias.npy", ARRAYS["fc.bias"])
    assert diff("a", "b").status == 0


def test_many_rows_are_cut_and_counted(diff, tmp_path):
    many = {f"t{number:03}": np.zeros(2) for number in range(50)}
    paths = files(tmp_path, many, many)
    done = diff(*paths)
    assert len(done.out.splitlines()) == 43
    assert "... and 10 more rows (--limit 0 shows all)" in done.out
    assert len(diff(*paths, "--limit", "0").out.splitlines()) == 52


def test_names_that_look_like_markup_are_shown_as_they_are(diff, tmp_path):
    done = diff(*files(tmp_path, {"[red]x[/red]": np.ones(2)}, {"[red]x[/red]": np.ones(2)}, ("npy", "npy")))
    assert "[red]x[/red]" in done.out


def test_the_log_is_reprod_log_s_own_text(diff, tmp_path):
    from parfocal.compat.reprod_log import ReprodDiffHelper

    changed = {**ARRAYS, "fc.bias": ARRAYS["fc.bias"] + 1}
    paths = files(tmp_path, ARRAYS, changed, ("npy", "npy"))
    done = diff(*paths, "--log", "diff.log", "--method", "all", "--threshold", "1e-5")
    helper = ReprodDiffHelper()
    helper.compare_info(helper.load_info(str(paths[0])), helper.load_info(str(paths[1])))
    with contextlib.redirect_stdout(io.StringIO()):
        helper.report(diff_method="all", diff_threshold=1e-5, path=str(tmp_path / "expected.log"))
    assert without_times(tmp_path / "diff.log") == without_times(tmp_path / "expected.log")
    assert any("fc.bias" in line for line in without_times(tmp_path / "diff.log"))
    assert done.status == 1
    assert "diff in difference" not in done.out


def without_times(path):
    """The lines behind the time stamps."""
    return [line.partition("INFO: ")[2] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.npz", "gone.npz"), "gone.npz"),
        (("a.npz", "text.npy"), "unknown kind of file"),
        (("a.npz", "b.npz", "--method", "median"), "unknown diff method 'median'"),
        (("a.npz", "b.npz", "--threshold", "-1"), "the threshold is -1.0; it must be a number >= 0"),
        (("a.npz", "b.npz", "--threshold", "nan"), "the threshold is nan"),
        (("empty.npz", "empty2.npz"), "both sides are empty: there is nothing to compare"),
        (("a.npz", "./a.npz"), "a.npz and a.npz are one and the same"),
        (("a.npz", "link.npz"), "a.npz and link.npz are one and the same"),
        (("folder", "a.npz"), "folder"),
    ],
)
def test_bad_input_is_status_2(diff, tmp_path, arguments, message):
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", **ARRAYS)
    for name in ("empty", "empty2"):
        np.savez(tmp_path / f"{name}.npz")
    (tmp_path / "link.npz").symlink_to(tmp_path / "a.npz")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.npy").write_text("not an array")
    done = diff(*arguments)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("parfocal: ")
    assert message in done.err


def test_a_negative_number_of_rows_is_a_wrong_call(diff, tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    np.savez(tmp_path / "b.npz", **ARRAYS)
    done = diff("a.npz", "b.npz", "--limit", "-1")
    assert (done.status, done.out) == (2, "")
    assert "--limit" in done.err


def test_one_empty_side_is_a_difference(diff, tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    np.savez(tmp_path / "empty.npz")
    assert diff("a.npz", "empty.npz").status == 1


def test_in_a_pipe_there_are_no_terminal_codes(tmp_path):
    files(tmp_path, ARRAYS, {**ARRAYS, "ids": ARRAYS["ids"] + 1})
    done = run_apart(tmp_path, "diff", "a.npz", "b.npz")
    assert done.status == 1, done.err
    assert "\x1b" not in done.out
    assert "DIFFERS" in done.out
