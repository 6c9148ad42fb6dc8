"""Jobs files for the campaigns on a Slurm cluster, and how each line must end. Standard library
only. A line's command notes in the file `log` that it begins and that it ends: all lines of
all nodes append to it, so that their order is that in which it happened."""
import dataclasses
import os

SCRIPT = r"""#!/bin/sh
# job LINE SECONDS KIND CODE
n=$1 kind=$3 code=$4
trap 'echo "e $n $BERTH_ATTEMPT" >>log' EXIT
trap 'exit 143' TERM
echo "b $n $BERTH_ATTEMPT $(uname -n) ${CUDA_VISIBLE_DEVICES:--} ${BERTH_VRAM_MIB:-0}" >>log
nap() { sleep "$1" & wait $!; }
nap "$2"
case $kind in
signal)
    echo "e $n $BERTH_ATTEMPT" >>log
    trap - EXIT TERM
    kill -"$code" $$
    ;;
oom) # as often as CODE says
    if [ "$(ls oom.$n.* 2>/dev/null | wc -l)" -lt "$code" ]; then
        : >"oom.$n.$BERTH_ATTEMPT"
        echo "torch.cuda.OutOfMemoryError: CUDA out of memory."
        exit 1
    fi
    ;;
hang) nap 100000 ;;
*) exit "$code" ;;
esac
"""


@dataclasses.dataclass
class Line:
    """number: in the file, from 1. after: type and number of a line that it depends on."""
    number: int
    attributes: list
    command: str
    state: str
    status: int
    tries: int
    notes: bool = True  # records its start
    may_be_silent: bool = False  # may be ended before it has recorded anything
    requeue: bool = False
    runs_out: bool = False  # number of times it runs out of VRAM
    after: tuple = ()

    def text(self):
        return f"[{' '.join(self.attributes)}] {self.command}"


def demand(rng):
    """GPUs and VRAM of 1 to 20 GiB, rarely without VRAM."""
    kind = rng.random()
    if kind < 0.05:
        return ["gpus=0"]
    if kind < 0.12:
        return ["gpus=2", f"vram={rng.randrange(1, 21)}G"]
    if kind < 0.15:
        return ["gpus=2"]
    if kind < 0.20:
        return ["gpus=1"]
    return [f"vram={rng.randrange(1, 21)}G"]


def plain(rng, n, nap):
    return Line(n, demand(rng), f"./job {n} {nap} exit 0", "COMPLETED", 0, 1)


def failing(rng, n, nap):
    code = rng.choice([1, 2, 3, 7, 42, 75, 126, 255])
    line = Line(n, demand(rng), f"./job {n} {nap} exit {code}", "FAILED", code, 1)
    if rng.random() < 0.2:
        line.attributes.append("retries=1")
        line.tries = 2
    return line


def signalled(rng, n, nap):
    name, number = rng.choice([("KILL", 9), ("TERM", 15), ("SEGV", 11)])
    return Line(n, demand(rng), f"./job {n} {nap} signal {name}", "FAILED", 128 + number, 1)


def missing(rng, n, nap):
    return Line(n, demand(rng), f"/nowhere/program {nap}", "FAILED", 127, 1, notes=False)


def out_of_memory(rng, n, nap):
    """Even after one increase its demand is less than a GPU has."""
    times, retries = rng.choice([1, 1, 2]), rng.choice([0, 1, 1])
    line = Line(n, [f"vram={rng.randrange(1, 15)}G", f"oom-retries={retries}"],
                f"./job {n} {nap} oom {times}", "COMPLETED", 0, times + 1, runs_out=True)
    if times > retries:
        line.state, line.status, line.tries = "OUT_OF_MEMORY", 1, retries + 1
    return line


def hanging(rng, n, nap):
    return Line(n, demand(rng) + [f"time={rng.choice([2, 3])}s", "grace=1s"],
                f"./job {n} {nap} hang 0", "TIMEOUT", 124, 1, may_be_silent=True)


KINDS = [(plain, 60), (failing, 14), (signalled, 4), (missing, 2), (out_of_memory, 12),
         (hanging, 4)]


def make(rng, n, longest_s=0.5, requeue=0.0):
    """Make this many lines. A fraction of them, `requeue`, runs again when lost."""
    kinds, weights = zip(*KINDS)
    lines = []
    for number in range(1, n + 1):
        nap = f"{rng.random() * longest_s:.2f}"
        line = rng.choices(kinds, weights)[0](rng, number, nap)
        line.attributes.append(f"name=l{number}")
        if rng.random() < requeue:
            line.attributes.append("requeue")
            line.requeue = True
        if lines and rng.random() < 0.15:
            other = rng.choice(lines[-12:]).number
            kind = rng.choice(["after", "after", "after-any", "after-failed"])
            line.attributes.append(f"{kind}=l{other}")
            line.after = (kind, other)
        lines.append(line)
    return lines


def write(lines, folder):
    with open(f"{folder}/job", "w", encoding="ascii") as f:
        f.write(SCRIPT)
    os.chmod(f"{folder}/job", 0o755)
    with open(f"{folder}/jobs", "w", encoding="ascii") as f:
        f.writelines(line.text() + "\n" for line in lines)
