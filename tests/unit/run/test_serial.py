from __future__ import annotations

import dataclasses
import json
import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.errors import FileFormatError, InputError
from parfocal.run import records as model
from parfocal.run.codecs import CODECS, encode_fields
from parfocal.run.dtypes import DTYPES
from parfocal.run.records import (
    Contents,
    RunHeader,
    StateRecord,
    Structure,
    TensorRef,
    TensorValue,
    ValueRecord,
)
from parfocal.run.serial import RECORD_TYPES, decode_header, decode_record, encode_header, encode_record

from .samples import HEADER, call

VALUE = TensorValue("float32", (2, 3), TensorRef(1, 64, 24, "crc32:0a0b0c0d", 3))

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text()
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=8,
)
shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@st.composite
def tensors(draw: st.DrawFn) -> TensorValue:
    name, shape = draw(st.sampled_from(sorted(DTYPES))), draw(shapes)
    nbytes = math.prod(shape) * DTYPES[name].itemsize
    ref = TensorRef(draw(st.integers(0, 9)), draw(st.integers(0, 2**40)), nbytes, "crc32:00ff00ff")
    optional = st.none() | st.dictionaries(st.text(), nested, max_size=3)
    return TensorValue(name, shape, draw(st.none() | st.just(ref)), draw(optional), draw(optional))


BY_ANNOTATION: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "int | None": st.none() | st.integers(0, 9),
    "str": st.text(),
    "str | None": st.none() | st.text(),
    "bool": st.booleans(),
    "float": st.floats(),
    "float | None": st.none() | st.floats(),
    "Any": nested,
    "Mapping[str, Any] | None": st.none() | st.dictionaries(st.text(), nested, max_size=4),
    "Mapping[str, Any]": st.dictionaries(st.text(), nested, max_size=4),
    "Structure": st.dictionaries(st.text(), plain | tensors(), max_size=3).map(
        lambda leaves: Structure(leaves, ["tuple", list(leaves)])
    ),
    "TensorValue | None": st.none() | tensors(),
    "Leaf": plain | tensors() | st.dictionaries(st.text(), st.text(), max_size=2),
}


def record_of(cls: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{item.name: BY_ANNOTATION[str(item.type)] for item in dataclasses.fields(cls)})


def same(a: object, b: object) -> bool:
    """Equality in which NaN equals NaN and the type of a container counts."""
    if isinstance(a, float) and isinstance(b, float) and a != a:
        return b != b
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, item.name), getattr(b, item.name)) for item in dataclasses.fields(a)
        )
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("cls", RECORD_TYPES.values())
def test_every_record_class_round_trips(cls: type[Any]) -> None:
    @given(record_of(cls))
    def check(record: Any) -> None:
        line = encode_record(record)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        json.loads(line, parse_constant=pytest.fail)  # strict JSON: no NaN
        assert same(decode_record(line, "f"), record)

    check()


@pytest.mark.parametrize("cls", RECORD_TYPES.values())
def test_the_text_is_that_of_the_fields(cls: type[Any]) -> None:
    """Tensors are spliced in as text: the line is the same as if it was written as a whole."""

    @given(record_of(cls))
    def check(record: Any) -> None:
        tag = next(tag for tag, kind in RECORD_TYPES.items() if kind is cls)
        whole = {"type": tag, **encode_fields(record, "")}
        assert encode_record(record) == json.dumps(whole, separators=(",", ":")).encode() + b"\n"

    check()


def test_arrays_of_a_sketch_stay_where_they_are() -> None:
    sketch = {
        "seed": 1,
        'a "quoted" name': np.arange(3.0),
        "inner": {"deep": np.ones(2)},
        "none": np.zeros(0),
    }
    record = StateRecord("buffer", "x", None, "after", TensorValue("float32", (2,), sketch=sketch))
    for _ in range(2):  # the second time from memory
        back = decode_record(encode_record(record), "f")
        assert list(back.value.sketch) == list(sketch)  # type: ignore[union-attr]
        assert encode_record(record) == encode_record(back)
    assert back.value.sketch['a "quoted" name'].tolist() == [0.0, 1.0, 2.0]  # type: ignore[union-attr]


