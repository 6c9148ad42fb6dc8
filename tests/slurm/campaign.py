#!/usr/bin/env python3
"""Runs jobs files at home, on a real Slurm cluster with one Slurm job each, and packed into
allocations, and checks what must never differ and never break. Needs root and Slurm (README.md).

    tests/slurm/campaign.py --bin DIR [--seed N] [same | kills | pace | many]...

same: a file of --lines lines ends with the same states, exit codes, texts, tries, exit status
      of the client and report at home, sent one by one and packed, and at no moment is a GPU
      promised more than it has.
kills: --kills kills of client, daemon, slurmctld, slurmd, nodes and batch scripts under such
      files, --each under one: no line is lost, none runs twice that was not to, and the codes
      are right.
pace: --lines lines of a second with 4 GiB each end at least five times as fast packed as sent one
      by one, where Slurm schedules as often as it does by default.
many: --many lines are accepted, and followed with at most one call to slurmctld in a second.

Without a name all run. A failing run prints its seed and keeps its folders with --keep."""
import argparse
import collections
import json
import os
import random
import signal
import sys
import time

import jobsfile
from instance import Cluster, Failure, Instance, until
from kills import Kills
from kills import choose as choose_kills

GPU_MIB = 24000
OPTIONS = {"home": [], "slurm": ["--on", "slurm"], "pack": ["--on", "slurm", "--pack"]}


def new_instance(args, way, gpus=0):
    """gpus: of an allocation; 0: half of a node."""
    if way == "home":
        return Instance(args.bin, sim=f"{args.gpus}x{GPU_MIB}M")
    return Instance(args.bin, settings=[
        f"slurm_gpu_mib: {GPU_MIB}",
        f"slurm_allocation_gpus: {gpus or max(1, args.gpus // 2)}",
        f"slurm_allocations: {args.nodes * 2}", "slurm_allocation_idle_s: 2",
        f"slurm_max_jobs: {max(1000, args.many)}"], state_in=args.state_in)


def new_cluster(args, *options):
    if args.on_boot:
        options += ("--on-boot", args.on_boot)
    return Cluster(args.nodes, ["--gpus", str(args.gpus), *options])


# --- invariants -------------------------------------------------------------------------------


def check_promises(noted, forgiven=()):
    """At no moment do commands hold more of a GPU than it has; those without VRAM hold all of
    it. Killed commands record no end; forgiven: (line, attempt) of those that may have been
    killed."""
    used, held, forgiven = collections.Counter(), {}, set(forgiven)
    for number, words in enumerate(noted, 1):
        key = (words[1], words[2])
        if words[0] == "e":
            for card, mib in held.pop(key, []):
                used[card] -= mib
            continue
        if key in held:
            raise Failure(f"attempt {key[1]} of line {key[0]} ran twice (log line {number})")
        if words[4] == "-" or key in forgiven:
            continue
        mib = int(words[5]) or GPU_MIB
        held[key] = [((words[3], gpu), mib) for gpu in words[4].split(",")]
        for card, _ in held[key]:
            used[card] += mib
            if used[card] > GPU_MIB:
                others = [k for k, cards in held.items() if card in [c for c, _ in cards]]
                raise Failure(f"{card} has {GPU_MIB} MiB, and {used[card]} are promised "
                              f"(log line {number}; line and attempt: {others})")


def tries_of(job):
    """Attempts whose command ran."""
    return [a for a in job["attempts"] if a["outcome"] != "never_ran" and a["started"]]


def wanted_end(line, ends):
    """State, status and tries, given how its dependencies ended."""
    if line.after:
        done = ends[line.after[1]]
        met = {"after": done == "COMPLETED", "after-any": True,
               "after-failed": done != "COMPLETED"}[line.after[0]]
        if not met:
            return "CANCELLED", 130, 0
    return line.state, line.status, line.tries


def check_begun(line, tries, noted, cut=()):
    """Each attempt started once, or not at all if it was ended before it could record that."""
    begun = collections.Counter(int(w[2]) for w in noted
                                if w[0] == "b" and int(w[1]) == line.number)
    numbers = {a["number"] for a in tries}
    for attempt, n in begun.items():
        if n != 1 or attempt not in numbers:
            raise Failure(f"line {line.number}, {line.text()}: attempt {attempt} ran {n} times; "
                          f"attempts that ran are {numbers}")
    silent = numbers - set(begun) - set(cut)
    if silent and line.notes and not line.may_be_silent:
        raise Failure(f"line {line.number}, {line.text()}: attempts {silent} never began")


