"""Data on disk is part of what a step depends on, where ``parfocal.toml`` names it."""

from __future__ import annotations

import os
import shutil

import pytest

from parfocal.workflow.guide import data_files
from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.data_files import data_digest
from parfocal.workflow.guide.settings import read_project
from tests.guide.projects import change, toy


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pictures" / "cats").mkdir(parents=True)
    (tmp_path / "pictures" / "cats" / "1.bin").write_bytes(b"meow")
    (tmp_path / "labels.csv").write_text("1,cat\n")
    return tmp_path


def test_content_names_and_number_of_files_change_it(folder):
    named = ("pictures", "labels.csv")
    seen = [data_digest(folder, named)]
    (folder / "pictures" / "cats" / "1.bin").write_bytes(b"purr")
    seen.append(data_digest(folder, named))
    (folder / "pictures" / "2.bin").write_bytes(b"meow")
    seen.append(data_digest(folder, named))
    (folder / "pictures" / "2.bin").rename(folder / "pictures" / "3.bin")
    seen.append(data_digest(folder, named))
    (folder / "labels.csv").write_text("1,dog\n")
    seen.append(data_digest(folder, named))
    assert len(set(seen)) == len(seen)


def test_a_copy_and_a_touch_of_small_files_do_not(folder, tmp_path):
    before = data_digest(folder, ["pictures"])
    os.utime(folder / "pictures" / "cats" / "1.bin", (1, 1))
    assert data_digest(folder, ["pictures"]) == before
    shutil.copytree(folder / "pictures", tmp_path / "elsewhere" / "pictures")
    assert data_digest(tmp_path / "elsewhere", ["pictures"]) == before


@pytest.mark.parametrize("limit", ["SMALL", "READ_AT_MOST"])
def test_large_files_count_by_size_and_time(folder, monkeypatch, limit):
    monkeypatch.setattr(data_files, limit, 3)
    file = folder / "pictures" / "cats" / "1.bin"
    os.utime(file, (1, 1))
    before = data_digest(folder, ["pictures"])
    file.write_bytes(b"purr")
    os.utime(file, (1, 1))
    assert data_digest(folder, ["pictures"]) == before
    os.utime(file, (2, 2))
    assert data_digest(folder, ["pictures"]) != before


def test_a_link_that_leads_nowhere_is_no_error(folder):
    before = data_digest(folder, ["pictures"])
    (folder / "pictures" / "dangling").symlink_to(folder / "nowhere")
    assert data_digest(folder, ["pictures"]) != before


def test_steps_that_read_data_run_again_when_it_changes_and_others_do_not(tmp_path):
    folder = toy(tmp_path).folder
    (folder / "shift.txt").write_text("1.0")
    for side in ("reference", "port"):
        change(folder / f"{side}_side.py", "+= 1.0", '+= float(open("shift.txt").read())')
    change(folder / "parfocal.toml", "seed = 0 ", 'data = "shift.txt"\nseed = 0 ')
    wanted = ["evaluation_data", "learning_rate"]
    assert check(read_project(folder), wanted).ran == tuple(wanted)
    assert check(read_project(folder), wanted).ran == ()
    (folder / "shift.txt").write_text("2.0")
    assert check(read_project(folder), wanted).ran == ("evaluation_data",)
