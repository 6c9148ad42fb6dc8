#!/usr/bin/env bats
# Bounds on one request and one user of the system daemon: a request's length, its content, its
# answer's length, a user's part of the queue and number of connections. Whatever one user
# asks, the other is served.

load lib
load users

# Send one request of a user as raw JSON; $out gets the answer: `asks $BOB METHOD PARAMS`.
asks()
{
    out=$(printf %s "$3" | as "$1" python3 "$E2E/raw.py" "$BERTH_DIR/berth.sock" "$2")
}

# Its error's code and text, or "fine".
verdict()
{
    jq -r 'if .error then "\(.error.code) \(.error.message)" else "fine" end' <<<"$out"
}

@test "fields are named once, and an answer is bounded while it is written" {
    start_system --set answer_max_mib=1
    as "$BOB" sh -c 'i=0; while [ $i -lt 40 ]; do echo "[hold] : $(head -c 40000 /dev/zero | tr "\0" x) $i"; i=$((i+1)); done >many.txt'
    as "$BOB" berth run --detach many.txt
    asks "$BOB" jobs '{"fields":["command","command"]}'
    has "words" "$(verdict)" '^2 "fields" names "command" twice$'
    asks "$BOB" jobs '{"fields":"command"}'
    has "words" "$(verdict)" '^2 "fields" must be a list of names$'
    asks "$BOB" jobs '{"fields":["command"]}'
    has "words" "$(verdict)" '^6 the answer would exceed the maximum of 1 MiB; request fewer jobs'
    asks "$BOB" jobs '{"fields":["id"]}'
    is "a shorter one" "$(jq '.result.rows | length' <<<"$out")" 40
    asks root jobs '{"fields":["command"]}'
    is "root's" "$(jq '.result.rows | length' <<<"$out")" 40
}

@test "a request has at most 1,000 selectors; consecutive numbers count as one" {
    start_system
    as "$BOB" berth submit -G 0 --hold --array 0-9 -- true
    asks "$BOB" jobs "$(jq -nc '{select: [range(0; 3000) | "name:x\(.)"]}')"
    has "words" "$(verdict)" '^2 3000 different words select jobs, and the maximum in one request is 1000'
    asks "$BOB" jobs "$(jq -nc '{select: [range(0; 65) | "tag:x\(.)"]}')"
    has "words" "$(verdict)" '^2 65 names and tags select jobs, and the maximum in one request is 64'
    asks "$BOB" jobs "$(jq -nc '{select: ([range(0; 3000) | "name:same"] + ["1"])}')"
    is "one word many times" "$(verdict)" fine
    asks "$BOB" jobs "$(jq -nc '{select: [range(1; 3000) | tostring]}')"
    has "numbers in a row" "$(verdict)" '^3 no job 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, \.\.\.'
    asks "$BOB" jobs "$(jq -nc '{select: ([range(0; 4000) | "1_[3-999999]"] + ["1"])}')"
    is "tasks in ranges" "$(verdict)" fine
    asks "$BOB" hold '{"select":["1_[10-999999]"]}'
    has "tasks that are none" "$(verdict)" '^3 no job 1_10;'
    as "$BOB" berth submit -G 0 --hold --array 0-1999 -- true
    asks "$BOB" cancel '{"select":["2_[0-1999]"]}'
    has "words" "$(verdict)" '^6 more than 1000 pending tasks of arrays'
    asks "$BOB" cancel '{"select":["2_[0-9]"]}'
    is "fewer" "$(verdict)" fine
}

@test "a line is measured before it is parsed, and a long one is refused with a message" {
    start_system --set request_max_mib=1
    asks "$BOB" status "$(python3 -c 'print("{\"x\":[" + "{}," * 200000 + "{}]}")')"
    has "words" "$(verdict)" '^6 the request exceeds the maximum of 200000 values'
    asks "$BOB" status "$(python3 -c 'print("{\"x\":" + "[" * 40 + "]" * 40 + "}")')"
    has "words" "$(verdict)" '^6 the request is nested more than 32 deep$'
    asks "$BOB" status "$(python3 -c 'print("{\"x\":\"" + "[{,:\\\"" * 100000 + "\"}")')"
    is "the same in a string" "$(verdict)" fine
    asks "$BOB" status "$(python3 -c 'print("{\"x\":\"" + "x" * 1200000 + "\"}")')"
    has "words" "$(verdict)" '^6 the request exceeds the maximum of 1 MiB'
    asks root status "$(python3 -c 'print("{\"x\":\"" + "x" * 1200000 + "\"}")')"
    is "root's" "$(verdict)" fine
}

