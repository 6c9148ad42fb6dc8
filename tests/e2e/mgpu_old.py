"""A client of mgpu's old protocol, as the original's are: one JSON object a connection, answers
taken from one recv of 4096 bytes, a line a frame behind it.

  mgpu_old.py SOCKET send TEXT...   each in a connection of its own; prints the answers' statuses
  mgpu_old.py SOCKET ask JSON       prints the whole answer
  mgpu_old.py SOCKET follow JSON    an interactive job: the answer, then the frames, as they came
  mgpu_old.py SOCKET malformed      every request of the reference that must be refused
"""
import json
import socket
import sys

OK = {"cmd": "submit", "user": "x", "gpus": 1, "cmdline": "true"}
MALFORMED = [
    "", "null", "[]", "{}", "true", "17", "no json", '{"cmd": "submit"', '{"cmd": "submit"} more', "\xff\xfe",
    '{"cmd": "nonsense"}', '{"cmd": null}', '{"cmd": ["queue"]}', '{"cmd": "submit"}', '{"cmd": "cancel"}',
    '{"cmd": "cancel", "job_id": 5}', '{"cmd": "cancel", "job_id": "*"}', '{"cmd": "cancel", "job_id": ""}',
    '{"cmd": "cancel", "job_id": "NOTTHERE"}', '{"cmd": "cancel", "job_id": "user:root"}', "[" * 5000,
] + [json.dumps({k: v for k, v in dict(OK, **change).items() if v != "absent"}) for change in (
    {"user": "absent"}, {"gpus": "absent"}, {"cmdline": "absent"}, {"cmdline": 5}, {"cmdline": ""}, {"cmdline": "a\0b"},
    {"gpus": -1}, {"gpus": 0}, {"gpus": 1000}, {"gpus": "1"}, {"gpus": True}, {"gpus": 1.5}, {"gpus": 10**30},
    {"mem": -1}, {"mem": 0}, {"mem": 999999999}, {"mem": "4G"}, {"gpu_ids": [999]}, {"gpu_ids": ["999"]},
    {"gpu_ids": ["x"]}, {"gpu_ids": [-1]}, {"gpu_ids": "0"}, {"gpu_ids": [None]}, {"gpu_ids": [0, 0]},
    {"gpu_ids": ["1.5"]}, {"gpu_ids": [""]}, {"gpus": 2, "gpu_ids": [0]}, {"gpus": 1, "gpu_ids": [1], "mem": 15000},
    {"time_limit": -5}, {"time_limit": "1h"}, {"priority": "high"}, {"env_setup_cmd": 3},
)]


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
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


def follow(path, text):
    s = connect(path)
    s.sendall(text.encode())
    answer = json.loads(s.recv(4096).decode())
    answer["job_id"] = "ID"
    print(json.dumps(answer))
    for line in s.makefile():
        frame = json.loads(line)
        if "job_id" in frame:
            frame["job_id"] = "ID"
        print(json.dumps(frame))


path, verb, texts = sys.argv[1], sys.argv[2], sys.argv[3:]
if verb == "send":
    for text in texts:
        print(send(path, text)["status"])
elif verb == "ask":
    print(ask(path, texts[0]))
elif verb == "follow":
    follow(path, texts[0])
elif verb == "malformed":
    for text in MALFORMED:
        answer = send(path, text)
        if answer["status"] != "fail" or not (answer.get("msg") or answer.get("job_id")):
            sys.exit(f"{text[:80]!r}: {answer}")
    print(len(MALFORMED), "refused")
