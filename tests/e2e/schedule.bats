#!/usr/bin/env bats
# Scheduling with real processes: reservations for a job that needs every GPU, patience,
# limits, and preemption. Jobs hold their GPUs until the test releases them, so starts follow
# from the rules alone.

load lib

# Start a daemon with these settings: `with_settings SIM 'KEY: VALUE'...`. The order is that of
# submission, which reserves for the first job that does not fit, unless another is named.
with_settings()
{
    local sim=$1
    shift
    [[ $* == *order:* ]] || set -- "$@" 'order: queue'
    printf '%s\n' "$@" >settings.yaml
    timeout "$LIMIT" berth daemon start --sim "$sim" --config settings.yaml >"$ROOT/start.out" 2>&1 ||
        fail_with "$(cat "$ROOT/start.out")"
}

# A job that ends when `let_go NAME` says so: `holder NAME OPTIONS...`. Its id is in $id_NAME.
holder()
{
    local name=$1
    shift
    mkfifo "$name"
    eval "id_$name=$(berth submit --parsable "$@" -- cat "$WORK/$name")"
}

let_go()
{
    timeout "$LIMIT" tee "$WORK/$1" </dev/null
}

is_running()
{
    "$AWAIT" until "$LIMIT" "berth show $1 --json" jobs.0.state RUNNING
}

waits_for()
{
    "$AWAIT" until "$LIMIT" "berth explain $1 --json" jobs.0.reason "$2" ||
        fail_with "job $1 waits for something else: $(berth explain "$1")"
}

@test "with time limits: a job that needs every GPU has a reservation, and others fill the rest" {
    with_settings 2
    holder a --time 100
    holder b --time 200
    is_running "$id_a"
    is_running "$id_b"
    holder wide --gpus 2 --time 60
    holder long --time 300
    holder short --time 20
    has "explanation" "$(berth explain "$id_wide" --json)" '"reserved":true'
    let_go a
    is_running "$id_short"
    is "the long one" "$(job_field "$id_long" state)" PENDING
    let_go short
    waits_for "$id_long" Reservation
    has "explanation" "$(berth explain "$id_long")" "would delay job $id_wide"
    let_go b
    is_running "$id_wide"
    is "the long one" "$(job_field "$id_long" state)" PENDING
    let_go wide
    is_running "$id_long"
    let_go long
    wait_for_event kind=ended "job=$id_long" state=COMPLETED >/dev/null
}

@test "without time limits: others pass while the patience lasts; then GPUs are pinned" {
    with_settings 2 'patience_s: 100000'
    holder a
    holder b
    holder wide --gpus 2
    holder c
    is_running "$id_b"
    let_go a
    is_running "$id_c"
    stop_daemon
    with_settings 2 'patience_s: 0'
    holder d
    holder short --time 60
    has "explanation" "$(berth explain "$id_wide" --json)" '"reserved":true'
    let_go b
    waits_for "$id_d" Reservation
    waits_for "$id_short" Reservation
    let_go c
    is_running "$id_wide"
    let_go wide
    is_running "$id_d"
    is_running "$id_short"
    let_go d
    let_go short
}

@test "a job over a limit waits with the number as reason, and blocks no other user's jobs" {
    with_settings 2 'user_max_gpus: 1'
    holder a
    holder b
    is_running "$id_a"
    waits_for "$id_b" UserLimit
    has "explanation" "$(berth explain "$id_b")" 'limit.* 1'
    holder c --gpus 0
    is_running "$id_c"
    let_go a
    is_running "$id_b"
    let_go b
    let_go c
}

@test "only a preemptible job makes way for a higher priority, and it runs again" {
    with_settings 2
    holder firm
    holder way --preemptible
    is_running "$id_firm"
    is_running "$id_way"
    holder same
    waits_for "$id_same" GpuBusy
    holder high --priority 5
    is_running "$id_high"
    is "the one that made way" "$(job_field "$id_way" state)" PENDING
    is "the one that did not" "$(job_field "$id_firm" state)" RUNNING
    is "the one of the same priority" "$(job_field "$id_same" state)" PENDING
    let_go high
    is_running "$id_way"
    let_go way
    is_running "$id_same"
    is "its last attempt" "$(job_field "$id_way" attempts.1.outcome)" exited
    let_go same
    let_go firm
}

