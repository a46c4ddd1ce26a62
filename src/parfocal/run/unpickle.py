"""Pickles of NumPy arrays and plain containers, read without executing anything of them.

``reprod_log`` files are pickles. This module does not hand them to ``pickle``: it walks the
opcodes itself, on a stack of its own, and admits only the binary opcodes that arrays and
containers need. A named function or class is never looked up, let alone called; the few
that NumPy's arrays name stand for entries of a ``PickleDialect``. Everything else is refused by name.

Limits keep a hostile file from exhausting time or memory: the number of opcodes, of values
once shared ones are written out, of nested levels, of copied bytes, and of an integer's bits.
"""

from __future__ import annotations

import os
import pickletools
import struct
from collections.abc import Callable
from typing import IO, Any

from parfocal.errors import FileFormatError, ParfocalError, UnsafeFileError
from parfocal.phrases import phrase
from parfocal.run.standins import (
    NUMPY,
    ArrayStandIn,
    DtypeStandIn,
    GlobalName,
    MalformedError,
    PickleDialect,
    Resolver,
    WorkBudget,
)

MAX_OPCODES = 5_000_000
MAX_SHARING = 16  # how many values there may be in the end for each opcode
MAX_INT_BITS = 4096
MAX_KEY_LENGTH = 4096

_BY_CODE = {opcode.code.encode("latin1"): opcode for opcode in pickletools.opcodes}
_MAX_LINE = 4096  # of a global's module or name


def load_pickle(file: IO[bytes], size: int, name: str, dialect: PickleDialect = NUMPY) -> Any:
    """The value of the pickle in the next ``size`` bytes of ``file``; ``name`` is for errors.

    Raises ``UnsafeFileError`` where the pickle asks for anything but arrays and containers,
    ``FileFormatError`` where it is damaged. Arrays are read-only views of the bytes read.
    """
    machine = _Machine(_Source(file, size), name, dialect)
    try:
        value = machine.run()
        result = Resolver(machine.budget, MAX_SHARING * (machine.opcodes + 100)).resolve(value)
    except ParfocalError:
        raise
    except (MalformedError, ValueError, struct.error, OverflowError, EOFError) as error:
        raise FileFormatError(
            phrase(
                "{name}: damaged pickle, {error}, before byte {position}",
                name=name,
                error=error,
                position=machine.source.tell(),
            )
        ) from None
    if machine.source.remaining:
        raise FileFormatError(
            phrase(
                "{name}: {remaining} bytes follow the end of the pickle",
                name=name,
                remaining=machine.source.remaining,
            )
        )
    return result


