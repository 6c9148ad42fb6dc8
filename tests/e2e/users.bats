#!/usr/bin/env bats
# One daemon for all users of the machine: jobs run as their submitter, with the rights and
# limits of that user's shell and no more; no user can change another's jobs. With two real
# users.

load lib
load users

# A job of alice's that runs until it is ended; its id is $id.
alice_runs()
{
    as "$ALICE" mkfifo "$USERS_HOME/alice/gate.$BATS_TEST_NUMBER"
    id=$(as "$ALICE" berth submit --parsable -G 1 "$@" -- sh -c "echo secret words; cat gate.$BATS_TEST_NUMBER")
    wait_until_running "$id"
}

# The token in the names of this instance's cgroups.
instance_token()
{
    python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("select value from meta where key = \"token\"").fetchone()[0][:8])' \
        "$BERTH_DIR/state/berth.db"
}

# The groups of the jobs of an instance with that name, in every hierarchy.
groups_of_jobs()
{
    find /sys/fs/cgroup -type d -path "*/$1/*" -name 'job-*'
}

# Describe a process's rights, in a form in which two processes can be compared.
DESCRIBE='id; umask; ulimit -a; ulimit -Ha; pwd; grep -E "^(Uid|Gid|Groups|Cap|NoNewPrivs)" /proc/self/status'

@test "a job has the identity, groups, umask, limits and folder of the shell that submitted it" {
    local settings='umask 027; ulimit -n 333; ulimit -S -c 0; ulimit -u 400;'
    start_system
    as "$ALICE" bash -c "$settings $DESCRIBE" >"$ROOT/shell"
    as "$ALICE" bash -c "$settings"' berth submit -G 0 --wait -- bash -c "$1"' sh "$DESCRIBE"
    as "$ALICE" berth logs @ >"$ROOT/job"
    has "alice's id" "$(cat "$ROOT/job")" "\($ALICE\).*users"
    diff "$ROOT/shell" "$ROOT/job"
    as "$ALICE" bash -c "umask 077; berth submit -G 0 --wait -- touch made"
    is "the file's owner and mode" "$(stat -c '%U %a' "$USERS_HOME/alice/made")" "$ALICE 600"
}

@test "with --login a job has what a login has, and what --env says" {
    start_system
    echo 'export FROM_PROFILE=yes' >"$USERS_HOME/alice/.bash_profile"
    as "$ALICE" env SECRET=1 SHELL=/bin/false berth submit -G 0 --login --env "X=a b'c" --wait -- \
        sh -c 'echo "$FROM_PROFILE $HOME $USER $SHELL $X ${SECRET-unset} $1 $BERTH_JOB_ID"' sh 'two "words'
    is "what it sees" "$(as "$ALICE" berth logs @)" \
        "yes $USERS_HOME/alice $ALICE /bin/bash a b'c unset two \"words 1"
}

@test "with --login the environment before the profile is that of login(1), from every submitter and shell" {
    start_system
    for shell in /bin/bash /bin/sh; do
        usermod -s $shell "$ALICE"
        rm -f "$USERS_HOME/alice/.bash_profile"
        echo 'env >~/at-login; echo "as $0" >>~/at-login; export PATH=/profile:$PATH' >"$USERS_HOME/alice/.profile"
        as "$ALICE" env HOME=/nowhere PATH="/submitters:$PATH" TERM=vt52 BASH_ENV=/x LD_PRELOAD= CONDA_PREFIX=/c \
            berth submit -G 0 --login --wait -D / -- sh -c 'echo "$PATH"'
        before=$(cat "$USERS_HOME/alice/at-login")
        for line in "HOME=$USERS_HOME/alice" "USER=$ALICE" "LOGNAME=$ALICE" "SHELL=$shell" TERM=vt52 "as -${shell##*/}"; do
            grep -qxF "$line" <<<"$before" || fail_with "no $line at login: $before"
        done
        has_not "what it has at login" "$before" "submitters|BASH_ENV|CONDA|PRELOAD|nowhere"
        has_not "what it has" "$(as "$ALICE" berth logs @)" submitters
        has "what it has" "$(as "$ALICE" berth logs @)" "^/profile:"
        rm "$USERS_HOME/alice/at-login"
    done
    usermod -s /bin/bash "$ALICE"
    rm "$USERS_HOME/alice/.profile"
    as "$ALICE" berth submit -G 0 --login --env PATH=/usr/bin:/mine --wait -- printenv PATH
}

