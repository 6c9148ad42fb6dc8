#!/usr/bin/env bats
# The machine's daemon as a service: its messages to the service manager, how users find it,
# and which sockets a client trusts.

load lib

root_only()
{
    [ "$(id -u)" -eq 0 ] || skip "only root can run the machine's daemon"
}

@test "the service manager gets readiness, watchdog and stopping messages, and jobs do not inherit its socket" {
    cat >"$ROOT/manager.py" <<'PY'
import os, queue, socket, subprocess, sys, threading
name = sys.argv[1]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(name.replace("@", "\0", 1))
# Read at once, as a manager does: the kernel queues only a few.
said = queue.Queue()
threading.Thread(target=lambda: [said.put(s.recv(4096).decode()) for _ in iter(int, 1)], daemon=True).start()
env = dict(os.environ, NOTIFY_SOCKET=name, WATCHDOG_USEC="100000")
daemon = subprocess.Popen(["berthd", "--sim", "1", "--stay"], env=env)
first = said.get(timeout=120)
print(first.split("\n")[0], "MAINPID=%d" % daemon.pid in first)
for _ in range(3):
    print(said.get(timeout=120).strip())
subprocess.check_call(["berth", "submit", "-G", "0", "--wait", "--parsable", "--", "sh", "-c",
                       "tr '\\0' '\\n' </proc/$PPID/environ | grep -cE 'NOTIFY|WATCHDOG'; true"])
print(subprocess.check_output(["berth", "logs", "@"]).decode().strip())
daemon.terminate()
while True:
    word = said.get(timeout=120).strip()
    if word != "WATCHDOG=1":
        print(word)
        break
print(daemon.wait())
PY
    for name in "$ROOT/notify" "@berth-$BERTH_E2E_MARK"; do
        rm -rf "$BERTH_DIR"
        try python3 -u "$ROOT/manager.py" "$name"
        is "what was said at $name" "$out" "READY=1 True
WATCHDOG=1
WATCHDOG=1
WATCHDOG=1
1
0
STOPPING=1
0"
    done
}

@test "without root --system is refused" {
    root_only
    # Held open by root, because other users may not be able to reach the programs.
    exec 7<"$(command -v berthd)"
    try setpriv --reuid 65534 --clear-groups /proc/self/fd/7 --system --dir "$ROOT/n"
    exec 7<&-
    is "exit status" "$status" 5
    has "words" "$err" "needs root"
}

# A separate machine as far as /run and /var/lib are concerned.
on_another_machine()
{
    unset BERTH_DIR BERTH_SOCKET
    unshare -m bash -eu -c '
        mount --make-rprivate /
        mount -t tmpfs none /run; mount -t tmpfs none /var/lib
        mkdir -p /run/lock "$1"; export XDG_RUNTIME_DIR=$1 XDG_STATE_HOME=$1
        export BERTH_LOCK_DIR=/run/lock
        '"$1" sh "$ROOT/run"
}

@test "--system with BERTH_DIR and no --dir is refused: nothing is made in either place" {
    root_only
    unshare -m true || skip "no mount name space can be made here"
    on_another_machine '
        export BERTH_DIR=/run/elsewhere
        berth daemon start --system --sim 1 || echo "status $?"
        berthd --system --sim 1 || echo "status $?"
        ls /run/berth /var/lib/berth /run/elsewhere || true
        berth daemon start --system --sim 1 --dir /run/elsewhere >/dev/null
        ls /run/elsewhere/berth.sock /run/berth || true
        berth daemon stop' >"$ROOT/out" 2>&1 || true
    out=$(cat "$ROOT/out")
    has "why" "$out" "--system uses /run/berth, but BERTH_DIR is set to /run/elsewhere; unset it, or use --dir"
    is "both refuse" "$(grep -c '^status 2$' <<<"$out")" 2
    is "places" "$(grep -c "cannot access '/run/berth'" <<<"$out") $(grep -c "cannot access '/run/elsewhere'" <<<"$out")" "2 1"
    has "where --dir says" "$out" "^/run/elsewhere/berth.sock"
}

@test "a client finds its own daemon first, then the machine's, and starts one only without either" {
    root_only
    unshare -m true || skip "no mount name space can be made here"
    status=0
    on_another_machine '
        berth daemon start --system --sim 2 >/dev/null
        stat -c "%a %U" /run/berth /run/berth/berth.sock /var/lib/berth/state
        berth submit -G 0 --wait --parsable -- true
        berth status --json | grep -o "\"mode\":\"[a-z]*\""
        berth submit --sim 1 -G 0 --wait --parsable -- true
        berth status --json | grep -o "\"mode\":\"[a-z]*\""
        berth --socket /run/berth/berth.sock status --json | grep -o "\"mode\":\"[a-z]*\""
        berth daemon stop; berth daemon stop' >"$ROOT/out" 2>"$ROOT/err" || status=$?
    out=$(cat "$ROOT/out") err=$(cat "$ROOT/err")
    is "status" "$status $err" "0 berth: the daemon has stopped; running jobs continue
berth: the daemon has stopped; running jobs continue"
    is "what was found" "$out" '755 root
666 root
700 root
1
"mode":"system"
1
"mode":"user"
"mode":"system"'
}

