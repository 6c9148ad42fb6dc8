#!/usr/bin/env python3
"""Takes the power from a daemon, its supervisors and their disk at random moments, under submissions,
arrays, cancels, edits of a jobs file, ends and upgrades, and checks after each cut that

- each job whose submission was acknowledged is there, each acknowledged cancel holds;
- each end that a client was told is still that end; each exit code is the job's own;
- what ran is LOST, or PENDING again where a requeue was asked for;
- no attempt ran twice, and no job has more attempts than were asked for: each one leaves a line
  on a disk that keeps its power.

    power.py --bin DIR [--cuts 100] [--seed N] [--fs ext4,nojournal,xfs,btrfs,full] [--lying]

The state is on a loop device over lossy_disk.py: of what was written and not flushed, nothing,
all of it or any part is there after the cut, torn at sectors too. `full` is an ext4 that has
no room left for most of the time. The kernel does not lose its memory, so the daemon gets another
boot ID after each cut, and its processes are killed; tests/vm/cases has cuts of a whole machine.

With --lying the disk flushes nothing: then the campaign has to fail, or it proves nothing.

Prints a table of the file systems. Needs root, FUSE, loop devices and the mkfs of each. Exit
status 77 where they are missing. Standard library only."""
import argparse
import collections
import ctypes
import glob
import json
import os
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
import uuid

from instance import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 300  # for the kernel, which lets go of a file system late on a busy machine
SETTLE_SECONDS = 90  # more than the daemon waits for a folder to become readable
SIZE_MIB = 320  # minimum for the largest of the file systems
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard"],
    "nojournal": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-O", "^has_journal"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
    "full": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-m", "0"],
}
LIBC = ctypes.CDLL(None)
ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "LOST", "INFEASIBLE"}
FIELDS = ["id", "state", "exit_status", "attempt", "command", "array_job", "array_task", "key", "requeue"]


