#!/usr/bin/env bats
# Jobs that wait for other jobs or for a time; jobs that must not run twice, or are requested
# again.

load lib

case_setup()
{
    mkfifo gate
}

open_gate()
{
    timeout "$LIMIT" bash -c 'echo go >gate' || fail_with 'no job has come to the gate'
}

# A job at the gate, which exits with this status.
gated()
{
    berth submit --gpus 0 "${@:2}" -- sh -c "read line <gate; exit $1"
}

@test "after success, after any end, after failure: each dependent job starts, or never does" {
    start_daemon 1
    gated 0
    wait_for_event kind=started job=1
    berth submit --gpus 0 --after 1 -- true
    berth submit --gpus 0 --after-any 1 -- true
    berth submit --gpus 0 --after-failed 1 -- true
    is reason "$(job_field 2 reason)" Dependency
    has explain "$(job_field 2 explain)" 'job 1'
    open_gate
    wait_for_event kind=ended job=2 state=COMPLETED
    wait_for_event kind=ended job=3 state=COMPLETED
    wait_for_event kind=ended job=4 state=CANCELLED
    has text "$(job_field 4 text)" 'dependency: job 1 ended COMPLETED'
    gated 3
    wait_for_event kind=started job=5
    berth submit --gpus 0 --after 5 -- true
    berth submit --gpus 0 --after-any 5 -- true
    berth submit --gpus 0 --after-failed 5 -- true
    open_gate
    wait_for_event kind=ended job=6 state=CANCELLED
    is text "$(job_field 6 text)" 'dependency: job 5 ended FAILED'
    wait_for_event kind=ended job=7 state=COMPLETED
    wait_for_event kind=ended job=8 state=COMPLETED
}

@test "a chain falls as a whole, also when its head is cancelled" {
    start_daemon 1
    gated 0
    local id
    for id in 1 2 3; do berth submit --gpus 0 --after "$id" -- true; done
    berth cancel 1
    wait_for_event kind=ended job=4 state=CANCELLED
    is text "$(job_field 4 text)" 'dependency: job 3 ended CANCELLED'
    try berth wait 4
    is 'exit status' "$status" 130
}

@test "a name means the caller's newest job; unknown or impossible dependencies are refused" {
    start_daemon 1
    berth submit --gpus 0 --name prep -- false
    wait_for_event kind=ended job=1
    gated 0 --name prep
    berth submit --gpus 0 --after prep -- true
    is after "$(job_field 3 after.0.job)" 2
    try berth submit --after nobody -- true
    is status "$status" 6
    has err "$err" "'nobody'.*none of your jobs"
    try berth submit --after 99 -- true
    is status "$status" 6
    has err "$err" 'job 99, which does not exist'
    try berth submit --after 1 -- true
    is status "$status" 6
    has err "$err" 'never start: dependency: job 1 ended FAILED'
    open_gate
    wait_for_event kind=ended job=3 state=COMPLETED
}

@test "a jobs file: lines wait for lines by name, before and behind; a circle is refused" {
    printf '%s\n' '[name=last after=first] echo last' '[name=first] read line <gate' \
        '[after=first gpus=0] echo too' >jobs.txt
    follow_file 2 jobs.txt
    wait_for_event kind=started job=2
    is reason "$(job_field 1 reason)" Dependency
    open_gate
    finish run
    is status "$status" 0
    [ "$(seq_of kind=ended job=2)" -lt "$(seq_of kind=started job=1)" ]
    printf '%s\n' '[name=a after=b] true' '[name=b after=a] true' >circle.txt
    try berth run circle.txt
    is status "$status" 6
    has err "$err" '^berth: circle.txt:2:1: .*line 1.*neither could start'
    printf '%s\n' '[gpus=0 after=first] true' '[unique gpus=0] true' '[unique after=x] true' \
        '[name=x hold] true' '[gpus=2 after=first] true' '[gpus=2] true' >look.txt
    try berth run --dry-run look.txt
    has 'after one that has ended' "$out" '^ +1 +start +cpu'
    has 'the same' "$out" '^ +2 .*be cancelled .*line 1 has the same command'
    has 'after a line' "$out" '^ +3 .*be cancelled .*line 1 has the same command'
    has 'held' "$out" '^ +4 +stay held'
    has 'one that gets the cards' "$out" '^ +5 +start +0,1'
    has 'one that waits for it' "$out" '^ +6 +wait .*held by line 5$'
    printf '%s\n' '[after=nobody] true' >unknown.txt
    try berth run unknown.txt
    is status "$status" 6
    has err "$err" "^berth: unknown.txt:1:1: .*'nobody'"
}

