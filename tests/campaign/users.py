#!/usr/bin/env python3
"""Kills the machine's daemon at random moments under jobs of two real users and of every kind,
and with it supervisors and probes; and checks what must never break: each attempt
runs once, never two of a job side by side, each outcome is the true one (LOST only where the
supervisor was killed), each file is its user's, attached clients miss no byte, nothing is left
behind. Standard library only; for root.

    tests/campaign/users.py --bin DIR [--seed N] [--cycles 1000] [--users ALICE,BOB]

Without --users two accounts are made, and removed at the end. Every --round cycles all jobs are
waited for and looked at. A failing run prints its seed; the same seed gives the same jobs and the
same sequence of delays."""
import argparse
import glob
import json
import os
import pwd
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from instance import Daemon, Failure, attempt_folders

# Prefix for commands that change accounts: those wait only 15 seconds for each other. As in
# tests/e2e/users.bash.
IN_TURN = ["flock", "-o", "/etc"]
PROGRAMS = ["berth", "berthd", "berth-shepherd", "berth-user", "berth-probe"]
# The lock is held by all processes that the command starts: it must be free by the next
# attempt.
NOTE = ("exec 9>>{me}.lock; flock -n 9 || echo twice >> {me}; "
        "echo $BERTH_ATTEMPT $(id -u) >> {me}; ")
STREAM_LINES = 2000
# If no job changes for this many seconds, something is stuck, however busy the machine is.
STUCK_S = 240


# --- the users -------------------------------------------------------------------------------


class As:
    """While this is in effect, files are made and sockets connected as that user: the kernel
    passes the daemon the credentials of that moment."""

    def __init__(self, user):
        self.account = pwd.getpwnam(user)

    def __enter__(self):
        os.setgroups(os.getgrouplist(self.account.pw_name, self.account.pw_gid))
        os.setegid(self.account.pw_gid)
        os.seteuid(self.account.pw_uid)

    def __exit__(self, *_):
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([0])


def make_users(folder):
    names = []
    for letter in "ab":
        name = f"bt{letter}{os.getpid()}"
        home = os.path.join(folder, name)
        subprocess.run([*IN_TURN, "useradd", "-m", "-d", home, "-s", "/bin/sh", name], check=True)
        names.append(name)
    return names


def home_of(machine, user):
    return os.path.join(machine.dir, "home-" + user)


def screens_of(machine, user):
    """GNU screen's socket folder of that user."""
    return os.path.join(home_of(machine, user), "screens")


def copy_programs(binaries, folder):
    """Copy to where everyone may execute them."""
    copies = os.path.join(folder, "bin")
    os.mkdir(copies, 0o755)
    for program in PROGRAMS:
        where = [os.path.join(binaries, program),
                 os.path.join(binaries, "..", "libexec", "berth", program)]
        shutil.copy(next(p for p in where if os.path.exists(p)), copies)
    return copies


# --- the machine's daemon --------------------------------------------------------------------


