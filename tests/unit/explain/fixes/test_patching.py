"""Lines to write instead: the right expression is changed, in the user's spelling, or nothing is said."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parfocal.explain.fixes import patching
from parfocal.explain.fixes.finding import find_layer, find_op, find_return
from parfocal.explain.fixes.literals import written as written_as
from parfocal.explain.fixes.operands import FunctionArgument
from parfocal.explain.fixes.sources import SourceSpot, Span, read
from parfocal.explain.fixes.splicing import Patch

HEADER = """import math

import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.nn.functional import relu as act


class Block(nn.Layer):
    def forward(self, x, y, mask):
"""
FIRST = HEADER.count("\n") + 1


@dataclass(frozen=True)
class Op:
    """An op as a log keeps it."""

    name: str
    native: str
    file: str | None
    line: int | None
    span: Span | None


def written(folder: Path, body: str, header: str = HEADER) -> str:
    file = folder / "model.py"
    text = "".join(f"        {line}\n" for line in body.split("\n"))
    file.write_text(header + text)
    return str(file)


def op(file: str, fragment: str | None, name: str, native: str, line: int = FIRST) -> Op:
    """The op that a fragment of the source makes; without a fragment its columns are not known."""
    span = None
    if fragment is not None:
        text = Path(file).read_text().encode()
        start = text.index(fragment.encode())
        end = start + len(fragment.encode())
        before, upto = text[:start], text[:end]
        span = (
            *(before.count(b"\n") + 1, upto.count(b"\n") + 1),
            *(start - (before.rfind(b"\n") + 1), end - (upto.rfind(b"\n") + 1)),
        )
        line = span[0]
    return Op(name, native, file, line, span)


Edit = Callable[[SourceSpot], Patch | None]
RELU, GELU = "paddle.nn.functional.relu", "paddle.nn.functional.gelu"
TANH = "paddle.tanh"


def tell(keyword: str | None, position: int | None, old: Any, new: Any) -> Edit:
    return lambda spot: patching.telling(spot, FunctionArgument(keyword, position, old, new))


def drop(slot: str = "0") -> Edit:
    return lambda spot: patching.dropping(spot, slot)


def call(function: str, arguments: str = "") -> Edit:
    return lambda spot: patching.calling(spot, function, arguments)


def wrap(function: str, slot: str | None = None, arguments: str = "") -> Edit:
    return lambda spot: patching.wrapping(spot, function, arguments, slot)


def combine(sign: str, operand: str, slot: str | None = None) -> Edit:
    return lambda spot: patching.combining(spot, sign, operand, slot)


def order(slots: tuple[str, ...], indices: tuple[int, ...]) -> Edit:
    return lambda spot: patching.reordering(spot, slots, indices)


def invert(slot: str) -> Edit:
    return lambda spot: patching.inverting(spot, slot)


def resign(sign: str) -> Edit:
    return lambda spot: patching.resigning(spot, sign)


def append(method: str, slot: str | None = None) -> Edit:
    return lambda spot: patching.appending(spot, method, slot)


def exchange(slot: str, text: str) -> Edit:
    return lambda spot: patching.exchanging(spot, slot, text)


SOFTMAX = ("softmax", "paddle.nn.functional.softmax")
MUL, RMUL = ("mul", "paddle.Tensor.__mul__"), ("mul", "paddle.Tensor.__rmul__")
ADD = ("add", "paddle.Tensor.__add__")
CONCAT = ("concat", "paddle.concat")
# statement, the op's own text, its names, the edit, the new statement
SPELLINGS: dict[str, tuple[str, str, tuple[str, str], Edit, str]] = {
    "keyword": (
        *("x = F.softmax(x, axis=1)", "F.softmax(x, axis=1)", SOFTMAX, tell("axis", 1, 1, -1)),
        "x = F.softmax(x, axis=-1)",
    ),
    "position": (
        *("return F.softmax(x, 1)", "F.softmax(x, 1)", SOFTMAX, tell("axis", 1, 1, -1)),
        "return F.softmax(x, -1)",
    ),
    "a method's position": (
        *("x = x.sum(1).exp()", "x.sum(1)", ("sum", "paddle.Tensor.sum"), tell("axis", 1, 1, 2)),
        "x = x.sum(2).exp()",
    ),
    "not written": (
        *("x = F.gelu(x)", "F.gelu(x)", ("gelu", GELU), tell("approximate", 1, False, True)),
        "x = F.gelu(x, approximate=True)",
    ),
    "not written, trailing comma": (
        *("x = F.gelu(x,)", "F.gelu(x,)", ("gelu", GELU), tell("approximate", 1, False, True)),
        "x = F.gelu(x, approximate=True)",
    ),
    "a name instead of a number": (
        *("x = F.softmax(x, axis=dim)", "F.softmax(x, axis=dim)", SOFTMAX, tell("axis", 1, 1, -1)),
        "x = F.softmax(x, axis=-1)",
    ),
    "text": (
        *('x = F.pad(x, [1, 1], mode="constant")', 'F.pad(x, [1, 1], mode="constant")'),
        *(("pad", "paddle.nn.functional.pad"), tell("mode", 2, "constant", "reflect")),
        'x = F.pad(x, [1, 1], mode="reflect")',
    ),
    "number on the right": ("x = y * 0.5 + x", "y * 0.5", MUL, tell(None, 1, 0.5, 0.1), "x = y * 0.1 + x"),
    "number on the left": ("x = 2 * y + x", "2 * y", RMUL, tell(None, 1, 2, 0.1), "x = 0.1 * y + x"),
    "negative number": ("x = y * 0.5", "y * 0.5", MUL, tell(None, 1, 0.5, -1.5), "x = y * -1.5"),
    "negative power": (
        *("x = y ** 2", "y ** 2", ("pow", "paddle.Tensor.__pow__"), tell(None, 1, 2, -0.5)),
        "x = y ** -0.5",
    ),
    "small number": ("x = y + 1e-6", "y + 1e-6", ADD, tell(None, 1, 1e-6, 1e-5), "x = y + 1e-05"),
    "computed number": ("x = y * (1 / 8)", "y * (1 / 8)", MUL, tell(None, 1, 0.125, 0.25), "x = y * 0.25"),
    "number by name": (
        *("x = y / math.sqrt(y.shape[-1])", "y / math.sqrt(y.shape[-1])"),
        *(("div", "paddle.Tensor.__truediv__"), tell(None, 1, 8.0, 4.0), "x = y / 4.0"),
    ),
    "in place": (
        *("x *= 0.5", "x *= 0.5", ("mul", "paddle.Tensor.__mul__"), tell(None, 1, 0.5, 2.0)),
        "x *= 2.0",
    ),
    "list": (
        *("x = x.transpose([0, 2, 1, 3])", "x.transpose([0, 2, 1, 3])"),
        *(("transpose", "paddle.Tensor.transpose"), tell("perm", 1, (0, 2, 1, 3), (0, 1, 3, 2))),
        "x = x.transpose([0, 1, 3, 2])",
    ),
    "list as tuple": (
        *("x = paddle.transpose(x, perm=(0, 2, 1))", "paddle.transpose(x, perm=(0, 2, 1))"),
        *(("transpose", "paddle.transpose"), tell("perm", 1, (0, 2, 1), (1, 0, 2))),
        "x = paddle.transpose(x, perm=(1, 0, 2))",
    ),
    "list as arguments": (
        *("x = x.permute(0, 2, 1)", "x.permute(0, 2, 1)", ("transpose", "paddle.Tensor.permute")),
        *(tell("perm", 1, (0, 2, 1), (1, 0, 2)), "x = x.permute(1, 0, 2)"),
    ),
    "drop a function": ("x = F.relu(x)", "F.relu(x)", ("relu", RELU), drop(), "x = x"),
    "drop around a sum": (
        *("x = F.relu(x + y) * 2", "F.relu(x + y)", ("relu", RELU), drop(), "x = (x + y) * 2"),
    ),
    "drop a method": (
        *("y = self.head(x.detach())", "x.detach()", ("detach", "paddle.Tensor.detach"), drop()),
        "y = self.head(x)",
    ),
    "drop dropout": (
        *("x = F.dropout(x, 0.1, training=True)", "F.dropout(x, 0.1, training=True)"),
        *(("dropout", "paddle.nn.functional.dropout"), drop(), "x = x"),
    ),
    "drop an alias": ("x = act(x)", "act(x)", ("relu", RELU), drop(), "x = x"),
    "drop what the object keeps": ("x = self.relu(x)", "self.relu(x)", ("relu", RELU), drop(), "x = x"),
    "drop what the object keeps, by another name": (
        *("x = self.sigmoid(x)", "self.sigmoid(x)", ("sigmoid", "paddle.Tensor.sigmoid"), drop(), "x = x"),
    ),
    "drop an addition": (
        "return x + self.f(y) + x",
        "x + self.f(y) + x",
        ADD,
        drop(),
        "return x + self.f(y)",
    ),
    "drop a factor on the left": ("x = 2 * (x + y)", "2 * (x + y)", RMUL, drop(), "x = x + y"),
    "drop in place": ("x += y", "x += y", ADD, drop(), "pass"),
    "another function": ("x = F.relu(x)", "F.relu(x)", ("relu", RELU), call(GELU), "x = F.gelu(x)"),
    "another function for a method": (
        *("x = (x + y).tanh()", "(x + y).tanh()", ("tanh", "paddle.Tensor.tanh"), call(RELU)),
        "x = act(x + y)",
    ),
    "another function, its arguments": (
        *("x = F.relu(x)", "F.relu(x)", ("relu", RELU), call("paddle.nn.functional.softmax", "axis=-1")),
        "x = F.softmax(x, axis=-1)",
    ),
    "another function by the module's name": (
        *("x = F.relu(x)", "F.relu(x)", ("relu", RELU), call(TANH), "x = paddle.tanh(x)"),
    ),
    "one function more": ("return x + y", "x + y", ADD, wrap(TANH), "return paddle.tanh(x + y)"),
    "one function more inside": (
        *("x = paddle.matmul(x, y)", "paddle.matmul(x, y)", ("matmul", "paddle.matmul"), wrap(TANH, "1")),
        "x = paddle.matmul(x, paddle.tanh(y))",
    ),
    "one factor more": (
        *("x = F.relu(x + y)", "F.relu(x + y)", ("relu", RELU), combine("*", "0.5")),
        "x = F.relu(x + y) * 0.5",
    ),
    "one factor more inside": (
        *("x = F.relu(x + y)", "F.relu(x + y)", ("relu", RELU), combine("*", "0.5", "0")),
        "x = F.relu((x + y) * 0.5)",
    ),
    "order of a list": (
        *("x = paddle.concat([x, y], axis=1)", "paddle.concat([x, y], axis=1)", CONCAT),
        *(order(("0.0", "0.1"), (1, 0)), "x = paddle.concat([y, x], axis=1)"),
    ),
    "a list by its name, turned": (
        *("x = paddle.concat(parts)", "paddle.concat(parts)", CONCAT, order(("0.0", "0.1"), (1, 0))),
        "x = paddle.concat(parts[::-1])",
    ),
    "a list that is turned already": (
        *("x = paddle.concat(parts[::-1])", "paddle.concat(parts[::-1])", CONCAT),
        *(order(("0.0", "0.1"), (1, 0)), "x = paddle.concat(parts)"),
    ),
    "a list by its name": (
        *("x = paddle.concat(parts)", "paddle.concat(parts)", CONCAT),
        *(order(("0.0", "0.1", "0.2"), (1, 0, 2)), "x = paddle.concat([parts[1], parts[0], parts[2]])"),
    ),
    "order of operands": (
        *("x = (x + y) - y", "(x + y) - y", ("sub", "paddle.Tensor.__sub__"), order(("0", "1"), (1, 0))),
        "x = y - (x + y)",
    ),
    "order of arguments": (
        *("x = paddle.where(mask, x, y)", "paddle.where(mask, x, y)", ("where", "paddle.where")),
        *(order(("0", "1", "2"), (0, 2, 1)), "x = paddle.where(mask, y, x)"),
    ),
    "mask": (
        *("x = paddle.where(mask, x, y)", "paddle.where(mask, x, y)", ("where", "paddle.where"), invert("0")),
        "x = paddle.where(~mask, x, y)",
    ),
    "mask made there": (
        *("x = paddle.where(y > 0, x, y)", "paddle.where(y > 0, x, y)", ("where", "paddle.where")),
        *(invert("0"), "x = paddle.where(~(y > 0), x, y)"),
    ),
    "mask inverted already": (
        *("x = paddle.where(~mask, x, y)", "paddle.where(~mask, x, y)", ("where", "paddle.where")),
        *(invert("0"), "x = paddle.where(mask, x, y)"),
    ),
    "mask inverted by a function": (
        *("x = F.f(x, paddle.logical_not(mask))", "F.f(x, paddle.logical_not(mask))", ("f", "paddle.f")),
        *(invert("1"), "x = F.f(x, mask)"),
    ),
    "some of a list": (
        *("x = x.reshape([b, -1, 3, self.heads])", "x.reshape([b, -1, 3, self.heads])"),
        *(("reshape", "paddle.Tensor.reshape"), tell("shape", 1, (2, 5, 3, 4), (2, 5, 6, 2))),
        "x = x.reshape([b, -1, 6, 2])",
    ),
    "index": (
        *("y = self.f(x[:, -1])", "x[:, -1]", ("getitem", "paddle.Tensor.__getitem__")),
        *(tell("index", 1, (slice(None), -1), (slice(None), 0)), "y = self.f(x[:, 0])"),
    ),
    "index of several kinds": (
        *("y = x[..., 0:2]", "x[..., 0:2]", ("getitem", "paddle.Tensor.__getitem__")),
        *(tell("index", 1, 0, (..., None, slice(1, None, 2), slice(4))), "y = x[..., None, 1::2, :4]"),
    ),
    "another order in a list": (
        *("x = F.pad(x, [0, self.dilation])", "F.pad(x, [0, self.dilation])"),
        *(
            ("pad", "paddle.nn.functional.pad"),
            tell("pad", 1, (0, 2), (2, 0)),
            "x = F.pad(x, [self.dilation, 0])",
        ),
    ),
    "another sign": (
        *("x = y - x * 2 - 1", "y - x * 2", ("sub", "paddle.Tensor.__sub__"), resign("+")),
        "x = y + (x * 2) - 1",
    ),
    "one method more": (
        *("x = (x @ y).reshape(s)", "x @ y", ("matmul", "paddle.Tensor.__matmul__")),
        *(append("transpose([1, 0])"), "x = (x @ y).transpose([1, 0]).reshape(s)"),
    ),
    "one method more inside": (
        *(
            "x = F.relu(x + y)",
            "F.relu(x + y)",
            ("relu", RELU),
            append("t()", "0"),
            "x = F.relu((x + y).t())",
        ),
    ),
    "another tensor": (
        *("x = x + self.f(y)", "x + self.f(y)", ADD, exchange("0", "y"), "x = y + self.f(y)"),
    ),
    "one of two in a line": (
        *("x = F.relu(F.relu(x) + y)", "F.relu(x)", ("relu", RELU), drop(), "x = F.relu(x + y)"),
    ),
    "letters of several bytes": (
        *('größe = F.relu(x, name="ä")', 'F.relu(x, name="ä")', ("relu", RELU), call(GELU)),
        "größe = F.gelu(x)",
    ),
}


def changed(old: str, new: str) -> int:
    """How many of the smallest subtrees that are not in both trees' same place differ."""

    def differ(a: Any, b: Any) -> int:
        if type(a) is not type(b):
            return 1
        if isinstance(a, list):
            return 1 if len(a) != len(b) else sum(map(differ, a, b))
        if isinstance(a, ast.AST):
            return sum(differ(getattr(a, field, None), getattr(b, field, None)) for field in a._fields)
        return int(a != b)

    return differ(ast.parse(old), ast.parse(new))


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=list(SPELLINGS))
def test_every_spelling_with_its_columns(spelling: Any, tmp_path: Path) -> None:
    body, fragment, names, edit, expected = spelling
    spot = find_op(op(written(tmp_path, body), fragment, *names))
    assert spot is not None
    patch = edit(spot)
    assert patch == Patch(str(tmp_path / "model.py"), FIRST, body, expected)
    assert patch.text == f"{expected}  # model.py:{FIRST}"
    ast.parse(patch.text)


