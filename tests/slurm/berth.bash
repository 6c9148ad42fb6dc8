# For tests of jobs with --on slurm, after `load lib`: each test has a daemon of its own, in
# the folder $BERTH_DIR, and runs in $ROOT/w. Heartbeats, and the silence after which a job is
# LOST, are six times shorter than normal.

case_setup()
{
    export BERTH_DIR=$ROOT/b BERTH_LOCK_DIR=$ROOT/locks BERTH_SLURM_HASTE=6 LC_ALL=C.UTF-8 NO_COLOR=1
    mkdir -p "$BERTH_LOCK_DIR" "$ROOT/w"
    cd "$ROOT/w" || return 1
}

case_teardown()
{
    unset BERTH_CRASH_AT
    if [ -S "$BERTH_DIR/berth.sock" ]; then
        timeout "$LIMIT" berth daemon stop --cancel >/dev/null 2>&1 || true
    fi
    if [ -z "${BATS_TEST_COMPLETED:-}" ]; then
        echo "# the daemon's log:"
        tail -n 40 "$BERTH_DIR/daemon.log" 2>/dev/null || true
        if [ -d "$BERTH_DIR/state/allocations" ]; then
            echo "# events of allocations:"
            tail -n 20 "$BERTH_DIR"/state/allocations/*/events "$BERTH_DIR"/logs/allocation-* 2>/dev/null || true
        fi
        cat "$BERTH_DIR/logs/slurm.log" 2>/dev/null || true
    fi
}

submit() { timeout "$LIMIT" berth submit --on slurm "$@"; }
wait_for() { timeout "$LIMIT" berth wait "$@"; }
# `field JOB JQ`: print a field of a job's JSON object.
field() { berth show --json "$1" | jq -r ".jobs[0] | $2"; }
is_state() { [ "$(field "$1" .state)" = "$2" ]; }
# `has_said JOB LINE`: RUNNING only means that the command has been started; its first output
# may come later.
has_said() { berth logs "$1" 2>/dev/null | grep -qx "$2"; }
kill_daemon()
{
    local pid
    pid=$(berth status --json | jq .daemon.pid)
    kill -KILL "$pid"
    timeout "$LIMIT" tail --pid="$pid" -f /dev/null
}
