"""Chinese text in rich's tables: broken between characters.

To rich a word ends at a space. A Chinese sentence is one long word to it, which it puts on a line of its own
and cuts off where a column is narrower.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from parfocal.columns import breaks, width_of
from parfocal.locale import CHINESE

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def wide_text_wrapped(language: str) -> Iterator[None]:
    """As long as it lasts, Chinese text is broken by our rules, all other text by rich's."""
    if language != CHINESE:
        yield
        return
    from rich.containers import Lines
    from rich.text import Text

    original = Text.wrap

    def wrap(self: Text, console: Console, width: int, **options: Any) -> Lines:
        keeps_one_line = options.get("no_wrap") or self.no_wrap
        if keeps_one_line or width < 2 or width_of(self.plain) == len(self.plain):
            return original(self, console, width, **options)
        lines = Lines()
        for line in self.split(allow_blank=True):
            for part in line.divide(breaks(line.plain, width)):
                part.rstrip()
                lines.extend(original(part, console, width, **options))
        return lines

    Text.wrap = wrap  # type: ignore[method-assign]
    try:
        yield
    finally:
        Text.wrap = original  # type: ignore[method-assign]
