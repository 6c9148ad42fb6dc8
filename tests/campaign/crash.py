#!/usr/bin/env python3
"""Kills Berth's processes at random moments and at every durable edge, and checks what must
never break: each job runs exactly once, each recorded exit code is right, nothing is left
behind. Standard library only.

    tests/campaign/crash.py --bin DIR [--seed N]
        [points | graph-points | random-shepherd | random-daemon | random-any | random-graph]...

The graph ones run arrays, and jobs that wait for jobs, arrays and tasks. Without a name all run. --jobs, --kills and --seconds bound the random ones. A failing run prints
its seed; the same seed gives the same jobs and the same sequence of delays."""
import argparse
import collections
import os
import random
import signal
import sys
import time

from instance import ENV, Daemon, Failure, attempt_folders

DAEMON_POINTS = ["daemon-before-commit", "daemon-after-commit", "daemon-after-reply",
                 "daemon-folder-made", "daemon-folder-emptied", "daemon-folder-locked",
                 "daemon-before-spawn",
                 "daemon-after-spawn", "daemon-before-go", "daemon-after-go",
                 "daemon-before-recovery", "daemon-after-recovery"]
SHEPHERD_POINTS = ["shepherd-start", "shepherd-waits", "shepherd-has-go",
                   "shepherd-before-fork", "shepherd-before-exec", "shepherd-after-exec", "shepherd-child-exited", "shepherd-before-note",
                   "shepherd-before-rename",
                   "shepherd-after-rename", "shepherd-before-ended"]
# Before these points the command has not been started, so the job must simply run; after them
# it may have been, so the job must be LOST or have its true outcome.
NEVER_RAN_POINTS = {"shepherd-start", "shepherd-waits", "shepherd-has-go",
                    "shepherd-before-fork"}
MUST_KILL = {p + ":1" for p in DAEMON_POINTS}


def make_jobs(rng, n):
    """Short jobs of several kinds. Each appends a line to a file of its own when it runs."""
    jobs = []
    for i in range(n):
        code = rng.choice([0, 0, 1, 3, 7, 42, 255])
        body = rng.choice([
            "exit {c}",
            "sleep 0.0{d}; exit {c}",
            "(sleep 0.01) & exit {c}",
            "setsid sh -c 'sleep 5' & exit {c}",
        ]).format(c=code, d=rng.randrange(10))
        job = {"key": f"k{i}", "line": i + 1, "command": f"echo ran >> {i}; {body}"}
        if rng.random() < 0.5:
            job["vram_mib"] = rng.choice([1000, 4000, 12000])
        if rng.random() < 0.1:
            job["gpus"] = 0
            job.pop("vram_mib", None)
        jobs.append((job, code))
    return jobs


def runs_of(daemon, i):
    try:
        with open(os.path.join(daemon.marks, str(i))) as f:
            return len(f.read().splitlines())
    except FileNotFoundError:
        return 0


def await_all(daemon, n, timeout_s=600):
    """Wait until every job has ended. The daemon must be up."""
    ids = [row[0] for row in daemon.call("jobs", {"all": True, "fields": ["id"]})["rows"]]
    if len(ids) != n:
        raise Failure(f"{len(ids)} jobs instead of {n}")
    signal.alarm(timeout_s)
    daemon.call("wait", {"select": [f"{min(ids)}-{max(ids)}"]})
    signal.alarm(0)


def check_clean(daemon, folders_within_s=300):
    """A job's leftovers are gone before its end is reported. Its folder may stay for seconds:
    a supervisor that was about to exit when its daemon was killed keeps it locked, and the
    next daemon comes back to it."""
    left = daemon.processes()
    if left:
        raise Failure(f"left behind: {left}")
    gpus = daemon.call("gpus", {})["gpus"]
    for gpu in gpus:
        if gpu["held_mib"] or gpu["jobs"]:
            raise Failure(f"a card is still held: {gpu}")
    until = time.monotonic() + folders_within_s
    while (folders := attempt_folders(daemon.dir)) and time.monotonic() < until:
        time.sleep(0.02)
    if folders:
        raise Failure(f"attempt folders stay: {folders}")


def check_exactly_once(daemon, jobs):
    state = daemon.fetch()
    for i, (job, code) in enumerate(jobs):
        name, status, attempts, text = state[job["key"]]
        want = "COMPLETED" if code == 0 else "FAILED"
        if runs_of(daemon, i) != 1 or status != code or name != want:
            raise Failure(f"{job}: ran {runs_of(daemon, i)} times, {name} {status} ({text}) "
                          f"after {attempts} attempts, should be {want} {code}")


