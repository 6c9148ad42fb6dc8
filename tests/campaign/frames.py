#!/usr/bin/env python3
"""Sends a daemon, and an interactive job's supervisor, a great many frames that are wrong in
every way, and checks that they stay up, answer each complete line once, serve others meanwhile,
and keep no memory and no descriptor of it. Standard library only.

    tests/campaign/frames.py --bin DIR [--seed N] [--frames 1000000] [daemon | attach]...

A failing run prints its seed; the same seed sends the same frames."""
import argparse
import json
import os
import random
import signal
import socket
import struct
import sys
import time

from instance import ENV, Daemon, Failure

BATCH = 250             # frames on one connection
ROUND = 20000           # frames for one daemon
JOB = {"argv": ["true"], "gpus": 0, "hold": True}
# Valid requests, one of each method in some variants. None stops the daemon, and their jobs do
# nothing, so mutated ones may run.
RIGHT = [
    ("submit", {"jobs": [JOB], "cwd": "/", "umask": 18, "env": ["A=b"]}),
    ("submit", {"jobs": [{"command": ":", "vram_mib": 1000, "array": "0-9,20%2", "name": "n",
                          "tags": ["t"], "hold": True, "limit_ms": 9000, "warn_signal": 10,
                          "warn_ms": 100, "on_timeout": "requeue", "max_requeues": 1}],
                "cwd": "/", "umask": 18}),
    ("submit", {"jobs": [dict(JOB, after=[{"type": "any", "job": 1}, {"type": "failed",
                                                                      "name": "n"}]),
                         dict(JOB, devices=[0, 1], cpus=1, mem_mib=10, priority=-5)],
                "cwd": "/"}),
    ("submit", {"jobs": [{"argv": ["true"], "share_permille": 500, "gpu_type": "sim",
                          "min_vram_mib": 1, "max_used_permille": 900, "hold": True,
                          "begin_us": 1, "unique": True, "preemptible": True, "retries": 1}],
                "cwd": "/", "umask": 0}),
    ("file.sync", {"path": "/fuzz", "cwd": "/", "umask": 18, "jobs": [
        dict(JOB, key="a", line=1), dict(JOB, key="b", line=2, cancel=True)]}),
    ("file.plan", {"path": "/fuzz", "cwd": "/", "jobs": [dict(JOB, key="a", line=1)]}),
    ("jobs", {"select": ["1-20", "name:n*", "tag:t", "state:held"], "limit": 5}),
    ("jobs", {"all": True, "limit": 3, "fields": ["id", "state", "command", "array"]}),
    ("jobs", {"ended": True, "limit": 3, "user": "root"}),
    ("cancel", {"select": ["7"], "grace_ms": 100}),
    ("hold", {"select": ["1", "2_[1-3]"]}),
    ("release", {"select": ["3"]}),
    ("priority", {"select": ["1-5"], "priority": 3}),
    ("requeue", {"select": ["2"]}),
    ("signal", {"select": ["1"], "signal": "USR1"}),
    ("explain", {"select": ["1"]}),
    ("wait", {"select": ["1"]}),
    ("gpu.pause", {"gpus": ["0"], "reason": "r", "drain": True}),
    ("gpu.resume", {"gpus": ["all"]}),
    ("gpus", {}),
    ("status", {}),
    ("events", {"since": 1, "limit": 5}),
    ("events", {"since": 0, "follow": True, "jobs": [1, 2]}),
    ("no.such", {"x": 1}),
]
SCALARS = [None, True, False, 0, -1, 1, 2**31, 2**32, 2**53, 2**63 - 1, -2**63, 1e308, -0.0, 0.5,
           "", "0", "\x01", "\u202e", "%s%n", "../../x", "a" * 300, "1-", "5_", "_", "name:",
           "*", "all", "-1", "1-4294967296", "0-99999999%1", [], {}, [[]], [None], {"": 0}]
NOISE = [b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\\u0000", b"\\ud800", b"1e999", b"nul",
         b"{", b"}", b"[", b"]", b"\"", b",", b":", b"\\", b"-", b"0x", b"\r", b"\t", b"//"]


# --- frames ----------------------------------------------------------------------------------


