#!/usr/bin/env python3
"""Walks the table of job attributes through its doors, with a daemon that is there.

For each attribute and each door (option, #BERTH line, #SBATCH line, jobs file, socket) a held job
is made with a value, which is read back in `berth show`, in its JSON and, once it is cancelled, in
the history; a bad value is given and the same words are expected. Where a door is closed, the
sentence that says why is. The names come from the programs (the help of submit, the error that
lists what a line may hold), so that a new attribute without a case below fails.
"""

import itertools
import json
import os
import re
import socket
import subprocess
import sys

SIM_TYPE = "sim"
HERE = os.getcwd()
NO_GPU = ["gpus=0"]


def case(value, shown, bad=None, error=None, sbatch=None, wire=None, needs=(), show=None, **fields):
    """value: None for a bare word. fields: of the job's JSON, with what they are to be. show: a
    pattern in `berth show`. sbatch: the option in a #SBATCH line; None: Slurm has none. wire:
    members of the request, where they differ from fields. bad, error: a value, and what is said
    of it; needs: other attributes that it needs."""
    return dict(value=value, bad=bad, error=error, sbatch=sbatch, wire=fields if wire is None else wire, needs=list(needs), show=shown,
                fields=fields)


CASES = {
    "gpus": case("2", "asks +2 GPUs", "65", "'65' is not a number of GPUs", "--gpus=2", {"gpus": 2}, gpus_wanted=2),
    "vram": case("8G", "8.0 GiB of VRAM", "8X", "'8X' is not a size", vram_mib=8192),
    "share": case("0.5", "0.5 of a GPU", "2", "'2' is not a fraction", wire={"share_permille": 500}, share=0.5),
    "exclusive": case(None, "alone", "maybe", "not true or false", "--exclusive", exclusive=True),
    "gpu-ids": case("1,0", "1,0", "1,1", "names a GPU twice", gpu_ids=[1, 0]),
    "devices": case("0-1", "0,1|0-1", "3-1", "runs backwards", wire={"devices": [0, 1]}, devices=[0, 1]),
    "gpu-type": case(SIM_TYPE, SIM_TYPE, "x" * 30, "is 30 bytes long", "--constraint=sim", gpu_type=SIM_TYPE),
    "min-vram": case("1G", "1.0 GiB", "8", "8 MiB\\? write 8G", min_vram_mib=1024),
    "gpu-cc": case("8.5", "compute capability 8.5 or more", "sm_86", "'sm_86' is not a version", wire={"gpu_cc_tenths": 85}, gpu_cc=8.5),
    "max-used": case("80%", "80 %|0.8", "80", "'80' is not a fraction", wire={"max_used_permille": 800}, max_used=0.8),
    "max-load": case("0.7", "70 %|0.7", "80", "'80' is not a fraction", wire={"max_load_permille": 700}, max_load=0.7),
    "margin": case("256M", "256 MiB", "-1", "'-1' is not a size", margin_mib=256),
    "idle": case("1G", "1.0 GiB", "x", "'x' is not a size", idle_mib=1024),
    "placement": case("spread", "spread", "best", "'best' is not a placement rule", placement="spread"),
    "vram-cap": case("off", "vram-cap +off", "never", "use auto, require or off", vram_cap="off"),
    "on-exceed": case("kill", "on-exceed +kill", "stop", "use warn, kill or ignore", on_exceed="kill"),
    "cpu-bind": case("node", "cpu-bind +node", "core", "use auto, node or off", cpu_bind="node"),
    "cpus": case("1", "1 core|1 CPU|cpus +1", "0", "'0' is not a whole number", "--cpus-per-task=1", cpus=1),
    "mem": case("64M", "64 MiB", "16", "16 MiB\\? write 16G", "--mem=64M", mem_mib=64),
    "time": case("2h", "2h00m", "5x", "'5x' is not a duration", "--time=2:00:00", limit_ms=7200000),
    "on-timeout": case("requeue", "then again", "stop", "use kill or requeue", needs=["time=1h"], on_timeout="requeue"),
    "max-requeues": case("5", "of 5 times", "101", "'101' is not a whole number", needs=["time=1h", "on-timeout=requeue"],
                         max_requeues=5),
    "signal": case("B:USR2@90", "USR2 1m30s before.*own process", "FOO@60", "names no signal", "--signal=B:USR2@90",
                   needs=["time=1h"], warn_signal=12, warn_ms=90000, warn_batch=True),
    "grace": case("30s", "30s", "25h", "longer than the maximum of 24h|more than", grace_ms=30000),
    "priority": case("-5", "-5", "1001", "from -1000 to 1000", "--nice=5", priority=-5),
    "after": case("1", "after +1", "0", "'0' is not a job", "--dependency=afterok:1",
                  {"after": [{"type": "success", "job": 1}]}, after=[{"type": "success", "job": 1}]),
    "after-any": case("1", "after +1 any", "0", "'0' is not a job", "--dependency=afterany:1", {"after": [{"type": "any", "job": 1}]},
                      after=[{"type": "any", "job": 1}]),
    "after-failed": case("1", "after +1 failed", "0", "'0' is not a job", "--dependency=afternotok:1",
                         {"after": [{"type": "failed", "job": 1}]}, after=[{"type": "failed", "job": 1}]),
    "begin": case("2030-01-02T03:04Z", "2030", "soon", "'soon' is not a time", "--begin=2030-01-02T03:04Z",
                  {"begin_us": 1893553440000000}, begin={"unix": 1893553440.0, "rfc3339": "2030-01-02T03:04:00Z"}),
    "array": case("0-3%2", "\\[0-3%2\\]|4 tasks|tasks +4", "5-1", "runs backwards", "--array=0-3%2", {"array": "0-3", "array_max": 2},
                  array={"tasks": "0-3", "max": 2}),
    "hold": case(None, "HELD", "x", "not true or false", "--hold", {"hold": True}, state="HELD"),
    "singleton": case(None, "also .*singleton", "x", "not true or false", "--dependency=singleton", wire={"singleton": True, "name": "one"}, needs=["name=one"],
                      singleton=True),
    "unique": case(None, "also .*unique", "x", "not true or false", unique=True),
    "on": case("slurm", "on Slurm", "moon", "use here or slurm", on="slurm"),
    "pack": case(None, "packed, on Slurm", "x", "not true or false", needs=["on=slurm"], pack=True),
    "preemptible": case(None, "preemptible", "x", "not true or false", preemptible=True),
    "cancel": case(None, "CANCELLED", "x", "not true or false", wire={}, state="CANCELLED"),
    "retries": case("3", "also .*retries 3", "101", "from 0 to 100", retries=3),
    "oom-retries": case("2", "also .*oom-retries 2", "101", "from 0 to 100", oom_retries=2),
    "requeue": case(None, "also .*requeue", "x", "not true or false", "--requeue", requeue=True),
    "interactive": case(None, "also .*interactive", "x", "not true or false", interactive=True),
    "pty": case(None, "also .*terminal", "x", "not true or false", pty=True),
    "screen": case(None, "also .*screen", "x", "not true or false", screen=True),
    "chdir": case("sub", "sub", "nowhere", "nowhere: No such file", "--chdir=sub", {"chdir": HERE + "/sub"}, cwd=HERE + "/sub"),
    "env": case("A=b", "env +A=b", "A", "'A' is not NAME=value", wire={"env": ["A=b"]}, env=["A=b"]),
    "slurm-env": case(None, "slurm-env", "x", "not true or false", slurm_env=True),
    "env-setup": case("true", "env-setup +true", None, None, env_setup="true"),
    "conda": case("base", "conda +base", "-x", "'-x' is not the name", conda="base"),
    "container": case("localhost/i", "container +localhost/i", "-i", "'-i' is not an image", container="localhost/i"),
    "container-mount": case("/a:/b:ro", "container-mount +/a:/b:ro", "a:/b", "'a:/b' is not a mount", needs=["container=localhost/i"],
                            wire={"container_mounts": ["/a:/b:ro"]}, container_mounts=["/a:/b:ro"]),
    "login": case(None, "of a login", "x", "not true or false", login=True),
    "on-start": case("true", "on start +true", "x" * 9000, "the command has 9000 bytes|the maximum is 8191", on_start="true"),
    "on-end": case("true", "on end +true", "x" * 9000, "the command has 9000 bytes|the maximum is 8191", on_end="true"),
    "on-fail": case("true", "on fail +true", "x" * 9000, "the command has 9000 bytes|the maximum is 8191", on_fail="true"),
    "webhook": case("http://127.0.0.1:9/x", "http://127.0.0.1:9/x", "ftp://x", "not a URL",
                    webhook="http://127.0.0.1:9/x"),
    "mail-user": case("root", "to root", "-x", "'-x' is not a mail address", "--mail-user=root", mail_user="root"),
    "mail-type": case("FAIL", "FAIL", "NEVER", "unknown mail type 'NEVER'", "--mail-type=FAIL", mail_type="FAIL"),
    "name": case("n1", "name +n1", "", "must not be empty", "--job-name=n1", name="n1"),
    "tag": case("a,b", "a,b", "", "must not be empty", wire={"tags": ["a", "b"]}, tags=["a", "b"]),
    "comment": case("words", "comment +words", "", "must not be empty", "--comment=words", comment="words"),
    "log": case("l.%j", "l\\.", "", "must not be empty", "--output=l.%j", wire={"log": "l.%j"}),
    "error": case("e.%j", "error +.*/e\\.", "", "must not be empty", "--error=e.%j", wire={"error": "e.%j"}),
    "log-max": case("100M", "log-max +100 MiB", "x", "'x' is not a size", log_max_mib=100),
    "open-mode": case("truncate", "truncate", "x", "use append or truncate", "--open-mode=truncate", open_mode="truncate"),
}
# Attributes that are not about GPUs are given to jobs without GPUs, so that nothing is refused
# for that.
ABOUT_GPUS = {"gpus", "vram", "share", "exclusive", "gpu-ids", "devices", "gpu-type", "min-vram", "gpu-cc", "max-used", "max-load",
              "margin", "idle", "placement", "vram-cap", "on-exceed", "cpu-bind"}
