#!/usr/bin/env python3
"""Random workloads on random machines, equal cards and mixed ones, under every policy of the
simulator that does not need the daemon's planner: `berth simulate` against an oracle that does it
the slow way, straight from the rules (man berth, "simulate"; src/sim/textbook/policy.h). Schedules are to
be the same to the byte.

Usage: tests/campaign/simulate.py [BERTH] [SEEDS] [FIRST]     (berth, 50, 1)
"""
import itertools
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

MARGIN = 512
AGE = 4 * 3600


class Job:
    def __init__(self, number, arrival, duration, estimate, gpus, vram):
        self.id, self.arrival, self.duration = number, arrival, duration
        self.estimate, self.gpus, self.vram = estimate, gpus, vram
        self.start, self.cards = None, ()


class Node:
    """The free resources of each GPU, now or at some later time."""

    def __init__(self, totals, policy, used=None, count=None):
        self.totals, self.policy = totals, policy
        self.used = used or [0] * len(totals)
        self.count = count or [0] * len(totals)

    def copy(self):
        return Node(self.totals, self.policy, self.used[:], self.count[:])

    def book(self, job, cards, sign=1):
        for c in cards:
            self.used[c] += sign * job.vram
            self.count[c] += sign

    def place(self, job):
        free = [t - u for t, u in zip(self.totals, self.used)]
        every = range(len(free))
        if self.policy.startswith("whole"):
            fit = [c for c in every if self.count[c] == 0 and free[c] >= job.vram]
        else:
            fit = [c for c in every if free[c] >= job.vram + MARGIN]
        rank = {"greedy-wf": lambda c: (-free[c], c), "greedy-ff": lambda c: c}
        key = rank.get(self.policy, lambda c: (free[c], c))
        if self.policy.startswith("whole"):
            key = lambda c: c
        fit.sort(key=key)
        return tuple(sorted(fit[:job.gpus])) if len(fit) >= job.gpus else None


class Oracle:
    def __init__(self, jobs, totals, policy):
        self.waiting, self.running, self.now = [], [], 0
        self.node = Node(totals, policy)
        self.family, _, knows = policy.partition("-")
        self.policy, self.jobs = policy, jobs
        self.run_of = (lambda j: j.duration) if knows == "p" else (lambda j: j.estimate)

    def start(self, job, cards):
        job.start, job.cards = self.now, cards
        self.node.book(job, cards)
        self.waiting.remove(job)
        self.running.append(job)

    def in_order(self):
        oldest = lambda j: (j.arrival, j.id)
        run = self.run_of

        def ratio(j):
            r = max(run(j), 60)
            return (-Fraction(self.now - j.arrival + r, r), j.arrival, j.id)

        keys = {"sjf": lambda j: (run(j),) + oldest(j), "hrrn": ratio,
                "lpt": lambda j: (-run(j), -j.gpus, -j.vram) + oldest(j)}
        return sorted(self.waiting, key=keys.get(self.family, oldest))

    def promise(self, head):
        later = self.node.copy()
        expected = lambda j: max(j.start + self.run_of(j), self.now + 1)
        for at, group in itertools.groupby(sorted(self.running, key=expected), key=expected):
            for job in group:
                later.book(job, job.cards, -1)
            if later.place(head):
                return at, later
        raise AssertionError("job %d fits on no empty machine" % head.id)

    def backfill(self, head, others):
        at, later = self.promise(head)
        for job in others:
            cards = self.node.place(job)
            if cards is None:
                continue
            if self.now + self.run_of(job) > at:
                later.book(job, cards)
                if not later.place(head):
                    later.book(job, cards, -1)
                    continue
            self.start(job, cards)

    def start_heads(self, heads):
        """The first job that does not fit."""
        for job in heads:
            cards = self.node.place(job)
            if cards is None:
                return job
            self.start(job, cards)
        return None

    def shortest_first(self, jobs):
        return sorted(jobs, key=lambda j: (self.run_of(j), j.arrival, j.id))

    def plan(self):
        queue = self.in_order()
        if self.policy in ("fifo", "whole-fifo"):
            self.start_heads(queue)
        elif self.family in ("easy", "hrrn", "sjbf"):
            head = self.start_heads(queue)
            if head:
                others = [j for j in queue[queue.index(head) + 1:]]
                self.backfill(head, self.shortest_first(others) if self.family == "sjbf" else others)
        elif self.family == "aged":
            aged = [j for j in queue if self.now - j.arrival >= AGE]
            head = self.start_heads(aged)
            rest = self.shortest_first(j for j in self.waiting if j is not head)
            if head:
                self.backfill(head, rest)
            else:
                self.start_what_fits(rest)
        else:
            self.start_what_fits(queue)

    def start_what_fits(self, jobs):
        for job in jobs:
            cards = self.node.place(job)
            if cards is not None:
                self.start(job, cards)

    def run(self):
        coming = sorted(self.jobs, key=lambda j: (j.arrival, j.id))
        while coming or self.running:
            ends = [j.start + j.duration for j in self.running]
            self.now = min(ends + [j.arrival for j in coming[:1]])
            for job in [j for j in self.running if j.start + j.duration == self.now]:
                self.running.remove(job)
                self.node.book(job, job.cards, -1)
            while coming and coming[0].arrival == self.now:
                self.waiting.append(coming.pop(0))
            if self.waiting:
                self.plan()
        return "".join("%d,%d,%d,%s\n" % (j.id, j.start, j.start + j.duration, ";".join(map(str, j.cards)))
                       for j in sorted(self.jobs, key=lambda j: j.id))


