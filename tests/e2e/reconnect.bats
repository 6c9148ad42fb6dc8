#!/usr/bin/env bats
# Clients that outlive a daemon: they connect to the next one, and their request is carried out
# once.

load lib

case_setup()
{
    mkfifo gate
}

open_gate()
{
    timeout "$LIMIT" bash -c 'echo go >gate' || fail_with 'no job has come to the gate'
}

# Send one request on a connection of its own; print the answer.
ask_raw()
{
    timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" "$1" <<'PY'
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    s.sendall(sys.argv[2].encode() + b"\n")
    print(s.makefile().readline(), end="")
PY
}

# A daemon that dies and is restarted by another process.
replace_daemon()
{
    kill_daemon
    start_daemon 2
}

@test "wait, submit -W, logs -f and queue --watch go on with the next daemon" {
    start_daemon 2
    berth submit --name one -- sh -c 'echo first; read line <gate; echo last; exit 3'
    wait_until_running 1
    background waits berth wait 1
    background follows berth logs -f 1
    background watches berth queue --watch
    background stays berth submit -W --after-any 1 -- sh -c 'exit 4'
    wait_for_output follows first
    wait_for_output watches one
    wait_for_output stays 'job 2'
    wait_for_clients 4
    replace_daemon
    open_gate
    finish waits
    is wait "$status" 3
    finish follows
    is logs "$status" 0
    has log "$out" last
    finish stays
    is submit "$status" 4
    wait_for_output watches 'no jobs'
    has_not watch "$(cat "$ROOT/watches.out")" 'closed the connection'
}

@test "wait --all means the jobs that existed when it began, across a restart too" {
    start_daemon 2
    berth submit -- sh -c 'read line <gate; exit 5'
    wait_until_running 1
    background waits berth wait --all
    wait_for_clients 1
    kill_daemon
    open_gate
    start_daemon 2
    finish waits
    is wait "$status" 5
}

@test "a lost answer is sent again, and nothing is done twice" {
    start_daemon 2
    local ask='{"id":7,"method":"submit","token":"0123456789abcdef","params":{"jobs":[{"command":"echo ran >>ran"}],"cwd":"'$WORK'"}}'
    first=$(ask_raw "$ask")
    is id "$(json result.ids.0 <<<"$first")" 1
    is again "$(ask_raw "$ask")" "$first"
    replace_daemon
    is again "$(ask_raw "$ask")" "$first"
    berth wait 1
    is again "$(ask_raw "$ask")" "$first"
    is ran "$(cat ran)" ran
    is events "$(events_with kind=submitted | wc -l)" 1
    # Another request with the same text is another request.
    is other "$(ask_raw "${ask/cdef/cdee}" | json result.ids.0)" 2
}

@test "a submit whose daemon dies in any of its commits is accepted once" {
    local n revived=0
    for n in 2 3 4 5 6; do
        # If a commit comes after the answer, the daemon dies later, or not at all.
        BERTH_CRASH_AT=daemon-after-commit:$n timeout "$LIMIT" berth daemon start --sim 2 >/dev/null 2>&1 || continue
        try berth submit -- sh -c "echo $n >>ran"
        is status "$status" 0
        case $err in *'was restarted'*) revived=$((revived + 1)) ;; esac
        try berth wait "$(sed 's/job \([0-9]*\) .*/\1/' <<<"$out")"
        is 'status of the job' "$status" 0
        stop_daemon
    done
    has 'how many died' "$revived" '^[1-9]'
    start_daemon 2
    is jobs "$(events_with kind=submitted | wc -l)" "$(wc -l <ran)"
    is 'each once' "$(sort -u ran | wc -l)" "$(wc -l <ran)"
}

@test "clients do not wait for the next daemon after daemon stop" {
    start_daemon 2
    berth submit -- sh -c 'read line <gate'
    wait_until_running 1
    background waits berth wait 1
    wait_for_clients 1
    stop_daemon
    finish waits
    is status "$status" 4
    has said "$out" 'was stopped'
    start_daemon 2
    open_gate
    berth wait 1
}

@test "commands restart a daemon that died, but not one that was stopped" {
    start_daemon 2
    berth submit -- sh -c 'read line <gate; exit 3'
    wait_until_running 1
    kill_daemon
    try berth daemon status
    is status "$status" 4
    has said "$err" 'it died; its jobs are kept, and running jobs continue'
    try berth queue
    is status "$status" 0
    has said "$err" 'the daemon had died and was restarted'
    has queue "$out" 'RUNNING|STARTING' # until its supervisor has reported again
    open_gate
    try berth wait 1
    is status "$status" 3
    stop_daemon
    try berth queue
    is status "$status" 4
    has said "$err" 'it was stopped; its jobs and history are kept'
}

