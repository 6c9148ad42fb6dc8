#!/usr/bin/env bats
# Attacks of one user on another's files, jobs and sockets, or on the shared daemon, beyond
# users.bats: links and FIFOs in place of logs, /proc, passed descriptors, claimed names.

load lib
load users

# An interactive job of alice's with a secret in its environment: $id, $socket. `alice_ends`
# ends it.
alice_runs()
{
    as "$ALICE" mkfifo "$USERS_HOME/alice/gate.$BATS_TEST_NUMBER"
    background alices as "$ALICE" env SECRET=xyzzy berth submit -G 0 --interactive "$@" -- \
        sh -c 'echo secret words; read x <gate.$1; echo over; exit 4' sh "$BATS_TEST_NUMBER"
    wait_for_output alices '^secret words$'
    id=1
    socket=$(job_field "$id" attach)
}

alice_ends()
{
    as "$ALICE" sh -c "echo >gate.$BATS_TEST_NUMBER"
    finish alices
    is "alice's exit status" "$status" 4
}

# A job of bob's with this log, which must not run: `bob_logs_to PATH STATUS WHY`. The request
# is made by hand, because submit refuses what it can see to be impossible.
bob_logs_to()
{
    as "$BOB" python3 "$E2E/ask.py" submit \
        "$(jq -nc --arg log "$1" --arg cwd "$USERS_HOME/bob" '{cwd: $cwd, jobs: [{command: "echo overwritten", gpus: 0, log: $log}]}')" >"$ROOT/said"
    try_as "$BOB" berth wait @
    is "exit status with the log $1" "$status" "$2"
    has "why, with the log $1" "$(as "$BOB" berth show @)" "cannot open the log .*: $3"
}

@test "no link in any part of a log's path leads where the user could not write" {
    start_system
    as "$ALICE" mkdir -p a/b
    as "$ALICE" sh -c 'echo precious >a/b/c; chmod 755 a a/b; chmod 644 a/b/c'
    chmod 711 "$USERS_HOME/alice"
    as "$BOB" mkdir -p real/b
    as "$BOB" ln -s "$USERS_HOME/alice/a" a
    as "$BOB" ln -s "$USERS_HOME/alice/a/b" real/x
    as "$BOB" ln -s "$USERS_HOME/alice/a/b/c" real/b/c
    # Another name of her file, on kernels that let everyone make one.
    ln "$USERS_HOME/alice/a/b/c" "$USERS_HOME/bob/hard"
    for path in a/b/c real/x/c real/b/c a/b/new real/x/new hard "$USERS_HOME/alice/a/b/c" "$USERS_HOME/alice/new"; do
        bob_logs_to "$path" 126 "Permission denied"
    done
    is "alice's file" "$(cat "$USERS_HOME/alice/a/b/c")" precious
    is "alice's files" "$(find "$USERS_HOME/alice" -name new | wc -l)" 0
    is "its owner" "$(stat -c %U "$USERS_HOME/alice/a/b/c")" "$ALICE"
    chmod 700 "$USERS_HOME/alice"
    rm -r "$USERS_HOME/bob/real" "$USERS_HOME/bob/a" "$USERS_HOME/bob/hard"
}

@test "an error file that cannot be opened fails only its own job" {
    start_system
    as "$BOB" ln -s /nonexistent/x e
    as "$BOB" python3 "$E2E/ask.py" submit \
        "$(jq -nc --arg cwd "$USERS_HOME/bob" '{cwd: $cwd, jobs: [{command: "true", gpus: 0, error: "e"}]}')" >"$ROOT/said"
    try_as "$BOB" berth wait 1
    is "exit status" "$status" 127
    has "why" "$(as "$BOB" berth show 1)" "cannot open the file for errors .*: No such file or directory"
    try_as "$ALICE" berth submit -G 0 --wait -- true
    is "alice's exit status" "$status" 0
    rm "$USERS_HOME/bob/e"
}

