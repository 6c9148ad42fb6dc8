#!/usr/bin/env python3
"""Asks for a long list, or for another METHOD on all jobs, and then for the status, on one
connection: `pieces.py SOCKET [METHOD]`. Prints which answer came first, and how long the list
was."""
import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.settimeout(60)
    method = sys.argv[2] if len(sys.argv) > 2 else "jobs"
    params = {} if method == "jobs" else {"select": ["all"]}
    s.sendall(json.dumps({"id": method, "method": method, "params": params}).encode() + b"\n")
    s.sendall(b'{"id":"status","method":"status"}\n')
    with s.makefile("rb") as f:
        answers = [json.loads(f.readline()) for _ in range(2)]
result = next(a for a in answers if a["id"] == method)["result"]
jobs = result.get("jobs")
assert jobs is None or len({j["id"] for j in jobs}) == len(jobs)
print(*[a["id"] for a in answers], *([] if jobs is None else [len(jobs)]))
