from __future__ import annotations

import collections
import io
import math
import pickle
import re
import time
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from parfocal.errors import FileFormatError, UnsafeFileError
from parfocal.run.dtypes import DTYPES
from parfocal.run.files import load_arrays
from parfocal.run.unpickle import load_pickle

from .hostile import COMMAND, MARKER, Sample, samples

SAMPLES = samples()
PROTOCOLS = (2, 3, 4, 5)


def loads(data: bytes) -> Any:
    return load_pickle(io.BytesIO(data), len(data), "file.npy")


def round_trip(value: Any, protocol: int) -> Any:
    return loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", sorted(DTYPES))
def test_arrays_of_every_dtype(protocol: int, name: str) -> None:
    array = np.arange(6).astype(DTYPES[name]).reshape(2, 3)
    for view in (array, np.asfortranarray(array), array[:, ::2], array[:0], array[0, 0:1].reshape(())):
        back = round_trip(view, protocol)
        assert back.dtype == view.dtype
        assert back.shape == view.shape
        assert back.tobytes() == view.tobytes()
    scalar = round_trip(array[1, 1], protocol)
    assert type(scalar) is type(array[1, 1])
    assert scalar == array[1, 1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_everything_that_a_log_may_hold(protocol: int) -> None:
    data = {
        "list": [1, 2.5, "text", None, True, b"bytes", b"", 2**70, -1],
        "tuple": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "nested": {"a": {"b": collections.OrderedDict(c=[{}])}},
        "keys": {3: 2, None: 3, b"x": 4, 1.5: 5, True: 6},
        "complex": 1 - 2j,
        "floats": [math.inf, -0.0],
        "numpy text": np.str_("déjà"),
        "empty numpy text": np.str_(""),
        "é\ud800": 1,
    }
    assert round_trip(data, protocol) == data


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_object_and_text_arrays(protocol: int) -> None:
    ragged = np.empty((2, 2), dtype=object)
    ragged[0, 0], ragged[0, 1], ragged[1, 0] = np.arange(2), {"a": np.ones(3)}, "x"
    back = round_trip(np.asfortranarray(ragged), protocol)
    assert back.shape == (2, 2)
    np.testing.assert_array_equal(back[0, 0], [0, 1])
    np.testing.assert_array_equal(back[0, 1]["a"], np.ones(3))
    assert back[1, 0] == "x"
    assert back[1, 1] is None
    for texts in (np.array(["a", "bcd"]), np.array([b"a", b"bc"]), np.array(["a"]).astype(">U3")):
        np.testing.assert_array_equal(round_trip(texts, protocol), texts)


def test_big_endian_and_shared_arrays() -> None:
    array = np.arange(3, dtype=">f8")
    back = round_trip([array, array], 4)
    np.testing.assert_array_equal(back[0], array)
    assert back[0] is back[1]


def test_names_of_numpy_1() -> None:
    data = pickle.dumps(np.arange(3), 3).replace(b"numpy._core.", b"numpy.core.")
    assert b"numpy.core.multiarray" in data
    np.testing.assert_array_equal(loads(data), [0, 1, 2])


@pytest.mark.parametrize("protocol", [4, 5])
def test_sets(protocol: int) -> None:
    assert round_trip([{1, 2}, frozenset("ab")], protocol) == [{1, 2}, frozenset("ab")]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(PROTOCOLS),
    st.dictionaries(
        st.text(),
        hnp.arrays(
            hnp.scalar_dtypes().filter(lambda d: d.kind in "biufcSU" and d.itemsize), hnp.array_shapes()
        ),
    ),
)
def test_any_log_comes_back(protocol: int, data: dict[str, Any]) -> None:
    back = round_trip(data, protocol)
    assert list(back) == list(data)
    for name, array in data.items():
        assert back[name].dtype == array.dtype
        assert back[name].tobytes() == array.tobytes()


# Hostile files.


@pytest.fixture
def harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs the test in an empty folder and checks that nothing hostile left its mark there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(data: bytes, sample: Sample) -> None:
    _, expected = sample
    started = time.perf_counter()
    with pytest.raises(FileFormatError) as caught:
        loads(data)
    assert re.search(expected, caught.value.message), caught.value.message
    assert caught.value.message.startswith("file.npy")
    assert time.perf_counter() - started < 20
    assert not Path(MARKER).exists()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_hostile_pickle_is_refused_by_name(harmless: Path, name: str) -> None:
    refused(SAMPLES[name][0], SAMPLES[name])


def test_a_hostile_pickle_really_is_hostile(harmless: Path) -> None:
    """With the real unpickler the first sample runs its command: the samples can do harm."""
    pickle.loads(SAMPLES["os.system"][0])  # noqa: S301
    assert Path(MARKER).exists()


@pytest.mark.parametrize("name", ["os.system", "eval", "subprocess", "numpy's own runner", "persistent id"])
def test_what_would_run_code_is_called_unsafe(harmless: Path, name: str) -> None:
    data, expected = SAMPLES[name]
    with pytest.raises(
        UnsafeFileError, match=f"^file.npy asks to .*{expected}.*; nothing of it was executed"
    ):
        loads(data)


OBJECT_HEADER = b"{'descr': '|O', 'fortran_order': False, 'shape': (), }"


def npy(pickled: bytes) -> bytes:
    header = OBJECT_HEADER.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + pickled


def test_hostile_pickles_inside_npy_and_npz(harmless: Path) -> None:
    for number, (data, expected) in enumerate(SAMPLES.values()):
        plain = harmless / f"{number}.npy"
        plain.write_bytes(npy(data))
        packed = harmless / f"{number}.npz"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", npy(pickle.dumps(1)))
            archive.writestr("evil.npy", npy(data))
        for path, where in ((plain, str(plain)), (packed, f"{packed}, member 'evil.npy'")):
            with pytest.raises(FileFormatError, match=expected) as caught:
                load_arrays(path)
            assert caught.value.message.startswith(where)
    assert not Path(MARKER).exists()


def test_the_command_names_the_marker() -> None:
    assert MARKER in COMMAND


def test_every_truncation_of_a_log_is_refused() -> None:
    data = pickle.dumps(
        {"logits": np.arange(6.0), "brain": np.ones(2, ml_dtypes.bfloat16), "n": [1, (2, 3)]}, 4
    )
    for length in range(len(data)):
        with pytest.raises(FileFormatError):
            loads(data[:length])


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(FileFormatError, match="3 bytes follow the end of the pickle"):
        loads(pickle.dumps(1) + b"abc")


def test_too_many_opcodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parfocal.run.unpickle.MAX_OPCODES", 50)
    assert round_trip(list(range(10)), 4) == list(range(10))
    with pytest.raises(FileFormatError, match="more than 50 opcodes"):
        round_trip(list(range(100)), 4)