# Closed doors, with a part of the error.
CLOSED = {
    ("array", "file"): "a line is one job",
    ("interactive", "file"): "has no terminal",
    ("pty", "file"): "has no terminal",
    ("login", "file"): "share the environment",
    ("cancel", "option"): "there is no|unknown option",
    ("cancel", "berth"): "unknown option",
    ("chdir", "socket bad"): "absolute",  # the daemon opens nothing that a user named
}
# Such a job needs a client or a terminal: option and #BERTH are checked with --dry-run.
ATTACHED = {"interactive": "interactive +yes", "pty": "on a terminal"}
wrong = []
commands = itertools.count()


def fail(*words):
    wrong.append(" ".join(str(w) for w in words))


def command():
    """A new command each time, which contains no attribute's name."""
    return f": {next(commands)}"


def run(*argv):
    p = subprocess.run(["berth", *argv], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr


def ask(method, params):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.path.join(os.environ["BERTH_DIR"], "berth.sock"))
        s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        return json.loads(s.makefile("rb").readline())


def names_of_programs():
    """Quote for the command line, and for a line of a file."""
    _, text, _ = run("submit", "--help")
    groups = text.split("\n\n")[1:]
    options = set()
    for group in groups:
        if not group.startswith("Submission:") and "usage:" not in group:
            options |= set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", group, re.M))
    with open("unknown.txt", "w") as f:
        f.write("[xyzzyxyzzy] true\n")
    _, _, words = run("run", "--detach", "unknown.txt")
    lines = set(re.search(r"the attributes are ([a-z, -]+)", words).group(1).split(", "))
    return options, lines


