#!/usr/bin/env bats
# The stream of events: filters, starting points, and followers that lose nothing and see
# nothing twice, even across the daemon's restarts.

load lib

# One field of each event on standard input.
field_of_each()
{
    python3 -c 'import json, sys
print(" ".join(str(json.loads(line)[sys.argv[1]]) for line in sys.stdin))' "$1"
}

@test "events are filtered by kind, user and job" {
    start_daemon
    berth submit -G 0 --wait -- true
    berth submit -G 0 --wait -- false || true
    berth pause 0
    is "all of job 2" "$(berth events 2 --kind submitted,started,ended | field_of_each kind)" "submitted started ended"
    is "ends" "$(berth events -k ended | wc -l)" 2
    is "of the machine" "$(berth events --kind gpu | json state)" paused
    is "of me" "$(berth events --kind ended --user "$(id -un)" | wc -l)" 2
    is "of somebody else" "$(berth events --user nobody | wc -l)" 0
    try berth events --kind ended,begun
    is "exit status" "$status" 2
    has "words" "$err" "unknown kind of event 'begun'; the kinds are submitted, waiting, started, launched"
    try berth events 99
    is "exit status of a job that is not there" "$status" 3
}

@test "--since begins after a number or at a time" {
    start_daemon
    berth submit -G 0 --wait -- true
    last=$(berth events | tail -1 | json seq)
    berth submit -G 0 --wait -- true
    is "first behind it" "$(berth events --since "$last" | head -1 | json seq)" $((last + 1))
    is "of the last hour" "$(berth events --since 1h | wc -l)" "$(berth events | wc -l)"
    is "of today" "$(berth events --since today | wc -l)" "$(berth events | wc -l)"
    # In a later second than all others, since times are written in seconds.
    second=$(($(berth events | tail -1 | json at_us) / 1000000))
    "$AWAIT" prints "$LIMIT" "[ \$(date +%s) -gt $second ] && echo later" later
    last=$(berth events | tail -1 | json seq)
    berth submit -G 0 --wait -- true
    second=$(($(berth events --since "$last" | head -1 | json at_us) / 1000000))
    is "from a second on" "$(berth events --since "@$second" | field_of_each seq)" "$(berth events --since "$last" | field_of_each seq)"
    try berth events --since tomorrow
    is "exit status" "$status" 2
    has "words" "$err" "'tomorrow' is in the future"
    is "of yesterday" "$(berth events --since yesterday | wc -l)" "$(berth events | wc -l)"
    try berth events --since rhubarb
    is "exit status" "$status" 2
    has "words" "$err" "'rhubarb' is not a time; write 2h or 7d \(ago\), 16:00"
}

@test "a request with a limit follows only once it has reached the end" {
    start_daemon 1
    timeout "$LIMIT" berth submit -G 0 -W -- true
    cat >follow.py <<'END'
import json, socket, subprocess, sys

with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    lines = s.makefile()
    def ask(number, method, params):
        s.sendall((json.dumps({"id": number, "method": method, "params": params}) + "\n").encode())
    def count_until(number):
        n = 0
        while (message := json.loads(lines.readline())).get("id") != number:
            n += 1
        return n, message["result"]
    def job():
        subprocess.run(["berth", "submit", "-G", "0", "-W", "--", "true"], check=True, stdout=subprocess.DEVNULL)
    ask(1, "events", {"limit": 1, "follow": True})
    more = count_until(1)[1]["more"]
    job()
    ask(2, "status", {})
    missed = count_until(2)[0]
    ask(3, "events", {"limit": 1000, "follow": True})
    count_until(3)
    job()
    ask(4, "status", {})
    print(more, missed, count_until(4)[0] > 0)
END
    is "with more to come, then at the end" "$(timeout "$LIMIT" python3 follow.py "$BERTH_DIR/berth.sock")" "True 0 True"
}

@test "followers get 'launched' with the process id, and it is not stored" {
    start_daemon
    background follow berth events -f
    wait_for_follower
    mkfifo gate
    id=$(berth submit --parsable -G 0 -- sh -c 'echo $$ >pid; cat gate')
    wait_for_output follow '"kind":"launched"' >"$ROOT/launched"
    is "job" "$(json job <"$ROOT/launched")" "$id"
    pid=$(json pid <"$ROOT/launched")
    : >gate
    berth wait "$id"
    is "its process" "$pid" "$(cat pid)"
    is "stored" "$(berth events --kind launched | wc -l)" 0
}