@test "dependent jobs are found again after the daemon was killed" {
    start_daemon 1
    gated 0
    wait_for_event kind=started job=1
    berth submit --gpus 0 --after 1 -- true
    berth submit --gpus 0 --after-failed 2 -- true
    kill_daemon
    start_daemon 1
    is reason "$(job_field 2 reason)" Dependency
    open_gate
    wait_for_event kind=ended job=2 state=COMPLETED
    wait_for_event kind=ended job=3 state=CANCELLED
}

@test "tasks of an array can be waited for, and the whole of it" {
    start_daemon 1
    berth submit --gpus 0 --array 0-1%1 -- sh -c 'read line <gate'
    wait_for_event kind=started array_task=0
    berth submit --gpus 0 --after 1_0 -- true
    berth submit --gpus 0 --after 1 -- true
    open_gate
    wait_for_event kind=ended array_task=0
    wait_for_event kind=started array_task=1
    open_gate
    wait_for_event kind=ended array_task=1
    wait_for_event kind=ended command=true
    try berth wait 1 @
    is status "$status" 0
    [ "$(seq_of kind=ended job=1)" -lt "$(seq_of kind=ended job=4)" ]
}

@test "a job with a begin time does not start before it" {
    start_daemon 1
    berth submit --gpus 0 --begin now+1h -- true
    is reason "$(job_field 1 reason)" BeginTime
    berth submit --gpus 0 --begin "$(date -d '+10 seconds' +%Y-%m-%dT%H:%M:%S)" -- true
    wait_for_event kind=ended job=2 state=COMPLETED
    local begin started
    begin=$(job_field 2 begin.unix)
    started=$(job_field 2 started.unix)
    python3 -c "assert $started >= $begin - 0.001, ($started, $begin)"
    is state "$(job_field 1 state)" PENDING
}

@test "a unique job is refused while the same is pending, running or completed" {
    start_daemon 1
    berth submit --gpus 0 -- sh -c 'read line <gate; exit 1'
    wait_for_event kind=started job=1
    try berth submit --gpus 0 --unique -- sh -c 'read line <gate; exit 1'
    is status "$status" 6
    has err "$err" 'job 1 \((STARTING|RUNNING)\) has the same command'
    open_gate
    wait_for_event kind=ended job=1 state=FAILED
    try berth submit --gpus 0 --unique -- sh -c 'exit 0'
    is status "$status" 0
    wait_for_event kind=ended job=2 state=COMPLETED
    try berth submit --gpus 0 --unique -- sh -c 'exit 0'
    is status "$status" 6
    has err "$err" 'job 2 \(COMPLETED\) has the same command'
    mkdir elsewhere
    try berth submit --gpus 0 --unique --chdir elsewhere -- sh -c 'exit 0'
    is 'in another folder' "$status" 0
}

@test "a failed --unique array can be submitted again although some of its tasks succeeded" {
    start_daemon 1
    berth submit --gpus 0 --unique --array 0-1 -- sh -c '[ "$BERTH_ARRAY_TASK_ID" = 0 ]'
    wait_for_event kind=ended job=1 state=FAILED
    try berth submit --gpus 0 --unique --array 0-1 -- sh -c '[ "$BERTH_ARRAY_TASK_ID" = 0 ]'
    is status "$status" 0
}

@test "requeue: a failed job runs again with its number, a running one is stopped first" {
    start_daemon 1
    berth submit --gpus 0 -- sh -c '[ -e fixed ]'
    wait_for_event kind=ended job=1 state=FAILED
    touch fixed
    try berth requeue 1
    is status "$status" 0
    wait_for_event kind=ended job=1 state=COMPLETED
    is attempts "$(job_field 1 attempt)" 2
    berth submit --gpus 0 -- sh -c 'read line <gate'
    wait_for_event kind=started job=2
    berth requeue 2
    wait_for_event kind=requeued job=2
    wait_for_event kind=started job=2 attempt=2
    open_gate
    wait_for_event kind=ended job=2 state=COMPLETED
    berth submit --gpus 0 --hold -- true
    try berth requeue 3
    is status "$status" 1
    has err "$err" 'pending already'
}