@test "jobs are counted before they are parsed, against the limits of a request and of pending jobs" {
    start_system --set pending_max=100 --set user_priority_max=1
    job='{"command":"true","gpus":0,"hold":true,"unique":true}'
    asks "$BOB" submit "$(jq -nc --argjson j "$job" '{cwd: "/", jobs: [range(0; 1001) | $j]}')"
    has "words" "$(verdict)" '^6 the request has 1001 jobs, and the maximum is 1000'
    # Refused for their number, although the second line repeats the first and would add no job.
    asks "$BOB" submit "$(jq -nc --argjson j "$job" '{cwd: "/", jobs: [range(0; 11) | $j]}')"
    has "words" "$(verdict)" '^6 .* has 0 of at most 10 pending jobs: 11 jobs more'
    asks "$BOB" submit "$(jq -nc --argjson j "$job" '{cwd: "/", jobs: [range(0; 5) | $j]}')"
    has "words" "$(verdict)" '^6 job 2 of 5: it is the same as job 1 of this request$'
    asks "$BOB" submit "$(jq -nc '{cwd: "/", jobs: [range(0; 100) | {command: "true", gpus: 0, hold: true,
        after: [range(0; 41) | {type: "any", job: 1}]}]}')"
    has "words" "$(verdict)" '^6 the jobs of the request wait for 4100 others'
}

@test "a user gets a tenth of the queue by default, and root still has room" {
    start_system --set pending_max=100
    as "$BOB" berth submit -G 0 --hold --array 0-9 -- true
    try_as "$BOB" berth submit -G 0 --hold -- true
    has "words" "$err" "has 10 of at most 10 pending jobs: .*user_max_pending"
    as "$ALICE" berth submit -G 0 --hold -- true
    stop_daemon --cancel
    start_system --set pending_max=10 --set user_max_pending=0
    as "$BOB" berth submit -G 0 --hold --array 0-9 -- true
    try_as "$ALICE" berth submit -G 0 --hold -- true
    has "words" "$err" "the queue is full"
    berth submit -G 0 --hold -- true
}

@test "a job that an admin has run again counts for its user" {
    start_system --set user_max_pending=1
    as "$BOB" berth submit -G 0 -W -- true
    as "$BOB" berth submit -G 0 --hold -- true
    try berth requeue 1
    is status "$status" 6
    has words "$err" "$BOB has 1 of at most 1 pending jobs"
    as "$ALICE" berth submit -G 0 -W -- true
    try berth requeue 3 1
    is 'status of both' "$status" 6
    try berth requeue 3
    is "status of alice's" "$status" 0
}

@test "a user's long jobs file is sent in pieces and stays one file" {
    start_system --set request_max_mib=1
    as "$BOB" sh -c 'seq 1 5000 | sed "s/.*/[hold] : line & $(head -c 400 /dev/zero | tr "\0" x)/" >long.txt; echo "[hold after=l1] : last" >>long.txt; sed -i "1s/hold/hold name=l1/" long.txt'
    as "$BOB" berth run --detach long.txt
    is "jobs" "$(berth queue --json | jq '.jobs | length')" 5001
    is "the last waits for" "$(berth show 5001 --json | jq -c '.jobs[0].after | map(.job)')" '[1]'
    # Removed lines leave the queue, in whichever piece they were; the others are unchanged.
    as "$BOB" sed -i -e 2d -e 4999d long.txt
    as "$BOB" berth run --detach long.txt
    is "jobs" "$(berth queue --json | jq -c '[.jobs[].id] | sort | [length, .[0], .[1], .[-1]]')" '[4999,1,3,5001]'
    is "dry run" "$(as "$BOB" berth run --dry-run long.txt | wc -l)" 5000
    # Half a file that is never completed changes nothing.
    asks "$BOB" file.sync '{"path":"/x","more":true,"jobs":[{"key":"a","command":"true"}]}'
    is "a piece" "$(verdict)" fine
    asks "$BOB" file.sync '{"path":"/x","more":true,"jobs":[{"key":"a","command":7}]}'
    has "a bad one" "$(verdict)" '^2 line 0: "command"'
    is "jobs" "$(berth queue --json | jq '.jobs | length')" 4999
}

