"""Where PaDiff's folders lie unless the user says otherwise, and which process this is."""

from __future__ import annotations

import os
import sys


def beside_the_script(name: str) -> str:
    """A folder next to the script that runs, or in the working directory when there is none."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    home = os.path.dirname(os.path.abspath(script)) if script and script.endswith(".py") else None
    # With ``python -m`` the main file is a library's; the path then begins with something else.
    is_script = home is not None and bool(sys.path) and os.path.abspath(sys.path[0]) == home
    return os.path.join(home if home is not None and is_script else os.getcwd(), name)


def rank() -> int:
    """The number of this process among those launched together."""
    return int(os.environ.get("PADDLE_TRAINER_ID") or os.environ.get("RANK") or 0)


def local_rank() -> int:
    """The number among those on this machine, which share its folders."""
    return int(os.environ.get("PADDLE_RANK_IN_NODE") or os.environ.get("LOCAL_RANK") or rank())
