"""``python -m benchmarks.rounding equal -- python -m pytest tests/pairs``: a command at an extreme."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from benchmarks.rounding.setting import environment


def main(arguments: list[str] | None = None) -> NoReturn:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rounding")
    parser.add_argument("rounding", help="equal, or noisy:SEED")
    parser.add_argument("command", nargs="+", help="after --")
    options = parser.parse_args(arguments)
    try:
        found = environment(options.rounding)
    except ValueError as problem:
        parser.error(str(problem))
    print(" ".join(f"{name}={value!r}" for name, value in found.items()), file=sys.stderr, flush=True)
    os.execvpe(options.command[0], options.command, {**os.environ, **found})


if __name__ == "__main__":
    main()
