#!/usr/bin/env bats
# Reports on the past: the sums match the database, and the text that users see.

load lib

database()
{
    echo "$BERTH_DIR/state/berth.db"
}

# A few real jobs, with runs on each of two GPUs, and N synthetic ones like them.
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
    # The synthetic jobs belong to root and three others.
    is words "$out$err" "2004 jobs, $((4 + (UID != 0))) users, 27 commands"
    # Also for part of the time, and for one user.
    local since
    since=$(("$(date +%s)" - 7 * 86400))
    report "{\"since_us\": ${since}000000, \"commands\": 300, \"bins\": 7}"
    try "$E2E/past.py" check "$(database)" report.json
    has words "$out$err" "^4[0-9]{2} jobs, $((4 + (UID != 0))) users"
    report '{"user": "daemon"}'
    is users "$(json users <report.json | tr -d '[:space:]' | grep -o '"user":' | wc -l)" 1
    is user "$(json users.0.uid <report.json)" 1
    is same "$(json total.gpu_ms <report.json)" "$(json users.0.gpu_ms <report.json)"
}

@test "a report without jobs is valid, and invalid parameters are refused" {
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
    # A page ends early if the search for its jobs takes long: the rest is on the next.
    pages()
    {
        local before=4000 rows found=
        while [ "$before" != null ]; do
            rows=$(page "$1, \"before_id\": $before")
            before=$(json before_id <<<"$rows")
            found="$(json rows <<<"$rows" | tr -d '[] \n' | tr , ' ') $found"
        done
        xargs <<<"$found"
    }
    is newest "$(page '"limit": 2')" '{"rows":[[3003],[3004]],"before_id":3003}'
    is older "$(page '"limit": 2, "before_id": 3003')" '{"rows":[[3001],[3002]],"before_id":3001}'
    is last "$(page '"before_id": 3')" '{"rows":[[1],[2]],"before_id":null}'
    is search "$(pages '"limit": 9, "search": "SIMJOB"')" '2 4'
    is state "$(page '"before_id": 5, "state": "failed"')" '{"rows":[[3]],"before_id":null}'
    is since "$(pages '"limit": 9, "since_us": 9000000000000000')" ''
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
    has refusal "$err" 'is not a state of ended jobs; these are COMPLETED, .*OUT_OF_MEMORY, PREEMPTED, INFEASIBLE, LOST$'
}

@test "history filters by time, state, name and text, over many pages" {
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
    has words "$err" 'not a time; write 2h or 7d'
    try berth history --state running
    is status "$status" 2
}

@test "berth report shows each user's use, and what would help" {
    some_past 2000
    try berth report --since all
    is status "$status" 0
    has summary "$out" '^30d00h, .*: 2004 jobs ended, [0-9]+ % completed; [0-9]+\.[0-9]{2} GPU-hours; GPUs busy [0-9]+ %$'
    has gpus "$out" '^  1 +[0-9]+ % +[0-9]+ +\|.{64}\|$'
    has users "$out" '^bin +[0-9]+ +[0-9]+ +[0-9]+\.[0-9]{2} '
    has commands "$out" ' 12\.0 GiB +10\.8 GiB  python train.py --config vae.yaml --seed 0$'
    has waits "$out" '^under 10 min +[0-9]+ '
    has causes "$out" ' time limit reached$'
    has advice "$out" '^- 2 jobs of this command peaked at 2\.9 GiB and requested 8\.0 GiB: request 3300M$|^- [0-9]+ jobs of this command used a whole GPU'
    has 'the usual commands' "$out" '^and [0-9]+ more; --commands N lists up to 300$'
    is 'lines of the usual table' "$(sed -n '/^Commands/,/^and /p' <<<"$out" | wc -l)" 15
    is 'lines with --commands 14' "$(berth report --since all --commands 14 | sed -n '/^Commands/,/^and /p' | wc -l)" 17
    is json "$(berth report --since all --json | json total.jobs)" 2004
    [ "$(berth report --since 7d --json | json total.jobs)" -lt 600 ]
    is user "$(berth report --user bin --json | json users.0.user)" bin
    try berth report nonsense
    is status "$status" 2
    try berth report --html no/such/folder.html
    is status "$status" 1
    has words "$err" '^berth: --html no/such/folder.html: '
}

