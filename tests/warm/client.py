"""Stands for the interpreter: has the warm process run what it is given, and ends as that ends.

``python -I -S client.py SOCKET -m module ...``: a few milliseconds, as it loads nothing.
"""

import json
import os
import socket
import sys

address, *arguments = sys.argv[1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
    asking.connect(address)
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    socket.send_fds(asking, [json.dumps(request).encode()], [0, 1, 2])
    for file in (0, 1):  # which the other process has now: its reader is to see the end of it
        os.close(file)
    status = int(asking.recv(16) or b"1")
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
