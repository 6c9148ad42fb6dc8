#!/usr/bin/env bats
# Daemons that die, machines that go down, clients that stay connected.

load lib

case_setup()
{
    mkfifo gate
}

open_gate()
{
    timeout "$LIMIT" bash -c 'echo go >gate' || fail_with 'no job has come to the gate'
}

@test "after a reboot: LOST with the reason, requeued if requested, and the queue continues" {
    start_daemon 2
    berth submit --vram 1000 -- sh -c 'echo ran >>one; read line <gate'
    berth submit --vram 1000 --requeue -- sh -c 'echo ran >>two; test "$(wc -l <two)" = 2 || read line <gate'
    berth submit --vram 1000 --hold -- true
    wait_for_event kind=started job=1
    wait_for_event kind=started job=2
    wait_until_running 2
    wait_until_written one
    wait_until_written two
    cut_power
    start_daemon 2
    wait_for_event kind=ended job=1 state=LOST
    has text "$(job_field 1 text)" 'machine went down'
    wait_for_event kind=ended job=2 state=COMPLETED
    is attempts "$(job_field 2 attempt)" 2
    is ran "$(cat one)" ran
    is state "$(job_field 3 state)" HELD
}

@test "after a reboot: a folder that is damaged for good makes its job LOST, which says so" {
    start_daemon 2
    berth submit --vram 1000 -- sh -c 'echo ran >>one; read line <gate'
    wait_until_running 1
    wait_until_written one
    cut_power
    mv "$BERTH_DIR/state/jobs/1.1" damaged
    : >"$BERTH_DIR/state/jobs/1.1"
    start_daemon 2
    wait_for_event kind=ended job=1 state=LOST
    has text "$(job_field 1 text)" 'machine went down.*cannot be read: Not a directory'
    is ran "$(cat one)" ran
    try berth submit --wait --vram 20G -- true
    is status "$status" 0
    # The answer comes before the folder is removed.
    "$AWAIT" prints "$LIMIT" "ls $BERTH_DIR/state/jobs | wc -l" '^0$'
}

@test "kill -9 of the daemon under a follower: it is started again, and every line ends" {
    printf '[vram=1000] read line <gate; exit 3\n[vram=1000] true\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    kill_daemon
    open_gate
    finish run
    is status "$status" 3
    has said "$out" '1 +failed exit 3'
    is attempts "$(job_field 1 attempt)" 1
}

@test "a follower gets the end of a job that ended while no daemon was running" {
    printf '[vram=1000] read line <gate; exit 7\n' >jobs.txt
    start_daemon 1
    berth run --detach jobs.txt
    wait_until_running 1
    command_pid=$(job_field 1 pid)
    kill_daemon
    open_gate
    "$AWAIT" pid "$LIMIT" "$command_pid"
    try berth run --sim 1 jobs.txt
    is status "$status" 7
    is attempts "$(job_field 1 attempt)" 1
}

@test "one GPU has one daemon: the second names the first" {
    start_daemon 1
    # Simulated GPUs derive their UUIDs from the folder: the same folder, the same GPUs.
    mkdir -p "$ROOT/other"
    ln -s "$BERTH_DIR/sim" "$ROOT/other/sim"
    status=0
    timeout "$LIMIT" berthd --dir "$ROOT/other" --sim 1 2>err.txt || status=$?
    is status "$status" 6
    has words "$(cat err.txt)" "another daemon has this GPU.*$BERTH_DIR"
}

@test "a daemon without --sim never starts simulated jobs on real GPUs" {
    start_daemon 1
    berth submit --hold -- true
    stop_daemon
    timeout "$LIMIT" berth daemon start
    is backend "$(berth gpus --json | json backend)" sim
}