@test "without a folder of the login's, or with another user's, the socket is in /run/user/UID" {
    root_only
    unshare -m true || skip "no mount name space can be made here"
    on_another_machine '
        mkdir -p /run/user/0 /run/user/65534
        chown 65534 /run/user/65534
        for folder in "" /run/user/65534 /run/user/none; do
            XDG_RUNTIME_DIR=$folder berth daemon start --sim 1 | grep socket
            env -u XDG_RUNTIME_DIR berth daemon stop
        done' >"$ROOT/out" 2>/dev/null || true
    is "where it is" "$(tr -s ' ' <"$ROOT/out")" "socket /run/user/0/berth/berth.sock
socket /run/user/0/berth/berth.sock
socket /run/user/0/berth/berth.sock"
}

@test "a command says that the machine's daemon died, and not that of the user" {
    root_only
    unshare -m true || skip "no mount name space can be made here"
    status=0
    on_another_machine '
        berth daemon start --system --sim 1 >/dev/null
        pid=$(berth status --json | "$AWAIT" json daemon.pid)
        kill -KILL "$pid"; "$AWAIT" pid 100 "$pid"
        berth queue || echo "queue $?"
        berth daemon start --system >/dev/null
        berth queue -H
        berth daemon stop' >"$ROOT/out" 2>&1 || status=$?
    out=$(cat "$ROOT/out")
    is status "$status" 0
    is "what it ends with" "$(grep ^queue <<<"$out")" 'queue 4'
    has "what it says" "$out" 'the system daemon has died and is not running again yet .*; its jobs are kept, and running jobs continue; try again$'
}

# Make a driver that lists no GPU while another process has the lock on the file $ROOT/slow.
make_slow_driver()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world BERTH_NVIDIA_SMI=/none ROOT
    printf '%s\n' 'driver 550.54' 'card GPU-a 81920 0 0' 'load 0 7 41' "slow $ROOT/slow" >"$ROOT/world"
}

@test "commands wait for the machine's daemon while it waits for a driver, and start none of their own" {
    root_only
    unshare -m true || skip "no mount name space can be made here"
    make_slow_driver
    status=0
    LIMIT=$LIMIT on_another_machine '
        mkdir /run/berth
        exec 9>"$ROOT/slow"
        flock 9
        berthd --system --set probe_deadline_ms=600000 9>&- 3>&- 2>log &
        "$AWAIT" output "$LIMIT" log event=confinement >/dev/null
        berth submit -G 0 --wait --parsable -- true >job 2>submit.err 9>&- & submit=$!
        berth queue >queue 2>queue.err 9>&- & queue=$!
        "$AWAIT" output "$LIMIT" submit.err "the system daemon is starting; waiting up to 60 s for it"
        "$AWAIT" output "$LIMIT" queue.err "the system daemon is starting; waiting up to 60 s for it"
        exec 9>&-
        wait $submit; wait $queue
        berth show 1 --socket /run/berth/berth.sock --json | grep -o "\"state\":\"[A-Z]*\""
        ls /run/berth "$XDG_STATE_HOME"
        berth daemon stop 2>/dev/null' >"$ROOT/out" 2>"$ROOT/err" || status=$?
    is "status" "$status $(cat "$ROOT/err")" "0 "
    has "where the job ran" "$(cat "$ROOT/out")" '"state":"COMPLETED"'
    has_not "what there is" "$(cat "$ROOT/out")" '^(starting|left|berth)$'
}

