#!/usr/bin/env bats
# The daemon is stopped, killed, and replaced by another build while jobs of every kind run: an
# interactive one with an attached client, an array, jobs that depend on it. None of them
# notices, and no byte is lost.

load lib

# A folder of programs, installed like a release.
install_release()
{
    local program from
    mkdir "$ROOT/$1"
    from=$(dirname "$(command -v berth)")
    for program in berth berthd berth-shepherd berth-probe berth-user; do
        if [ -x "$from/$program" ]; then cp "$from/$program" "$ROOT/$1/"
        else cp "$from/../libexec/berth/$program" "$ROOT/$1/"; fi
    done
}

let_task_through()
{
    timeout "$LIMIT" sh -c "echo >task.$1" || fail_with "task $1 has not come to its gate"
    wait_for_event kind=ended array_task="$1" >/dev/null
}

# Release the next piece of the stream. Each has a gate of its own: a job that came to the same
# one again before its writer closed it would take that end of file for a word.
let_stream_on()
{
    timeout "$LIMIT" sh -c "echo >stream.$1" || fail_with "the stream has not come to its gate $1"
}

# What each new daemon must have restored, and what must continue under it: one more task of
# the array, one more piece of the stream.
everything_goes_on()
{
    [ "$(daemon_pid)" != "$before" ] || fail_with "it is the same daemon"
    before=$(daemon_pid)
    wait_until_running 1 # it is STARTING until its supervisor has called
    wait_until_running 2
    is "the one that waits" "$(job_field "$waits" state)" PENDING
    let_task_through "$1"
    let_stream_on "$1"
    wait_for_output client "^$((($1 + 1) * 20000))\$"
}

@test "the daemon is stopped, killed and upgraded: no job and no client notices" {
    local before waits
    install_release one
    install_release two
    install_release three
    PATH=$ROOT/one:$PATH
    start_daemon 4
    before=$(daemon_pid)
    mkfifo long {stream,task}.{0,1,2,3}
    seq 1 80000 >data
    background client berth submit -G 0 --interactive -- \
        sh -c 'for i in 0 1 2 3; do sed -n "$((i * 20000 + 1)),$(((i + 1) * 20000))p" data; read x <stream.$i; done; exit 9'
    wait_for_output client '^20000$'
    berth submit -G 1 -- sh -c 'echo ran >>long.ran; read x <long; exit 5'
    berth submit -G 1 -J tasks --array 0-3%2 -- \
        sh -c 'echo ran >>ran.$BERTH_ARRAY_TASK_ID; read x <task.$BERTH_ARRAY_TASK_ID; exit $BERTH_ARRAY_TASK_ID'
    waits=$(berth submit --parsable -G 1 --after-any 3 -- sh -c 'cat ran.* | wc -l; exit 4')
    background watcher berth attach 1 --from-start
    wait_for_output watcher '^20000$'
    wait_for_event kind=started array_task=1 >/dev/null

    stop_daemon
    start_daemon 4
    everything_goes_on 0

    kill_daemon
    start_daemon 4
    everything_goes_on 1

    # Another release, and the old one's files are gone.
    stop_daemon
    PATH=$ROOT/two:$PATH
    start_daemon 4
    rm -r "$ROOT/one"
    is "what runs" "$(readlink "/proc/$(daemon_pid)/exe")" "$ROOT/two/berthd"
    everything_goes_on 2

    # And one installed while the daemon runs, and used after a crash.
    mv "$ROOT/two" "$ROOT/old"
    mv "$ROOT/three" "$ROOT/two"
    hash -r
    kill_daemon
    rm -r "$ROOT/old"
    start_daemon 4
    let_task_through 3
    let_stream_on 3
    finish client
    is "the client's status" "$status" 9
    cmp "$ROOT/client.out" data
    finish watcher
    is "the watcher's status" "$status" 9
    cmp "$ROOT/watcher.out" data
    try berth wait 3
    is "the array's status" "$status" 3
    try berth wait "$waits"
    is "status of what waited for it" "$status" 4
    is "what it saw" "$(berth logs "$waits")" 4
    timeout "$LIMIT" sh -c 'echo >long'
    try berth wait 2
    is "the long job's status" "$status" 5
    is "runs" "$(cat long.ran ran.* | wc -l)" 5
}