@test "after a daemon that exited when it was idle, a command says so" {
    mkdir -p "$BERTH_DIR"
    echo 'idle_exit_s: 1' >"$BERTH_DIR/config.yaml"
    berth submit --sim 1 -G 0 --wait -- true
    until_exited
    try berth gpus
    is status "$status" 4
    has said "$err" 'it exited when it was idle; its jobs and history are kept'
}

# Wait until no daemon has the lock.
until_exited()
{
    "$AWAIT" prints "$LIMIT" "flock -n $BERTH_DIR/state/lock echo free" free >/dev/null
}

# Hold a daemon's lock until another process has opened it twice.
hold_lock()
{
    python3 -c '
import ctypes, fcntl, os, sys
libc = ctypes.CDLL(None)
lock = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX)
watch = libc.inotify_init()
libc.inotify_add_watch(watch, sys.argv[1].encode(), 0x20)  # IN_OPEN
print("held", flush=True)
os.read(watch, 4096)
os.read(watch, 4096)' "$BERTH_DIR/state/lock"
}

@test "a command that comes while a daemon is dying waits for its end, and restarts it" {
    start_daemon 2
    berth submit --hold -- true
    kill_daemon
    # As in the kernel: the socket closes first, and the lock is released a moment later.
    background holds hold_lock
    wait_for_output holds held
    try berth queue
    is status "$status" 0
    has said "$err" 'the daemon had died and was restarted'
    finish holds
}

# Run `berth VERB` against a daemon that is killed between connection and answer.
ask_of_one_that_dies()
{
    local pid
    pid=$(daemon_pid)
    kill -STOP "$pid"
    background asks berth "$@"
    "$AWAIT" prints "$LIMIT" "ls -l /proc/$pid_of_asks/fd" socket: >/dev/null
    kill -KILL "$pid"
    finish asks
    is "status of berth $*" "$status" 0
    has "what berth $* says" "$out" 'the daemon had died and was restarted'
}

@test "a question whose daemon dies before the answer is asked again" {
    start_daemon 2
    berth submit --hold -- true
    ask_of_one_that_dies queue
    has answer "$out" HELD
    ask_of_one_that_dies queue --json
    has answer "$out" '"state":"HELD"'
    ask_of_one_that_dies gpus
    ask_of_one_that_dies history
    ask_of_one_that_dies history --json
    ask_of_one_that_dies
    ask_of_one_that_dies cancel 1
    is state "$(job_field 1 state)" CANCELLED
}

@test "a command says that the daemon is starting or exiting when that takes long" {
    start_daemon 2
    stop_daemon
    until_exited
    try flock "$BERTH_DIR/state/lock" berth cancel 1
    is status "$status" 4
    has said "$err" 'the daemon is starting or exiting .*; try again'
    has_not said "$err" 'no daemon is running'
}

@test "a daemon that cannot restart is not tried for ever, and the client says why" {
    start_daemon 2
    berth submit -- sh -c 'read line <gate'
    wait_until_running 1
    background waits berth wait 1
    wait_for_clients 1
    pid=$(daemon_pid)
    mv "$BERTH_DIR/state/berth.db" kept.db
    echo 'no database' >"$BERTH_DIR/state/berth.db"
    kill -KILL "$pid"
    finish waits
    is status "$status" 4
    has said "$out" 'the daemon did not start: .*berth.db'
    mv kept.db "$BERTH_DIR/state/berth.db"
    start_daemon 2
    open_gate
    berth wait 1
}

@test "wait keeps its time limit while the daemon is away, and while it is silent" {
    start_daemon 2
    berth submit -- sh -c 'read line <gate'
    wait_until_running 1
    pid=$(daemon_pid)
    kill -STOP "$pid"
    try berth wait -t 1 1
    is 'with a silent daemon' "$status" 7
    kill -CONT "$pid"
    # A socket given explicitly belongs to another instance: its daemon is not started.
    background waits berth --socket "$BERTH_DIR/berth.sock" wait -t 10 1
    wait_for_clients 1
    kill_daemon
    finish waits
    is 'without one' "$status" 7
    start_daemon 2
    open_gate
    berth wait 1
}