@test "neither a job nor a hook has the service's OOM score or audit id, whatever its limits" {
    local look='cat /proc/self/oom_score_adj; cat /proc/self/loginuid' audit
    audit=$(cat /proc/self/loginuid) || skip "this kernel keeps no audit ids"
    # Root in a container may lack the right to set it.
    if sh -c 'echo 4242 >/proc/self/loginuid' 2>/dev/null; then audit=$(id -u "$ALICE"); fi
    echo 100 >"/proc/$BASHPID/oom_score_adj"
    start_system
    # So few descriptors that the job's process could open nothing more.
    as "$ALICE" sh -c 'ulimit -Sn 6; exec "$@"' sh berth submit -G 0 --on-end "$look" -- sh -c "$look"
    as "$ALICE" berth wait 1
    is "the job's" "$(as "$ALICE" berth logs 1)" "0
$audit"
    wait_for_event kind=hook job=1 state=done "text=$audit"
}

@test "the machine's simulated cards are for every user's jobs, which share their memory" {
    start_system --sim 1x24G
    as "$ALICE" berth submit --vram 8G -- berth simjob --vram 6000 --hold 1000
    as "$BOB" berth submit --vram 8G -- berth simjob --vram 6000 --hold 1000
    for id in 1 2; do
        "$AWAIT" until "$LIMIT" "berth show $id --json" jobs.0.peak_mib.0 6000
    done
    is "what both use" "$(berth gpus --json | json gpus.0.used_mib)" 12000
    berth cancel all
}

@test "a folder that only root can enter causes a warning, since no user reaches that daemon" {
    mkdir -m 700 "$BERTH_DIR"
    start_system
    has "words" "$(cat "$BERTH_DIR/daemon.log")" "only root can enter $BERTH_DIR, so users cannot reach this daemon; run 'chmod 755 $BERTH_DIR'"
    try_as "$ALICE" berth status
    has "why" "$err" "Permission denied"
    chmod 755 "$BERTH_DIR"
    as "$ALICE" berth status
}

@test "a folder for a user's logs that was created and not yet handed over still becomes that user's" {
    mkdir -p "$BERTH_DIR/logs"
    mkdir -m 700 "$BERTH_DIR/logs/$(id -u "$ALICE")"
    chmod 755 "$BERTH_DIR" "$BERTH_DIR/logs"
    start_system
    as "$ALICE" berth submit -G 0 --wait -- true
    is "whose" "$(stat -c '%U %a' "$BERTH_DIR/logs/$(id -u "$ALICE")")" "$ALICE 700"
}

@test "root's jobs run as root, and a job cannot get back to root" {
    start_system
    berth submit -G 0 --wait -- sh -c 'id -u'
    is "whose it is" "$(berth logs @)" 0
    try_as "$ALICE" berth submit -G 0 --wait -- python3 -c 'import os; os.setuid(0)'
    is "exit status" "$status" 1
    has "log" "$(as "$ALICE" berth logs @)" "Operation not permitted"
}

@test "a job has no descriptors but its own, even when the daemon was started with some" {
    exec 8<"$ROOT/bin/berth"
    start_system
    exec 8<&-
    as "$ALICE" berth submit -G 0 --wait -- python3 -c 'import os
print(sorted(fd for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)))'
    is "descriptors" "$(as "$ALICE" berth logs @)" "['0', '1', '2']"
}

@test "a user sees another's job and cannot touch it" {
    start_system
    alice_runs
    has "bob's view" "$(as "$BOB" berth queue)" "$ALICE.*RUNNING"
    for verb in cancel hold release "signal $id" ; do
        if [ "$verb" = "signal $id" ]; then try_as "$BOB" berth signal "$id" TERM
        else try_as "$BOB" berth "$verb" "$id"; fi
        is "exit status of $verb" "$status" 5
        has "words of $verb" "$err" "job $id belongs to $ALICE"
    done
    try_as "$BOB" berth logs "$id"
    is "exit status of logs" "$status" 5
    has_not "bob's output" "$out" secret
    try_as "$BOB" berth daemon stop --cancel
    is "exit status of stop" "$status" 5
    is "state" "$(job_field "$id" state)" RUNNING
    as "$ALICE" berth cancel "$id"
    as "$ALICE" berth wait "$id" || true
    is "cancelled by" "$(job_field "$id" cancelled_by)" "$ALICE"
}

@test "broad selectors mean the caller's own jobs; naming another user's job refuses the whole request" {
    start_system
    alice_runs
    bobs=$(as "$BOB" berth submit --parsable -G 0 --hold -- true)
    try_as "$BOB" berth cancel "$bobs" "$id"
    is "exit status" "$status" 5
    is "bob's own" "$(job_field "$bobs" state)" HELD
    as "$BOB" berth cancel --all
    is "bob's own" "$(job_field "$bobs" state)" CANCELLED
    for words in "cancel all" "cancel --all" "hold all"; do
        try_as "$BOB" berth $words
        is "exit status of $words, with nothing left" "$status" 0
        is "its words" "$err" "berth: nothing to ${words%% *}"
    done
    try_as "$BOB" berth cancel "user:$ALICE"
    is "exit status" "$status" 3
    has_not "what is said of it" "$err" ended
    is "alice's" "$(job_field "$id" state)" RUNNING
    try_as "$BOB" berth cancel state:running
    is "exit status" "$status" 3
    berth cancel --all
    as "$ALICE" berth wait "$id" || true
    is "root's --all" "$(job_field "$id" state)" CANCELLED
}