@test "a user's long commands and environments are refused with a message" {
    start_system --set job_max_text_kib=64
    asks "$BOB" submit "$(jq -nc '{cwd: "/", jobs: [{command: ("x" * 70000), gpus: 0}]}')"
    has "words" "$(verdict)" '^6 its command has 68 KiB, and the maximum is 64 .job_max_text_kib'
    asks "$BOB" submit "$(jq -nc '{cwd: "/", env: [range(0; 100) | "X\(.)=" + ("y" * 1000)], jobs: [{command: "true", gpus: 0}]}')"
    has "words" "$(verdict)" '^6 the environment has 9. KiB, and the maximum is 64'
    asks "$BOB" submit "$(jq -nc '{cwd: "/", jobs: [range(0; 40) | {command: ("x" * 60000), gpus: 0}]}')"
    has "words" "$(verdict)" '^6 the commands and other text of the request.s jobs exceed the maximum of 2048 KiB; split it'
    asks "$BOB" submit "$(jq -nc '{cwd: "/", jobs: [range(0; 30) | {command: ("x" * 60000), gpus: 0, hold: true}]}')"
    is "half as much" "$(verdict)" fine
    asks root submit "$(jq -nc '{cwd: "/", jobs: [{command: ("x" * 70000), gpus: 0, hold: true}]}')"
    is "root's" "$(verdict)" fine
}

@test "connections per user are limited, and a user without one gets one when all are taken" {
    start_system --set user_max_connections=4
    as "$BOB" berth submit -G 0 --hold -- true
    python3 "$E2E/crowd.py" "$BERTH_DIR/berth.sock" >"$ROOT/crowd" || fail_with "$(cat "$ROOT/crowd")"
    has "words" "$(cat "$ROOT/crowd")" "you have 4 connections .*user_max_connections"
    has "newcomer" "$(cat "$ROOT/crowd")" "the newcomer is answered"
}

@test "requests that wait for their answer count as what their user keeps in the daemon" {
    start_system --set user_max_buffer_mib=16
    as "$BOB" berth submit -G 0 --hold --array 0-9 -- true
    # Send this many waits, each with an id of this many bytes, and count the refused ones.
    cat >"$ROOT/waits.py" <<'END'
import json, socket, sys
path, id_bytes, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
wait = {"id": "x" * id_bytes, "method": "wait", "params": {"select": ["1"]}}
with socket.socket(socket.AF_UNIX) as s:
    s.connect(path)
    s.sendall((json.dumps(wait).encode() + b"\n") * n)
    s.sendall(b'{"id":1,"method":"status"}\n')
    refused = 0
    for line in s.makefile():
        answer = json.loads(line)
        if answer["id"] == 1:
            break
        refused += "user_max_buffer_mib" in answer["error"]["message"]
    print(refused)
END
    waits() { as "$1" python3 "$ROOT/waits.py" "$BERTH_DIR/berth.sock" "$2" "$3"; }
    is "a hundred" "$(waits "$BOB" 8 100)" 0
    [ "$(waits "$BOB" 8 400)" -gt 200 ]
    [ "$(waits "$BOB" 300000 40)" -ge 10 ]
    is "a hundred, when those are gone" "$(waits "$BOB" 8 100)" 0
    is "root's" "$(waits root 8 400)" 0
}

@test "a long list is made in pieces: other requests are answered in between" {
    start_system
    as "$BOB" sh -c 'seq 1 30000 | sed "s/.*/[hold] : line &/" >long.txt'
    as "$BOB" berth run --detach long.txt
    python3 "$E2E/pieces.py" "$BERTH_DIR/berth.sock" >"$ROOT/pieces" || fail_with "$(cat "$ROOT/pieces")"
    is "the order of the answers" "$(cat "$ROOT/pieces")" "status jobs 30000"
    python3 "$E2E/pieces.py" "$BERTH_DIR/berth.sock" explain >"$ROOT/pieces" || fail_with "$(cat "$ROOT/pieces")"
    is "the order of the answers" "$(cat "$ROOT/pieces")" "status explain 30000"
}

@test "a list that is made in pieces has each job once, also those that end or are run again meanwhile" {
    start_system
    as "$BOB" sh -c 'seq 1 10000 | sed "s/.*/[hold] : line &/" >long.txt'
    as "$BOB" berth run --detach long.txt
    as "$BOB" berth cancel 2-10000
    python3 "$E2E/meanwhile.py" "$BERTH_DIR/berth.sock" >"$ROOT/meanwhile" || fail_with "$(cat "$ROOT/meanwhile")"
    is "answers, jobs, and how often the first two" "$(cat "$ROOT/meanwhile")" "cancel requeue jobs 10000 1 1"
}