def test_the_comparison_above_can_fail() -> None:
    record = ValueRecord("x", 1.0)
    assert not same(record, ValueRecord("x", float("nan")))
    assert not same(call(VALUE, VALUE), call(VALUE, VALUE, settings={"stride": [2, 2]}))


def test_every_field_of_the_model_has_a_codec() -> None:
    classes = [cls for cls in vars(model).values() if dataclasses.is_dataclass(cls)]
    assert len(classes) >= 10
    for cls in classes:
        for item in dataclasses.fields(cls):
            assert str(item.type) in CODECS, f"{cls.__name__}.{item.name}"


def test_numpy_values_become_plain_ones_and_arrays_stay_arrays() -> None:
    settings = {
        "epsilon": np.float32(0.5),
        "groups": np.int64(3),
        "half": ml_dtypes.bfloat16(1.5),
        "signs": np.array([[1, -1]], dtype=np.int8),
        "brain": np.arange(3).astype(ml_dtypes.bfloat16),
        "big_endian": np.arange(3, dtype=">f4"),
    }
    back = decode_record(encode_record(call(VALUE, VALUE, settings=settings)), "f").settings  # type: ignore[union-attr]
    assert back["epsilon"] == 0.5
    assert type(back["epsilon"]) is float
    assert back["groups"] == 3
    assert back["half"] == 1.5
    for name in ("signs", "brain", "big_endian"):
        assert back[name].dtype.name == settings[name].dtype.name  # type: ignore[attr-defined]
        np.testing.assert_array_equal(back[name], settings[name])


def test_a_number_of_numpy_in_a_numeric_field_is_stored() -> None:
    record = ValueRecord("x", np.float64(2.5), step=np.int32(4))  # type: ignore[arg-type]
    assert decode_record(encode_record(record), "f") == ValueRecord("x", 2.5, step=4)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (call(VALUE, VALUE, settings={"f": {"g": [print]}}), "field 'settings.f.g[0]' is a builtin_function"),
        (call(VALUE, VALUE, order="1"), "field 'order' is '1', not int"),
        (call(VALUE, VALUE, order=True), "field 'order' is True, not int"),
        (call(VALUE, VALUE, outputs=Structure({}, "0")), "field 'outputs.shape' is '0', neither a slot"),
        (ValueRecord("x", [1, 2]), "field 'value' is [1, 2], not a tensor"),  # type: ignore[arg-type]
        (ValueRecord("x", 2**5000), "field 'value' is an integer of 5001 bits"),
        (ValueRecord("x", 1j), "field 'value' is a complex"),  # type: ignore[arg-type]
        (HEADER, "cannot store a RunHeader; records are CallRecord"),
    ],
)
def test_what_could_not_be_read_back_is_refused_on_writing(record: Any, text: str) -> None:
    with pytest.raises(InputError, match=re.escape(text)):
        encode_record(record)


def test_settings_that_contain_themselves_are_refused() -> None:
    settings: dict[str, Any] = {}
    settings["self"] = settings
    with pytest.raises(InputError, match="nested too deeply"):
        encode_record(call(VALUE, VALUE, settings=settings))


def edited(changes: dict[str, Any]) -> bytes:
    data = json.loads(encode_record(call(VALUE, VALUE)))
    for path, value in changes.items():
        *way, last = path.split("/")
        target = data
        for key in way:
            target = target[key]
        if value is ...:
            del target[last]
        else:
            target[last] = value
    return json.dumps(data).encode()


