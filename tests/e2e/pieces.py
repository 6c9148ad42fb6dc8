#!/usr/bin/env python3
"""Asks for a long list and then for the status, on one connection: `pieces.py SOCKET`. Prints
which answer came first, and how long the list was."""
import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.settimeout(60)
    s.sendall(b'{"id":"jobs","method":"jobs"}\n{"id":"status","method":"status"}\n')
    with s.makefile("rb") as f:
        answers = [json.loads(f.readline()) for _ in range(2)]
jobs = next(a for a in answers if a["id"] == "jobs")["result"]["jobs"]
assert len({j["id"] for j in jobs}) == len(jobs)
print(*[a["id"] for a in answers], len(jobs))