def draw(rng):
    sizes = [(11, 11264), (24, 24576), (80, 81920)]
    groups = [(rng.randint(1, 8),) + rng.choice(sizes) for _ in range(1 + (rng.random() < 0.4))]
    totals = [mib for n, _, mib in groups for _ in range(n)]
    spec = ",".join("%dx%dG" % (n, gib) for n, gib, _ in groups)
    demands = []
    while len(demands) < rng.randint(1, 10):
        vram = rng.choice([rng.randint(1, 24000), 5000, 10752])
        wide = sum(t >= vram + MARGIN for t in totals)
        if wide:
            demands.append((rng.randint(1, wide) if rng.random() < 0.3 else 1, vram))
    jobs, now = [], 0
    for number in range(rng.randint(1, 120)):
        duration = rng.randint(1, rng.choice([50, 2000, 40000]))
        estimate = duration + rng.choice([0, rng.randint(0, 4000)])
        if rng.random() < 0.1:
            estimate = rng.randint(1, duration)
        jobs.append(Job(number, now, duration, estimate, *rng.choice(demands)))
        now += rng.choice([0, rng.randint(0, 60), rng.randint(0, 3000)])
    return spec, totals, jobs


def write(path, jobs):
    with open(path, "w") as f:
        f.write("job_id,arrival_s,duration_s,est_s,gpus,vram_mib\n")
        for j in jobs:
            f.write("%d,%d,%d,%d,%d,%d\n" % (j.id, j.arrival, j.duration, j.estimate, j.gpus, j.vram))


POLICIES = ["fifo", "greedy", "greedy-wf", "greedy-ff", "whole", "whole-fifo"] + [
    family + knows for family in ("easy", "sjbf", "hrrn", "sjf", "lpt", "aged") for knows in ("-p", "-e")]


def main():
    berth = sys.argv[1] if len(sys.argv) > 1 else "berth"
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory() as folder:
        csv, dump = os.path.join(folder, "w.csv"), os.path.join(folder, "schedule")
        for seed in range(first, first + seeds):
            spec, totals, jobs = draw(random.Random(seed))
            write(csv, jobs)
            for policy in POLICIES:
                subprocess.run([berth, "simulate", csv, "--gpus", spec, "--policy", policy, "--dump", dump],
                               check=True, stdout=subprocess.DEVNULL)
                with open(dump) as f:
                    got = f.read()
                if got != Oracle(jobs, totals, policy).run():
                    sys.exit("seed %d, %s, %s: another schedule" % (seed, spec, policy))
    print("%d workloads under %d policies: the same schedules" % (seeds, len(POLICIES)))


if __name__ == "__main__":
    main()
