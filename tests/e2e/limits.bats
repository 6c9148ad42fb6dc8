#!/usr/bin/env bats
# Admission limits: the number of pending jobs, and the length of a time limit.

load lib

# `with_settings KEY VALUE...`: start a daemon with these settings.
with_settings()
{
    : >limits.yaml
    while [ $# -gt 0 ]; do
        echo "$1: $2" >>limits.yaml
        shift 2
    done
    timeout "$LIMIT" berth daemon start --sim 2 --config limits.yaml >"$ROOT/start.out" 2>&1 ||
        fail_with "$(cat "$ROOT/start.out")"
}

@test "the number of a user's pending jobs is limited" {
    with_settings user_max_pending 2
    berth submit --hold -- true
    berth submit --hold -- true
    try berth submit -- true
    is status "$status" 6
    has words "$err" "$(id -un) has 2 of at most 2 pending jobs: 1 job more would be too many"
    berth cancel 1
    try berth submit --hold -- true
    is status "$status" 0
    printf 'true\nfalse\n' >jobs.txt
    try berth run jobs.txt --detach
    is status "$status" 6
    has words "$err" '2 jobs more'
    is jobs "$(berth queue -o id | wc -l)" 3
}

@test "tasks that run again count as pending jobs, each of them" {
    with_settings user_max_pending 6
    berth submit --gpus 0 --array 0-3 -W -- true
    berth submit --gpus 0 --array '0-3%1' -- sh -c 'exit $BERTH_ARRAY_TASK_ID'
    wait_for_event kind=ended job=6
    for _ in 1 2 3; do berth submit --hold -- true; done
    for what in 1 6; do
        try berth requeue $what
        is "status of $what" "$status" 6
        has "words of $what" "$err" 'has 3 of at most 6 pending jobs: 4 jobs more would be too many'
    done
    try berth requeue '6_[0-3]'
    is 'status of its tasks' "$status" 6
    is 'what waits' "$(berth queue --json | jq -c '[.jobs[].id]')" '[11,12,13]'
    # As many as there is room for.
    try berth requeue 6 --failed
    is 'status of those that failed' "$status" 0
    berth cancel 11
    wait_for_event --after "$(seq_of kind=ended job=6)" kind=ended job=6
    try berth requeue 1
    is 'status with room' "$status" 0
}

@test "limits changed while jobs wait apply from the HUP on" {
    with_settings user_max_running 1 user_max_pending 1
    for i in 1 2; do
        berth submit --vram 1G -- sleep 1000
    done
    is reason "$(job_field 2 reason)" UserLimit
    try berth submit -- true
    is "status of one too many" "$status" 6
    printf 'user_max_running: 1\nusers: {"%s": {max_running: 2, max_pending: 5}}\n' "$(id -un)" >limits.yaml
    kill -HUP "$(daemon_pid)"
    wait_for_event kind=started job=2 >/dev/null
    has log "$(cat "$BERTH_DIR/daemon.log")" 'key=users changed'
    berth submit --hold -- true
    berth submit --vram 1G -- sleep 1000
    is "reason of the third" "$(job_field 4 reason)" UserLimit
    echo 'user_max_running: 3' >limits.yaml
    kill -HUP "$(daemon_pid)"
    wait_for_event kind=started job=4 >/dev/null
}

@test "the number of all pending jobs is limited" {
    with_settings pending_max 1
    berth submit --hold -- true
    try berth submit -- true
    is status "$status" 6
    has words "$err" 'the queue is full: 1 of at most 1 jobs are pending'
    # Ended lines that are to run again are new jobs.
    berth cancel 1
    line='"command": "true", "hold": true, "line": 1, "again": true'
    for key in a b; do
        sync='{"path": "/jobs", "part": true, "cwd": "/", "umask": 18, "env": [], "jobs": '
        "$E2E/ask.py" file.sync "$sync [{\"key\": \"$key\", $line}]}" >/dev/null
        berth cancel --all
    done
    try "$E2E/ask.py" file.sync "$sync [{\"key\": \"a\", $line}, {\"key\": \"b\", $line}]}"
    has words "$status:$err" '^1:.*the queue is full: 0 of at most 1 jobs are pending .*would add 2 jobs'
}

@test "a time limit above the maximum is refused, and a job without one gets the default" {
    with_settings time_max_s 3600 time_default_s 600
    try berth submit -t 2h --hold -- true
    is status "$status" 6
    has words "$err" 'its time limit of 2h00m is above the maximum of 1h00m'
    berth submit -t 1h --hold -- true
    is "given and said" "$(berth submit --hold -- true)" "job 2 submitted, time limit 10m00s"
    is asked "$(job_field 1 limit_ms)" 3600000
    is given "$(job_field 2 limit_ms)" 600000
    echo '[time=3h] true' >jobs.txt
    try berth run jobs.txt --detach
    has words "$err" '^berth: .*:1:1: its time limit of 3h00m'
}

@test "a job that exceeds a limit by itself is refused" {
    with_settings user_max_gpus 1 max_vram_mib 8192
    try berth submit --gpus 2 --vram 1G -- true
    is status "$status" 6
    has words "$err" "it needs 2 GPUs, and $(id -un) may have 1 at the same time \(user_max_gpus\)"
    try berth submit -- true
    is status "$status" 6
    has words "$err" 'it needs 24.0 GiB of VRAM, and all users together may have 8.0 GiB at the same time'
    try berth submit --vram 8G -- true
    is status "$status" 0
}

@test "without a default a job gets the maximum time limit" {
    with_settings time_max_s 1800
    berth submit --hold -- true
    is given "$(job_field 1 limit_ms)" 1800000
}

@test "a line of a jobs file that exceeds a limit by itself is refused" {
    with_settings user_max_gpus 1
    printf '[gpus=2 vram=1G] true\n[vram=1G] echo fine\n' >jobs.txt
    try berth run jobs.txt
    is status "$status" 1
    has words "$out$err" "it needs 2 GPUs, and $(id -un) may have 1 at the same time \(user_max_gpus\)"
    is first "$(job_field 1 state)" INFEASIBLE
    is second "$(job_field 2 state)" COMPLETED
}

@test "a daemon that a client restarts after a crash has the settings of the previous one" {
    with_settings user_max_pending 1
    berth submit --hold -- true
    kill_daemon
    try berth submit --hold -- true
    is status "$status" 6
    has words "$err" 'user_max_pending'
    berth daemon stop
    try berth submit --hold -- true
    has 'and stays so while there are jobs' "$err" 'user_max_pending'
    berth cancel 1
    berth daemon stop
    berth submit --sim 2 --hold -- true
    try berth submit --hold -- true
    is 'and no longer' "$status" 0
}

@test "the settings' grace and oom_retries are defaults, for lines of a file too" {
    with_settings grace_ms 200 oom_retries 2
    printf '%s\n' 'sleep 1000' '[grace=5s oom-retries=1] sleep 1000' >jobs.txt
    berth run jobs.txt --detach >/dev/null
    berth submit --hold -- true
    is asked "$(for i in 1 2 3; do job_field $i grace_ms; job_field $i oom_retries; done | paste -sd' ')" \
        '200 2 5000 1 200 2'
    # The same file again is the same jobs.
    is again "$(berth run jobs.txt --detach)" "$(berth run jobs.txt --detach)"
    berth submit -G 0 -t 6s -- 'trap "" TERM; sleep 1000; sleep 1000'
    try berth wait 4
    is status "$status" 124
    has ending "$(job_field 4 text)" 'killed after the grace period'
}

@test "on_exceed: kill ends the job as FAILED, with what it used and what to declare" {
    with_settings on_exceed kill
    berth submit --vram 8000 -- berth simjob --vram 12000 --ramp 0 --hold 60
    try berth wait 1
    is status "$status" 1
    is state "$(job_field 1 state)" FAILED
    is text "$(job_field 1 text)" 'used 11.7 GiB of 7.8 GiB VRAM declared; declare --vram 12.9G'
    is attempt "$(job_field 1 attempts.0.outcome)" exceeded
    has report "$(berth report)" 'used more VRAM than declared'
}

@test "on_exceed: kill runs a job with oom-retries again with more" {
    with_settings on_exceed kill
    berth submit --vram 8000 --oom-retries 1 --retries 3 -- \
        'berth simjob --vram 9600 --ramp 0 --hold $([ "$BERTH_ATTEMPT" = 1 ] && echo 1000 || echo 0.1)'
    try berth wait 1
    is status "$status" 0
    is attempts "$(job_field 1 attempts.1.vram_mib)" 12000
    local requeued
    requeued=$(wait_for_event kind=requeued job=1)
    is 'raised to' "$(json vram_mib <<<"$requeued")" 12000
}

@test "--on-exceed and on_exceed_gpus: the job that is over, and no other, ends on GPUs and jobs that say so" {
    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 50\non_exceed_gpus: 1=kill 0=ignore\n' >"$BERTH_DIR/config.yaml"
    start_daemon 2
    berth submit --gpu-ids 0 --vram 4000 -- "$E2E/seen" 4000
    berth submit --gpu-ids 0 --vram 8000 --on-exceed kill -- berth simjob --vram 12000 --ramp 0 --hold 1000
    try berth wait 2
    is status "$status" 1
    is state "$(job_field 2 state)" FAILED
    is text "$(job_field 2 text)" 'used 11.7 GiB of 7.8 GiB VRAM declared; declare --vram 12.9G'
    is ended "$(wait_for_event kind=ended job=2 | json text)" 'used 11.7 GiB of 7.8 GiB VRAM declared; declare --vram 12.9G'
    berth wait 1
    # A rule that kills applies to jobs that ask for less; one that ignores does not apply to
    # jobs that ask for more.
    berth submit --gpu-ids 1 --vram 8000 --on-exceed ignore -- berth simjob --vram 9000 --ramp 0 --hold 1000
    try berth wait 3
    is state "$(job_field 3 state)" FAILED
    berth submit --gpu-ids 0 --vram 8000 -- "$E2E/seen" 9000
    berth submit --gpu-ids 0 --vram 8000 --on-exceed kill -- berth simjob --vram 9000 --ramp 0 --hold 1000
    try berth wait 5
    is state "$(job_field 5 state)" FAILED
    berth wait 4
    is 'not said' "$(berth events | "$AWAIT" match kind=exceeds job=4)" ''
    is said "$(berth events | "$AWAIT" match kind=exceeds job=3 | wc -l)" 1
}

@test "on_exceed: kill leaves a job that is held to its VRAM alone" {
    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 50\non_exceed: kill\n' >"$BERTH_DIR/config.yaml"
    start_daemon 1+cap
    berth submit --vram 8000 -- "$E2E/seen" 8500
    try berth wait 1
    is status "$status" 0
}