ALONE = [
    name for name in SPELLINGS if name not in ("one of two in a line", "drop an addition", "another sign")
]


@pytest.mark.parametrize("name", ALONE)
def test_without_columns_the_only_one_of_its_name_is_found(name: str, tmp_path: Path) -> None:
    body, _, names, edit, expected = SPELLINGS[name]
    spot = find_op(op(written(tmp_path, body), None, *names))
    assert spot is not None
    patch = edit(spot)
    assert patch is not None
    assert patch.new == expected


def test_a_statement_over_several_lines_becomes_one(tmp_path: Path) -> None:
    file = written(tmp_path, "x = 1\nx = F.softmax(\n    F.relu(x),  # scores\n    axis=1,\n)  # done\ny = 2")
    spot = find_op(op(file, None, *SOFTMAX, line=FIRST + 3))
    assert spot is not None
    patch = tell("axis", 1, 1, -1)(spot)
    assert patch is not None
    assert (patch.line, patch.new) == (FIRST + 1, "x = F.softmax(F.relu(x), axis=-1)")
    assert patch.old.startswith("x = F.softmax(\n")
    assert patch.old.endswith(")")


def test_a_chain_of_methods_begins_before_the_columns(tmp_path: Path) -> None:
    file = written(tmp_path, "x = (x\n     .tanh()\n     .detach())")
    spot = find_op(op(file, "detach()", "detach", "paddle.Tensor.detach"))
    assert spot is not None
    patch = drop()(spot)
    assert patch is not None
    assert patch.new == "x = x.tanh()"