@test "one user's long commands do not block the queue, and their total is limited" {
    start_system
    printf '{"cwd":"/","jobs":[{"hold":true,"command":"%s"}]}' "$(head -c 1000000 /dev/zero | tr '\0' x)" \
        >"$ROOT/long"
    cat >"$ROOT/fill.py" <<'PY'
import json, socket, sys
with open(sys.argv[2]) as f:
    params = json.load(f)
def submit(jobs):
    params["jobs"] = jobs
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(sys.argv[1])
        s.sendall(json.dumps({"id": 1, "method": "submit", "params": params}).encode() + b"\n")
        answer = json.loads(s.makefile().readline())
    return answer.get("error", {}).get("message", "taken")
long = params["jobs"] * 2
for _ in range(68):
    print(submit(long))
# Small ones count too, wherever their text is stored.
small = {"hold": True, "command": "true", "comment": "x" * 1000, "env": ["X=" + "x" * 50000]}
said = "taken"
for _ in range(100):
    said = said if said != "taken" else submit([small])
print(said, file=sys.stderr)
PY
    as "$BOB" python3 "$ROOT/fill.py" "$BERTH_DIR/berth.sock" "$ROOT/long" >"$ROOT/said" 2>"$ROOT/small"
    is "how often it was taken" "$(grep -c taken "$ROOT/said")" 67
    has "why no more" "$(tail -1 "$ROOT/said")" "commands and other text of $BOB's jobs would take .* MiB; the maximum is 128"
    has "of small ones neither" "$(cat "$ROOT/small")" "commands and other text of $BOB's jobs"
    has "what alice sees" "$(as "$ALICE" berth queue | grep -c HELD)" '^(1[3-9]|2[0-9])[0-9]$'
    is "at length" "$(as "$ALICE" berth queue --json | jq '.jobs | map(.command | length) | max')" 1024
    is "bob, of his own" "$(as "$BOB" berth show --json 1 | jq '.jobs[0].command | length')" 1000000
    try_as "$BOB" berth queue --json
    has "all of bob's own" "$err" "the answer would exceed the maximum of .* MiB"
    try_as "$BOB" berth queue --json --limit 20
    is "some of them" "$status" 0
}

@test "passing a connection on does not lift the limits of its user" {
    start_system
    cat >"$ROOT/pass.py" <<'PY'
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    s.connect(sys.argv[1])
    os._exit(0)
os.waitpid(pid, 0)
s.sendall(b'{"id":1,"method":"submit","params":{"cwd":"/","jobs":[{"command":"true"}]}}\n')
print(s.makefile().readline())
PY
    has "what the daemon says" "$(as "$BOB" python3 "$ROOT/pass.py" "$BERTH_DIR/berth.sock")" \
        "the limits of the process that connected"
}

@test "doctor judges the machine's daemon by root's rights, and leaves its folders to root" {
    start_system
    try_as "$BOB" berth doctor
    is "exit status" "$status" 0
    has "words" "$out" "machine .*serves all users.*sudo berth doctor"
    has_not "advice on what is root's" "$out" "chown|linger|FAIL"
    try env -u BERTH_DIR berth --socket "$BERTH_DIR/berth.sock" doctor
    has "root's" "$out" "ok +rights +only the owner can enter $BERTH_DIR/state"
}

@test "a message cannot change its user" {
    start_system
    as "$BOB" env USER="$ALICE" LOGNAME="$ALICE" HOME="$USERS_HOME/alice" \
        berth submit -G 0 --wait -- id -un
    is "who it ran as" "$(as "$BOB" berth logs @)" "$BOB"
    is "whose it is" "$(job_field @ user 2>/dev/null || job_field 1 user)" "$BOB"
    as "$BOB" python3 - "$BERTH_DIR/berth.sock" <<'PY' >"$ROOT/answers"
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rw")
job = {"argv": ["id", "-un"], "gpus": 0}
for params in (
    {"jobs": [job], "cwd": "/", "user": "root", "uid": 0, "gid": 0},
    {"jobs": [dict(job, user="root")], "cwd": "/"},
    {"jobs": [dict(job, uid=0)], "cwd": "/"},
    {"jobs": [job], "cwd": "/", "env": ["USER=root", "SUDO_UID=0"], "rlimits": "nofile=-:-"},
):
    print(json.dumps({"id": 1, "method": "submit", "params": params}), file=f, flush=True)
    print(f.readline().strip())
PY
    has "answers" "$(sed -n 1p "$ROOT/answers")" '"ids":\[2\]'
    has "a job's user" "$(sed -n 2p "$ROOT/answers")" 'no .*user'
    has "a job's uid" "$(sed -n 3p "$ROOT/answers")" 'no .*uid'
    as "$BOB" berth wait 2-3
    for id in 2 3; do is "job $id ran as" "$(as "$BOB" berth logs $id)" "$BOB"; done
}

