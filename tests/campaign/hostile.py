#!/usr/bin/env python3
"""Two users of the system daemon, one of whom makes requests as expensive as possible: floods of
connections, half lines, answers that nobody reads, deep and wide JSON, giant selectors and fields,
arrays of 100,000 tasks, thousands of distinct demands, walks through a history of fat jobs,
reports, waits, whole jobs files, environments, every verb on a queue of tens of thousands, tokens,
logs that are FIFOs, floods of output, forks, jobs that run again at once. The other asks for the
status, submits and waits for ends all the while, and each of these is measured, first under one
attack after the other, then under all of them. Standard library only; for root.

    tests/campaign/hostile.py --bin DIR [--minutes 10 | --seconds 20] [--users ALICE,BOB]
        [--attacks a,b] [--queue 50000] [--nice 15] [--apart] [--smoke]

Without --users two accounts are made, and removed at the end. Prints p50, p99 and the longest of
each thing measured, rounds of the daemon's loop that took more than 50 ms and what took most of
each, its memory and CPU, and what the attacks were told. With --smoke it asserts that each of the
bystander's jobs ended as it should and that the daemon is alive and not large, and no times.

The attackers are dozens of processes. systemd gives the daemon a share of the CPUs beside all
of a user's together. --apart does the same with groups of this campaign's own, beside which all
else on the machine counts for little, so that its figures are not those of a busy machine; --nice
lets the attackers give way where no groups can be made."""
import argparse
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from instance import Failure
from users import IN_TURN, Machine, make_users

ROUNDS_MIN = 3  # however slow the machine is
MEMORY_MAX_MIB = 1024
ENV = ["PATH=" + os.environ["PATH"], "HOME=/"]


# --- asking ----------------------------------------------------------------------------------


class Link:
    """A connection of this process's user. Sends lines and matches answers by number."""

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


# --- attacks: each is called again and again, in a process of its own -------------------------


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
    time.sleep(1)  # as a client that does not read
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
    time.sleep(1)  # as a client that never reads
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


def verb(method, **params):
    def run(path, rng):
        return Link(path).call(method, dict(params, select=[rng.choice(["all", "name:*", "state:held"])]))
    run.__name__ = method + "_all"
    return run


def patterns(path, rng):
    words = ["name:" + "*" * i + f"{i}*x*y*z" for i in range(60)]
    return Link(path).call(rng.choice(["hold", "jobs", "explain", "wait"]), {"select": words})


def tokens(path, rng):
    s = Link(path)
    for _ in range(500):
        s.s.sendall(b'{"id":1,"token":"%032x","method":"hold","params":{"select":["all"]}}\n'
                    % rng.getrandbits(128))
    return json.loads(s.f.readline())


def odd_logs(path, rng):
    home = f"/tmp/berth-hostile-{os.getuid()}"
    os.makedirs(home, exist_ok=True)
    for name, make in (("fifo", os.mkfifo), ("link", lambda p: os.symlink("/etc/shadow", p)),
                       ("loop", lambda p: os.symlink(p, p))):
        if not os.path.lexists(os.path.join(home, name)):
            make(os.path.join(home, name))
    logs = [os.path.join(home, n) for n in ("fifo", "link", "loop")] + ["/dev/full", "/proc/self/mem"]
    return Link(path).call("submit", submit([job("printf '\\033]0;x'", log=x, tags=["\u202e\u009b"])
                                             for x in logs]))


def loud(path, rng):
    return Link(path).call("submit", submit([job("yes | head -c 30000000", limit_ms=3000)]))


def forks(path, rng):
    return Link(path).call("submit", submit([job(
        "for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4 5 6 7 8; do sleep 5 & done; wait) & done; wait",
        limit_ms=1000, grace_ms=1) for _ in range(3)]))


def again(path, rng):
    return Link(path).call("submit", submit([job("exit 1", retries=50, requeue=True)
                                             for _ in range(20)]))


def hooks(path, rng):
    return Link(path).call("submit", submit([job(on_end="sleep 300")
                                             for _ in range(50)]))


