"""Values and foreign texts, short enough for a message: never an array, a long list or a screenful.

What a user's code, a framework or an exception gives can be of any length. Whatever goes into a message, a
fix or a note goes through here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from parfocal.errors import ParfocalError
from parfocal.phrases import joined, phrase

ITEMS = 3  # of an array that are shown
LISTED = 8  # a list up to this long is shown whole: the settings of a layer are
DIGITS = 9  # a number up to this long is shown as Python writes it
LONGEST = 78  # characters of foreign text: one line of a terminal


def brief(value: Any) -> str:
    """A value in a few words: an array by dtype, shape and three numbers, a long list by its beginning."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        return _array(value)
    if isinstance(value, float):
        return repr(value) if len(repr(value)) <= DIGITS else f"{value:.7g}"
    if isinstance(value, str):
        return repr(one_line(value))
    if isinstance(value, Mapping):
        return _listed("{", (f"{brief(key)}: {brief(item)}" for key, item in value.items()), len(value), "}")
    if isinstance(value, (list, set, frozenset)) or (
        isinstance(value, tuple) and not hasattr(value, "_fields")
    ):
        start, end = ("[", "]") if isinstance(value, list) else ("(", ")")
        return _listed(
            start,
            map(brief, value),
            len(value),
            ",)" if isinstance(value, tuple) and len(value) == 1 else end,
        )
    return one_line(repr(value))


def one_line(text: str, longest: int = LONGEST) -> str:
    """Foreign text on one line: the first that says something, cut where a terminal's line ends."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if line == text and len(line) <= longest:
        return text  # with what it was made from, if it is a phrase
    return line if len(line) <= longest else f"{line[: longest - 4].rstrip()} ..."


def told(error: BaseException) -> str:
    """An exception as part of a sentence: its own words, or its kind where it has none."""
    return one_line(words_of(error)) or type(error).__name__


def words_of(error: BaseException) -> str:
    """What an exception says, for a sentence that may be translated later: not in the terminal's language."""
    return error.message if isinstance(error, ParfocalError) else str(error)


def some(names: Sequence[str], shown: int = LISTED) -> str:
    """Names in a row; of many the first, and how many more."""
    listed = joined(", ", names[:shown])
    if len(names) <= shown:
        return listed
    return phrase("{names} and {count} more", names=listed, count=len(names) - shown)


def _listed(start: str, texts: Iterable[str], count: int, end: str) -> str:
    shown = [text for text, _ in zip(texts, range(LISTED), strict=False)]
    more = [f"... ({count} in all)"] if count > len(shown) else []
    return one_line(start + ", ".join([*shown, *more]) + end)


def _array(value: Any) -> str:
    shape = list(value.shape)
    dtype = str(value.dtype).rpartition(".")[2]
    try:
        flat = value.reshape([-1])[:ITEMS].tolist()
    except (TypeError, ValueError, RuntimeError, NotImplementedError):  # no values: on the meta device
        return f"{dtype} {shape}"
    count = 1
    for length in shape:
        count *= int(length)
    shown = ", ".join(f"{item:.7g}" if isinstance(item, float) else str(item) for item in flat)
    if not shape:
        return shown
    return f"{dtype} {shape}: {shown}{', ...' if count > len(flat) else ''}"
