"""Kills at random under a jobs file on a cluster, for campaign.py: of whom, and what may have
become of the lines. Standard library only."""
import collections
import os
import subprocess
import time

from instance import Failure, kill, processes, until

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "LOST", "INFEASIBLE"}
# Attempts that ran: their command was cut off by a kill, or by Slurm because of one.
CUT_OFF = {"lost", "requeued"}


class Kills:
    """One round: a file that runs, and the kills meanwhile."""

    def __init__(self, args, rng, cluster, instance, way):
        self.args, self.rng, self.cluster, self.instance = args, rng, cluster, instance
        self.way = way
        self.cuts = []  # (node, wall clock before, after) of kills that end commands
        self.told = collections.Counter()

    # --- victims; each method returns once the victim is back ---

    def pause(self):
        # Not synchronisation: the length of the outage is varied on purpose.
        time.sleep(self.rng.random() * 3)

    def back(self, *verb):
        """Restart what was killed; on a busy machine the cluster is ready later. The killed
        node must be back in service, whatever the others are."""
        try:
            self.cluster.verb(*verb)
        except Failure:
            until(f"the cluster is ready after {verb}", lambda: self.is_ready(*verb[1:]))

    def is_ready(self, *node):
        try:
            self.cluster.verb("wait", *node)
            return True
        except Failure:
            return False

    def cut(self, node, do):
        before = time.time()
        do()
        self.cuts.append((node, before, time.time()))

    def client(self):
        self.instance.kill_client()

    def daemon(self):
        pid = self.instance.pid()
        if pid:
            kill(pid)
            until(f"the daemon {pid} is gone", lambda: not os.path.exists(f"/proc/{pid}"))
        self.instance.start()

    def slurmctld(self):
        self.cluster.verb("kill-ctld")
        self.pause()
        self.back("restart-ctld")

    def slurmd(self):
        node = str(self.rng.randrange(1, self.cluster.nodes + 1))
        self.cluster.verb("kill-slurmd", node)
        self.pause()
        self.back("restart-slurmd", node)

    def node(self):
        node = str(self.rng.randrange(1, self.cluster.nodes + 1))
        self.cut(f"n{node}", lambda: self.cluster.verb("kill-node", node))
        self.pause()
        self.back("start-node", node)

    def script(self):
        """Kill a batch script: of an allocation, or of one attempt. What ran in it ends."""
        pids = processes(f"--slurm{'-allocation' if self.way == 'pack' else ''} "
                         f"{self.instance.dir}/")
        pids = [pid for pid in pids if parent_is_slurm(pid)]
        if not pids:
            self.client()
            return "client"
        pid = self.rng.choice(sorted(pids))
        self.cut(host_of(pid), lambda: kill(pid))
        return "script"

    # --- the round ---

    def rows(self):
        if self.instance.client is None or self.instance.client.poll() is not None:
            self.instance.begin(["--on", "slurm"] + (["--pack"] if self.way == "pack" else []))
        self.cluster.mend()
        return self.instance.rows()

    def n_ended(self):
        rows = self.rows()
        return -1 if rows is None else sum(job["state"] in ENDED for job in rows.values())

    def run(self, lines, kinds):
        """Make this many kills while the lines run: one whenever some more of them have ended."""
        self.instance.start()
        self.instance.begin(["--on", "slurm"] + (["--pack"] if self.way == "pack" else []))
        for i, kind in enumerate(kinds):
            wanted = len(lines) * i // (len(kinds) + 1)
            until(f"{wanted} of {len(lines)} lines have ended",
                  lambda: self.n_ended() >= wanted)
            time.sleep(self.rng.random())  # the moment is varied on purpose
            self.told[getattr(self, kind)() or kind] += 1
        until("all lines have ended", lambda: self.n_ended() == len(lines), pause_s=1)
        return self.instance.rows(), self.instance.noted()

    # --- possible fates of the lines ---

    def may_be_cut(self, attempt):
        """Something was killed on its node between its start and its end; or slurmctld had
        forgotten the job when it was killed, and had the node end it meanwhile."""
        began, ended = attempt["started"]["unix"], attempt["ended"]["unix"]
        node, cuts = attempt["slurm_node"], list(self.cuts)
        if self.told["slurmctld"] > 0:
            cuts += [(there, at, at) for there, at in self.cluster.strays()]
        return not node or any(node == there and before <= ended + 1 and began <= after + 1
                               for there, before, after in cuts)

    def check_attempts(self, line, tries):
        """Attempts cut off, all of which must be explained by a kill. Returns the others."""
        true = []
        for a in tries:
            if a["outcome"] not in CUT_OFF:
                true.append(a)
            elif a["outcome"] == "lost" and not self.may_be_cut(a):
                raise Failure(f"line {line.number}, {line.text()}: attempt {a['number']} is LOST "
                              f"({a['text']}), and nobody was killed on {a['slurm_node']}")
            elif a["outcome"] == "lost" and a is not tries[-1] and not line.requeue:
                raise Failure(f"line {line.number}: it ran again after it was LOST")
            elif a["outcome"] == "requeued" and self.way != "pack":
                raise Failure(f"line {line.number}: attempt {a['number']} ran again: {a['text']}")
        return true


def parent_is_slurm(pid):
    """Not one of the supervisors, which are forked by it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            parent = f.read().rsplit(")", 1)[1].split()[1]
        with open(f"/proc/{parent}/comm", encoding="ascii") as f:
            return f.read().startswith("slurmstepd")
    except OSError:
        return False


def host_of(pid):
    done = subprocess.run(["nsenter", "-t", str(pid), "-u", "hostname"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip()


def choose(rng, n):
    """The victims: each kind equally often, in random order."""
    kinds = ["client", "daemon", "slurmctld", "slurmd", "node", "script"]
    out = []
    while len(out) < n:
        rng.shuffle(kinds)
        out += kinds
    return out[:n]
