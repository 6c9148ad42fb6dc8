#!/usr/bin/env bats
# Expected run times from a command's own runs: kept across restarts, and never a limit.

load lib

# The command runs until the pipe is written, so that nothing here waits for a clock.
command='read line <gate'

run_once()
{
    local id
    id=$(berth submit --parsable --gpus 0 -- sh -c "$command")
    timeout "$LIMIT" bash -c 'echo go >gate'
    wait_for_event kind=ended "job=$id" state=COMPLETED >/dev/null
}

@test "runs of a command are remembered, and a killed daemon's successor knows them" {
    start_daemon 1
    mkfifo gate
    run_once
    kill_daemon
    start_daemon 1
    local id other
    id=$(berth submit --parsable --gpus 0 -- sh -c "$command")
    other=$(berth submit --parsable --gpus 0 -- sh -c "read other <gate")
    "$AWAIT" until "$LIMIT" "berth show $id --json" jobs.0.state RUNNING
    has running "$(berth explain "$id")" '^  expected +end at '
    has_not running "$(berth explain "$other")" '^  expected'
    is limit "$(job_field "$id" limit_ms)" null
}

@test "a waiting job's expectation follows the runs that end" {
    local estimate span
    start_daemon 1
    mkfifo gate
    berth submit --gpus 0 --hold -- sh -c "$command"
    is before "$(job_field 1 estimate_ms)" null
    run_once
    try berth show 1 --json
    estimate=$(job_field 1 estimate_ms)
    [ "$estimate" -gt 0 ] || fail_with "no estimate: $out"
    # Steps of a quarter from one second on, so that a run on a slow machine falls into a later
    # one.
    span=1000
    while [ "$span" -lt "$estimate" ]; do span=$((span + span / 4)); done
    is span "$(job_field 1 span_ms)" "$span"
}
