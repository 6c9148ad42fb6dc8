#!/usr/bin/env python3
"""Stands for Slurm in inject.py, under the names sbatch, squeue and scancel: a batch script
runs here and at once, as a process that outlives sbatch. Each job's state is a file in the
folder $SLURM_CONF. Standard library only."""
import fcntl
import json
import os
import re
import signal
import subprocess
import sys

FOLDER = os.environ["SLURM_CONF"]


def option(name):
    return next((a.split("=", 1)[1] for a in sys.argv[1:] if a.startswith(f"--{name}=")), None)


def next_number():
    with open(os.path.join(FOLDER, "number"), "a+", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        number = int(f.read() or 0) + 1
        f.truncate(0)
        f.write(str(number))
    return number


def tasks_of(text):
    """The tasks of --array=0-3,5; [None] without --array."""
    if text is None:
        return [None]
    return [t for part in text.split(",") for first, _, last in [part.partition("-")]
            for t in range(int(first), int(last or first) + 1)]


def path_of(number, task):
    return os.path.join(FOLDER, f"job.{number}" + ("" if task is None else f"_{task}"))


def note(number, task, **what):
    path = path_of(number, task)
    with open(path + ".new", "w", encoding="ascii") as f:
        json.dump(dict(what, number=number, task=task), f)
    os.rename(path + ".new", path)


def run(number, task, key, script):
    """Run the job to its end, in a process of its own."""
    env = dict(os.environ, SLURM_JOB_ID=str(number))
    if task is not None:
        env["SLURM_ARRAY_TASK_ID"] = str(task)
    with subprocess.Popen(["/bin/sh", "-c", script], env=env, start_new_session=True, cwd="/") as job:
        note(number, task, key=key, state="RUNNING", pid=job.pid)
        status = job.wait()
    note(number, task, key=key, state="COMPLETED" if status == 0 else "FAILED", pid=0)


def sbatch():
    script, key, number = sys.stdin.read(), option("comment"), next_number()
    tasks = tasks_of(option("array"))
    for task in tasks:
        note(number, task, key=key, state="PENDING", pid=0)
    for task in tasks:
        if os.fork() == 0:
            os.setsid()
            nowhere = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(nowhere, fd)
            run(number, task, key, script)
            os._exit(0)
    print(number)


def jobs():
    for name in sorted(os.listdir(FOLDER)):
        if name.startswith("job.") and not name.endswith(".new"):
            with open(os.path.join(FOLDER, name), encoding="ascii") as f:
                yield json.load(f)


def squeue():
    print("ARRAY_JOB_ID|ARRAY_TASK_ID|STATE|NODELIST|REASON|START_TIME|COMMENT")
    for job in jobs():
        task = "N/A" if job["task"] is None else job["task"]
        print(f"{job['number']}|{task}|{job['state']}|here|None|N/A|{job['key']}")


def scancel():
    wanted = [a for a in sys.argv[1:] if re.fullmatch(r"\d+(_\d+)?", a)]
    for job in jobs():
        name = str(job["number"]) + ("" if job["task"] is None else f"_{job['task']}")
        if job["pid"] and (name in wanted or str(job["number"]) in wanted):
            try:
                os.killpg(job["pid"], signal.SIGTERM)
            except ProcessLookupError:
                pass


{"sbatch": sbatch, "squeue": squeue, "scancel": scancel}[os.path.basename(sys.argv[0])]()