def test_a_row_of_calls_is_dropped_as_a_whole(tmp_path: Path) -> None:
    body = 'x = y + self.f(x.astype("float16").astype("float32"))'
    file = written(tmp_path, body)
    first = find_op(op(file, 'x.astype("float16")', "cast", "paddle.Tensor.astype"))
    last = find_op(op(file, 'x.astype("float16").astype("float32")', "cast", "paddle.Tensor.astype"))
    assert first is not None
    assert last is not None
    patch = patching.skipping(first, last)
    assert patch is not None
    assert patch.new == "x = y + self.f(x)"
    assert patching.skipping(last, first) is None


def test_a_statement_of_its_own_is_silenced_and_no_other(tmp_path: Path) -> None:
    hook = ("register_hook", "paddle.Tensor.register_hook")
    alone = find_op(op(written(tmp_path, "x.register_hook(clip)"), None, *hook))
    assert alone is not None
    patch = patching.silencing(alone)
    assert patch is not None
    assert patch.new == "pass"
    for body in ("handle = x.register_hook(clip)", "hooks.append(x.register_hook(clip))"):
        kept = find_op(op(written(tmp_path, body), None, *hook))
        assert kept is not None
        assert patching.silencing(kept) is None


UNCERTAIN: dict[str, tuple[str, str | None, tuple[str, str], Edit]] = {
    "two of a name": ("x = F.relu(F.relu(x))", None, ("relu", RELU), drop()),
    "not there": ("x = self.f(x)", None, ("relu", RELU), drop()),
    "another number": ("x = y * 0.5", None, MUL, tell(None, 1, 0.25, 0.1)),
    "another value of a keyword": ("x = F.softmax(x, axis=1)", None, SOFTMAX, tell("axis", 1, 2, -1)),
    "options": ("x = F.gelu(x, **options)", None, ("gelu", GELU), tell("approximate", 1, False, True)),
    "unpacked": ("x = F.softmax(*given)", None, SOFTMAX, tell("axis", 1, 1, -1)),
    "a list that is unpacked": ("x = paddle.concat([*parts])", None, CONCAT, order(("0.0", "0.1"), (1, 0))),
    "two statements": ("y = 1; x = F.relu(x)", None, ("relu", RELU), drop()),
    "the head of a block": ("if F.relu(x).sum() > 0:\n    x = 1", None, ("relu", RELU), drop()),
    "in a block's line": ("if y: x = F.relu(x)", None, ("relu", RELU), drop()),
    "not imported": ("x = F.relu(x)", None, ("relu", RELU), call("torch.nn.functional.gelu")),
    "a library's own function": ("x = F.glu(x)", "F.glu(x)", ("sigmoid", "paddle.Tensor.sigmoid"), drop()),
    "no change": ("x = act(x)", None, ("relu", RELU), call(RELU)),
}


