"""An instance of Berth and a cluster for campaigns: each in a folder of its own, used through
its commands only. Standard library only."""
import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 600  # deadline of any one event, on the busiest machine


class Failure(Exception):
    pass


def until(what, test, limit_s=LIMIT_S, pause_s=0.3):
    """Slurm's commands cannot wait for most events."""
    end = time.monotonic() + limit_s
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"after {limit_s} s: not {what}")
        time.sleep(pause_s)


def run(command, **options):
    """Run a command to its end; return its output."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S,
                              check=False, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(command)}: not done after {LIMIT_S} s") from None


class Cluster:
    """tests/slurm/cluster, in a folder of its own."""

    def __init__(self, nodes, options=()):
        self.nodes = nodes
        self.folder = tempfile.mkdtemp(prefix="berth-slurm-")
        os.chmod(self.folder, 0o755)
        self.dir = os.path.join(self.folder, "c")
        self.verb("start", "--nodes", str(nodes), *options)
        os.environ["SLURM_CONF"] = os.path.join(self.dir, "etc", "slurm.conf")

    def verb(self, *args):
        """Also put nodes back into service meanwhile: some verbs wait until all are usable."""
        with tempfile.TemporaryFile("w+") as out:
            done = subprocess.Popen([os.path.join(HERE, "cluster"), self.dir, *args],
                                    stdout=out, stderr=out)
            end = time.monotonic() + LIMIT_S
            while True:
                try:
                    status = done.wait(2)
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() > end:
                        done.kill()
                    if args[0] not in ("start", "stop"):
                        self.mend()
            out.seek(0)
            if status:
                raise Failure(f"cluster {' '.join(args)}: {out.read()}")

    def ask(self, *command):
        """The output of one of Slurm's commands; "" if slurmctld does not answer."""
        return run(command, stderr=subprocess.DEVNULL).stdout

    def mend(self):
        """A slurmctld that forgot jobs takes the nodes that have them out of service."""
        states = self.ask("sinfo", "-h", "-N", "-o", "%N %T").split()
        for node, state in zip(states[::2], states[1::2]):
            if re.match("drain|down|fail", state):
                self.ask("scontrol", "update", f"nodename={node}", "state=resume")

    def strays(self):
        """(node, wall clock) of each job that slurmctld had no record of: it had them killed."""
        found = []
        with open(os.path.join(self.dir, "log", "slurmctld.log"), encoding="utf-8",
                  errors="replace") as f:
            for line in f:
                m = re.match(r"\[([^]]+)\].*(?:Registered|Orphan) .* on (?:wrong )?(?:node )?"
                             r"(\w+)", line)
                if m:
                    at = datetime.datetime.fromisoformat(m.group(1))
                    found.append((m.group(2), at.timestamp()))
        return found

    def calls(self):
        """Number of calls that users' commands made to slurmctld, by kind."""
        return until("sdiag says how many calls there were", lambda: {
            name: int(n) for name, n in re.findall(r"(REQUEST_\w+)\s+\(\s*\d+\) count:(\d+)",
                                                   self.ask("sdiag"))})

    def remove(self, keep=False):
        with contextlib.suppress(Failure):
            self.verb("stop")
        os.environ.pop("SLURM_CONF", None)
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


class Instance:
    """A user's daemon with settings of its own, and the folder where its jobs run."""

    def __init__(self, binaries, settings=(), sim=None, state_in=None):
        """state_in: where the folder of its state is made; None: beside the others."""
        self.binaries, self.sim = binaries, sim
        self.folder = tempfile.mkdtemp(prefix="berth-slurm-")
        os.chmod(self.folder, 0o755)
        self.work = os.path.join(self.folder, "w")
        self.dir = os.path.join(tempfile.mkdtemp(prefix="berth-slurm-", dir=state_in)
                                if state_in else self.folder, "b")
        os.makedirs(self.work)
        os.makedirs(os.path.join(self.folder, "xdg", "berth"))
        with open(os.path.join(self.folder, "xdg", "berth", "config.yaml"), "w",
                  encoding="ascii") as f:
            f.writelines(line + "\n" for line in settings)
        self.env = dict(os.environ, BERTH_DIR=self.dir, LC_ALL="C.UTF-8", NO_COLOR="1",
                        BERTH_LOCK_DIR=self.folder,
                        XDG_CONFIG_HOME=os.path.join(self.folder, "xdg"),
                        PATH=binaries + ":" + os.environ["PATH"])
        self.client = None

    def berth(self, *args, statuses=(0,)):
        done = run([os.path.join(self.binaries, "berth"), *args], env=self.env, cwd=self.work,
                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if statuses and done.returncode not in statuses:
            raise Failure(f"berth {' '.join(args)}: {done.returncode}: {done.stderr}{done.stdout}")
        return done

    def start(self):
        """Start the daemon if none runs."""
        self.berth("daemon", "start", *(["--sim", self.sim] if self.sim else []),
                   statuses=None)
        until("a daemon answers", lambda: self.pid() is not None)

    def pid(self):
        done = self.berth("status", "--json", statuses=None)
        try:
            return json.loads(done.stdout)["daemon"]["pid"]
        except (ValueError, KeyError, TypeError):
            return None

    def begin(self, options):
        """A client that follows the file, in the background."""
        log = open(os.path.join(self.folder, "client.log"), "ab")
        self.client = subprocess.Popen(
            [os.path.join(self.binaries, "berth"), "run", *options, "jobs"], env=self.env,
            cwd=self.work, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    def kill_client(self):
        if self.client and self.client.poll() is None:
            self.client.kill()
            self.client.wait()

    def rows(self):
        """All jobs, by line; None while no daemon answers."""
        done = self.berth("queue", "--all", "--json", statuses=None)
        try:
            return {job["line"]: job for job in json.loads(done.stdout)["jobs"]}
        except (ValueError, KeyError):
            return None

    def show(self, job):
        return json.loads(self.berth("show", "--json", str(job)).stdout)["jobs"][0]

    def noted(self):
        """The lines that commands have recorded."""
        try:
            with open(os.path.join(self.work, "log"), encoding="ascii") as f:
                return [line.split() for line in f]
        except FileNotFoundError:
            return []

    def tail(self):
        try:
            with open(os.path.join(self.dir, "daemon.log"), encoding="utf-8",
                      errors="replace") as f:
                return "".join(f.readlines()[-40:])
        except OSError:
            return ""

    def remove(self, keep=False):
        self.kill_client()
        self.berth("daemon", "stop", "--cancel", statuses=None)
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.rmtree(os.path.dirname(self.dir), ignore_errors=True)


def processes(pattern):
    """Pids of processes whose command line, joined with blanks, contains this."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if pattern in f.read().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(int(pid))
    return found


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
