#!/usr/bin/env bats
# Sockets are names in folders that get cleaned up: whatever happens to the name, a new client
# finds the same daemon and the same job, and connected clients notice nothing. The limit of a
# step is shorter than the interval at which a polling daemon would look.

load lib
load web

# The same daemon answers under its name again.
answers_again()
{
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.pid "$pid"
}

# Wait until this many clients are connected, or wait to be: the kernel lists the server's end
# of each beside the socket itself, under the name it was bound to before it got its own.
connections()
{
    "$AWAIT" until "$LIMIT" "grep -c [.]sock[.]$pid\$ /proc/net/unix" . "$(($1 + 1))" ||
        fail_with "there are not $1 connections"
}

case_setup()
{
    start_daemon 1
    pid=$(daemon_pid)
}

@test "a socket that a cleaner removed is bound again, as often as that happens" {
    local i
    for i in 1 2 3 4 5; do
        rm "$BERTH_DIR/berth.sock"
        answers_again
    done
}

@test "a socket that was replaced by something else is bound again" {
    : >"$ROOT/file"
    mv "$ROOT/file" "$BERTH_DIR/berth.sock"
    answers_again
    [ -S "$BERTH_DIR/berth.sock" ]
    # A socket whose owner is dead.
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$ROOT/dead"
    mv "$ROOT/dead" "$BERTH_DIR/berth.sock"
    answers_again
    mv "$BERTH_DIR/berth.sock" "$BERTH_DIR/old.sock"
    answers_again
}

@test "a folder that is removed with the socket is made again" {
    stop_daemon
    # As in user mode, where the socket's folder holds nothing else.
    export XDG_RUNTIME_DIR=$ROOT/run XDG_STATE_HOME=$ROOT/home
    unset BERTH_DIR
    mkdir "$ROOT/run"
    start_daemon 1
    pid=$(daemon_pid)
    # Renamed first: a daemon is faster than rm -r, which then finds a new socket there.
    mv "$ROOT/run/berth" "$ROOT/run/elsewhere"
    answers_again
    is "its mode" "$(stat -c %a "$ROOT/run/berth")" 700
    rm -r "$ROOT/run/elsewhere"
    rm -r "$ROOT/run/berth" || true
    answers_again
    stop_daemon
}

@test "a daemon started in one environment is found from another: a login's, cron's" {
    stop_daemon
    export XDG_STATE_HOME=$ROOT/home
    unset BERTH_DIR
    mkdir "$ROOT/login" "$ROOT/cron-service"
    at() { XDG_RUNTIME_DIR=$ROOT/$1 "${@:2}"; }
    at login start_daemon 1
    pid=$(at login daemon_pid)
    background_pids+=" $pid" # should this fail: it is not where the teardown looks
    try env XDG_RUNTIME_DIR="$ROOT/cron-service" berth status --json
    is "status in cron" "$status $err" "0 "
    is "the one that cron-service finds" "$(json daemon.pid <<<"$out")" "$pid"
    at cron-service berth submit --gpus 0 --wait -- true
    # It dies, and the next one listens elsewhere: clients of the first go on there.
    background events env XDG_RUNTIME_DIR="$ROOT/login" berth events -f --since 0
    wait_for_output events '"job":1.*"kind":"ended"|"kind":"ended".*"job":1'
    kill -KILL "$pid"
    "$AWAIT" pid "$LIMIT" "$pid"
    at cron-service start_daemon 1
    at cron-service berth submit --gpus 0 --wait -- true
    wait_for_output events '"job":2.*"kind":"ended"|"kind":"ended".*"job":2'
    is "the one that a login finds" "$(at login daemon_pid)" "$(at cron-service daemon_pid)"
    # Words in the path are no words of the lock.
    pid=$(at cron-service daemon_pid)
    kill -KILL "$pid"
    "$AWAIT" pid "$LIMIT" "$pid"
    at login berth queue
    at login stop_daemon
}