@test "a long queue is cancelled in pieces: others are answered meanwhile, and it finishes without its client" {
    start_system
    as "$BOB" sh -c 'seq 1 40000 | sed "s/.*/[hold] : line &/" >long.txt'
    as "$BOB" berth run --detach long.txt
    python3 "$E2E/pieces.py" "$BERTH_DIR/berth.sock" hold "$BOB" >"$ROOT/pieces" || fail_with "$(cat "$ROOT/pieces")"
    is "the order of the answers" "$(cat "$ROOT/pieces")" "status hold"
    as "$BOB" python3 -c 'import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(b"{\"id\":1,\"method\":\"cancel\",\"params\":{\"select\":[\"all\"]}}\n")' "$BERTH_DIR/berth.sock"
    as "$BOB" berth wait --all || true
    is "jobs that are left" "$(berth queue --json | jq '.jobs | length')" 0
    is "those that were cancelled" "$(berth queue --all --json | jq '[.jobs[] | select(.state == "CANCELLED")] | length')" 40000
}

@test "a user directory that does not answer for one user delays no other user: the uid replaces the name" {
    local uid
    uid=$(id -u "$BOB")
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/slow_names.so" "$E2E/slow_names.c" -ldl
    touch "$ROOT/slow"
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 LD_PRELOAD=$ROOT/slow_names.so SLOW_UID=$uid SLOW_WHILE=$ROOT/slow start_system
    as "$BOB" berth submit -G 0 --wait -- true
    is "bob's job for alice, while nobody knows him" "$(as "$ALICE" berth history --json | jq -r '.jobs[0].user')" "uid:$uid"
    as "$BOB" berth submit -G 0 --hold -- true
    rm "$ROOT/slow"
    "$AWAIT" until 60 "berth show 2 --json" jobs.0.user "$BOB"
    is "alice's own name" "$(as "$ALICE" berth submit --parsable -G 0 --wait -- true && berth show 3 --json | json jobs.0.user)" "3
$ALICE"
}

@test "settings of a user for whom the directory does not answer are read, and apply once it answers" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/slow_names.so" "$E2E/slow_names.c" -ldl
    echo 'private: false' >berthd.yaml
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 LD_PRELOAD=$ROOT/slow_names.so SLOW_NAME=$BOB SLOW_WHILE=$ROOT/slow \
        start_system --config "$PWD/berthd.yaml"
    touch "$ROOT/slow"
    printf 'users:\n  %s: {max_pending: 1}\n  %s: {max_pending: 2}\n' "$BOB" "$ALICE" >berthd.yaml
    kill -HUP "$(daemon_pid)"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=reloaded
    as "$ALICE" berth submit -G 0 --hold -- true
    rm "$ROOT/slow"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=users-found
    as "$BOB" berth submit -G 0 --hold -- true
    try_as "$BOB" berth submit -G 0 --hold -- true
    has "bob's second" "$err" 'has 1 of at most 1 pending.*user_max_pending'
    as "$ALICE" berth submit -G 0 --hold -- true
    try_as "$ALICE" berth submit -G 0 --hold -- true
    has "alice's third" "$err" 'has 2 of at most 2 pending.*user_max_pending'
}

@test "a folder in place of a GPU's lock stops neither the daemon nor the GPU" {
    start_system
    stop_daemon
    lock=$(ls "$BERTH_DIR"/sim/berth-gpu-*-1)
    rm "$lock"
    as root mkdir "$lock"
    chown "$BOB" "$lock"
    start_system
    is "the cards" "$(berth gpus --json | jq -c '[.gpus[].state]')" '["up","up"]'
    has "a line in the log" "$(cat "$BERTH_DIR/daemon.log")" "event=gpu-lock-blocked path=$lock"
    as "$ALICE" berth submit --gpu-ids 1 --wait -- true
}

@test "another user's folder at the socket's place does not prevent connections" {
    local uid
    uid=$(id -u "$ALICE")
    rm -rf "/tmp/berth-$uid" # left by an earlier user with that uid
    as "$BOB" mkdir "/tmp/berth-$uid"
    start_alone() { as "$ALICE" env -u BERTH_DIR -u XDG_RUNTIME_DIR BERTH_LOCK_DIR="$BERTH_LOCK_DIR" "$@"; }
    chmod 1777 "$BERTH_LOCK_DIR"
    start_alone berth daemon start --sim 1
    start_alone berth submit --wait -G 0 -- true
    is "its socket" "$(start_alone berth status --json | json daemon.socket)" \
        "$USERS_HOME/alice/.local/state/berth/run/berth.sock"
    # Removing the folder again does not help either.
    rmdir "/tmp/berth-$uid"
    start_alone berth submit --wait -G 0 -- true
    start_alone berth daemon stop
}

