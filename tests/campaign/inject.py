#!/usr/bin/env python3
"""Lets the system calls of the daemon, the nursery and the supervisors fail, one kind and one
error at a time, and checks what must never break: each job runs exactly once and ends with its
true exit code, whatever the machine lacked for a while. Standard library only.

    tests/campaign/inject.py --bin DIR [--program berthd|nursery|supervisor|probe|user|init|node]...
        [--calls fork,open,...] [--errors EMFILE,...] [--ways first,window,...]
        [--system] [--jobs here|container|slurm] [--cases N] [--part I,N] [--seed N]

With --system the machine's daemon runs the jobs of an account that is made for it, and berth-user
plays a part; for root. With --jobs container each job runs in a container, with a program that
stands for podman, and berth-init is one of the programs; with --jobs slurm Slurm executes them, with
programs that stand for it, and `node` is the batch script. Without bounds the whole table runs. --cases takes so many of it at random. A daemon that goes with
words is started again; one that aborts, or stands still, is a failure, and so is a job that is
LOST, except where its supervisor itself had no memory left. While an error lasts and keeps jobs
waiting, `berth health` has to say so. A failing case prints what repeats it."""
import argparse
import collections
import errno
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import faultcalls
from crash import check_clean, runs_of
from instance import ENV, Daemon, Failure
from users import IN_TURN, copy_programs, make_users

PROGRAMS = ["berthd", "nursery", "supervisor", "probe", "user"]
PROGRAMS_OF = {"here": PROGRAMS, "container": ["supervisor", "init"],
               "slurm": ["berthd", "node", "supervisor"]}
MORE_OF = {"here": {}, "container": {"container": "image"}, "slurm": {"on": "slurm", "gpus": 0}}
HASTE = 30       # divisor for Slurm's waits
LONG_BYTES = 140000  # more than an argument may have
DEADLINE_S = 300
DEADLINE_SLURM_S = 600  # one of its commands is called per second
WINDOW_S = 0.3
SOME_S = 0.8     # for errors of some calls only
LASTING_S = 9    # long enough for a trial that nobody answers, so that health knows
TOLD_BEFORE_S = 1
N_FIRST = 2
PATH = os.environ["PATH"]

Call = collections.namedtuple("Call", "numbers errors on", defaults=[None])