@test "a symlink in place of the log reaches no file that the user could not write" {
    local uid
    uid=$(id -u "$ALICE")
    start_system
    echo precious >"$ROOT/precious"
    chmod 600 "$ROOT/precious"
    # The folder of logs is the daemon's, and alice's part of it is hers.
    as "$ALICE" berth submit -G 0 --wait -- true
    as "$ALICE" ln -s "$ROOT/precious" "$BERTH_DIR/logs/$uid/2.log"
    try_as "$ALICE" berth submit -G 0 --wait -- echo overwritten
    is "exit status" "$status" 1
    has "why" "$(berth show 2)" "cannot open the log"
    # If she names the path, it is opened with her rights.
    try_as "$ALICE" berth submit -G 0 --log link --hold -- echo overwritten
    as "$ALICE" ln -s "$ROOT/precious" "$USERS_HOME/alice/link"
    try_as "$ALICE" berth submit -G 0 --log link -- echo overwritten
    is "status of a log that is another's" "$status" 2
    as "$ALICE" berth release 3
    try_as "$ALICE" berth wait 3
    is "exit status" "$status" 126
    has "why" "$(berth show 3)" "cannot open the log .*link: Permission denied"
    is "the file" "$(cat "$ROOT/precious")" precious
    try_as "$BOB" ln -s /etc/passwd "$BERTH_DIR/logs/$uid/4.log"
    is "bob's exit status" "$status" 1
    try_as "$BOB" ln -s /etc "$BERTH_DIR/logs/12345"
    is "bob's exit status" "$status" 1
}

# `waits_for_the_logs DIR MODE`: a job that alice submits to the daemon of DIR waits while its
# folder of logs has that mode.
waits_for_the_logs()
{
    local alice="runuser -u $ALICE -- env BERTH_DIR=$1" ran=$USERS_HOME/alice/ran.logs
    $alice berth submit -G 0 --wait -- true
    chmod "$2" "$1/logs"
    $alice berth submit -G 0 -- sh -c "echo ran >>$ran"
    "$AWAIT" prints "$LIMIT" "$alice berth health || true" '^bad +starts .*logs.*Permission denied' ||
        fail_with "it says: $($alice berth health)"
    chmod 755 "$1/logs"
    $alice berth wait 2
    is "runs" "$(cat "$ran")" ran
    rm "$ran"
}

@test "while users may not use the folder of logs their jobs wait, and none fails" {
    start_system
    waits_for_the_logs "$BERTH_DIR" 700
    # A daemon of her own may not write there.
    as "$ALICE" env BERTH_DIR="$USERS_HOME/alice/own.$BATS_TEST_NUMBER" berth daemon start --sim 1
    waits_for_the_logs "$USERS_HOME/alice/own.$BATS_TEST_NUMBER" 500
    as "$ALICE" env BERTH_DIR="$USERS_HOME/alice/own.$BATS_TEST_NUMBER" berth daemon stop
}

@test "a supervisor does not enter a folder that its user may not enter" {
    start_system
    try_as "$BOB" berth submit -G 0 -D "$USERS_HOME/alice" --wait -- ls
    is "exit status" "$status" 126
    has "why" "$(berth show 1)" "cannot enter the working folder .*: Permission denied"
}

@test "a job cannot reach its own state, supervisor and record" {
    local shepherd
    start_system
    as "$ALICE" berth submit -G 0 --wait -- sh -c '
        ls "$1/state"; cat "$1/state/berth.db"; touch "$1/new"; rm "$1/berth.sock"
        kill -9 $PPID; ls -l /proc/$PPID/fd; cat /proc/$PPID/environ; exit 7' sh "$BERTH_DIR" || status=$?
    is "exit status" "$status" 7
    out=$(as "$ALICE" berth logs @)
    is "refusals" "$(grep -cE 'denied|not permitted' <<<"$out")" 7
    has_not "output" "$out" SQLite
}

