#!/usr/bin/env bats
# Who starts when, with real processes: room kept for one who needs every card, patience,
# limits, and jobs that make way. Jobs hold their cards until the test lets them go, so what
# starts and what does not follows from rules alone.

load lib

with_settings()
{
    local sim=$1
    shift
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
    start_daemon 2
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
    holder short --time 5
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
    start_daemon 2
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

# So many short jobs for one card each, from a file of their own, each with these attributes and this
# command: `stream 12 [time=1] 'sleep 0.6'`. The last one's id is in $last.
stream()
{
    local i
    for i in $(seq "$1"); do echo "$2 $3 # $i"; done >"stream.$1"
    berth run --detach "stream.$1"
    last=$(berth queue --json | json jobs.-1.id)
}

# What was promised for a moment starts then, before the stream goes on: on a busy machine that takes its
# time, so what is counted is who was let past after that moment. Each of the four cards may have had
# one that was decided on before, and one more while the clock turned.
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
    start_daemon 4
    # Four that end when they are told to, or at their limit: on a slow machine, too, there is time
    # to ask for the promise.
    stream 4 '[time=10]' 'until [ -e enough ]; do sleep 0.05; done'
    holder wide --gpus 4 --time 10
    promised=$(berth explain "$id_wide" --json | json jobs.0.expected_start.unix)
    stream 150 '[time=1]' 'sleep 0.6'
    kill_daemon
    start_daemon 4
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