@test "a log that grows too large keeps its head and its end, and says what was cut out" {
    start_system --set job_log_max_mib=4
    # It goes on printing until its log has been cut, and then prints a last line.
    as "$BOB" berth submit -G 0 --wait --log "$USERS_HOME/bob/long.log" -- sh -c \
        'echo first; until grep -q "were cut out" long.log; do head -c 1000000 /dev/zero | tr "\0" x; done; echo last'
    log=$USERS_HOME/bob/long.log
    is "its first line" "$(head -c 5 "$log")" first
    is "its last line" "$(tail -n 1 "$log" | tail -c 5)" last
    has "what it says" "$(cat "$log")" "^berth: [0-9]+ MiB of output were cut out of this log here: it has reached its largest size"
    is "it is no longer than it may be" "$(($(stat -c %s "$log") <= 4500000))" 1
    # A short log is left alone.
    as "$BOB" berth submit -G 0 --wait --log "$USERS_HOME/bob/short.log" -- sh -c 'head -c 3000000 /dev/zero'
    is "a short one" "$(stat -c %s "$USERS_HOME/bob/short.log")" 3000000
}

@test "the log of an interactive job is bounded like any other, and its client goes on behind the cut" {
    start_system --set job_log_max_mib=4
    for how in --interactive --pty; do
        try_as "$BOB" berth submit -G 0 $how --log "$USERS_HOME/bob/on$how.log" -- sh -c \
            'echo first; n=0; until grep -q "were cut out" "$1" || [ $((n += 1)) -gt 30 ]; do head -c 1000000 /dev/zero | tr "\0" x; echo; done; echo last' sh "on$how.log"
        is "status" "$status" 0
        log=$USERS_HOME/bob/on$how.log
        is "it is no longer than it may be" "$(($(stat -c %s "$log") <= 4500000))" 1
        for text in "$log" "$ROOT/out"; do
            is "the first and the last word of $text" "$(head -c 5 "$text") $(tail -c 6 "$text" | tr -d '\r\n' | tail -c 4)" "first last"
        done
    done
}

@test "the environments of one user's jobs are bounded, each distinct one counted once" {
    start_system --set job_max_text_kib=4000
    cat >envs.py <<'PY'
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.environ["BERTH_DIR"] + "/berth.sock")
    lines = s.makefile("rb")

    def submit(tag):
        env = [f"A{i}={tag}" + "x" * 100000 for i in range(35)]
        job = {"argv": ["true"], "gpus": 0, "hold": True}
        params = {"jobs": [job], "cwd": "/", "umask": 18, "env": env}
        s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "submit", "params": params}).encode() + b"\n")
        answer = json.loads(lines.readline())
        return answer["error"]["message"] if "error" in answer else None

    n = 0
    for _ in range(20):
        assert submit("same") is None
    while (refused := submit(str(n))) is None:
        n += 1
    assert submit("same") is None, "one that is there already"
print(n, refused)
PY
    as "$BOB" python3 "$PWD/envs.py" >said
    has words "$(cat said)" "^7[56] the environments of $BOB's jobs would take [0-9]+ MiB; the maximum is 256; pass on fewer variables with --export$"
    as "$BOB" berth submit --hold -- true
    as "$BOB" berth cancel --all >/dev/null
    is 'once they have gone' "$(as "$BOB" python3 "$PWD/envs.py" | cut -d ' ' -f 1)" "$(cut -d ' ' -f 1 said)"
}

# A line permanently takes some 80 bytes of the sixteenth of keep_mib that a user may have.
@test "one user's remembered lines are bounded; --fresh makes room; other users are not affected" {
    mkdir -p -m 755 "$BERTH_DIR"
    echo 'keep_events: 100' >"$BERTH_DIR/config.yaml"
    start_system
    as "$BOB" sh -c 'seq -f "[hold] echo %.0f" 1234 >many.txt; echo "[gpus=0] echo new" >new.txt'
    as "$BOB" berth run --detach many.txt
    as "$BOB" berth cancel --all
    berth submit -G 0 --wait -- true
    printf '%s: 1\n' keep_jobs keep_mib >>"$BERTH_DIR/config.yaml"
    kill -HUP "$(daemon_pid)"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" 'event=pruned jobs=1234' >/dev/null
    try_as "$BOB" berth run --detach new.txt
    is "a new file" "$status" 6
    has "words" "$err" "remembers the ended lines of .*'s jobs files, and they take [0-9]+ KiB; the maximum is 64 "
    as "$BOB" berth run --detach many.txt
    is "the lines again" "$(berth queue --json | jq '.jobs | length')" 0
    echo '[gpus=0] true' >root.txt
    berth run root.txt
    as "$BOB" sh -c ': >many.txt'
    as "$BOB" berth run --fresh many.txt
    as "$BOB" berth run new.txt
}
