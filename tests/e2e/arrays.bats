#!/usr/bin/env bats
# Arrays, with real processes on simulated GPUs: order, concurrency limits, selected tasks,
# ends and their summary, and a daemon that dies in the middle.

load lib

# A gate for each task: two readers of one FIFO would take each other's words.
case_setup()
{
    mkfifo gate. gate.{0..9}
}

AT_GATE='read line <gate.$BERTH_ARRAY_TASK_ID'

# Let these tasks continue, in this order.
open_gates()
{
    local task
    for task in "$@"; do
        timeout "$LIMIT" bash -c "echo go >gate.$task" ||
            fail_with "task $task has not come to its gate"
    done
}

# Print "state of the job that a task became".
task_field()
{
    berth show "$1" --json | json "jobs.0.$2"
}

# Print tasks in the order in which they started.
started_tasks()
{
    events_with kind=started | while read -r event; do json array_task <<<"$event"; done |
        tr '\n' ' '
}

@test "an array is one job; its tasks run in order, know their number, and it ends with the last" {
    start_daemon 1
    try berth submit --array 0-4 --log 'out.%A.%t' -- \
        sh -c 'echo $BERTH_ARRAY_JOB_ID/$BERTH_ARRAY_TASK_ID/$BERTH_ARRAY_TASK_COUNT'
    is status "$status" 0
    has out "$out" '^job 1 '
    try berth wait 1
    is 'exit status' "$status" 0
    is order "$(started_tasks)" '0 1 2 3 4 '
    is output "$(cat out.1.0 out.1.3)" $'1/0/5\n1/3/5'
    is tasks "$(job_field 1 array.ended.COMPLETED)" 5
    is array "$(job_field 3 array_job).$(job_field 3 array_task)" 1.1
}

@test "%N limits how many tasks run at once" {
    start_daemon 4
    berth submit --array 0-5%2 --vram 100 -- sh -c "$AT_GATE"
    wait_until_running 2
    wait_until_running 3
    is waiting "$(job_field 1 array.waiting)" 4
    has 'status' "$(berth status)" '^jobs +2 running, 4 pending$'
    is reason "$(job_field 1 reason)" ArrayLimit
    open_gates 1
    wait_for_event kind=started array_task=2
    is active "$(job_field 1 array.active)" 2
    open_gates 0 2 3 4 5
    wait_for_event kind=ended job=1 state=COMPLETED
    # At every start at most one other task was running.
    timeout "$LIMIT" berth events | python3 -c '
import json, sys
alive = most = 0
for line in sys.stdin:
    e = json.loads(line)
    if "array_task" in e:
        alive += {"started": 1, "ended": -1}.get(e["kind"], 0)
        most = max(most, alive)
assert most == 2, most'
}

@test "an array ends in the gravest state of its tasks, and wait exits with the highest status" {
    start_daemon 2
    berth submit --array 0-3 --vram 100 -- sh -c 'exit $((BERTH_ARRAY_TASK_ID * 3))'
    try berth wait 1
    is 'exit status' "$status" 9
    is state "$(job_field 1 state)" FAILED
    is text "$(job_field 1 text)" 'tasks: 1 COMPLETED, 3 FAILED'
}

@test "one task is cancelled before it starts, others are held and released" {
    start_daemon 1
    berth submit --array 0-5 -- sh -c "$AT_GATE"
    wait_for_event kind=started array_task=0
    try berth cancel 1_3
    is status "$status" 0
    wait_for_event kind=ended array_task=3 state=CANCELLED
    berth hold '1_[1-2]'
    is held "$(task_field 1_1 state)$(task_field 1_2 state)" HELDHELD
    is rest "$(job_field 1 array.pending)" 4-5
    open_gates 0
    wait_for_event kind=started array_task=4
    berth release '1_[1-2]'
    open_gates 4 5 1 2
    wait_for_event kind=ended job=1
    is order "$(started_tasks)" '0 4 5 1 2 '
    is state "$(job_field 1 state)" CANCELLED
    is text "$(job_field 1 text)" 'tasks: 5 COMPLETED, 1 CANCELLED'
    try berth cancel 1_9
    is 'no such task' "$status" 3
    has err "$err" 'no job 1_9'
}

@test "releasing an array of which only some tasks are held releases those, and none a second time" {
    start_daemon 1
    berth submit -- sh -c "$AT_GATE"
    wait_for_event kind=started job=1
    berth submit --array 0-5 -- true
    berth hold '2_[1-2]'
    try berth release 2
    is "status of the release" "$status" 0
    is "words" "$out" 'released job 2'
    is "state of the tasks" "$(task_field 2_1 state)$(task_field 2_2 state)" PENDINGPENDING
    try berth release 2
    is "status of another release" "$status" 1
    is "words" "$err" 'berth: job 2 is not held: it is PENDING'
}

@test "a cancelled array stops what runs, drops the rest and starts nothing more" {
    start_daemon 1
    berth submit --array 0-999 -- sh -c "$AT_GATE"
    wait_for_event kind=started array_task=0
    try berth cancel 1
    is status "$status" 0
    wait_for_event kind=ended job=1 state=CANCELLED
    is text "$(job_field 1 text)" 'tasks: 1000 CANCELLED'
    is starts "$(started_tasks)" '0 '
    try berth wait 1
    is 'exit status' "$status" 130
}

