#!/usr/bin/env bats
# Reports on the past: that the sums are those of the database, and what people see of them.

load lib

database()
{
    echo "$BERTH_DIR/state/berth.db"
}

# A few real jobs, with runs on each of two cards, and N more like them made up.
some_past()
{
    start_daemon 2
    berth submit --gpus 2 -W -- true
    berth submit --gpu-ids 1 --vram 8G -W -- berth simjob --vram 3000 --hold 0.2
    berth submit --gpus 0 -W -- sh -c 'exit 3' || true
    berth submit --gpu-ids 0 --vram 8G -W -- berth simjob --vram 3000 --hold 0.2
    if [ "${1:-0}" -gt 0 ]; then
        stop_daemon
        "$E2E/past.py" fill "$(database)" "$1"
        start_daemon 2
    fi
}

report()
{
    "$E2E/ask.py" report "$1" >report.json
}

@test "the sums of a report are those of the database" {
    some_past 2000
    report '{"commands": 300}'
    try "$E2E/past.py" check "$(database)" report.json
    is words "$out$err" '2004 jobs, 4 users, 27 commands'
    # Of a part of the time too, and of one user.
    local since
    since=$(("$(date +%s)" - 7 * 86400))
    report "{\"since_us\": ${since}000000, \"commands\": 300, \"bins\": 7}"
    try "$E2E/past.py" check "$(database)" report.json
    has words "$out$err" '^4[0-9]{2} jobs, 4 users'
    report '{"user": "daemon"}'
    is users "$(json users <report.json | tr -d '[:space:]' | grep -o '"user":' | wc -l)" 1
    is user "$(json users.0.uid <report.json)" 1
    is same "$(json total.gpu_ms <report.json)" "$(json users.0.gpu_ms <report.json)"
}

@test "a report of nothing is one, and nonsense is refused" {
    start_daemon 1
    report '{}'
    is jobs "$(json total.jobs <report.json)" 0
    is mean "$(json total.wait_mean_ms <report.json)" null
    is cards "$(json gpus.0.busy <report.json)" 0
    try "$E2E/ask.py" report '{"by": ["users"]}'
    has refusal "$err" 'not "users"'
    try "$E2E/ask.py" report '{"since_us": 9000000000000000}'
    has refusal "$err" 'in the future'
}

@test "the history is paged, filtered and searched" {
    some_past 3000
    page()
    {
        "$E2E/ask.py" jobs "{\"ended\": true, \"fields\": [\"id\"], $1}" | tr -d ' \n'
    }
    is newest "$(page '"limit": 2')" '{"rows":[[3003],[3004]],"before_id":3003}'
    is older "$(page '"limit": 2, "before_id": 3003')" '{"rows":[[3001],[3002]],"before_id":3001}'
    is last "$(page '"before_id": 3')" '{"rows":[[1],[2]],"before_id":null}'
    is search "$(page '"limit": 9, "search": "SIMJOB"')" '{"rows":[[2],[4]],"before_id":null}'
    is state "$(page '"before_id": 5, "state": "failed"')" '{"rows":[[3]],"before_id":null}'
    is since "$(page '"limit": 9, "since_us": 9000000000000000')" '{"rows":[],"before_id":null}'
    # Every failed job is on exactly one page.
    local before=4000 seen=0 rows
    while [ "$before" != null ]; do
        rows=$("$E2E/ask.py" jobs "{\"ended\": true, \"fields\": [\"id\"], \"limit\": 50,
            \"state\": [\"FAILED\", \"TIMEOUT\"], \"before_id\": $before}")
        before=$(json before_id <<<"$rows")
        seen=$((seen + $(json rows <<<"$rows" | tr -cd '[' | wc -c) - 1))
    done
    report '{"by": ["user"]}'
    is seen "$seen" "$(($(json total.states.FAILED <report.json) + \
        $(json total.states.TIMEOUT <report.json)))"
    try "$E2E/ask.py" jobs '{"ended": true, "limit": 1, "state": "RUNNING"}'
    has refusal "$err" 'is no state in which a job ends'
}

@test "history chooses by time, state, name and text, over many pages" {
    some_past 3000
    is all "$(berth history --all -o id | wc -l)" 3005
    is limited "$(berth history -n 2500 -o id | wc -l)" 2501
    is failed "$(berth history --state failed -n 1 --until 1h -o state | tail -1 | xargs)" FAILED
    is search "$(berth history --search 'SIMJOB' -o id | xargs)" 'ID 2 4'
    berth submit --gpus 0 -J evening -W -- true
    is name "$(berth history --name 'eve*' -o name | xargs)" 'NAME evening'
    local since=@$(date -d '-7 days' +%s)
    report "{\"since_us\": ${since#@}000000, \"by\": [\"user\"]}"
    is week "$(berth history --since "$since" -o id | wc -l)" \
        "$(($(json total.jobs <report.json) + 1))"
    is why "$(berth history 3 -o wait,why | tail -1 | awk '{print $2, $3}')" 'exit 3'
    is none "$(berth history --since now -o id | wc -l)" 1
    try berth history --since soon
    is status "$status" 2
    has words "$err" 'no moment; write 2h or 7d'
    try berth history --state running
    is status "$status" 2
}
