#!/usr/bin/env python3
"""Send one request to the daemon of this test, as a third-party program would: `ask.py METHOD
PARAMS`. Print the result; an error goes to stderr with status 1."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.path.join(os.environ["BERTH_DIR"], "berth.sock"))
    request = {"jsonrpc": "2.0", "id": 1, "method": sys.argv[1], "params": json.loads(sys.argv[2])}
    s.sendall(json.dumps(request).encode() + b"\n")
    answer = json.loads(s.makefile("rb").readline())
if "error" in answer:
    sys.exit(answer["error"]["message"])
print(json.dumps(answer["result"]))
