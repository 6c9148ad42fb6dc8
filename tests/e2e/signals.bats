#!/usr/bin/env bats
# Signals to running jobs: those sent by users and the warning before a time limit.

load lib

# A job that reports on a FIFO that it is ready, and exits with 5 on USR1.
listening='trap "exit 5" USR1; echo ready >ready; while :; do sleep 0.05; done'

@test "a signal reaches running jobs, and is in the events" {
    start_daemon 1
    mkfifo ready
    berth submit --gpus 0 -- sh -c "$listening"
    timeout "$LIMIT" cat ready
    try berth signal 1 USR1
    is status "$status" 0
    is words "$out" 'sent USR1 to job 1'
    try berth wait 1
    is status "$status" 5
    wait_for_event kind=signal job=1 signal=10 "by=$(id -un)"
}

@test "a signal to an array reaches its running tasks" {
    start_daemon 1
    mkfifo ready
    berth submit --gpus 0 --cpus 1 --array '0-3%1' -- sh -c "$listening"
    timeout "$LIMIT" cat ready
    try berth signal 1 USR1
    is words "$out" 'sent USR1 to job 1_0'
    wait_for_event kind=ended job=2 exit_status=5
    timeout "$LIMIT" cat ready
    has explanation "$(berth explain 1_1)" '^job 1_1 RUNNING'
    has explanation "$(berth explain 1_3)" '^job 1 PENDING: ArrayLimit'
}

@test "a signal to a job that does not run is refused, and an unknown signal is named" {
    start_daemon 1
    berth submit --gpus 0 --hold -- true
    try berth signal 1 TERM
    is status "$status" 1
    has words "$err" 'job 1 is not running \(HELD\)'
    try berth signal 7 TERM
    is status "$status" 3
    try berth signal 1 TREM
    is status "$status" 2
    has words "$err" "'TREM' is not a signal; write USR1, TERM or 10"
    try berth signal 1
    is status "$status" 2
    has words "$err" 'berth signal 12 USR1'
    try berth signal name:nobody HUP
    is status "$status" 3
    berth cancel 1
    try berth signal 1 TERM
    is status "$status" 1
    has words "$err" 'job 1 has ended \(CANCELLED\)'
}

@test "a job is warned once before its time limit, and can act on it" {
    start_daemon 1
    berth submit --gpus 0 -t 1h --signal USR2@59m40s -- \
        sh -c 'trap "echo saved; exit 4" USR2; while :; do sleep 0.05; done'
    wait_for_event kind=warning job=1 signal=12 before_ms=3580000
    try berth wait 1
    is status "$status" 4
    has log "$(berth logs 1)" '^saved$'
    has events "$(events_with kind=warning job=1)" 'sent USR2, 59m40s before its time limit'
    is warnings "$(events_with kind=warning job=1 | wc -l)" 1
}
