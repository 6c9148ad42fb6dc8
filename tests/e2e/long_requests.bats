#!/usr/bin/env bats
# Requests about many jobs, which the daemon carries out in pieces: events between two pieces.

load lib

# Send several requests at once on one connection, one per line; print the answers as they come.
ask_all()
{
    printf '%s\n' "$@" | timeout "$LIMIT" python3 -c 'import socket, sys
lines = sys.stdin.buffer.readlines()
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(b"".join(lines))
    f = s.makefile()
    for _ in lines:
        print(f.readline(), end="")' "$BERTH_DIR/berth.sock"
}

# `survives N VERB...` on jobs 2 to 701: its answer names all of them, though the daemon dies
# after its Nth commit (unless that is before it is ready).
survives()
{
    BERTH_CRASH_AT=daemon-after-commit:$1 timeout "$LIMIT" berth daemon start --sim 2 >/dev/null 2>&1 || start_daemon 2
    shift
    try berth "$@" 2-701 --json
    if [ "$status" -eq 4 ]; then # it had died before the request
        start_daemon 2
        try berth "$@" 2-701 --json
    fi
    [ "$status" -eq 0 ] || fail_with "$*: $status $err"
    case $err in *'was restarted'*) revived=$((revived + 1)) ;; esac
    is "ids of $*" "$(jq -c '.ids + (.ended // []) | [length, (unique | length), min, max]' <<<"$out")" '[700,700,2,701]'
    stop_daemon
}

@test "a request repeated after the daemon died between two pieces is answered for all jobs, and nothing is done twice" {
    local n revived=0
    start_daemon 2
    # Held; once released they wait for the first, which stays held.
    { echo '[hold gpus=0 name=gate] : gate'; seq 700 | sed 's/.*/[hold gpus=0 after=gate] : line &/'; } >long.txt
    berth run --detach long.txt
    stop_daemon
    for n in 3 4 5 6; do
        survives "$n" release
        survives "$n" hold
        survives "$n" cancel
        survives "$n" requeue
        survives "$n" hold
    done
    has 'how many died' "$revived" '^[1-9]'
    start_daemon 2
    for kind in released ended requeued; do
        is "events $kind" "$(events_with kind=$kind | wc -l)" 2800
    done
}

