"""What the functions and classes that a pickled NumPy array names stand for.

While a pickle is read, these stand-ins only collect what NumPy would have been given; the
arrays are built afterwards by ``Resolver``, from a dtype out of a fixed list and from bytes
whose number must fit the shape. None of NumPy's own pickling functions is ever called.
A ``PickleDialect`` says which names a kind of pickle may mention; ``NUMPY`` is that of plain arrays.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, checked_size

MAX_DEPTH = 64
MAX_CODE_POINT = 0x10FFFF

_DTYPE_SPEC = re.compile(r"b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|O[48]?|[SU][0-9]{1,9}")
_REORDER: dict[str, Callable[[np.dtype[Any]], np.dtype[Any]]] = {
    "<": lambda dtype: dtype.newbyteorder("<"),
    ">": lambda dtype: dtype.newbyteorder(">"),
    "=": lambda dtype: dtype,
    "|": lambda dtype: dtype,
}


class MalformedError(Exception):
    """The file does not hold what it should; the caller adds the file's name."""


def dtype_from_spec(spec: str) -> np.dtype[Any]:
    """The dtype of a specification such as "f4" or "U12", out of a fixed list."""
    if not _DTYPE_SPEC.fullmatch(spec):
        raise MalformedError(
            phrase("dtype {spec} is none of numbers, strings or objects", spec=repr(spec[:50]))
        )
    try:
        return np.dtype("O" if spec.startswith("O") else spec)
    except (TypeError, ValueError) as error:  # a long double that this platform lacks, a string too long
        raise MalformedError(
            phrase("dtype {spec} does not exist on this machine: {error}", spec=repr(spec), error=error)
        ) from None


def with_byte_order(dtype: np.dtype[Any], order: str) -> np.dtype[Any]:
    if dtype.isbuiltin != 2:  # 2: registered by ml_dtypes
        return _REORDER[order](dtype)
    if order == ">":
        raise MalformedError(phrase("big-endian {name} is not supported", name=dtype.name))
    return dtype


class WorkBudget:
    """How many bytes may be copied or inspected in all, so that sharing cannot multiply work."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise MalformedError(phrase("reading it takes more than {limit} bytes of work", limit=self.limit))


@dataclass(frozen=True, slots=True)
class GlobalName:
    """An admitted function or class, by its meaning."""

    meaning: str


class DeferredBytes(ABC):
    """The values of an array that stay in the file until somebody looks at them."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool) -> Any:
        """What stands for the array; the number of bytes was compared with the shape before."""


Reducer = Callable[[tuple[Any, ...], WorkBudget], Any]


@dataclass(frozen=True, slots=True)
class PickleDialect:
    """The names that a kind of pickle may mention, and what they stand for."""

    globals: Mapping[tuple[str, str], str]  # (module, name) -> meaning
    reducers: Mapping[str, Reducer]  # meaning -> what a call gives
    constants: Mapping[tuple[str, str], Any] = field(default_factory=dict)  # names that stand for a value
    fetch: Callable[[Any], Any] | None = None  # what a persistent id stands for; None: refused
    attributes: bool = False  # containers may carry attributes, which are dropped
    readers: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # of some opcodes' arguments
    hint: str = phrase(
        "only NumPy arrays and plain containers are read from pickles; do not load this file with pickle"
    )


@dataclass(eq=False, slots=True)
class DtypeStandIn:
    """A pickled dtype: its specification, and the byte order that its state adds."""

    base: np.dtype[Any]

    def set_state(self, state: tuple[Any, ...]) -> None:
        match state:
            case (3 | 4, str(order), None, None, None, int(), int(), int(), *_) if order in _REORDER:
                self.base = with_byte_order(self.base, order)
            case _:
                raise MalformedError(phrase("a dtype is structured or its state is wrong"))


