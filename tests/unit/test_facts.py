"""No code reads its own sentences: what a line has to know travels as data, and words are only shown."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "parfocal"
SENTENCES = frozenset({"message", "fix", "hint", "sentence"})  # names of what a person reads
READING = frozenset(
    (
        *("startswith", "endswith", "removeprefix", "removesuffix", "replace", "index", "find", "count"),
        *("split", "rsplit", "splitlines", "partition", "rpartition"),
    )
)  # methods of a text that look into it
PATTERNS = frozenset({"match", "fullmatch", "search", "findall", "finditer", "sub", "parse", "literal_eval"})
IDENTITY = (ast.Is, ast.IsNot)
# Where a sentence is cut to what fits, or written for a place that does not take every character.
FILES = {
    "backends/torch/checkpoints.py": "what the framework says when it refuses a file",
    "phrases.py": "the sentences themselves",
    "cli/main.py": "the lines of an error that a terminal has room for",
    "compat/padiff/pairing.py": "a word of the older tool's files",
    "compat/padiff/weight_init/weights.py": "the last line of an error, in the older tool's log",
    "explain/reproducing.py": "a sentence as a docstring",
}


def readings_in(text: str) -> Iterator[int]:
    """Lines on which code asks what a sentence says."""
    tree = ast.parse(text)
    said = set(phrases_of(tree)) | {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in constants(node.module or "")
    }
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=[how, *_], comparators=others) if not isinstance(how, IDENTITY):
                sides = [part for each in (left, *others) for part in _parts(each)]
                if any(_is_sentence(each, said) or _is_prose(each) for each in sides) and not _is_key(node):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(value=text_of, attr=method), args=args) if method in READING:
                if _is_sentence(text_of, said) or any(
                    _is_prose(each) and method != "replace" for each in args
                ):
                    yield node.lineno
            case (
                ast.Call(func=ast.Attribute(attr="get"), args=[key, *_])
                | ast.Subscript(slice=key)
                | ast.DictComp(key=key)
            ) if not _is_phrase(key):  # a table of phrases is what a reader chooses from
                if _is_sentence(key, said):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(attr=method), args=args) if method in PATTERNS:
                if any(_is_sentence(each, said) for each in args):
                    yield node.lineno


def phrases_of(tree: ast.Module) -> Iterator[str]:
    """Constants of a module that are sentences."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, value in zip(_parts(target), _parts(node.value), strict=False):
                    if isinstance(name, ast.Name) and _is_phrase(value):
                        yield name.id


@cache
def constants(module: str) -> frozenset[str]:
    """Those of another module of the package."""
    path = SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    is_ours = module.startswith("parfocal.") and path.is_file()
    return frozenset(phrases_of(ast.parse(path.read_text(encoding="utf-8")))) if is_ours else frozenset()


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]


def _is_phrase(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "phrase"


def _is_sentence(node: ast.expr, said: set[str]) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in SENTENCES
        case ast.Name(id=name):
            return name in SENTENCES or name in said
    return _is_phrase(node)


def _is_prose(node: ast.expr) -> bool:
    """Words with a space between or after them; ``<frozen ...>`` is what Python says."""
    match node:
        case ast.Constant(value=str(text)):
            return " " in text and text[0].isalpha()
    return False


def _is_key(node: ast.Compare) -> bool:
    """``"a key" in table``, and the like; a sentence is looked for in a sentence."""
    is_in = isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(node.left, ast.Constant)
    return is_in and not _is_sentence(node.comparators[0], set())


def sources() -> list[str]:
    found = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py"))]
    return [path for path in found if path not in FILES and not path.startswith("locale/")]


@pytest.mark.parametrize("path", sources())
def test_code_does_not_read_sentences(path: str) -> None:
    assert list(readings_in((SOURCE / path).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", FILES)
def test_what_is_left_out_still_has_a_reason(path: str) -> None:
    assert list(readings_in((SOURCE / path).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "code",
    [
        'cause.fix.startswith("port")',
        "lines = fix.splitlines()",
        'proof.message.replace("a", "b")',
        "first.message not in first.cause.message",
        "finding.message in told",
        'name.startswith("argument ")',
        '"mask" in cause.message',
        'how == phrase("as it is")',
        'how == "as it is"',
        'how in ("as it is", "transposed")',
        "PATTERN.finditer(cause.fix)",
        "ast.parse(fix)",
        "{each.message: each.setting for each in notes}",
        "table.get(finding.message)",
        "table[message]",
    ],
)
def test_readings_are_found(code: str) -> None:
    assert list(readings_in(code)) == [1]


@pytest.mark.parametrize(
    "definition",
    [
        'SAME = phrase("as it is")',
        'SAME, TURNED = phrase("as it is"), phrase("transposed")',
        "from parfocal.weights.plan import AS_IT_IS as SAME",
    ],
)
def test_a_constant_that_is_a_sentence_is_known(definition: str) -> None:
    assert list(readings_in(f"{definition}\nsame = rule == SAME")) == [2]


@pytest.mark.parametrize(
    "code",
    [
        'joined("; ", (each.message for each in causes))',
        "if divergence.message: pass",
        "isinstance(cause.edit, PortCode)",
        'path.split(".")',
        'name.startswith("_")',
        '"writing comparison" in found',
        "text.replace(' a', 'b')",
        "cause.edit is COPY",
        "[each.message for each in notes]",
        'table.get("message")',
        'each["message"]',
        '{phrase("top-{k} accuracy", k=k): k for k in range(5)}',
    ],
)
def test_what_only_shows_sentences_is_left_alone(code: str) -> None:
    assert list(readings_in(code)) == []