@test "a client that asks for it is told that its long request is in progress" {
    start_daemon 2
    seq 30000 | sed 's/.*/[hold gpus=0] : line &/' >long.txt
    berth run --detach long.txt
    stop_daemon
    BERTH_CRASH_AT=request-takes-long timeout "$LIMIT" berth daemon start --sim 2 >/dev/null
    out=$(timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" <<'PY'
import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    request = {"id": "x", "method": "cancel", "params": {"select": ["--all"]}, "progress": True}
    s.sendall(json.dumps(request).encode() + b"\n")
    for line in s.makefile():
        print(line[:80].strip())
        if "result" in line or "error" in line:
            break
PY
)
    is 'what came' "$(uniq <<<"$out")" '{"jsonrpc":"2.0","method":"progress","params":{"id":"x"}}
{"jsonrpc":"2.0","id":"x","result":{"ids":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1'
}

@test "an array is run again in pieces, and ends once" {
    start_daemon 2
    berth submit --gpus 0 --array 0-599 -- sh -c 'echo $BERTH_ARRAY_TASK_ID >>ran; false'
    try berth wait 1
    is status "$status" 1
    try berth requeue 1 --json
    is requeued "$(jq '.ids | length' <<<"$out")" 601
    try berth wait 1
    is status "$status" 1
    is 'its ends' "$(events_with kind=ended job=1 | wc -l)" 2
    is 'how often each ran' "$(sort ran | uniq -c | awk '{print $1}' | sort -u)" 2
}

@test "tasks of an array that are named run again in pieces, and their array ends once" {
    start_daemon 2
    berth submit --gpus 0 --array 0-599 -- false
    try berth wait 1
    # The first piece of them is pending again when they are cancelled, and the others are not.
    out=$(ask_all '{"id":"requeue","method":"requeue","params":{"select":["1_[0-599]"],"hold":true}}' \
        '{"id":"cancel","method":"cancel","params":{"select":["1_[0-249]"]}}')
    is requeued "$(jq -c 'select(.id == "requeue") | .result.ids | [length, (unique | length)]' <<<"$out")" '[601,601]'
    is 'its ends' "$(events_with kind=ended job=1 | wc -l)" 1
    berth cancel 1
    wait_for_event --after "$(seq_of kind=ended job=1)" kind=ended job=1
    is 'its ends with all back' "$(events_with kind=ended job=1 | wc -l)" 2
}

@test "an array that is cancelled during its requeue stays cancelled" {
    start_daemon 2
    berth submit --gpus 0 --array 0-2999 --hold -- true
    for tasks in 0-999 1000-1999 2000-2999; do
        berth cancel "1_[$tasks]" >/dev/null
    done
    # The signal comes when some are pending again: with the first event that says so.
    out=$(timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" <<'PY'
import json, socket, sys
def ask(method, **params):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(json.dumps({"id": method, "method": method, "params": params}).encode() + b"\n")
    return s.makefile()
events = ask("events", since=0, kinds=["requeued"], follow=True)
events.readline()
requeue = ask("requeue", select=["1_[0-2999]"], hold=True)
events.readline()
print(ask("cancel", select=["1"]).readline(), requeue.readline(), sep="", end="")
PY
)
    is cancelled "$(jq -c 'select(.id == "cancel") | .result.ids' <<<"$out")" '[1]'
    is 'its ends' "$(events_with kind=ended job=1 | wc -l)" 2
    is 'its state' "$(job_field 1 state)" CANCELLED
    is 'what waits' "$(berth queue --json | jq '.jobs | length')" 0
    # Those not yet pending again were refused; a fast daemon has all of them by then.
    has 'how many were back' "$(jq 'select(.id == "requeue") | .result.ids | length' <<<"$out")" '^[1-9]'
}

@test "a wait that starts in pieces has each job once, even jobs that end or run again meanwhile" {
    start_daemon 2
    seq 10000 | sed 's/.*/[hold gpus=0] : true/' >long.txt
    berth run --detach long.txt
    berth cancel 2-10000
    out=$(ask_all '{"id":"wait","method":"wait","params":{"select":["1-10000"]}}' \
        '{"id":"cancel","method":"cancel","params":{"select":["1"]}}' \
        '{"id":"requeue","method":"requeue","params":{"select":["2","9999"]}}')
    is answers "$(jq -c .id <<<"$out" | sort | paste -sd ' ')" '"cancel" "requeue" "wait"'
    is jobs "$(jq -c 'select(.id == "wait") | .result.jobs | [length, (map(.id) | unique | length)]' <<<"$out")" '[10000,10000]'
    out=$(ask_all '{"id":1,"method":"wait","params":{"select":["1-10000"],"resolve":true}}')
    is words "$(jq -c '.result.select | [length, (unique | length)]' <<<"$out")" '[10000,10000]'
    # A client that disconnects before its request begins leaves nothing behind.
    python3 -c 'import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(b"{\"id\":1,\"method\":\"wait\",\"params\":{\"select\":[\"1-10000\"]}}\n")' "$BERTH_DIR/berth.sock"
    berth requeue 1
    berth wait 1
}

@test "a job that ends twice does not count for another job of the same wait" {
    start_daemon 2
    mkfifo gate
    berth submit --gpus 0 --hold -- false
    berth submit --gpus 0 -- sh -c 'read line <gate; exit 3'
    wait_until_running 2
    background waits berth wait 1 2 --json
    wait_for_clients 1
    berth release 1
    wait_for_event kind=ended job=1 attempt=1
    berth requeue 1
    wait_for_event kind=ended job=1 attempt=2
    kill -0 "$pid_of_waits" || fail_with "it has not waited for job 2: $(cat "$ROOT/waits.out")"
    timeout "$LIMIT" bash -c 'echo go >gate'
    finish waits
    is jobs "$(jq -c '[.jobs[].id]' <<<"$out")" '[1,2]'
}

@test "a follower of all events misses none and gets none twice, though more arrive while they are read" {
    start_daemon 2
    seq 10000 | sed 's/.*/[hold gpus=0] : line &/' >long.txt
    berth run --detach long.txt
    berth cancel 1-10000
    timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" <<'PY' || fail_with "not all events came, or not in order"
import json, socket, sys
job = {"command": "line", "gpus": 0, "hold": True}
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(b'{"id":1,"method":"events","params":{"since":1,"follow":true}}\n')
    for i in range(20):
        s.sendall(json.dumps({"id": 2 + i, "method": "submit", "params": {"jobs": [job], "cwd": "/"}}).encode() + b"\n")
    f, seqs, begun, last = s.makefile(), [], False, 0
    while last < 10020:
        message = json.loads(f.readline())
        if message.get("id") == 1:
            events, begun = message["result"]["events"], True
        elif message.get("method") == "event":
            assert begun, "an event before the answer"
            events = [message["params"]]
        else:
            events = []
        seqs += [e["seq"] for e in events if "seq" in e]
        last = max([last] + [e.get("job") or 0 for e in events if e["kind"] == "submitted"])
assert seqs == list(range(2, seqs[-1] + 1)), seqs[:10]
PY
}

@test "a long line is read apart: others are answered meanwhile, and who sent it may leave" {
    start_daemon 2
    timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" <<'PY' || fail_with "not answered in this order"
import json, socket, sys
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s
def line(n):
    return b'{"id":"long","method":"status","params":{"x":"' + b"x" * n + b'"}}\n'
def next_id(s):
    return json.loads(s.makefile().readline())["id"]
long, gone, short = connect(), connect(), connect()
long.sendall(line(50_000_000) + b'{"id":"behind","method":"status"}\n')
short.sendall(b'{"id":"short","method":"status"}\n')
long.setblocking(False)
assert next_id(short) == "short"
try:
    raise SystemExit(f"the long line is answered first: {long.recv(100)}")
except BlockingIOError:
    long.setblocking(True)
gone.sendall(line(20_000_000)) # read next
gone.close()
answers = long.makefile()
assert [json.loads(answers.readline())["id"] for _ in range(2)] == ["long", "behind"]
long.sendall(line(1_000_000)[:-5] + b"\n")
assert json.loads(answers.readline())["error"]["code"] == -32700
long.sendall(line(10_000_000)) # the daemon stops while it reads this
PY
    stop_daemon
}

@test "what is done to an array most of whose tasks have left it goes in pieces, and is the array's" {
    local verb order meanwhile=0
    start_daemon 2
    berth submit --gpus 0 --hold -- true
    berth submit --gpus 0 --array 0-999 --after 1 -- true
    berth hold '2_[0-999]' >/dev/null
    for verb in release hold priority signal cancel; do
        out=$(ask_all "{\"id\":\"$verb\",\"method\":\"$verb\",\"params\":{\"select\":[\"2\"],\"priority\":-5,\"signal\":1}}" \
            '{"id":"status","method":"status"}')
        # On a machine so busy that the first piece used up the user's time in a round, the
        # rest may be done before the user's next request is read.
        order=$(jq -r .id <<<"$out" | paste -sd ' ')
        case $order in
        "status $verb") meanwhile=$((meanwhile + 1)) ;;
        "$verb status") ;;
        *) fail_with "answered to $verb: $order" ;;
        esac
        if [ "$verb" = signal ]; then
            is 'signal' "$(jq -r '.error.message // empty' <<<"$out")" 'no task of array 2 is running'
        else
            is "$verb" "$(jq -c "select(.id == \"$verb\") | .result.ids" <<<"$out")" '[2]'
        fi
    done
    [ "$meanwhile" -gt 0 ] || fail_with 'nothing was answered between the pieces of any verb'
    is released "$(events_with kind=released | wc -l)" 1000
    is held "$(events_with kind=held | wc -l)" 2000
    is priorities "$(events_with kind=updated | wc -l)" 1001
    is ended "$(events_with kind=ended | wc -l)" 1001
    is 'what waits' "$(berth queue --json | jq -c '[.jobs[].id]')" '[1]'
    # All tasks have left it: an action that applies to none of them says why.
    berth submit --gpus 0 --array 0-199 --after 1 -- true
    berth hold '1003_[0-199]' >/dev/null
    berth release 1003
    try berth release 1003
    is words "$err" 'berth: job 1003 is not held, and none of its tasks is'
}