def check_in_turn(noted):
    """An attempt writes nothing after the next one of its line has started."""
    latest = {}
    for number, words in enumerate(noted, 1):
        line, attempt = words[1], int(words[2])
        if attempt < latest.get(line, 0):
            raise Failure(f"attempt {attempt} of line {line} went on when attempt {latest[line]} "
                          f"had begun (log line {number})")
        latest[line] = attempt


def check_lines(lines, rows, noted):
    """Without kills: exactly as the file says."""
    ends = {}
    for line in lines:
        job = rows.get(line.number)
        if not job:
            raise Failure(f"line {line.number} is not there")
        ends[line.number] = job["state"]
        tries = tries_of(job)
        got, want = (job["state"], job["exit_status"], len(tries)), wanted_end(line, ends)
        if got != want:
            raise Failure(f"line {line.number}, {line.text()}: {got} ({job['text']}), should be "
                          f"{want}")
        check_begun(line, tries, noted)
    check_in_turn(noted)
    check_promises(noted, {key for line in lines for key in
                           timeouts_of(line, rows[line.number])})


def timeouts_of(line, job):
    """A command that does not end within its grace period is killed."""
    return {(str(line.number), str(a["number"])) for a in job["attempts"]
            if a["outcome"] == "timeout"}


def report_of(instance):
    """The results that do not depend on time."""
    report = json.loads(instance.berth("report", "--json").stdout)
    total = report["total"]
    causes = sorted((c["cause"], str(c["number"]), c["jobs"]) for c in report["causes"])
    return {"jobs": total["jobs"], "ran": total["ran"], "states": total["states"],
            "causes": causes}


# --- the same file in three ways --------------------------------------------------------------


def run_whole(args, way, lines):
    instance = new_instance(args, way)
    try:
        jobsfile.write(lines, instance.work)
        instance.start()
        began = time.monotonic()
        done = instance.berth("run", *OPTIONS[way], "jobs", statuses=None)
        seconds = time.monotonic() - began
        rows = instance.rows()
        noted = instance.noted()
        check_lines(lines, rows, noted)
        summary = done.stdout.strip().splitlines() or [""]
        print(f"     {way}: {seconds:.1f} s, exit status {done.returncode}: {summary[-1]}",
              flush=True)
        # A time limit's text also tells whether the command had to be killed.
        texts = {n: job["text"] for n, job in rows.items() if job["state"] != "TIMEOUT"}
        return {"exit status": done.returncode, "report": report_of(instance),
                "ends": {n: (job["state"], job["exit_status"], len(tries_of(job)))
                         for n, job in rows.items()}, "texts": texts}
    except Failure as e:
        raise Failure(f"{way}: {e}\n{instance.tail()}") from None
    finally:
        instance.remove(args.keep)


def same(args, rng):
    lines = jobsfile.make(rng, args.lines)
    cluster = new_cluster(args)
    try:
        ways = {way: run_whole(args, way, lines) for way in OPTIONS}
    finally:
        cluster.remove(args.keep)
    for way, got in ways.items():
        for what, value in got.items():
            if value != ways["home"][what]:
                differ = value if not isinstance(value, dict) else {
                    k: (v, ways["home"][what].get(k)) for k, v in value.items()
                    if v != ways["home"][what].get(k)}
                raise Failure(f"{way} and home differ in {what}: {differ}")
    return f"{len(lines)} lines end the same in three ways"


# --- kills ------------------------------------------------------------------------------------


def check_killed(round_, lines, rows, noted):
    """As in the file, except for attempts cut off by a kill."""
    ends, forgiven, n_cut = {}, set(), 0
    for line in lines:
        job = rows.get(line.number)
        if not job:
            raise Failure(f"line {line.number} is not there")
        ends[line.number] = job["state"]
        tries = tries_of(job)
        true = round_.check_attempts(line, tries)
        cut = {a["number"] for a in tries} - {a["number"] for a in true}
        n_cut += len(cut)
        forgiven |= {(str(line.number), str(n)) for n in cut} | timeouts_of(line, job)
        check_begun(line, tries, noted, cut)
        got, want = (job["state"], job["exit_status"], len(true)), wanted_end(line, ends)
        is_lost = tries and tries[-1]["outcome"] == "lost" and not line.requeue
        if is_lost and got[:2] == ("LOST", 1) and got[2] < want[2]:
            continue
        # An attempt cut off after its note has used up one of its out-of-memory runs.
        if cut and line.runs_out and got[0] in ("COMPLETED", "OUT_OF_MEMORY"):
            continue
        if got != want:
            raise Failure(f"line {line.number}, {line.text()}: {got} ({job['text']}), should be "
                          f"{want}; attempts: {[(a['outcome'], a['text']) for a in tries]}")
    check_in_turn(noted)
    check_promises(noted, forgiven)
    return n_cut