@test "a cancel that the daemon's death interrupted is completed" {
    start_daemon 1
    berth submit --vram 1000 --grace 60s -- sh -c 'trap "" TERM; echo up; while :; do read line <gate || :; done'
    wait_until_written "$BERTH_DIR/logs/1.log" # before that TERM would end it
    wait_until_running 1
    berth cancel 1
    kill_daemon
    start_daemon 1
    # Its supervisor got the request and keeps the grace period; a user in a hurry repeats it.
    berth cancel 1 --grace 0.1s
    wait_for_event kind=ended job=1 state=CANCELLED
}

@test "a stopped daemon stays stopped, and its clients say how to continue" {
    printf '[vram=1000] read line <gate; exit 3\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    stop_daemon
    finish run
    is status "$status" 4
    # Or, if it did not follow the events yet, without a name.
    has said "$out" 'has stopped the daemon|the daemon was stopped'
    has 'way back' "$out" 'berth run'
    try berth queue
    is 'status of queue' "$status" 4
    background again berth run jobs.txt
    wait_for_output again ' running '
    open_gate
    finish again
    is status "$status" 3
}

@test "after a restart a job's processes still belong to it" {
    start_daemon 1
    berth submit --vram 14G -- berth simjob --vram 13G --ramp 0 --hold 600
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.now_mib 13312
    kill_daemon
    # No sample comes by itself: the daemon must have requested one.
    printf 'sample_ms: 60000\n' >"$BERTH_DIR/config.yaml"
    start_daemon 1
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.now_mib 13312
    is strangers "$(berth gpus --json | json gpus.0.strangers)" '[]'
    # It holds 14 GiB, counted once: 8G fit beside it.
    berth submit --wait --vram 8G -- true
    berth cancel 1
}

# Below so many parents that nothing would count them, and out of the session: its group and
# its mark identify its job; in user mode without groups, the mark or the parents do.
@test "a process on a GPU that is far below its supervisor counts as its job's" {
    start_daemon 1
    cat >deep.py <<'END'
import os, sys
for _ in range(80):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        os._exit(0)
env = {} if sys.argv[1] == "bare" else os.environ
os.execve(sys.argv[2], [sys.argv[2], "simjob", "--vram", "13G", "--ramp", "0", "--hold", "600"],
          {key: os.environ[key] for key in os.environ if key in env or key != "BERTH_MARK"})
END
    berth submit --vram 14G -- python3 deep.py bare "$(command -v berth)"
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.now_mib 13312
    is strangers "$(berth gpus --json | json gpus.0.strangers)" '[]'
    berth cancel 1
}

@test "old jobs are deleted when the daemon is idle; a file's lines are not" {
    mkdir -p "$BERTH_DIR"
    printf 'keep_jobs: 2\n' >"$BERTH_DIR/config.yaml"
    printf '%s\n' '[gpus=0] echo a' '[gpus=0] echo b' '[gpus=0] echo c' '[gpus=0] false' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 1
    "$AWAIT" prints "$LIMIT" 'berth show 2 2>&1' 'no job'
    try berth show 1
    is 'job 1' "$status" 3
    is 'job 4' "$(job_field 4 state)" FAILED
    run_file 1 jobs.txt
    is status "$status" 1
    is 'new jobs' "$(events_with kind=submitted | wc -l)" 4
}

@test "the newest ended jobs are kept, however many wait with higher numbers" {
    mkdir -p "$BERTH_DIR"
    printf 'keep_jobs: 3\n' >"$BERTH_DIR/config.yaml"
    start_daemon 1
    for _ in 1 2 3 4 5 6 7 8 9; do berth submit -G 0 --hold -- true; done
    berth release 1-5
    berth wait 1-5
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" 'event=pruned'
    for job in 3 4 5; do is "job $job" "$(job_field $job state)" COMPLETED; done
    "$AWAIT" prints "$LIMIT" 'berth show 2 2>&1' 'no job'
}