@test "requeue: a job waits again for what is requeued with it, whichever has the lower number" {
    start_daemon 1
    printf '%s\n' '[gpus=0 after=prep] true' '[gpus=0 name=prep] read line <gate; exit $(cat status)' >jobs.txt
    echo 1 >status
    berth run --detach jobs.txt
    open_gate
    wait_for_event kind=ended job=1 state=CANCELLED
    echo 0 >status
    berth requeue 1 2
    is "after it failed" "$(job_field 1 state) $(job_field 1 reason)" 'PENDING Dependency'
    open_gate
    wait_for_event kind=ended job=1 state=COMPLETED
    berth requeue 1 2
    is "after it completed" "$(job_field 1 state) $(job_field 1 reason)" 'PENDING Dependency'
    open_gate
    wait_for_event kind=ended job=1 state=COMPLETED attempt=2
}

@test "requeue: a job waits again for the tasks of an array that are requeued with it" {
    start_daemon 1
    berth submit --gpus 0 --hold --array 0-0 -- sh -c 'read line <gate; exit 1'
    berth submit --gpus 0 --after 1 -- true
    berth submit --gpus 0 --after-any 2 -- true
    berth release 1
    open_gate
    wait_for_event kind=ended job=2 state=CANCELLED
    wait_for_event kind=ended job=3 state=COMPLETED
    berth requeue 2 3 1_0
    is "after one task" "$(job_field 2 state) $(job_field 2 reason)" 'PENDING Dependency'
    is "further down" "$(job_field 3 state) $(job_field 3 reason)" 'PENDING Dependency'
    open_gate
    wait_for_event kind=ended job=3 state=COMPLETED attempt=2
}

@test "requeue: a job has its own grace again after it was cancelled with another one" {
    start_daemon 1
    berth submit --gpus 0 --grace 11s -- sh -c 'trap "" TERM; echo deaf; while :; do read line <gate || :; done'
    "$AWAIT" prints "$LIMIT" "berth logs 1" '^deaf'
    berth cancel 1 --grace 0.1s
    wait_for_event kind=ended job=1 state=CANCELLED
    berth requeue 1
    is grace "$(job_field 1 grace_ms)" 11000
    berth cancel 1 --grace 0.1s
}

@test "requeue: what a job ran after holds it up no longer once it is deleted from the history" {
    mkdir -p "$BERTH_DIR"
    echo 'keep_jobs: 3' >"$BERTH_DIR/config.yaml"
    start_daemon 1
    gated 3
    wait_for_event kind=started job=1
    berth submit --gpus 0 --after-failed 1 -- true
    berth submit --gpus 0 --after 1 -- true
    berth submit --gpus 0 --after 2 --array 0-0 -- true
    open_gate
    wait_for_event kind=ended job=3 state=CANCELLED
    wait_for_event kind=ended job=4 state=COMPLETED
    # The ones that the others ran after.
    "$AWAIT" prints "$LIMIT" 'berth show 1 >/dev/null 2>&1; echo $?' '^3$'
    "$AWAIT" prints "$LIMIT" 'berth show 2 >/dev/null 2>&1; echo $?' '^3$'
    berth requeue 3
    wait_for_event kind=ended job=3 state=COMPLETED
    berth requeue 4_0
    wait_for_event kind=ended job=5 state=COMPLETED attempt=2
}

@test "a requeue that the daemon's death interrupted is completed" {
    start_daemon 1
    berth submit --gpus 0 --grace 1h -- sh -c 'trap "" TERM; echo deaf; read line <gate'
    "$AWAIT" prints "$LIMIT" "berth logs 1" '^deaf'
    berth requeue 1
    kill_daemon
    start_daemon 1
    open_gate
    wait_for_event kind=started job=1 attempt=2
    open_gate
    wait_for_event kind=ended job=1 state=COMPLETED
}

