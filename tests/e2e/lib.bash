# What every end-to-end test stands on. `load lib` at the head of a .bats file gives each test
#
# - an instance of its own (BERTH_DIR below the test's temporary folder, GPU locks beside it),
#   and a folder $WORK of its own, which is the current one;
# - a mark in the environment, BERTH_E2E_MARK, which the daemon, the supervisors and the jobs
#   inherit; teardown stops the daemon, then insists that nothing with the mark is left;
# - waiting on events and on ends of processes, so that no test ever sleeps and hopes.
#
# The programs are the ones in PATH; ./check puts an installed build there.

# Longest time in seconds that a step of a test may take; a longer one counts as hung. This is
# no measure of speed: a step takes a thousandth of it on an idle machine, and must also finish
# on the busiest one.
LIMIT=300

E2E=$BATS_TEST_DIRNAME

# Find await, built from await.c, in the build that the programs come from, or else in
# build/gcc, which is always made.
find_await()
{
    local berth build
    berth=$(command -v berth)
    for build in "${berth%/root/bin/berth}" "$BATS_TEST_DIRNAME/../../build/gcc"; do
        AWAIT=$build/tests/e2e/await
        if [ -x "$AWAIT" ]; then return 0; fi
    done
    echo "there is no $AWAIT: tools/build gcc makes it" >&2
    return 1
}

setup()
{
    ROOT=${BATS_TEST_TMPDIR:-$(mktemp -d "${BATS_TMPDIR:-/tmp}/berth-e2e.XXXXXX")}
    # A path without spaces, wherever the checkout is.
    E2E=$ROOT/e2e
    ln -sfn "$BATS_TEST_DIRNAME" "$E2E"
    # A test run inside a job of Berth inherits these from that job; BERTH_SOCKET would lead to
    # that job's daemon and takes precedence.
    unset BERTH_SOCKET SLURM_JOB_ID SLURM_CLUSTER_NAME
    export BERTH_DIR=$ROOT/i BERTH_LOCK_DIR=$ROOT/locks XDG_CONFIG_HOME=$ROOT/xdg
    export BERTH_E2E_MARK=$$-$BATS_TEST_NUMBER-$RANDOM$RANDOM
    export NO_COLOR=1 LC_ALL=C.UTF-8
    export AWAIT
    find_await || return 1
    # Users' commands say python, but a bare system has only python3.
    if ! command -v python >/dev/null; then
        mkdir -p "$ROOT/tools"
        ln -s "$(command -v python3)" "$ROOT/tools/python"
        PATH=$ROOT/tools:$PATH
    fi
    background_pids=
    WORK=$ROOT/work
    mkdir -p "$BERTH_LOCK_DIR" "$WORK"
    cd "$WORK" || return 1
    if declare -F case_setup >/dev/null; then case_setup; fi
}

teardown()
{
    local left pid status=0
    # First end the commands that would start a new daemon when the old one exits.
    for pid in $background_pids; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    if [ -S "$BERTH_DIR/berth.sock" ]; then
        timeout "$LIMIT" berth daemon stop --cancel >"$ROOT/stop.out" 2>&1 || true
    fi
    "$AWAIT" gone "$LIMIT" || status=1
    if [ "$status" -ne 0 ]; then
        left=$(marked_pids)
        echo "# still there after the daemon was told to stop:"
        describe_processes $left
        kill -KILL $left 2>/dev/null
    fi
    if [ -z "${BATS_TEST_COMPLETED:-}" ] || [ "$status" -ne 0 ]; then
        echo "# the daemon's log:"
        tail -30 "$BERTH_DIR/daemon.log" 2>/dev/null
    fi
    cd /
    if declare -F case_teardown >/dev/null; then case_teardown; fi
    if [ -z "${BATS_TEST_TMPDIR:-}" ]; then rm -rf "$ROOT"; fi
    return $status
}

# The live processes of this test: the daemon, its helpers, supervisors, jobs, and what the
# test itself put in the background.
marked_pids()
{
    "$AWAIT" list
}

describe_processes()
{
    local pid
    for pid in "$@"; do
        printf '#   %s: %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
    done
}

# Start this test's daemon with simulated GPUs: `start_daemon`, `start_daemon 4x80G`.
start_daemon()
{
    timeout "$LIMIT" berth daemon start --sim "${1:-2}" >"$ROOT/start.out" 2>&1 ||
        fail_with "berth daemon start --sim ${1:-2}: $(cat "$ROOT/start.out")"
}

stop_daemon()
{
    timeout "$LIMIT" berth daemon stop "$@"
}

daemon_pid()
{
    berth status --json | json daemon.pid
}

# Kill the daemon with SIGKILL, as the kernel's OOM killer does; return when the process is
# gone.
kill_daemon()
{
    local pid
    pid=$(daemon_pid)
    kill -KILL "$pid"
    "$AWAIT" pid "$LIMIT" "$pid"
}

