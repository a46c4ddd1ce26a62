"""Asks one tool about cases given on the standard input, one JSON object a line, and appends the
answers to a file. Runs in the tool's own environment; dies with the case that kills the tool."""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import replace

from benchmarks.faults import tools
from benchmarks.faults.scoring import CRASHED, Answer, Case

READY = "ready\n"  # the first line: the tool is there


def main(tool: str, results: str) -> None:
    ask = tools.load(tool)
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with open(results, "a", encoding="utf-8") as file:
        file.write(READY)
        file.flush()
        for line in sys.stdin:
            began = time.perf_counter()
            try:
                answer = ask(Case(**json.loads(line)))
            except Exception as error:  # noqa: BLE001  a tool may raise anything; that is an answer, too
                answer = Answer(CRASHED, message=f"{type(error).__name__}: {_short(str(error))}")
            answer = replace(answer, seconds=time.perf_counter() - began)
            file.write(json.dumps(answer.to_json()) + "\n")
            file.flush()


def _short(text: str, limit: int = 300) -> str:
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[:limit]}..."


if __name__ == "__main__":
    main(*sys.argv[1:])