@test "an array whose cancel was cut short by the daemon's death is cancelled to its end by the next one" {
    local pid
    start_daemon 2
    berth submit --gpus 0 --hold -- true
    berth submit --gpus 0 --array 0-1999 --after 1 -- true
    berth hold '2_[0-999]' >/dev/null
    berth hold '2_[1000-1999]' >/dev/null
    pid=$(daemon_pid)
    # It dies at the first event of an end: then one piece is durable.
    timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" "$pid" <<'PY'
import json, os, signal, socket, sys
def ask(method, **params):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(json.dumps({"id": method, "method": method, "params": params}).encode() + b"\n")
    return s, s.makefile()
follower, events = ask("events", since=0, kinds=["ended"], follow=True)
events.readline()
asker, answer = ask("cancel", select=["2"], why="no more")
events.readline()
os.kill(int(sys.argv[2]), signal.SIGKILL)
PY
    "$AWAIT" pid "$LIMIT" "$pid"
    start_daemon 2
    wait_for_event kind=ended job=2
    is 'its state' "$(job_field 2 state)" CANCELLED
    is 'what waits' "$(berth queue --json | jq -c '[.jobs[].id]')" '[1]'
    is 'its ends' "$(events_with kind=ended | wc -l)" 2001
    is 'who cancelled them' "$(berth history --limit 5000 --json | jq -c '[.jobs[].cancelled_by] | unique')" "[\"$(id -un) (no more)\"]"
}