def other_tree(rng, tree):
    """The same request with one random node replaced."""
    if isinstance(tree, dict) and tree and rng.random() < 0.85:
        key = rng.choice(list(tree))
        changed = dict(tree)
        roll = rng.random()
        if roll < 0.1:
            del changed[key]
        elif roll < 0.2:
            changed[rng.choice(["", "x", "uid", "user", key * 2])] = changed.pop(key)
        else:
            changed[key] = other_tree(rng, tree[key])
        return changed
    if isinstance(tree, list) and tree and rng.random() < 0.85:
        at = rng.randrange(len(tree))
        roll = rng.random()
        middle = [] if roll < 0.1 else tree[at:at + 1] * rng.choice([2, 40]) if roll < 0.2 else [
            other_tree(rng, tree[at])]
        return tree[:at] + middle + tree[at + 1:]
    return rng.choice(SCALARS)


def other_bytes(rng, line):
    """The same with some bytes flipped, cut, doubled, or replaced by noise."""
    line = bytearray(line)
    for _ in range(rng.choice([1, 1, 2, 5])):
        a, roll = rng.randrange(len(line) + 1), rng.random()
        b = min(len(line), a + rng.choice([1, 2, 8, 60]))
        if roll < 0.4 and a < len(line):
            line[a] ^= 1 << rng.randrange(8)
        elif roll < 0.6:
            del line[a:b]
        elif roll < 0.75:
            line[a:a] = line[a:b]
        else:
            line[a:a] = rng.choice(NOISE)
    return bytes(line).replace(b"\n", b" ")


def one_frame(rng, n):
    """A line, without its newline."""
    method, params = RIGHT[rng.randrange(len(RIGHT))]
    request = {"jsonrpc": "2.0", "id": n, "method": method, "params": params}
    roll = rng.random()
    if roll < 0.05:
        return rng.randbytes(rng.choice([1, 20, 500])).replace(b"\n", b" ")
    if roll < 0.06:
        return rng.choice([b"[", b"{\"a\":", b"[{\"params\":"]) * rng.choice([100, 3000])
    if roll < 0.5:
        request = other_tree(rng, request)
    line = json.dumps(request).encode()
    return other_bytes(rng, line) if roll > 0.4 else line