@test "the oldest ended jobs are forgotten when the database grows too large" {
    mkdir -p "$BERTH_DIR"
    printf 'keep_mib: 1\n' >"$BERTH_DIR/config.yaml"
    start_daemon 1
    for i in $(seq 30); do
        FAT="$i$(head -c 90000 /dev/zero | tr '\0' x)" berth submit -G 0 --hold -- true
    done
    is "those that wait are kept" "$(berth queue --json | jq '.jobs | length')" 30
    berth cancel 1-29
    ln -s "$BERTH_DIR/daemon.log" "$ROOT/log.out"
    wait_for_output log 'event=pruned jobs=29'
    try berth show 29
    is "the last that ended" "$status" 3
    is "the one that waits" "$(job_field 30 state)" HELD
}

@test "leftover attempt folders of a dead daemon are removed at the next start" {
    start_daemon 1
    berth submit --wait -G 0 -- true
    # Its first attempt is over; it waits for the second.
    berth submit -G 0 --retries 4 -- false
    wait_for_event kind=requeued job=2
    kill_daemon
    # Killed while it made one, while it removed one, and before it removed one.
    mkdir "$BERTH_DIR"/state/jobs/{1.1,2.1,7.1,8.2}
    : >"$BERTH_DIR/state/jobs/7.1/lock"
    : >"$BERTH_DIR/state/jobs/8.2/exit"
    start_daemon 1
    # On a slow machine the second attempt has begun by now.
    is "folders" "$(ls "$BERTH_DIR/state/jobs" | grep -v '^2\.[2-5]$')" ''
}

# By its cgroup if one can be made; otherwise (users.bats) because it is reparented to the
# process that forked the supervisor.
@test "processes left by a killed supervisor end before its job runs again, even without environment and in their own session" {
    local first
    start_daemon 1
    # shellcheck disable=SC2016 # the job's shell is to expand it
    berth submit --requeue -- sh -c 'setsid env -i /bin/sh -c "echo \$\$; exec sleep 1000" & exec sleep 1000'
    wait_until_running 1
    ln -s "$BERTH_DIR/logs/1.log" "$ROOT/job.out"
    first=$(wait_for_output job '^[0-9]+$')
    kill -KILL "$(ps -o ppid= -p "$(job_field 1 pid)")"
    wait_for_event kind=started job=1 attempt=2
    if is_alive "$first"; then fail_with "process $first lives beside the second attempt"; fi
    berth cancel 1
}

@test "jobs whose unit is stopped are asked to end, and the record says why, without a daemon too" {
    local supervisor
    start_daemon 1
    # shellcheck disable=SC2016
    berth submit -G 0 -- 'trap "echo asked; exit 3" TERM; echo ready; while :; do sleep 0.1; done'
    ln -s "$BERTH_DIR/logs/1.log" "$ROOT/job.out"
    wait_for_output job ready
    wait_until_running 1 # the command may be ahead of the daemon
    supervisor=$(ps -o ppid= -p "$(job_field 1 pid)" | tr -d ' ')
    kill_daemon
    kill -URG "$supervisor"
    "$AWAIT" pid "$LIMIT" "$supervisor"
    has 'the log' "$(cat "$BERTH_DIR/logs/1.log")" asked
    start_daemon 1
    wait_for_event kind=ended job=1 >/dev/null
    is state "$(job_field 1 state)" LOST
    has why "$(berth show 1)" 'the machine was shut down'
}

# `under_init systemd|shell SCRIPT`: run it as process 1 of a pid namespace, in a machine that
# systemd has started, or not.
under_init()
{
    unshare -pf --mount-proc mount -t tmpfs none /run || skip "no namespaces can be made here"
    # shellcheck disable=SC2016 # the shell in the namespace is to expand it
    timeout "$LIMIT" unshare -pf --mount-proc bash -euc '
        mount -t tmpfs none /run
        [ "$0" = shell ] || mkdir -p /run/systemd/system
        eval "$1"' "$1" "$2"
}