@dataclass(eq=False, slots=True)
class ArrayStandIn:
    """A pickled array, possibly still without its state."""

    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(object))
    fortran: bool = False
    data: bytes | DeferredBytes | list[Any] = b""
    built: Any = None

    def set_state(self, state: tuple[Any, ...]) -> None:
        match state:
            case (int(), tuple(shape), DtypeStandIn(base=dtype), bool() | int() as fortran, data):
                self.describe(shape, dtype, bool(fortran), data)
            case _:
                raise MalformedError(phrase("an array's state is wrong"))

    def describe(self, shape: tuple[Any, ...], dtype: np.dtype[Any], fortran: bool, data: Any) -> None:
        if not all(type(extent) is int for extent in shape):
            raise MalformedError(phrase("an array's shape is not made of integers"))
        deferred = isinstance(data, DeferredBytes) and dtype.kind not in "OU"
        if type(data) is not (list if dtype.kind == "O" else bytes) and not deferred:
            raise MalformedError(
                phrase("an array of {dtype} has its values as {kind}", dtype=dtype, kind=type(data).__name__)
            )
        size = checked_size(shape, max(1, 0 if dtype.kind == "O" else dtype.itemsize))
        if size != len(data) or dtype.itemsize == 0:
            raise MalformedError(
                phrase(
                    "an array of {dtype} {shape} needs {size} bytes or values, it has {count}",
                    dtype=dtype,
                    shape=shape,
                    size=size,
                    count=len(data),
                )
            )
        self.shape, self.dtype, self.fortran, self.data = shape, dtype, fortran, data


class Resolver:
    """Turns what the stack held at the end into plain values and arrays."""

    def __init__(self, budget: WorkBudget, max_values: int) -> None:
        self._budget = budget
        self._max_values = max_values
        self._values = 0

    def resolve(self, value: Any, depth: int = 0) -> Any:
        """The value with every stand-in replaced. Shared containers are written out."""
        self._values += 1
        if self._values > self._max_values:
            raise MalformedError(
                phrase(
                    "it holds more than {max_values} values once they are written out",
                    max_values=self._max_values,
                )
            )
        if depth > MAX_DEPTH:
            raise MalformedError(
                phrase("it is nested deeper than {max_depth} levels, or contains itself", max_depth=MAX_DEPTH)
            )
        if isinstance(value, dict):
            return {key: self.resolve(item, depth + 1) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self.resolve(item, depth + 1) for item in value)
        if isinstance(value, ArrayStandIn):
            return self._array(value, depth)
        if isinstance(value, (GlobalName, DtypeStandIn)):
            raise MalformedError(phrase("it holds a function or a dtype where a value is expected"))
        return value

    def _array(self, stand_in: ArrayStandIn, depth: int) -> Any:
        if stand_in.shape is None:
            raise MalformedError(phrase("an array never got its values"))
        if isinstance(stand_in.data, list):
            return self._object_array(stand_in.shape, stand_in.data, depth)
        if stand_in.built is None:
            shape, dtype, fortran = stand_in.shape, stand_in.dtype, stand_in.fortran
            if isinstance(stand_in.data, DeferredBytes):
                stand_in.built = stand_in.data.array(shape, dtype, fortran)
            else:
                stand_in.built = build_array(shape, dtype, stand_in.data, fortran, self._budget)
        return stand_in.built

    def _object_array(self, shape: tuple[int, ...], data: list[Any], depth: int) -> NDArray[Any]:
        array = np.empty(len(data), dtype=object)
        for index, item in enumerate(data):
            array[index] = self.resolve(item, depth + 1)
        return array.reshape(shape)


def build_array(
    shape: tuple[int, ...], dtype: np.dtype[Any], data: bytes, fortran: bool, budget: WorkBudget
) -> NDArray[Any]:
    """A read-only array on bytes whose number was compared with the shape before."""
    array: NDArray[Any] = np.ndarray(shape, dtype, buffer=data, order="F" if fortran else "C")
    if dtype.kind == "U":
        budget.spend(len(data))
        check_code_points(data, dtype)
    return array