@test "with private: true other users' commands, names and folders are hidden" {
    start_system --set private=true
    alice_runs -J hush
    for view in "queue" "queue --json" "show $id --json" "show $id" "events"; do
        # shellcheck disable=SC2086
        try_as "$BOB" berth $view
        has_not "bob's $view" "$out" "secret|hush|gate|$USERS_HOME/alice"
        # shellcheck disable=SC2086
        try_as "$ALICE" berth $view
        has "alice's $view" "$out" "secret|hush"
    done
    has "bob's view" "$(as "$BOB" berth queue)" "$ALICE.*RUNNING"
    for option in "" -f; do
        # shellcheck disable=SC2086 # an option, or none
        try_as "$BOB" berth logs $option "$id"
        is "exit status of bob's look at the log" "$status" 5
        has "words" "$err" "only the owner can read the log of job $id"
    done
    try_as "$BOB" berth show name:hush
    is "exit status of a guess" "$status" 3
    has "root's view" "$(berth queue)" secret
    for view in show explain; do
        has "$view of what runs" "$(as "$BOB" berth $view "$id")" "^job $id.*RUNNING"
    done
    for user in "$BOB" "$ALICE"; do
        as "$user" python3 -c '
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"{\"id\":1,\"method\":\"series\",\"params\":{\"job\":%s}}\n" % sys.argv[2].encode())
answer = json.loads(s.makefile().readline())
print(answer.get("error", {}).get("code", 0))' "$BERTH_DIR/berth.sock" "$id" >"$ROOT/series.$user"
    done
    is "bob's view of what it used" "$(cat "$ROOT/series.$BOB")" 5
    is "alice's view of what it used" "$(cat "$ROOT/series.$ALICE")" 0
    as "$ALICE" berth cancel "$id"
    as "$BOB" berth wait "$id" || is "status of the wait" "$?" 130
    for view in show explain; do
        try_as "$BOB" berth $view "$id"
        is "status of $view of what has ended" "$status" 0
        has "$view of what has ended" "$out" "^job $id.*CANCELLED"
        has_not "$view of what has ended" "$out" "secret|hush"
    done
}

@test "with private: true what keeps another user's jobs from starting is hidden, as a path of theirs may be in it" {
    start_system --set private=true
    mkdir "$ROOT/disk"
    mount -t tmpfs -o size=1m,nr_inodes=20,mode=777 none "$ROOT/disk" || skip 'cannot mount'
    while : >"$ROOT/disk/$RANDOM$RANDOM"; do :; done 2>/dev/null
    as "$ALICE" berth submit --vram 1000 --log "$ROOT/disk/secret.log" -- true
    "$AWAIT" prints "$LIMIT" "berth health" "^warn +starts .*jobs of $ALICE .*secret.log: No space left"
    # At each retry the job briefly waits only for its turn.
    "$AWAIT" prints "$LIMIT" "runuser -u $ALICE -- berth explain 1" 'secret.log: No space left'
    try_as "$BOB" berth health
    has "bob's view" "$out" "^warn +starts .*jobs of $ALICE have not started for [0-9a-z.]+; they wait"
    has_not "bob's view" "$out" secret
    for view in "explain 1" "queue --json"; do
        "$AWAIT" prints "$LIMIT" "runuser -u $BOB -- berth $view" Machine
        # shellcheck disable=SC2086
        try_as "$BOB" berth $view
        has_not "bob's $view" "$out" secret
    done
    as "$ALICE" berth cancel 1
}

@test "with private: true all users see what keeps every job from starting" {
    start_system --set private=true
    as "$ALICE" berth submit -G 0 --wait -- true
    chmod 700 "$BERTH_DIR/logs"
    as "$ALICE" berth submit -G 0 -- true
    "$AWAIT" prints "$LIMIT" "berth health || true" '^bad +starts .*logs.*Permission denied'
    try_as "$BOB" berth health
    has "bob's view" "$out" '^bad +starts .*logs.*Permission denied'
    "$AWAIT" prints "$LIMIT" "runuser -u $BOB -- berth explain 2" 'logs.*Permission denied'
    chmod 755 "$BERTH_DIR/logs"
    as "$ALICE" berth wait 2
}

@test "waiting for another user's tasks changes nothing about them" {
    start_system
    id=$(as "$ALICE" berth submit --parsable -G 0 --hold --array 0-3 -- true)
    background all as "$BOB" berth wait "${id}_[0-2]" "${id}_1"
    background one as "$BOB" berth wait "${id}_3"
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.clients 3
    is "what has not left" "$(job_field "$id" array.pending)" 0-3
    as "$ALICE" berth cancel "${id}_3"
    finish one
    is "status" "$status" 130
    as "$ALICE" berth release "${id}_0"
    "$AWAIT" event "$LIMIT" kind=ended "array_task=0" >/dev/null
    as "$ALICE" berth cancel "$id"
    finish all
    is "status of the rest" "$status" 130
    is "who ended how" "$out" "${id}_0  COMPLETED  0
${id}_1  CANCELLED  130
${id}_2  CANCELLED  130"
}

@test "private: true is taken on HUP" {
    echo "private: false" >"$ROOT/settings.yaml"
    start_system --config "$ROOT/settings.yaml"
    alice_runs
    has "bob's view before" "$(as "$BOB" berth show "$id")" "command +sh"
    echo "private: true" >"$ROOT/settings.yaml"
    kill -HUP "$(berth status --json | jq .daemon.pid)"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=reloaded >/dev/null
    has_not "bob's view after" "$(as "$BOB" berth show "$id")" "command +sh"
    as "$ALICE" berth cancel "$id"
}