@test "doctor fails if the machine's daemon has died or failed to start, and warns if it was stopped" {
    root_only
    unshare -m true || skip "no mount name space can be made here"
    on_another_machine '
        says() { berth doctor | grep -E "^[a-zA-Z]+ +(daemon|state) " | tr -s " "; }
        mkdir /run/berth /var/lib/berth
        echo "never:"; says
        berthd --system --sim 1 --set no_such=1 >/dev/null 2>&1 || true
        echo "failed:"; says
        berth queue 2>&1 || true
        berth daemon start --system --sim 1 >/dev/null
        pid=$(berth status --json | "$AWAIT" json daemon.pid)
        berthd --system --sim 1 >/dev/null 2>&1 || true # a second one fails, which says nothing
        ls /run/berth
        kill -KILL "$pid"; "$AWAIT" pid 100 "$pid"
        echo "died:"; says
        berth daemon start --system >/dev/null; berth daemon stop 2>/dev/null
        stat -c "mode of the note %a" /run/berth/left
        echo "stopped:"; says' >"$ROOT/out" 2>&1 || true
    out=$(cat "$ROOT/out")
    has "without a sign of it" "$out" "^ok daemon not running; 'berth run' starts one"
    has "after it failed" "$out" '^FAIL daemon the system daemon has failed to start \(systemctl status berthd\)'
    has "what a command says then" "$out" '^berth: the system daemon has failed to start \(systemctl status berthd\), and no daemon is running'
    has "after it died" "$out" '^FAIL daemon the system daemon has died .*systemctl status berthd'
    has "who may read how it left" "$out" '^mode of the note 644$'
    has "after it was stopped" "$out" "^warn daemon the system daemon was stopped .*systemctl start berthd"
    is "the folders that were checked" "$(grep -o ' state /var/lib/berth/state\|^warn daemon\|^ok state .*machine-state' <<<"$out")" \
        " state /var/lib/berth/state
 state /var/lib/berth/state
warn daemon"
    has_not "what the running one leaves beside its socket" "$out" '^(left|starting)$'
}

@test "a drop-in command waits for the machine's daemon when that restarts, and starts none of its own" {
    root_only
    unshare -m true || skip "no mount name space can be made here"
    mkfifo gate
    printf '[vram=1G] read line <gate\n' >jobs.txt
    status=0
    E2E=$E2E LIMIT=$LIMIT on_another_machine '
        berth daemon start --system --sim 1 >/dev/null
        berth compat gpusched jobs.txt --poll 0.2 >said & run=$!
        "$AWAIT" output "$LIMIT" gpusched_logs/journal.jsonl "\"event\": \"started\""
        berth daemon stop 2>/dev/null
        berth daemon start --system --sim 1 >/dev/null
        echo go >gate; wait $run
        berth show 1 --json | grep -o "\"state\":\"[A-Z]*\""; ls "$1" gpusched_logs -A
        berth daemon stop 2>/dev/null' >"$ROOT/out" 2>"$ROOT/err" || status=$?
    is "status" "$status $(cat "$ROOT/err")" "0 berth: the daemon has gone; its jobs go on. Waiting 5 minutes for it to come back
berth: the daemon is back"
    has_not "what there is" "$(cat "$ROOT/out")" '\.berth$|^berth$'
    has "end" "$(cat "$ROOT/out")" '"state":"COMPLETED"'
    has "what was said" "$(cat said)" 'job 1 finished \[OK\]'
}

@test "a socket that another user put there is not trusted" {
    root_only
    unset BERTH_DIR
    export XDG_RUNTIME_DIR=$ROOT/run XDG_STATE_HOME=$ROOT/home
    mkdir -p "$ROOT/run/berth"
    cat >"$ROOT/trap.py" <<'PY'
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.setuid(65534)
s.listen(1)
print("listening", flush=True)
c, _ = s.accept()
print("heard", c.recv(1000))
PY
    background liar python3 "$ROOT/trap.py" "$ROOT/run/berth/berth.sock.2"
    wait_for_output liar listening
    mv "$ROOT/run/berth/berth.sock.2" "$ROOT/run/berth/berth.sock"
    try berth submit -G 0 -- echo secret
    is "status" "$status" 5
    has "words" "$err" "belongs to another user"
    finish liar
    has "what it heard" "$out" "heard b''"
}

@test "the system daemon takes a GPU over from a user's daemon, and the user's next one says so" {
    root_only
    export BERTH_LOCK_DIR=$ROOT/locks
    local lock
    berth daemon start --sim 1 >/dev/null
    stop_daemon
    lock=$(ls "$ROOT"/i/sim/berth-gpu-*)
    chown 65534 "$lock"
    exec 7<"$lock"
    flock -n 7
    berthd --system --dir "$BERTH_DIR" --sim 1 7<&- 3>&- &
    "$AWAIT" until "$LIMIT" "berth status --json" daemon.mode system >/dev/null
    is "the card" "$(berth gpus --json | json gpus.0.state)" up
    is "the lock" "$(stat -c '%a %u' "$lock")" "600 0"
    exec 7<&-
}

@test "a hard link to one of root's files is not used as a GPU's lock" {
    root_only
    local lock
    berth daemon start --sim 1 >/dev/null
    stop_daemon
    lock=$(ls "$ROOT"/i/sim/berth-gpu-*)
    rm "$lock"
    (umask 077; echo words >"$ROOT/precious")
    ln "$ROOT/precious" "$lock"
    berthd --system --dir "$BERTH_DIR" --sim 1 3>&- &
    "$AWAIT" until "$LIMIT" "berth status --json" daemon.mode system >/dev/null
    is "the card" "$(berth gpus --json | json gpus.0.state)" up
    is "the file" "$(cat "$ROOT/precious")" words
    is "names of the lock" "$(stat -c %h "$lock")" 1
}