def check_code_points(data: bytes, dtype: np.dtype[Any]) -> None:
    """NumPy takes the bytes of a string array on trust and fails only when one is looked at."""
    points = np.frombuffer(data, np.dtype(np.uint32).newbyteorder(dtype.byteorder))
    if points.size and int(points.max()) > MAX_CODE_POINT:
        raise MalformedError(
            phrase("a string array holds {code}, which is no character", code=f"{int(points.max()):#x}")
        )


# Calls: what each admitted function gives for its arguments.


def _reconstruct(arguments: tuple[Any, ...], budget: WorkBudget) -> ArrayStandIn:
    match arguments:
        case (GlobalName(meaning="ndarray"), (0,), b"b"):
            return ArrayStandIn()
        case _:
            raise MalformedError(phrase("an array is reconstructed from something else"))


def _from_buffer(arguments: tuple[Any, ...], budget: WorkBudget) -> ArrayStandIn:
    match arguments:
        case (bytes() | DeferredBytes() as data, DtypeStandIn(base=dtype), tuple(shape), "C" | "F" as order):
            result = ArrayStandIn()
            result.describe(shape, dtype, order == "F", data)
            return result
        case _:
            raise MalformedError(phrase("an array is made from a buffer with wrong arguments"))


def _dtype(arguments: tuple[Any, ...], budget: WorkBudget) -> DtypeStandIn:
    match arguments:
        case (str(spec), *_):
            return DtypeStandIn(dtype_from_spec(spec))
        case (GlobalName(meaning=meaning), *_) if meaning in DTYPES:
            return DtypeStandIn(DTYPES[meaning])
        case _:
            raise MalformedError(phrase("a dtype is made from something else than a name"))


def _scalar(arguments: tuple[Any, ...], budget: WorkBudget) -> Any:
    match arguments:
        case (DtypeStandIn(base=dtype), bytes(data)) if dtype.kind != "O" and len(data) == dtype.itemsize:
            if not data:
                return dtype.type()
            return build_array((), dtype, data, False, budget)[()]
        case _:
            raise MalformedError(phrase("a NumPy scalar has a wrong dtype or size"))


def _empty(kind: type[Any]) -> Reducer:
    def reducer(arguments: tuple[Any, ...], budget: WorkBudget) -> Any:
        if arguments:
            raise MalformedError(phrase("an empty {kind} is made from something", kind=kind.__name__))
        return kind()

    return reducer


def _encode(arguments: tuple[Any, ...], budget: WorkBudget) -> bytes:
    """Protocol 2 has no bytes: it writes them as text that encodes to them in Latin-1."""
    match arguments:
        case (str(text), "latin1"):
            budget.spend(len(text))
            return text.encode("latin1")
        case _:
            raise MalformedError(phrase("_codecs.encode is called with something other than Latin-1 text"))


def _complex(arguments: tuple[Any, ...], budget: WorkBudget) -> complex:
    match arguments:
        case (float(real), float(imaginary)):
            return complex(real, imaginary)
        case _:
            raise MalformedError(phrase("a complex number is not made of two floats"))


_REDUCERS: dict[str, Reducer] = {
    "reconstruct": _reconstruct,
    "from_buffer": _from_buffer,
    "dtype": _dtype,
    "scalar": _scalar,
    "ordered_dict": _empty(dict),
    "empty_bytes": _empty(bytes),
    "encode": _encode,
    "complex": _complex,
}

# NumPy 1 says numpy.core, NumPy 2 numpy._core; protocol 2 says __builtin__, and writes b"" as bytes().
GLOBALS: dict[tuple[str, str], str] = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("collections", "OrderedDict"): "ordered_dict",
    ("_codecs", "encode"): "encode",
    **{(builtins, "complex"): "complex" for builtins in ("builtins", "__builtin__")},
    **{(builtins, "bytes"): "empty_bytes" for builtins in ("builtins", "__builtin__")},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): "reconstruct" for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): "scalar" for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): "from_buffer" for core in ("core", "_core")},
    **{("ml_dtypes", name): name for name in DTYPES if hasattr(ml_dtypes, name)},
}

NUMPY = PickleDialect(GLOBALS, _REDUCERS)