# By name: the system calls (x86_64), the errors that the manual lists as temporary, and the
# objects they concern, if not all: files on a disk, a socket, files of a cgroup, one command
# of fcntl.
CALLS = {
    "open": Call([2, 85, 257, 437], "EMFILE ENFILE ENOMEM ENOSPC EIO EINTR"),
    "read": Call([0, 17, 19], "EIO EINTR ENOMEM", "disk"),
    "write": Call([1, 18, 20], "ENOSPC EDQUOT EIO EINTR", "disk"),
    "write-group": Call([1, 18, 20], "EIO ENOMEM EBUSY EINTR", "group"),
    "sync": Call([74, 75], "EIO ENOSPC EDQUOT EINTR"),
    "rename": Call([82, 264, 316], "ENOSPC EDQUOT EIO ENOMEM"),
    "unlink": Call([84, 87, 263], "EIO ENOMEM EBUSY"),
    "mkdir": Call([83, 258], "ENOSPC EDQUOT EIO ENOMEM"),
    "truncate": Call([76, 77], "EIO ENOSPC EINTR"),
    "fallocate": Call([285], "ENOSPC EIO EINTR"),
    "stat": Call([4, 5, 6, 262, 332], "EIO ENOMEM"),
    "statfs": Call([137, 138], "EIO EINTR ENOMEM"),
    "chmod": Call([90, 91, 268, 92, 93, 94, 260], "EIO ENOSPC EPERM"),
    "chdir": Call([80, 81], "EIO ENOMEM"),
    "getdents": Call([78, 217], "EIO ENOMEM"),
    "readlink": Call([89, 267], "EIO ENOMEM"),
    "access": Call([21, 269, 439], "EIO ENOMEM"),
    "socket": Call([41], "EMFILE ENFILE ENOBUFS ENOMEM"),
    "socketpair": Call([53], "EMFILE ENFILE ENOMEM"),
    "connect": Call([42], "EAGAIN ECONNREFUSED EINTR ENOMEM"),
    "accept": Call([43, 288], "EMFILE ENFILE ENOMEM ECONNABORTED EINTR"),
    "bind": Call([49, 50], "ENOMEM ENOSPC EADDRINUSE"),
    "send": Call([44], "ENOBUFS ENOMEM EINTR"),
    "sendmsg": Call([46], "ENOBUFS ENOMEM EAGAIN EINTR ETOOMANYREFS"),
    "write-socket": Call([1, 20], "ENOBUFS ENOMEM EINTR", "socket"),
    "recv": Call([45, 47], "ENOMEM ENOBUFS EINTR"),
    "read-socket": Call([0, 19], "ENOMEM ENOBUFS EINTR", "socket"),
    "sockopt": Call([54, 55], "ENOBUFS ENOMEM"),
    "fork": Call([56, 57, 58, 435], "EAGAIN ENOMEM"),
    "exec": Call([59, 322], "EAGAIN ENOMEM EIO EMFILE ENFILE"),
    "wait": Call([61], "EINTR", "blocking"),
    "pipe": Call([22, 293], "EMFILE ENFILE"),
    "dup": Call([32, 33, 292], "EMFILE EBUSY EINTR"),
    "dupfd": Call([72], "EMFILE", "dupfd"),
    "lock": Call([72], "ENOLCK EAGAIN EINTR", "lock"),
    "flock": Call([73], "ENOLCK EINTR"),
    "mmap": Call([9, 25], "ENOMEM"),
    "epoll-create": Call([213, 291], "EMFILE ENFILE ENOMEM"),
    "epoll-wait": Call([232, 281, 441], "EINTR"),
    "poll": Call([7, 271], "EINTR ENOMEM EAGAIN"),
    "eventfd": Call([284, 290], "EMFILE ENFILE ENOMEM"),
    "timerfd": Call([283], "EMFILE ENFILE ENOMEM"),
    "signalfd": Call([282, 289], "EMFILE ENFILE ENOMEM"),
    "inotify": Call([253, 254, 294], "EMFILE ENFILE ENOMEM ENOSPC"),
    "memfd": Call([319], "EMFILE ENFILE ENOMEM"),
    "kill": Call([62, 200, 234, 424], "EAGAIN EPERM ENOMEM"),
    "pidfd": Call([434], "EMFILE ENFILE ENOMEM"),
    "prctl": Call([157], "EPERM EINVAL"),
    "rlimit": Call([97, 160, 302], "EPERM"),
    "session": Call([109, 112], "EPERM"),
    "bpf": Call([321], "EAGAIN ENOMEM EPERM"),
    "affinity": Call([203, 204], "EINVAL ENOMEM"),
    "identity": Call([105, 106, 113, 114, 116, 117, 119], "EAGAIN ENOMEM"),
    "keyring": Call([248, 249, 250], "EDQUOT ENOMEM"),
    "capabilities": Call([125, 126], "ENOMEM"),
    "sleep": Call([35, 230], "EINTR"),
    "getrandom": Call([318], "EINTR ENOSYS"),
}
# Exclusions: libuv aborts if these fail, and the C library dies of them before main. What a
# kernel denies a supervisor is denied for good, so its job is charged with it. PAM's modules
# treat a lack of descriptors as a denial.
LEFT_OUT = {("berthd", "pipe", "start"), ("berthd", "eventfd", "start"),
            ("berthd", "mmap", "start"), ("nursery", "mmap", "start"), ("probe", "mmap", "start"),
            ("supervisor", "prctl", None), ("supervisor", "rlimit", None),
            ("user", "open", "some")}
DUPFD, LOCKS = {0, 1030}, {6, 7, 37, 38}


def is_about(on, pid, args):
    if on == "dupfd":
        return args[1] in DUPFD
    if on == "lock":
        return args[1] in LOCKS
    if on == "blocking":
        return not args[2] & os.WNOHANG
    if on is None:
        return True
    try:
        what = os.readlink(f"/proc/{pid}/fd/{args[0]}")
    except OSError:
        return False
    if on == "socket":
        return what.startswith("socket:")
    if on == "group":
        return what.startswith("/sys/fs/cgroup/")
    return what.startswith("/") and not what.startswith(("/dev/", "/proc/", "/sys/", "/memfd:"))


