#!/usr/bin/env bats
# `berth priority` and `berth requeue`: changing the order, and running again.

load lib

@test "priority lets a waiting job pass another" {
    start_daemon 1
    mkfifo gate
    berth submit --vram 20G -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    try berth priority 1 5
    is 'words for one that runs' "$err" 'berth: job 1 is not pending: it has started'
    berth submit --vram 20G -- true
    berth submit --vram 20G -- true
    try berth priority 3 10
    is status "$status" 0
    is words "$out" 'priority 10 for job 3'
    is ids "$(berth priority 2 -4 --json | json ids.0)" 2
    is asked "$(job_field 2 priority)" -4
    is ids "$(berth priority 2 3 --json | json ids.0)" 2
    is asked "$(job_field 2 priority)" 3
    try berth priority 2 -5
    is words "$out" 'priority -5 for job 2'
    is asked "$(job_field 2 priority)" -5
    timeout "$LIMIT" bash -c 'echo go >gate'
    wait_for_event kind=ended job=2
    [ "$(seq_of kind=started job=3)" -lt "$(seq_of kind=started job=2)" ] || fail_with 'job 2 came first'
    try berth priority 3 5
    [ "$status" -ne 0 ] || fail_with "priority of a job that has ended: $out"
    try berth priority 2 5000
    is status "$status" 2
    has words "$err" '5000'
    try berth priority 7
    is status "$status" 2
}

@test "requeue runs an ended job again, and a running one once it has been stopped" {
    start_daemon 1
    mkfifo gate
    berth submit --gpus 0 -- sh -c 'echo run >>runs; test $(wc -l <runs) -gt 1'
    wait_for_event kind=ended job=1 state=FAILED
    try berth requeue 1
    is status "$status" 0
    is words "$out" 'requeued job 1'
    wait_for_event kind=ended job=1 state=COMPLETED
    is attempts "$(job_field 1 attempt)" 2
    berth submit --gpus 0 -- sh -c 'echo run >>more; test $(wc -l <more) -gt 1 || read line <gate'
    wait_for_event kind=started job=2 attempt=1
    wait_until_running 2
    wait_until_written more
    try berth requeue 2
    is status "$status" 0
    wait_for_event kind=started job=2 attempt=2
    is attempt "$(job_field 2 attempts.0.outcome)" requeued
    try berth requeue 99
    is status "$status" 3
    try berth requeue
    is status "$status" 2
}