def check_again(instance, way, rows, noted):
    """After everything has ended, running the file again reports the results and runs nothing."""
    done = instance.berth("run", *OPTIONS[way], "jobs", statuses=None)
    highest = min(255, max(job["exit_status"] for job in rows.values()))
    if done.returncode != highest:
        raise Failure(f"run once more: exit status {done.returncode}, should be {highest}: "
                      f"{done.stdout}{done.stderr}")
    ids = {n: job["id"] for n, job in rows.items()}
    if {n: job["id"] for n, job in instance.rows().items()} != ids or instance.noted() != noted:
        raise Failure(f"run once more, lines ran again: {done.stdout}")


def one_round(args, rng, cluster, way, kinds):
    lines = jobsfile.make(rng, max(12, len(kinds) * 10), longest_s=2, requeue=0.5)
    instance = new_instance(args, way)
    round_ = Kills(args, rng, cluster, instance, way)
    try:
        jobsfile.write(lines, instance.work)
        rows, noted = round_.run(lines, kinds)
        n_cut = check_killed(round_, lines, rows, noted)
        check_again(instance, way, rows, noted)
        told = ", ".join(f"{n} {kind}" for kind, n in sorted(round_.told.items()))
        print(f"     {way}: {len(lines)} lines under kills of {told}: {n_cut} attempts cut off",
              flush=True)
    except Failure as e:
        raise Failure(f"{way}, after kills of {dict(round_.told)} at {round_.cuts}: {e}\n"
                      f"{instance.tail()}") from None
    finally:
        instance.remove(args.keep)


