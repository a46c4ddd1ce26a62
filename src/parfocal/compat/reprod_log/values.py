"""What can be logged and compared, as NumPy: arrays, numbers, tensors and nestings of these.

Everything that enters a log or leaves a model passes through ``to_value``; everything that is fed
to a model passes through ``to_tensors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array, TensorBackend
from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, dtype_name

Value = Array | dict[str, Any]
_NUMBERS = (bool, int, float, complex, np.generic)


def to_value(value: Any, where: str) -> Value:
    """A copy as an array, or as a dict of such for a nesting; ``where`` names it in errors.

    The items of a tuple or list go by their index, unless all are numbers; None is no item.
    """
    if isinstance(value, Mapping):
        return {key: to_value(item, f"{where}.{key}") for key, item in value.items() if item is not None}
    if isinstance(value, (tuple, list)) and not _only_numbers(value):
        return to_value({str(index): item for index, item in enumerate(value)}, where)
    return np.array(to_array(value, where))


def to_array(value: Any, where: str) -> Array:
    """The numbers of an array, number, list of numbers or tensor; may share its memory."""
    if isinstance(value, (np.ndarray, *_NUMBERS)) or _only_numbers(value):
        return _numeric(np.asarray(value), where)
    return _numeric(_tensor_values(value, where), where)


def _only_numbers(value: Any) -> bool:
    return (
        isinstance(value, (tuple, list)) and bool(value) and all(isinstance(item, _NUMBERS) for item in value)
    )


def _tensor_values(value: Any, where: str) -> Array:
    try:
        backend = registry.of(value)
    except InputError as error:
        raise _not_numbers(where, phrase("a {kind}", kind=type(value).__name__)) from error
    if not backend.is_tensor(value):
        raise _not_numbers(where, phrase("a {kind}", kind=type(value).__name__))
    return backend.to_array(value, copy=False)


def _numeric(array: Array, where: str) -> Array:
    if array.dtype.isbuiltin == 2 and dtype_name(array.dtype) in DTYPES:
        # bfloat16 and 8-bit floats: NumPy alone cannot read them back from a file, and float32
        # holds every one of their values.
        return array.astype(np.float32)
    if array.dtype.kind in "biufc":
        return array
    raise _not_numbers(where, phrase("an array of {dtype}", dtype=array.dtype))


def _not_numbers(where: str, what: str) -> InputError:
    return InputError(
        phrase("{where} is {what}, which holds no numbers", where=repr(where), what=what),
        hint=phrase("pass a NumPy array, a number, a tensor, or a dict, list or tuple of these"),
    )


def to_tensors(backend: TensorBackend, value: Any, float_dtype: str, *, live: bool = False) -> Any:
    """The arrays in a nesting as new tensors: floats as ``float_dtype``, integers and bools as they are.

    With ``live`` the floats take part in autograd, and are not leaves, so that a model may work on
    them in place.
    """
    if isinstance(value, Mapping):
        return {key: to_tensors(backend, item, float_dtype, live=live) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(to_tensors(backend, item, float_dtype, live=live) for item in value)
    if not isinstance(value, np.ndarray):
        return value
    array = _numeric(value, "input")
    if array.dtype.kind != "f":
        return backend.from_array(array)
    tensor = backend.from_array(array.astype(DTYPES[float_dtype]), requires_grad=live)
    return tensor * 1 if live else tensor


def absolute_difference(first: Array, second: Array) -> Array:
    """``|first - second|``, exact for integers and correctly rounded for floats; 0 for equal infinities.

    float32 and float64 stay what they are, as in the formula ``np.abs(a - b)``; narrower floats, whose
    own range is too small for it, are subtracted as float64.
    """
    if first.dtype.kind in "biu" and second.dtype.kind in "biu":
        return _integer_difference(first, second)
    dtype = np.result_type(first, second)
    if dtype.itemsize < 4 or dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.asarray(np.abs(first.astype(dtype) - second.astype(dtype)))
    difference[np.isinf(first) & (first == second)] = 0
    return difference


def _integer_difference(first: Array, second: Array) -> Array:
    if np.result_type(first, second).kind == "f":
        # uint64 against a signed type: no type of NumPy holds both, so Python's integers do.
        return np.asarray(np.abs(first.astype(object) - second.astype(object)))
    # Modulo 2**64 the greater minus the smaller is exact, whatever the signs and widths are.
    left, right = first.astype(np.uint64), second.astype(np.uint64)
    return np.where(np.greater(first, second), left - right, right - left)
