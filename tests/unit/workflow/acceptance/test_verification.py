"""An acceptance folder is judged file by file: what is wrong is told by name, what is right is left alone."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest

from parfocal.errors import EmptyComparisonError, FileFormatError, InputError
from parfocal.workflow.acceptance.problems import digest
from parfocal.workflow.acceptance.verification import verify
from tests.unit.workflow.acceptance.folders import (
    LOGITS,
    LOSSES,
    PORT,
    REFERENCE,
    write_checkpoint,
    write_folder,
    write_values,
)


def names_of(found):
    return {(problem.checkpoint, problem.name) for problem in found.all_problems}


@pytest.mark.parametrize("steps_spelling", [False, True])
def test_a_folder_made_by_hand_is_accepted_in_both_spellings(tmp_path, steps_spelling):
    found = verify(write_folder(tmp_path / "log_reprod", steps_spelling=steps_spelling))
    assert found.all_problems == ()
    assert found.ok
    assert [one.compared for one in found.checkpoints] == [1, 2, 1, 5, 1]


def test_files_in_folders_of_their_own_are_found(tmp_path):
    write_folder(tmp_path / "log_reprod")
    for step, name in enumerate(REFERENCE):
        (tmp_path / f"step{step}").mkdir()
        for path in (tmp_path / "log_reprod").glob(f"{name}_*"):
            shutil.move(path, tmp_path / f"step{step}" / path.name)
    assert verify(tmp_path).ok


def test_the_files_of_an_old_tool_are_read(tmp_path):
    """Pickled dictionaries, as ``numpy.save`` writes them; lines of its first logger."""
    folder = write_folder(tmp_path / "log_reprod")
    for side in ("torch", "paddle"):
        np.save(folder / f"loss_{side}.npy", {"loss": np.array([2.5], "float32")}, allow_pickle=True)
    head = "2021-09-28 01:07:44,832 - reprod_log.utils - INFO - "
    lines = ("loss:", "    mean diff: check passed: True, value: 0.0", "diff check passed")
    (folder / "loss_diff.log").write_text("\n".join(head + line for line in lines))
    assert verify(folder).ok


def broken_without_a_file(folder):
    (folder / "metric_torch.npy").unlink()


def broken_without_a_log(folder):
    (folder / "loss_diff.log").unlink()


def broken_by_a_key(folder):
    write_values(folder / "metric_paddle.npy", {"top1_acc": np.float32(0.625)})


def broken_by_one_loss(folder):
    write_checkpoint(folder, "bp_align", {"loss_0": np.float32(2.3)}, {"loss_0": np.float32(2.3)})


def broken_by_a_loss_that_stands_still(folder):
    losses = {f"loss_{step}": np.float32(2.3) for step in range(4)}
    write_checkpoint(folder, "bp_align", losses, losses)


def broken_by_zeros(folder):
    write_checkpoint(folder, "metric", {"top1": np.float32(0)}, {"top1": np.float32(0)})


def broken_by_a_constant(folder):
    logits = np.full((4, 10), 0.1, "float32")
    write_checkpoint(folder, "forward", {"logits": logits}, {"logits": logits})


def broken_by_nan(folder):
    logits = LOGITS.copy()
    logits[1, 2] = np.nan
    write_checkpoint(folder, "forward", {"logits": LOGITS}, {"logits": logits})


def broken_by_broadcasting(folder):
    write_checkpoint(folder, "forward", {"logits": LOGITS}, {"logits": LOGITS[:1]})


def broken_by_percent(folder):
    write_checkpoint(folder, "train_align", {"top1": np.float32(0.633)}, {"top1": np.float32(63.28)})


def broken_by_a_constant_rate(folder):
    steps = {f"lr_{step}": np.float64(0.1) for step in range(5)}
    losses = {f"loss_{step}": np.float32(loss) for step, loss in enumerate(LOSSES)}
    write_checkpoint(folder, "bp_align", {**losses, **steps}, {**losses, **steps})


def broken_by_a_copy(folder):
    shutil.copy(folder / "forward_torch.npy", folder / "forward_paddle.npy")
    write_checkpoint(folder, "forward", {"logits": LOGITS}, {"logits": LOGITS})


def broken_by_a_file_of_another_checkpoint(folder):
    write_checkpoint(folder, "loss", REFERENCE["metric"], PORT["metric"])


def broken_by_a_difference(folder):
    write_checkpoint(folder, "forward", {"logits": LOGITS}, {"logits": LOGITS + np.float32(1e-4)})


def broken_by_a_worse_model(folder):
    write_checkpoint(folder, "train_align", {"top1": np.float32(63.3)}, {"top1": np.float32(63.0)})


def broken_by_the_log_of_other_files(folder):
    before = (folder / "forward_diff.log").read_text()
    write_checkpoint(folder, "forward", {"logits": LOGITS}, {"logits": LOGITS + np.float32(3e-7)})
    (folder / "forward_diff.log").write_text(before)


def broken_by_a_log_that_breaks_off(folder):
    path = folder / "loss_diff.log"
    path.write_text(path.read_text().rsplit("\n", 2)[0])


def broken_by_half_a_file(folder):
    path = folder / "loss_paddle.npy"
    path.write_bytes(path.read_bytes()[:60])


def broken_by_an_empty_log(folder):
    np.save(folder / "loss_paddle.npy", {}, allow_pickle=True)


def broken_by_a_second_file(folder):
    (folder / "old").mkdir()
    shutil.copy(folder / "loss_paddle.npy", folder / "old" / "loss_paddle.npy")


BROKEN = {
    broken_without_a_file: {("metric", "missing")},
    broken_without_a_log: {("loss", "missing")},
    broken_by_a_key: {("metric", "one-sided")},
    broken_by_one_loss: {("bp_align", "few-losses")},
    broken_by_a_loss_that_stands_still: {("bp_align", "loss-stands-still")},
    broken_by_zeros: {("metric", "zeros")},
    broken_by_a_constant: {("forward", "constant")},
    broken_by_nan: {("forward", "not-finite"), ("forward", "log-failed")},
    broken_by_broadcasting: {("forward", "shape"), ("forward", "log-failed")},
    broken_by_percent: {("train_align", "units"), ("train_align", "log-failed")},
    broken_by_a_constant_rate: {("bp_align", "rate-stands-still")},
    broken_by_a_copy: {("forward", "copy")},
    broken_by_a_file_of_another_checkpoint: {("loss", "copy")},
    broken_by_a_difference: {("forward", "different"), ("forward", "log-failed")},
    broken_by_a_worse_model: {("train_align", "different"), ("train_align", "log-failed")},
    broken_by_the_log_of_other_files: {("forward", "log-of-other-files")},
    broken_by_a_log_that_breaks_off: {("loss", "log-unfinished")},
    broken_by_half_a_file: {("loss", "unreadable")},
    broken_by_an_empty_log: {("loss", "empty")},
    broken_by_a_second_file: {("loss", "twice")},
}


@pytest.mark.parametrize("breaking", BROKEN, ids=lambda breaking: breaking.__name__)
def test_what_is_broken_is_told_by_name_and_nothing_else(tmp_path, breaking):
    folder = write_folder(tmp_path / "log_reprod")
    breaking(folder)
    found = verify(folder)
    assert not found.ok
    assert names_of(found) == BROKEN[breaking]
    red = {checkpoint for checkpoint, _ in BROKEN[breaking]}
    assert {one.name for one in found.checkpoints if not one.ok} <= red


CORRECT = {
    "a better metric than needed by little": ("train_align", {"top1": 63.3}, {"top1": 63.4}),
    "a scalar of an old version": (
        "loss",
        {"loss": np.full((), 2.5, "float32")},
        {"loss": np.full(1, 2.5, "float32")},
    ),
    "large values within their rounding": (
        "forward",
        {"logits": LOGITS * np.float32(1e4)},
        {"logits": np.nextafter(LOGITS * np.float32(1e4), np.float32(9e9), dtype="float32")},
    ),
    "equal integers": ("metric", {"correct": np.int64(120)}, {"correct": np.int64(120)}),
    "a rate that decays": (
        "bp_align",
        {"loss": np.array(LOSSES, "float32"), "lr": np.array([0.1, 0.1, 0.01])},
        {"loss": np.array(LOSSES, "float32"), "lr": np.array([0.1, 0.1, 0.01])},
    ),
    "a forward pass so small that it agrees to the last bit": (
        "forward",
        {"logits": LOGITS[:2]},
        {"logits": LOGITS[:2]},
    ),
    "whole numbers": ("forward", {"mask": np.float32(LOGITS > 0)}, {"mask": np.float32(LOGITS > 0)}),
    "a metric that training leaves as it was": ("train_align", REFERENCE["metric"], PORT["metric"]),
    "a metric above one that is no percentage": ("metric", {"psnr": 28.4}, {"psnr": 28.4}),
}


@pytest.mark.parametrize("what", CORRECT)
def test_what_is_right_is_left_alone(tmp_path, what):
    folder = write_folder(tmp_path / "log_reprod")
    name, reference, port = CORRECT[what]
    write_checkpoint(folder, name, reference, port)
    problems = names_of(verify(folder))
    # the fixed threshold of the old tool does not know of rounding: its own log says so
    assert problems <= {(name, "log-failed")} if "rounding" in what else not problems


def test_what_was_not_handed_in_is_red_unless_only_a_part_is_judged(tmp_path):
    folder = write_folder(tmp_path / "log_reprod")
    for path in folder.glob("train_align*"):
        path.unlink()
    found = verify(folder)
    assert names_of(found) == {("train_align", "missing")}
    assert len(found.all_problems) == 3
    part = verify(folder, partial=True)
    assert part.ok
    assert [one.submitted for one in part.checkpoints] == [True, True, True, True, False]


def test_part_of_a_checkpoint_is_red_in_any_case(tmp_path):
    folder = write_folder(tmp_path / "log_reprod")
    (folder / "loss_torch.npy").unlink()
    assert names_of(verify(folder, partial=True)) == {("loss", "missing")}


def write_manifest(folder, **changed):
    files = {path.name: digest(path) for path in folder.iterdir() if path.name != "manifest.json"}
    (folder / "manifest.json").write_text(
        json.dumps({"files": {**files, **changed.pop("files", {})}, **changed})
    )


def test_files_must_be_those_of_the_manifest(tmp_path):
    folder = write_folder(tmp_path / "log_reprod")
    write_manifest(folder)
    assert verify(folder).ok
    write_manifest(folder, files={"loss_paddle.npy": "0" * 64, "weights.npz": "1" * 64})
    found = verify(folder)
    assert names_of(found) == {("", "manifest"), ("", "manifest-lacks")}
    assert str(found.problems[0]).startswith(
        "loss_paddle.npy is not the file that the manifest lists: 000000000000"
    )


def test_what_parfocal_saw_agree_is_no_copy_and_other_files_are(tmp_path):
    folder = write_folder(tmp_path / "log_reprod")
    write_checkpoint(folder, "forward", {"logits": LOGITS}, {"logits": LOGITS})
    write_manifest(folder, agreed_exactly=["forward"])
    assert verify(folder).ok
    write_manifest(folder, agreed_exactly=["loss"])
    assert names_of(verify(folder)) == {("forward", "copy")}


def test_a_project_may_set_how_far_a_trained_metric_is_off(tmp_path):
    folder = write_folder(tmp_path / "log_reprod")
    write_checkpoint(folder, "train_align", {"top1": np.float32(0.95)}, {"top1": np.float32(0.94)})
    write_manifest(folder, within=0.0015)
    assert ("train_align", "different") in names_of(verify(folder))
    write_checkpoint(
        folder, "train_align", {"top1": np.float32(0.95)}, {"top1": np.float32(0.94)}, within=0.02
    )
    write_manifest(folder, within=0.02)
    found = verify(folder)
    assert found.ok
    assert [one.set_by_project for one in found.checkpoints] == [None] * 4 + [0.02]
    write_checkpoint(folder, "train_align", {"top1": np.float32(0.95)}, {"top1": np.float32(0.92)})
    write_manifest(folder, within=0.02)
    assert ("train_align", "different") in names_of(verify(folder))


def test_a_part_that_says_so_is_told(tmp_path):
    folder = write_folder(tmp_path / "log_reprod")
    write_manifest(folder, missing=["train_align"])
    assert names_of(verify(folder)) == {("", "partial")}
    assert verify(folder, partial=True).ok


@pytest.mark.parametrize("text", ["{", "[]", '{"files": 3}', "null"])
def test_a_manifest_that_is_none_is_told(tmp_path, text):
    folder = write_folder(tmp_path / "log_reprod")
    (folder / "manifest.json").write_text(text)
    assert names_of(verify(folder)) == {("", "unreadable")}


def test_a_zip_is_judged_as_its_folder_and_nothing_is_left_behind(tmp_path, monkeypatch):
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setenv("TMPDIR", str(room))
    monkeypatch.setattr("tempfile.tempdir", None)
    folder = write_folder(tmp_path / "work" / "log_reprod")
    packed = shutil.make_archive(str(tmp_path / "handed_in"), "zip", tmp_path / "work")
    assert verify(packed).ok
    broken_by_nan(folder)
    packed = shutil.make_archive(str(tmp_path / "broken"), "zip", tmp_path / "work")
    assert ("forward", "not-finite") in names_of(verify(packed))
    assert list(room.iterdir()) == []


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_nothing_in_a_file_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_folder(tmp_path / "log_reprod")
    np.save(folder / "loss_paddle.npy", np.array({"loss": Harmful()}, dtype=object), allow_pickle=True)
    assert b"mkdir" in pickle.dumps(Harmful())
    assert names_of(verify(folder)) == {("loss", "unreadable")}
    assert not (tmp_path / "harm").exists()


def test_a_wrong_call_is_one_clear_error(tmp_path):
    with pytest.raises(InputError, match="nowhere does not exist"):
        verify(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyComparisonError, match="has none of the files of an acceptance folder"):
        verify(tmp_path / "empty")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(FileFormatError, match="neither a folder nor a zip"):
        verify(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as packed:
        packed.writestr("forward_paddle.npy", b"x" * 1000)
    content = bytearray((tmp_path / "bad.zip").read_bytes())
    content[60:80] = b"\0" * 20
    (tmp_path / "bad.zip").write_bytes(content)
    with pytest.raises(FileFormatError, match="cannot be unpacked"):
        verify(tmp_path / "bad.zip")


def test_a_zip_with_a_name_that_is_gone_is_one_clear_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as packed:
        packed.writestr("a", b"")
    data = (tmp_path / "bad.zip").read_bytes()
    end = data.rindex(b"a")  # in the list at the end
    (tmp_path / "bad.zip").write_bytes(data[:end].replace(b"a", b"\0") + b"\0" + data[end + 1 :])
    with pytest.raises(FileFormatError, match="cannot be unpacked"):
        verify(tmp_path / "bad.zip")


def test_a_zip_that_is_cut_off_or_damaged_inside_is_one_clear_error(tmp_path):
    write_folder(tmp_path / "work" / "log_reprod")
    packed = shutil.make_archive(str(tmp_path / "handed_in"), "zip", tmp_path / "work")
    whole = bytearray((tmp_path / "handed_in.zip").read_bytes())
    refusals = []
    for place in range(100, len(whole) - 400, 97):  # in what is packed, not in the list at the end
        damaged = whole.copy()
        damaged[place : place + 8] = bytes(8)
        (tmp_path / "handed_in.zip").write_bytes(damaged)
        try:
            verify(packed)
        except FileFormatError as error:
            refusals.append(error.message)
    assert refusals
    assert all("cannot be unpacked" in message for message in refusals)
