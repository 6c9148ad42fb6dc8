#!/usr/bin/env python3
"""Ask for a long list, and before it is complete cancel job 1 and rerun job 2, which has
ended: `meanwhile.py SOCKET`. Print the order of the answers, the length of the list, and how
often it contains those two."""
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
