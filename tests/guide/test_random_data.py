"""Training data that is augmented at random, by each framework's own random numbers."""

from __future__ import annotations

import pytest

from parfocal.cli.check import print_checked
from parfocal.phrases import VARIABLE
from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.state import StepStatus
from tests.cli.command import run_here
from tests.guide.projects import change, toy

READ = "    return [pictures[index] for index in order]\n"
ONE_HOT = "    return [(pictures[at][0], np.eye(4, dtype='float32')[pictures[at][1]]) for at in order]\n"
FLOATS = "    return [(pictures[at][0], np.float32(pictures[at][1])) for at in order]\n"
# Flips, moves and scales: of the reference by torch's generator, of the port by Python's and NumPy's.
AUGMENTED = {
    "reference_side.py": """
class Augmented:
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        picture, kind = self.samples[index]
        picture = np.pad(picture, ((0, 0), (1, 1), (1, 1)))
        row, column = (int(torch.randint(0, 3, (1,))) for _ in range(2))
        picture = picture[:, row : row + 8, column : column + 8]
        if torch.rand(1) < 0.5:
            picture = picture[:, :, ::-1]
        return (picture * torch.empty(1).uniform_(0.8, 1.2).item()).astype("float32"), kind
""",
    "port_side.py": """
import random


class Augmented:
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        picture, kind = self.samples[index]
        picture = np.pad(picture, ((0, 0), (1, 1), (1, 1)))
        row, column = (random.randint(0, 2) for _ in range(2))
        picture = picture[:, row : row + 8, column : column + 8]
        if random.random() < 0.5:
            picture = picture[:, :, ::-1]
        return (picture * np.random.uniform(0.8, 1.2)).astype("float32"), kind
""",
}


def augmented(folder, *, together=True):
    toy(folder, together=together)
    for file, text in AUGMENTED.items():
        change(folder / file, READ, "    return Augmented([pictures[index] for index in order])\n")
        path = folder / file
        path.write_text(path.read_text() + text)
    change(folder / "parfocal.toml", "epochs = 2", "epochs = 1")
    return folder


def data_step(folder):
    found = check(read_project(folder), ["training_data"])
    return next(each for each in found.results if each.name == "training_data")


@pytest.mark.parametrize("together", [True, False])
def test_a_correct_pair_passes_and_its_training_is_not_blocked(tmp_path, together):
    folder = augmented(tmp_path / "toy", together=together)
    change(folder / "parfocal.toml", "within = 0.0015", "within = 1.0")
    found = check(read_project(folder), ["training"])
    by_name = {each.name: each for each in found.results}
    assert by_name["training_data"].status is StepStatus.PASSED, by_name["training_data"].problems
    (finding,) = [each for each in by_name["training_data"].findings if each["code"] == "data.random"]
    assert "given the same random numbers, 32 of 32 samples are the same on both sides" in finding["message"]
    assert by_name["training"].status is StepStatus.PASSED, by_name["training"].problems


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (
            "random.random() < 0.5",
            "random.random() < 1.0",
            "50% of the reference's samples and in 100% of the port",
        ),
        ("np.random.uniform(0.8, 1.2)", "np.random.uniform(0.2, 1.2)", "numbers from 0.2 to 1.2"),
        ("random.randint(0, 2)", "random.randint(0, 1)", "whole numbers from 0 to 1"),
    ],
)
def test_a_mistake_is_found_with_its_fix(tmp_path, right, wrong, words):
    folder = augmented(tmp_path / "toy")
    change(folder / "port_side.py", right, wrong)
    found = data_step(folder)
    assert found.status is StepStatus.FAILED
    (problem,) = {each["message"]: each for each in found.problems}.values()
    assert problem["code"] == "data.random"
    assert words in problem["message"]
    assert problem["fix"]


def test_shared_numbers_make_both_trainings_see_the_same(tmp_path):
    folder = augmented(tmp_path / "toy")
    change(folder / "parfocal.toml", "epochs = 1", 'epochs = 1\ndraws = "shared"')
    found = check(read_project(folder), ["training"])
    by_name = {each.name: each for each in found.results}
    assert by_name["training"].status is StepStatus.PASSED, by_name["training"].problems


@pytest.mark.parametrize(
    ("right", "wrong", "code", "words"),
    [
        ("permutation(len(pictures))", "", "data.subset", "other samples of the same data"),
        (READ, ONE_HOT, "data.label", "give the port's labels as numbers"),
        (READ, FLOATS, "data.dtype", "give the port's as int64"),
    ],
)
def test_other_samples_and_labels_are_shown_by_check(tmp_path, right, wrong, code, words, capsys):
    folder = tmp_path / "toy"
    toy(folder)
    if code == "data.subset":
        change(folder / "reference_side.py", right, f"{right}[:96]")
        wrong = f"{right}[20:116]"
    change(folder / "port_side.py", right, wrong)
    project = read_project(folder)
    found = check(project, ["training_data"])
    print_checked(found)
    text = " ".join(capsys.readouterr().out.split())
    assert words in text
    (step,) = (each for each in found.results if each.name == "training_data")
    assert code in [each["code"] for each in (*step.problems, *step.findings)]


def test_what_is_random_is_said_in_chinese(tmp_path, capsys, monkeypatch):
    folder = augmented(tmp_path / "toy")
    change(folder / "port_side.py", "np.random.uniform(0.8, 1.2)", "np.random.uniform(0.2, 1.2)")
    monkeypatch.setenv(VARIABLE, "zh")
    told = run_here(monkeypatch, capsys, "check", "training_data", "--project", folder).out
    assert "参考模型的 Augmented 抽取 0.8 到 1.2 的数，移植模型的 Augmented 抽取 0.2 到 1.2 的数" in told
    said = [line for line in told.splitlines() if "Augmented" in line]
    assert said
    for english in ("reference", "port:", "drawn", "differ"):
        assert not any(english in line for line in said)