class Programs:
    """Which of Berth's programs a process runs."""

    def __init__(self):
        self.nurseries = set()

    def of(self, pid):
        try:
            exe = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            return None
        if exe != "berth-shepherd":
            return {"berthd": "berthd", "berth-probe": "probe", "berth-user": "user",
                    "berth-init": "init"}.get(exe)
        if self.is_nursery(pid):
            return "nursery"
        return "node" if self.is_node(pid) else "supervisor"

    @staticmethod
    def parent(pid):
        """Its program and its number."""
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            number = f.read().rsplit(")", 1)[1].split()[1]
        return os.path.basename(os.readlink(f"/proc/{number}/exe")), number

    def is_nursery(self, pid):
        """The daemon's own child; supervisors are the nursery's."""
        if pid in self.nurseries:
            return True
        try:
            if self.parent(pid)[0] == "berthd":
                self.nurseries.add(pid)
                return True
        except OSError:
            pass
        return False

    def is_node(self, pid):
        """A batch script; its supervisor is forked from it."""
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return b"--slurm" in f.read() and self.parent(pid)[0] != "berth-shepherd"
        except OSError:
            return False


class Fault:
    """One error of one kind of call of one program, once armed; and the calls it hit."""

    def __init__(self, program, call, error, way, rng, n_at_start):
        self.nth = rng.randrange(max(n_at_start, 1))  # of those made during a start
        self.program, self.call, self.way, self.rng = program, CALLS[call], way, rng
        self.error = getattr(errno, error)
        self.programs = Programs()
        self.armed = threading.Event()
        self.until = None
        self.seen = self.met = 0

    def judge(self, pid, number, args):
        if not self.armed.is_set() or self.programs.of(pid) != self.program or \
                not is_about(self.call.on, pid, args):
            return 0
        self.seen += 1
        now = time.monotonic()
        if self.until is None:
            self.until = now + {"window": WINDOW_S, "lasting": LASTING_S}.get(self.way, SOME_S)
        hit = {"first": lambda: self.met < N_FIRST,
               "window": lambda: now < self.until,
               "lasting": lambda: now < self.until,
               "some": lambda: now < self.until and self.rng.random() < 0.3,
               "start": lambda: self.seen == self.nth + 1}[self.way]()
        self.met += hit
        return self.error if hit else 0


class Counter:
    """The kinds of calls that each program makes, from its start and once jobs run."""

    def __init__(self):
        self.programs = Programs()
        self.works = False
        self.found = collections.Counter()

    def judge(self, pid, number, args):
        program = self.programs.of(pid)
        for name, call in CALLS.items():
            if program and number in call.numbers and is_about(call.on, pid, args):
                self.found[program, name, self.works] += 1
        return 0