@test "a report names tasks as people do, and has one form for hours and for what is not there" {
    start_daemon 1
    berth submit -G 0 --array 7 -W -- sh -c 'exit 3' || true
    berth submit --vram 8G --hold -- sleep 1
    berth cancel @
    try berth report
    has task "$out" '^ +1 +0\.00 +1_7 .* exit 3$'
    has cancelled "$out" '^.* 1 +0 +0\.00 +n/a +n/a +- +- +sleep 1$'
    has_not 'another form' "$out" ' 0\.0 '
    is json "$(berth report --json | jq -r '.causes[] | select(.cause == "exit").newest_name')" 1_7
}

@test "a better VRAM request is suggested right after a run" {
    start_daemon 1
    berth submit --vram 8G -W -- "$E2E/seen" 3000
    has less "$(berth report)" '^- 1 job of this command peaked at 2\.9 GiB and requested 8\.0 GiB: request 3300M$'
    berth submit --vram 1G -W -- "$E2E/seen" 5000
    has more "$(berth report)" '^- 1 job of this command used up to 4\.9 GiB and requested 1\.0 GiB, so other jobs on its GPUs may run out of memory: request 5\.4G$'
    berth submit -W -- "$E2E/seen" 2000
    has whole "$(berth report)" '^- 1 job of this command used a whole GPU and peaked at 2\.0 GiB.* request 2200M$'
    berth submit --vram 2G -W -- sh -c 'echo CUDA out of memory; exit 1' || true
    has oom "$(berth report)" '^- 1 job of this command ended out of memory with 2\.0 GiB: request 2560M$'
}

@test "what a report suggests after an out of memory is what explain suggests" {
    start_daemon 1
    berth submit --vram 2G -W -- sh -c "$E2E/seen 3000; echo CUDA out of memory; exit 1" || true
    has explain "$(berth explain 1)" 'peaked at 2\.9 GiB of 2\.0 GiB: --vram 3750M or --oom-retries 2'
    has report "$(berth report)" '^- 1 job of this command ended out of memory with 2\.0 GiB and peaked at 2\.9 GiB: request 3750M$'
    berth submit --vram 22G -W -- sh -c 'echo CUDA out of memory; exit 1' || true
    has 'explain of one that no GPU can hold' "$(berth explain 2)" 'a smaller batch, or more GPUs; no GPU here is larger'
    has 'report of it' "$(berth report)" '^- 1 job of this command ended out of memory with 22\.0 GiB: a smaller batch, or more GPUs; the largest GPU here has 24\.0 GiB$'
}

@test "the HTML report is complete, needs no other file, and contains no command as HTML" {
    start_daemon 1
    berth report --html empty.html
    "$E2E/page.py" empty.html
    has empty "$(cat empty.html)" 'No job ended in this period'
    berth submit --hold -- true
    berth cancel @
    berth report --html never.html
    "$E2E/page.py" never.html
    has_not "none of which ran" "$(cat never.html)" 'No job ended|Waits'
    has "none of which ran" "$(cat never.html)" 'Why jobs did not complete.*ancelled'
    rm never.html
    berth submit --vram 8G -W -- sh -c \
        ': "<script>alert(1)</script>" "><img src=x onerror=alert(2)>"; berth simjob --vram 100 --ramp 0 --hold 0.5'
    stop_daemon
    "$E2E/past.py" fill "$(database)" 500
    start_daemon 1
    berth report --since all --html page.html
    "$E2E/page.py" page.html
    has command "$(cat page.html)" '&#60;script&#62;alert\(1\)'
    is again "$(berth report --since all --html - | grep -c '</html>')" 1
    is left "$(ls | tr '\n' ' ')" 'empty.html page.html '
}
