"""A client of mgpu's old protocol, as the original's are: one JSON object a connection, answers
taken from one recv of 4096 bytes, a line a frame behind it.

  mgpu_old.py SOCKET send TEXT...   each in a connection of its own; prints the answers' statuses
  mgpu_old.py SOCKET ask JSON       prints the whole answer
  mgpu_old.py SOCKET follow JSON    an interactive job: the answer, then the frames, as they came
  mgpu_old.py SOCKET total JSON     the same, but only how much output there was, and its SHA-1
  mgpu_old.py SOCKET malformed      every request of the reference that must be refused
  mgpu_old.py SOCKET pieces JSON    byte by byte, each read by the server before the next
  mgpu_old.py SOCKET many N JSON    so many connections at once; how many answers were ok
  mgpu_old.py SOCKET rude JSON      goes away at every point of it, and at once after it
  mgpu_old.py SOCKET serve FILE     a server: says `up`, `asked`, and answers once with what FILE, a FIFO, has
"""
import fcntl
import hashlib
import json
import os
import socket
import struct
import sys
import termios
from concurrent.futures import ThreadPoolExecutor

OK = {"cmd": "submit", "user": "x", "gpus": 1, "cmdline": "true"}
MALFORMED = [
    "", "null", "[]", "{}", "true", "17", "no json", '{"cmd": "submit"', '{"cmd": "submit"} more', "\xff\xfe",
    '{"cmd": "nonsense"}', '{"cmd": null}', '{"cmd": ["queue"]}', '{"cmd": "submit"}', '{"cmd": "cancel"}',
    '{"cmd": "cancel", "job_id": 5}', '{"cmd": "cancel", "job_id": "*"}', '{"cmd": "cancel", "job_id": ""}',
    '{"cmd": "cancel", "job_id": "NOTTHERE"}', '{"cmd": "cancel", "job_id": "user:root"}', "[" * 5000,
    '{"cmd": "cancel", "job_id": ["A"]}', '{"cmd": "cancel", "job_id": "99999999999999999999999"}', '{"cmd": "cancel", "job_id": null}',
    '{"cmd": "cancel", "job_id": "\\u0000"}', '{"cmd": "Queue"}', '{"cmd": "queue "}', '{"CMD": "queue"}', '[{"cmd": "queue"}]',
    '{"cmd": "queue"}{"cmd": "queue"}', "{'cmd': 'queue'}", '{"cmd": "queue",}', "\n\n", "NaN", '{"cmd": "submit", "gpus": NaN}',
    '{"a": ' * 3000 + "1" + "}" * 3000, "x" * 300000, '{"a": "' + "x" * (20 << 20) + '"}', "\x00" * 10,
] + [json.dumps({k: v for k, v in dict(OK, **change).items() if v != "absent"}) for change in (
    {"user": "absent"}, {"gpus": "absent"}, {"cmdline": "absent"}, {"cmdline": 5}, {"cmdline": ""}, {"cmdline": "a\0b"},
    {"gpus": -1}, {"gpus": 0}, {"gpus": 1000}, {"gpus": "1"}, {"gpus": True}, {"gpus": 1.5}, {"gpus": 10**30},
    {"mem": -1}, {"mem": 0}, {"mem": 999999999}, {"mem": "4G"}, {"gpu_ids": [999]}, {"gpu_ids": ["999"]},
    {"gpu_ids": ["x"]}, {"gpu_ids": [-1]}, {"gpu_ids": "0"}, {"gpu_ids": [None]}, {"gpu_ids": [0, 0]},
    {"gpu_ids": ["1.5"]}, {"gpu_ids": [""]}, {"gpus": 2, "gpu_ids": [0]}, {"gpus": 1, "gpu_ids": [1], "mem": 15000},
    {"time_limit": -5}, {"time_limit": "1h"}, {"priority": "high"}, {"env_setup_cmd": 3},
    {"user": 5}, {"user": None}, {"user": ["root"]}, {"gpus": None}, {"gpus": [1]}, {"cmdline": None}, {"cmdline": ["true"]},
    {"cmdline": " \t\n"}, {"cmdline": "\ud800"}, {"mem": 1.5}, {"mem": True}, {"mem": [8000]}, {"mem": 10**30}, {"gpu_ids": 0},
    {"gpu_ids": {"0": 1}}, {"gpu_ids": [[0]]}, {"gpu_ids": [True]}, {"gpu_ids": [0.0]}, {"gpu_ids": ["0,1"]}, {"gpu_ids": [10**30]},
    {"gpu_ids": list(range(2000))}, {"time_limit": 1.5}, {"time_limit": 10**12}, {"time_limit": [1]}, {"priority": 1.5}, {"priority": [1]},
    {"priority": 10**30}, {"env_setup_cmd": ["x"]}, {"env_setup_cmd": False}, {"interactive": "yes"}, {"interactive": 1}, {"interactive": []},
)]


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(120)
    s.connect(path)
    return s