TENSOR = "outputs/leaves/0/$tensor"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"", "not a JSON object"),
        (b"[1]", "not a JSON object: found list"),
        (b"\xff{}", "not a JSON object: 'utf-8' codec"),
        (b'{"type":"value","name":"x","value":NaN}', "NaN is not JSON"),
        (b'{"type":"value","name":"x","value":' + b"9" * 5000 + b"}", "not a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"type":"value","name":"x","value":{"$float":"abc"}}', "field 'value' has 'abc' as $float"),
        (b'{"type":"value","name":"x","value":{"$code":"1"}}', "field 'value' has the unknown tag '$code'"),
        (edited({"type": "os.system"}), "field 'type' is 'os.system'; allowed are call, gradient"),
        (edited({"order": ...}), "field 'order' is missing"),
        (edited({"extra": 1}), "field 'extra' is unknown to CallRecord"),
        (edited({"depth": 1.5}), "field 'depth' is 1.5, not int"),
        (edited({"depth": 2**63}), "field 'depth' does not fit into 64 bits"),
        (edited({"path": None}), "field 'path' is None, not str"),
        (edited({"inputs/shape": ["set", []]}), "field 'inputs.shape' is ['set', []], neither a slot"),
        (edited({"inputs/shape": "1"}), "field 'inputs.shape' is '1', neither a slot"),
        (edited({f"{TENSOR}/dtype": "object"}), "field 'outputs.leaves.0.dtype' is 'object', which is not"),
        (edited({f"{TENSOR}/shape": [2, -3]}), "field 'outputs.leaves.0.shape' is (2, -3), which no array"),
        (edited({f"{TENSOR}/shape": [0, 2**62]}), "field 'outputs.leaves.0.shape' is (0, 46116860"),
        (edited({f"{TENSOR}/shape": [1] * 65}), "which no array can have"),
        (
            edited({f"{TENSOR}/shape": [2, 4]}),
            "field 'outputs.leaves.0.ref.nbytes' is 24, but float32 2x4 has 32 bytes",
        ),
        (edited({f"{TENSOR}/ref/offset": -64}), "field 'outputs.leaves.0.ref.offset' is -64, must not be"),
        (edited({f"{TENSOR}/ref/segment": "../../x"}), "field 'outputs.leaves.0.ref.segment' is '../../x'"),
        (
            edited({f"{TENSOR}/ref/checksum": "x"}),
            "field 'outputs.leaves.0.ref.checksum' is 'x', not name:hex",
        ),
    ],
)
def test_a_wrong_line_is_named_by_file_line_and_field(line: bytes, text: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        decode_record(line, "records.jsonl, line 7")
    assert caught.value.message.startswith("records.jsonl, line 7: ")
    assert text in caught.value.message


@pytest.mark.parametrize(
    ("array", "text"),
    [
        ({"dtype": "float32", "shape": [2], "data": "AAAA"}, "3 bytes where 8 are needed"),
        ({"dtype": "float32", "shape": [2**61], "data": ""}, "0 bytes where None are needed"),
        ({"dtype": "object", "shape": [1], "data": ""}, "unknown dtype 'object'"),
        ({"dtype": "float32", "shape": [1], "data": "%%%"}, "not base64"),
        ({"dtype": "float32"}, "without dtype, shape and data"),
    ],
)
def test_an_array_inside_a_record_is_checked(array: object, text: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(text)):
        decode_record(edited({"settings": {"a": {"$array": array}}}), "f")


def test_the_header_round_trips() -> None:
    contents = Contents(3, 120, (64, 0))
    assert decode_header(encode_header(HEADER, None), "f") == (HEADER, None)
    assert decode_header(encode_header(HEADER, contents), "f") == (HEADER, contents)


def test_a_newer_schema_is_refused_by_number() -> None:
    newer = encode_header(dataclasses.replace(HEADER, schema=3), None)
    with pytest.raises(
        FileFormatError, match=r"run.json: schema version 3; this parfocal reads up to 2"
    ) as caught:
        decode_header(newer, "run.json")
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"schema": "1"}, "field 'schema' is '1', not a version number"),
        ({"schema": 0}, "field 'schema' is 0, not a version number"),
        ({"type": "wallet"}, "field 'type' is not 'run'"),
        ({"ranks": 0}, "field 'ranks' is 0, at least 1 is needed"),
        ({"contents": 5}, "field 'contents' is 5, not dict"),
        ({"framework": ...}, "field 'framework' is missing"),
    ],
)
def test_a_wrong_header_is_refused(changes: dict[str, Any], text: str) -> None:
    data = json.loads(encode_header(RunHeader("torch", {}), None)) | changes
    data = {key: value for key, value in data.items() if value is not ...}
    with pytest.raises(FileFormatError, match=re.escape(text)):
        decode_header(json.dumps(data).encode(), "run.json")