class Machine(Daemon):
    """A daemon for all users in a folder of its own, with programs that everyone may execute."""

    def __init__(self, binaries, users):
        super().__init__(binaries)
        os.chmod(self.dir, 0o755)
        self.binaries = copy_programs(binaries, self.dir)
        self.users = users
        self.victims = []  # the job of each killed supervisor
        self.others = 0    # number of killed probes and nurseries
        self.unfinished = []  # what "the jobs do not end" is about
        for user in users:
            for folder in (home_of(self, user), screens_of(self, user)):
                os.mkdir(folder, 0o700)
                shutil.chown(folder, user)

    def open(self, *settings, before=()):
        options = ["--system"]
        for setting in ("log_level=warn", "user_priority_max=100", *settings):
            options += ["--set", setting]
        self.start(options=options, before=before)

    def kill_after(self, delay_s):
        """Run in a process of its own, so that it happens in the middle of whatever we do."""
        pid = os.fork()
        if pid == 0:
            time.sleep(delay_s)  # not synchronisation: the moment is varied on purpose
            os.kill(self.process.pid, signal.SIGKILL)
            os._exit(0)
        return pid

    def helpers(self):
        """The daemon's current helpers: (pid, its program, the job of a supervisor)."""
        found, parents = [], {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                program = os.readlink(f"/proc/{pid}/exe")
                if os.path.dirname(program) != self.binaries:
                    continue
                program, job = os.path.basename(program), None
                if program == "berth-shepherd":
                    folder = os.readlink(f"/proc/{pid}/fd/5")
                    job = re.match(self.dir + r"/state/jobs/(\d+)\.", folder)
                with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                    parents[int(pid)] = int(stat.read().rsplit(")", 1)[1].split()[1])
                found.append((int(pid), program, int(job[1]) if job else None))
            except OSError:
                pass  # it is exiting, or is a nursery
        # A supervisor's child is the command about to be executed: killing it would end the
        # job.
        with_job = {h[0] for h in found if h[2]}
        return [h for h in found if parents[h[0]] not in with_job]

    def kill_helper(self, rng):
        """Now and then kill one of them, as the kernel's OOM killer does."""
        wanted = rng.choices(["none", "supervisor", "berth-probe"], [5, 4, 1])[0]
        those = [h for h in self.helpers()
                 if (h[2] if wanted == "supervisor" else h[1] == wanted)]
        if not those:
            return
        pid, _, job = rng.choice(those)
        if job:
            self.victims.append(job)
        else:
            self.others += 1
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def call_as(self, user, method, params):
        """Like call, in a process of that user, from which the daemon reads limits. An error's
        text is in a Failure."""
        request = json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n"
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(r)
                account = pwd.getpwnam(user)
                os.initgroups(user, account.pw_gid)
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
                with os.fdopen(w, "wb") as answer, socket.socket(socket.AF_UNIX) as s:
                    s.connect(os.path.join(self.dir, "berth.sock"))
                    s.sendall(request)
                    with s.makefile("rb") as f:
                        answer.write(f.readline())
            except OSError:
                pass  # the daemon exited
            finally:
                os._exit(0)
        os.close(w)
        with os.fdopen(r, "rb") as f:
            line = f.read()
        os.waitpid(pid, 0)
        if not line.endswith(b"\n"):
            return None
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(f"{method} of {user}: {answer['error']}")
        return answer["result"]

    def processes(self):
        needle = b"BERTH_CAMPAIGN=" + self.dir.encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if needle in f.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass
        return found


# --- jobs of every kind ----------------------------------------------------------------------


class Work:
    """One request and its required outcome. `files`: those that its tasks write to."""

    def __init__(self, user, name, kind, request, ends, runs=(1, 1)):
        self.user, self.name, self.kind = user, name, kind
        self.request = dict(request, name=name)
        self.ends = ends          # allowed (state, exit status); status None: any
        self.runs = runs          # minimum and maximum number of runs
        self.known = False
        self.stream = None        # what an attached client has received so far
        self.id = None
        self.ids = set()          # including those of its tasks

    def lost(self, machine):
        """Number of its supervisors that were killed."""
        return sum(machine.victims.count(i) for i in self.ids | {self.id})

    def files(self):
        if "array" not in self.request:
            return [self.name]
        last = int(self.request["array"].split("%")[0].split("-")[1])
        return [f"{self.name}.{task}" for task in range(last + 1)]


def how_it_ends(code):
    return {("COMPLETED" if code == 0 else "FAILED", code)}


def make_work(rng, user, name, earlier):
    """One random piece of work."""
    code, short = rng.choice([0, 0, 1, 3, 42, 255]), rng.randrange(10)
    note = NOTE.format(me=name)
    demand = rng.choice([{"vram_mib": 1000}, {"vram_mib": 9000}, {"share_permille": 300},
                         {"gpus": 0}, {"gpus": 2}, {}, {"gpus": 0, "cpus": 1, "mem_mib": 200}])
    demand["requeue"] = rng.random() < 0.5
    kind = rng.choice(["plain", "plain", "child", "array", "after", "interactive", "terminal",
                       "retry", "limit", "again", "preempt", "cancel", "held", "screen", "set-up",
                       "failing set-up"])
    if kind == "screen" and shutil.which("screen"):
        return Work(user, name, kind, dict(
            demand, screen=True,
            command=f"{note}test -t 1 || exit 77; sleep 0.{short}; exit {code}"), how_it_ends(code))
    if kind == "set-up":
        return Work(user, name, kind, dict(
            demand, env_setup="export READY=$BERTH_ATTEMPT; ready() { test $READY = $1; }",
            command=f"{note}ready $BERTH_ATTEMPT || exit 77; exit {code}"), how_it_ends(code))
    if kind == "failing set-up":
        return Work(user, name, kind, dict(
            demand, env_setup=f"sleep 0.0{short}; exit 3", command=note),
            {("FAILED", None)}, (0, 0))
    if kind == "plain":
        return Work(user, name, kind, dict(demand, command=f"{note}sleep 0.0{short}; exit {code}"),
                    how_it_ends(code))
    if kind == "child":
        return Work(user, name, kind, dict(
            demand, command=f"{note}setsid sh -c 'trap \"\" HUP; sleep 300' & exit {code}"),
            how_it_ends(code))
    if kind == "array":
        tasks = rng.randrange(1, 5)
        me = f"{name}.$BERTH_ARRAY_TASK_ID"
        return Work(user, name, kind, dict(
            demand, array=f"0-{tasks}" + rng.choice(["", "%1", "%2"]),
            command=f"{NOTE.format(me=me)}sleep 0.0{short}; exit {code}"), how_it_ends(code))
    if kind == "after" and earlier:
        return Work(user, name, kind, dict(
            demand, after=[{"type": "any", "name": rng.choice(earlier)}],
            command=f"{note}exit {code}"), how_it_ends(code))
    if kind in ("interactive", "terminal"):
        half = STREAM_LINES // 2
        return Work(user, name, kind, dict(
            gpus=0, interactive=True, pty=kind == "terminal", rows=24, columns=80,
            command=f"{note}seq {half}; sleep 0.{rng.randrange(1, 4)}; seq {half + 1} "
                    f"{STREAM_LINES}; exit {code}"), how_it_ends(code))
    if kind == "retry":
        return Work(user, name, kind, dict(
            demand, retries=1, command=f"{note}test $(wc -l < {name}) -gt 1 || exit 9; "
            f"exit {code}"), how_it_ends(code) if code == 0 else how_it_ends(code), (2, 2))
    if kind == "limit":
        return Work(user, name, kind, dict(demand, limit_ms=1000, grace_ms=50,
                                           command=f"{note}trap '' TERM; sleep 300"),
                    {("TIMEOUT", 124)})
    if kind == "again":
        return Work(user, name, kind, dict(
            demand, limit_ms=1000, grace_ms=50, on_timeout="requeue", max_requeues=1,
            command=f"{note}exec sleep 300"), {("TIMEOUT", 124)}, (2, 2))
    if kind == "preempt":
        urgent = rng.random() < 0.5
        return Work(user, name, kind, dict(
            preemptible=not urgent, priority=9 if urgent else -9, gpus=rng.choice([1, 4]),
            command=f"{note}sleep 0.{rng.randrange(1, 3)}; exit {code}"), how_it_ends(code),
            (1, 1) if urgent else (1, 99))
    if kind == "cancel":
        return Work(user, name, kind, dict(demand, command=f"{note}sleep 300"),
                    {("CANCELLED", None)}, (0, 1))
    return Work(user, name, "held", dict(demand, hold=True, command=f"{note}exit {code}"),
                how_it_ends(code))


def hand_in(machine, work):
    """Submit those that the daemon may not have, one by one, until it dies. A submission whose
    answer was lost may have been accepted: look it up by name first."""
    todo = [w for w in work if not w.known]
    rows = machine.call("jobs", {"all": True, "fields": ["name", "array_job", "user", "id"]})
    if rows is None:
        return
    have = {(row[0], row[2]): row[3] for row in rows["rows"] if row[1] is None}
    for w in todo:
        w.known = (w.name, w.user) in have
        if w.known:
            continue
        result = machine.call_as(w.user, "submit", {
            "cwd": home_of(machine, w.user), "umask": 0o027, "jobs": [w.request],
            "env": ["PATH=" + os.environ["PATH"], "BERTH_CAMPAIGN=" + machine.dir, "TERM=vt100",
                    "SCREENDIR=" + screens_of(machine, w.user)]})
        if result is None:
            return
        w.known = True
    for w in work:
        w.id = have.get((w.name, w.user), w.id)


def meddle(machine, rng, work):
    """Users' actions meanwhile: release, cancel, look."""
    for w in work:
        if not w.known or rng.random() < 0.5:
            continue
        if w.kind == "held":
            machine.call_as(w.user, "release", {"select": [f"name:{w.name}"]})
        elif w.kind == "cancel" and os.path.exists(os.path.join(home_of(machine, w.user), w.name)):
            machine.call_as(w.user, "cancel", {"select": [f"name:{w.name}"]})
    machine.call_as(rng.choice(machine.users), "explain", {"select": ["all"]})


def meddle_quietly(machine, rng, work):
    try:
        meddle(machine, rng, work)
    except Failure as e:
        # It has ended, or was used before it was submitted: no harm.
        if not any(words in str(e) for words in ("no job", "ended", "none", "not held")):
            raise


# --- attached clients ------------------------------------------------------------------------


class Stream:
    """A client attached to an interactive job, as its user, from its first byte on. It must
    not notice the daemon's deaths."""

    def __init__(self, machine, w, path):
        self.machine, self.cut = machine, False  # cut: died with its supervisor
        self.work, self.output, self.record, self.rest = w, b"", None, b""
        self.socket = socket.socket(socket.AF_UNIX)
        with As(w.user):
            self.socket.connect(path)
        hello = b'{"version":1}'
        self.socket.sendall(b"h" + struct.pack(">I", len(hello)) + hello)

    def read(self):
        try:
            part = self.socket.recv(1 << 20)
        except ConnectionResetError:
            part = b""
        if not part and self.work.lost(self.machine):
            self.cut, self.record = True, {}
            self.socket.close()
            return
        if not part:
            raise Failure(f"{self.work.name}: the supervisor hung up on its client")
        self.rest += part
        while len(self.rest) >= 5 and len(self.rest) >= 5 + self.length():
            n = self.length()
            kind, payload, self.rest = self.rest[:1], self.rest[5:5 + n], self.rest[5 + n:]
            if kind == b"o":
                self.output += payload[8:]
            elif kind == b"x":
                self.record = json.loads(payload)
                self.socket.close()

    def length(self):
        return struct.unpack(">I", self.rest[1:5])[0]

    def check(self):
        if self.cut:
            return
        want = "".join(f"{i}\n" for i in range(1, STREAM_LINES + 1)).encode()
        if self.output.replace(b"\r\n", b"\n") != want:
            raise Failure(f"{self.work.name}: {len(self.output)} bytes came to its client")
        if not any(self.record.get("code") == status for _, status in self.work.ends):
            raise Failure(f"{self.work.name}: its client was told {self.record}")


def attach_new(machine, work, streams):
    """Attach a client to each interactive job that has a socket."""
    for w in work:
        if w.kind not in ("interactive", "terminal") or not w.known or w.stream or not w.id:
            continue
        for path in glob.glob(os.path.join(machine.dir, "attach", f"{w.id}.*.sock")):
            try:
                w.stream = Stream(machine, w, path)
            except OSError:  # also: its supervisor was killed
                continue  # it came and went
            streams.append(w.stream)


def serve(streams, for_s):
    """Read the output that reaches them."""
    until = time.monotonic() + for_s
    while True:
        open_ones = [s for s in streams if s.record is None]
        left = until - time.monotonic()
        if left <= 0 or not open_ones:
            return
        ready, _, _ = select.select([s.socket for s in open_ones], [], [], left)
        for s in open_ones:
            if s.socket in ready:
                s.read()


# --- checking everything ---------------------------------------------------------------------


def settle(machine, rng, work, streams):
    """Let everything end, and check it."""
    signal.alarm(STUCK_S)
    machine.open()
    hand_in(machine, work)
    for w in work:
        if w.kind == "held":
            try:
                machine.call_as(w.user, "release", {"select": [f"name:{w.name}"]})
            except Failure:
                pass  # released before
    before = None
    while True:
        rows = machine.call("jobs", {"fields": ["name", "state", "user", "attempt", "reason"]})["rows"]
        if [row[:4] for row in rows] != before:
            signal.alarm(STUCK_S)
            before = [row[:4] for row in rows]
        machine.unfinished = rows
        attach_new(machine, work, streams)
        serve(streams, 0.05)
        meddle_quietly(machine, rng, [w for w in work if w.kind == "cancel"])
        if not rows:
            break
    serve(streams, 30)
    signal.alarm(0)
    rows = machine.call("jobs", {"all": True, "fields": [
        "name", "array_job", "user", "state", "exit_status", "attempt", "text", "id"]})["rows"]
    check_work(machine, work, rows)
    for s in streams:
        if s.record is None:
            raise Failure(f"{s.work.name}: its client was never told the end")
        s.check()
    check_nothing_left(machine)


def check_work(machine, work, rows):
    by_name = {}
    for row in rows:
        if row[1] is None:
            if (row[0], row[2]) in by_name:
                raise Failure(f"handed in twice: {row}")
            by_name[(row[0], row[2])] = row
    for w in work:
        row = by_name.get((w.name, w.user))
        if row is None:
            raise Failure(f"{w.user}'s {w.name} is not known")
        w.ids = {r[7] for r in rows if r[1] == row[7]}
        ends = set(w.ends)
        # A cancelled job does not run again, however it ended.
        if w.lost(machine) and (w.kind == "cancel" or not w.request.get("requeue")):
            ends.add(("LOST", None))
        if not {(row[3], row[4]), (row[3], None)} & ends:
            raise Failure(f"{w.kind} {w.name}: {row}, should be {ends}: {w.request}, "
                          f"{w.lost(machine)} supervisors killed")
        for name in w.files():
            check_runs(machine, w, name, row)


def check_runs(machine, w, name, row):
    """Each attempt ran once, as its user, who owns its file."""
    path = os.path.join(home_of(machine, w.user), name)
    uid = pwd.getpwnam(w.user).pw_uid
    lines = []
    if os.path.exists(path):
        st = os.stat(path)
        if st.st_uid != uid or st.st_mode & 0o777 != 0o640:
            raise Failure(f"{path} is of {st.st_uid}, mode {st.st_mode:o}")
        with open(path) as f:
            lines = [line.split() for line in f.read().splitlines()]
    attempts = [line[0] for line in lines]
    lost = w.lost(machine)
    # On a busy machine a second may pass before a shell has done anything.
    least = 0 if row[3] == "LOST" or "limit_ms" in w.request else w.runs[0]
    if len(set(attempts)) != len(attempts) or not least <= len(attempts) <= w.runs[1] + lost:
        raise Failure(f"{w.kind} {name} of {w.user}: attempts {attempts} ran: {row}: {w.request}")
    if any(line[1:] != [str(uid)] for line in lines):
        raise Failure(f"{name} ran as {lines}, should be {uid}")


def cgroups_of(machine):
    """cgroup folders that this instance's attempts had."""
    state = os.path.join(machine.dir, "state", "berth.db")
    import sqlite3
    token = sqlite3.connect(f"file:{state}?immutable=1", uri=True).execute(
        "select value from meta where key = 'token'").fetchone()
    name = "berth-" + (token[0][:8] if token else "?")
    return [path for path in glob.glob("/sys/fs/cgroup/**/job-*", recursive=True)
            if f"/{name}/" in path]


def describe_folder(machine, name):
    folder = os.path.join(machine.dir, "state", "jobs", name)
    there = os.listdir(folder)
    if not name[0].isdigit():
        return f"{name} with {there}"
    job = machine.call("jobs", {"select": [name.split(".")[0]]})["jobs"][0]
    facts = {key: job[key] for key in ("name", "user", "state", "text", "attempts", "array_job",
                                       "command")}
    return f"{name} with {there}, of {facts}"


def what_is_left(machine):
    """A description of what is left of ended jobs; None: nothing."""
    if machine.processes():
        return f"left behind: {machine.processes()}"
    folders = attempt_folders(machine.dir)
    if folders:
        return f"attempts' folders stay: {describe_folder(machine, folders[0])}"
    for gpu in machine.call("gpus", {})["gpus"]:
        if gpu["held_mib"] or gpu["jobs"] or gpu["share_held"]:
            return f"a card is still held: {gpu}"
    if cgroups_of(machine):
        return f"groups stay: {cgroups_of(machine)}"
    attach = os.path.join(machine.dir, "attach")
    if os.path.isdir(attach) and os.listdir(attach):
        return f"sockets stay: {os.listdir(attach)}"
    return None


def check_nothing_left(machine):
    """A supervisor that waits for a reading client exits soon; count only what stays."""
    until = time.monotonic() + 300
    while (left := what_is_left(machine)) and time.monotonic() < until:
        time.sleep(0.02)
    if left:
        raise Failure(left)


def campaign(args, rng, killing, machine):
    kills = jobs = attached = 0
    while kills < args.cycles:
        work, streams, names = [], [], []
        for _ in range(min(args.round, args.cycles - kills)):
            for user in machine.users:
                for _ in range(rng.randrange(1, 4)):
                    name = f"j{jobs}"
                    jobs += 1
                    work.append(make_work(rng, user, name,
                                          [w.name for w in work[-8:] if w.user == user and w.known]))
            machine.open()
            killer = machine.kill_after(rng.random() * args.max_delay)
            hand_in(machine, work)
            attach_new(machine, work, streams)
            meddle_quietly(machine, rng, work)
            machine.kill_helper(killing)
            serve(streams, 0.001)
            os.waitpid(killer, 0)
            machine.process.wait()
            kills += 1
        settle(machine, rng, work, streams)
        attached += len(streams)
        machine.kill()
        print(f"     {kills} kills, {jobs} jobs, {attached} attached", flush=True)
    machine.open()
    check_nothing_left(machine)
    machine.kill(signal.SIGTERM)
    return (f"{kills} kills of the machine's daemon, {len(machine.victims)} of supervisors, "
            f"{machine.others} of probes, under {jobs} jobs of two users, {attached} attached to")


def on_alarm(machine):
    raise Failure(f"the jobs do not end: {machine.unfinished}")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--bin", required=True, help="folder of the installed programs' berthd")
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--cycles", type=int, default=1000)
    p.add_argument("--round", type=int, default=25, help="kills before everything is looked at")
    p.add_argument("--max-delay", type=float, default=0.15, help="seconds before each kill")
    p.add_argument("--users", help="two accounts, with a comma between")
    args = p.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 30)
    started = time.monotonic()
    users = args.users.split(",") if args.users else make_users("/tmp")
    machine = Machine(args.bin, users)
    signal.signal(signal.SIGALRM, lambda number, frame: on_alarm(machine))
    try:
        what = campaign(args, random.Random(seed), random.Random(seed + 1), machine)
        print(f"ok   users: {what}, {time.monotonic() - started:.1f} s", flush=True)
        return 0
    except Failure as e:
        print(f"FAIL users (--seed {seed}): {e}", flush=True)
        return 1
    finally:
        machine.remove()
        if not args.users:
            for user in users:
                subprocess.run([*IN_TURN, "userdel", "-r", user], check=False, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
