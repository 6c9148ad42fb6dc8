#!/usr/bin/env python3
"""Send one request unchanged: `raw.py SOCKET METHOD <PARAMS`. Print the answer."""
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.settimeout(60)
    try:
        s.sendall(b'{"id":1,"method":"%s","params":%s}\n'
                  % (sys.argv[2].encode(), sys.stdin.buffer.read()))
    except BrokenPipeError:
        pass  # the answer with the reason came before
    sys.stdout.write(s.makefile().readline())