@test "a FIFO in place of a log delays only its own job, and not that job's end" {
    local uid
    uid=$(id -u "$BOB")
    start_system
    as "$BOB" mkfifo fifo full
    bob_logs_to fifo 1 "No such device or address"
    # With a process at its other end that never reads.
    exec 8<>"$USERS_HOME/bob/full"
    limited=$(as "$BOB" berth submit --parsable -G 1 -t 1s --log full -- sh -c 'yes | head -c 1000000')
    wait_for_event kind=started "job=$limited" >/dev/null
    as "$ALICE" berth submit -G 1 --wait -- true
    try berth logs "$limited"
    is "status of root's look at it" "$status" 1
    has "words" "$err" "is not a regular file"
    status=0; as "$BOB" berth wait "$limited" || status=$?
    is "its status at its limit" "$status" 124
    as "$ALICE" berth submit -G 2 --wait -- true
    for how in --interactive --pty --screen; do
        try_as "$BOB" berth submit -G 0 $how --log full --wait -- true
        has "words for $how" "$err$(as "$BOB" berth show @)" "must be a regular file|GNU screen"
    done
    # Also in the folder for logs: a job's, and its hooks'.
    next=$(($(as "$BOB" berth submit --parsable -G 0 --wait -- true) + 1))
    as "$BOB" mkfifo "$BERTH_DIR/logs/$uid/$next.log"
    try_as "$BOB" berth submit -G 0 --wait -- true
    is "status with its own log a FIFO" "$status" 1
    rm -f "$BERTH_DIR/logs/$uid/hooks.log"
    as "$BOB" mkfifo "$BERTH_DIR/logs/$uid/hooks.log"
    exec 7<>"$BERTH_DIR/logs/$uid/hooks.log"
    hooked=$(as "$BOB" berth submit --parsable -G 0 --on-end 'yes | head -c 200000' -- true)
    wait_for_event kind=hook "job=$hooked" state=done >/dev/null
    exec 7<&- 8<&-
}

@test "another user's job reveals nothing through /proc, its folder, its log or its socket" {
    start_system
    alice_runs
    pid=$(berth show "$id" --json | json jobs.0.pid)
    shepherd=$(ps -o ppid= -p "$pid" | tr -d ' ')
    daemon=$(daemon_pid)
    is "the secret, as root sees it" "$(tr '\0' '\n' <"/proc/$pid/environ" | grep -c xyzzy)" 1
    for place in "/proc/$pid/environ" "/proc/$pid/fd/1" "/proc/$pid/cwd/gate" "/proc/$shepherd/environ" \
        "/proc/$shepherd/fd/4" "/proc/$daemon/environ" "/proc/$daemon/fd/5" "/proc/$pid/mem" \
        "$BERTH_DIR/state/berth.db" "$BERTH_DIR/state/jobs/$id.1/lock" \
        "$BERTH_DIR/logs/$(id -u "$ALICE")/$id.log"; do
        try_as "$BOB" cat "$place"
        is "status of cat $place" "$status" 1
        is "what it gave" "$out" ''
        has "why" "$err" "Permission denied"
    done
    # Programs that run as root must not reveal in their arguments what they were given.
    has_not "arguments" "$(tr '\0' ' ' <"/proc/$shepherd/cmdline")" "secret|xyzzy|gate"
    for socket in "$socket" "$BERTH_DIR/state/jobs/$id.1/ctl.sock" "$BERTH_DIR/attach/2.1.sock"; do
        try_as "$BOB" python3 "$E2E/attached.py" "$socket"
        is "status of $socket" "$status" 1
        is "what it gave" "$out" ''
    done
    try_as "$BOB" ls "$BERTH_DIR/attach" "$BERTH_DIR/state" "$BERTH_DIR/logs/$(id -u "$ALICE")"
    has_not "lists" "$out" "sock|jobs|log"
    is "sockets without a place in a folder" "$(grep -c '@.*berth' /proc/net/unix)" 0
    alice_ends
}