# A file.sync on a daemon of its own that dies after its Nth commit, if there are that many,
# and then once more: `asked_twice N`. Removes 1000 lines, changes 1000, adds 1000 and one that
# can never start.
asked_twice()
{
    timeout "$LIMIT" python3 - "$BERTH_DIR/berth.sock" "$1" <<'PY'
import json, os, socket, subprocess, sys
path, n = sys.argv[1], sys.argv[2]

def job(i, **more):
    return {"key": f"line#{i}", "line": i, "command": f"echo {i}", "gpus": 0, "hold": True, **more}

def daemon(env):
    subprocess.run(["berth", "daemon", "start", "--sim", "2"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def ask(token, jobs):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        params = {"path": f"/file{n}", "jobs": jobs, "cwd": "/"}
        s.sendall(json.dumps({"id": 1, "method": "file.sync", "token": token * 16, "params": params}).encode() + b"\n")
        return s.makefile().readline()

daemon(os.environ)
ask("a", [job(i) for i in range(1, 3001)])
subprocess.run(["berth", "daemon", "stop"], check=True, stdout=subprocess.DEVNULL)
daemon({**os.environ, "BERTH_CRASH_AT": f"daemon-after-commit:{n}"})
fresh = [job(0, gpus=9)] + [job(i) for i in range(1001, 2001)] + [job(i, priority=1) for i in range(2001, 3001)]
fresh += [job(i) for i in range(3001, 4001)]
try:
    answer = ask("b", fresh)
except OSError:
    answer = ""
died = not answer
if died:
    daemon(os.environ)
    answer = ask("b", fresh)
assert '"result"' in answer, answer
r = json.loads(answer)["result"]
print(r["new"], r["updated"], len(set(r["removed"])), len(r["removed"]), [x["key"] for x in r["refused"]], "died" if died else "lived")
PY
}

@test "a jobs file that is asked again after the daemon died in the middle of it is answered for the whole" {
    local n said died=0
    for n in 5 6 7 8 9; do
        said=$(asked_twice "$n")
        has "new, updated and removed of one whose daemon died after commit $n" "$said" "^1001 1000 1000 1000 \['line#0'\] "
        case $said in *died) died=$((died + 1)) ;; esac
        try berth daemon stop --cancel # its commit may be the one after which it dies
    done
    has 'how many died' "$died" '^[1-9]'
}

@test "a daemon that dies while a long file is taken in: each line is queued once, and runs once, with --fresh too" {
    local n fresh revived=0
    for n in 6 15 30; do
        for fresh in '' --fresh; do
            seq -f "[gpus=0] echo %.0f >>ran" 40 >"jobs$n$fresh.txt"
            start_daemon 2
            try berth run -q "jobs$n$fresh.txt"
            is "status of the first run" "$status" 0
            stop_daemon
            : >ran
            seq -f '[gpus=0 hold] echo %.0f' 41 12000 >>"jobs$n$fresh.txt"
            BERTH_CRASH_AT=daemon-after-commit:$n timeout "$LIMIT" berth daemon start --sim 2 >/dev/null 2>&1 || continue
            try berth run --detach $fresh "jobs$n$fresh.txt"
            is "status, after commit $n, $fresh" "$status" 0
            case $err in *'was restarted'*) revived=$((revived + 1)) ;; esac
            is "queued, after commit $n, $fresh" "$(berth status --json | json counts.HELD)" 11960
            berth cancel state:held >/dev/null
            berth wait all
            is "each runs as often as it should" "$(sort -n ran | uniq | wc -l) of $(wc -l <ran)" \
                "$([ -n "$fresh" ] && echo '40 of 40' || echo '0 of 0')"
            stop_daemon
        done
    done
    has 'how many died' "$revived" '^[1-9]'
}

@test "a setting with a line break in it is kept for the daemon that is started after one that died" {
    mkfifo "$ROOT/ready"
    berthd --dir "$BERTH_DIR" --sim 1 --set $'env_setup=export A=one\nexport B="back\\\\slash"' \
        --ready-fd 9 9>"$ROOT/ready" 3>&- &
    read -r _ <"$ROOT/ready"
    kill_daemon
    berth submit -G 0 --wait -- sh -c 'echo "$A $B"'
    is "what the job has" "$(berth logs @)" 'one back\slash'
    kill_daemon
    # A value there without a line break was written unchanged.
    echo 'set=env_setup=export A="ends\no" B=line' >"$BERTH_DIR/state/options"
    berth submit -G 0 --wait -- sh -c 'printf "%s %s" "$A" "$B"'
    is "what the next one has" "$(berth logs @)" 'ends\no line'
}
