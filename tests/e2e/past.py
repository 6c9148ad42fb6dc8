#!/usr/bin/env python3
"""A past for reports, and the same sums by another way.

    past.py fill DB N         adds N ended jobs like the newest one there, spread over 30 days
    past.py check DB REPORT   the answer of `berth report --json`, in a file, against the
                              database, from which everything is counted here once more

The daemon must not run while it fills. What it checks is a copy: the daemon has the database
for itself."""

import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile

COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY = 6, 7, 8, 9, 10
STATES = ("PENDING HELD STARTING RUNNING SUSPENDED COMPLETING COMPLETED FAILED CANCELLED "
          "TIMEOUT OUT_OF_MEMORY PREEMPTED INFEASIBLE LOST").split()
EXITED, SIGNALED, OUT_OF_TIME, BY_REQUEST = 1, 2, 3, 4
DAY_US = 86400 * 1000000


def insert(db, table, row):
    db.execute("INSERT INTO %s(%s) VALUES(%s)" % (table, ",".join(row), ",".join("?" * len(row))),
               list(row.values()))


def outcome_of(state, chance):
    """An attempt's fields for a job that ended this way: outcome, code, signal, kind of OOM."""
    if state == COMPLETED:
        return EXITED, 0, 0, 0
    if state == FAILED:
        return chance.choice([(EXITED, 1, 0, 0), (EXITED, 3, 0, 0), (SIGNALED, 0, 11, 0)])
    if state == TIMEOUT:
        return OUT_OF_TIME, 0, 0, 0
    if state == OUT_OF_MEMORY:
        return EXITED, 1, 0, 1
    return BY_REQUEST, 0, 15, 0


def fill(path, count):
    chance = random.Random(4711)
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    job = dict(db.execute("SELECT * FROM jobs ORDER BY id DESC LIMIT 1").fetchone())
    attempt = dict(db.execute("SELECT * FROM attempts WHERE job = ?", (job["id"],)).fetchone())
    cards = [attempt["cards"].split(":")[1].rsplit("-", 1)[0] + "-%d" % i for i in range(8)]
    known = {c.split(",")[0].split(":")[1]
             for (c,) in db.execute("SELECT cards FROM attempts WHERE cards <> ''")}
    cards = [c for c in cards if c in known] or [attempt["cards"].split(":")[1]]
    last_us, first_id = job["ended_us"], job["id"] + 1
    commands = ["python train.py --config %s.yaml --seed %d" % (name, seed)
                for name in ("resnet", "llama-ft", "vae", "eval") for seed in range(6)]
    for i in range(count):
        which = chance.randrange(len(commands))
        state = chance.choices([COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY],
                               [85, 7, 3, 2, 3])[0]
        span_us = 30 * DAY_US // max(count, 1)
        ended = last_us - (count - i) * span_us
        runs_ms = int(chance.lognormvariate(14, 1.2)) % (12 * 3600 * 1000) + 1000
        wait_ms = int(chance.expovariate(1 / 240e3)) if chance.random() < .6 else 0
        asked = [4096, 8192, 12288, 0, 18432][which % 5]
        peak = int(min(24000, (asked or 7000) * (.3 + .1 * (which % 7) + .1 * chance.random())))
        attempts = 2 if chance.random() < .05 else 1
        insert(db, "jobs", dict(
            job, id=first_id + i, uid=[0, 1, 2, 65534][which % 4], state=state, ord=first_id + i,
            fingerprint="%016x" % (which + 1), command=commands[which], argv=None, name=None,
            submitted_us=ended - (runs_ms * attempts + wait_ms) * 1000, ended_us=ended,
            vram_mib=asked, declared_mib=asked, attempts=attempts, user=None))
        for n in range(1, attempts + 1):
            outcome, code, signal, oom = outcome_of(state if n == attempts else FAILED, chance)
            at = ended - (attempts - n) * runs_ms * 1000
            card = (i + n + which) % len(cards)
            insert(db, "attempts", dict(
                attempt, job=first_id + i, number=n, cards="%d:%s" % (card, cards[card]),
                peaks_mib=str(peak if which != 7 else -1), vram_mib=asked, outcome=outcome,
                code=code, signal=signal, oom=oom, started_us=at - runs_ms * 1000, ended_us=at,
                run_ms=runs_ms, util_sum=(which % 10) * 10 * 20, util_count=20, text=""))
    db.execute("UPDATE meta SET value = ? WHERE key IN ('next_job', 'next_order')",
               (str(first_id + count),))
    db.commit()