@test "with private: true a report shows what other users used, and not what they ran" {
    start_system --set private=true
    as "$ALICE" berth submit --vram 8G -J hush -W -- sh -c ': secret words; exit 3' || true
    for view in "report" "report --json" "report --html -" "history --search secret" \
        "history --search hush" "history --json"; do
        # shellcheck disable=SC2086
        try_as "$BOB" berth $view
        has_not "bob's $view" "$out" "secret|hush|[0-9a-f]{16}\""
        # shellcheck disable=SC2086
        try_as "$ALICE" berth $view
        has "alice's $view" "$out" secret
    done
    has "bob's users" "$(as "$BOB" berth report)" "^$ALICE +1 +1 "
    has "bob's commands" "$(as "$BOB" berth report)" "  \(private\)$"
    has "bob's causes" "$(as "$BOB" berth report)" " exit 3$"
    has "root's view" "$(berth report)" "secret words"
}

@test "only admins exceed user_priority_max and change other users' jobs" {
    start_system --set user_priority_max=10 --set "admin_group=$ADMINS"
    try_as "$BOB" berth submit -G 0 --priority 11 -- true
    is "exit status" "$status" 5
    has "words" "$err" "priority 11 is above 10"
    as "$BOB" berth submit -G 0 --priority 10 --wait -- true
    alice_runs
    usermod -aG "$ADMINS" "$BOB"
    as "$BOB" berth submit -G 0 --priority 500 --wait -- true
    as "$BOB" berth cancel "$id"
    as "$ALICE" berth wait "$id" || true
    gpasswd -d "$BOB" "$ADMINS" >/dev/null
    event=$(events_with kind=cancelled "job=$id")
    is "who did it" "$(json by <<<"$event")" "$BOB"
    is "by what the kernel says" "$(json by_uid <<<"$event")" "$(id -u "$BOB")"
    is "to whose job" "$(json user <<<"$event")" "$ALICE"
}

