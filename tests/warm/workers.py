"""The processes of the guide's steps, started with the frameworks already loaded."""

from __future__ import annotations

import sys

from parfocal.workflow.guide.processes import Worker

_FRESH = Worker.command.fget


def warm_command(client: list[str]) -> property:
    """In place of ``Worker.command``: by ``client`` where it is this interpreter that is to be started."""

    def command(worker: Worker) -> list[str]:
        python, *rest = _FRESH(worker)
        return [*client, *rest] if python == sys.executable else [python, *rest]

    return property(command)
