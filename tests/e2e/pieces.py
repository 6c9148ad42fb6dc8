#!/usr/bin/env python3
"""Asks for a long list, or for another METHOD on all jobs, and then, as root on a connection of its own,
for the status: `pieces.py SOCKET [METHOD [USER]]`. With USER the first is that user's. Prints which
answer came first, and how long the list was. Where this program was too slow to see which, the
status was."""
import json
import os
import pwd
import select
import socket
import sys


def connect(uid):
    s = socket.socket(socket.AF_UNIX)
    os.seteuid(uid)  # the daemon sees this uid
    s.connect(sys.argv[1])
    os.seteuid(os.getuid())
    return s


method = sys.argv[2] if len(sys.argv) > 2 else "jobs"
uid = pwd.getpwnam(sys.argv[3]).pw_uid if len(sys.argv) > 3 else os.getuid()
params = {} if method == "jobs" else {"select": ["all"]}
with connect(uid) as long, connect(os.getuid()) as short:
    long.sendall(json.dumps({"id": method, "method": method, "params": params}).encode() + b"\n")
    short.sendall(b'{"id":"status","method":"status"}\n')
    ready = select.select([long, short], [], [], 60)[0]
    first = short if short in ready else long
    result = json.loads(long.makefile("rb").readline())["result"]
    json.loads(short.makefile("rb").readline())["result"]
jobs = result.get("jobs")
assert jobs is None or len({j["id"] for j in jobs}) == len(jobs)
order = ["status", method] if first is short else [method, "status"]
print(*order, *([] if jobs is None else [len(jobs)]))