class _Source:
    """The pickle's bytes; never asks the file for more than there are."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.size = size
        self.remaining = size

    def read(self, count: int) -> bytes:
        data = self._file.read(min(count, self.remaining))
        self.remaining -= len(data)
        return data

    def readline(self) -> bytes:
        data = self._file.readline(min(_MAX_LINE, self.remaining))
        self.remaining -= len(data)
        return data

    def skip(self, count: int) -> int:
        """Leave bytes out; gives the place where they begin."""
        if count > self.remaining:
            raise MalformedError(
                phrase(
                    "{count} bytes are announced, {remaining} are there",
                    count=count,
                    remaining=self.remaining,
                )
            )
        start = self.tell()
        self._file.seek(count, os.SEEK_CUR)
        self.remaining -= count
        return start

    def tell(self) -> int:
        return self.size - self.remaining


class _Machine:
    def __init__(self, source: _Source, name: str, dialect: PickleDialect) -> None:
        self.source = source
        self.name = name
        self.dialect = dialect
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.opcodes = 0
        self.budget = WorkBudget(8 * source.size + 2**20)

    def run(self) -> Any:
        for self.opcodes in range(1, MAX_OPCODES + 1):
            code = self.source.read(1)
            opcode = _BY_CODE.get(code)
            if opcode is None:
                raise MalformedError(
                    phrase("{code} is no opcode", code=repr(code)) if code else phrase("it ends without STOP")
                )
            if opcode.name == "STOP":
                return self.pop()
            handler = _OPCODES.get(opcode.name)
            if handler is None:
                raise self.refused_opcode(opcode)
            handler(self, self.argument(opcode))
        raise MalformedError(phrase("it has more than {max_opcodes} opcodes", max_opcodes=MAX_OPCODES))

    def refused_opcode(self, opcode: pickletools.OpcodeInfo) -> ParfocalError:
        request = _UNSAFE_OPCODES.get(opcode.name)
        if request is None:
            return FileFormatError(
                phrase(
                    "{name}: pickle opcode {opcode} is not among those that arrays need",
                    name=self.name,
                    opcode=opcode.name,
                ),
                hint=self.dialect.hint,
            )
        argument = str(self.argument(opcode) or "").replace(" ", ".")
        return self.unsafe(f"{request} {_printable(argument)}".rstrip())

    def argument(self, opcode: pickletools.OpcodeInfo) -> Any:
        reader: Any = opcode.arg.reader if opcode.arg else _no_argument
        return self.dialect.readers.get(opcode.name, reader)(self.source)

    def unsafe(self, request: str) -> UnsafeFileError:
        return UnsafeFileError(
            phrase("{name} asks to {request}; nothing of it was executed", name=self.name, request=request),
            hint=self.dialect.hint,
        )

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if not self.stack:
            raise MalformedError(phrase("an opcode needs more values than there are"))
        return self.stack.pop()

    def pop_marked(self) -> list[Any]:
        if not self.marked:
            raise MalformedError(phrase("an opcode needs a mark that is not there"))
        items, self.stack = self.stack, self.marked.pop()
        return items

    def top(self, kind: type[Any]) -> Any:
        if not self.stack or type(self.stack[-1]) is not kind:
            raise MalformedError(phrase("an opcode needs a {kind} that is not there", kind=kind.__name__))
        return self.stack[-1]


def _no_argument(source: _Source) -> None:
    return None


# What each admitted opcode does.


def _constant(value: Any) -> Callable[[_Machine, Any], None]:
    return lambda machine, arg: machine.push(value)


def _new(kind: type[Any]) -> Callable[[_Machine, Any], None]:
    return lambda machine, arg: machine.push(kind())


def _nothing(machine: _Machine, arg: Any) -> None:
    """PROTO and FRAME say nothing that is needed here."""


def _push_int(machine: _Machine, arg: Any) -> None:
    if arg.bit_length() > MAX_INT_BITS:
        raise MalformedError(
            phrase(
                "an integer has {bits} bits; at most {max_int_bits} are allowed",
                bits=arg.bit_length(),
                max_int_bits=MAX_INT_BITS,
            )
        )
    machine.push(arg)


def _push_bytearray(machine: _Machine, arg: Any) -> None:
    machine.push(bytes(arg))


def _mark(machine: _Machine, arg: Any) -> None:
    machine.marked.append(machine.stack)
    machine.stack = []


def _pop(machine: _Machine, arg: Any) -> None:
    if machine.stack:
        machine.pop()
    else:
        machine.pop_marked()


def _pop_mark(machine: _Machine, arg: Any) -> None:
    machine.pop_marked()


def _duplicate(machine: _Machine, arg: Any) -> None:
    value = machine.pop()
    machine.stack += [value, value]


def _memoize(machine: _Machine, arg: Any) -> None:
    _put(machine, len(machine.memo))


def _put(machine: _Machine, index: int) -> None:
    value = machine.pop()
    machine.push(value)
    machine.memo[index] = value


def _get(machine: _Machine, index: int) -> None:
    if index not in machine.memo:
        raise MalformedError(phrase("value {index} is used before it is made", index=index))
    machine.push(machine.memo[index])


def _tuple_of(count: int) -> Callable[[_Machine, Any], None]:
    def handler(machine: _Machine, arg: Any) -> None:
        items = [machine.pop() for _ in range(count)]
        machine.push(tuple(reversed(items)))

    return handler


def _marked_tuple(machine: _Machine, arg: Any) -> None:
    items = machine.pop_marked()
    machine.push(tuple(items))


def _append(machine: _Machine, arg: Any) -> None:
    item = machine.pop()
    machine.top(list).append(item)


def _appends(machine: _Machine, arg: Any) -> None:
    items = machine.pop_marked()
    machine.top(list).extend(items)


def _set_item(machine: _Machine, arg: Any) -> None:
    value, key = machine.pop(), machine.pop()
    machine.top(dict)[_key(key)] = value


def _set_items(machine: _Machine, arg: Any) -> None:
    items = machine.pop_marked()
    if len(items) % 2:
        raise MalformedError(phrase("a key has no value"))
    target = machine.top(dict)
    for index in range(0, len(items), 2):
        target[_key(items[index])] = items[index + 1]


def _add_items(machine: _Machine, arg: Any) -> None:
    items = machine.pop_marked()
    machine.top(set).update(map(_key, items))


def _frozen_set(machine: _Machine, arg: Any) -> None:
    machine.push(frozenset(map(_key, machine.pop_marked())))


def _key(key: Any) -> Any:
    """Keys are short scalars: hashing a nested tuple can take for ever, or overflow the stack."""
    short = isinstance(key, (str, bytes)) and len(key) <= MAX_KEY_LENGTH
    small = isinstance(key, int) and key.bit_length() <= 60
    if short or small or key is None or isinstance(key, float):
        return key
    raise MalformedError(
        phrase("a {kind} is a key; short strings and plain numbers are allowed", kind=type(key).__name__)
    )


def _global(machine: _Machine, arg: Any) -> None:
    module, _, name = arg.partition(" ")
    _push_global(machine, module, name)


def _stack_global(machine: _Machine, arg: Any) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise MalformedError(phrase("a global's name is not a string"))
    _push_global(machine, module, name)


def _push_global(machine: _Machine, module: str, name: str) -> None:
    if (module, name) in machine.dialect.constants:
        machine.push(machine.dialect.constants[module, name])
        return
    meaning = machine.dialect.globals.get((module, name))
    if meaning is None:
        raise machine.unsafe(phrase("run {module}.{name}", module=_printable(module), name=_printable(name)))
    machine.push(GlobalName(meaning))


def _printable(text: str) -> str:
    return repr(text[:200])[1:-1]


def _reduce(machine: _Machine, arg: Any) -> None:
    arguments, function = machine.pop(), machine.pop()
    if not isinstance(function, GlobalName) or type(arguments) is not tuple:
        raise MalformedError(phrase("something that is no function is called"))
    reducer = machine.dialect.reducers.get(function.meaning)
    if reducer is None:
        raise MalformedError(
            phrase("{meaning} is called, which only stands for a type", meaning=function.meaning)
        )
    machine.push(reducer(arguments, machine.budget))


def _fetch(machine: _Machine, arg: Any) -> None:
    if machine.dialect.fetch is None:
        raise machine.unsafe(phrase("fetch a persistent object"))
    machine.push(machine.dialect.fetch(machine.pop()))


def _build(machine: _Machine, arg: Any) -> None:
    state = machine.pop()
    if machine.dialect.attributes and machine.stack and type(machine.stack[-1]) is dict:
        return
    target = machine.pop()
    if not isinstance(target, (ArrayStandIn, DtypeStandIn)) or type(state) is not tuple:
        raise MalformedError(phrase("a state is given to something that has none"))
    target.set_state(state)
    machine.push(target)


_OPCODES: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _nothing,
    "FRAME": _nothing,
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": _new(list),
    "EMPTY_DICT": _new(dict),
    "EMPTY_SET": _new(set),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "LONG4"), _push_int),
    **dict.fromkeys(
        (
            *("BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
            *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
        ),
        _Machine.push,
    ),
    "BYTEARRAY8": _push_bytearray,
    "MARK": _mark,
    "POP": _pop,
    "POP_MARK": _pop_mark,
    "DUP": _duplicate,
    "MEMOIZE": _memoize,
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _get),
    "TUPLE": _marked_tuple,
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "APPEND": _append,
    "APPENDS": _appends,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "ADDITEMS": _add_items,
    "FROZENSET": _frozen_set,
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "BINPERSID": _fetch,
    "BUILD": _build,
}

# Opcodes that would make an object or reach outside the file, and how the refusal says it.
_UNSAFE_OPCODES = {
    "INST": "run",
    "OBJ": "make an object of a class",
    "NEWOBJ": "make an object of a class",
    "NEWOBJ_EX": "make an object of a class",
    "PERSID": "fetch the persistent object",
    "EXT1": "run the registered extension",
    "EXT2": "run the registered extension",
    "EXT4": "run the registered extension",
    "NEXT_BUFFER": "fetch a buffer from outside",
    "READONLY_BUFFER": "fetch a buffer from outside",
}
