#!/usr/bin/env python3
"""Asks for a long list, and before it is complete cancels job 1 and runs job 2 again, which has
ended: `meanwhile.py SOCKET`. Prints in which order the answers came, how long the list was, and
how often it has those two."""
import json
import socket
import sys

REQUESTS = [
    {"id": "jobs", "method": "jobs", "params": {"all": True, "fields": ["id"]}},
    {"id": "cancel", "method": "cancel", "params": {"select": ["1"]}},
    {"id": "requeue", "method": "requeue", "params": {"select": ["2"], "hold": True}},
]

with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.settimeout(60)
    s.sendall("".join(json.dumps(r) + "\n" for r in REQUESTS).encode())
    with s.makefile("rb") as f:
        answers = [json.loads(f.readline()) for _ in REQUESTS]
assert not any("error" in a for a in answers), answers
ids = [row[0] for row in next(a for a in answers if a["id"] == "jobs")["result"]["rows"]]
print(*[a["id"] for a in answers], len(ids), ids.count(1), ids.count(2))
