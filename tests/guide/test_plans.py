"""Several plans in one folder, and what a training draws from one epoch to the next."""

from __future__ import annotations

import pytest

from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.jobs import train
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.side import GuideSide
from tests.guide.projects import change, toy


@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_another_plan_of_the_folder_is_what_both_sides_read(tmp_path, together):
    folder = toy(tmp_path / "toy", together=together).folder
    (folder / "mistaken_side.py").write_text(
        "import port_side\n\ndef model():\n    made = port_side.Net()\n"
        "    made.norm._epsilon = 0.1\n    return made\n"
    )
    plan = (folder / "parfocal.toml").read_text()
    assert plan.count('"port_side.py:model"') == 1
    (folder / "mistaken.toml").write_text(plan.replace('"port_side.py:model"', '"mistaken_side.py:model"'))

    mistaken = check(read_project(folder / "mistaken.toml"), ["model"])
    assert mistaken.status == 1
    assert mistaken.results[0].problems[0]["code"] == "config.epsilon"
    assert check(read_project(folder), ["model"]).status == 0


DRAWN = '''

def drawn_data():
    """Labels that nothing but the random numbers decides."""
    pictures = np.ones((16, 1, 8, 8), "float32")
    return [(picture, np.int64(kind)) for picture, kind in zip(pictures, np.random.randint(0, 4, 16))]
'''


@pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
@pytest.mark.parametrize("name", ["reference", "port"])
def test_epochs_draw_other_random_numbers_from_the_same_seed(tmp_path, monkeypatch, name):
    folder = toy(tmp_path / "toy").folder
    change(folder / "parfocal.toml", "epochs = 2", "epochs = 3")
    file = folder / f"{name}_side.py"
    text = file.read_text().replace("0.05", "1e-30")  # a rate that changes nothing
    file.write_text(text + DRAWN)
    change(
        folder / "parfocal.toml",
        f'training_data = "{name}_side.py:training_data"',
        f'training_data = "{name}_side.py:drawn_data"',
    )
    monkeypatch.chdir(folder)  # as a side's process does

    def losses() -> list[float]:
        project = read_project(folder)
        given = {"run": 0, "out": str(tmp_path / "parts.safetensors")}
        side = GuideSide(project, next(each for each in project.sides if each.name == name))
        return [round(each, 5) for each in train(_with_own_weights(side), given)["losses"]]

    first = losses()
    assert len(first) == 3
    assert len(set(first)) == 3
    assert losses() == first


def _with_own_weights(side: GuideSide) -> GuideSide:
    from safetensors.numpy import save_file

    begun = side.of_run(0)
    begun.weights.parent.mkdir(parents=True, exist_ok=True)
    if not begun.weights.is_file():
        save_file(side.state(side.fresh_model()), begun.weights)
    return side
