#!/usr/bin/env bats
# Records of ended jobs, and the queue as a list that users sort and watch.

load lib

# Two on GPUs, one without, one that never ran.
some_past()
{
    start_daemon 2
    berth submit --vram 8G -t 1h -W -- true
    berth submit --gpus 2 -W -- true
    berth submit --gpus 0 -W -- sh -c 'exit 3' || true
    berth submit --hold -- true
    berth cancel 4
    wait_for_event kind=ended job=4
}

@test "history shows ended jobs, and nothing else" {
    some_past
    berth submit --hold -- true
    try berth history
    is status "$status" 0
    is lines "$(wc -l <<<"$out")" 5
    has table "$out" '^ *1  COMPLETED  0 .* true$'
    has table "$out" '^ *3  FAILED .* exit 3 '
    has_not table "$out" '^ *5 '
    is newest "$(berth history -n 2 --json | json jobs.1.id)" 4
    is ids "$(berth history -o id,state --sort -id | awk 'NR > 1 {printf "%s ", $1}')" '4 3 2 1 '
    is states "$(berth history 1-2 -o state | sort -u | tr '\n' ' ')" 'COMPLETED STATE '
    try berth history --csv --json
    is status "$status" 2
}

@test "history is a workload that simulate replays" {
    some_past
    try berth history --csv
    is status "$status" 0
    has words "$err" '2 jobs without a GPU, or that never ran, left out'
    is head "$(head -1 <<<"$out")" 'job_id,arrival_s,duration_s,est_s,gpus,vram_mib,user'
    has shared "$out" "^1,0,[0-9]{1,3},3600,1,8192,$(id -un)\$"
    has whole "$out" "^2,[0-9]+,([0-9]{1,3}),\1,2,24064,$(id -un)\$"
    is lines "$(wc -l <<<"$out")" 3
    berth history --csv >past.csv
    try berth simulate past.csv --gpus 2x24G --json
    is status "$status" 0
    is jobs "$(json jobs <<<"$out")" 2
}

@test "lines of a simulated jobs file run as long as their commands did" {
    start_daemon 1
    printf '[vram=8G] true\n[vram=8G time=1h] sleep 0.1\n[vram=8G time=2h] never ran\n' >jobs.txt
    berth submit --vram 8G -W -- sh -c 'true'
    head -2 jobs.txt >past.txt
    berth run past.txt >/dev/null
    try berth simulate jobs.txt --gpus 1x80G --history --dump schedule
    is status "$status" 0
    has schedule "$(tr '\n' ' ' <schedule)" '^1,0,[0-9]{1,3},0 2,0,[0-9]{1,3},0 3,0,7200,0 $'
    try berth simulate jobs.txt --gpus 1x80G
    is status "$status" 2
    has words "$err" 'jobs.txt:1:1: the run time is unknown'
}

@test "the queue is sorted by the given column, and a wrong column is named" {
    start_daemon 1
    for name in b c a; do
        berth submit --hold -J $name -- true
    done
    is names "$(berth queue -o name -s name | tr '\n' ' ')" 'NAME a b c '
    is ids "$(berth queue -o id -s -id | awk 'NR > 1' | tr -d ' \n')" 321
    is ids "$(berth queue -o id -s -name | awk 'NR > 1' | tr -d ' \n')" 213
    try berth queue -s nme
    is status "$status" 2
    has words "$err" "did you mean 'name'"
}

@test "queue --watch redraws when something happens" {
    start_daemon 1
    mkfifo gate
    background watch berth queue --watch
    wait_for_output watch 'no jobs'
    berth submit --gpus 0 -J first -- sh -c 'read line <gate'
    wait_for_output watch 'RUNNING.*first'
    berth submit --hold -J second -- true
    wait_for_output watch 'HELD.*second'
    timeout "$LIMIT" bash -c 'echo go >gate'
}

@test "queue --watch into a pipe ends once its reader has gone" {
    start_daemon 1
    background watch bash -c 'berth queue --watch | head -n 1; echo "${PIPESTATUS[0]} has ended"'
    wait_for_output watch 'has ended'
    finish watch
    has said "$out" 'no jobs'
}

@test "queue, show and history show arrays, shares, tags and dependencies" {
    start_daemon 1
    berth submit --vram 1G -J sweep --tag a,b --array 0-5%2 -- sleep 1000
    wait_until_running 2
    wait_until_running 3
    has queue "$(berth queue)" '^ *1_\[2-5%2\]  PENDING .*ArrayLimit'
    has queue "$(berth queue)" '^ *1_0  RUNNING '
    has show "$(berth show 1)" '^job 1_\[2-5%2\]  PENDING'
    has show "$(berth show 1)" '^  tasks +6: 4 pending, 2 running$'
    has show "$(berth show 1)" '^  tags +a,b$'
    berth submit --gpus 0.5 --after-any 1 -t 1h --signal USR2@60 --hold -- true
    has show "$(berth show @)" '^  asks +0.5 of a GPU$'
    has show "$(berth show @)" '^  after +1 any$'
    has show "$(berth show @)" '^  time limit +1h00m, USR2 1m00s before$'
    is columns "$(berth queue @ -o share,after | tail -1 | xargs)" '0.5 1 any'
    berth cancel 1
    wait_for_event kind=ended job=1
    is csv "$(berth history --csv 2>"$ROOT/csv.err" | wc -l)" 3
    has_not words "$(cat "$ROOT/csv.err")" 'left out'
}
