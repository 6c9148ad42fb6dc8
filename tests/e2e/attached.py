#!/usr/bin/env python3
"""A client of an interactive job's socket, as in docs/protocol.md section 5, which needs no
daemon: `attached.py [--times N] SOCKET`. Prints the job's output until the end; with --times
it connects that many times, each time waiting for the answer to its hello."""
import json
import socket
import struct
import sys


def come(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    hello = json.dumps({"version": 1}).encode()
    s.sendall(b"h" + struct.pack(">I", len(hello)) + hello)
    return s


def frames(s):
    with s.makefile("rb") as f:
        while head := f.read(5):
            yield head[:1], f.read(struct.unpack(">I", head[1:])[0])


if sys.argv[1] == "--times":
    for _ in range(int(sys.argv[2])):
        with come(sys.argv[3]) as visit:
            next(frames(visit))
    sys.exit(0)
with come(sys.argv[1]) as visit:
    for kind, payload in frames(visit):
        if kind == b"o":
            sys.stdout.buffer.write(payload[8:])
            sys.stdout.buffer.flush()
        elif kind in b"xr":
            break