def extras(name, c):
    more = list(c["needs"])
    if name not in ABOUT_GPUS:
        more += NO_GPU
    if name not in ("hold", "cancel"):
        more.append("hold")
    return more


def as_options(words):
    return [f"--{w}" for w in words]


def quoted(value):
    return f'"{value}"' if re.search(r"[\s\]]", value) else value


def script(mark, lines):
    with open("script.sh", "w") as f:
        f.write("#!/bin/sh\n" + "".join(f"{m} {line}\n" for m, line in zip(mark, lines)) + "true\n")
    os.chmod("script.sh", 0o755)


def give(name, c, door, value):
    """Submit a job through a door. Returns (status, id or None, text)."""
    more = extras(name, c)
    said = name if value is None else f"{name}={value}"
    if door == "file":
        said = name if value is None else f"{name}={quoted(value)}"
        path = f"{name}-{'bad' if value == c['bad'] else 'good'}.txt"
        with open(path, "w") as f:
            f.write(f"[{said} {' '.join(more)}] {command()}\n")
        status, out, err = run("run", "--detach", path)
        if status:
            return status, None, err
        _, out, _ = run("queue", "--all", "--json")
        return 0, max(j["id"] for j in json.loads(out)["jobs"]), err
    if door == "option":
        status, out, err = run("submit", "--parsable", f"--{said}", *as_options(more), "--", command())
    else:
        value_lines = [c["sbatch"]] if door == "sbatch" else [f"--{said}" if value else f"--{said}"]
        if value is not None and door == "berth" and value != "":
            value_lines = [f"--{name}='{value}'"]
        elif value == "":
            value_lines = [f"--{name}=''"]
        marks = ["#SBATCH" if door == "sbatch" else "#BERTH"] + ["#BERTH"] * len(more)
        script(marks, value_lines + as_options(more))
        status, out, err = run("submit", "--parsable", "-J", "x", "script.sh", command()) if name != "name" else run(
            "submit", "--parsable", "script.sh", command())
    return status, int(out) if status == 0 else None, err