def sh(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def enter_own_mounts():
    """Mount namespaces made meanwhile by others, e.g. by a test run in parallel, hold a copy
    of each mount they see, and with it the loop device: they must not see these."""
    if "BERTH_POWER_OWN_MOUNTS" not in os.environ:
        os.environ["BERTH_POWER_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def is_mounted(folder):
    """os.path.ismount asks the file system, which may have no power."""
    with open("/proc/self/mounts") as f:
        return any(line.split()[1] == folder for line in f)


class Disk:
    """A file system on a loop device on a lossy disk, whose image outlasts its cuts."""

    def __init__(self, work, kind, lies):
        self.lies = ["lie"] if lies else []
        self.kind, self.image = kind, f"{work}/image"
        self.folder, self.mount = f"{work}/lossy", f"{work}/m"
        for folder in (self.folder, self.mount):
            os.mkdir(folder)
        with open(self.image, "wb") as f:
            f.truncate(SIZE_MIB << 20)
        sh(*MAKE[kind], self.image)
        self.server = self.loop = None

    def attach(self):
        self.server = subprocess.Popen(
            [sys.executable, f"{HERE}/lossy_disk.py", self.folder, self.image, str(SIZE_MIB),
             *self.lies],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline().strip() != "ready":
            raise Failure("the lossy disk did not start")
        self.loop = sh("losetup", "-f", "--show", f"{self.folder}/disk")
        if self.kind == "nojournal":
            sh("e2fsck", "-fy", self.loop, check=False)
        try:
            sh("mount", "-o", "nodiscard", self.loop, self.mount)
        except Failure as failure:
            raise Failure(f"the file system was found damaged: {failure}") from None

    def write_back(self):
        """Make the kernel write back dirty pages, as it does after a while, without a flush."""
        for path in glob.glob(f"{self.mount}/b/state/berth.db*") + glob.glob(f"{self.mount}/b/logs/*"):
            try:
                with open(path, "rb") as f:
                    LIBC.sync_file_range(f.fileno(), ctypes.c_long(0), ctypes.c_long(0), 2)
            except OSError:  # gone, or, without a journal, something else after a cut
                pass

    def cut(self, mode, seed):
        self.server.stdin.write(f"cut {mode} {seed}\n")
        self.server.stdin.flush()
        return [int(word) for word in self.server.stdout.readline().split()]

    def detach(self):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:  # the last killed processes may still have it open
            if not is_mounted(self.mount) or subprocess.run(
                    ["umount", self.mount], capture_output=True).returncode == 0:
                break
            time.sleep(0.05)
        else:
            raise Failure(f"{self.mount} is busy: " + sh("fuser", "-vm", self.mount, check=False))
        if self.loop:
            sh("losetup", "-d", self.loop)
            self.await_free(self.loop)
        self.loop = None
        sh("umount", "-l", self.folder, check=False)
        if self.server:
            self.server.kill()
            self.server.wait()
        self.server = None

    @staticmethod
    def await_free(loop):
        """The kernel releases the device when the last mount namespace of a killed daemon is
        gone, which can be after its processes: until then xfs refuses to mount the same file
        system again."""
        backing = f"/sys/block/{os.path.basename(loop)}/loop/backing_file"
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if not os.path.exists(backing):
                return
            time.sleep(0.05)
        raise Failure(f"{loop} is still in use")

    def fill(self):
        """Leave almost no room."""
        room = os.statvfs(self.mount)
        left = random.choice([0, 64 << 10, 512 << 10])
        with open(f"{self.mount}/filler", "wb") as f:
            try:
                os.posix_fallocate(f.fileno(), 0, max(room.f_bavail * room.f_bsize - left, 1))
            except OSError:
                pass

    def make_room(self):
        if os.path.exists(f"{self.mount}/filler"):
            os.unlink(f"{self.mount}/filler")


class Told:
    """What clients were told: recorded only while there is power, under one lock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.power = False
        self.jobs = {}       # token of the command: job's number
        self.cancelled = set()
        self.ends = {}       # job's number: (state, exit status)
        self.lines = None    # keys of the jobs file acknowledged last
        self.count = collections.Counter()


class Machine:
    def __init__(self, args, kind, seed):
        self.lots = random.Random(seed)
        self.work = tempfile.mkdtemp(prefix="berth-power-")
        self.ran = f"{self.work}/ran"
        os.mkdir(self.ran)
        self.disk = Disk(self.work, kind, args.lying)
        self.mark = "BERTH_POWER_MARK=" + self.work
        self.programs = f"{self.work}/bin"
        shutil.copytree(os.path.join(args.bin, "../libexec/berth"), self.programs)
        for name in ("berth", "berthd"):
            shutil.copy(os.path.join(args.bin, name), self.programs)
        self.told = Told()
        self.expected = {}  # token: (exit code, number of attempts, may be requeued)
        self.threads = []
        self.last_token = 0
        self.dropped = [0, 0]

    # The power.

    def start(self):
        """A daemon in a system that, as far as it can see, has just booted."""
        with open(f"{self.work}/boot_id", "w") as f:
            f.write(str(uuid.uuid4()) + "\n")
        self.start_daemon()
        self.told.power = True

    def start_daemon(self):
        r, w = os.pipe()
        script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        self.log = open(f"{self.work}/daemon.out", "ab")
        self.daemon = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script, f"{self.work}/boot_id",
             f"{self.programs}/berthd", "--dir", f"{self.disk.mount}/b", "--sim", "4", "--stay",
             "--ready-fd", str(w)], pass_fds=[w], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log,
            env=dict(os.environ, BERTH_LOCK_DIR=self.work, BERTH_POWER_MARK=self.work))
        os.close(w)
        with os.fdopen(r) as pipe:
            line = pipe.read().strip()
        if "berth.db" in line:
            raise Failure(f"the database was found damaged: {line}")
        if line != "ready":
            log = subprocess.run(["tail", "-5", f"{self.work}/daemon.out"], capture_output=True, text=True)
            raise Failure(f"the daemon did not start: {line or 'it died'}\n{log.stdout}")

    def upgrade(self):
        """Replace the daemon's program by another and restart it."""
        for name in ("berthd", "berth-shepherd"):
            shutil.copy(f"{self.programs}/{name}", f"{self.programs}/{name}.new")
            os.rename(f"{self.programs}/{name}.new", f"{self.programs}/{name}")
        self.daemon.send_signal(self.lots.choice([signal.SIGTERM, signal.SIGKILL]))
        self.daemon.wait()
        try:
            self.start_daemon()
            return True
        except Failure:
            if self.disk.kind == "full":
                return False  # it printed why; the next cut follows
            raise

    def processes(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if self.mark.encode() in f.read().split(b"\0") and int(pid) != os.getpid():
                        yield int(pid)
            except OSError:
                pass

    def cut(self):
        mode = self.lots.choice(["none", "blocks", "sectors", "all"])
        if self.lots.random() < 0.7:
            self.disk.write_back()
        with self.told.lock:
            cached, kept = self.disk.cut(mode, self.lots.random())
            self.told.power = False
        self.dropped[0] += cached
        self.dropped[1] += cached * 8 - kept
        while found := list(self.processes()):
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        self.daemon.wait()
        for thread in self.threads:
            thread.join()
        self.threads.clear()
        self.disk.detach()

    def remove(self):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        if hasattr(self, "daemon"):
            self.daemon.wait()
        self.disk.detach()
        shutil.rmtree(self.work)

    # Clients.

    def call(self, method, params):
        """The result; None if no answer came, or it was refused."""
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(f"{self.disk.mount}/b/berth.sock")
                s.sendall(json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n")
                line = s.makefile().readline()
            except OSError:
                return None
        if not line.endswith("\n"):
            return None
        answer = json.loads(line)
        if "error" in answer and self.disk.kind != "full":
            if answer["error"].get("data", {}).get("kind") not in ("no_job", "refused") and self.told.power:
                # All of this is to be expected while the power is off.
                with self.told.lock:
                    if self.told.power:
                        raise Failure(f"{method}: {answer['error']}")
        return answer.get("result")

    def job(self, seconds, code, **more):
        """A job that writes a line for each attempt, with its token."""
        self.last_token += 1
        token = f"t{self.last_token}"
        note = f"echo $BERTH_ATTEMPT >>{self.ran}/{token}.$BERTH_ARRAY_TASK_ID"
        # The job writes its log to the same disk while it runs.
        command = f"{note}; for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep {seconds / 9:.3f}; done; exit {code}"
        self.expected[token] = (code, bool(more.get("requeue")))
        return token, {"command": command, "gpus": 0, **more}

    def submit(self, jobs):
        answer = self.call("submit", {"jobs": [job for _, job in jobs], "cwd": self.ran, "umask": 18,
                                      "env": ["PATH=" + os.environ["PATH"], "HOME=/", self.mark]})
        with self.told.lock:
            if answer and self.told.power:
                self.told.count["submitted"] += len(jobs)
                for (token, _), number in zip(jobs, answer["ids"]):
                    self.told.jobs[token] = number
        return answer["ids"] if answer else []

    def submit_some(self):
        jobs = [self.job(self.lots.choice([0, 0, 0.3, 30]), self.lots.choice([0, 3]),
                         **self.lots.choice([{}, {}, {"requeue": True}, {"vram_mib": 4000, "gpus": 1}]))
                for _ in range(self.lots.randint(1, 4))]
        self.wait_for(self.submit(jobs))

    def submit_array(self):
        self.submit([self.job(self.lots.choice([0, 0.2]), 0, array="0-5", array_max=2)])

    def wait_for(self, ids):
        """Receive ends in parallel, as long as there is a daemon."""
        def hear(number):
            answer = self.call("wait", {"select": [str(number)]})
            with self.told.lock:
                if answer and self.told.power:
                    for job in answer["jobs"]:
                        self.told.ends[job["id"]] = (job["state"], job["exit_status"])
                        self.told.count["ends"] += 1

        for number in ids:
            thread = threading.Thread(target=hear, args=(number,))
            thread.start()
            self.threads.append(thread)

    def cancel_some(self):
        with self.told.lock:
            known = sorted(set(self.told.jobs.values()) - self.told.cancelled)[-12:]
        if not known:
            return
        number = self.lots.choice(known)
        answer = self.call("cancel", {"select": [str(number)], "grace_ms": 100})
        with self.told.lock:
            if answer and self.told.power:
                self.told.cancelled.add(number)
                self.told.count["cancelled"] += 1

    def edit_file(self):
        jobs = []
        for i in range(self.lots.randint(1, 5)):
            token, job = self.job(0.1, 0)
            jobs.append(dict(job, key=f"{token}", line=i + 1))
        answer = self.call("file.sync", {"path": "/campaign", "cwd": self.ran, "umask": 18, "jobs": jobs,
                                         "env": ["PATH=" + os.environ["PATH"], "HOME=/", self.mark]})
        with self.told.lock:
            if answer and self.told.power:
                self.told.lines = [job["key"] for job in jobs]
                self.told.count["lines"] += len(jobs)

    def work_until(self, deadline):
        steps = [self.submit_some] * 5 + [self.submit_array, self.cancel_some, self.cancel_some, self.edit_file]
        while time.monotonic() < deadline:
            self.lots.choice(steps)()
            if self.lots.random() < 0.04:
                self.told.count["upgrades"] += 1
                if not self.upgrade():
                    return

    # What must be true.

    def fetch(self):
        answer = self.call("jobs", {"all": True, "fields": FIELDS})
        if answer is None:
            raise Failure("the daemon does not say what jobs there are")
        return [dict(zip(FIELDS, row)) for row in answer["rows"]]

    def wait_until_settled(self, before):
        """An attempt from before the cut that cannot be read is retried for a while."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            if not any(job["state"] == "STARTING" and
                       (before.get(job["id"]) == job["attempt"] or job["id"] in self.told.cancelled)
                       for job in self.fetch()):
                return
            time.sleep(0.1)

    def attempts(self, token):
        """For each task with this token (`` if it is no array), the attempts that ran."""
        found = {}
        for path in glob.glob(f"{self.ran}/{token}.*"):
            with open(path) as f:
                found[path.rsplit(".", 1)[1]] = f.read().split()
        return found

    def check(self):
        jobs = self.fetch()
        by_number = {job["id"]: job for job in jobs}
        wrong = []
        for token, number in self.told.jobs.items():
            if number not in by_number:
                wrong.append(f"job {number} was acknowledged and is not there")
            elif f"/{token}." not in by_number[number]["command"]:
                wrong.append(f"job {number} is another one than was acknowledged")
        for number, end in self.told.ends.items():
            job = by_number.get(number)
            if job and (job["state"], job["exit_status"]) != end:
                wrong.append(f"the end of job {number} was {end}, and is {job['state'], job['exit_status']}")
        for number in self.told.cancelled:
            job = by_number.get(number)
            if job and job["state"] not in ENDED:
                wrong.append(f"job {number} was cancelled, and is {job['state']}")
        if self.told.lines:
            keys = {job["key"] for job in jobs}
            wrong += [f"line {key} of the jobs file was acknowledged and is not there"
                      for key in self.told.lines if key not in keys]
        for job in jobs:
            wrong += self.check_job(job)
        if wrong:
            raise Failure("\n".join(wrong[:20]))
        return jobs

    def check_job(self, job):
        token = job["command"].rsplit("/", 1)[1].split(".")[0]
        code, may_repeat = self.expected[token]
        task = "" if job["array_task"] is None else str(job["array_task"])
        name = f"job {job['id']} ({token}.{task})"
        ran = self.attempts(token).get(task, [])
        if len(set(ran)) != len(ran):
            yield f"{name} ran attempts {ran}: one of them twice"
        if len(ran) > 1 and not may_repeat:
            yield f"{name} ran {len(ran)} times"
        if job["state"] == "COMPLETED" and code != 0 or job["state"] == "FAILED" and job["exit_status"] != code:
            yield f"{name} is {job['state']} with status {job['exit_status']}, and exits with {code}"
        if job["state"] in ("COMPLETED", "FAILED") and not ran and job["array_task"] is None and not self.is_array(job):
            yield f"{name} is {job['state']} and never ran"

    def is_array(self, job):
        return os.path.exists(f"{self.ran}/{job['command'].rsplit('/', 1)[1].split('.')[0]}.0")

    def check_running(self, before):
        """A job that ran when the power went is LOST, or pending again if that was requested."""
        jobs = {job["id"]: job for job in self.fetch()}
        count = 0
        for number in before:
            job = jobs.get(number)
            if not job:
                raise Failure(f"job {number} ran when the power went, and is not there")
            count += 1
            if job["state"] == "LOST" or job["state"] in ENDED:
                continue
            if not job["requeue"]:
                raise Failure(f"job {number} ran when the power went, and is {job['state']}")
        return count

    # The campaign.

    def finish(self):
        """Run all that still can; then check everything once more."""
        for job in self.fetch():
            if job["state"] not in ENDED:
                self.call("cancel", {"select": [str(job["id"])], "grace_ms": 100})
        self.call("wait", {"select": ["all"]})
        jobs = self.check()
        self.call("stop", {"cancel": True})
        self.daemon.wait()
        said = sh("python3", "-c", "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("
                  "'pragma integrity_check').fetchone()[0])", f"{self.disk.mount}/b/state/berth.db")
        if said != "ok":
            raise Failure(f"the database was found damaged: {said}")
        return jobs

    def campaign(self, cuts):
        self.disk.attach()
        self.start()
        lost = 0
        for _ in range(cuts):
            if self.disk.kind == "full" and self.lots.random() < 0.7:
                self.disk.fill()
            self.work_until(time.monotonic() + self.lots.uniform(0.2, 2.0))
            running = {job["id"]: job["attempt"] for job in self.call("jobs", {"all": True, "fields": FIELDS, "select": []}) and
                       self.fetch() if job["state"] == "RUNNING"} if self.daemon.poll() is None else {}
            self.cut()
            self.disk.attach()
            self.disk.make_room()
            self.start()
            self.wait_until_settled(running)
            self.check()
            lost += self.check_running(running)
            print(".", end="", file=sys.stderr, flush=True)
        jobs = self.finish()
        count = self.told.count
        print(f"{self.disk.kind:10} {cuts:5} {count['submitted']:6} {count['lines']:6} {count['cancelled']:7} "
              f"{count['ends']:6} {count['upgrades']:8} {lost:7} {len(jobs):6} {self.dropped[0]:8} {self.dropped[1]:8}",
              flush=True)


def missing(kinds):
    if os.getuid() != 0:
        return "only root can mount"
    for path in ("/dev/fuse", "/dev/loop-control"):
        if not os.path.exists(path):
            return f"there is no {path}"
    tools = [MAKE[kind][0] for kind in kinds] + ["losetup", "unshare"]
    return next((f"there is no {tool}" for tool in tools if not shutil.which(tool)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--fs", default=",".join(MAKE))
    parser.add_argument("--lying", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that mounts are undone
    kinds = args.fs.split(",")
    if why := missing(kinds):
        print(f"skipped: {why}")
        return 77
    enter_own_mounts()
    print(f"seed {args.seed}\n{'state on':10} {'cuts':>5} {'acked':>6} {'lines':>6} {'cancels':>7} {'ends':>6} "
          f"{'upgrades':>8} {'running':>7} {'jobs':>6} {'unflushed':>9} {'lost':>7}", flush=True)
    for i, kind in enumerate(kinds):
        machine = Machine(args, kind, f"{args.seed} {kind}")
        try:
            machine.campaign(args.cuts // len(kinds) + (i < args.cuts % len(kinds)))
        except Failure as failure:
            machine.told.power = False
            print(f"\nFAILED on {kind}, seed {args.seed}:\n{failure}")
            for log in (f"{machine.work}/daemon.out", f"{machine.disk.mount}/b/daemon.log"):
                print(subprocess.run(["tail", "-20", log], capture_output=True, text=True, errors="replace").stdout)
            for token in re.findall(r"\((t\d+)\.", str(failure)):
                print(token, "ran", machine.attempts(token), "expected", machine.expected[token])
            for number in sorted(set(re.findall(r"job (\d+)", str(failure))))[:5]:
                print(json.dumps(machine.call("jobs", {"select": [number]})))
                print(json.dumps(machine.call("events", {"jobs": [int(number)]})))
            return 1
        finally:
            machine.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
