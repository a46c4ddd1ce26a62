"""Hand-made hostile pickles. Every one of them would create ``MARKER`` or break the interpreter."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any

MARKER = "hostile-was-here"
COMMAND = f"touch {MARKER}"

Sample = tuple[bytes, str]  # the pickle, and what the refusal must say


def unicode(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def reduce_to(function: Callable[..., Any], *arguments: Any, protocol: int = 4) -> bytes:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return function, arguments

    return pickle.dumps({"logits": Hostile()}, protocol)


def call_global(name: str, *arguments: str) -> bytes:
    """Protocol 2: call ``module attribute`` with strings."""
    return (
        b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n(" + b"".join(map(unicode, arguments)) + b"tR."
    )


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR"
FLOAT32 = b"cnumpy\ndtype\n(" + unicode("f4") + b"\x89\x88tR"
OBJECT = b"cnumpy\ndtype\n(" + unicode("O8") + b"\x89\x88tR"


def integer(value: int) -> bytes:
    data = pickle.encode_long(value)
    return b"\x8b" + struct.pack("<i", len(data)) + data


def array(shape: bytes, dtype: bytes, data: bytes) -> bytes:
    """An array whose state is made of the given pieces."""
    return b"\x80\x03" + ARRAY + b"(K\x01" + shape + dtype + b"\x89" + data + b"tb."


def nested_tuple_key(depth: int) -> bytes:
    """Hashing a deeply nested tuple overflows the C stack; a shared one takes for ever."""
    return b"\x80\x04})" + b"\x85" * depth + b"Ns."


def samples() -> dict[str, Sample]:
    import os
    import subprocess

    laughs = b"\x80\x02]q\x00" + b"".join(
        b"](" + b"h" + bytes([n]) + b"h" + bytes([n]) + b"eq" + bytes([n + 1]) for n in range(60)
    )
    return {
        "os.system": (reduce_to(os.system, COMMAND), "posix.system"),
        "os.system protocol 2": (reduce_to(os.system, COMMAND, protocol=2), "posix.system"),
        "eval": (reduce_to(eval, f"__import__('os').system({COMMAND!r})"), "builtins.eval"),
        "exec in protocol 0": (
            b"c__builtin__\nexec\n(S'import os; os.system(\"" + COMMAND.encode() + b"\")'\ntR.",
            "__builtin__.exec",
        ),
        "subprocess": (reduce_to(subprocess.Popen, ["touch", MARKER]), "subprocess.Popen"),
        "getattr chain": (
            b"\x80\x02cbuiltins\ngetattr\n(cos\n_wrap_close\nX\x08\x00\x00\x00__init__tR.",
            "builtins.getattr",
        ),
        "dotted attribute": (
            b"\x80\x04" + unicode("numpy") + unicode("ndarray.__class__.__subclasses__") + b"\x93)R.",
            "numpy.ndarray.__class__.__subclasses__",
        ),
        "numpy's own runner": (
            call_global("numpy.testing._private.utils runstring", f"import os; os.system({COMMAND!r})"),
            "numpy.testing._private.utils.runstring",
        ),
        "numpy.load": (call_global("numpy load", "other.npy"), "numpy.load"),
        "numpy.f2py": (call_global("numpy.f2py.capi_maps getinit", COMMAND), "numpy.f2py.capi_maps.getinit"),
        "reconstruct another class": (
            b"\x80\x03cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nmemmap\nK\x00\x85C\x01btR.",
            "numpy.memmap",
        ),
        "copyreg": (call_global("copyreg _reconstructor"), "copyreg._reconstructor"),
        "copyreg extension": (b"\x80\x02\x82\x01.", "run the registered extension 1"),
        "instance": (b"\x80\x02(" + unicode(COMMAND) + b"ios\nsystem\n.", "asks to run os.system"),
        "object": (b"\x80\x02(cnumpy\nndarray\no.", "make an object of a class"),
        "new object": (
            b"\x80\x02cnumpy\nndarray\n" + integer(2**40) + b"\x85\x81.",
            "make an object of a class",
        ),
        "persistent id": (b"\x80\x02Pevil\n.", "fetch the persistent object evil"),
        "binary persistent id": (b"\x80\x02" + unicode("evil") + b"Q.", "fetch a persistent object"),
        "buffer from outside": (b"\x80\x05\x97.", "fetch a buffer from outside"),
        "codecs beyond latin1": (call_global("_codecs encode", COMMAND, "zlib_codec"), "other than Latin-1"),
        "codecs decode": (call_global("_codecs decode", COMMAND, "rot13"), "_codecs.decode"),
        "defaultdict with a factory": (call_global("collections defaultdict"), "collections.defaultdict"),
        "state with __setstate__ of a dict": (
            b"\x80\x02}" + b"}" + b"b.",
            "given to something that has none",
        ),
        "call of an array": (
            b"\x80\x02" + ARRAY.replace(b"C\x01b", unicode("b")) + b")R.",
            "reconstructed from",
        ),
        "gigantic first shape": (
            ARRAY.replace(b"K\x00\x85", integer(2**60) + b"\x85") + b".",
            "reconstructed",
        ),
        "gigantic shape": (
            array(integer(2**62) + b"\x85", FLOAT32, b"C\x04\x00\x00\x00\x00"),
            "needs None bytes",
        ),
        "shape with zeros": (
            array(b"K\x00" + integer(2**62) + b"\x86", FLOAT32, b"C\x00"),
            "needs None bytes",
        ),
        "negative shape": (
            array(integer(-1) + b"\x85", FLOAT32, b"C\x04\x00\x00\x00\x00"),
            "needs None bytes",
        ),
        "too few bytes": (array(b"K\x05\x85", FLOAT32, b"C\x04\x00\x00\x00\x00"), "needs 20 bytes"),
        "objects made of bytes": (array(b"K\x01\x85", OBJECT, b"C\x08AAAAAAAA"), "its values as bytes"),
        "objects fewer than the shape": (array(b"K\x05\x85", OBJECT, b"]N\x61"), "needs 5 bytes or values"),
        "object scalar": (
            b"\x80\x03cnumpy.core.multiarray\nscalar\n(" + OBJECT + b"C\x08AAAAAAAAtR.",
            "a NumPy scalar has a wrong dtype",
        ),
        "dtype with fields": (
            b"\x80\x02" + OBJECT + b"(K\x03" + unicode("|") + b"N(" + unicode("a") + b"t}K\x08K\x01K\x00tb.",
            "structured",
        ),
        "dtype of a huge string": (
            b"\x80\x02cnumpy\ndtype\n(" + unicode("U999999999") + b"\x89\x88tR.",
            "does not exist on this machine|where a value is expected",
        ),
        "dtype that is code": (
            b"\x80\x02cnumpy\ndtype\n(" + unicode("f4,(2,2)O") + b"\x89\x88tR.",
            "none of numbers",
        ),
        "memo bomb": (b"\x80\x02Nr\xff\xff\xff\xff0j\xfe\xff\xff\xff.", "used before it is made"),
        "bytearray bomb": (b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b".", "damaged pickle"),
        "bytes bomb": (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".", "damaged pickle"),
        "frame bomb": (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"K\x01", "ends without STOP"),
        "long bomb": (b"\x80\x02" + integer(2**100_000) + b".", "100001 bits; at most 4096"),
        "text long bomb": (b"\x80\x02L" + b"9" * 100_000 + b"L\n.", "opcode LONG is not among"),
        "billion laughs": (laughs + b".", r"more than \d+ values once they are written out"),
        "list that contains itself": (b"\x80\x02]q\x00h\x00a.", "contains itself"),
        "deep nesting": (b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "nested deeper than 64"),
        "deep tuple as a key": (nested_tuple_key(200_000), "a tuple is a key"),
        "shared tuple as a key": (b"\x80\x04})" + b"2\x86" * 60 + b"Ns.", "a tuple is a key"),
        "set of tuples": (b"\x80\x04\x8f()\x85\x90.", "a tuple is a key"),
        "stack underflow": (b"\x80\x02R.", "needs more values"),
        "marks without end": (b"\x80\x02" + b"(" * 100_000 + b".", "needs more values"),
        "array without a state": (b"\x80\x03" + ARRAY + b".", "never got its values"),
        "array that contains itself": (
            b"\x80\x03" + ARRAY + b"q\x00(K\x01)" + OBJECT + b"\x89]h\x00atb.",
            "contains itself",
        ),
        "text that is no character": (
            array(
                b"K\x01\x85", b"cnumpy\ndtype\n(" + unicode("U1") + b"\x89\x88tR", b"C\x04\xff\xff\xff\x7f"
            ),
            "which is no character",
        ),
        "a function as a value": (b"\x80\x02c_codecs\nencode\n.", "holds a function"),
        "work multiplied by sharing": (
            b"\x80\x02"
            + unicode("a" * 100_000)
            + b"q\x00"
            + unicode("latin1")
            + b"q\x01c_codecs\nencode\nq\x02"
            b"0" + b"h\x02h\x00h\x01\x86R0" * 1_000 + b"N.",
            "bytes of work",
        ),
    }
