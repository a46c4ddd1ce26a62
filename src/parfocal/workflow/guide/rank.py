"""One rank of a launch: ``python -m LAUNCHER rank.py ORDER.json``. Its answer is a file beside the order."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any


def main(order: Path) -> None:
    wanted = json.loads(order.read_text(encoding="utf-8"))
    folder = os.path.dirname(wanted["plan"])
    sys.path[0] = folder  # in the place of this file's own folder
    os.chdir(folder)
    threading.Thread(target=_watch, daemon=True).start()

    from parfocal.errors import ParfocalError
    from parfocal.run.launch import current_launch
    from parfocal.run.storage import write_atomically
    from parfocal.workflow.guide.launching import answer_file
    from parfocal.workflow.guide.messages import pack
    from parfocal.workflow.guide.worker import told_error

    rank = current_launch().rank
    log = os.open(wanted["given"]["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    faulthandler.enable()
    try:
        answer: dict[str, Any] = {"done": _train(wanted, rank)}
    except ParfocalError as error:
        answer = {"error": told_error(error)}
    except (Exception, SystemExit) as error:  # noqa: BLE001  told to the process that launched
        traceback.print_exc()
        answer = {"raised": f"{type(error).__name__}: {error}"}
    write_atomically(answer_file(order.parent, rank), json.dumps(pack(answer)).encode())
    sys.stdout.flush()
    sys.stderr.flush()
    if "done" not in answer:
        os._exit(1)  # the others wait for this one: the launcher ends them


def _train(wanted: dict[str, Any], rank: int) -> dict[str, Any]:
    from parfocal.workflow.guide.launching import train_rank
    from parfocal.workflow.guide.settings import read_project
    from parfocal.workflow.guide.side import GuideSide

    project = read_project(Path(wanted["plan"]))
    settings = next(each for each in project.sides if each.name == wanted["side"])
    return train_rank(GuideSide(project, settings), wanted["given"], rank)


def _watch() -> None:
    """End with the process that asked for the launch."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
