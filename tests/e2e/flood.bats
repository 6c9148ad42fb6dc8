#!/usr/bin/env bats
# One user of a shared daemon can take only a share of its connections, its time and its
# memory. With two real users.

load lib
load users

@test "a user's connections are limited, the next one gets an error, and others connect as before" {
    start_system
    cat >"$ROOT/hold.py" <<'PY'
import socket, sys
held = []
while True:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    try:
        s.sendall(b'{"id":1,"method":"status"}\n')
    except BrokenPipeError:
        pass  # already refused; the reason can be read
    answer = s.makefile().readline()
    if '"error"' in answer:
        print(len(held), answer.strip(), flush=True)
        break
    held.append(s)
sys.stdin.read()
PY
    mkfifo "$ROOT/gate"
    as "$BOB" python3 "$ROOT/hold.py" "$BERTH_DIR/berth.sock" <"$ROOT/gate" >"$ROOT/bob.out" 2>&1 3>&- &
    exec 6>"$ROOT/gate"
    wait_for_output bob "64 .*maximum for one user"
    as "$ALICE" berth submit -G 0 --wait -- true
    try_as "$BOB" berth queue
    echo "$err" >&2; is "exit status" "$status" 6; has "words" "$err" "maximum for one user"
    exec 6>&-
}

@test "a user who floods the socket is read later, and others are served meanwhile" {
    start_system
    cat >"$ROOT/flood.py" <<'PY'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
job = {"argv": ["true"], "gpus": 0, "hold": True}
ask = {"id": 1, "method": "submit", "params": {"cwd": "/", "jobs": [job] * 3000}}
s.sendall(json.dumps(ask).encode() + b"\n")
f = s.makefile()
f.readline()
one = b'{"id":2,"method":"jobs","params":{"fields":["id","state","command"]}}\n'
s.sendall(one * 400)
print("sent", flush=True)
for n in range(400):
    if '"result"' not in f.readline():
        print("lost", n)
        break
else:
    print("all answered", flush=True)
PY
    as "$BOB" python3 "$ROOT/flood.py" "$BERTH_DIR/berth.sock" >"$ROOT/bob.out" 2>&1 3>&- &
    wait_for_output bob sent
    for _ in 1 2 3 4 5; do as "$ALICE" berth submit -G 0 --wait -- true; done
    wait_for_output bob "all answered"
}

@test "an endless line closes its sender's connection and disturbs no other client" {
    start_system
    cat >"$ROOT/long.py" <<'PY'
import socket, sys
held = []
gone = 0
for n in range(12):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    try:
        for _ in range(60):
            s.sendall(b"x" * (1 << 20))
        held.append(s)
    except OSError:
        gone += 1
print("gone" if gone else "none has gone", flush=True)
PY
    as "$BOB" python3 "$ROOT/long.py" "$BERTH_DIR/berth.sock" >"$ROOT/bob.out" 2>&1
    is "what became of bob" "$(cat "$ROOT/bob.out")" gone
    as "$ALICE" berth submit -G 0 --wait -- true
}

@test "callers who never cease do not keep the daemon from those whom it has accepted" {
    local callers=$ROOT/callers.so
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$callers" "$E2E/endless_callers.c" -ldl
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 LD_PRELOAD=$callers CALLERS_WHILE=$ROOT/calling start_system
    cat >"$ROOT/served.py" <<'PY'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile()
def call(method, params):
    s.sendall(json.dumps({"id": 1, "method": method, "params": params}).encode() + b"\n")
    return json.loads(f.readline())["result"]
call("status", {})
open(sys.argv[2], "w").close()
job = call("submit", {"cwd": "/", "jobs": [{"argv": ["true"], "gpus": 0}]})["ids"][0]
print(call("wait", {"select": [str(job)]})["jobs"][0]["state"])
PY
    chmod 777 "$ROOT"
    served=$(as "$ALICE" timeout "$LIMIT" python3 "$ROOT/served.py" "$BERTH_DIR/berth.sock" "$ROOT/calling") || served=nothing
    rm -f "$ROOT/calling"
    is "what became of the job" "$served" COMPLETED
}

@test "long answers that nobody reads yet come whole, with events between them" {
    start_system
    cat >"$ROOT/unread.py" <<'PY'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rb")
def ask(n, method, params):
    s.sendall(json.dumps({"id": n, "method": method, "params": params}).encode() + b"\n")
job = {"argv": ["true", "x" * 800], "gpus": 0, "hold": True}
# All four answers together stay below the 8 MiB that a follower may leave unread: the daemon
# may have them all ready before the last events come.
ask(0, "submit", {"cwd": "/", "jobs": [job] * 600})
answer = json.loads(f.readline())
if "result" not in answer:
    print(answer)
ask(1, "events", {"follow": True})
f.readline()
other = socket.socket(socket.AF_UNIX)
other.connect(sys.argv[1])
done = other.makefile("rb")
wanted = []
for n in range(2, 6):
    ask(n, "jobs", {})
    ask(100 + n, "submit", {"cwd": "/", "jobs": [job] * 20})
    wanted += [n, 100 + n]
    # The daemon has read the earlier input of this connection.
    other.sendall(b'{"id":1,"method":"status"}\n')
    done.readline()
had, events = [], 0
while len(had) < len(wanted) or events < 80:
    line = json.loads(f.readline())
    if line.get("method") == "event":
        events += 1
    elif "id" in line:
        had.append(line["id"])
        if line["id"] < 100 and len(line["result"]["jobs"]) < 600:
            print("answer", line["id"], "has", len(line["result"]["jobs"]), "jobs")
# Long requests are answered when they are done, so after short ones that came later.
print("all answers", sorted(had) == sorted(wanted), "and events", events >= 80)
PY
    is "what came" "$(as "$BOB" timeout "$LIMIT" python3 "$ROOT/unread.py" "$BERTH_DIR/berth.sock")" "all answers True and events True"
}