@pytest.mark.parametrize("case", UNCERTAIN.values(), ids=list(UNCERTAIN))
def test_what_is_not_certain_has_no_patch(case: Any, tmp_path: Path) -> None:
    body, fragment, names, edit = case
    spot = find_op(op(written(tmp_path, body), fragment, *names))
    assert spot is None or edit(spot) is None


def test_torch_has_one_name_for_both_sides(tmp_path: Path) -> None:
    """``self.scale * x`` and ``x * self.scale`` are one op there: neither operand is surely the number."""
    file = written(tmp_path, "x = x * self.scale")
    spot = find_op(op(file, None, "mul", "torch.Tensor.mul"))
    assert spot is not None
    assert tell(None, 1, 0.5, 0.1)(spot) is None
    literal = find_op(op(written(tmp_path, "x = 0.5 * x"), None, "mul", "torch.Tensor.mul"))
    assert literal is not None
    patch = tell(None, 1, 0.5, 0.1)(literal)
    assert patch is not None
    assert patch.new == "x = 0.1 * x"


def test_code_without_a_file_has_no_source() -> None:
    assert read("<stdin>") is None
    assert find_op(Op("relu", RELU, "<string>", 1, None)) is None
    assert find_op(Op("relu", RELU, None, None, None)) is None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    first = find_op(op(written(tmp_path, "x = F.relu(x)"), None, "relu", RELU))
    second = find_op(op(written(tmp_path, "longer = F.relu(x)"), None, "relu", RELU))
    assert first is not None
    assert second is not None
    assert second.source.segment(second.statement) == "longer = F.relu(x)"