def send(path, text):
    s = connect(path)
    s.sendall(text.encode("latin-1") if "\xff" in text else text.encode())
    if not text:
        s.shutdown(socket.SHUT_WR)
    return json.loads(s.recv(4096))


def ask(path, text):
    s = connect(path)
    s.sendall(text.encode())
    answer = b""
    while piece := s.recv(65536):
        answer += piece
    return answer.decode()


def frames_of(path, text):
    s = connect(path)
    s.sendall(text.encode())
    yield json.loads(s.recv(4096).decode())
    rest = ""
    while piece := s.recv(4096):
        rest += piece.decode()  # each piece separately, as the original does
        *lines, rest = rest.split("\n")
        yield from map(json.loads, lines)


def follow(path, text):
    for frame in frames_of(path, text):
        if "job_id" in frame:
            frame["job_id"] = "ID"
        print(json.dumps(frame))


def total(path, text):
    output = [f["data"] for f in frames_of(path, text) if f.get("type") == "output"]
    print(sum(map(len, output)), hashlib.sha1("".join(output).encode()).hexdigest(), all(d.endswith("\n") for d in output))


def until_read(s):
    while struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, b"\0" * 4))[0]:
        pass


def pieces(path, text):
    s = connect(path)
    for byte in text.encode():
        s.sendall(bytes([byte]))
        until_read(s)
    return json.loads(s.recv(4096))


def many(path, n, text):
    callers = [connect(path) for _ in range(n)]
    for s in callers:
        s.sendall(text.encode())
    return sum(json.loads(s.recv(4096))["status"] == "ok" for s in callers)


def rude(path, text):
    for end in range(len(text) + 1):
        s = connect(path)
        s.sendall(text[:end].encode())
        s.close()


def serve(path, fifo):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    os.chmod(path, 0o666)
    s.listen()
    print("up", flush=True)
    caller = s.accept()[0]
    caller.recv(4096)
    print("asked", flush=True)
    with open(fifo) as answer:
        caller.sendall(answer.read().encode())
    caller.recv(1)


path, verb, texts = sys.argv[1], sys.argv[2], sys.argv[3:]
if verb == "send":
    for text in texts:
        print(send(path, text)["status"])
elif verb == "ask":
    print(ask(path, texts[0]))
elif verb == "follow":
    follow(path, texts[0])
elif verb == "total":
    total(path, texts[0])
elif verb == "pieces":
    print(pieces(path, texts[0])["status"])
elif verb == "many":
    print(many(path, int(texts[0]), texts[1]))
elif verb == "rude":
    rude(path, texts[0])
elif verb == "serve":
    serve(path, texts[0])
elif verb == "malformed":
    with ThreadPoolExecutor(16) as pool:
        for text, answer in zip(MALFORMED, pool.map(lambda text: send(path, text), MALFORMED)):
            if answer["status"] != "fail" or not (answer.get("msg") or answer.get("job_id")):
                sys.exit(f"{text[:80]!r}: {answer}")
    print(len(MALFORMED), "refused")