@test "the cancel of an array ends its tasks that start meanwhile, too" {
    start_daemon 2
    berth submit --gpus 0 --hold -- true
    berth submit --gpus 0 --array 0-299 --after-any 1 -- sleep 1000
    berth hold '2_[0-299]' >/dev/null
    berth release 2
    # From the first cancel on all of them may start.
    ask_all '{"id":1,"method":"cancel","params":{"select":["1"]}}' '{"id":2,"method":"cancel","params":{"select":["2"]}}'
    wait_for_event kind=ended job=2
    is 'what is left' "$(berth queue --json | jq '.jobs | length')" 0
}

# `submission N JOB [TOKEN]`: a request to submit N of this job, in which %d is each one's
# number.
submission()
{
    jq -nc --arg n "$1" --arg job "$2" --arg token "${3:-}" \
        '{id: "submit", method: "submit", params: {cwd: "/", jobs: [range($n | tonumber) as $i | $job | gsub("%d"; "\($i)") | fromjson]}}
            + if $token == "" then {} else {token: $token} end'
}

@test "a long submission is read in pieces: others are answered meanwhile, and its jobs enter together" {
    start_daemon 2
    out=$(ask_all "$(submission 10000 '{"command": "true %d", "gpus": 0, "hold": true}')" '{"id":"status","method":"status"}')
    is 'who is answered first' "$(jq -r .id <<<"$out" | paste -sd ' ')" 'status submit'
    is 'what waited by then' "$(jq 'select(.id == "status") | .result.counts.HELD' <<<"$out")" 0
    is ids "$(jq -c 'select(.id == "submit") | .result.ids == [range(1; 10001)]' <<<"$out")" true
}

# `part ID FIRST LAST MORE [METHOD]`: a request with these lines of one jobs file.
part()
{
    jq -nc --arg id "$1" --arg first "$2" --arg last "$3" --argjson more "$4" --arg method "${5:-file.sync}" \
        '{id: $id, method: $method, params: {path: "/parts", cwd: "/", more: $more,
            jobs: [range($first | tonumber; ($last | tonumber) + 1) as $i | {key: "k\($i)", line: $i, command: ": \($i)", gpus: 0, hold: true}]}}'
}