def test_layers_and_returns(tmp_path: Path) -> None:
    file = written(tmp_path, "x = self.norm(self.layers[0](x))\nreturn self.head(x)")
    for path, expected in (
        ("block.norm", "x = self.norm(paddle.tanh(self.layers[0](x)))"),
        ("block.layers.0", "x = self.norm(self.layers[0](paddle.tanh(x)))"),
    ):
        spot = find_layer(file, FIRST, path)
        assert spot is not None
        patch = wrap(TANH, "0")(spot)
        assert patch is not None
        assert patch.new == expected
    assert find_layer(file, FIRST, "block.layers.1") is None
    end = find_return(file, FIRST - 1)
    assert end is not None
    patch = wrap(TANH)(end)
    assert patch is not None
    assert patch.text == f"return paddle.tanh(self.head(x))  # model.py:{FIRST + 1}"


def test_returns_at_several_places_or_of_several_values_are_not_chosen_from(tmp_path: Path) -> None:
    for body in ("if x:\n    return x\nreturn y", "return x, y", "return", "pass"):
        assert find_return(written(tmp_path, body), FIRST - 1) is None


def test_imports_inside_the_function_count_and_those_of_others_do_not(tmp_path: Path) -> None:
    header = "import paddle\ndef other():\n    from paddle.nn import functional as G\n\ndef forward(x):\n"
    local = written(tmp_path, "import paddle.nn.functional as L\nx = paddle.exp(x)", header)
    spot = find_op(op(local, None, "exp", "paddle.exp", line=7))
    assert spot is not None
    patch = wrap(GELU)(spot)
    assert patch is not None
    assert patch.new == "x = L.gelu(paddle.exp(x))"


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32) | st.integers(-99, 99)
OPERANDS = st.sampled_from(
    ["x", "y", "x + y", "-x", "x[:, 1]", "F.tanh(x)", "(x @ y)", "x if y else x", "2 ** x"]
)
AROUND = st.sampled_from(
    [
        *("z = {}", "return {}", "z = {} * 2", "z = 3 - {}", "z = -{}", "z = ({}).t()", "z = [{}, x]"),
        *("z += {}", "f({}, k={})", "z = {} ** {}", "z = ({}) if x else {}", "z: int = {}"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(AROUND, OPERANDS, NUMBERS, st.sampled_from(["drop", "call", "wrap", "scale", "tell"]))
def test_only_the_meant_node_changes(around: str, operand: str, value: float, kind: str) -> None:
    """Whatever stands around and inside: the tree is the old one with one node exchanged."""
    import tempfile

    marked = f"F.softmax({operand}, {value!r})"
    body = around.replace("{}", marked, 1).replace("{}", "x")
    with tempfile.TemporaryDirectory() as folder:
        spot = find_op(op(written(Path(folder), body), marked, *SOFTMAX))
        assert spot is not None
        text, edit = {
            "drop": (f"({operand})", drop()),
            "call": (f"F.gelu({operand})", call(GELU)),
            "wrap": (f"F.gelu({marked})", wrap(GELU)),
            "scale": (f"({marked} * 0.5)", combine("*", "0.5")),
            "tell": (f"F.softmax({operand}, {value + 1!r})", tell("axis", 1, value, value + 1)),
        }[kind]
        patch = edit(spot)
    if patch is None:  # a number so large that one more is the same
        assert kind == "tell"
        return
    expected = around.replace("{}", text, 1).replace("{}", "x")
    if kind == "tell":
        assert changed(patch.new, body) >= 1
        assert abs(_second(patch.new) - (value + 1)) <= 1e-9 * abs(value + 1)
        return
    assert ast.dump(ast.parse(patch.new)) == ast.dump(ast.parse(expected))


def _second(statement: str) -> Any:
    calls = [node for node in ast.walk(ast.parse(statement)) if isinstance(node, ast.Call)]
    (found,) = [node for node in calls if ast.unparse(node.func) == "F.softmax"]
    return ast.literal_eval(found.args[1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.1, "0.1"), (1e-5, "1e-05"), (0.10000000149011612, "0.1000000015"), (3, "3"), (True, "True")),
        *((64**-0.5, "0.125"), (float("-inf"), 'float("-inf")'), ("same", '"same"'), ((1, -2), "[1, -2]")),
        *((100000000.0, "100000000.0"), (1e30, "1e+30"), (-0.0, "-0.0"), (None, "None"), ([0.5], "[0.5]")),
    ],
)
def test_values_are_written_as_people_do(value: Any, text: str) -> None:
    assert written_as(value) == text