def a_monster(rng):
    """Rarer cases, as they cost more: megabytes in a line."""
    size = rng.choice([1 << 20, 3 << 20])
    return rng.choice([
        b'{"id":1,"method":"status","params":{"x":"' + b"a" * size + b'"}}',
        b'{"id":1,"method":"jobs","params":{"select":[' + b'"1",' * (size // 64) + b'"1"]}}',
        b'{"id":1,"method":"submit","params":{"jobs":[' + b"{}," * (size // 64) + b'{}]}}',
        b"x" * size,
        b"[" * size,
    ])


# --- the daemon ------------------------------------------------------------------------------


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)  # waits while others queue; with a timeout it would not
    s.settimeout(300)
    return s


def read_answers(f, asked):
    """Read until the answer to the last request, which is valid. Every line must answer one of
    our requests, and each request gets at most one answer."""
    answered = right = 0
    while True:
        line = f.readline()
        if not line.endswith(b"\n"):
            raise Failure("the daemon hung up")
        answer = json.loads(line)
        if "method" in answer:
            continue  # an event: a mutated request asked to follow
        if answer.get("id") == "last":
            if "result" not in answer:
                raise Failure(f"the right request was refused: {answer}")
            break
        answered += 1
        right += "result" in answer
        error = answer.get("error")
        if error is not None and not (error["message"] and isinstance(error["code"], int)):
            raise Failure(f"an error without words: {answer}")
    if answered > asked:
        raise Failure(f"{answered} answers to {asked} requests")
    return right


def one_batch(rng, path, n):
    """Send some frames, then a valid one whose answer must come; now and then half a frame
    before disconnecting, or an unwanted descriptor."""
    frames = [one_frame(rng, n + i) for i in range(BATCH)]
    if rng.random() < 0.02:
        frames[rng.randrange(BATCH)] = a_monster(rng)
    last = b'{"id":"last","method":"status"}\n'
    whole = b"".join(frame + b"\n" for frame in frames)
    with connect(path) as s, s.makefile("rb") as f:
        if rng.random() < 0.1:
            sent = socket.send_fds(s, [whole], [s.fileno(), 0, 1, 2])
            s.sendall(whole[sent:])
        else:
            s.sendall(whole)
        if rng.random() < 0.1:
            s.sendall(frames[0][:rng.randrange(len(frames[0]) + 1)])
            return 0
        s.sendall(last)
        return read_answers(f, BATCH)


def kib_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def ask(witness, method, params):
    """A client with valid requests only, on a connection that stays."""
    s, f = witness
    s.sendall(json.dumps({"id": "w", "method": method, "params": params}).encode() + b"\n")
    answer = json.loads(f.readline())
    if answer.get("id") != "w" or "result" not in answer:
        raise Failure(f"the witness asked {method} and got {answer}")
    return answer["result"]


def clear(daemon, witness):
    """Remove accepted jobs, so that the frames are measured and not a queue."""
    ask(witness, "gpu.resume", {"gpus": ["all"]})
    ids = [row[0] for row in ask(witness, "jobs", {"fields": ["id"]})["rows"]]
    if ids:
        ask(witness, "cancel", {"select": [f"{min(ids)}-{max(ids)}"], "grace_ms": 0})
        ask(witness, "wait", {"select": [f"{min(ids)}-{max(ids)}"]})


def send_round(daemon, rng, frames):
    """Send that many frames to one daemon. Returns how many were valid, and its growth in KiB."""
    path = os.path.join(daemon.dir, "berth.sock")
    first_kib, right = None, 0
    daemon.start(options=["--set", "user_max_pending=3000", "--set", "log_level=error"])
    pid = daemon.process.pid
    s = connect(path)
    witness = (s, s.makefile("rb"))
    ask(witness, "gpus", {})
    descriptors = descriptors_of(pid)
    for n in range(0, frames, BATCH):
        right += one_batch(rng, path, n)
        ask(witness, "gpus", {})
        if n // BATCH % 20 == 19:
            clear(daemon, witness)
            first_kib = first_kib or kib_of(pid)
    clear(daemon, witness)
    if daemon.process.poll() is not None:
        raise Failure("the daemon has died")
    left = descriptors_of(pid) - descriptors
    if left > 0:
        raise Failure(f"the daemon has {left} descriptors more than before")
    job = {"command": "exit 7", "gpus": 0}
    job = ask(witness, "submit", {"jobs": [job], "cwd": "/", "umask": 18, "env": ENV})["ids"][0]
    if ask(witness, "wait", {"select": [str(job)]})["jobs"][0]["exit_status"] != 7:
        raise Failure("a job came out wrong afterwards")
    s.close()
    return right, kib_of(pid) - (first_kib or kib_of(pid))


def fuzz_daemon(args, rng):
    """Frames to the daemon. It is replaced after a number of them, because accepted jobs
    become a history that makes every later question slower, which is not tested here."""
    right = grown = 0
    for n in range(0, args.frames, ROUND):
        daemon = Daemon(args.bin, sim="2")
        try:
            more, kib = send_round(daemon, rng, min(ROUND, args.frames - n))
        finally:
            daemon.remove()
        right, grown = right + more, max(grown, kib)
        if grown > args.growth_mib * 1024:
            raise Failure(f"the daemon has grown by {grown} KiB")
    # Mutations that leave no frame valid exercise one line of code only, and find nothing.
    if not args.frames // 10 < right < args.frames:
        raise Failure(f"{right} frames were taken as right")
    return f"{args.frames} frames, {right} of them right, at most {grown} KiB of growth"


# --- an interactive job's supervisor ---------------------------------------------------------


def attach_frame(kind, payload):
    return kind + struct.pack(">I", len(payload)) + payload


HELLOS = [b'{"version":1}', b'{"version":1,"offset":0,"input":true}', b'{"tail":-1}', b"[]",
          b'{"version":1,"tail":100,"rows":0,"columns":70000}', b'{"offset":99999999999999}',
          b"", b"\xff", b'{"version":2,"rows":1e9}', b"{" * 500]


def attach_noise(rng):
    roll = rng.random()
    if roll < 0.3:  # never with the right to type, so that the command's input stays its own
        hello = attach_frame(b"h", rng.choice(HELLOS).replace(b"true", b"false"))
        return hello if roll < 0.2 else other_bytes(rng, hello).replace(b"true", b"false")
    if roll < 0.6:
        kind = rng.choice([b"i", b"e", b"w", b"x", b"o", b"r", b"z", b"\0"])
        return attach_frame(kind, rng.randbytes(rng.choice([0, 1, 3, 4, 5, 900])))
    if roll < 0.65:
        return rng.choice([b"i", b"h"]) + struct.pack(">I", rng.choice([65537, 2**31, 2**32 - 1]))
    return rng.randbytes(rng.choice([1, 5, 64]))


def supervisor_of(daemon, job):
    """The pid of the job's supervisor: the parent of the job's command."""
    for pid in daemon.processes():
        with open(f"/proc/{pid}/stat") as f:
            parent = int(f.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{parent}/comm") as f:
            if f.read().startswith("berth-shep"):
                return parent
    raise Failure(f"job {job} has no supervisor")


def fuzz_attach(args, rng):
    """Frames to the supervisor of an interactive job, which then ends with all its output."""
    daemon = Daemon(args.bin, sim="1")
    frames = args.frames // 4
    gate = os.path.join(daemon.dir, "gate")
    os.mkfifo(gate)
    try:
        daemon.start()
        job = {"command": f"seq 20000; read x <{gate}; seq 20000 30000; exit 7", "gpus": 0,
               "interactive": True}
        daemon.call("submit", {"jobs": [job], "cwd": daemon.marks, "umask": 18,
                               "env": ENV + ["BERTH_SUBMIT_DIR=" + daemon.marks]})
        path = os.path.join(daemon.dir, "attach", "1.1.sock")
        while not os.path.exists(path) or not daemon.processes():
            time.sleep(0.01)
        shepherd = supervisor_of(daemon, 1)
        before = descriptors_of(shepherd)
        n = 0
        while n < frames:
            with connect(path) as s:
                for _ in range(rng.randrange(1, 60)):
                    try:
                        s.sendall(attach_noise(rng))
                    except (BrokenPipeError, ConnectionResetError):
                        break  # it disconnected us
                    n += 1
        with connect(path) as s, s.makefile("rb") as f:
            s.sendall(attach_frame(b"h", b'{"version":1,"offset":0}'))
            with open(gate, "w") as g:
                g.write("go\n")
            output, record = read_stream(f)
        want = "".join(f"{i}\n" for i in [*range(1, 20001), *range(20000, 30001)]).encode()
        if output != want:
            raise Failure(f"{len(output)} bytes of output instead of {len(want)}")
        if record.get("code") != 7:
            raise Failure(f"the record says {record}")
        if before > 40:
            raise Failure(f"the supervisor had {before} descriptors to begin with")
        daemon.call("wait", {"select": ["1"]})
    finally:
        daemon.remove()
    return f"{n} frames to a supervisor"


def read_stream(f):
    """The output must be complete, and the exit record right."""
    output = b""
    while True:
        head = f.read(5)
        if len(head) < 5:
            raise Failure("the supervisor hung up before the end")
        payload = f.read(struct.unpack(">I", head[1:])[0])
        if head[:1] == b"o":
            at = struct.unpack(">Q", payload[:8])[0]
            output = output[:at] + payload[8:]
        elif head[:1] == b"x":
            return output, json.loads(payload)
        elif head[:1] == b"r":
            raise Failure(f"refused: {payload.decode()}")


CAMPAIGNS = {"daemon": fuzz_daemon, "attach": fuzz_attach}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--bin", required=True, help="folder of the programs")
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--frames", type=int, default=1000000)
    p.add_argument("--growth-mib", type=int, default=64, help="by how much a daemon may grow, "
                   "beyond what its first frames made of it; sanitizers keep what was freed")
    p.add_argument("names", nargs="*", help="which: " + ", ".join(CAMPAIGNS))
    args = p.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 30)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    failed = 0
    for name in args.names or CAMPAIGNS:
        started = time.monotonic()
        try:
            what = CAMPAIGNS[name](args, random.Random(seed))
            print(f"ok   {name}: {what}, {time.monotonic() - started:.1f} s", flush=True)
        except (Failure, OSError, ValueError) as e:
            failed += 1
            print(f"FAIL {name} (--seed {seed}): {e!r}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
