#!/usr/bin/env bats
# Listings: `queue`, `gpus`, `status`, their order, their columns, and watching them.

load lib
load screen

@test "the queue shows pending jobs in the order of their turns, and held jobs last" {
    start_daemon 1
    berth submit -- sleep 1000 >/dev/null
    wait_for_event kind=started job=1 >/dev/null
    berth submit --priority 9 --begin +1d -- true >/dev/null
    berth submit --priority 9 --hold -- true >/dev/null
    berth submit -- true >/dev/null
    berth submit --priority 5 -- true >/dev/null
    is order "$(berth queue --format id | tail -n +2 | tr -d ' ' | tr '\n' ,)" 1,5,4,2,3,
    try berth queue @ --format id
    is named "$status $(tail -1 <<<"$out" | tr -d ' ')" '0 5'
}

@test "columns have a width, rows are sorted by several columns, and a wrong name says which there are" {
    start_daemon 1
    berth submit --priority 1 -- sleep 1000 1000 1000 >/dev/null
    wait_for_event kind=started job=1 >/dev/null
    berth submit --priority 2 -- true >/dev/null
    berth submit --priority 1 -- true >/dev/null
    try berth queue --format id,command:10 1
    has cut "$out" '^ *1  sleep 1\.\.\.$'
    is sorted "$(berth queue --format id --sort -priority,-id | tail -n +2 | tr -d ' ' | tr '\n' ,)" 2,3,1,
    try berth queue --format id,prio
    is status "$status" 2
    has words "$err" "unknown column 'prio'.*; the columns are: id user .* command"
    try berth queue --format id:x
    has width "$status $err" '^2 .*width of a column'
    try berth queue --sort nothing
    has sort "$status $err" "^2 .*unknown column 'nothing'"
}

# The words of a list in a verb's help or manual page, one per line, from the line with the
# first word on.
words_from()
{
    sed -n "/$1/,/^ *$/p" | tr -s ' .,' '\n' | sort -u
}

