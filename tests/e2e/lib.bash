# What every end-to-end test stands on. `load lib` at the head of a .bats file gives each test
#
# - an instance of its own (BERTH_DIR below the test's temporary folder, GPU locks beside it),
#   and a folder $WORK of its own, which is the current one;
# - a mark in the environment, BERTH_E2E_MARK, which the daemon, the supervisors and the jobs
#   inherit; teardown stops the daemon, then insists that nothing with the mark is left;
# - waiting on events and on ends of processes, so that no test ever sleeps and hopes.
#
# The programs are the ones in PATH; ./check puts an installed build there.

# No step of a test may take longer than this, in seconds: what does hangs. It is no measure of speed;
# a step takes a thousandth of it on an idle machine, and has to end on the busiest one.
LIMIT=300

E2E=$BATS_TEST_DIRNAME

# await.c, of the build that the programs are of, or of the one that is always made.
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
    # A name without spaces, wherever the checkout is.
    E2E=$ROOT/e2e
    ln -sfn "$BATS_TEST_DIRNAME" "$E2E"
    # Who tests in a job of Berth's has these of that job; the socket is its daemon's, and counts more.
    unset BERTH_SOCKET SLURM_JOB_ID SLURM_CLUSTER_NAME
    export BERTH_DIR=$ROOT/i BERTH_LOCK_DIR=$ROOT/locks XDG_CONFIG_HOME=$ROOT/xdg
    export BERTH_E2E_MARK=$$-$BATS_TEST_NUMBER-$RANDOM$RANDOM
    export NO_COLOR=1 LC_ALL=C.UTF-8
    export AWAIT
    find_await || return 1
    # People's commands say python; a bare system has python3 alone.
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
    # First who would start a new daemon when the old one goes.
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

# The processes of this test that are alive: the daemon, its helpers, supervisors, jobs, and
# what the test itself put in the background.
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

# Starts this test's daemon with simulated cards: `start_daemon`, `start_daemon 4x80G`.
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

# SIGKILL, as the kernel's OOM killer does it; returns when the process is gone.
kill_daemon()
{
    local pid
    pid=$(daemon_pid)
    kill -KILL "$pid"
    "$AWAIT" pid "$LIMIT" "$pid"
}

# What a power cut leaves: no process, a state that was written under another boot id.
cut_power()
{
    local pid pids
    # Supervisors with the daemon, so that nobody is left to write down an end.
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

# Runs a command with output and status kept apart: $status, $out, $err. It never fails.
try()
{
    status=0
    timeout "$LIMIT" "$@" >"$ROOT/out" 2>"$ROOT/err" </dev/null || status=$?
    out=$(cat "$ROOT/out")
    err=$(cat "$ROOT/err")
}

# Runs a jobs file to its end, as a person would: `run_file 2 jobs.txt [options]`.
run_file()
{
    local sim=$1
    shift
    try berth run --sim "$sim" "$@"
}

# Puts a command in the background; its output is in $ROOT/NAME.out, its status is had with
# `finish NAME`. What an earlier one of that name printed is gone when this returns: the shell
# empties the file only in its child, and `wait_for_output` may look before that.
background()
{
    local name=$1
    shift
    : >"$ROOT/$name.out"
    "$@" >"$ROOT/$name.out" 2>&1 </dev/null 3>&- &
    eval "pid_of_$name=$!"
    background_pids="$background_pids $!"
}

# A jobs file followed in the background, by a daemon that is there already: `follow_file 2
# jobs.txt`. Ends with `finish run`.
follow_file()
{
    start_daemon "$1"
    background run berth run --sim "$@"
}

# Waits for a command put in the background: $status and $out.
finish()
{
    local pid_name=pid_of_$1
    status=0
    "$AWAIT" pid "$LIMIT" "${!pid_name}" || fail_with "$1 has not ended after $LIMIT s"
    wait "${!pid_name}" || status=$?
    background_pids=${background_pids/ ${!pid_name}/}
    out=$(cat "$ROOT/$1.out")
}

# Waits until what a background command prints has a line like PATTERN, and prints that:
# `wait_for_output run 'completed'`.
wait_for_output()
{
    "$AWAIT" output "$LIMIT" "$ROOT/$1.out" "$2" || fail_with "$1 never said '$2'; it said:
$(cat "$ROOT/$1.out")"
}

# Waits for the first event, from the beginning of the instance, in which all the named fields
# have these values, and prints it: `wait_for_event kind=ended job=3`. `--after SEQ` passes
# over older ones. Fails when it does not come within the limit.
wait_for_event()
{
    "$AWAIT" event "$LIMIT" "$@" || fail_with "no event with $*; there were:
$(timeout 5 berth events 2>&1 | tail -40)"
}

# Waits until the job's command is executed: "started" is the decision, which comes before.
wait_until_running()
{
    "$AWAIT" until "$LIMIT" "berth show $1 --json" jobs.0.state RUNNING
}

# Until there is a line in FILE, for what a job writes first: when it is RUNNING that may be yet to come.
wait_until_written()
{
    "$AWAIT" output "$LIMIT" "$1" . >/dev/null || fail_with "nothing has been written into $1"
}

# Whether the process goes on. One that has ended may be there until its parent has taken note of that.
is_alive()
{
    grep -qs '^State:[[:space:]][^ZX]' "/proc/$1/status"
}

# Until so many clients, beside the one that asks, have a connection.
wait_for_clients()
{
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.clients $(($1 + 1))
}

# All events so far in which the named fields have these values, one JSON object per line.
events_with()
{
    timeout "$LIMIT" berth events | "$AWAIT" match "$@"
}

# The sequence number of the first such event.
seq_of()
{
    wait_for_event "$@" | json seq
}

# One value out of JSON on standard input: `json jobs.0.state`. Strings bare, null as `null`.
json()
{
    "$AWAIT" json "$1"
}

# One field of a job as `berth show --json` has it: `job_field 3 state`.
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

# `has NAME TEXT PATTERN`: an extended regular expression is somewhere in the text.
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