def stand_ins(folder):
    """Put the fakes for podman and Slurm first in PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    tools, slurm = os.path.join(folder, "tools"), os.path.join(folder, "slurm")
    for made in (tools, slurm):
        os.mkdir(made)
    os.symlink(os.path.join(here, "fake_podman"), os.path.join(tools, "podman"))
    for name in ("sbatch", "squeue", "scancel"):
        os.symlink(os.path.join(here, "fake_slurm.py"), os.path.join(tools, name))
    os.environ.update(PATH=tools + ":" + PATH, SLURM_CONF=slurm, BERTH_SLURM_HASTE=str(HASTE))


class Instance(Daemon):
    """A daemon whose calls are intercepted, and which may be gone, or not answer, at any time."""

    def __init__(self, args, numbers, judge):
        super().__init__(args.bin, sim="2")
        if args.jobs != "here":
            stand_ins(self.dir)
        self.account = args.account
        own = os.path.join(self.marks, "of-its-own")
        os.mkdir(own)
        if self.account:
            os.chmod(self.dir, 0o755)
            for folder in (self.marks, own):
                shutil.chown(folder, self.account)
        self.listener = faultcalls.Listener(self.dir, numbers, judge)
        self.stderr = open(os.path.join(self.dir, "stderr"), "a+")
        self.deaths = []
        self.refused = None  # why the last request failed

    def start(self, **how):
        return super().start(options=["--system"] if self.account else [], **how)

    def call(self, method, params):
        if not self.account or method not in ("submit", "file.sync"):
            return super().call(method, params)
        return self.call_as(method, params)

    def call_as(self, method, params):
        """Ask from a process of the account; the listener stays root."""
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                account = pwd.getpwnam(self.account)
                os.initgroups(self.account, account.pw_gid)
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
                words = json.dumps(super().call(method, params))
            except (Failure, OSError) as e:
                words = f"refused: {e}"
            os.write(w, words.encode())
            os._exit(0)
        os.close(w)
        with os.fdopen(r) as pipe:
            words = pipe.read()
        os.waitpid(pid, 0)
        if words.startswith("refused"):
            raise Failure(words)
        return json.loads(words)

    def begin(self):
        return self.start(must=False, before=self.listener.before(),
                          on_launch=lambda: self.listener.attach(self.process.pid))

    def ask(self, method, params):
        """None if there was no answer, errors included: a failed request is repeated."""
        try:
            return self.call(method, params)
        except (Failure, OSError, ValueError) as e:
            self.refused = e
            return None

    def log_tail(self, n=6):
        try:
            with open(os.path.join(self.dir, "daemon.log")) as f:
                return f.read().splitlines()[-n:]
        except OSError:
            return self.said().splitlines()[-n:]

    def said(self):
        self.stderr.seek(0)
        return self.stderr.read()

    def revive(self):
        """Restart it if it is gone; an exit with an error message is no failure."""
        status = self.process.poll()
        if status is None:
            return
        words = self.answer if self.answer not in ("", "ready") else self.said()[-400:].strip()
        if not words and status >= 0:
            words = " ".join(self.log_tail(1))
        if status < 0 and "no memory for" not in words:
            raise Failure(f"the daemon died of signal {-status}: {words}")
        if not words:
            raise Failure(f"the daemon went without a word, with status {status}")
        self.deaths.append(words.splitlines()[-1])
        self.start(must=False)


def make_jobs(rng, kind):
    """A file of jobs, with their states and exit codes."""
    jobs = []
    for i in range(6):
        code = rng.choice([0, 0, 1, 7, 255])
        job = {"key": f"k{i}",
               "command": f"echo ran >> {i}; sleep 0.0{rng.randrange(10)}; exit {code}"}
        if i % 2 == 0:
            job["vram_mib"] = 4000
        elif i == 1:
            job["log"] = "of-its-own/log"
        jobs.append((job, "FAILED" if code else "COMPLETED", code))
    jobs.append(({"key": "k6", "command": "echo ran >> 6; exec sleep 30", "gpus": 0,
                  "limit_ms": 1300 if kind == "here" else 5000}, "TIMEOUT", None))
    jobs.append(({"key": "k7", "gpus": 0,
                  "command": "echo ran >> 7; : " + "x" * LONG_BYTES + "; exit 3"}, "FAILED", 3))
    for i, (job, _, _) in enumerate(jobs):
        job["line"] = i + 1
        job.update(MORE_OF[kind])
        if kind == "slurm":
            job.pop("vram_mib", None)
    return jobs


ARRAY = {"name": "array", "array": "0-2", "gpus": 0,
         "command": "echo ran >> t$BERTH_ARRAY_TASK_ID; exit 0"}


def rows(daemon):
    """Each job's row, by key or as a task; None if there is no answer."""
    found = daemon.ask("jobs", {"all": True, "fields": ["key", "array_job", "array_task", "state",
                                                        "exit_status", "text", "name"]})
    if found is None:
        return None
    by_name = {}
    for key, array, task, *rest in found["rows"]:
        by_name[key or (f"t{task}" if array is not None else rest[3])] = rest
    return by_name


def hand_in(daemon, jobs, until, kind):
    """Repeat until the daemon has them all, whatever fails meanwhile."""
    lines = [job for job, _, _ in jobs]
    with_file = with_array = False
    while not (with_file and with_array):
        if time.monotonic() > until:
            raise Failure(f"the jobs are not accepted: {daemon.refused}")
        daemon.revive()
        with_file = with_file or daemon.ask("file.sync", {
            "path": "/campaign", "cwd": daemon.marks, "umask": 18, "env": ENV,
            "jobs": lines}) is not None
        known = rows(daemon)
        with_array = known is not None and "array" in known
        if known is not None and not with_array:
            with_array = daemon.ask("submit", {"cwd": daemon.marks, "umask": 18, "env": ENV,
                                               "jobs": [dict(ARRAY, **MORE_OF[kind])]}) is not None
        if not (with_file and with_array):
            time.sleep(0.05)


ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "LOST"}