@test "help and manual page name every column, state and way to select jobs" {
    local page=$BATS_TEST_DIRNAME/../../man/berth.1 verb column
    start_daemon 1
    for verb in queue gpus; do
        try berth "$verb" -o nonsense
        for column in ${err##*are: }; do
            has "help of $verb" "$(berth "$verb" --help | words_from Columns:)" "^$column$"
            has "manual page of $verb" "$(grep '^\.Cm' "$page" | tr -s ' ' '\n')" "^$column$"
        done
    done
    try berth queue -t nonsense
    local states=${err##*states are }
    for state in ${states//,/}; do
        has 'states in the manual page' "$(sed -n '/^\.Sh STATES/,/^\.Sh ENV/p' "$page")" "^\.(It )?Li $state\b"
    done
    try berth queue state:nonsense
    has 'the same ones by a selector' "$err" "the states are $states$"
    for verb in queue show explain logs wait cancel hold release history priority requeue signal events attach; do
        has "selectors in the help of $verb" "$(berth "$verb" --help)" '^SEL: 12 .*12_3 .*12_\[3-5\].* user:u .*tag:t  all$'
    done
}

# The titles of a table, separated by single spaces.
titles()
{
    "$@" | head -1 | tr -s ' ' | sed 's/^ //'
}

@test "a column asked for by name is shown, also where it is empty in every row" {
    start_daemon 1
    is 'queue without jobs' "$(titles berth queue -o id,reason,command)" 'ID WHY COMMAND'
    berth submit --hold -G 0 -- true >/dev/null
    is queue "$(titles berth queue -o id,time,expected,promised,wait,verdict,util,command)" \
        'ID TIME EXPECTED PROMISED WAIT VERDICT LOAD COMMAND'
    is 'the row' "$(berth queue -H -o id,time,verdict,util,command | tr -s ' ' | sed 's/^ //')" '1 - - - true'
    has_not 'the usual columns' "$(titles berth queue)" EXPECTED
    is gpus "$(titles berth gpus -o index,share,temp,mps)" 'GPU SHARE TEMP MPS'
    has 'the bar, also in a pipe' "$(berth gpus -o index,bar)" '^ *0  [.#=]{12}$'
    has_not 'the usual columns of GPUs' "$(titles berth gpus)" SHARE
    berth cancel 1 >/dev/null
    is history "$(titles berth history -o id,wait,verdict,util,exit)" 'ID WAIT VERDICT LOAD EXIT'
}

@test "a GPU lists its holders and how much each holds" {
    start_daemon 1
    berth submit --array 3 --vram 4G -- berth simjob --vram 3000 --hold 1000 >/dev/null
    wait_for_event kind=started >/dev/null
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.holds.0.now_mib 3000
    local gpus
    gpus=$(berth gpus --json)
    is demand "$(json gpus.0.holds.0.vram_mib <<<"$gpus")" 4096
    is task "$(json gpus.0.holds.0.array_job <<<"$gpus")_$(json gpus.0.holds.0.array_task <<<"$gpus")" 1_3
    is user "$(json gpus.0.holds.0.user <<<"$gpus")" "$(id -un)"
}

@test "a job that uses more than it requested is named below the table, and in top" {
    start_daemon 1
    berth submit --vram 4G -- berth simjob --vram 5200 --ramp 0 --hold 1000 >/dev/null
    wait_for_event kind=exceeds job=1 >/dev/null
    has gpus "$(berth gpus)" '^gpu 0: job 1 uses 5\.1 GiB and requested 4\.0 GiB: other jobs on this GPU may run out of memory$'
    open_terminal 80 24 berth top
    see '^berth on .* see below '
    see '^gpu 0: job 1 uses 5\.1 GiB and requested 4\.0 GiB: '
}

@test "the queue restricted to states, or to GPUs" {
    start_daemon 2
    berth submit --gpu-ids 0 -- sleep 1000 >/dev/null
    berth submit --gpu-ids 1 -- sleep 1000 >/dev/null
    wait_until_running 1
    wait_until_running 2
    berth submit -- true >/dev/null
    berth submit --hold -- true >/dev/null
    ids() { berth queue --format id "$@" | tail -n +2 | tr -d ' ' | tr '\n' ,; }
    is held "$(ids --state held)" 4,
    is two "$(ids -t pending,held)" 3,4,
    is card "$(ids --gpu 1)" 2,
    is both "$(ids --gpu 0-1 --state running)" 1,2,
    is none "$(ids --gpu 1 --state held)" ''
    is json "$(berth queue --state held --json | json jobs.0.id)" 4
    try berth queue --state sleeping
    has words "$status $err" "^2 .*unknown state 'SLEEPING'; the states are PENDING, HELD, STARTING, RUNNING, COMPLETING, COMPLETED, .*, LOST$"
    try berth queue --gpu x
    has words "$status $err" '^2 .*--gpu'
}

@test "a user or a GPU that does not exist is named where nothing is found" {
    local verb
    start_daemon 2
    for verb in queue history report events; do
        try berth $verb -u nosuchuser
        is "$verb" "$status $err" "0 berth: there is no user 'nosuchuser' on this machine"
    done
    try berth queue -g 0,9
    is queue "$status $err" '0 berth: there is no gpu 9; there are 0-1'
    try berth gpus -g 9
    has gpus "$status $err" '^0 berth: there is no gpu 9; there are 0-1'
    try berth queue -u "$(id -un)" -g 1
    is 'nothing to say' "$status $err" '0 '
    try berth submit --devices 9 -- true
    has device "$status $err" '^6 .*: needs 1 GPU, but gpu 9 does not exist here; there are 0-1$'
    try berth submit --vram 30G -- true
    has units "$err" 'request at most 23\.5 GiB$'
}

@test "a job that is being cancelled says so while it takes its time" {
    start_daemon 1
    mkfifo gate
    berth submit -G 0 --grace 1h -- sh -c 'trap "" TERM; echo ready >ready; read line <gate'
    wait_until_written ready
    berth cancel 1 >/dev/null
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.cancelled_by "$(id -un)"
    has queue "$(berth queue)" '^ *1 +RUNNING .* Cancelled '
    has narrow "$(berth queue -H -o state,note)" '^RUNNING .* Cancelled$'
    echo >gate
    wait_for_event kind=ended job=1 >/dev/null
    has_not ended "$(berth queue --all -H -o state,reason)" Cancelled
}

@test "an array with many tasks to name leaves the columns where they are" {
    start_daemon 1
    berth submit -G 0 --hold --array 1,3,5,7,9,11,13,15,17,19,21 -- true
    has cut "$(berth queue)" '^1_\[1,3,5,7,9,\.\.\. '
    has whole "$(berth queue -H -o id)" '^1_\[1,3,5,7,9,11,13,15,17,19,21\]$'
}

@test "queue -n counts the jobs that match: live ones first, then the newest that have ended" {
    local i
    start_daemon 1
    berth submit -G 0 -W -- false || true
    berth submit -G 0 -W -- false || true
    for i in 1 2 3 4; do berth submit -G 0 -W -- true; done
    for i in 1 2; do berth submit --hold -- true >/dev/null; done
    ids() { berth queue -H -o id "$@" | tr -d ' ' | tr '\n' ,; }
    is failed "$(ids --all -t failed -n 5)" 1,2,
    is 'newest failed' "$(ids --all -t failed -n 1)" 2,
    is both "$(ids --all -n 4)" 5,6,7,8,
    is live "$(ids --all -n 1)" 7,
    is 'failed and held' "$(ids --all -t failed,held -n 3)" 2,7,8,
    is named "$(ids 1-6 -n 2)" 5,6,
    is all "$(ids --all -n 100000000)" 1,2,3,4,5,6,7,8,
}

@test "an order to jobs that have ended says so, although others ended after them" {
    start_daemon 1
    berth submit -G 0 -W --name prep -- true
    berth submit -G 0 -W --name prep -- false || true
    berth submit -G 0 -W --name other -- true
    local words='^1 .*job 2 has ended \(FAILED\)'
    try berth hold name:prep
    has hold "$status $err" "$words"
    try berth release name:prep
    has release "$status $err" "$words"
    try berth priority name:prep 5
    has priority "$status $err" "$words"
    try berth signal name:prep USR1
    has signal "$status $err" "$words"
    try berth hold name:nothing
    has none "$status $err" '^3 .*no job matches name:nothing'
}

@test "watching: redrawn in place, left with q and Ctrl-C, and the terminal is restored" {
    start_daemon 1
    open_terminal 80 24 berth queue --watch
    see '^no jobs'
    berth submit --hold -- true >/dev/null
    see '1  HELD'
    berth pause 0 --reason 'new fan' >/dev/null
    see '^gpu 0: paused .*new fan'
    see_gone 'no jobs'
    press q
    see '^left 0'
    see '^cooked'
    close_terminal
    open_terminal 80 24 berth status --watch=0.2
    see '^jobs +1 held'
    berth release 1 >/dev/null
    see '^jobs +1 pending'
    press C-c
    see '^left 130'
    see '^cooked'
    close_terminal
    open_terminal 80 24 berth gpus -w
    see '^ *0  paused'
    stop_daemon --cancel >/dev/null
    see '^left 4'
    see '^cooked'
    try berth queue --watch=soon
    has words "$status $err" '^2 .*--watch: .*seconds'
    try berth status --watch --json
    is json "$status" 2
}

@test "at 80 columns no line is wrapped, and a command still has room" {
    start_daemon 4x80G
    berth submit --vram 30G --limit 2h -- sleep 1000 >/dev/null
    berth submit --array 0-19%2 --vram 60G -- python train.py --config "$(printf 'x%.0s' $(seq 100))" >"$ROOT/words"
    has words "$(cat "$ROOT/words")" '^job 2 submitted, an array of 20 tasks, 2 at once$'
    berth submit -G 4 -- sleep 1000 >/dev/null
    wait_until_running 1
    open_terminal 80 40 sh -c 'berth gpus; berth; berth queue; berth status'
    see '^left 0'
    has_not wrapped "$(screen)" '^(x|\.\.\.$|GiB)'
    see '^4 GPUs \(Simulated GPU, 80\.0 GiB\)'
    see '^GPU +STATE +USED +TOTAL'
    see 'TIME / WHY +COMMAND'
    see '^ *1  RUNNING .* sleep 1000$'
}

@test "holders of a GPU are shown by the names that people use" {
    start_daemon 1
    berth submit --array 3,5 --vram 9G -- sleep 1000 >/dev/null
    wait_for_event kind=started array_task=5 >/dev/null
    berth submit --vram 10G -- true >/dev/null
    "$AWAIT" until "$LIMIT" "berth explain 4 --json" jobs.0.reason GpuMemory
    has sentence "$(berth explain 4)" 'held by jobs 1_[35] and 1_[35]'
    has table "$(berth gpus)" ' 1_3,1_5$'
    try berth submit --signal USR2 --hold -- true
    has warned "$err" 'a job without a time limit gets no warning'
    try berth submit --signal USR2 --time 1h --hold -- true
    is silent "$err" ''
}

@test "an option that needs a time limit says so without one" {
    start_daemon 1
    try berth submit --on-timeout requeue --hold -- true
    is status "$status" 0
    has requeue "$err" '^berth: --on-timeout: a job without a time limit is never queued again for it; set one with --time'
    try berth submit --max-requeues 5 -t 1h --hold -- true
    has bound "$err" '^berth: --max-requeues: .*only with on-timeout=requeue$'
    try berth submit --on-timeout requeue --max-requeues 5 -t 1h --hold -- true
    is silent "$err" ''
    printf '%s\n' '[hold] true' '[hold on-timeout=requeue] true' '[hold on-timeout=requeue] false' >jobs.txt
    try berth run --detach jobs.txt
    has file "$err" '^berth: jobs.txt:2:1: on-timeout: a job without a time limit .*; set one with time=.*\(and so in other lines\)$'
}

@test "every JSON object has its version" {
    local words verb
    start_daemon 1
    berth submit --gpus 0 -- true >/dev/null
    wait_for_event kind=ended job=1 >/dev/null
    berth submit --hold -- true >/dev/null
    for words in '' queue history gpus status health metrics report version 'daemon status' 'show 1' 'explain 2' \
        'hold 2' 'release 2' 'wait 1' 'pause 0' 'resume 0' 'cancel 2' 'submit --hold'; do
        verb=${words%% [0-9-]*}
        if [ "$words" = 'submit --hold' ]; then set -- -- true; else set --; fi
        # shellcheck disable=SC2086 # words are meant
        is "version of '$verb'" "$(berth $words --json "$@" | json version)" 1
        has "docs of '$verb'" "$(cat "$BATS_TEST_DIRNAME/../../docs/json.md")" "\`${verb:-berth}"
    done
}

@test "a long queue is cut in the overview, and rows come without titles for scripts" {
    local i
    start_daemon 1
    for i in {1..41}; do printf '[gpus=0 hold] true %s\n' $i; done >jobs.txt
    berth run --detach jobs.txt
    has overview "$(berth)" "the first 40; 'berth queue' lists all"
    is rows "$(berth queue --no-header -o id | wc -l)" 41
    is 'the first row' "$(berth queue -H -o id -n 1 | tr -d ' ')" 1
    berth submit -G 0 -W -- true
    is history "$(berth history -H -o state | tr -d ' ')" COMPLETED
}

@test "berth events 3 shows that job's events only, and release says when nothing was held" {
    start_daemon 1
    berth pause 0
    berth submit --gpus 0 -- sleep 600
    wait_until_running 1
    is kinds "$(berth events @ | jq -r .kind | sort -u | paste -sd ' ')" 'started submitted'
    try berth release 1
    is status "$status" 1
    has words "$err" 'job 1 is not held: it is RUNNING'
}

@test "--sim with other GPUs than the running daemon's is refused, with the same ones accepted" {
    start_daemon 2
    try berth submit --sim 4 -G 0 -- true
    is status "$status" 6
    has words "$err" 'has other simulated GPUs \(2\) than --sim 4; omit --sim, stop it'
    echo '[gpus=0] true' >jobs.txt
    try berth run --sim 2x80G jobs.txt
    is 'status with other sizes' "$status" 6
    try berth run --sim 2 jobs.txt
    is 'status with the same' "$status" 0
}