def kills(args, rng):
    kinds = choose_kills(rng, args.kills)
    # On a busy machine a slow process must not count as dead.
    cluster = new_cluster(args, "--conf", "SlurmdTimeout=60", "--conf", "MessageTimeout=60",
                          "--conf", "BatchStartTimeout=120")
    try:
        for i in range(0, len(kinds), args.each):
            way = args.ways[i // args.each % len(args.ways)]
            one_round(args, rng, cluster, way, kinds[i:i + args.each])
            cluster.verb("wait")
    finally:
        cluster.remove(args.keep)
    return f"{len(kinds)} kills: nothing is lost, nothing runs twice"


# --- pace -------------------------------------------------------------------------------------

# The defaults of Slurm 22.05; the cluster's own values are for tests, which should end soon.
SLURMS_OWN = "SchedulerParameters=batch_sched_delay=3,sched_interval=60,bf_interval=30"


def seconds_of(args, way):
    """From the client's start to its end, including allocations."""
    instance = new_instance(args, way, args.gpus)
    try:
        with open(os.path.join(instance.work, "jobs"), "w", encoding="ascii") as f:
            f.writelines("[vram=4G] sleep 1\n" for _ in range(args.lines))
        began = time.monotonic()
        done = instance.berth("run", *OPTIONS[way], "jobs")
        seconds = time.monotonic() - began
        print(f"     {way}: {seconds:.1f} s: {done.stdout.strip().splitlines()[-1]}", flush=True)
        return seconds
    finally:
        instance.remove(args.keep)


def pace(args, _):
    cluster = new_cluster(args, "--conf", SLURMS_OWN)
    try:
        alone, packed = (seconds_of(args, w) for w in ("slurm", "pack"))
    finally:
        cluster.remove(args.keep)
    if alone < 5 * packed:
        raise Failure(f"packed {packed:.1f} s, one job each {alone:.1f} s")
    return f"{args.lines} lines of a second, packed {alone / packed:.1f} times as fast"


# --- many lines -------------------------------------------------------------------------------

CALLS = {"REQUEST_SUBMIT_BATCH_JOB", "REQUEST_JOB_INFO", "REQUEST_JOB_USER_INFO",
         "REQUEST_JOB_INFO_SINGLE", "REQUEST_KILL_JOB", "REQUEST_CANCEL_JOB_STEP"}


def count_calls(cluster):
    return sum(n for name, n in cluster.calls().items() if name in CALLS)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def check_pace(cluster, instance, what, since, calls):
    """At most one call to slurmctld per second."""
    n, seconds = count_calls(cluster) - calls, time.monotonic() - since
    print(f"     {what}: {n} calls in {seconds:.0f} s", flush=True)
    if n > seconds + 2:
        raise Failure(f"{what}: {n} calls to slurmctld in {seconds:.0f} s\n{instance.tail()}")


def many_in(args, cluster, way, n):
    """All GPUs are held until all lines are queued and have waited for a while; half of the
    lines are cancelled, and the others run."""
    instance = new_instance(args, way)
    held = args.nodes * args.gpus
    try:
        with open(os.path.join(instance.work, "jobs"), "w", encoding="ascii") as f:
            f.writelines("[gpus=1] until [ -e go ]; do sleep 0.3; done\n" for _ in range(held))
            f.writelines(f"[vram=20G] : {i}\n" for i in range(n - held))
        instance.start()
        calls, began = count_calls(cluster), time.monotonic()
        instance.berth("run", "-d", *OPTIONS[way], "jobs")
        print(f"     {way}: {n} lines accepted in {time.monotonic() - began:.1f} s", flush=True)
        until("all GPUs are held", lambda: sum(job["state"] == "RUNNING" for job in
                                               (instance.rows() or {}).values()) == held)
        before, at = cpu_s(instance.pid()), time.monotonic()
        time.sleep(args.wait)
        used = (cpu_s(instance.pid()) - before) / (time.monotonic() - at)
        print(f"     {way}: the daemon uses {used * 100:.1f} % of a core while they wait",
              flush=True)
        check_pace(cluster, instance, f"{way}, sent and waiting", began, calls)
        calls, began = count_calls(cluster), time.monotonic()
        instance.berth("cancel", f"{n // 2 + 1}-{n}")
        with open(os.path.join(instance.work, "go"), "w", encoding="ascii"):
            pass
        instance.berth("wait", f"1-{n}", statuses=(130,))
        check_pace(cluster, instance, f"{way}, half cancelled and all ended", began, calls)
        states = collections.Counter(job["state"] for job in instance.rows().values())
        if states != {"COMPLETED": n // 2, "CANCELLED": n - n // 2}:
            raise Failure(f"{way}: {dict(states)}")
    finally:
        instance.remove(args.keep)


def many(args, _):
    cluster = new_cluster(args, "--conf", f"MaxArraySize={args.many + 1}", "--conf",
                          f"MaxJobCount={args.many * 3}")
    try:
        for way in args.ways:
            many_in(args, cluster, way, args.many)
    finally:
        cluster.remove(args.keep)
    return f"{args.many} lines"


CAMPAIGNS = {"same": same, "kills": kills, "pace": pace, "many": many}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--bin", required=True, help="folder of the installed programs")
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--lines", type=int, default=300)
    p.add_argument("--kills", type=int, default=30)
    p.add_argument("--each", type=int, default=6, help="kills under one file")
    p.add_argument("--ways", type=lambda s: s.split(","), default=["pack", "slurm"],
                   help="of kills and many: pack, slurm, or both")
    p.add_argument("--many", type=int, default=10000)
    p.add_argument("--wait", type=float, default=20, help="seconds in which many lines wait")
    p.add_argument("--nodes", type=int, default=3)
    p.add_argument("--gpus", type=int, default=8, help="of each node")
    p.add_argument("--state-in", help="folder for what the daemon and the nodes share")
    p.add_argument("--on-boot", help="of the cluster: a script for its nodes, as one to mount "
                   "that folder")
    p.add_argument("--keep", action="store_true", help="keep all folders")
    p.add_argument("names", nargs="*", help="which campaigns: " + ", ".join(CAMPAIGNS))
    args = p.parse_args()
    args.bin = os.path.abspath(args.bin)
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 30)
    failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left behind
    for name in args.names or CAMPAIGNS:
        began = time.monotonic()
        try:
            what = CAMPAIGNS[name](args, random.Random(seed))
            print(f"ok   {name}: {what}, {time.monotonic() - began:.1f} s", flush=True)
        except Failure as e:
            failed += 1
            print(f"FAIL {name} (--seed {seed}): {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