@test "a preemptible job makes way for one of higher priority and runs again in its place" {
    echo 'order: queue' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 1 --config settings.yaml
    berth submit --preemptible -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    berth submit -- true
    berth submit --priority 10 -- true
    wait_for_event kind=ended job=3 state=COMPLETED
    wait_for_event kind=preempted job=1
    wait_for_event kind=started job=1 attempt=2
    is 'second in line' "$(job_field 2 state)" PENDING
    open_gate
    wait_for_event kind=ended job=2 state=COMPLETED
    is state "$(job_field 1 state)" COMPLETED
}

@test "at its time limit a job goes to the end of its line, up to --max-requeues times" {
    start_daemon 1
    berth submit --gpus 1 --time 1s --on-timeout requeue --max-requeues 1 -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    berth submit -- true
    wait_for_event kind=started job=1 attempt=2
    wait_for_event kind=ended job=2 state=COMPLETED
    wait_for_event kind=ended job=1 state=TIMEOUT
    wait_for_event kind=requeued job=1 attempt=1 allowed=2
    is requeues "$(job_field 1 requeues)" 1
}

@test "tags and priority" {
    start_daemon 1
    gated 0 --gpus 1 --tag night
    wait_for_event kind=started job=1
    berth submit --tag night,v2 -- true
    berth submit -- true
    is tagged "$(berth queue tag:night --json | json jobs.1.id)" 2
    berth priority 3 7
    is priority "$(job_field 3 priority)" 7
    open_gate
    wait_for_event kind=ended job=2
    [ "$(seq_of kind=started job=3)" -lt "$(seq_of kind=started job=2)" ]
    try berth priority 1 3
    is status "$status" 1
    has err "$err" 'job 1 has ended'
}

@test "singletons of one name run one at a time in their order, beside those of other names; an array's tasks too" {
    start_daemon 2
    gated 0 -J one --singleton
    wait_for_event kind=started job=1
    berth submit --gpus 0 -J one --singleton -- true
    berth submit --gpus 0 -J one --singleton --array 0-1 -- sh -c 'echo $BERTH_ARRAY_TASK_ID >>ran'
    berth submit --gpus 0 -J two --singleton --wait -- true
    is "reason" "$(job_field 2 reason)" Dependency
    has "explain" "$(job_field 2 explain)" 'waits for job 1 to end, which has the same name'
    has "show" "$(berth show 2)" 'singleton'
    stop_daemon
    start_daemon 2
    is "state after a restart" "$(job_field 2 state)" PENDING
    open_gate
    wait_for_event kind=ended job=3
    is "order of the tasks" "$(tr '\n' ' ' <ran)" "0 1 "
    is "end of the one before" "$(job_field 2 state)" COMPLETED
    try berth submit --gpus 0 --singleton -- true
    is "status without a name" "$status" 2
    has "words" "$err" 'has no name; add a name'
}

@test "what would wait for a later singleton of its own name is refused, in a jobs file and when a line changes" {
    start_daemon 2
    printf '%s\n' '[gpus=0 name=one after=over] true' '[gpus=0 name=one singleton] true' '[gpus=0 name=over after=one] true' >jobs.txt
    try berth run jobs.txt
    is "status" "$status" 6
    has "words" "$err" '^berth: jobs.txt:2:1: .*line 1, which waits for this one: neither could start .singletons of one name'
    printf '%s\n' '[gpus=0 name=one hold] true' '[gpus=0 name=one singleton hold] echo second' >jobs.txt
    berth run --detach jobs.txt
    is "state" "$(job_field 2 state)" HELD
    printf '%s\n' '[gpus=0 name=one hold after=2] true' '[gpus=0 name=one singleton hold] echo second' >jobs.txt
    try berth run --detach jobs.txt
    is "state" "$(job_field 1 state)" CANCELLED
    has "explain" "$(berth explain 1)" 'it would wait for job 2, which waits for it: singletons of one name run in the order'
}

@test "a Slurm script's dependency singleton, and its memory for each core, mean what they mean there" {
    start_daemon 2
    gated 0 -J chain
    wait_for_event kind=started job=1
    cat >chain.sh <<'END'
#!/bin/bash
#SBATCH --job-name=chain
#SBATCH --dependency=singleton
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=64M
echo "$SLURM_MEM_PER_CPU ${SLURM_MEM_PER_NODE-none}"
END
    berth submit -o out.txt chain.sh
    is "reason" "$(job_field 2 reason)" Dependency
    open_gate
    berth wait 2
    is "what it saw" "$(cat out.txt)" "64 none"
}