# Events reach it from now on: one shows that it listens.
wait_for_follower()
{
    local n=0 began=$SECONDS
    until grep -q . "$ROOT/follow.out"; do
        n=$((n + 1))
        [ $((SECONDS - began)) -lt "$LIMIT" ] || fail_with "the follower never printed anything"
        berth pause 0 --reason "$n" >/dev/null
        berth resume 0 >/dev/null
    done
}

@test "a follower misses nothing and sees nothing twice when the daemon is killed" {
    start_daemon
    background follow berth events -f --since 0
    for i in 1 2 3; do
        berth submit -G 0 --wait -- true
        kill_daemon
        start_daemon
        berth submit -G 0 --wait -- true
    done
    wait_for_output follow "\"seq\":$(berth events --kind ended | tail -1 | json seq),"
    berth events >"$ROOT/stored"
    python3 - "$ROOT/follow.out" "$ROOT/stored" <<'PY'
import json, sys
seen = [json.loads(line)["seq"] for line in open(sys.argv[1]) if line.startswith("{")]
seen = [seq for seq in seen if seq]
stored = [json.loads(line)["seq"] for line in open(sys.argv[2])]
assert seen == stored, (seen, stored)
PY
}

@test "a follower that does not read costs the daemon little, and catches up" {
    start_daemon
    mkfifo pipe
    # No reader: a pipe buffers 64 KiB, a socket some hundred.
    background follow sh -c 'berth events -f --since 0 >pipe'
    exec 7<pipe
    python3 - "$BERTH_DIR/berth.sock" "$(daemon_pid)" <<'PY'
import json, socket, sys
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s.makefile("rw")
def writes():
    return next(int(l.split()[1]) for l in open(f"/proc/{sys.argv[2]}/io") if l.startswith("syscw"))
f, late = connect(), connect()
job = {"command": "true " + "x" * 190, "gpus": 0, "hold": True, "name": "n" * 60}
late.write(json.dumps({"id": 1, "method": "events", "params": {"follow": True, "kinds": ["submitted"]}}) + "\n")
late.flush()
late.readline()
for part in range(5):
    f.write(json.dumps({"id": part, "method": "submit", "params": {"jobs": [job] * 5000, "cwd": "/", "umask": 18}}) + "\n")
    f.flush()
    answer = json.loads(f.readline())
    assert "result" in answer, answer
    if part == 0: # a late reader gets what has come meanwhile in pieces of several
        before = writes()
        for i in range(5000):
            assert json.loads(late.readline())["method"] == "event"
        assert writes() - before < 4500, writes() - before
        late.close()
PY
    has "log" "$(berth daemon logs)" "event=follower-behind"
    wanted=$(berth events --kind submitted | wc -l)
    is "submitted" "$wanted" 25000
    timeout "$LIMIT" head -n 25000 <&7 >"$ROOT/got"
    exec 7<&-
    is "numbers that came" "$(python3 -c 'import json, sys
seqs = [json.loads(line)["seq"] for line in open(sys.argv[1])]
seqs = [seq for seq in seqs if seq]
assert seqs == list(range(1, len(seqs) + 1)), seqs[:20]
print(len(seqs) > 24900)' "$ROOT/got")" True
}

@test "stored events are limited, and a late follower learns which were deleted" {
    mkdir -p "$BERTH_DIR"
    echo 'keep_events: 1' >"$BERTH_DIR/config.yaml"
    start_daemon
    background log berth daemon logs -f
    python3 - "$BERTH_DIR/berth.sock" <<'PY'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rw")
job = {"command": "true", "gpus": 0, "hold": True}
f.write(json.dumps({"id": 1, "method": "submit", "params": {"jobs": [job] * 1500, "cwd": "/"}}) + "\n")
f.flush()
assert "result" in json.loads(f.readline())
PY
    # The daemon cleans up in an idle moment after an end, however many watch it meanwhile.
    berth cancel 1
    background look sh -c 'while berth status; do :; done'
    wait_for_output log event=events-trimmed
    try berth events --since 1
    has "words" "$err" "events 2 to [0-9]+ have been deleted \(keep_events\)"
}
