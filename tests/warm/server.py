"""The process that the others are forked from: ``python -m tests.warm.server SOCKET OWNER``.

It takes requests until the process OWNER ends: the arguments, folder and environment of a process as JSON,
with its three standard files. What comes back is the process's status, as ``subprocess`` gives it. Who asked
and is killed meanwhile takes the process along. What a process starts by ``sys.executable`` is warm as well.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
import traceback
import warnings

from tests.warm import program_of

LOADED = (
    "torch",
    "torch._dynamo",  # torch loads it with the first optimizer
    "paddle",
    "scipy.stats",
    "parfocal.cli.main",
    "parfocal.workflow.guide.joint_jobs",
    "parfocal.workflow.guide.launching",
)
LARGEST = 1 << 20  # bytes of a request


def serve(address: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LOADED:
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a process that is forked does not touch, and so copy, what was loaded
    sys.executable = program_of(address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(f"{address}.starting")
        listening.listen()
        os.rename(f"{address}.starting", address)
        while True:
            asked, _ = listening.accept()
            with asked:
                _start(asked, listening)


def _start(asked: socket.socket, listening: socket.socket) -> None:
    request, files, _, _ = socket.recv_fds(asked, LARGEST, 3)
    process = os.fork()
    if process:
        for file in files:
            os.close(file)
        threading.Thread(target=_tell_status, args=(asked.dup(), process), daemon=True).start()
        return
    try:
        listening.close()
        asked.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        status = _run(**json.loads(request))
    except BaseException:
        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _tell_status(asked: socket.socket, process: int) -> None:
    file = os.pidfd_open(process)
    ended, _, _ = select.select([file, asked], [], [])
    if file not in ended:
        signal.pidfd_send_signal(file, signal.SIGKILL)
    os.close(file)
    _, status = os.waitpid(process, 0)
    with asked, contextlib.suppress(OSError):
        asked.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _run(arguments: list[str], folder: str, environment: dict[str, str]) -> int:
    """A module, a line of code or a script, as the interpreter would run it; the status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for name in ("stdin", "stdout", "stderr"):
        old = getattr(sys, name)
        file = open(old.fileno(), old.mode, buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, file)
    if arguments[0] == "-u":  # as launchers start their ranks
        del arguments[0]
    try:
        if arguments[0] == "-c":
            sys.argv = ["-c", *arguments[2:]]
            exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
        elif arguments[0] == "-m":
            sys.argv = arguments[1:]
            sys.path.insert(0, folder)
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as stopped:
        if isinstance(stopped.code, int) or stopped.code is None:
            return stopped.code or 0
        print(stopped.code, file=sys.stderr)
        return 1
    return 0


# Whoever asks where in the user's code a call was made is not told this file.
for each in (serve, _start, _run):
    each.__code__ = each.__code__.replace(co_filename="<frozen warm>")


def main(address: str, owner: int) -> None:
    status = 0
    try:
        watched = os.pidfd_open(owner)
        # in a thread: a process that is forked there has nothing else below it on its stack
        serving = threading.Thread(target=serve, args=(address,), daemon=True)
        serving.start()
        while serving.is_alive() and not select.select([watched], [], [], 1.0)[0]:
            pass
        status = int(not serving.is_alive())
    finally:
        shutil.rmtree(os.path.dirname(address))
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
