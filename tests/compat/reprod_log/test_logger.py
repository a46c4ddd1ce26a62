"""The logger: what it takes, what it keeps, what it writes."""

import ml_dtypes
import numpy as np
import pytest

from parfocal.compat.reprod_log import ReprodLogger
from parfocal.errors import InputError


def test_add_keeps_a_copy():
    logger, array = ReprodLogger(), np.zeros(3)
    logger.add("x", array)
    array[:] = 7
    assert logger.data["x"].tolist() == [0.0, 0.0, 0.0]
    assert logger.data["x"].dtype == np.float64


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0.5, np.float64),
        (3, np.int64),
        (True, np.bool_),
        (1 + 2j, np.complex128),
        (np.float32(0.5), np.float32),
        (np.int8(-3), np.int8),
        ([0.1, 0.01, 0.001], np.float64),
    ],
)
def test_plain_numbers_become_arrays(value, dtype):
    logger = ReprodLogger()
    logger.add("x", value)
    assert isinstance(logger.data["x"], np.ndarray)
    assert logger.data["x"].dtype == dtype
    assert logger.data["x"].tolist() == np.asarray(value).tolist()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_kept_as_float32_without_loss(dtype):
    values = np.array([1.0, -0.5, 2.0**-6], dtype)
    logger = ReprodLogger()
    logger.add("x", values)
    assert logger.data["x"].dtype == np.float32
    assert logger.data["x"].tolist() == [1.0, -0.5, 2.0**-6]


def test_a_nesting_is_kept_as_one():
    logger = ReprodLogger()
    logger.add("out", {"logits": np.ones(2), "hidden": (np.zeros(1), None, [np.ones(3)])})
    assert logger.data["out"]["logits"].tolist() == [1.0, 1.0]
    assert list(logger.data["out"]["hidden"]) == ["0", "2"]
    assert logger.data["out"]["hidden"]["2"]["0"].shape == (3,)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("text", "a str"),
        (None, "a NoneType"),
        (object(), "a object"),
        (np.array(["a"]), "an array of <U1"),
        (np.array([None]), "an array of object"),
        (2**70, "an array of object"),
        ({"in": "text"}, "a str"),
    ],
)
def test_what_holds_no_numbers_is_refused_by_key(value, what):
    logger = ReprodLogger()
    with pytest.raises(InputError) as caught:
        logger.add("key", value)
    assert caught.value.message.startswith("'key")
    assert f"is {what}, which holds no numbers" in caught.value.message
    assert logger.data == {}


def test_a_duplicate_key_warns_and_the_later_value_stands():
    logger = ReprodLogger()
    logger.add("x", 1.0)  # no warning: it would be an error here
    with pytest.warns(UserWarning, match="'x' was added before: its earlier value is replaced"):
        logger.add("x", 2.0)
    assert logger.data["x"].item() == 2.0
    logger.remove("x")
    logger.add("x", 3.0)


def test_remove_and_clear(capsys):
    logger = ReprodLogger()
    logger.add("a", 1.0)
    logger.add("b", 2.0)
    logger.remove("a", np.float64(1.0))  # the document lists a value
    assert list(logger.data) == ["b"]
    logger.remove("a")
    assert capsys.readouterr().out == "a is not in dict_keys(['b'])\n"
    logger.clear()
    assert logger.data == {}