@test "the lines of a jobs file are read in pieces: others are answered meanwhile, and its parts keep their order" {
    start_daemon 2
    out=$(ask_all "$(part one 1 40000 true)" '{"id":"status","method":"status"}' "$(part two 40001 40010 true)" "$(part three 40011 49010 false)")
    is 'who is answered first' "$(jq -r .id <<<"$out" | paste -sd ' ')" 'status one two three'
    is 'a part' "$(jq -c 'select(.id == "two") | .result' <<<"$out")" '{}'
    is 'the whole' "$(jq -c 'select(.id == "three") | .result | [.new, (.lines | length), (.lines | map(.id) == [range(1; 49011)])]' <<<"$out")" \
        '[49010,49010,true]'
    out=$(ask_all "$(part one 1 40000 true file.plan)" '{"id":"status","method":"status"}' "$(part two 40001 49011 false file.plan)")
    is 'who is answered first, of a plan' "$(jq -r .id <<<"$out" | paste -sd ' ')" 'status one two'
    is 'lines of the plan' "$(jq -c 'select(.id == "two") | .result.lines | [length, .[0].key, .[49010].key]' <<<"$out")" '[49011,"k1","k49011"]'
}

@test "a client that leaves while a part of its file is read leaves nothing behind" {
    start_daemon 2
    part one 1 20000 true | timeout "$LIMIT" python3 -c 'import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(sys.stdin.buffer.read())' "$BERTH_DIR/berth.sock"
    out=$(ask_all "$(part two 1 10 false)")
    is 'another connection' "$(jq -c '.result | [.new, (.lines | length)]' <<<"$out")" '[10,10]'
    is 'jobs' "$(berth status --json | jq .counts.HELD)" 10
}

# The ids of the pending jobs of `part`'s file.
waiting_ids()
{
    berth queue --json | jq -c '[.jobs[].id]'
}

@test "a jobs file that lacks a part, as that was refused, is not taken for the whole" {
    local bad one two
    start_daemon 2
    ask_all "$(part all 1 6 false)" >/dev/null
    # One of its lines, the request, or its JSON is bad; the other parts are sent before the
    # client learns of that.
    bad=$(part bad 1 2 true)
    for bad in "$(jq -c '.params.jobs[1].command = 7' <<<"$bad")" "$(jq -c '.params.jobs = 7' <<<"$bad")" "{$bad"; do
        out=$(ask_all "$bad" "$(part two 3 4 true)" "$(part three 5 6 false)")
        is 'what is refused' "$(jq -r 'select(.error) | .id' <<<"$out" | sort | sed 's/null/bad/' | paste -sd ' ')" 'bad three'
        has 'why' "$(jq 'select(.id == "three") | .error.message' <<<"$out")" 'part of it was refused.* send all of it again'
        is 'what waits' "$(waiting_ids)" '[1,2,3,4,5,6]'
    done
    # Sent again on the same connection: by a client that says where it begins, or is refused
    # once.
    bad=$(jq -c '.params.jobs[1].command = 7' <<<"$(part bad 1 2 true)")
    out=$(ask_all "$bad" "$(jq -c '.params.first = true' <<<"$(part one 1 4 true)")" "$(part two 5 7 false)")
    is 'with its first' "$(jq -c 'select(.id == "two") | .result | [.new, (.lines | length)]' <<<"$out")" '[1,7]'
    out=$(ask_all "$bad" "$(part one 1 8 false)" "$(part two 1 8 false)")
    is 'without' "$(jq -c 'if .error then .error.code else .result.new end' <<<"$out" | paste -sd ' ')" '2 6 1'
    is 'what waits' "$(waiting_ids)" '[1,2,3,4,5,6,7,8]'
    # An unreadable request could have been for any file: each file is refused once, and then
    # accepted.
    one=$(jq -c '.params.path = "/other"' <<<"$(part other 1 1 false)")
    two=$(part two 1 8 false)
    out=$(ask_all "{$bad" "$two" "$one" "$two" "$one" "$two")
    is 'each once' "$(jq -c 'if .error then .error.code else .result.new end' <<<"$out" | paste -sd ' ')" '-32700 6 6 0 1 0'
    # Another file came between them.
    out=$(ask_all "$(part one 1 4 true)" "$(jq -c '.params.path = "/other"' <<<"$(part other 1 1 false)")" "$(part two 5 8 false)")
    is 'with another between' "$(jq -c 'if .error then .error.code else .result.new // 0 end' <<<"$out" | paste -sd ' ')" '0 0 6'
    # A part's token does not represent its lines.
    out=$(ask_all "$(jq -c '.token = "0123456789abcdef"' <<<"$(part one 1 4 true)")")
    out=$(ask_all "$(jq -c '.token = "0123456789abcdef"' <<<"$(part one 1 4 true)")" "$(part two 5 8 false)")
    is 'sent again' "$(jq -c 'select(.id == "two") | .result | [.new, (.lines | length)]' <<<"$out")" '[0,8]'
    is 'what waits' "$(waiting_ids)" '[1,2,3,4,5,6,7,8,9]'
}

