"""How alike two paths are: words with their synonyms, and numbers.

A path is split at dots, underscores, digits and capitals. Words that mean the same in different
houses (fc, linear, dense) become one; numbers are compared as a sequence, because ``layer2.0`` and
``layer0.2`` are different places.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Each line is one meaning; the first word stands for all.
_SYNONYMS = (
    "linear fc dense lin proj projection project",
    "conv convolution conv1d conv2d conv3d",
    "norm bn ln gn batchnorm layernorm groupnorm rmsnorm batch_norm layer_norm",
    "attn attention att mha mhsa multihead",
    "q query queries wq",
    "k key keys wk",
    "v value values wv",
    "o out output wo",
    "mlp ffn ff feedforward",
    "gate w1",
    "up w3",
    "down w2",
    "downsample shortcut short skip",
    "embed emb embedding embeddings embedder wte",
    "pos position positional wpe",
    "block blocks layer layers stage stages h stack",
    "head classifier cls logits",
    "token tokens tok",
    "cross encdec",
    "encoder enc",
    "decoder dec",
    "weight gamma scale kernel",
    "bias beta shift offset",
    "mean mu",
    "var variance",
)
_CANONICAL = {word: line.split()[0] for line in _SYNONYMS for word in line.split()}
# Words that say nothing about the place.
_FILLERS = frozenset({"module", "model", "modules", "func", "batch", "nn", "the", "impl", "c"})


@dataclass(frozen=True, slots=True)
class Tokens:
    """A path taken apart."""

    words: tuple[str, ...]
    numbers: tuple[int, ...]


@lru_cache(maxsize=65536)
def tokens(path: str) -> Tokens:
    """Words (canonical, fillers dropped) and numbers of a path, in order."""
    words: list[str] = []
    numbers: list[int] = []
    for piece in _WORD.findall(path):
        if piece.isdigit():
            numbers.append(int(piece))
            continue
        word = piece.lower()
        if word not in _FILLERS:
            words.append(_CANONICAL.get(word, word))
    return Tokens(tuple(words), tuple(numbers))


@lru_cache(maxsize=65536)
def plain_words(path: str) -> tuple[str, ...]:
    """The words of a path as they are written, without their synonyms."""
    return tuple(piece.lower() for piece in _WORD.findall(path) if not piece.isdigit())


def normalised(path: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Two paths with the same normal form name the same place."""
    found = tokens(path)
    return found.words, found.numbers


def word_likeness(first: str, second: str) -> float:
    """Share of words in common, 0 to 1."""
    return _share(tokens(first).words, tokens(second).words)


def number_likeness(first: str, second: str) -> float:
    """Share of numbers in common and in order, 0 to 1."""
    return _in_order(tokens(first).numbers, tokens(second).numbers)


def likeness(first: str, second: str) -> float:
    """0 to 1. Numbers count only as far as words agree: 7 in two unrelated names says nothing."""
    words = word_likeness(first, second)
    return words * (0.6 + 0.4 * number_likeness(first, second)) if words else 0.0


def likenesses(mine: Sequence[str], yours: Sequence[str]) -> NDArray[np.float64]:
    """``likeness`` of every path with every other, and exactly 1 where both name the same place."""
    words = _table([tokens(path).words for path in mine], [tokens(path).words for path in yours], _share)
    numbers = _table(
        [tokens(path).numbers for path in mine], [tokens(path).numbers for path in yours], _in_order
    )
    same = _table([normalised(path) for path in mine], [normalised(path) for path in yours], _is_same)
    return np.where(same == 1.0, 1.0, np.minimum(words * (0.6 + 0.4 * numbers), 1.0 - 1e-9))


def _table(
    mine: Sequence[Any], yours: Sequence[Any], score: Callable[[Any, Any], float]
) -> NDArray[np.float64]:
    """A score of every item with every other; equal items are asked once."""
    codes = [{item: code for code, item in enumerate(dict.fromkeys(side))} for side in (mine, yours)]
    small = np.array([[score(first, second) for second in codes[1]] for first in codes[0]])
    rows, columns = ([code[item] for item in side] for code, side in zip(codes, (mine, yours), strict=True))
    found: NDArray[np.float64] = small[np.ix_(rows, columns)]
    return found


def _is_same(first: object, second: object) -> float:
    return float(first == second)


@lru_cache(maxsize=65536)
def _share(mine: tuple[str, ...], yours: tuple[str, ...]) -> float:
    if not mine or not yours:
        return 1.0 if mine == yours else 0.0
    common = Counter(mine) & Counter(yours)
    return 2 * sum(common.values()) / (len(mine) + len(yours))


@lru_cache(maxsize=65536)
def _in_order(mine: tuple[int, ...], yours: tuple[int, ...]) -> float:
    if not mine and not yours:
        return 1.0
    if mine == yours:
        return 1.0
    return 2 * _common_subsequence(mine, yours) / (len(mine) + len(yours))


def _common_subsequence(mine: tuple[int, ...], yours: tuple[int, ...]) -> int:
    row = [0] * (len(yours) + 1)
    for number in mine:
        diagonal = 0
        for place, other in enumerate(yours, start=1):
            kept = row[place]
            row[place] = diagonal + 1 if number == other else max(row[place], row[place - 1])
            diagonal = kept
    return row[-1]