def give_socket(name, c, members):
    job = {"command": command(), **members}
    for more in extras(name, c):
        if more == "gpus=0":
            job.setdefault("gpus", 0)
        elif more == "hold":
            job["hold"] = True
        elif more == "time=1h":
            job["limit_ms"] = 3600000
        elif more == "container=localhost/i":
            job["container"] = "localhost/i"
        elif more == "on=slurm":
            job["on"] = "slurm"
        elif more == "on-timeout=requeue":
            job["on_timeout"] = "requeue"
    answer = ask("submit", {"jobs": [job], "cwd": HERE, "env": ["PATH=" + os.environ["PATH"]]})
    if "error" in answer:
        return 1, None, answer["error"]["message"]
    return 0, answer["result"]["ids"][0], ""


def same(have, want):
    if isinstance(want, dict):
        return isinstance(have, dict) and all(same(have.get(k), v) for k, v in want.items())
    return have == want


def check_fields(where, name, c, job):
    for field, want in c["fields"].items():
        if field not in job:
            fail(name, where, "JSON has no", field)
        elif not same(job[field], want) and not (field == "state" and where.endswith("history")):
            fail(name, where, field, "is", json.dumps(job[field]), "instead of", json.dumps(want))


def check_job(door, name, c, number):
    _, out, _ = run("show", str(number), "--json")
    check_fields(door, name, c, json.loads(out)["jobs"][0])
    _, out, _ = run("show", str(number))
    if not re.search(c["show"], out):
        fail(name, door, "is not in berth show:", out)


def walk(name, c, doors, made):
    for door in ("option", "berth", "sbatch", "file"):
        if (name, door) in CLOSED or (door == "sbatch" and not c["sbatch"]):
            if door == "sbatch":
                script(["#SBATCH"], [f"--{name}" if c["value"] is None else f"--{name}={c['value']}"])
                status, _, words = run("submit", "script.sh")
                want = "not a Slurm option; write it on a #BERTH line|unknown option|for an image write #BERTH"
            else:
                status, _, words = give(name, c, door, c["value"])
                want = CLOSED[(name, door)]
            if status != 2 or not re.search(want, words):
                fail(name, door, "is closed, and says:", status, words)
            continue
        if name in ATTACHED and door in ("option", "berth"):
            script(["#BERTH"], [f"--{name}"])
            argv = [f"--{name}", "--", "true"] if door == "option" else ["script.sh"]
            _, out, err = run("submit", "--dry-run", "--gpus=0", *argv)
            if not re.search(ATTACHED[name], out):
                fail(name, door, "--dry-run says", out, err)
        else:
            status, number, words = give(name, c, door, c["value"])
            if status:
                fail(name, door, "is refused:", words)
                continue
            check_job(door, name, c, number)
            made[number] = (name, door)
        if c["bad"] is not None and door != "sbatch":
            status, number, words = give(name, c, door, c["bad"])
            if status != 2 or not re.search(c["error"], words):
                fail(name, door, "with a bad value:", status, words)
    if not c["wire"]:
        return
    status, number, words = give_socket(name, c, c["wire"])
    if status:
        fail(name, "socket is refused:", words)
    else:
        check_job("socket", name, c, number)
        made[number] = (name, "socket")
    for member in c["wire"]:
        status, number, words = give_socket(name, c, {member: {"no": "value"}})
        if status == 0 or member not in words:
            fail(name, "socket with a bad", member, "says:", words)


def main():
    options, lines = names_of_programs()
    known = set(CASES)
    closed_here = {n for (n, d) in CLOSED if d == "file"}
    if options | {"cancel"} != known:
        fail("the help of submit and the cases differ:", sorted((options | {"cancel"}) ^ known))
    if lines != known - closed_here:
        fail("what a line may hold and the cases differ:", sorted(lines ^ (known - closed_here)))
    os.makedirs("sub", exist_ok=True)
    run("submit", "--hold", "--gpus=0", "-J", "base", "true")
    made = {}
    for name, c in CASES.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            walk(name, c, None, made)
    run("cancel", "--all")
    _, out, _ = run("history", "--all", "--json")
    ended = {j["id"]: j for j in json.loads(out)["jobs"]}
    for number, (name, door) in made.items():
        if number not in ended:
            fail(name, door, "is not in the history")
        else:
            check_fields(door + " in history", name, CASES[name], ended[number])
    for words in wrong:
        print(words)
    print(f"{len(CASES)} attributes, {len(made)} jobs, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