@test "descriptors passed to the daemon or to a supervisor are closed" {
    start_system
    alice_runs
    cat >"$ROOT/pass.py" <<'PY'
import array, json, os, socket, struct, sys
fds = array.array("i", [os.open("/dev/null", os.O_RDONLY) for _ in range(200)])
ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    if sys.argv[2] == "daemon":
        f = s.makefile("rb")
        for n in range(20):
            s.sendmsg([json.dumps({"id": n, "method": "metrics"}).encode() + b"\n"], ancillary)
            answer = json.loads(f.readline())
        print(answer["result"]["metrics"]["berth_daemon_open_fds"])
    else:
        hello = b'{"version":1}'
        for n in range(20):
            s.sendmsg([b"h" + struct.pack(">I", len(hello)) + hello if n == 0 else b"?\0\0\0\0"], ancillary)
        s.recv(100)
        print(len(os.listdir("/proc/%s/fd" % sys.argv[3])) if len(sys.argv) > 3 else 0)
PY
    is "few in the daemon" "$(($(as "$BOB" python3 "$ROOT/pass.py" "$BERTH_DIR/berth.sock" daemon) < 100))" 1
    shepherd=$(ps -o ppid= -p "$(berth show "$id" --json | json jobs.0.pid)" | tr -d ' ')
    is "few in the supervisor" "$(($(python3 "$ROOT/pass.py" "$socket" shepherd "$shepherd") < 40))" 1
    alice_ends
}

# Each request of bob's claims to be from another user. The required exit status.
CLAIMS='
5 cancel {"select":["1"],"user":"ALICE","uid":0,"by":"root"}
3 cancel {"select":["user:ALICE"],"user":"ALICE","uid":UID}
5 hold {"select":["2"],"user":"ALICE","uid":UID}
5 release {"select":["2"],"user":"ALICE","uid":UID,"admin":true}
5 priority {"select":["2"],"priority":5,"user":"ALICE","uid":UID}
5 requeue {"select":["1"],"user":"ALICE","uid":UID}
5 signal {"select":["1"],"signal":9,"user":"ALICE","uid":UID}
5 cancel {"select":["3_1"],"user":"ALICE","uid":UID}
5 gpu.pause {"gpus":["all"],"by":"root","user":"root","uid":0}
5 gpu.resume {"gpus":["all"],"user":"root","uid":0}
5 log.level {"level":"debug","user":"root","uid":0}
5 stop {"cancel":true,"user":"root","uid":0,"admin":true}
'

@test "no method trusts what a message says about its sender" {
    start_system
    alice_runs
    as "$ALICE" berth submit -G 0 --hold -- true
    as "$ALICE" berth submit -G 0 --hold --array 0-3 -- true
    as "$ALICE" sh -c 'printf "[hold] sleep 300\n[hold] true\n" >jobs.txt'
    as "$ALICE" berth run --detach jobs.txt
    before=$(berth queue --json | jq -c '[.jobs[] | [.id, .state, .priority, .user]]')
    while read -r want method params; do
        [ -n "$method" ] || continue
        params=${params//ALICE/$ALICE}
        params=${params//UID/$(id -u "$ALICE")}
        as "$BOB" python3 -c 'import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(json.dumps({"id": 1, "method": sys.argv[2], "params": json.loads(sys.argv[3])}).encode() + b"\n")
    print(json.loads(s.makefile().readline()).get("error", {}).get("code", 0))' \
            "$BERTH_DIR/berth.sock" "$method" "$params" </dev/null >"$ROOT/code"
        is "the code of $method $params" "$(cat "$ROOT/code")" "$want"
    done <<<"$CLAIMS"
    is "alice's jobs" "$(berth queue --json | jq -c '[.jobs[] | [.id, .state, .priority, .user]]')" "$before"
    # A file with the name of alice's is another file.
    as "$BOB" python3 "$E2E/ask.py" file.sync \
        "{\"path\":\"$USERS_HOME/alice/jobs.txt\",\"cwd\":\"/\",\"umask\":18,\"env\":[],\"jobs\":[],\"user\":\"$ALICE\"}" >"$ROOT/sync"
    is "what bob's removed" "$(json removed <"$ROOT/sync")" "[]"
    is "alice's jobs" "$(berth queue --json | jq -c '[.jobs[] | [.id, .state, .priority, .user]]')" "$before"
    as "$BOB" python3 "$E2E/ask.py" jobs "{\"user\":\"$ALICE\",\"uid\":$(id -u "$ALICE"),\"select\":[\"1\"]}" >"$ROOT/jobs"
    has_not "what is only her business" "$(cat "$ROOT/jobs")" xyzzy
    alice_ends
    berth cancel --all
}