def health_says(daemon, now, fault):
    """Whether health reports that something holds back jobs; a failure if it should, and does
    not."""
    health = daemon.ask("health", {})
    if health is None:
        return False
    told = any(check["state"] == "bad" or check["name"] == "starts" for check in health["checks"])
    late = fault.until and fault.until - TOLD_BEFORE_S < time.monotonic() < fault.until
    if late and not told and any(row[0] == "PENDING" for row in now.values()):
        raise Failure(f"jobs wait, and health does not say why: {health['checks']}")
    return told


def await_ends(daemon, n, until, fault):
    """Wait until all have ended. If starts are held back for long, health must report why."""
    told = False
    while True:
        daemon.revive()
        now = rows(daemon)
        # The array itself, and its tasks.
        if now is not None and sum(row[0] in ENDED for row in now.values()) >= n + 4:
            return now, told
        if fault and fault.way == "lasting" and now is not None and not told:
            told = health_says(daemon, now, fault)
        if time.monotonic() > until:
            states = {k: row[0] for k, row in (now or {}).items()}
            raise Failure(f"not all ended: {states or 'the daemon does not answer'}; "
                          f"its log ends with {daemon.log_tail()}")
        time.sleep(0.03)


def ran_right(state, runs):
    """Once; a job's time limit counts from before its command is executed, and may be over by then."""
    return runs == 1 or (runs == 0 and state == "TIMEOUT")


def check_ends(daemon, jobs, ends, fault):
    """Number of jobs that are LOST because their supervisors had no memory left."""
    lost = 0
    wanted = {job["key"]: (str(i), state, code) for i, (job, state, code) in enumerate(jobs)}
    wanted.update({f"t{t}": (f"t{t}", "COMPLETED", 0) for t in range(3)})
    for key, (mark, want, code) in wanted.items():
        state, status, text, _ = ends[key]
        runs = runs_of(daemon, mark)
        if state == "LOST" and "supervisor" in text and runs <= 1 and \
                fault.program == "supervisor" and fault.call is CALLS["mmap"]:
            lost += 1
        elif state != want or (code is not None and status != code) or not ran_right(want, runs):
            raise Failure(f"{key} ran {runs} times, {state} {status} ({text}), should be {want} "
                          f"{code}; stderr: {daemon.said()[-300:]!r}")
    return lost


def check_no_abort(daemon):
    """Neither the daemon nor any process that it started hit a broken invariant."""
    for line in daemon.said().splitlines():
        if "broken invariant" in line and "no memory for" not in line:
            raise Failure(line)


def await_clean(daemon, until):
    while True:
        try:
            daemon.revive()
            check_clean(daemon, folders_within_s=0)
            return
        except (Failure, TypeError):
            if time.monotonic() > until:
                raise
        time.sleep(0.05)


def deadline_s(args):
    return DEADLINE_SLURM_S if args.jobs == "slurm" else DEADLINE_S


def run_case(args, program, call, error, way, seed, n_at_start):
    """The outcome in words."""
    rng = random.Random(f"{seed} {program} {call} {error} {way}")
    fault = Fault(program, call, error, way, random.Random(rng.random()), n_at_start)
    daemon = Instance(args, CALLS[call].numbers, fault.judge)
    jobs = make_jobs(rng, args.jobs)
    until = time.monotonic() + deadline_s(args)
    signal.alarm(2 * deadline_s(args))
    try:
        if way == "start":
            fault.armed.set()
            daemon.begin()
            daemon.revive()
        elif not daemon.begin():
            raise Failure(f"the daemon did not start: {daemon.said()}")
        else:
            fault.armed.set()
        hand_in(daemon, jobs, until, args.jobs)
        ends, told = await_ends(daemon, len(jobs), until, fault)
        fault.armed.clear()
        lost = check_ends(daemon, jobs, ends, fault)
        await_clean(daemon, until)
        check_no_abort(daemon)
    finally:
        signal.alarm(0)
        fault.armed.clear()
        if daemon.process and daemon.process.poll() is None:
            daemon.kill(signal.SIGTERM)
        daemon.remove()
        daemon.stderr.close()
    words = [f"{fault.met} of {fault.seen} calls failed"]
    if daemon.deaths:
        words.append(f"the daemon went {len(daemon.deaths)} times ({daemon.deaths[-1]})")
    if lost:
        words.append(f"{lost} LOST")
    if told:
        words.append("health said it")
    return fault.met, ", ".join(words)


