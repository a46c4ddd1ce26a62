"""Runs the tests with each pair of versions: ``python -m tests.versions [--tests PATH ...] [PAIR ...]``.

Without arguments all pairs but the large ones, and the three suites. What came out of a whole suite is noted
in results.json, and docs/versions.md is written from that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

from tests.versions import page
from tests.versions.pairs import ENVIRONMENTS, LARGE, PAIRS, ROOT, Pair, environment, interpreter_of


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    arguments.add_argument(
        "pairs", nargs="*", help="e.g. paddle-2.6.2-torch-2.13.0; all but the large ones, if none is said"
    )
    arguments.add_argument("--tests", nargs="+", help="what to run; the three suites, if nothing is said")
    arguments.add_argument("--processes", default="2", help="of pytest")
    given = arguments.parse_args()
    known = {pair.name: pair for pair in PAIRS}
    if unknown := set(given.pairs) - known.keys():
        arguments.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    chosen = [known[name] for name in given.pairs] or [pair for pair in PAIRS if pair not in LARGE]
    missing = [pair for pair in chosen if pair.python and interpreter_of(pair.python) is None]
    if missing and not given.pairs:
        chosen = [pair for pair in chosen if pair not in missing]
    parts = [[each] for each in page.SUITES] if given.tests is None else [given.tests]
    failed = [run(pair, tests, given.processes) for pair in chosen for tests in parts]
    for pair in missing if not given.pairs else ():
        print(f"== {pair.name}: not run, there is no Python {pair.python} on this machine", flush=True)
    return int(any(failed))


def run(pair: Pair, tests: list[str], processes: str) -> bool:
    """Whether a test failed otherwise than declared."""
    started = time.perf_counter()
    python = environment(pair)
    print(f"== {pair.name}: {' '.join(tests)} ({time.perf_counter() - started:.0f} s to set up)", flush=True)
    found = ENVIRONMENTS / pair.name / "results.xml"
    found.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes]
    command += ["--dist", "worksteal", f"--junitxml={found}", *tests]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{pair.name}: pytest ended with {ended.returncode}")
    result = _read(found)
    print(f"== {pair.name}: {page.told(result)}, {time.perf_counter() - started:.0f} s", flush=True)
    if len(tests) == 1 and tests[0] in page.SUITES:
        page.note(pair, _versions(python), tests[0], result)
    return result.failed > 0


def _versions(python: Path) -> dict[str, str]:
    asked = (
        "import json, platform; from tests.versions.declared import installed;"
        "print(json.dumps({**installed(), 'python': platform.python_version()}))"
    )
    told = subprocess.run([str(python), "-c", asked], cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(told.stdout)


def _read(path: Path) -> page.Result:
    suite = ElementTree.parse(path).getroot().find("testsuite")
    assert suite is not None
    expected = sum(
        skipped.get("type") == "pytest.xfail" for case in suite for skipped in case.findall("skipped")
    )
    number = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    failed = number["failures"] + number["errors"]
    skipped = number["skipped"] - expected
    return page.Result(number["tests"] - failed - number["skipped"], expected, skipped, failed)


if __name__ == "__main__":
    sys.exit(main())