@test "holding and releasing an array of which all tasks have left says which of the two is impossible" {
    start_daemon 2
    berth submit --array 0-1 -- sleep 1000
    wait_until_running 2
    wait_until_running 3
    try berth release 1
    is release "$err" 'berth: job 1 is not held, and none of its tasks is'
    try berth hold 1
    is hold "$err" "berth: job 1 cannot be held: all its tasks have started; use 'berth cancel' to stop them"
}

@test "an array is held and released as a whole, and its priority counts" {
    start_daemon 1
    berth submit -- sh -c "$AT_GATE"
    wait_for_event kind=started job=1
    berth submit -- sh -c true
    berth submit --array 0-1 --hold -- sh -c true
    is state "$(job_field 3 state)" HELD
    berth priority 3 5
    berth release 3
    open_gates ''
    wait_for_event kind=ended job=2
    wait_for_event kind=ended job=3
    [ "$(seq_of kind=started array_task=1)" -lt "$(seq_of kind=started job=2)" ]
}

@test "kill -9 of the daemon in the middle of an array: every task runs once, and it ends" {
    start_daemon 2
    berth submit --array 0-9%3 --vram 100 --log 'out.%t' -- sh -c "echo ran; $AT_GATE"
    wait_for_event kind=started array_task=2
    open_gates 0 1
    wait_for_event kind=started array_task=4
    kill_daemon
    start_daemon 2
    is active "$(job_field 1 array.active)" 3
    is 'all told' "$(job_field 1 array.total)" 10
    open_gates {2..9}
    wait_for_event kind=ended job=1 state=COMPLETED
    is tasks "$(job_field 1 array.ended.COMPLETED)" 10
    is runs "$(cat out.* | sort | uniq -c | tr -s ' ')" ' 10 ran'
}

@test "wait reports the ends of tasks and of their array across a restart of the daemon" {
    start_daemon 2
    berth submit --array 0-3 --vram 100 --log 'out.%t' -- sh -c "$AT_GATE; exit \$((BERTH_ARRAY_TASK_ID * 2))"
    wait_for_event kind=started array_task=3
    open_gates 1
    wait_for_event kind=ended array_task=1
    kill_daemon
    start_daemon 2
    try berth wait 1_1
    is 'a task that had ended' "$status $out" '2 1_1  FAILED  2'
    background task berth wait 1_2
    background array berth wait 1
    open_gates 2
    finish task
    is 'a task that ran on' "$status $out" '4 1_2  FAILED  4'
    open_gates 0 3
    finish array
    is 'the array' "$status $out" '6 1  FAILED  6'
}

@test "ten thousand tasks are one line of the queue, which appears immediately" {
    start_daemon 1
    berth submit --vram 24000 -- sh -c "$AT_GATE"
    wait_for_event kind=started job=1
    try berth submit --array 0-9999 -- true
    is status "$status" 0
    is waiting "$(job_field 2 array.waiting)" 10000
    is lines "$(berth queue --json | json jobs.2 2>/dev/null || echo none)" none
    berth cancel 2
    wait_for_event kind=ended job=2 state=CANCELLED
    open_gates ''
}

@test "tasks that failed are requeued, alone or with their array" {
    start_daemon 1
    berth submit --array 0-2 --log 'out.%t' -- \
        sh -c 'echo ran; [ "$BERTH_ARRAY_TASK_ID" != 1 ] || [ -e fixed ]'
    wait_for_event kind=ended job=1 state=FAILED
    touch fixed
    berth requeue 1_1
    wait_for_event kind=ended job=1 state=COMPLETED
    is runs "$(cat out.0 out.1 out.2 | wc -l)" 4
    berth requeue 1
    wait_for_event --after "$(seq_of kind=ended job=1 state=COMPLETED)" kind=ended job=1
    is runs "$(cat out.0 out.1 out.2 | wc -l)" 7
    is text "$(job_field 1 text)" 'tasks: 3 COMPLETED'
}

@test "requeue by state runs only the tasks in that state again" {
    start_daemon 1
    berth submit --array 0-3 --log 'out.%t' -- \
        sh -c 'echo ran; [ -e fixed ] || exit $((BERTH_ARRAY_TASK_ID % 2 * 3))'
    wait_for_event kind=ended job=1 state=FAILED
    touch fixed
    berth requeue state:failed
    wait_for_event kind=ended job=1 state=COMPLETED
    is 'runs of completed tasks' "$(cat out.0 out.2 | wc -l)" 2
    is 'runs of failed tasks' "$(cat out.1 out.3 | wc -l)" 4
    try berth requeue 1 --failed
    is 'status with none failed' "$status" 1
    has words "$err" 'job 1 has no task to run again'
}