def count_calls(args):
    """Record which calls are made at all."""
    counter = Counter()
    numbers = sorted({n for call in CALLS.values() for n in call.numbers})
    daemon = Instance(args, numbers, counter.judge)
    jobs = make_jobs(random.Random(1), args.jobs)
    try:
        if not daemon.begin():
            raise Failure(f"the daemon did not start: {daemon.said()}")
        counter.works = True
        until = time.monotonic() + deadline_s(args)
        hand_in(daemon, jobs, until, args.jobs)
        await_ends(daemon, len(jobs), until, None)
    finally:
        daemon.remove()
        daemon.stderr.close()
    return counter.found


WAYS = ["first", "window", "some", "lasting", "start"]


def make_table(args, found):
    ways = args.ways or WAYS
    table = []
    for program in args.program or PROGRAMS_OF[args.jobs]:
        for call in args.calls or CALLS:
            for error in CALLS[call].errors.split():
                if args.errors and error not in args.errors:
                    continue
                table += [(program, call, error, way) for way in ways
                          if (way, error) != ("lasting", "EINTR") and
                          found[program, call, way != "start"] and
                          not {(program, call, way), (program, call, None)} & LEFT_OUT]
    return table


def on_alarm(number, frame):
    raise Failure("it stands still")


def words_list(text):
    return text.split(",")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--bin", required=True, help="folder of the installed programs' berthd")
    p.add_argument("--program", action="append", choices=[*PROGRAMS, "init", "node"])
    p.add_argument("--calls", type=words_list, help="names of " + ", ".join(CALLS))
    p.add_argument("--errors", type=words_list)
    p.add_argument("--ways", type=words_list, help="which of " + ", ".join(WAYS))
    p.add_argument("--system", action="store_true", help="the machine's daemon, a user's jobs")
    p.add_argument("--jobs", choices=MORE_OF, default="here", help="what executes them")
    p.add_argument("--cases", type=int, help="so many of the table, at random")
    p.add_argument("--seconds", type=float, default=float("inf"), help="no further case after that; one at least")
    p.add_argument("--part", type=words_list, help="I,N: each Nth case from the Ith on")
    p.add_argument("--seed", type=int, default=None)
    args = p.parse_args()
    if not faultcalls.is_possible():
        print("skipped: only on x86_64 Linux")
        return 77
    signal.signal(signal.SIGALRM, on_alarm)
    args.account = None
    if not args.system:
        return campaign(args)
    folder = tempfile.mkdtemp(prefix="berth-inject-")
    os.chmod(folder, 0o755)
    args.bin = copy_programs(args.bin, folder)
    accounts = make_users(folder)
    args.account = accounts[0]
    try:
        return campaign(args)
    finally:
        for account in accounts:
            subprocess.run([*IN_TURN, "userdel", "-r", account], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


def campaign(args):
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 30)
    found = count_calls(args)
    table = make_table(args, found)
    if args.part:
        table = table[int(args.part[0])::int(args.part[1])]
    if args.cases is not None:
        table = random.Random(seed).sample(table, min(args.cases, len(table)))
    began, failed, met, done = time.monotonic(), 0, 0, 0
    for case in table:
        if done > 0 and time.monotonic() - began > args.seconds:
            break
        done += 1
        label = " ".join(case)
        try:
            hits, words = run_case(args, *case, seed, found[case[0], case[1], False])
            met += hits > 0
            print(f"ok   {label}: {words}", flush=True)
        except Failure as e:
            failed += 1
            print(f"FAIL {label} (--seed {seed} --program {case[0]} --calls {case[1]} "
                  f"--errors {case[2]} --ways {case[3]}): {e}", flush=True)
    print(f"{done} cases, in {met} of which calls failed; {failed} went wrong; "
          f"{time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