def kill_numbers(args):
    """The number of each kill: --kills of them, or as many as there are in --seconds, but never less than a tenth."""
    until = time.monotonic() + args.seconds
    for n in range(args.kills):
        if n >= args.kills // 10 and time.monotonic() > until:
            return
        yield n


def random_daemon(args, rng):
    """kill -9 of the daemon at random moments under short jobs."""
    daemon = Daemon(args.bin)
    jobs = make_jobs(rng, args.jobs)
    kills = -1
    try:
        lines = [job for job, _ in jobs]
        for kills in kill_numbers(args):
            daemon.start()
            # The file keeps growing, so that no kill meets an empty queue.
            daemon.sync(lines[:len(lines) * (kills + 1) // args.kills])
            # Not synchronisation: the moment of the kill is varied on purpose.
            time.sleep(rng.random() * args.max_delay)
            daemon.kill()
        daemon.start()
        daemon.sync(lines)
        await_all(daemon, len(jobs))
        check_exactly_once(daemon, jobs)
        check_clean(daemon)
    finally:
        daemon.remove()
    return f"{kills + 1} kills of the daemon under {len(jobs)} jobs"


def random_shepherd(args, rng):
    """kill -9 of supervisors: the job is LOST with the reason, and requeued only if it asked
    for that."""
    daemon = Daemon(args.bin)
    n = max(20, args.jobs // 5)
    jobs = []
    for i in range(n):
        requeue = i % 2 == 0
        job = {"key": f"k{i}", "line": i + 1, "requeue": requeue, "vram_mib": 1000,
               "command": f"echo ran >> {i}; (setsid sleep 30 &) ; "
                          f"kill -9 $(cut -d' ' -f4 /proc/$$/stat)" if i % 4 < 2 and not
               requeue else f"echo ran >> {i}; test -e lost{i} && exit 5; : > lost{i}; "
                            f"kill -9 $(cut -d' ' -f4 /proc/$$/stat); sleep 30"}
        jobs.append(job)
    try:
        daemon.start()
        daemon.sync(jobs)
        await_all(daemon, n)
        state = daemon.fetch()
        for i, job in enumerate(jobs):
            name, status, attempts, text = state[job["key"]]
            if job["requeue"]:
                ok = name == "FAILED" and status == 5 and runs_of(daemon, i) == 2
            else:
                ok = name == "LOST" and "supervisor" in text and runs_of(daemon, i) == 1
            if not ok:
                raise Failure(f"{job}: {name} {status} ({text}), ran {runs_of(daemon, i)} times")
        check_clean(daemon)
    finally:
        daemon.remove()
    return f"{n} kills of shepherds by their own jobs"


def programs_of(daemon):
    """Pids by name: the daemon, its nurseries (also of killed daemons) and supervisors. Not a
    supervisor's child that is about to become the job."""
    found = {"berthd": [], "berth-nursery": [], "berth-shepherd": []}
    needle = ("BERTH_LOCK_DIR=" + daemon.dir).encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as f:
                name = f.read().strip()
            if name not in found:
                continue
            with open(f"/proc/{pid}/environ", "rb") as f:
                if needle not in f.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/stat") as f:
                parent = f.read().rsplit(")")[-1].split()[1]
            with open(f"/proc/{parent}/comm") as f:
                if f.read().strip() != "berth-shepherd":
                    found[name].append(int(pid))
        except OSError:
            pass
    return found


def random_any(args, rng):
    """kill -9 of the daemon, a nursery or a supervisor, at random moments under short jobs."""
    daemon = Daemon(args.bin)
    jobs = make_jobs(rng, args.jobs)
    lines = [job for job, _ in jobs]
    killed = collections.Counter()
    try:
        daemon.start()
        for kills in kill_numbers(args):
            daemon.sync(lines[:len(lines) * (kills + 1) // args.kills])
            # Not synchronisation: the moment of the kill is varied on purpose.
            time.sleep(rng.random() * args.max_delay)
            running = programs_of(daemon)
            name = rng.choice([name for name in running if running[name]])
            killed[name] += 1
            if name == "berthd":
                daemon.kill()
                # Its child that has yet to execute a nursery holds its lock for a moment.
                signal.alarm(600)
                while not daemon.start(must=False):
                    pass
                signal.alarm(0)
                continue
            try:
                os.kill(rng.choice(running[name]), signal.SIGKILL)
            except ProcessLookupError:
                pass
        daemon.sync(lines)
        await_all(daemon, len(jobs))
        check_once_or_lost(daemon, jobs)
        check_clean(daemon)
    finally:
        daemon.remove()
    return f"kills of {dict(sorted(killed.items()))} under {len(jobs)} jobs"


def one_point(args, rng, label):
    """Crash at this edge, the nth time it is reached; then go on without."""
    daemon = Daemon(args.bin, sim="2")
    jobs = make_jobs(rng, 12)
    lines = [job for job, _ in jobs]
    try:
        if daemon.start(crash_at=label, must=False):
            daemon.sync(lines)
            # Every supervisor dies before its command: the daemon would give up after a few
            # tries each, so kill it instead of waiting.
            if label not in NEVER_RAN_POINTS:
                # Until all have ended, or the daemon is gone.
                daemon.call("wait", {"select": ["--all"]})
        if label in MUST_KILL and daemon.process.wait() != -signal.SIGKILL:
            raise Failure("the daemon never came by there")
        if daemon.process.poll() is None:
            daemon.kill()
        daemon.start()
        daemon.sync(lines)
        await_all(daemon, len(jobs))
        check_point_outcomes(daemon, jobs, label)
        check_clean(daemon)
    finally:
        daemon.remove()


def check_point_outcomes(daemon, jobs, label):
    point = label.split(":")[0]
    if not point.startswith("shepherd") or point in NEVER_RAN_POINTS:
        check_exactly_once(daemon, jobs)
        return
    check_once_or_lost(daemon, jobs)


def check_once_or_lost(daemon, jobs):
    """Supervisors have died: what ran is not run again, and no exit code is invented."""
    state = daemon.fetch()
    for i, (job, code) in enumerate(jobs):
        name, status, attempts, text = state[job["key"]]
        true_end = name == ("COMPLETED" if code == 0 else "FAILED") and status == code
        lost = name == "LOST" and "supervisor" in text
        runs = runs_of(daemon, i)
        if runs > 1 or not (true_end and runs == 1 or lost):
            raise Failure(f"{job}: ran {runs} times, {name} {status} ({text})")


def points(args, rng):
    """Crash at every edge of daemon and supervisor."""
    labels = [f"{p}:{n}" for p in DAEMON_POINTS for n in args.passes] + SHEPHERD_POINTS
    for label in labels:
        try:
            one_point(args, rng, label)
        except Failure as e:
            raise Failure(f"at {label}: {e}") from None
    return f"{len(labels)} crash points"


# --- arrays and dependencies ------------------------------------------------------------------


def make_graph(rng, n):
    """Requests, in order: arrays (some with a bound on running tasks) and single jobs, many of
    which depend on earlier ones by name. Each task and each job appends a line to a file of
    its own. Each request comes with its exit codes, by task."""
    graph = []
    for i in range(n):
        tasks = rng.choice([1, 3, 6, 12]) if rng.random() < 0.4 else 0
        at_once = rng.choice([0, 0, 1, 2])
        bad = rng.random() < 0.3
        codes = {t: (7 if bad and t == tasks // 2 else 0) for t in range(max(tasks, 1))}
        me = f"{i}_$BERTH_ARRAY_TASK_ID" if tasks else f"{i}_0"
        job = {"name": f"n{i}", "vram_mib": 3000,
               "command": f"echo ran >> {me}; sleep 0.0{rng.randrange(10)}; "
                          f"test {me} != {i}_{tasks // 2} || exit {codes[tasks // 2]}"}
        if tasks:
            job["array"] = f"0-{tasks - 1}" + (f"%{at_once}" if at_once else "")
        after = rng.sample(range(max(0, i - 8), i), min(i, rng.choice([0, 0, 1, 2])))
        if after:
            job["after"] = [{"type": rng.choice(["success", "any", "any", "failed"]),
                             "name": f"n{a}"} for a in after]
        graph.append((job, codes))
    return graph


def graph_rows(daemon):
    """Name to state and text, for jobs that are no array tasks; None if the daemon died."""
    rows = daemon.call("jobs", {"all": True, "fields": ["name", "array_job", "state", "text"]})
    if rows is None:
        return None
    names = [row[0] for row in rows["rows"] if row[1] is None]
    if len(names) != len(set(names)):
        raise Failure(f"handed in twice: {names}")
    return {row[0]: row[2:] for row in rows["rows"] if row[1] is None}


def hand_in(daemon, graph, refused):
    """Submit those that the daemon does not have yet, one by one, until it dies. A job whose
    dependencies can no longer be met is refused; no other job depends on it."""
    known = graph_rows(daemon)
    if known is None:
        return
    for job, _ in graph:
        if job["name"] in known or job["name"] in refused:
            continue
        after = [dep for dep in job.pop("after", []) if dep["name"] not in refused]
        if after:
            job["after"] = after
        try:
            if daemon.call("submit", {"cwd": daemon.marks, "umask": 18, "env": ENV,
                                      "jobs": [job]}) is None:
                return
        except Failure as e:
            if "it can never start" not in str(e):
                raise
            refused.add(job["name"])


def graph_ends(graph):
    """How each must end: by the codes of its tasks and its dependencies."""
    ends = {}
    for job, codes in graph:
        met = all({"success": ends[dep["name"]] == "COMPLETED", "any": True,
                   "failed": ends[dep["name"]] != "COMPLETED"}[dep["type"]]
                  for dep in job.get("after", []))
        ends[job["name"]] = ("CANCELLED" if not met else
                             "FAILED" if any(codes.values()) else "COMPLETED")
    return ends


def finish_graph(daemon, graph, refused):
    """Wait until all have ended; check how, and how often each task ran."""
    daemon.start()
    hand_in(daemon, graph, refused)
    signal.alarm(600)
    daemon.call("wait", {"select": ["name:n*"]})
    signal.alarm(0)
    ends, rows = graph_ends(graph), graph_rows(daemon)
    for i, (job, codes) in enumerate(graph):
        want = ends[job["name"]]
        state, text = rows.get(job["name"], ("CANCELLED", "refused"))
        if state != want:
            raise Failure(f"{job}: {state} ({text}), should be {want}")
        for task in codes:
            runs = runs_of(daemon, f"{i}_{task}")
            if runs != (want != "CANCELLED"):
                raise Failure(f"{job}: {state} ({text}), task {task} ran {runs} times")
    check_clean(daemon)


def graph_point(args, rng, label):
    daemon = Daemon(args.bin, sim="2")
    graph, refused = make_graph(rng, 12), set()
    try:
        if daemon.start(crash_at=label, must=False):
            hand_in(daemon, graph, refused)
            daemon.call("wait", {"select": ["name:n*"]})
        if daemon.process.poll() is None:
            daemon.kill()
        finish_graph(daemon, graph, refused)
    finally:
        daemon.remove()


def graph_points(args, rng):
    """Crash at every edge of the daemon under arrays and dependencies."""
    labels = [f"{p}:{n}" for p in DAEMON_POINTS for n in args.passes + [9, 14]]
    for label in labels:
        try:
            graph_point(args, rng, label)
        except Failure as e:
            raise Failure(f"at {label}: {e}") from None
    return f"{len(labels)} crash points under arrays and dependencies"


def random_graph(args, rng):
    """kill -9 of the daemon at random moments under arrays and dependencies."""
    daemon = Daemon(args.bin)
    graph, refused = make_graph(rng, max(20, args.jobs // 5)), set()
    kills = -1
    try:
        for kills in kill_numbers(args):
            daemon.start()
            hand_in(daemon, graph[:len(graph) * (kills + 1) // args.kills], refused)
            # Not synchronisation: the moment of the kill is varied on purpose.
            time.sleep(rng.random() * args.max_delay)
            daemon.kill()
        finish_graph(daemon, graph, refused)
    finally:
        daemon.remove()
    return f"{kills + 1} kills of the daemon under {len(graph)} arrays and jobs that wait"


CAMPAIGNS = collections.OrderedDict([("points", points), ("graph-points", graph_points),
                                     ("random-shepherd", random_shepherd),
                                     ("random-daemon", random_daemon),
                                     ("random-any", random_any),
                                     ("random-graph", random_graph)])


def on_alarm(number, frame):
    raise Failure("the jobs do not end, or the daemon does not start")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--bin", required=True, help="folder of the installed programs' berthd")
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--jobs", type=int, default=500)
    p.add_argument("--kills", type=int, default=200)
    p.add_argument("--seconds", type=float, default=float("inf"),
                   help="no more random kills after that, once a tenth of --kills has been made")
    p.add_argument("--max-delay", type=float, default=0.05, help="seconds before each kill")
    p.add_argument("--passes", type=lambda s: [int(x) for x in s.split(",")], default=[1, 2, 5],
                   help="which passes of each daemon edge crash")
    p.add_argument("names", nargs="*", help="which campaigns: " + ", ".join(CAMPAIGNS))
    args = p.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 30)
    signal.signal(signal.SIGALRM, on_alarm)
    failed = 0
    for name in args.names or CAMPAIGNS:
        started = time.monotonic()
        try:
            what = CAMPAIGNS[name](args, random.Random(seed))
            print(f"ok   {name}: {what}, {time.monotonic() - started:.1f} s", flush=True)
        except Failure as e:
            failed += 1
            print(f"FAIL {name} (--seed {seed}): {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