def stopped(path, rng):
    """Its own client, which requests more than the socket holds, is stopped for a while."""
    pid = os.fork()
    if pid == 0:
        try:
            x = Link(path)
            x.s.sendall(b'{"id":1,"method":"jobs","params":{"all":true}}\n' * 50)
            while x.f.readline():
                pass
        finally:
            os._exit(0)
    try:
        for sig in (signal.SIGSTOP, signal.SIGCONT):
            time.sleep(0.3)  # as a user at a terminal
            os.kill(pid, sig)
        time.sleep(0.3)
    finally:  # also after its time is over: a stopped process would stay for ever
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def interactive(path, rng):
    return Link(path).call("submit", submit([job("cat", interactive=True, pty=True, rows=24, columns=80,
                                                 limit_ms=2000) for _ in range(20)]))


ATTACKS = [flood, half_lines, slow_reader, deep_json, wide_json, selectors, fields, lists, arrays,
           demands, many_same, fat_jobs, history, reports, followers, waits, files, cancels,
           explains, verb("hold"), verb("release"), verb("priority", priority=-1), verb("requeue"),
           verb("signal", signal=18), verb("wait"), verb("cancel"), patterns, tokens, odd_logs,
           loud, forks, again, hooks, stopped, interactive]


def fill(path, n):
    """Make this many pending jobs of one user, as targets for the verbs."""
    link = Link(path)
    for first in range(0, n, 10000):
        lines = [dict(job(f": {i}", hold=True, name=f"n{i}"), key=f"q{i}", line=i + 1)
                 for i in range(first, min(n, first + 10000))]
        answer = link.call("file.sync", dict(submit(lines), path="/queue", more=first + 10000 < n))
        if "error" in answer:
            raise Failure(answer["error"]["message"])
    link.close()


class Groups:
    """CPU groups of version 1 or 2, as systemd lays them out: equal shares for the daemon (of
    system.slice), the jobs (berth.slice) and the users (user.slice), with equal parts inside.
    Other programs get a hundredth beside all of them."""

    NAMES = ["", "daemon", "jobs", "users", "users/watching", "users/attacking"]

    def __init__(self):
        old = "/sys/fs/cgroup/cpu"
        root, weight, most = (old, "cpu.shares", 262144) if os.path.isdir(old) else \
            ("/sys/fs/cgroup", "cpu.weight", 10000)
        self.top = os.path.join(root, f"berth-hostile.{os.getpid()}")
        for name in self.NAMES:
            folder = os.path.join(self.top, name)
            if weight == "cpu.weight":
                self.write(os.path.join(os.path.dirname(folder.rstrip("/")), "cgroup.subtree_control"), "+cpu")
            os.mkdir(folder)
        self.write(os.path.join(self.top, weight), str(most))

    @staticmethod
    def write(path, words):
        with open(path, "w", encoding="ascii") as f:
            f.write(words)

    def procs(self, name):
        return os.path.join(self.top, name, "cgroup.procs")

    def join(self, name):
        self.write(self.procs(name), "0")

    def before(self):
        """Words to put in front of the daemon's command."""
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', self.procs("daemon")]

    def move_jobs(self, daemon):
        """This daemon's process that forks supervisors."""
        with open(f"/proc/{daemon}/task/{daemon}/children", encoding="ascii") as f:
            for pid in f.read().split():
                if os.readlink(f"/proc/{pid}/exe").endswith("/berth-shepherd"):
                    self.write(self.procs("jobs"), pid)

    def remove(self):
        for name in reversed(self.NAMES):
            try:
                os.rmdir(os.path.join(self.top, name))
            except OSError as why:  # a process that is just exiting
                print("left:", why)


class NoGroups:
    """Where the campaign's processes rank among all others."""

    def join(self, name):
        pass

    def before(self):
        return []

    def move_jobs(self, daemon):
        pass

    def remove(self):
        pass


def become(account):
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


def on_alarm(number, frame):
    raise OSError("late")


def attack(path, account, what, seconds, seed, told, args):
    """Run in a process of its own, as that user, until the time is over."""
    pid = os.fork()
    if pid:
        return pid
    args.groups.join("users/attacking")
    os.nice(args.nice)
    become(account)
    rng, end, n, words = random.Random(seed), time.monotonic() + seconds, 0, {}
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds + 0.1)  # interrupts any wait
    while time.monotonic() < end:
        try:
            time.sleep(0.01)
            answer = what(path, rng)
            said = (answer or {}).get("error", {}).get("message", "done")[:60]
        except (OSError, ValueError, KeyError) as error:
            said = type(error).__name__
        words[said] = words.get(said, 0) + 1
        n += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    with open(told, "a", encoding="utf-8") as f:
        most = sorted(words.items(), key=lambda x: -x[1])[:3]
        f.write(f"  {what.__name__:12} {n:6} times: "
                + "; ".join(f"{count} x {text}" for text, count in most) + "\n")
    os._exit(0)


