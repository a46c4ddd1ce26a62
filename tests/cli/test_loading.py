"""Models by name and inputs by description: what is understood, and what is refused in which words."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from parfocal.cli.loading import load_model, make_inputs, read_inputs
from parfocal.errors import InputError, MissingFrameworkError

MODULE = """
import sys

import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(1))
    def forward(self):
        raise RuntimeError("a model is not to be called")

def build():
    return Model()

ready = Model()
number = 3

def needy(size):
    return Model()

def gives_none():
    build()

def broken():
    raise KeyError("no weights here")

def gives_a_number():
    return 3

def leaves():
    sys.exit("done")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "our_models.py").write_text(MODULE)
    yield tmp_path / "our_models.py"
    sys.modules.pop("our_models", None)


@pytest.mark.parametrize("place", ["our_models.py", "our_models"])
@pytest.mark.parametrize("name", ["build", "Model", "ready"])
def test_functions_classes_and_models_from_files_and_modules(module, place, name):
    assert type(load_model(f"{place}:{name}", "PORT")).__name__ == "Model"


def test_neighbours_of_a_file_can_be_imported(module, monkeypatch):
    (module.parent / "other.py").write_text("from our_models import build\n")
    assert load_model(f"{module.parent}/other.py:build", "PORT")
    sys.modules.pop("other", None)


def test_the_seed_is_that_of_the_weights(module):
    weights = [load_model("our_models:build", "PORT", seed).weight for seed in (1, 1, 2)]
    assert weights[0] == weights[1] != weights[2]


REFUSED = {
    "our_models": "PORT 'our_models' is neither file.py:name nor package.module:name",
    ":build": "PORT ':build' is neither file.py:name nor package.module:name",
    "our_models:": "PORT 'our_models:' is neither file.py:name nor package.module:name",
    "our_models:nothing": "PORT our_models:nothing: our_models has no 'nothing'",
    "gone.py:build": "PORT gone.py:build: there is no file gone.py",
    "no_such_module:build": "PORT no_such_module:build: there is no module named 'no_such_module'",
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.items())
def test_what_is_not_there(module, spec, message):
    with pytest.raises(InputError) as caught:
        load_model(spec, "PORT")
    assert caught.value.message == message


def test_what_a_builder_raises_is_told_with_its_place(module):
    with pytest.raises(InputError) as caught:
        load_model("our_models.py:broken", "REFERENCE")
    first, *rest = caught.value.message.splitlines()
    assert first == "REFERENCE our_models.py:broken: broken() raised KeyError: 'no weights here'"
    assert any("our_models.py" in line and "broken" in line for line in rest)
    assert caught.value.hint == "it must build the model without arguments"


def test_a_builder_that_needs_arguments(module):
    with pytest.raises(
        InputError, match=r"needy\(\) raised TypeError: .*missing 1 required positional argument"
    ):
        load_model("our_models:needy", "PORT")


def test_a_builder_that_forgets_to_return(module):
    with pytest.raises(InputError) as caught:
        load_model("our_models:gives_none", "PORT")
    assert caught.value.message == "PORT our_models:gives_none: gives_none() gives None"


@pytest.mark.parametrize(
    ("name", "message"),
    [("gives_a_number", "gives_a_number() gives an int"), ("number", "number is an int")],
)
def test_what_is_no_model(module, name, message):
    with pytest.raises(InputError) as caught:
        load_model(f"our_models:{name}", "PORT")
    assert caught.value.message == f"PORT our_models:{name}: {message}, not a model"


def test_a_builder_that_exits_gives_no_verdict(module):
    with pytest.raises(InputError, match=r"PORT our_models:leaves: leaves\(\) raised SystemExit: done"):
        load_model("our_models:leaves", "PORT")
    (module.parent / "goes.py").write_text("raise SystemExit(1)\n")
    with pytest.raises(InputError, match=r"importing goes\.py raised SystemExit: 1"):
        load_model("goes.py:build", "PORT")


def test_what_a_module_has_instead_is_said(module):
    with pytest.raises(InputError) as caught:
        load_model("our_models:built", "PORT")
    assert caught.value.hint.startswith("it has Model, build, ready, needy, ")