@test "a fork bomb stays within its user's limit, and ends; others' jobs go on" {
    start_system
    alice_runs
    as "$BOB" bash -c 'ulimit -u 60; berth submit --parsable -G 0 -t 15s -- \
        python3 -c "
import os, signal
while True:
    try:
        os.fork()
    except OSError:
        print(\"no more\", flush=True)
        while True: signal.pause()
"' >"$ROOT/bomb"
    try as "$BOB" berth wait "$(cat "$ROOT/bomb")"
    as "$BOB" berth wait "$(cat "$ROOT/bomb")" || status=$?
    is "exit status" "$status" 124
    has "its limit" "$(as "$BOB" berth logs @)" "no more"
    # Ended processes may still have to be reaped by their new parent.
    is "bob's processes" "$(ps -u "$BOB" -o pid=,ppid=,stat=,args= | awk '$3 !~ /^Z/')" ''
    is "alice's job" "$(job_field "$id" state)" RUNNING
    as "$ALICE" berth cancel "$id"
}

@test "a job that exceeds its memory ends, and says so; others' jobs go on" {
    start_system
    if [ "$(berth status --json | json daemon.confinement.enforced.memory)" = false ]; then skip "no memory controller here"; fi
    alice_runs
    bobs=$(as "$BOB" berth submit --parsable -G 0 --mem 64M -c 1 -- \
        python3 -c 'x = bytearray(400 << 20); print(len(x))')
    as "$BOB" berth wait "$bobs" || status=$?
    is "its state" "$(job_field "$bobs" state)" OUT_OF_MEMORY
    has "why" "$(berth show "$bobs")" "out of host memory \(the limit was 64 MiB\)"
    is "alice's job" "$(job_field "$id" state)" RUNNING
    as "$ALICE" berth cancel "$id"
    as "$ALICE" berth wait "$id" || true
    berth daemon stop
    is "groups left behind" "$(groups_of_jobs "berth-$(instance_token)")" ""
}

@test "a supervisor that is killed once it has said the end leaves no group behind" {
    start_system
    alice_runs --mem 64M
    pid=$(job_field "$id" pid)
    supervisor=$(ps -o ppid= -p "$pid")
    name=$(sed -nE "s,.*/(berth-[0-9a-f]{8})/job-$id\\.1\$,\\1,p" "/proc/$pid/cgroup" | head -1)
    if [ -z "$name" ]; then skip "no groups for jobs here"; fi
    daemon=$(daemon_pid)
    kill -STOP "$daemon"
    as "$ALICE" sh -c "echo >gate.$BATS_TEST_NUMBER"
    # It reports the end, waits for the daemon's answer, and then keeps a record of its own.
    "$AWAIT" prints "$LIMIT" "ls '$BERTH_DIR/state/jobs/$id.1'" '^exit$'
    kill -KILL $supervisor
    kill -CONT "$daemon"
    as "$ALICE" berth wait "$id"
    is "groups left behind" "$(groups_of_jobs "$name")" ""
}

@test "processes of a killed supervisor end before its job runs again, without a cgroup too" {
    local own="env BERTH_DIR=$USERS_HOME/alice/own.$BATS_TEST_NUMBER" show pid
    show="runuser -u $ALICE -- $own berth show 1 --json"
    # shellcheck disable=SC2016 # the job's shell is to expand it
    as "$ALICE" $own berth submit --sim 1 --requeue -o left -- \
        sh -c 'setsid env -i /bin/sh -c "echo \$\$; exec sleep 1000" & exec sleep 1000'
    "$AWAIT" until "$LIMIT" "$show" jobs.0.state RUNNING
    has 'the warning' "$(as "$ALICE" $own berth submit --hold --mem 1G -- true 2>&1)" '--mem is not enforced by this daemon: cannot make groups'
    printf '[mem=1G hold] true\n' >"$ROOT/mem.txt"
    has 'the warning of run' "$(as "$ALICE" $own berth run --detach "$ROOT/mem.txt" 2>&1)" '--mem is not enforced by this daemon'
    has_not 'nothing new' "$(as "$ALICE" $own berth run --detach "$ROOT/mem.txt" 2>&1)" 'not enforced'
    ln -s "$USERS_HOME/alice/left" "$ROOT/left.out"
    first=$(wait_for_output left '^[0-9]+$')
    kill -KILL "$(ps -o ppid= -p "$($show | json jobs.0.pid)")"
    "$AWAIT" until "$LIMIT" "$show" jobs.0.attempt 2
    if is_alive "$first"; then fail_with "process $first lives beside the second attempt"; fi
    as "$ALICE" $own berth daemon stop --cancel
    rm -rf "$USERS_HOME/alice/own.$BATS_TEST_NUMBER"
}

# No cgroup identifies it, and it has dropped its mark.
@test "a process on a GPU that is far below its supervisor counts as its job's, and is bounded, without a cgroup too" {
    local own="env BERTH_DIR=$USERS_HOME/alice/own.$BATS_TEST_NUMBER"
    cat >"$ROOT/deep.py" <<'END'
import os, sys
for _ in range(300):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        os._exit(0)
os.setsid()
del os.environ["BERTH_MARK"]
os.execvp(sys.argv[1], sys.argv[1:])
END
    printf 'on_exceed: kill\nsample_ms: 100\n' >"$ROOT/deep.yaml"
    as "$ALICE" $own berth daemon start --sim 1 --config "$ROOT/deep.yaml"
    as "$ALICE" $own berth submit --vram 14G -- python3 "$ROOT/deep.py" berth simjob --vram 13G --ramp 0 --hold 600
    "$AWAIT" until "$LIMIT" "runuser -u $ALICE -- $own berth show 1 --json" jobs.0.now_mib 13312
    is group "$(as "$ALICE" $own berth status --json | json daemon.cgroup)" null
    is strangers "$(as "$ALICE" $own berth gpus --json | json gpus.0.strangers)" '[]'
    as "$ALICE" $own berth cancel 1
    as "$ALICE" $own berth submit --vram 4G -- python3 "$ROOT/deep.py" berth simjob --vram 6G --ramp 0 --hold 600
    "$AWAIT" until "$LIMIT" "runuser -u $ALICE -- $own berth show 2 --json" jobs.0.state FAILED
    has 'why' "$(as "$ALICE" $own berth show 2)" 'used 6.0 GiB'
    as "$ALICE" $own berth daemon stop --cancel
    rm -rf "$USERS_HOME/alice/own.$BATS_TEST_NUMBER"
}

@test "a job that ignores TERM is killed without affecting others" {
    start_system
    alice_runs
    bobs=$(as "$BOB" berth submit --parsable -G 0 -- sh -c 'trap "" TERM; echo up; while :; do sleep 60; done')
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/logs/$(id -u "$BOB")/$bobs.log" up
    as "$BOB" berth cancel "$bobs" --grace 1s
    as "$BOB" berth wait "$bobs" || status=$?
    is "its state" "$(job_field "$bobs" state)" CANCELLED
    # Ended processes may still have to be reaped by their new parent.
    is "bob's processes" "$(ps -u "$BOB" -o pid=,ppid=,stat=,args= | awk '$3 !~ /^Z/')" ''
    is "alice's job" "$(job_field "$id" state)" RUNNING
    as "$ALICE" berth cancel "$id"
}

@test "processes left by a dead supervisor are ended by their mark, but not another user's process with that mark" {
    local mark shepherd others pid
    start_system
    id=$(as "$ALICE" berth submit --parsable -G 0 -- sh -c 'env >marks; setsid sh -c "sleep 301 & exit" ; sleep 302')
    "$AWAIT" until "$LIMIT" "$E2E/lines-in $USERS_HOME/alice/marks ^BERTH_MARK=" lines 1
    mark=$(grep ^BERTH_MARK= "$USERS_HOME/alice/marks")
    as "$BOB" env "$mark" setsid sleep 303 3>&- &
    env "$mark" setsid sleep 304 3>&- &
    others="$!"
    "$AWAIT" until "$LIMIT" "$E2E/lines-in /proc/$others/cmdline 304" lines 1
    "$AWAIT" prints "$LIMIT" "pgrep -u $BOB -fx 'sleep 303'" .
    wait_until_running "$id"
    shepherd=$(ps -o ppid= -p "$(job_field "$id" pid)" | tr -d ' ')
    kill -KILL "$shepherd"
    as "$ALICE" berth wait "$id" || status=$?
    is "its state" "$(job_field "$id" state)" LOST
    # They have been killed; a busy kernel may need a moment until they are gone.
    for pid in $(pgrep -u "$ALICE"); do "$AWAIT" pid "$LIMIT" "$pid"; done
    is "alice's processes" "$(pgrep -r R,S,D -u "$ALICE" | wc -l)" 0
    is "bob's process" "$(pgrep -u "$BOB" -fx 'sleep 303' | wc -l)" 1
    is "root's process" "$(tr '\0' ' ' <"/proc/$others/cmdline")" 'sleep 304 '
    kill "$others" $(pgrep -u "$BOB")
}

@test "a job of a deleted account does not run, and says why it waits" {
    start_system
    useradd -M -d / "${ALICE}x"
    runuser -u "${ALICE}x" -- berth submit -G 0 --hold -- true
    userdel -f "${ALICE}x"
    berth release 1
    "$AWAIT" prints "$LIMIT" "berth explain 1" "no longer has an account on this machine"
    has "for the administrator" "$(berth health || true)" "no longer has an account on this machine; they wait"
    berth cancel 1
}

@test "a restarted daemon finds the jobs of both users, and they end as they would" {
    start_system
    alice_runs
    bobs=$(as "$BOB" berth submit --parsable -G 1 -- sh -c 'sleep 0.2; id -un; exit 3')
    kill_daemon
    start_system
    as "$BOB" berth wait "$bobs" || status=$?
    is "bob's exit status" "$status" 3
    is "it ran as" "$(as "$BOB" berth logs "$bobs")" "$BOB"
    echo go >"$USERS_HOME/alice/gate.$BATS_TEST_NUMBER"
    as "$ALICE" berth wait "$id"
    is "alice's log" "$(as "$ALICE" berth logs "$id")" "secret words
go"
}

@test "only an admin can release a job that an admin holds, however it was held" {
    start_system --set "admin_group=$ADMINS"
    as "$ALICE" berth submit -G 0 --hold -- true
    as "$ALICE" berth submit -G 0 --array 0-2 --hold -- true
    berth hold 1 2
    for id in 1 2 2_1; do
        try_as "$ALICE" berth release "$id"
        is "exit status for $id" "$status" 5
        has "why" "$err" "an admin holds it, and only an admin can release it"
    done
    has "the reason" "$(as "$ALICE" berth explain 1)" "held by an admin, and only an admin can release it"
    is "its state" "$(berth show 1 --json | json jobs.0.state)" HELD
    berth daemon stop
    start_system
    try_as "$ALICE" berth release 1
    is "exit status after a restart" "$status" 5
    berth release 1 2
    as "$ALICE" berth wait 1 2
    # Alice may release her own hold, and an admin may do so for her.
    own=$(as "$ALICE" berth submit -G 0 --hold --parsable -- true)
    berth release "$own"
    own=$(as "$ALICE" berth submit -G 0 --hold --parsable -- true)
    as "$ALICE" berth release "$own"
    as "$ALICE" berth wait "$own"
}

@test "no user's job outlives its time limit by more than grace_max_ms, whichever way it asks" {
    start_system --set grace_max_ms=2000 --set grace_ms=1000
    try_as "$ALICE" berth submit -G 0 -t 2s --grace 24h -- true
    is "exit status" "$status" 5
    has "why" "$err" "a grace of 1d00h is above 2.0s, the maximum for users"
    as "$ALICE" sh -c 'printf "[gpus=0 grace=3s] true\n" >jobs.txt'
    try_as "$ALICE" berth run jobs.txt
    has "a line of a file" "$err$out" "a grace of 3.0s is above 2.0s"
    as "$ALICE" sh -c 'printf "#!/bin/sh\n#BERTH --grace=3s\ntrue\n" >job.sh'
    try_as "$ALICE" berth submit -G 0 job.sh
    is "exit status of a script" "$status" 5
    as "$ALICE" berth submit -G 0 --grace 2s -- sh -c 'trap "" TERM; echo on; while :; do sleep 1; done'
    wait_until_running 1
    try_as "$ALICE" berth cancel --grace 24h 1
    is "exit status of a cancel" "$status" 5
    as "$ALICE" berth cancel 1
    as "$ALICE" berth wait 1 || true
    berth submit -G 0 --grace 24h --wait -- true
    as "$ALICE" rm jobs.txt job.sh
}