@test "followers, jobs and clients of the old socket do not notice" {
    background events berth events -f --since 0
    berth submit --gpus 0 --hold -- true
    wait_for_output events '"kind":"submitted"'
    connections 1 # the follower's; the submitter's has been closed
    # The name is gone, but the daemon cannot see that yet: this client waits without a name.
    kill -STOP "$pid"
    background waiter berth submit --gpus 0 --wait -- sh -c 'exit 7'
    connections 2
    rm "$BERTH_DIR/berth.sock"
    kill -CONT "$pid"
    finish waiter
    is status "$status" 7
    berth release 1
    wait_for_output events '"job":1.*"kind":"ended"|"kind":"ended".*"job":1'
}

@test "a socket on which another daemon answers is left to it, and logged" {
    # Two states that would have the same socket: the second does not start.
    mkdir "$ROOT/run"
    export XDG_RUNTIME_DIR=$ROOT/run
    try env -u BERTH_DIR XDG_STATE_HOME="$ROOT/one" berth daemon start --sim 1
    is status "$status" 0
    try env -u BERTH_DIR XDG_STATE_HOME="$ROOT/two" berthd --sim 1 --ready-fd 9 9>"$ROOT/ready"
    is status "$status" 6
    has "what it said" "$(cat "$ROOT/ready")" "another daemon is running at $ROOT/run/berth/berth.sock"
    # A daemon whose name was taken by another live one does not fight over it.
    ln -f "$ROOT/run/berth/berth.sock" "$BERTH_DIR/foreign"
    mv "$BERTH_DIR/foreign" "$BERTH_DIR/berth.sock"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" 'event=socket-gone another daemon is running'
    rm "$BERTH_DIR/berth.sock"
    answers_again
    env -u BERTH_DIR XDG_STATE_HOME="$ROOT/one" berth daemon stop
}

@test "an interactive job's socket is bound again, and attached clients stay" {
    local socket
    mkfifo gate
    background job berth submit --gpus 0 --interactive -- sh -c 'echo one; read x <gate; echo two; exit 7'
    wait_for_output job '^one$'
    socket=$(job_field 1 attach)
    rm "$socket"
    "$AWAIT" until "$LIMIT" "$E2E/is-there $socket" there true
    background second berth attach 1 --from-start
    wait_for_output second '^one$'
    mv "$(dirname "$socket")" "$ROOT/elsewhere"
    "$AWAIT" until "$LIMIT" "$E2E/is-there $socket" there true
    background third berth attach 1 --from-start
    wait_for_output third '^one$'
    echo >gate
    for who in job second third; do
        finish "$who"
        is "status of $who" "$status" 7
        is "output of $who" "$out" $'one\ntwo'
    done
}

@test "a daemon that is reached and gone before it answers is no reason not to start one" {
    stop_daemon
    # It takes one connection, abandons its socket, and hangs up on any request.
    background dying timeout "$LIMIT" python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1)
print("listens", flush=True)
c = s.accept()[0]
s.close()
os.unlink(sys.argv[1])
c.recv(1)' "$BERTH_DIR/berth.sock"
    wait_for_output dying '^listens$'
    try berth daemon start --sim 1
    is 'status' "$status:$err" 0:
    has 'what it says' "$out" '^started$'
}

@test "an instance can lie at a path of any length" {
    local deep=$ROOT/$(printf 'a-long-name-%d/' {1..12})
    mkdir -p "$deep"
    stop_daemon
    BERTH_DIR=$deep
    start_daemon 1
    try berth submit --gpus 0 --interactive -- echo hello
    is status "$status" 0
    is output "$out" hello
    berth submit --gpus 0 -- sh -c 'echo two; exec sleep 600'
    wait_for_event kind=started job=2
    kill_daemon
    start_daemon 1
    wait_until_running 2
    has_not doctor "$(berth doctor || true)" 'longer than'
    start_web
    get api/v1/status
    is 'what the page is told' "$status" 200
    berth cancel 2
}