def test_only_lines_of_the_user_are_shown(module):
    for name in ("broken", "needy"):
        with pytest.raises(InputError) as caught:
            load_model(f"our_models.py:{name}", "PORT")
        assert "loading.py" not in caught.value.message


def test_a_file_that_does_not_import(module):
    (module.parent / "bad.py").write_text("x = 1 / 0\n")
    with pytest.raises(InputError, match=r"importing bad\.py raised ZeroDivisionError: division by zero"):
        load_model("bad.py:build", "PORT")


@pytest.mark.parametrize(("framework", "title"), [("torch", "PyTorch"), ("paddle", "PaddlePaddle")])
def test_a_framework_that_is_not_installed(module, monkeypatch, framework, title):
    (module.parent / "needs.py").write_text(f"import {framework}\n")
    monkeypatch.setitem(sys.modules, framework, None)
    with pytest.raises(MissingFrameworkError) as caught:
        load_model("needs.py:build", "PORT")
    assert caught.value.message == f"PORT needs.py:build needs {title}, which is not installed"
    assert caught.value.hint == f"pip install 'parfocal[{framework}]'"


def test_a_single_unnamed_input():
    (array,) = make_inputs(["float32[4,3]"], 0)
    assert (array.dtype.name, array.shape) == ("float32", (4, 3))
    assert abs(array).max() > 1.0


def test_named_inputs_with_ranges():
    made = make_inputs(["x=float32[100]:-1..0.5", "ids=int64[2, 16]:5..9", "mask=bool[8]", "n=float64[]"], 0)
    assert list(made) == ["x", "ids", "mask", "n"]
    assert made["x"].min() >= -1
    assert made["x"].max() < 0.5
    assert set(np.unique(made["ids"])) == {5, 6, 7, 8}
    assert made["mask"].dtype == bool
    assert made["n"].shape == ()


def test_the_seed_decides():
    first, again, other = (make_inputs(["float32[5]"], seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--input '' is not understood"),
        ("float32", "--input 'float32' is not understood"),
        ("x=float32[2", "--input 'x=float32[2' is not understood"),
        ("float32[-1]", "--input 'float32[-1]' is not understood"),
        ("float32[1 2]", "--input 'float32[1 2]' is not understood"),
        ("float32[2.5]", "--input 'float32[2.5]' is not understood"),
        ("float99[2]", "--input 'float99[2]': there is no dtype 'float99'"),
        ("int7[2]", "--input 'int7[2]': there is no dtype 'int7'"),
        ("object[2]", "--input 'object[2]': there is no dtype 'object'"),
        ("str[2]", "--input 'str[2]': there is no dtype 'str'"),
        ("int64[2]:9..3", "--input 'int64[2]:9..3': the range '9..3' is empty"),
        ("int64[2]:abc", "--input 'int64[2]:abc': the range 'abc' is not low..high"),
        ("float32[2]:1.2.3..4", "--input 'float32[2]:1.2.3..4': the range '1.2.3..4' is not low..high"),
        ("float32[2]:0..inf", "--input 'float32[2]:0..inf': the range '0..inf' is empty"),
    ],
)
def test_descriptions_that_are_refused(text, message):
    with pytest.raises(InputError) as caught:
        make_inputs([text], 0)
    assert caught.value.message == message


@pytest.mark.parametrize("text", ["float32[99999999,99999999]", "int8[2]:0..1000000000000000000000"])
def test_arrays_that_cannot_be_made(text):
    with pytest.raises(InputError, match="cannot be made"):
        make_inputs([text], 0)


def test_names_for_all_or_for_none():
    for texts in (["x=float32[2]", "float32[2]"], ["x=float32[2]", "x=float32[3]"]):
        with pytest.raises(InputError, match="name all inputs once each, or none"):
            make_inputs(texts, 0)


def test_inputs_from_files(tmp_path):
    x, y = np.arange(3.0), np.arange(4)
    np.save(tmp_path / "one.npy", x)
    np.savez(tmp_path / "positions.npz", x, y)
    np.savez(tmp_path / "names.npz", x=x, ids=y)
    (single,) = read_inputs(tmp_path / "one.npy")
    assert np.array_equal(single, x)
    first, second = read_inputs(tmp_path / "positions.npz")
    assert np.array_equal(first, x)
    assert np.array_equal(second, y)
    assert set(read_inputs(tmp_path / "names.npz")) == {"x", "ids"}