@test "the rest of a jobs file is dropped with its connection, or the daemon, while its first part is read" {
    local how pid
    start_daemon 2
    ask_all "$(part all 1 6 false)" >/dev/null
    part one 1 300000 true >one
    part two 300001 300002 false >two
    for how in leave stop; do
        pid=$(daemon_pid)
        # The status is requested after both, and answered before them.
        timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" "$how" "$pid" <<'PY' || fail_with "not in this order"
import os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(open("one", "rb").read() + open("two", "rb").read() + b'{"id":"status","method":"status"}\n')
    assert b'"id":"status"' in s.makefile("rb").readline()
    if sys.argv[2] == "leave":
        s.close()
    os.kill(int(sys.argv[3]), signal.SIGTERM)
    if sys.argv[2] == "stop":
        while s.recv(65536):
            pass
PY
        "$AWAIT" pid "$LIMIT" "$pid"
        start_daemon 2
        is "what waits, $how" "$(waiting_ids)" '[1,2,3,4,5,6]'
    done
}

@test "changes while a long submission is read count: all of it is queued, or nothing" {
    echo 'pending_max: 15000' >limits.yaml
    timeout "$LIMIT" berth daemon start --sim 2 --config limits.yaml
    big=$(submission 10000 '{"command": "true %d", "gpus": 0, "hold": true, "unique": true}')
    # One of them is in the queue before they are.
    out=$(ask_all "$big" "$(submission 1 '{"command": "true 700", "gpus": 0, "hold": true}')")
    is 'the one' "$(jq -sc '.[0].result.ids' <<<"$out")" '[1]'
    has 'the others' "$(jq -s '.[1].error.message' <<<"$out")" 'job 701 of 10000: job 1 .HELD. has the same command'
    is 'what waits' "$(berth queue --json | jq -c '[.jobs[].id]')" '[1]'
    # Each of the two fits, but not both.
    big=$(submission 10000 '{"command": "true", "gpus": 0, "hold": true}')
    out=$(ask_all "$big" "$big")
    is 'one entered' "$(jq -s 'map(.result.ids // [] | length) | sort == [0, 10000]' <<<"$out")" true
    has 'the other' "$(jq -s 'map(.error.message // empty)' <<<"$out")" 'the queue is full: 10001 of at most 15000'
    # The name that all of them depend on goes to another job.
    berth cancel all
    gate='{"command": "true", "gpus": 0, "hold": true, "name": "gate"}'
    first=$(ask_all "$(submission 1 "$gate")" | jq '.result.ids[0]')
    out=$(ask_all "$(submission 10000 '{"command": "true", "gpus": 0, "after": [{"type": "success", "name": "gate"}]}')" \
        "$(submission 1 "$gate")")
    is 'how many' "$(jq -sc 'map(.result.ids | length)' <<<"$out")" '[1,10000]'
    is 'what they wait for' "$(berth queue --all --json | jq -c '[.jobs[].after // [] | .[].job] | unique')" "[$first]"
    # Its dependency is cancelled: it is refused, or cancelled as by a cancel after it.
    berth cancel all
    berth submit --gpus 0 --hold -- true
    gate=$(berth queue --json | jq '.jobs[0].id')
    out=$(ask_all "$(submission 10000 "{\"command\": \"true\", \"gpus\": 0, \"after\": [{\"type\": \"success\", \"job\": $gate}]}")" \
        "{\"id\":\"cancel\",\"method\":\"cancel\",\"params\":{\"select\":[\"$gate\"]}}")
    has 'they entered, or not' "$(jq -c 'select(.id == "submit") | .error.message // (.result.ids | length)' <<<"$out")" \
        '^10000$|it can never start'
    is 'what waits' "$(berth queue --json | jq '.jobs | length')" 0
}

@test "a stop in the middle of a long submission: it is refused, or cancelled with the rest" {
    local how pid
    for how in false true; do
        start_daemon 2
        pid=$(daemon_pid)
        out=$(ask_all "$(submission 10000 '{"command": "true", "gpus": 0, "hold": true}')" \
            "{\"id\":\"stop\",\"method\":\"stop\",\"params\":{\"cancel\":$how}}")
        has "the words, cancel $how" "$(jq 'select(.id == "submit") | .error.message' <<<"$out")" 'the daemon is stopping'
        "$AWAIT" pid "$LIMIT" "$pid"
        start_daemon 2
        is "what is left, cancel $how" "$(berth queue --all --json | jq '.jobs | length')" 0
        stop_daemon
    done
}

@test "a long submission asked again with its token is carried out once, also by another daemon" {
    local i pid token big
    start_daemon 2
    for i in 1 2; do
        token=0123456789abcdef-$i
        big=$(submission 10000 '{"command": "true", "gpus": 0, "hold": true}' "$token")
        # Again on the same connection, while it is in progress; then the daemon dies.
        out=$(ask_all "$big" "{\"id\":1,\"method\":\"submit\",\"token\":\"$token\"}")
        has "the first $i" "$(jq -s 'map(.error.message // empty)' <<<"$out")" 'was sent again and is answered there'
        is "ids $i" "$(jq -s 'map(.result.ids // [] | length) | sort == [0, 10000]' <<<"$out")" true
        ids=$(jq -sc 'map(.result.ids // empty)[0]' <<<"$out")
        kill_daemon
        start_daemon 2
        is "ids asked again $i" "$(ask_all "$big" | jq -c .result.ids)" "$ids"
        # A daemon that dies before it has answered: afterwards all of it is there once, or
        # nothing.
        big=$(submission 10000 '{"command": "true", "gpus": 0, "hold": true}' "$token-2")
        pid=$(daemon_pid)
        timeout "$LIMIT" python3 -c '
import os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(sys.stdin.buffer.read() + b"{\"id\":\"status\",\"method\":\"status\"}\n")
    s.recv(1)
    os.kill(int(sys.argv[2]), signal.SIGKILL)' "$BERTH_DIR/berth.sock" "$pid" <<<"$big"
        "$AWAIT" pid "$LIMIT" "$pid"
        start_daemon 2
        is "asked again $i" "$(ask_all "$big" | jq -c '.result.ids | length')" 10000
        is "what waits $i" "$(berth status --json | json counts.HELD)" "$((20000 * i))"
    done
}

@test "with more different requests than one plan looks at, each has a reason, and one far behind starts" {
    timeout "$LIMIT" berth daemon start --sim 1
    berth submit -- sleep 1000
    wait_until_running 1
    for n in {1..5000}; do echo "[vram=$((10000 + n))M] true"; done >many.txt
    echo '[gpus=0] true' >>many.txt
    berth run --detach many.txt
    wait_for_event kind=ended job=5002
    has 'why the first waits' "$(berth explain 2)" 'held by job 1'
    has 'why the last waits' "$(berth explain 5001)" 'held by job 1'
    timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" <<'PY' || fail_with "not each was told once"
import json, socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(b'{"id":1,"method":"events","params":{"since":0,"follow":true,"kinds":["waiting"]}}\n')
    f, told = s.makefile(), []
    while len(told) < 5000:
        message = json.loads(f.readline())
        if message.get("method") == "event":
            told.append(message["params"]["job"])
            assert message["params"]["reason"] == "GpuBusy", message
assert sorted(told) == list(range(2, 5002))
PY
}

@test "read-only requests cause no plan" {
    plans() { berth metrics --prometheus | sed -n 's/^berth_scheduler_cycle_seconds_count //p'; }
    timeout "$LIMIT" berth daemon start # without GPUs, whose samples come at any time
    berth submit --gpus 0 --hold -- true
    before=$(plans)
    for _ in 1 2 3; do
        berth status
        berth queue
        berth explain 1
    done
    is plans "$(plans)" "$before"
    berth priority 1 5
    [ "$(plans)" -gt "$before" ] || fail_with "no plan was made for a change"
}