# --- the bystander's measurements -------------------------------------------------------------


class Bystander:
    """Ask for the status every 50 ms, and also submit a short job each second and wait for it;
    record each duration in ms and its time."""

    def __init__(self, path):
        self.path, self.times, self.failed = path, [], []
        self.rounds = 0

    def take(self, what, link, method, params):
        began = time.monotonic()
        answer = link.call(method, params)
        self.times.append((began, what, 1000 * (time.monotonic() - began)))
        return answer["result"]

    def look(self, link):
        self.take("status", link, "status", {})
        time.sleep(0.05)

    def work(self, link):
        began = time.monotonic()
        ids = self.take("submit", link, "submit", submit([job("exit 7")]))["ids"]
        ended = self.take("end", link, "wait", {"select": [str(ids[0])]})
        run = link.call("jobs", {"select": [str(ids[0])]})["result"]["jobs"][0]
        last = run["attempts"][-1]
        for what, at, since in (("start", last["started"], run["submitted"]),
                                ("run", last["ended"], last["started"])):
            self.times.append((began, what, 1000 * (at["unix"] - since["unix"])))
        if ended["jobs"][0]["exit_status"] != 7 or len(run["attempts"]) != 1:
            raise KeyError(f"job {ids[0]} ended as {ended}")
        self.rounds += 1
        time.sleep(max(0, began + 1 - time.monotonic()))

    def loop(self, what, end, rounds_min):
        try:
            link = Link(self.path)
            while time.monotonic() < end or self.rounds < rounds_min:
                what(link)
        except (OSError, KeyError) as error:
            self.failed.append(f"{what.__name__}: {error!r}")

    def run(self, end):
        looking = threading.Thread(target=self.loop, args=(self.look, end, 0))
        looking.start()
        self.loop(self.work, end, ROUNDS_MIN)
        looking.join()