@test "order: balanced: a short job comes before a long one that has waited as long, after a restart too" {
    with_settings 1x24G "order: balanced"
    holder first -t 1h
    is_running "$id_first"
    berth submit --hold -t 1d -- true
    berth submit --hold -t 5m -- true
    berth daemon stop
    with_settings 1x24G "order: balanced"
    is_running "$id_first"
    berth release 2,3
    let_go first
    berth wait 2-3
    is order "$(berth history -o id --sort ended | awk 'NR > 1 {printf "%s ", $1}')" '1 3 2 '
}

# The job's promised start: `latest ID`
latest()
{
    berth explain "$1" --json | json jobs.0.latest_start.unix
}

@test "a promised start holds when shorter jobs come, after a restart and a crash too" {
    local before
    with_settings 2 'order: short' 'reservations: 1' 'reservation_horizon_s: 0'
    holder a --time 1h
    holder b --time 2h
    is_running "$id_a"
    is_running "$id_b"
    holder wide --gpus 2 --time 5h
    before=$(latest "$id_wide")
    has "a time" "$before" '^[0-9.]+$'
    # First in this order, and too long to end in time.
    holder c --time 4h
    let_go a
    waits_for "$id_c" Reservation
    is "after an end" "$(latest "$id_wide")" "$before"
    kill_daemon
    with_settings 2 'order: short' 'reservations: 1' 'reservation_horizon_s: 0'
    is "after a crash" "$(latest "$id_wide")" "$before"
    berth daemon stop
    with_settings 2 'order: short' 'reservations: 1' 'reservation_horizon_s: 0'
    is "after a restart" "$(latest "$id_wide")" "$before"
    waits_for "$id_c" Reservation
    has "for whom" "$(berth explain "$id_c")" "job $id_wide, which is (expected to start at|promised its start by) "
    let_go b
    is_running "$id_wide"
    is "those put off" "$(berth events --kind delayed | wc -l)" 0
    let_go wide
    is_running "$id_c"
    let_go c
}

@test "without promises, as under short by default, the order decides again each time" {
    with_settings 2 'order: short'
    holder a --time 1h
    holder b --time 2h
    is_running "$id_b"
    holder wide --gpus 2 --time 5h
    has "explanation" "$(berth explain "$id_wide" --json)" '"firm":false,"latest_start":null'
    holder c --time 4h
    let_go a
    is_running "$id_c"
    let_go b
    let_go c
    is_running "$id_wide"
    let_go wide
}

@test "a promise that cannot be kept is taken back with an event that says why" {
    with_settings 2 'reservation_horizon_s: 0'
    holder a --time 1h
    holder b --time 2h
    is_running "$id_b"
    holder wide --gpus 2 --time 5h
    has "a time" "$(latest "$id_wide")" '^[0-9.]+$'
    holder high --priority 5 --time 4h
    let_go a
    is_running "$id_high"
    wait_for_event kind=delayed "job=$id_wide" "for=$id_high" >/dev/null
    has "the event" "$(berth events --kind delayed)" "\"the promised start cannot be kept: job $id_high has a higher priority\""
    has "another promise" "$(latest "$id_wide")" '^[0-9.]+$'
    let_go high
    let_go b
    is_running "$id_wide"
    let_go wide
}

@test "reservations: 3 shows the starts of three jobs, and keeps each" {
    local one two three
    with_settings 1 'reservations: 3' 'reservation_horizon_s: 0'
    holder a --time 1h
    is_running "$id_a"
    holder one --time 2h
    holder two --time 3h
    holder three --time 1h
    holder four --time 4h
    one=$(latest "$id_one") two=$(latest "$id_two") three=$(latest "$id_three")
    is "in turn" "$(awk "BEGIN { print ($one + 7200 < $two && $two + 10800 < $three) }")" 1
    is "the fourth" "$(berth explain "$id_four" --json | json jobs.0.firm)" false
    let_go a
    is_running "$id_one"
    is "the second, now earlier" "$(awk "BEGIN { print ($(latest "$id_two") < $two) }")" 1
    is "the fourth, now one of three" "$(berth explain "$id_four" --json | json jobs.0.firm)" true
    let_go one
    let_go two
    let_go three
    let_go four
}

@test "a job requeued in front of the promised one leaves no GPU idle" {
    with_settings 1 'reservation_horizon_s: 0'
    holder first --time 1h
    holder next --time 1h
    is_running "$id_first"
    has "a time" "$(latest "$id_next")" '^[0-9.]+$'
    berth requeue "$id_first"
    is_running "$id_next"
    let_go next
    is_running "$id_first"
    let_go first
}

