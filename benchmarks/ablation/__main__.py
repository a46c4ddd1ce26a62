"""The command line of the package."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.ablation.switches import COUNT, OFF, SITE, TABLES, VARIABLE, changed
from parfocal.judge import limits

CATALOGUES = {
    "faults": ["benchmarks.faults", "--tools", "parfocal"],
    "trainings": ["benchmarks.training_faults"],
    "recorded": ["benchmarks.recorded_runs"],
}
TIMES = re.compile(r"[\d.]+x|[\d.]+ s\b|written to .*")  # what differs from one run to the next


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation")
    ways = parser.add_subparsers(dest="way", required=True)
    count = ways.add_parser(COUNT, help="which entries spoke while a command ran")
    count.add_argument("command", nargs="+", help="after --")
    off = ways.add_parser(OFF, help="a command without one entry, or with another number")
    off.add_argument("name")
    off.add_argument("command", nargs="+", help="after --")
    each = ways.add_parser("each", help="a catalogue without each of them")
    each.add_argument("names", nargs="*", help="these alone")
    each.add_argument("--catalogue", choices=CATALOGUES, default="faults")
    each.add_argument("--numbers", action="store_true", help="the deciding numbers, four times and a quarter")
    options = parser.parse_args(arguments)
    if options.way == COUNT:
        return counted(options.command)
    if options.way == OFF:
        check([options.name])
        return subprocess.run(
            options.command, env=environment(f"{OFF}:{options.name}"), check=False
        ).returncode
    names = options.names or (number_names() if options.numbers else entry_names())
    check(names)
    return without_each(names, options.catalogue)


def environment(setting: str, present: Mapping[str, str] = os.environ) -> dict[str, str]:
    others = [path for path in present.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**present, VARIABLE: setting, "PYTHONPATH": os.pathsep.join((str(SITE), *others))}


def entry_names() -> list[str]:
    found: dict[str, None] = {}

    def note(name: str, entry: object) -> object:
        found[name] = None
        return entry

    for module, (tables, _) in TABLES.items():
        for table in tables:
            changed(getattr(importlib.import_module(module), table), note, module)
    return list(found)


def number_names() -> list[str]:
    return [
        f"{table}.{name}{change}"
        for table, numbers in limits.tables().items()
        for name in numbers
        for change in ("*4", "/4")
    ]


def check(names: Sequence[str]) -> None:
    known = {*entry_names(), *number_names()}
    unknown = [each for each in names if re.sub(r"([*/])[\d.]+$", r"\g<1>4", each) not in known]
    if unknown:
        raise SystemExit(f"no such entry or number: {', '.join(unknown)}")


def counted(command: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        status = subprocess.run(command, env=environment(f"{COUNT}:{folder}"), check=False).returncode
        asked, spoke = (sum(each, Counter()) for each in zip(*_read(Path(folder)), strict=True))
    print(f"{'asked':>9} {'spoke':>7}  entry")
    for name in sorted(entry_names(), key=lambda name: (spoke[name], asked[name])):
        print(f"{asked[name]:>9,} {spoke[name]:>7,}  {name}")
    return status


def _read(folder: Path) -> Iterator[tuple[Counter[str], Counter[str]]]:
    yield Counter(), Counter()
    for path in folder.iterdir():
        asked, spoke = json.loads(path.read_text())
        yield Counter(asked), Counter(spoke)


def without_each(names: Sequence[str], catalogue: str) -> int:
    usual = answer(None, catalogue)
    print(f"as it is: {usual[-1]}")
    for name in names:
        changed = [line for line in answer(name, catalogue) if line not in usual]
        print(
            f"{'  ' if changed else '= '}{name}" + "".join(f"\n      {line}" for line in changed[-4:]),
            flush=True,
        )
    return 0


def answer(name: str | None, catalogue: str) -> list[str]:
    """What a catalogue prints, but for times."""
    command = [sys.executable, "-m", *CATALOGUES[catalogue], "--output", os.devnull]
    env = None if name is None else environment(f"{OFF}:{name}")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    lines = [TIMES.sub("", line).strip() for line in done.stdout.splitlines()]
    return [line for line in lines if line] or [f"failed: {done.stderr.strip().splitlines()[-1:]}"]


if __name__ == "__main__":
    sys.exit(main())
