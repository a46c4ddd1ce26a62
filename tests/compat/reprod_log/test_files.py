"""The files: the original's are read, the original could read ours, and no file runs code."""

import io
import os
import pickle

import ml_dtypes
import numpy as np
import pytest

from parfocal.compat.reprod_log import ReprodDiffHelper, ReprodLogger
from parfocal.errors import FileFormatError, ParfocalError, StorageError, UnsafeFileError
from tests.compat.reprod_log import golden


def logged(**values):
    logger = ReprodLogger()
    for key, value in values.items():
        logger.add(key, value)
    return logger


def npy_of(payload):
    """An object array's file as ``numpy.save`` lays it out: header, then the pickle."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": ()})
    return stream.getvalue() + payload


def test_the_originals_files_are_read():
    info = ReprodDiffHelper().load_info(str(golden.TORCH))
    assert list(info) == ["logits", "double", "far", "same", "acc_top1", "label", "nested"]
    assert info["logits"].shape == (3, 8)
    assert info["logits"].dtype == np.float32
    assert info["label"].tolist() == [0, 1, 2, 3, 4, 5]
    assert info["acc_top1"].shape == ()
    assert info["nested"]["hidden"]["0"].shape == (2, 3)
    # what the original itself does with the file
    original = np.load(golden.TORCH, allow_pickle=True).tolist()
    np.testing.assert_array_equal(info["far"], original["far"], strict=True)


def test_what_was_loaded_can_be_changed_in_place():
    info = ReprodDiffHelper().load_info(golden.TORCH)
    info["logits"] *= 2
    info["nested"]["loss"][...] = 0
    np.testing.assert_array_equal(info["logits"], 2 * ReprodDiffHelper().load_info(golden.TORCH)["logits"])


def test_the_original_reads_ours(tmp_path):
    narrow = np.array([0.5, -2.0], ml_dtypes.bfloat16)
    logger = logged(x=np.arange(6, dtype=np.float32).reshape(2, 3), n=3, b=narrow, d={"e": np.ones(2)})
    logger.save(tmp_path / "ours.npy")
    read = np.load(tmp_path / "ours.npy", allow_pickle=True).tolist()
    assert type(read) is dict
    assert {key: type(value) for key, value in read.items()} == {
        "x": np.ndarray,
        "n": np.ndarray,
        "b": np.ndarray,
        "d": dict,
    }
    np.testing.assert_array_equal(read["x"], logger.data["x"], strict=True)
    assert b"ml_dtypes" not in (tmp_path / "ours.npy").read_bytes()


def test_files_of_older_numpy_versions_are_read(tmp_path):
    info = {"x": np.array([1.5, 2.5], np.float32), "n": {"y": np.array(3)}}
    array = np.empty((), dtype=object)
    array[()] = info
    old = pickle.dumps(array, protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert b"numpy.core.multiarray" in old
    (tmp_path / "old.npy").write_bytes(npy_of(old))
    read = ReprodDiffHelper().load_info(tmp_path / "old.npy")
    np.testing.assert_array_equal(read["x"], info["x"], strict=True)
    assert read["n"]["y"].item() == 3


@pytest.mark.parametrize("name", ["forward_paddle", "forward_paddle.npy", "new/folder/forward.paddle"])
def test_the_suffix_is_added_when_missing_and_the_given_name_loads(name, tmp_path):
    path = os.path.join(tmp_path, name)
    logged(x=1.0).save(path)
    assert os.path.exists(path if name.endswith(".npy") else path + ".npy")
    assert ReprodDiffHelper().load_info(path)["x"].item() == 1.0


def test_round_trip_of_every_kind_of_number(tmp_path):
    dtypes = ["bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "complex64"]
    logger = ReprodLogger()
    for dtype in dtypes:
        logger.add(dtype, np.array([[0, 1, 1]], dtype))
    logger.add("empty", np.zeros((0, 3), np.float32))
    logger.save(tmp_path / "all")
    info = ReprodDiffHelper().load_info(tmp_path / "all")
    assert list(info) == [*dtypes, "empty"]
    for key, value in info.items():
        np.testing.assert_array_equal(value, logger.data[key], strict=True)


class Hostile:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def test_a_hostile_pickle_is_refused_by_name_before_anything_of_it_runs(tmp_path):
    marker, path = tmp_path / "ran", tmp_path / "hostile.npy"
    path.write_bytes(npy_of(pickle.dumps({"good": np.ones(2), "bad": Hostile(marker)})))
    with pytest.raises(UnsafeFileError, match="mkdir"):
        ReprodDiffHelper().load_info(path)
    assert not marker.exists()
    # the file does what the test fears when it is read without care
    np.load(path, allow_pickle=True)
    assert marker.exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"not a file of arrays", golden.TORCH.read_bytes()[:-200], golden.TORCH.read_bytes()[:40]],
)
def test_a_damaged_file_is_named(content, tmp_path):
    (tmp_path / "damaged.npy").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"damaged\.npy"):
        ReprodDiffHelper().load_info(tmp_path / "damaged.npy")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ParfocalError, match="absent"):
        ReprodDiffHelper().load_info(tmp_path / "absent.npy")


def test_a_file_of_one_array_is_no_log(tmp_path):
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(FileFormatError, match=r"array\.npy holds a single value, not a dict"):
        ReprodDiffHelper().load_info(tmp_path / "array.npy")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*file/x"):
        logged(x=1.0).save(tmp_path / "file" / "x")


def test_a_missing_file_is_what_the_original_raises_too(tmp_path):
    for kind in (FileNotFoundError, StorageError):
        with pytest.raises(kind, match=r"nothing\.npy: No such file or directory"):
            ReprodDiffHelper().load_info(tmp_path / "nothing.npy")


def test_a_file_that_may_not_be_read_is_no_missing_one(tmp_path):
    (tmp_path / "here.npy").write_bytes(b"no array")
    with pytest.raises(FileFormatError) as caught:
        ReprodDiffHelper().load_info(tmp_path / "here.npy")
    assert not isinstance(caught.value, FileNotFoundError)