class Sums:
    def __init__(self):
        self.jobs = self.ran = self.run_ms = self.gpu_ms = self.wasted = 0
        self.states, self.waits = {}, []
        self.verdicts = dict.fromkeys(["within", "under", "over", "undeclared", "unattributed"], 0)
        self.util = [0, 0]

    def add(self, job, attempts):
        self.jobs += 1
        name = STATES[job["state"]]
        self.states[name] = self.states.get(name, 0) + 1
        started = [a["started_us"] for a in attempts if a["started_us"]]
        if started:
            self.ran += 1
            free = max(job["submitted_us"], job["wanted_begin_us"])
            self.waits.append(max(0, (min(started) - free) // 1000))
        for a in attempts:
            self.util[0] += a["util_sum"]
            self.util[1] += a["util_count"]
            if a["started_us"] and a["run_ms"] > 0:
                self.run_ms += a["run_ms"]
                self.gpu_ms += a["run_ms"] * len(cards_of(a))
        if job["state"] == COMPLETED and attempts and cards_of(attempts[-1]):
            self.judge(attempts[-1])

    def judge(self, a):
        peak, asked = max(map(int, a["peaks_mib"].split(","))), a["vram_mib"]
        if asked <= 0:
            self.verdicts["undeclared"] += 1
            return
        if peak < 0:
            self.verdicts["unattributed"] += 1
            return
        kind = "under" if peak * 10 > asked * 11 else "over" if peak * 10 < asked * 9 else "within"
        self.verdicts[kind] += 1
        self.wasted += max(0, asked - peak) * a["run_ms"] * len(cards_of(a))

    def compare(self, what, got):
        expect = dict(jobs=self.jobs, ran=self.ran, run_ms=self.run_ms, gpu_ms=self.gpu_ms,
                      states=self.states, wasted_mib_ms=self.wasted, **self.verdicts)
        for key, value in expect.items():
            assert got[key] == value, (what, key, got[key], value)
        if self.waits:
            waits = sorted(self.waits)
            mean, p95 = sum(waits) / len(waits), waits[(len(waits) * 95 + 99) // 100 - 1]
            assert abs(got["wait_mean_ms"] - mean) <= 0.51, (what, got["wait_mean_ms"], mean)
            assert p95 <= got["wait_p95_ms"] <= p95 * 33 / 32, (what, got["wait_p95_ms"], p95)
            assert got["wait_max_ms"] == waits[-1]
        if self.util[1]:
            assert abs(got["util"] - self.util[0] / self.util[1]) < 1e-6


def cards_of(attempt):
    return [c.split(":")[1] for c in attempt["cards"].split(",")] if attempt["cards"] else []


def busy_ms(intervals, begin, end):
    """The length of the union, clipped to begin..end."""
    total, reach = 0, begin
    for a, b in sorted(intervals):
        a, b = max(a, reach), min(b, end)
        if b > a:
            total += b - a
            reach = b
    return total // 1000


def check_cards(db, report, until):
    by_card = {}
    for a in db.execute("SELECT * FROM attempts WHERE ended_us > 0 AND started_us > 0"):
        for card in cards_of(a):
            by_card.setdefault(card, []).append((a["started_us"], a["ended_us"]))
    for gpu in report["gpus"]:
        begin = report["bins"]["from_us"]
        expect = busy_ms(by_card.pop(gpu["uuid"], []), begin, until)
        assert gpu["busy_ms"] == expect, ("busy", gpu["index"], gpu["busy_ms"], expect)
        binned = sum(b[0] for b in gpu["bins"]) * report["bins"]["width_us"] / 1e6
        assert abs(binned - expect) <= expect * .02 + report["bins"]["width_us"] / 1e3, "bins"
    assert not by_card, by_card.keys()


def check(path, report_path):
    report = json.load(open(report_path, encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for end in ("", "-wal"):
            if os.path.exists(path + end):
                shutil.copy(path + end, os.path.join(folder, "berth.db" + end))
        db = sqlite3.connect(os.path.join(folder, "berth.db"))
        db.row_factory = sqlite3.Row
        since = int(report["since"]["unix"] * 1e6 + .5) if report["since"] else 0
        until = int(report["until"]["unix"] * 1e6 + .5)
        attempts = {}
        for a in db.execute("SELECT * FROM attempts ORDER BY job, number"):
            attempts.setdefault(a["job"], []).append(a)
        total, users, commands, failed = Sums(), {}, {}, 0
        for job in db.execute("SELECT * FROM jobs WHERE state >= ? AND array_tasks IS NULL"
                              " AND ended_us >= ? AND ended_us < ?", (COMPLETED, since, until)):
            own = attempts.get(job["id"], [])
            for sums in (total, users.setdefault(job["uid"], Sums()),
                         commands.setdefault((job["uid"], job["fingerprint"]), Sums())):
                sums.add(job, own)
            failed += job["state"] != COMPLETED
        total.compare("total", report["total"])
        assert {u["uid"] for u in report["users"]} == set(users)
        for user in report["users"]:
            users[user["uid"]].compare(user["user"], user)
        for command in report["commands"]:
            key = command["uid"], command["fingerprint"]
            commands[key].compare(command["command"], command)
        assert report["commands_total"] == len(commands)
        assert sum(c["jobs"] for c in report["causes"]) == failed
        assert sum(report["waits"]["jobs"]) == total.ran
        check_cards(db, report, until)
        print("%d jobs, %d users, %d commands" % (total.jobs, len(users), len(commands)))


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(sys.argv[2], int(sys.argv[3]))
    else:
        check(sys.argv[2], sys.argv[3])
