#!/usr/bin/env python3
"""Asks for the status 20 times beside 400 connections that hold what they can of the page's server:
`webcrowd.py URL half` sends requests that never end, `webcrowd.py URL slow` hardly reads the
answers to thousands. None of them is ever idle for as long as it may be. Fails when the status is
not served."""
import socket
import sys
import threading
import urllib.request
from urllib.parse import urlsplit

at = urlsplit(sys.argv[1])
over = threading.Event()
crowd = []


def connect(small_buffers):
    s = socket.socket()
    if small_buffers:  # the second option shrinks the peer's buffer
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    s.settimeout(60)
    s.connect((at.hostname, at.port))
    return s


def begin_half(i):
    s = connect(False)
    s.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n" if i % 2 else b"G")
    return s


def begin_slow(_):
    s = connect(True)
    s.setblocking(False)
    try:
        s.send(b"GET /assets/page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000)
    except OSError:
        pass
    return s


KINDS = {"half": (begin_half, lambda s: s.send(b"X")), "slow": (begin_slow, lambda s: s.recv(16384))}
begin, go_on = KINDS[sys.argv[2]]


def drip():
    while not over.wait(2):
        for s in crowd:
            try:
                go_on(s)
            except OSError:
                pass


for i in range(400):
    crowd.append(begin(i))
threading.Thread(target=drip, daemon=True).start()
for i in range(20):
    with urllib.request.urlopen(sys.argv[1] + "api/v1/status", timeout=300) as answer:
        assert answer.status == 200
