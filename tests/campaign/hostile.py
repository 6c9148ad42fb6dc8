#!/usr/bin/env python3
"""Two users of the machine's daemon, of whom one asks for all that a request can cost: floods of
connections, half lines, answers that nobody reads, deep and wide JSON, giant selectors and fields,
arrays of 100,000 tasks, thousands of distinct demands, walks through a history of fat jobs,
reports, waits, whole jobs files, environments. The other asks for the status, submits and waits
for ends all the while, and each of these is measured. Standard library only; for root.

    tests/campaign/hostile.py --bin DIR [--seconds 60] [--users ALICE,BOB] [--attacks a,b] [--smoke]

Without --users two accounts are made, and removed at the end. Prints p50, p99 and the longest of
each thing measured, for a quiet daemon and under attack, what the daemon took of memory, and what
the attacks were told. With --smoke it asserts that all was served, and no times."""
import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

from instance import Failure
from users import Machine, make_users

ROUNDS_MIN = 3  # however slow the machine is
ENV = ["PATH=" + os.environ["PATH"], "HOME=/"]


# --- asking ----------------------------------------------------------------------------------


class Link:
    """A connection of whoever this process is. Lines go out, answers come back by number."""

    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.connect(path)
        self.s.settimeout(300)
        self.f = self.s.makefile("rb")

    def call(self, method, params=None):
        line = b'{"id":1,"method":"%s","params":%s}\n' % (
            method.encode(), params if isinstance(params, bytes) else json.dumps(params or {}).encode())
        self.s.sendall(line)
        while True:
            text = self.f.readline()
            if not text:
                raise OSError("closed")
            if text.startswith(b'{"jsonrpc":"2.0","id"'):
                return json.loads(text)

    def close(self):
        self.f.close()
        self.s.close()


def job(command="true", **more):
    return {"command": command, "gpus": 0, **more}


def submit(jobs):
    return {"cwd": "/", "umask": 18, "env": ENV, "jobs": jobs}


# --- what the hostile one does: each is called again and again, in a process of its own ------


def flood(path, rng):
    links = []
    try:
        for _ in range(200):
            links.append(Link(path))
            links[-1].s.sendall(b'{"id":1,"method":"status"}\n' * 20)
    finally:
        for x in links:
            x.close()


def half_lines(path, rng):
    links = []
    try:
        for _ in range(20):
            links.append(Link(path))
            links[-1].s.sendall(b'{"id":1,"method":"jobs","params":{"x":"' + b"x" * 3_000_000)
    finally:
        for x in links:
            x.close()


def slow_reader(path, rng):
    links = [Link(path) for _ in range(5)]
    for x in links:
        x.s.sendall(b'{"id":1,"method":"jobs","params":{"all":true}}\n' * 10)
    time.sleep(1)  # what a client does that does not read
    for x in links:
        x.close()


def deep_json(path, rng):
    Link(path).call("status", b'{"x":' + b"[" * 1500 + b"]" * 1500 + b"}")


def wide_json(path, rng):
    size = rng.choice([1, 3, 7])
    return Link(path).call("status", b'{"x":[' + b"{}," * (size * 300_000) + b"{}]}")


def selectors(path, rng):
    link = Link(path)
    ask = [[f"1_[{3 + i}-{999999 - i}]" for i in range(4000)], [str(3 * i + 1) for i in range(5000)],
           [f"name:*{i}*x*y" for i in range(3000)], ["1"] * 20000, ["name:" + "*a" * 20000]]
    return link.call("jobs", {"select": rng.choice(ask), "all": True})


def fields(path, rng):
    return Link(path).call("jobs", {"fields": ["command"] * 10000})


def lists(path, rng):
    return Link(path).call("jobs", {"all": True})


def arrays(path, rng):
    link = Link(path)
    answer = link.call("submit", submit([job(hold=True, array="0-999998")]))
    answer = link.call("submit", submit([job(hold=True, array="0-99999")]))
    if "result" in answer:
        number = answer["result"]["ids"][0]
        link.call("hold", {"select": [f"{number}_[0-99999]"]})
        link.call("cancel", {"select": [str(number)]})
    return answer


