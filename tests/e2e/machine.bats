#!/usr/bin/env bats
# Trouble of the machine is not the job's: what cannot be started for want of processes, folders
# or room waits, health says what it waits for, and it goes on by itself when that is over.

load lib

case_setup()
{
    pids_group=
    mounted=
}

case_teardown()
{
    if [ -n "$mounted" ]; then umount -l "$mounted"; fi
    if [ -n "$pids_group" ]; then rmdir "$pids_group"; fi
}

# A group in which so many processes may be; the daemon and its nursery are moved into it.
# `few_processes 3`, `few_processes max`.
few_processes()
{
    local pid
    [ "$(id -u)" = 0 ] || skip 'needs root to bound processes'
    if [ -z "$pids_group" ]; then
        if [ -d /sys/fs/cgroup/pids ]; then
            pids_group=/sys/fs/cgroup/pids/berth-test-$$
        else
            pids_group=/sys/fs/cgroup/berth-test-$$
        fi
        mkdir "$pids_group" 2>/dev/null || { pids_group=; skip 'cannot make a cgroup'; }
        [ -e "$pids_group/pids.max" ] || skip 'no controller of processes here'
        for pid in $(marked_pids); do
            case $(cat "/proc/$pid/comm") in
            berthd | berth-nursery | berth-probe) echo "$pid" >"$pids_group/cgroup.procs" ;;
            esac
        done
    fi
    echo "$1" >"$pids_group/pids.max"
}

# `full_disk FOLDER`: a file system of its own, which has room for no name beside the file filler.
full_disk()
{
    [ "$(id -u)" = 0 ] || skip 'needs root to mount a small disk'
    mkdir -p "$1"
    mount -t tmpfs -o size=1m,nr_inodes=20 none "$1" || skip 'cannot mount'
    mounted=$1
    mkdir "$1/filler"
    while : >"$1/filler/$RANDOM$RANDOM"; do :; done 2>/dev/null
}

health_says()
{
    "$E2E/await" prints "$LIMIT" 'berth health' "$1" || fail_with "health never said '$1'; it says:
$(berth health)"
}

# What ran: each of the jobs once.
each_ran_once()
{
    local i
    for i in $(seq 1 "$1"); do
        is "runs of job $i" "$(cat ran."$i" 2>/dev/null | wc -l)" 1
        is "state of job $i" "$(job_field "$i" state)" COMPLETED
    done
}

@test "no process can be forked: the queue waits, health says so, and it all runs afterwards" {
    start_daemon 4
    few_processes 3
    for i in $(seq 1 30); do
        berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    done
    health_says '^bad +starts .*(no process|Resource temporarily).*jobs wait'
    has "why" "$(berth explain 30)" 'PENDING: Machine: .*cannot be started now'
    has "status" "$(berth status)" '^trouble '
    # It is tried again without a job: nobody's attempts go up meanwhile.
    wait_until_tried_again
    is "jobs that have ended" "$(events_with kind=ended | wc -l)" 0
    few_processes max
    try berth wait 1-30
    is status "$status" 0
    each_ran_once 30
    try berth health
    has_not "health afterwards" "$out" '^bad +starts'
}

# Waits until the trouble has been met again, by a trial.
wait_until_tried_again()
{
    local before
    before=$(berth show 1-30 --json | python3 -c 'import json, sys
print(sum(j["attempt"] or 0 for j in json.load(sys.stdin)["jobs"]))')
    health_says 'has started for ([3-9]|[1-9][0-9])s'
    is "attempts" "$(berth show 1-30 --json | python3 -c 'import json, sys
print(sum(j["attempt"] or 0 for j in json.load(sys.stdin)["jobs"]))')" "$before"
}

@test "a nursery that is stopped is woken up, and what it had not forked runs once" {
    start_daemon 4
    nursery=$(for pid in $(marked_pids); do
        if [ "$(cat "/proc/$pid/comm")" = berth-nursery ]; then echo "$pid"; fi
    done)
    kill -STOP "$nursery"
    for i in $(seq 1 12); do
        berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    done
    try berth wait 1-12
    is status "$status" 0
    each_ran_once 12
}

@test "a job's folder that is removed under it: it does not run beside itself after a restart" {
    start_daemon 2
    mkfifo gate
    berth submit --vram 1000 -- sh -c 'echo ran >>ran.1; read x <gate'
    wait_until_running 1
    command_pid=$(pgrep -f 'echo ran >>ran.1; read x <gate' | head -1)
    rm -rf "$BERTH_DIR"/state/jobs/*
    kill_daemon
    start_daemon 2
    wait_for_event kind=ended job=1 state=LOST
    has text "$(job_field 1 text)" 'folder was removed'
    is runs "$(wc -l <ran.1)" 1
    "$E2E/await" pid "$LIMIT" "$command_pid"
}

@test "the folder of attempts is removed with a queue behind it: nothing fails for that" {
    start_daemon 2
    mkfifo gate
    berth submit -- sh -c 'echo ran >>ran.$BERTH_JOB_ID; read x <gate'
    berth submit -- sh -c 'echo ran >>ran.$BERTH_JOB_ID; read x <gate'
    for i in $(seq 3 20); do berth submit -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'; done
    wait_until_running 2
    rm -rf "$BERTH_DIR/state/jobs"
    echo >gate
    echo >gate
    try berth wait 1-20
    is status "$status" 0
    each_ran_once 20
}

@test "a folder that cannot be made again: jobs wait until it can, and are charged with nothing" {
    [ "$(id -u)" = 0 ] || skip 'needs root to mount'
    start_daemon 2
    kill_daemon
    full_disk "$BERTH_DIR/state/jobs"
    start_daemon 2
    for i in $(seq 1 6); do berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'; done
    health_says '^bad +starts .*No space left'
    is "attempts" "$(job_field 6 attempt)" 0
    rm -r "$BERTH_DIR/state/jobs/filler"
    try berth wait 1-6
    is status "$status" 0
    each_ran_once 6
}

@test "the logs' disk is full: jobs wait, health names that disk, submissions are accepted" {
    full_disk "$BERTH_DIR/logs"
    start_daemon 2
    for i in $(seq 1 8); do
        try berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
        is "status of submission $i" "$status" 0
    done
    health_says '^bad +starts .*cannot .*logs.*No space left'
    rm -r "$BERTH_DIR/logs/filler"
    try berth wait 1-8
    is status "$status" 0
    each_ran_once 8
}

@test "a user's own disk has no room for a log: that user's jobs wait, and go on by themselves" {
    start_daemon 2
    full_disk "$WORK/own"
    berth submit --vram 1000 --log "$WORK/own/x.log" -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    health_says '^warn +starts .*jobs of .*own/x.log.*No space left'
    has "why" "$(berth explain 1)" 'Machine: .*No space left'
    try berth submit -G 0 -- true
    is "another submission" "$status" 0
    has_not "status" "$(berth status)" '^trouble'
    rm -r own/filler
    try berth wait 1-2
    is status "$status" 0
    is runs "$(wc -l <ran.1)" 1
}
