#!/usr/bin/env python3
"""Connections from very many users at the same time, as only root can make them: `crowd.py SOCKET`.
A user has as many as allowed; when all places are taken, a user without one still gets one, and none
of the connections that make way waits for an answer. Job 1 must not end."""
import json
import os
import socket
import sys

FIRST = 3_000_000_000  # far above accounts, and ranges of /etc/subuid


def connect(uid):
    s = socket.socket(socket.AF_UNIX)
    os.seteuid(uid)
    try:
        s.connect(sys.argv[1])
    finally:
        os.seteuid(0)
    s.settimeout(20)
    return s


def ask(s):
    """The error's text, or None if the request succeeded."""
    try:
        s.sendall(b'{"id":1,"method":"gpus"}\n')
    except BrokenPipeError:
        pass
    answer = json.loads(s.makefile().readline())
    return answer["error"]["message"] if "error" in answer else None


def main():
    kept = [connect(FIRST + i) for i in range(250) for _ in range(4)]
    waiting = kept[3::4]  # the newest goes first, unless it is in use
    for s in waiting:
        s.sendall(b'{"id":2,"method":"wait","params":{"select":["1"]}}\n')
        ask(s)  # answered at once, so the other request has been read
    kept += [connect(FIRST + i) for i in range(250, 300) for _ in range(4)]
    words = ask(kept[3])
    assert words is None, f"the fourth connection was refused: {words}"
    words = ask(connect(FIRST))
    assert words, "a fifth connection was let in"
    print(words)
    words = ask(connect(FIRST + 1000))
    assert words is None, f"who has no connection was refused: {words}"
    print("the newcomer is answered")
    for s in waiting:
        s.setblocking(False)
        try:
            assert False, f"a connection that waits was told: {s.recv(1000)}"
        except BlockingIOError:
            pass
    for s in kept:
        s.close()


main()