def demands(path, rng):
    jobs = [job(gpus=1, vram_mib=rng.randrange(100, 20000), limit_ms=1000 * rng.randrange(1, 80000))
            for _ in range(1000)]
    link = Link(path)
    link.call("submit", submit(jobs))
    return link.call("jobs", {"limit": 10, "fields": ["id", "expected_start"]})


def many_same(path, rng):
    return Link(path).call("submit", submit([job(f"echo {i}", unique=True, hold=True,
                                                 after=[{"type": "any", "job": 1}])
                                             for i in range(20000)]))


def fat_jobs(path, rng):
    link = Link(path)
    params = submit([job(": " + "x" * 2_000_000)])
    params["env"] = [f"X{i}_{rng.random()}=" + "y" * 60000 for i in range(30)]
    answer = link.call("submit", params)
    if "result" in answer:
        link.call("cancel", {"select": [str(answer["result"]["ids"][0])]})
    return answer


def history(path, rng):
    return Link(path).call("jobs", {"select": [rng.choice(["name:x*", "tag:y", "user:nobody"])]})


def reports(path, rng):
    links = [Link(path) for _ in range(10)]
    for x in links:
        x.s.sendall(b'{"id":1,"method":"report","params":{}}\n' * 3)
    for x in links:
        x.f.readline()
        x.close()


def followers(path, rng):
    links = [Link(path) for _ in range(10)]
    for x in links:
        x.s.sendall(b'{"id":1,"method":"events","params":{"follow":true}}\n')
    time.sleep(1)  # what one does that never reads
    for x in links:
        x.close()


def waits(path, rng):
    link = Link(path)
    for _ in range(50):
        link.s.sendall(b'{"id":1,"method":"wait","params":{"select":["1-4000000000"]}}\n')
    time.sleep(1)
    link.close()


def files(path, rng):
    link = Link(path)
    lines = [dict(job(f"echo {i} {rng.random()}", hold=True), key=f"k{i}", line=i + 1)
             for i in range(20000)]
    return link.call("file.sync", dict(submit(lines), path="/hostile"))


def cancels(path, rng):
    link = Link(path)
    for _ in range(10):
        link.call("submit", submit([job(hold=True, name=f"c{i}") for i in range(900)]))
    link.call("hold", {"select": ["state:pending"]})
    return link.call("cancel", {"select": ["all"]})


def explains(path, rng):
    return Link(path).call("explain", {"select": ["all"]})


ATTACKS = [flood, half_lines, slow_reader, deep_json, wide_json, selectors, fields, lists, arrays,
           demands, many_same, fat_jobs, history, reports, followers, waits, files, cancels,
           explains]


def attack(path, account, what, seconds, seed, told):
    """In a process of its own, as that user, until the time is over."""
    pid = os.fork()
    if pid:
        return pid
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    rng, end, n, words = random.Random(seed), time.monotonic() + seconds, 0, {}
    while time.monotonic() < end:
        try:
            answer = what(path, rng)
            said = (answer or {}).get("error", {}).get("message", "done")[:60]
        except (OSError, ValueError) as error:
            said = type(error).__name__
        words[said] = words.get(said, 0) + 1
        n += 1
        time.sleep(0.01)
    with open(told, "a", encoding="utf-8") as f:
        most = sorted(words.items(), key=lambda x: -x[1])[:3]
        f.write(f"  {what.__name__:12} {n:6} times: "
                + "; ".join(f"{count} x {text}" for text, count in most) + "\n")
    os._exit(0)


# --- what the other one has of it ------------------------------------------------------------


