#!/usr/bin/env bats
# Large things arrive complete, and cost memory in proportion: a command line of a megabyte, a
# queue of 100,000 jobs. Malformed requests are refused while the daemon goes on.

load lib

# Peak memory of a command in MiB: `peak_mib COMMAND...`; its output goes to a file.
peak_mib()
{
    python3 - "$ROOT/big.out" "$@" <<'PY'
import resource, subprocess, sys
with open(sys.argv[1], "wb") as out:
    subprocess.run(sys.argv[2:], stdout=out, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
PY
}

at_most()
{
    [ "$2" -le "$3" ] || fail_with "$1 is $2, at most $3 expected"
}

@test "a command line of a megabyte runs whole, as an argument and as shell text" {
    start_daemon 1
    head -c 786432 /dev/urandom | base64 -w 0 >text
    want=$(sha1sum <text)
    # An argument holds at most 128 KiB; a command line as many of them as the stack limit
    # allows.
    try berth submit --wait -G 0 -- sh -c 'for a; do printf %s "$a"; done | sha1sum' sh $(fold -w 100000 text)
    is status "$status" 0
    is "what came through as arguments" "$(berth logs 1)" "$want"
    printf "%s | sha1sum\n" "printf %s $(fold -w 100000 text | tr '\n' ' ')" >jobs.txt
    try berth run jobs.txt
    is status "$status" 0
    has "what came through as text" "$(cat "$BERTH_DIR/logs/2.log")" "${want%% *}"
}

@test "a queue of 100,000 jobs is listed, in words and as JSON, with bounded memory" {
    local pid
    if [ -n "${BERTH_E2E_SLOW:-}" ]; then skip "memory is not what it is with sanitizers"; fi
    start_daemon 1
    pid=$(daemon_pid)
    awk 'BEGIN { for (i = 0; i < 100000; i++) print "[hold] python train.py --seed", i }' >many.txt
    try berth run --detach many.txt
    is status "$status" 0
    at_most "what a listing takes, MiB" "$(peak_mib berth queue)" 400
    is "lines of it" "$(wc -l <"$ROOT/big.out")" 100001
    at_most "what JSON takes, MiB" "$(peak_mib berth queue --json)" 1500
    is "jobs in it" "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["jobs"]))' "$ROOT/big.out")" 100000
    at_most "the daemon's memory, MiB" "$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$pid/status")" 600
    berth cancel --all >/dev/null
}
