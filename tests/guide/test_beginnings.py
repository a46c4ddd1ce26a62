"""Two keys for checkpoints: published weights are compared and evaluated, the training begins with others."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from parfocal.errors import InputError
from parfocal.workflow.guide.checking import check, stand
from parfocal.workflow.guide.settings import read_project
from tests.guide.projects import change, toy
from tests.guide.test_settings import line_of

KEYS = '[reference]\nframework = "torch"\n'


def weights_of(folder, number: float):
    """A checkpoint of the bundled reference, every weight its own way off what its code makes."""
    sys.path.insert(0, str(folder))
    try:
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location("reference_of_beginnings", folder / "reference_side.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    torch.manual_seed(0)
    model = module.model()
    scratch = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(number)
    torch.save(model.state_dict(), folder / f"times-{number:g}.pth")
    return scratch


def planned(folder, lines: str, *, together: bool = True):
    project = toy(folder, together=together)
    scratch = weights_of(folder, 0.5)
    weights_of(folder, 2.0)
    change(folder / "parfocal.toml", KEYS, f"{KEYS}{lines}\n")
    return read_project(folder), scratch, project


def heads(folder, run: str) -> tuple[np.ndarray, np.ndarray]:
    """The reference's last layer and the port's, as the reference has it."""
    ours, theirs = (
        load_file(folder / ".parfocal" / "weights" / run / f"{side}.safetensors")["head.weight"]
        for side in ("reference", "port")
    )
    return ours, theirs.T


# What is written, and what the layer is then multiplied by: as published, and as the training begins.
WRITTEN = {
    "published alone": ('published = "times-0.5.pth"', 0.5, 1.0),
    "initial alone": ('initial = "times-2.pth"', 1.0, 2.0),
    "both": ('published = "times-0.5.pth"\ninitial = "times-2.pth"', 0.5, 2.0),
    "one for both": ('weights = "times-0.5.pth"', 0.5, 0.5),
    "neither": ("", 1.0, 1.0),
}


@pytest.mark.parametrize(
    ("name", "together"), [*((name, True) for name in WRITTEN), ("both", False), ("neither", False)]
)
def test_what_is_published_and_what_a_training_begins_with(tmp_path, name, together):
    lines, published, initial = WRITTEN[name]
    project, scratch, _ = planned(tmp_path / "toy", lines, together=together)
    checked = check(project, ["training"])
    assert checked.status == 0, [each.problems or each.message for each in checked.results]
    for run, factor in (("", published), ("training-0", initial)):
        for side in heads(project.folder, run):
            np.testing.assert_array_equal(side, scratch["head.weight"] * np.float32(factor))


def test_another_beginning_runs_the_training_again_and_nothing_before_it(tmp_path):
    project, _, _ = planned(tmp_path / "toy", 'initial = "times-2.pth"')
    check(project, ["training"])
    change(project.folder / "parfocal.toml", "times-2.pth", "times-0.5.pth")
    changed = stand(read_project(project.folder)).changed
    assert list(changed) == ["training"]
    assert changed["training"][0] == "the plan's initial"


def test_another_content_of_the_file_runs_the_training_again(tmp_path):
    project, _, _ = planned(tmp_path / "toy", 'initial = "times-2.pth"')
    check(project, ["training"])
    assert stand(project).changed == {}
    (project.folder / "times-2.pth").write_bytes((project.folder / "times-0.5.pth").read_bytes())
    assert list(stand(project).changed) == ["training"]


def test_other_published_weights_run_everything_that_needs_the_model_again(tmp_path):
    project, _, _ = planned(tmp_path / "toy", 'published = "times-2.pth"')
    check(project, ["metric"])
    change(project.folder / "parfocal.toml", "times-2.pth", "times-0.5.pth")
    changed = stand(read_project(project.folder)).changed
    assert "model" in changed
    assert "evaluation_data" not in changed


@pytest.mark.parametrize("key", ["published", "initial"])
def test_one_key_for_both_and_one_of_the_two_is_one_error(tmp_path, key):
    folder = tmp_path / "toy"
    with pytest.raises(InputError) as caught:
        planned(folder, f'weights = "times-0.5.pth"\n{key} = "times-2.pth"')
    line = line_of(folder, 'weights = "times')
    assert caught.value.message == (
        f"parfocal.toml:{line}: reference.weights is one checkpoint for two needs, and {key} is there as well"
    )
    values = {"published": "times-0.5.pth", "initial": "times-0.5.pth", key: "times-2.pth"}
    for name, value in values.items():
        assert f'{name} = "{value}"' in caught.value.hint


@pytest.mark.parametrize("key", ["weights", "published", "initial"])
def test_a_checkpoint_that_is_not_there_is_told_before_anything_runs(tmp_path, key):
    with pytest.raises(
        InputError, match=rf"parfocal\.toml:\d+: reference\.{key} is 'none\.pth': there is no"
    ):
        planned(tmp_path / "toy", f'{key} = "none.pth"')