@test "a job without a limit, known to be brief, runs beside one that is days from its start" {
    start_daemon 2
    for _ in 1 2 3; do
        berth submit --wait -- sh -c 'exit 0' >brief
    done
    holder a --time 2d
    is_running "$id_a"
    berth submit --gpus 2 --time 1h -- true >wide
    berth submit --parsable -- sh -c 'exit 0' >brief
    timeout "$LIMIT" berth wait "$(cat brief)"
    let_go a
}

@test "a start is promised when it is near, and expected until then" {
    with_settings 1 'reservation_horizon_s: 7200'
    holder a --time 3h
    is_running "$id_a"
    holder next --time 1h
    has "far" "$(berth explain "$id_next" --json)" '"firm":false,"latest_start":null'
    has "in words" "$(berth explain "$id_next")" 'expected '
    printf '%s\n' 'order: queue' 'reservation_horizon_s: 14400' >settings.yaml
    kill -HUP "$(daemon_pid)"
    "$AWAIT" until "$LIMIT" "berth explain $id_next --json" jobs.0.firm true
    let_go a
    is_running "$id_next"
    let_go next
}

@test "a limit that is set later takes a promise back, and the event says so" {
    with_settings 2 'reservation_horizon_s: 0'
    holder a --time 1h
    holder b --time 2h
    is_running "$id_b"
    holder wide --gpus 2 --time 5h
    has "a time" "$(latest "$id_wide")" '^[0-9.]+$'
    printf '%s\n' 'order: queue' 'reservation_horizon_s: 0' 'user_max_running: 2' >settings.yaml
    kill -HUP "$(daemon_pid)"
    wait_for_event kind=delayed "job=$id_wide" >/dev/null
    has "the event" "$(berth events --kind delayed)" 'a limit that was set since may hold the job back'
    has "no promise" "$(berth explain "$id_wide" --json)" '"firm":false,"latest_start":null'
    let_go a
    let_go b
    is_running "$id_wide"
    let_go wide
}

# This many short jobs for one GPU each, from a file of their own, with these attributes and
# this command: `stream 12 [time=1] 'sleep 0.6'`. The last one's id is in $last.
stream()
{
    local i
    for i in $(seq "$1"); do echo "$2 $3 # $i"; done >"stream.$1"
    berth run --detach "stream.$1"
    last=$(berth queue --json | json jobs.-1.id)
}

# A promised start happens at its time, before the stream continues: a busy machine is late, so
# jobs that passed it after that moment are counted. Each of the four GPUs may have had one
# that was decided before, and one more while the clock turned.
starts_in_time()
{
    local past
    wait_for_event kind=started "job=$1" >/dev/null
    is 'the end of the stream' "$(job_field "$last" state)" PENDING
    past=$(berth events --kind started | python3 -c '
import json, sys
job, at_us = map(int, sys.argv[1:])
starts = [json.loads(line) for line in sys.stdin]
seq = next(s["seq"] for s in starts if s["job"] == job)
print(sum(s["at_us"] > at_us and s["seq"] < seq for s in starts))' "$1" "$2")
    [ "$past" -le 8 ] || fail_with "$past jobs were let past after $2"
    berth cancel --all
}

@test "a stream of small jobs with limits: a job that needs every GPU starts when promised, though the daemon dies" {
    local promised
    with_settings 4
    # Four that end on request, or at their limit, so that even a slow machine has time to
    # query the promise.
    stream 4 '[time=60]' 'until [ -e enough ]; do sleep 0.05; done'
    holder wide --gpus 4 --time 10
    promised=$(berth explain "$id_wide" --json | json jobs.0.expected_start.unix)
    # More than end before that.
    stream 500 '[time=1]' 'sleep 0.6'
    kill_daemon
    with_settings 4
    touch enough
    starts_in_time "$id_wide" "$(awk "BEGIN { printf \"%.0f\", $promised * 1e6 }")"
}

@test "a stream of small jobs without limits: a job that needs every GPU starts after the patience and the end of what ran then, though the daemon dies" {
    local submitted
    with_settings 4 'patience_s: 1'
    stream 12 '' 'sleep 0.6'
    holder wide --gpus 4
    submitted=$(wait_for_event kind=submitted "job=$id_wide" | json at_us)
    stream 150 '' 'sleep 0.6'
    kill_daemon
    with_settings 4 'patience_s: 1'
    starts_in_time "$id_wide" $((submitted + 1000000))
}
