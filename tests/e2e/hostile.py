#!/usr/bin/env python3
"""Talks nonsense to a daemon's socket: `hostile.py SOCKET`. Every complete line must be
answered with an error in words, an incomplete one with nothing, and the daemon must go on."""
import json
import socket
import sys

LINES = [
    (b"", None),
    (b"not json", -32700),
    (b"[]", -32600),
    (b"{}", -32600),
    (b'{"id":1,"method":7}', -32600),
    (b'{"id":1,"method":"submit","params":[]}', -32600),
    (b'{"id":1,"method":"no-such"}', -32601),
    (b'{"id":1,"method":"submit"}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true"}]}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true"}],"cwd":"relative"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"a\\u0000b"}],"cwd":"/"}}', -32700),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpus":-1}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpus":1e9}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","typo":1}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","argv":["x"]}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"argv":[]}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true"}],"cwd":"/","env":[3]}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpus":9}],"cwd":"/"}}', 6),
    (b'{"id":1,"method":"file.sync","params":{"path":"x","jobs":[],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"file.sync","params":{"path":"/x","jobs":[{"command":"true"}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"file.sync","params":{"path":"/x","cwd":"/","jobs":'
     b'[{"key":"a","command":"true"},{"key":"a","command":"true"}]}}', 2),
    (b'{"id":1,"method":"jobs","params":{"select":["sideways"]}}', 2),
    (b'{"id":1,"method":"jobs","params":{"select":[1]}}', 2),
    (b'{"id":1,"method":"jobs","params":{"fields":["no-such"]}}', 2),
    (b'{"id":1,"method":"jobs","params":{"select":["99999"]}}', 3),
    (b'{"id":1,"method":"cancel","params":{}}', 2),
    (b'{"id":1,"method":"wait","params":{"select":["99999"]}}', 3),
    (b'{"id":1,"method":"events","params":{"jobs":7}}', 2),
    (b'null', -32700),
    (b'"submit"', -32700),
    (b'7', -32700),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpus":1000}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","vram_mib":-5}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","vram_mib":999999999}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpu_ids":[999],"gpus":1}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpu_ids":[9],"gpus":1}],"cwd":"/"}}', 6),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpu_ids":["x"],"gpus":1}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","gpu_ids":[-1],"gpus":1}],"cwd":"/"}}', 2),
    (b'{"id":1,"method":"submit","params":{"jobs":[{"command":"true","user":"root"}],"cwd":"/"}}', 2),
    (b"[" * 5000, 6),
    (b'{"id":' + b"9" * 400 + b',"method":"status"}', -32700),
    (b"\xff\xfe\x00", -32700),
]


def ask(path, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(120)
        s.connect(path)
        s.sendall(line + b"\n" + b'{"id":"last","method":"status"}\n')
        with s.makefile("rb") as f:
            answers = [json.loads(f.readline())]
            if answers[0].get("id") != "last":
                answers.append(json.loads(f.readline()))
    return answers


def main():
    path = sys.argv[1]
    for line, code in LINES:
        answers = ask(path, line)
        first = answers[0]
        assert "result" in answers[-1], f"{line[:80]!r}: the daemon did not go on: {answers}"
        if code is not None:
            assert first.get("error", {}).get("code") == code, f"{line[:80]!r}: {first}"
            assert first["error"]["message"], f"{line[:80]!r}: no words"
    # Half a line before disconnecting; silent connections; unread answers.
    idle = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for s in idle:
        s.connect(path)
    for s in idle[:50]:
        s.sendall(b'{"id":1,"method":"sub')
    for s in idle[50:]:
        s.sendall(b'{"id":1,"method":"status"}\n' * 200)
    assert "result" in ask(path, b'{"id":1,"method":"gpus"}')[0]
    for s in idle:
        s.close()
    assert "result" in ask(path, b'{"id":1,"method":"gpus"}')[0]
    print(f"{len(LINES)} kinds of nonsense, and the daemon goes on")


main()
