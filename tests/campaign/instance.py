"""A daemon for a campaign, in a folder of its own, which can be killed and started again.
Standard library only."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile

ENV = ["PATH=" + os.environ["PATH"], "HOME=" + os.environ.get("HOME", "/")]


class Failure(Exception):
    pass


def attempt_folders(instance_dir):
    """Names of attempts' folders; also of spare ones that still hold a job's environment. A
    supervisor that was about to leave may have put a record or its socket beside the empty
    lock: both go before the folder is used again."""
    jobs, found = os.path.join(instance_dir, "state", "jobs"), []
    for name in os.listdir(jobs):
        folder = os.path.join(jobs, name)
        try:
            if name.startswith(".spare.") and \
                    os.path.getsize(os.path.join(folder, "lock")) == 0 and \
                    set(os.listdir(folder)) <= {"lock", "exit", "exit.tmp", "ctl.sock"}:
                continue
        except FileNotFoundError:
            pass
        if os.path.isdir(folder):  # it may vanish meanwhile
            found.append(name)
    return found


class Daemon:
    """One instance in a folder of its own, whose daemon can be killed and started again."""

    def __init__(self, binaries, sim="4"):
        self.binaries, self.sim = binaries, sim
        self.dir = tempfile.mkdtemp(prefix="berth-crash-")
        self.marks = os.path.join(self.dir, "ran")
        os.mkdir(self.marks)
        self.process = None
        self.answer = ""  # output of the start: "ready", or an error
        self.stderr = None  # where the daemon complains: ours

    def start(self, crash_at=None, must=True, options=(), before=(), on_launch=None):
        """True once it is ready; False if it died before (which a crash point may want).
        `before`: words to put in front of the command; on_launch is called once it has been
        started."""
        env = dict(os.environ, BERTH_LOCK_DIR=self.dir)
        env.pop("BERTH_CRASH_AT", None)
        if crash_at:
            env["BERTH_CRASH_AT"] = crash_at
        r, w = os.pipe()
        self.process = subprocess.Popen(
            [*before, os.path.join(self.binaries, "berthd"), "--dir", self.dir, "--sim", self.sim,
             "--stay", "--ready-fd", str(w), *options], pass_fds=[w], env=env,
            stderr=self.stderr)
        os.close(w)
        if on_launch:
            on_launch()
        with os.fdopen(r) as pipe:
            line = self.answer = pipe.read().strip()
        if line != "ready" and must:
            raise Failure(f"the daemon did not start: {line or 'it died'}")
        return line == "ready"

    def kill(self, sig=signal.SIGKILL):
        self.process.send_signal(sig)
        self.process.wait()

    def call(self, method, params):
        """The result; None if the daemon died before it answered."""
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(os.path.join(self.dir, "berth.sock"))
            s.sendall(json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n")
            with s.makefile() as f:
                line = f.readline()
        except OSError:
            return None
        finally:
            s.close()
        if not line.endswith("\n"):
            return None
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(f"{method}: {answer['error']}")
        return answer["result"]

    def sync(self, jobs):
        """Submit the jobs as a file, which can safely be repeated until it is answered."""
        return self.call("file.sync", {"path": "/campaign", "cwd": self.marks, "umask": 18,
                                       "env": ENV, "jobs": jobs})

    def fetch(self):
        result = self.call("jobs", {"all": True, "fields": ["key", "state", "exit_status",
                                                            "attempt", "text"]})
        return None if result is None else {row[0]: row[1:] for row in result["rows"]}

    def processes(self):
        """Pids whose environment has this instance's mark."""
        found = []
        needle = ("BERTH_SUBMIT_DIR=" + self.marks).encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if needle in f.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def is_ours(self, pid):
        """True if it has a file of this instance open, or its program or working directory is
        there."""
        links = [f"/proc/{pid}/exe", f"/proc/{pid}/cwd"]
        with contextlib.suppress(OSError):
            links += [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
        for link in links:
            with contextlib.suppress(OSError):
                if os.readlink(link).startswith(self.dir + "/"):
                    return True
        return False

    def left(self):
        """Pids of all processes of this instance, including supervisors and jobs of every kind."""
        return {pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if pid != os.getpid() and self.is_ours(pid)}.union(self.processes())

    def remove(self):
        if self.process and self.process.poll() is None:
            self.kill()
        # Processes that outlive the folder would print errors about that in the middle of a
        # campaign's output.
        while left := self.left():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)