class Bystander(threading.Thread):
    """Asks, submits and waits, and notes how long each took, in ms."""

    def __init__(self, path, seconds, pause):
        super().__init__()
        self.path, self.end, self.pause = path, time.monotonic() + seconds, pause
        self.times = {"status": [], "submit": [], "start+end": []}
        self.failed = []

    def run(self):
        try:
            link = Link(self.path)
            while time.monotonic() < self.end or len(self.times["start+end"]) < ROUNDS_MIN:
                self.once(link)
                time.sleep(self.pause)
        except (OSError, KeyError) as error:
            self.failed.append(repr(error))

    def take(self, what, link, method, params):
        began = time.monotonic()
        answer = link.call(method, params)
        self.times[what].append(1000 * (time.monotonic() - began))
        return answer["result"]

    def once(self, link):
        self.take("status", link, "status", {})
        ids = self.take("submit", link, "submit", submit([job()]))["ids"]
        ended = self.take("start+end", link, "wait", {"select": [str(ids[0])]})
        if ended["jobs"][0]["exit_status"] != 0:
            raise KeyError(f"job {ids[0]} ended as {ended}")


def quantile(sorted_times, q):
    return sorted_times[min(len(sorted_times) - 1, int(q * len(sorted_times)))]


def tell(title, bystander):
    print(title)
    for what, times in bystander.times.items():
        times.sort()
        if times:
            print(f"  {what:10} n={len(times):5}  p50={quantile(times, .5):8.1f}  "
                  f"p99={quantile(times, .99):8.1f}  max={times[-1]:8.1f} ms")
    for failure in bystander.failed:
        print("  failed:", failure)


def memory_mib(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) // 1024 for line in f if line.startswith(key))


def watch(path, account, seconds):
    """A bystander in a process of its own: its figures, as JSON on a pipe."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        b = Bystander(path, seconds, 0.02)
        b.run()
        with os.fdopen(w, "w") as f:
            json.dump([b.times, b.failed], f)
        os._exit(0)
    os.close(w)
    return pid, r


def figures(watched):
    pid, r = watched
    with os.fdopen(r) as f:
        times, failed = json.load(f)
    os.waitpid(pid, 0)
    b = Bystander("", 0, 0)
    b.times, b.failed = times, failed
    return b


# --- all of it -------------------------------------------------------------------------------


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", required=True)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--users")
    p.add_argument("--attacks", default=",".join(a.__name__ for a in ATTACKS))
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--smoke", action="store_true")
    args = p.parse_args()
    homes = None
    if args.users:
        users = args.users.split(",")
    else:
        homes = subprocess.run(["mktemp", "-d", "/tmp/berth-hostile.XXXXXX"], check=True,
                               capture_output=True, text=True).stdout.strip()
        os.chmod(homes, 0o755)
        users = make_users(homes)
    import pwd
    alice, bob = (pwd.getpwnam(u) for u in users)
    machine = Machine(args.bin, users)
    told = os.path.join(machine.dir, "told")
    open(told, "w", encoding="ascii").close()
    os.chmod(told, 0o666)
    path = os.path.join(machine.dir, "berth.sock")
    status = 0
    try:
        machine.open()
        calm = figures(watch(path, alice, min(10, args.seconds / 4)))
        wanted = [a for a in ATTACKS if a.__name__ in args.attacks.split(",")]
        pids = [attack(path, bob, a, args.seconds, args.seed + i, told)
                for i, a in enumerate(wanted)]
        hurt = figures(watch(path, alice, args.seconds))
        for pid in pids:
            os.waitpid(pid, 0)
        tell("quiet", calm)
        tell("under attack", hurt)
        print("memory of the daemon: now", memory_mib(machine.process.pid, "VmRSS"), "MiB, at most",
              memory_mib(machine.process.pid, "VmHWM"), "MiB")
        with open(told, encoding="utf-8") as f:
            print("attacks\n" + f.read(), end="")
        served = all(len(times) >= ROUNDS_MIN for times in hurt.times.values())
        if calm.failed or hurt.failed or not served:
            status = 1
        elif args.smoke:
            print("the bystander was served")
    except Failure as failure:
        print(failure)
        status = 1
    finally:
        machine.remove()
        if homes:
            for user in users:
                subprocess.run(["userdel", "-f", user], check=False)
            shutil.rmtree(homes, ignore_errors=True)
    sys.exit(status)


main()