# As after the removal of the package, whose unit says that it is URG.
@test "a job whose supervisor init asks to end with TERM is LOST as well, and may run again" {
    mkfifo begun
    # shellcheck disable=SC2016 # the shell in the namespace is to expand it
    under_init systemd '
        berth daemon start --sim 1
        berth submit --requeue -G 0 -- "echo \$\$ >begun; exec sleep 1000"
        read -r first <begun
        kill -TERM "$(ps -o ppid= -p "$first")"
        read -r second <begun
        [ "$first" != "$second" ]
        berth daemon stop --cancel'
}

# Without its file, the unit has no KillMode= either.
@test "a job to whose command and supervisor init sends TERM is LOST, whichever ends first" {
    mkfifo begun
    # shellcheck disable=SC2016 # the shell in the namespace is to expand it
    under_init systemd '
        berth daemon start --sim 1
        berth submit --requeue -G 0 -- "echo \$\$ >begun; exec sleep 1000"
        read -r first <begun
        supervisor=$(ps -o ppid= -p "$first")
        kill -STOP $supervisor
        kill -TERM "$first" $supervisor
        until [ "$(ps -o s= -p "$first")" = Z ]; do sleep 0.02; done
        kill -CONT $supervisor
        read -r second <begun
        [ "$first" != "$second" ]
        kill -TERM "$second" $(ps -o ppid= -p "$second")
        read -r third <begun
        [ "$second" != "$third" ]
        berth daemon stop --cancel'
}

@test "a job whose supervisor process 1 ends with TERM where that is not systemd is CANCELLED" {
    mkfifo begun
    # shellcheck disable=SC2016 # the shell in the namespace is to expand it
    under_init shell '
        berth daemon start --sim 1
        berth submit --requeue -G 0 -- "echo \$\$ >begun; exec sleep 1000"
        read -r command <begun
        kill -TERM "$(ps -o ppid= -p "$command")"
        timeout 20 berth wait 1 || [ $? -ne 124 ]
        berth daemon stop'
    start_daemon 1
    is state "$(job_field 1 state)" CANCELLED
}

@test "a damaged database without the rows of running attempts: live jobs continue, the others are LOST" {
    start_daemon 2
    mkfifo held
    berth submit --vram 1000 -- sh -c 'echo ran >>ran.1; read x <held; exit 7'
    berth submit --vram 1000 -- sh -c 'echo ran >>ran.2; exec sleep 1000'
    wait_until_running 2
    wait_until_written ran.2
    supervisor=$(ps -o ppid= -p "$(job_field 2 pid)" | tr -d ' ')
    kill_daemon
    kill -KILL "$supervisor"
    python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db: db.execute("delete from attempts")' "$BERTH_DIR/state/berth.db"
    start_daemon 2
    wait_for_event kind=ended job=2 state=LOST
    echo >held
    wait_for_event kind=ended job=1 state=FAILED
    is "its exit code" "$(job_field 1 exit_code)" 7
    is runs "$(cat ran.1 ran.2 | wc -l)" 2
}

@test "a folder that cannot be removed is reported once, and removed later" {
    start_daemon 1
    berth submit --gpus 0 -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    touch "$BERTH_DIR/state/jobs/1.1/foreign"
    timeout "$LIMIT" sh -c 'echo go >gate'
    berth wait 1
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" 'job=1 attempt=1 folder stays for now: Directory not empty' >/dev/null
    berth submit --gpus 0 --wait -- true
    is 'how often' "$(grep -c 'folder stays for now' "$BERTH_DIR/daemon.log")" 1
    stop_daemon
    start_daemon 1
    is 'how often after a restart' "$(grep -c 'folder stays for now' "$BERTH_DIR/daemon.log")" 2
    stop_daemon
    rm "$BERTH_DIR/state/jobs/1.1/foreign"
    start_daemon 1
    [ ! -e "$BERTH_DIR/state/jobs/1.1" ] || fail_with "it is still there"
}