def watch(path, account, seconds, groups):
    """A bystander in a process of its own: its figures, as JSON on a pipe."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        groups.join("users/watching")
        become(account)
        b = Bystander(path)
        b.run(time.monotonic() + seconds)
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
    return times, failed


def quantile(sorted_times, q):
    return sorted_times[min(len(sorted_times) - 1, int(q * len(sorted_times)))]


def tell(title, times):
    parts = []
    for what in ("status", "submit", "start", "run", "end"):
        found = sorted(ms for _, w, ms in times if w == what)
        if found:
            parts.append(f"{what} " + "/".join(f"{quantile(found, q):.0f}" for q in (.5, .99, 1)))
    print(f"{title:14} " + "  ".join(parts) + f"  of {len(times)}")


# --- the daemon's measurements ----------------------------------------------------------------


def memory_mib(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) // 1024 for line in f if line.startswith(key))


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tell_slow_turns(machine):
    """Slow turns grouped by what took most of the time: how often, the longest, the most CPU."""
    found = {}
    for n in ("", ".1", ".2", ".3"):
        try:
            with open(os.path.join(machine.dir, "daemon.log" + n), encoding="utf-8", errors="replace") as f:
                for line in f:
                    m = re.search(r"event=slow-turn ms=(\d+) cpu_ms=(\d+) most=(\S+) most_ms=(\d+) n=(\d+)", line)
                    if m:
                        x = found.setdefault(m[3], [0, 0, 0, (0, 0)])
                        x[0] += 1
                        x[1:] = [max(a, b) for a, b in zip(x[1:], (int(m[1]), int(m[2]), (int(m[4]), int(m[5]))))]
        except FileNotFoundError:
            pass
    wall, cpu = (max((x[i] for x in found.values()), default=0) for i in (1, 2))
    n = sum(x[0] for x in found.values())
    print(f"{n} rounds of the loop over 50 ms, the longest {wall} ms, the most CPU in one {cpu} ms; by what took most")
    for what, (n, ms, cpu_ms, (most_ms, pieces)) in sorted(found.items(), key=lambda x: -x[1][2]):
        print(f"  {what:18} {n:5} times, the longest {ms} ms; at most {cpu_ms} ms of CPU in all, {most_ms} ms for this"
              f" in {pieces} pieces")


# --- everything together ----------------------------------------------------------------------


def all_of_it(args, machine, path, alice, bob, told):
    wanted = [a for a in ATTACKS if not args.attacks or a.__name__ in args.attacks.split(",")]
    failed, served = [], 0
    child = os.fork()
    if child == 0:
        become(bob)
        try:
            fill(path, args.queue)
        except (OSError, Failure) as why:
            print("not filled:", why, flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise Failure("the queue was not filled")
    print("ms, half/99 of 100/all of the times at most")
    each = args.seconds / 2 / (len(wanted) + 1)
    plan = [("quiet", [], each)] + [(a.__name__, [a], each) for a in wanted]
    if args.smoke or args.together:
        plan, each = [], args.seconds / 2
    plan.append(("all at once", wanted, args.seconds / 2))
    for title, attacks, seconds in plan:
        pids = [attack(path, bob, a, seconds, args.seed + i, told, args) for i, a in enumerate(attacks)]
        times, wrong = figures(watch(path, alice, seconds, args.groups))
        for pid in pids:
            os.waitpid(pid, 0)
        tell(title, times)
        sys.stdout.flush()
        failed += wrong
        served += sum(1 for _, w, _ in times if w == "end")
    pid = machine.process.pid
    print(f"the daemon: {memory_mib(pid, 'VmRSS')} MiB, at most {memory_mib(pid, 'VmHWM')} MiB; "
          f"{cpu_s(pid):.1f} s of CPU")
    tell_slow_turns(machine)
    with open(told, encoding="utf-8") as f:
        print("attacks\n" + f.read(), end="")
    for words in failed:
        print("failed:", words)
    if memory_mib(pid, "VmHWM") > MEMORY_MAX_MIB:
        raise Failure(f"the daemon has grown to more than {MEMORY_MAX_MIB} MiB")
    if failed or served < ROUNDS_MIN:
        raise Failure("the bystander was not served")
    print("the bystander was served")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", required=True)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--minutes", type=float)
    p.add_argument("--users")
    p.add_argument("--attacks")
    p.add_argument("--queue", type=int, default=50000, help="jobs of the hostile one that wait from the beginning")
    p.add_argument("--nice", type=int, default=0, help="by how much attackers give way to the daemon")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--apart", action="store_true", help="in CPU groups beside which others hardly count")
    p.add_argument("--together", action="store_true", help="only all attacks at once")
    p.add_argument("--smoke", action="store_true")
    args = p.parse_args()
    if args.minutes:
        args.seconds = 60 * args.minutes
    homes = None
    if args.users:
        users = args.users.split(",")
    else:
        homes = tempfile.mkdtemp(prefix="berth-hostile.")
        os.chmod(homes, 0o755)
        users = make_users(homes)
    alice, bob = (pwd.getpwnam(u) for u in users)
    machine = Machine(args.bin, users)
    told = os.path.join(machine.dir, "told")
    open(told, "w", encoding="ascii").close()
    os.chmod(told, 0o666)
    path = os.path.join(machine.dir, "berth.sock")
    status = 0
    args.groups = Groups() if args.apart else NoGroups()
    try:
        machine.open("log_level=debug", "user_max_pending=100000", "user_max_connections=256",
                     before=args.groups.before())
        args.groups.move_jobs(machine.process.pid)
        all_of_it(args, machine, path, alice, bob, told)
    except Failure as failure:
        print(failure)
        status = 1
    finally:
        machine.remove()
        args.groups.remove()
        shutil.rmtree(f"/tmp/berth-hostile-{bob.pw_uid}", ignore_errors=True)
        if homes:
            for user in users:
                # Hooks outlive a killed daemon.
                subprocess.run(["pkill", "-KILL", "-u", user], check=False)
                subprocess.run([*IN_TURN, "userdel", "-f", user], check=False)
            shutil.rmtree(homes, ignore_errors=True)
    sys.exit(status)


main()