@test "requeue --failed leaves completed and cancelled tasks alone" {
    start_daemon 1
    mkfifo gate
    berth submit --array '0-20%3' --log 'out.%t' -- \
        sh -c 'echo ran; [ -e fixed ] && exit; [ $BERTH_ARRAY_TASK_ID != 2 ] || read line <gate;
               exit $((BERTH_ARRAY_TASK_ID * 7))'
    wait_for_event kind=ended array_task=1 state=FAILED
    wait_for_event kind=started array_task=2
    berth hold 1
    berth cancel 1_2
    wait_for_event kind=ended array_task=2 state=CANCELLED
    berth cancel 1
    wait_for_event kind=ended job=1
    touch fixed
    local before
    before=$(cat out.* | wc -l)
    try berth requeue 1 --failed
    is words "$out" 'requeued jobs 1 and 1_1'
    wait_for_event --after "$(seq_of kind=ended job=1)" kind=ended job=1
    is 'runs of the failed task' "$(wc -l <out.1)" 2
    is 'runs in all' "$(cat out.* | wc -l)" $((before + 1))
    is status "$(job_field 1 exit_status)" 130
}

@test "an array that is run again in part ends with the status of what ended last" {
    start_daemon 2
    mkfifo gate
    berth submit --gpus 0 --array '0-4%2' -- sh -c '[ -e fixed ] && exit
        case $BERTH_ARRAY_TASK_ID in 0) exit 5 ;; 1) exit 1 ;; 2) exit 0 ;; *) read line <gate ;; esac'
    wait_for_event kind=started array_task=4
    berth cancel 1
    wait_for_event kind=ended job=1
    is 'with those cancelled' "$(job_field 1 exit_status)" 130
    touch fixed
    berth requeue state:cancelled
    wait_for_event --after "$(seq_of kind=ended job=1)" kind=ended job=1
    is 'with the first' "$(job_field 1 exit_status)" 5
    local seq
    seq=$(events_with kind=ended job=1 | tail -n 1 | json seq)
    berth requeue 1_0
    wait_for_event --after "$seq" kind=ended job=1
    is 'without it' "$(job_field 1 exit_status).$(job_field 1 state)" 1.FAILED
    stop_daemon
    start_daemon 2
    berth requeue 1_1
    wait_for_event kind=ended job=1 state=COMPLETED
    is 'without any' "$(job_field 1 exit_status)" 0
}

@test "logs of an array are those of its tasks, each with its name" {
    start_daemon 1
    berth submit --gpus 0 --array 1-3 -W -- sh -c 'echo said by $BERTH_ARRAY_TASK_ID'
    is output "$(berth logs 1)" "==> job 1_1 <==
said by 1

==> job 1_2 <==
said by 2

==> job 1_3 <==
said by 3"
    is paths "$(berth logs 1 --path | wc -l)" 3
    has 'the array' "$(berth show 1)" "^  log  +$BERTH_DIR/logs/%j\.log: one for each task; 'berth logs 1 --path' lists them$"
    is 'a task' "$(job_field 1_2 log)" "$(berth logs 1_2 --path)"
    is 'of one task' "$(berth logs 1_2)" 'said by 2'
    is 'heads with all jobs' "$(berth logs -a | grep '^==>')" "$(berth logs 1 | grep '^==>')"
    try berth logs -f 1
    is status "$status" 2
    has words "$err" "1 is an array; write 1_TASK with the number of a task"
    berth submit --hold --array 0-9 -- true
    try berth logs 5
    is 'status of one that waits' "$status" 0
    has words "$err" 'no task of array 5 has started yet'
    berth submit --hold --array 0-9 --name sweep --log '%x.%A.%3a.%j' --error all -- true
    is 'its pattern' "$(job_field 6 log)" "$WORK/sweep.6.%3a.%j"
    has 'one file for all' "$(berth show 6)" "^  error  +$WORK/all$"
}

@test "changes of tasks are reported by the names that people use" {
    start_daemon 1
    berth submit --array 0-30 -- sh -c "$AT_GATE"
    wait_for_event kind=started array_task=0
    is hold "$(berth hold '1_[4-5]')" 'held jobs 1_4 and 1_5'
    has explain "$(berth explain 1_4)" '^job 1_4 HELD.*'
    has advice "$(berth explain 1_4)" 'berth release 1_4'
    is release "$(berth release 1_4)" 'released job 1_4'
    is priority "$(berth priority 1_5 3)" 'priority 3 for job 1_5'
    is cancel "$(berth cancel '1_[4-5]')" 'cancelled jobs 1_5 and 1_4'
    try berth cancel 1_4
    has 'cancel again' "$err" 'job 1_4 has ended already'
    for verb in hold release; do
        try berth $verb 1_4
        has "what $verb says" "$err" 'job 1_4 '
    done
    try berth signal 1_4 TERM
    has 'a signal' "$err" 'job 1_4 '
    try berth hold 1_0
    has 'hold of one that runs' "$err" 'job 1_0 cannot be held'
    is signal "$(berth signal 1_0 TERM)" 'sent TERM to job 1_0'
    try berth wait 1_0
    is wait "$out" '1_0  FAILED  143'
    berth cancel 1
    try berth wait 1
    has 'the array' "$(berth history 1)" '^ *1  FAILED .* tasks: 1 FAILED, 30 CANCELLED '
}
