#!/usr/bin/env bats
# Interactive jobs: input and output, detaching and reattaching, terminals, leases, and the
# deaths of clients and daemons (which have no effect). onpty acts as the user at a terminal.

load lib

# Run a command at a terminal of its own: `at_terminal STEP... -- COMMAND...`; $status, $out.
at_terminal()
{
    local all
    all=$(timeout $((LIMIT + 5)) "$E2E/onpty" "$LIMIT" "$@" 2>&1) || fail_with "$all"
    status=$(sed -nE 's/^status ([0-9]+)$/\1/p' <<<"$all" | tail -1)
    mode=$(tail -1 <<<"$all")
    out=$(sed -E '/^status [0-9]+$/,$d' <<<"$all" | tr -d '\r')
}

@test "an interactive job's output, words and exit code" {
    start_daemon 1
    try berth submit --interactive -- sh -c 'echo out; echo err >&2; exit 5'
    is status "$status" 5
    is output "$out" $'out\nerr'
    is words "$err" ''
    try berth submit --interactive -- sh -c 'kill -9 $$'
    is status "$status" 137
    try berth submit --gpus 0 --interactive -t 1s -- sleep 100
    is status "$status" 124
    has words "$err" 'job 3: time limit of 1.0s reached'
    try berth submit --gpus 0 --interactive --begin now -- ./nothing
    is status "$status" 127
    has words "$err" "job 4: could not start: cannot execute './nothing'"
}

@test "a hundred megabytes come through whole and in order, carriage returns and all" {
    local want
    start_daemon 1
    head -c 104857600 /dev/urandom >data
    want=$(sha256sum <data)
    is "what came" "$(timeout "$LIMIT" berth submit --gpus 0 --interactive -- cat data </dev/null | sha256sum)" \
        "$want"
    printf 'a\rb\0\xff\x1b[1m\n\r\nno end' >data
    timeout "$LIMIT" berth submit --gpus 0 --interactive -- cat data </dev/null >got
    cmp data got
}

@test "typed input arrives completely, and its end ends the command's input" {
    start_daemon 1
    head -c 5000000 /dev/urandom >data
    timeout "$LIMIT" berth submit --gpus 0 --interactive -- cat <data >got
    cmp data got
    try sh -c 'seq 3 | berth submit --gpus 0 --interactive -- sh -c "wc -l; exit 6"'
    is status "$status" 6
    is output "$out" 3
    # A job that does not read its input does not block the client.
    try sh -c 'head -c 5000000 /dev/zero | berth submit --gpus 0 --interactive -- true'
    is status "$status" 0
}

@test "where the user has no inotify instance left, output comes all the same" {
    local few='echo 0 >/proc/sys/user/max_inotify_instances'
    unshare -Ur sh -c "$few" 2>/dev/null || skip "no user namespaces here"
    unshare -Ur sh -c "$few && exec timeout $LIMIT berth daemon start --sim 1" >/dev/null
    mkfifo gate end
    background one berth submit --gpus 0 --interactive -- sh -c 'echo first; read x <gate; echo second; read x <end'
    wait_for_output one '^first$'
    echo >gate
    wait_for_output one '^second$'
    echo >end
    finish one
    is status "$status" 0
}

@test "output comes as it is written, not by line" {
    start_daemon 1
    mkfifo gate
    echo 'printf 10%%; read x <gate; printf " 20%%\n"' >script
    at_terminal 'see:10%' 'run:echo >gate' 'see: 20%' -- \
        sh -c 'berth submit --gpus 0 --interactive -- sh script </dev/null | cat'
    is output "$out" '10% 20%'
}

@test "while an interactive job waits the client shows the reason, and then that it runs" {
    start_daemon 1
    mkfifo gate
    berth submit -- sh -c 'read x <gate'
    wait_for_event kind=started job=1
    background job berth submit --interactive -- sh -c 'echo mine; exit 3'
    wait_for_output job 'job 2 waits: .*job 1'
    echo >gate
    finish job
    is status "$status" 3
    has output "$out" '^berth: job 2 runs on gpu 0$'
    has output "$out" '^mine$'
}

@test "Ctrl-C once detaches and the job continues, twice cancels it" {
    start_daemon 1
    at_terminal 'see:ready' 'type:\x03' 'see:attach 1' -- \
        berth submit --gpus 0 --interactive -- sh -c 'echo ready; read x; exit 4'
    is status "$status" 130
    has words "$out" 'detached; job 1 continues. To return to it: berth attach 1'
    is state "$(job_field 1 state)" RUNNING
    try sh -c 'echo go | berth attach 1'
    is status "$status" 4
    at_terminal 'see:ready' 'type:\x03' 'see:cancels it' 'type:\x03' -- \
        berth submit --gpus 0 --interactive -- sh -c 'echo ready; read x'
    is status "$status" 130
    has words "$out" 'job 2 is cancelled'
    wait_for_event kind=ended job=2 state=CANCELLED
}

@test "killing the client leaves the job running, and attach returns to it" {
    start_daemon 1
    mkfifo gate
    background job berth submit --gpus 0 --interactive -- sh -c 'echo one; read x <gate; echo two; exit 7'
    wait_for_output job '^one$'
    kill -KILL "$pid_of_job"
    finish job
    wait_until_running 1
    background again berth attach 1 --from-start
    wait_for_output again '^one$'
    echo >gate
    finish again
    is status "$status" 7
    is output "$out" $'one\ntwo'
}