# Simulate a power cut: no process is left, and the state was written under another boot id.
cut_power()
{
    local pid pids
    # Stop supervisors together with the daemon, so that none is left to record an end.
    pids=$(for pid in $(marked_pids); do
        case $(cat "/proc/$pid/comm") in berthd | berth-*) echo "$pid" ;; esac
    done)
    kill -STOP $pids
    kill -KILL $pids
    kill -KILL $(marked_pids) 2>/dev/null || true
    "$AWAIT" gone "$LIMIT"
    python3 - "$BERTH_DIR/state/berth.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
changed = db.execute("UPDATE meta SET value = ? WHERE key = 'boot_id'",
                     ("00000000-0000-4000-8000-000000000000",)).rowcount
db.commit()
assert changed == 1, "the store keeps its boot id elsewhere now"
PY
}

# Run a command and set $status, $out and $err. It never fails itself.
try()
{
    status=0
    timeout "$LIMIT" "$@" >"$ROOT/out" 2>"$ROOT/err" </dev/null || status=$?
    out=$(cat "$ROOT/out")
    err=$(cat "$ROOT/err")
}

# Run a jobs file to its end, as a user would: `run_file 2 jobs.txt [options]`.
run_file()
{
    local sim=$1
    shift
    try berth run --sim "$sim" "$@"
}

# Put a command in the background; its output is in $ROOT/NAME.out, and `finish NAME` gets its
# status. The file is emptied here, before the shell does so in its child, because
# `wait_for_output` could otherwise see output of an earlier command of that name.
background()
{
    local name=$1
    shift
    : >"$ROOT/$name.out"
    "$@" >"$ROOT/$name.out" 2>&1 </dev/null 3>&- &
    eval "pid_of_$name=$!"
    background_pids="$background_pids $!"
}

# Start a daemon and follow a jobs file in the background: `follow_file 2 jobs.txt`. End it
# with `finish run`.
follow_file()
{
    start_daemon "$1"
    background run berth run --sim "$@"
}

# Wait for a command put in the background; set $status and $out.
finish()
{
    local pid_name=pid_of_$1
    status=0
    "$AWAIT" pid "$LIMIT" "${!pid_name}" || fail_with "$1 has not ended after $LIMIT s"
    wait "${!pid_name}" || status=$?
    background_pids=${background_pids/ ${!pid_name}/}
    out=$(cat "$ROOT/$1.out")
}

# Wait until a background command's output has a line that matches PATTERN, and print that
# line: `wait_for_output run 'completed'`.
wait_for_output()
{
    "$AWAIT" output "$LIMIT" "$ROOT/$1.out" "$2" || fail_with "$1 never said '$2'; it said:
$(cat "$ROOT/$1.out")"
}

# Wait for the first event, from the beginning of the instance, in which all the named fields
# have these values, and print it: `wait_for_event kind=ended job=3`. `--after SEQ` skips older
# ones. Fail if it does not come within the limit.
wait_for_event()
{
    "$AWAIT" event "$LIMIT" "$@" || fail_with "no event with $*; there were:
$(timeout 5 berth events 2>&1 | tail -40)"
}

# Wait until the job's command is executed; the event "started" is only the decision, which
# comes before.
wait_until_running()
{
    "$AWAIT" until "$LIMIT" "berth show $1 --json" jobs.0.state RUNNING
}

# Wait until FILE has a line: a job's first output may come some time after the job is RUNNING.
wait_until_written()
{
    "$AWAIT" output "$LIMIT" "$1" . >/dev/null || fail_with "nothing has been written into $1"
}

# True if the process is alive. A zombie, which its parent has not reaped yet, counts as dead.
is_alive()
{
    grep -qs '^State:[[:space:]][^ZX]' "/proc/$1/status"
}

# Wait until this many clients, besides the one that asks, are connected.
wait_for_clients()
{
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.clients $(($1 + 1))
}

# Print all events so far in which the named fields have these values, one JSON object per line.
events_with()
{
    timeout "$LIMIT" berth events | "$AWAIT" match "$@"
}

# Print the sequence number of the first such event.
seq_of()
{
    wait_for_event "$@" | json seq
}

# Print one value of the JSON on standard input: `json jobs.0.state`. Strings bare, null as
# `null`.
json()
{
    "$AWAIT" json "$1"
}

# Print one field of a job from `berth show --json`: `job_field 3 state`.
job_field()
{
    berth show "$1" --json | json "jobs.0.$2"
}

fail_with()
{
    echo "$*" >&2
    return 1
}

# `is NAME ACTUAL EXPECTED`
is()
{
    [ "$2" = "$3" ] || fail_with "$1 is '$2', expected '$3'"
}

# `has NAME TEXT PATTERN`: the text contains a match of the extended regular expression.
has()
{
    grep -qE -- "$3" <<<"$2" || fail_with "$1 has nothing like '$3'; it is:
$2"
}

has_not()
{
    if grep -qE -- "$3" <<<"$2"; then fail_with "$1 has '$3', and should not; it is:
$2"; fi
}
