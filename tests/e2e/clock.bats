#!/usr/bin/env bats
# The wall clock is set while jobs run and wait: durations stay durations, times of day stay
# times of day, and limits do not move.

load lib

DAY=86400

case_setup()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    # AddressSanitizer insists on being loaded first.
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
    cc -shared -fPIC -o "$ROOT/clock_shift.so" "$E2E/clock_shift.c"
    export CLOCK_SHIFT=$ROOT/shift
    echo 0 >"$CLOCK_SHIFT"
    LD_PRELOAD=$ROOT/clock_shift.so start_daemon 2
}

# Set the daemon's clock, and make it run a turn, as the kernel's notification does.
set_clock_by()
{
    echo "$1" >"$ROOT/new" && mv "$ROOT/new" "$CLOCK_SHIFT"
    berth submit --hold -- true >/dev/null
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" "event=clock-set by_s=" >/dev/null ||
        fail_with "the daemon did not notice"
}

@test "clock set back by a day: a failed job is still retried within seconds" {
    berth submit --retries 1 -- sh -c 'echo ran >>ran; test "$(wc -l <ran)" = 2 || exit 3'
    wait_for_event kind=requeued job=1
    set_clock_by -$DAY
    wait_for_event kind=ended job=1 exit_status=0
}

@test "clock set forward by a day: jobs with a begin time start, jobs that wait for a retry do not" {
    berth submit --begin +1h -J later -- true
    berth submit --retries 1 -J again -- sh -c 'echo ran >>ran; exit 3'
    local requeued started
    wait_for_event kind=requeued job=2
    set_clock_by $DAY
    wait_for_event kind=ended job=1 exit_status=0
    # A backoff lasts five seconds, whatever the clock says.
    requeued=$(wait_for_event kind=requeued job=2 | json at_us)
    started=$(wait_for_event kind=started job=2 attempt=2 | json at_us)
    [ "$((started - requeued))" -ge $((DAY * 1000000 + 4900000)) ] ||
        fail_with "it was retried $((started - requeued - DAY * 1000000)) us after its failure"
}

@test "setting the clock does not move the time limits of running jobs" {
    mkfifo gate
    berth submit -t 1h -- sh -c 'read x <gate; exit 6'
    berth submit -t 2s -- sleep 1000
    wait_for_event kind=started job=2
    wait_until_running 1
    set_clock_by $DAY
    is "the one with an hour" "$(job_field 1 state)" RUNNING
    set_clock_by -$((3 * DAY))
    wait_for_event kind=ended job=2 state=TIMEOUT
    echo >gate
    wait_for_event kind=ended job=1 exit_status=6
}

# Limits use a clock that cannot be set; so do promises based on them.
@test "setting the clock keeps promised starts, also over a restart of the daemon" {
    local by promised=
    printf '%s\n' 'order: queue' 'reservation_horizon_s: 0' >"$BERTH_DIR/config.yaml"
    berth daemon stop
    LD_PRELOAD=$ROOT/clock_shift.so start_daemon 2
    mkfifo gate
    berth submit -t 10h -- sh -c 'read x <gate'
    berth submit -t 20h -- sh -c 'read x <gate'
    wait_until_running 2
    berth submit -G 2 -t 1h -- true
    promised=$(berth explain 3 --json | json jobs.0.latest_start.unix)
    for by in 10800 $((10800 - DAY)); do
        set_clock_by $by
        is "live, by $by" "$(awk "BEGIN { d = $(berth explain 3 --json | json jobs.0.latest_start.unix) - $promised - $by; print (d > -5 && d < 5) }")" 1
    done
    kill_daemon
    echo $DAY >"$CLOCK_SHIFT"
    LD_PRELOAD=$ROOT/clock_shift.so start_daemon 2
    is "over a crash" "$(awk "BEGIN { d = $(berth explain 3 --json | json jobs.0.latest_start.unix) - $promised - $DAY; print (d > -5 && d < 5) }")" 1
    is "delayed" "$(berth events --kind delayed | wc -l)" 0
    # Held open: else the reader that does not get the first line would see end of file.
    exec 8<>gate
    printf '\n\n' >&8
    wait_for_event kind=ended job=3 exit_status=0
    exec 8>&-
}

# Wait until this is the oldest ended job.
wait_until_oldest_is()
{
    "$AWAIT" until "$LIMIT" "berth history --all --json" jobs.0.id "$1"
}

@test "a clock that jumps ahead does not make the history go by its age, until it has gone evenly for an hour" {
    stop_daemon
    echo '1000 1000' >"$CLOCK_SHIFT"
    printf 'keep_days: 30\nkeep_jobs: 4\n' >"$BERTH_DIR/config.yaml"
    LD_PRELOAD=$ROOT/clock_shift.so start_daemon 2
    for _ in 1 2 3 4 5 6; do berth submit -G 0 --wait -- true; done
    # It has run for long enough to trust its clock.
    echo '2000 2000' >"$ROOT/new" && mv "$ROOT/new" "$CLOCK_SHIFT"
    set_clock_by "$((400 * DAY + 2000)) 2000"
    berth submit -G 0 --wait -- true
    # By their number 3 is removed, as 7 has not ended; 5 and 6 are old enough now, and stay.
    wait_until_oldest_is 4
    is "the job before the jump" "$(job_field 6 state)" COMPLETED
    echo "$((400 * DAY + 6000)) 6000" >"$ROOT/new" && mv "$ROOT/new" "$CLOCK_SHIFT"
    berth submit -G 0 --wait -- true
    wait_until_oldest_is 8
    try berth show 6
    is "status of show, an hour later" "$status" 3
}