@test "kill -9 of the daemon in mid-stream loses no byte, and the next one knows the job" {
    local path before
    start_daemon 1
    mkfifo gate
    seq 1 300000 >data
    background job berth submit --gpus 0 --interactive -- \
        sh -c 'head -n 150000 data; read x <gate; tail -n +150001 data; exit 9'
    wait_for_output job '^150000$'
    path=$(job_field 1 attach)
    before=$(daemon_pid)
    kill_daemon
    start_daemon 1
    [ "$(daemon_pid)" != "$before" ]
    is "the socket" "$(job_field 1 attach)" "$path"
    background watcher berth attach 1 --from-start
    wait_for_output watcher '^150000$'
    echo >gate
    finish job
    is status "$status" 9
    cmp "$ROOT/job.out" data
    finish watcher
    is status "$status" 9
    cmp "$ROOT/watcher.out" data
}

@test "a job ends normally although its daemon is gone" {
    start_daemon 1
    mkfifo gate
    background job berth submit --gpus 0 --interactive -- sh -c 'echo one; read x <gate; echo two; exit 3'
    wait_for_output job '^one$'
    kill_daemon
    echo >gate
    finish job
    is status "$status" 3
    is output "$out" $'one\ntwo'
    is state "$(job_field 1 state)" FAILED
}

@test "a job that is stopped to run again is followed into its next run" {
    start_daemon 1
    mkfifo gate again
    background job berth submit --gpus 0 --interactive -- \
        sh -c 'if [ -e first ]; then echo second; read x <again; exit 8; fi; echo >first; echo first; read x <gate'
    wait_for_output job '^first$'
    berth requeue 1
    wait_for_output job '^second$'
    echo >again
    finish job
    is status "$status" 8
    has output "$out" '^second$'
}

@test "a reader that goes away is a detach" {
    start_daemon 1
    mkfifo gate
    try bash -c 'berth submit --gpus 0 --interactive -- sh -c "echo one; read x <gate" | head -1; exit ${PIPESTATUS[0]}'
    is status "$status" 141
    is output "$out" one
    has words "$err" 'job 1 continues'
    wait_until_running 1
    echo >gate
}

@test "a terminal: its size, its changes, its keys" {
    start_daemon 1
    at_terminal 'size:33x111' 'see:go' -- \
        berth submit --gpus 0 --pty -- sh -c 'echo go; stty size; tty -s && echo yes'
    has output "$out" '^yes$'
    at_terminal 'see:up' 'size:44x122' 'see:44 122' 'type:\x03' -- \
        berth submit --gpus 0 --pty -- sh -c 'trap "stty size" WINCH; trap "exit 6" INT; echo up; while :; do sleep 0.1; done'
    is status "$status" 6
    is mode "$mode" cooked
    try sh -c 'echo hello | berth submit --gpus 0 --pty -- cat'
    is status "$status" 0
    has output "$out" hello
}

@test "Ctrl-] detaches from a terminal, attach leads back, and several may be there" {
    start_daemon 1
    at_terminal 'see:ready' 'type:\x1d' -- \
        berth submit --gpus 0 --pty -- sh -c 'echo ready; read x; echo "got $x"; exit 3'
    is status "$status" 0
    is mode "$mode" cooked
    has words "$out" 'detached; job 1 continues. To return to it: berth attach 1'
    background watcher berth attach 1 --read-only
    wait_for_output watcher ready
    at_terminal 'see:ready' 'type:this\r' -- berth attach @
    is status "$status" 3
    is mode "$mode" cooked
    has output "$out" 'got this'
    finish watcher
    is status "$status" 3
    has output "$out" 'got this'
}

@test "the terminal is as it was, however the client ends" {
    local signal
    start_daemon 1
    for signal in TERM:143 HUP:129 INT:130; do
        at_terminal 'see:ready' "kill:${signal%:*}" -- \
            berth submit --gpus 0 --pty -- sh -c 'echo ready; read x'
        is "status after $signal" "$status" "${signal#*:}"
        is "mode after $signal" "$mode" cooked
        wait_until_running @
        berth cancel @
    done
    at_terminal 'see:ready' "run:berth cancel @" -- \
        berth submit --gpus 0 --pty -- sh -c 'echo ready; read x'
    is status "$status" 130
    is mode "$mode" cooked
    has words "$out" 'job 4: cancelled by'
}

@test "berth shell holds a GPU until the shell ends" {
    start_daemon 1
    at_terminal 'see:[$#>] ' 'type:echo card=$CUDA_VISIBLE_DEVICES; exit 6\r' 'see:card=0' -- \
        env SHELL=/bin/sh berth shell
    is status "$status" 6
    is mode "$mode" cooked
    is state "$(job_field 1 state)" FAILED
    is name "$(job_field 1 name)" shell
    try berth shell -- ls
    is status "$status" 2
    has words "$err" 'berth submit --pty -- ls'
}

@test "a shell is warned before its time limit" {
    start_daemon 1
    at_terminal 'see:job 1 has 1.0s left of its time limit' -- berth shell -t 10s --grace 0
    is status "$status" 124
    is mode "$mode" cooked
    has words "$out" 'job 1: time limit of 10s reached'
}

@test "invalid input is refused with a message that says what would work" {
    start_daemon 1
    berth submit --gpus 0 --wait -- true
    try berth attach 1
    is status "$status" 2
    has words "$err" 'not submitted with --interactive'
    try berth attach 7
    is status "$status" 3
    try berth attach
    is status "$status" 2
    try berth submit --interactive --array 0-3 -- true
    is status "$status" 2
    has words "$err" "array's tasks cannot be interactive"
    try berth submit --interactive --json -- true
    is status "$status" 2
    try berth submit --interactive -o /dev/null -- true
    is status "$status" 1
    has words "$err" 'must be a regular file'
    try berth submit --gpus 0 --interactive -- sh -c 'exit 3'
    try berth attach @
    is status "$status" 3
    has words "$err" 'has ended: .*berth logs'
}
