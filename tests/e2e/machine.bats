#!/usr/bin/env bats
# Faults of the machine are not charged to jobs: a job that cannot start for lack of processes,
# folders or room waits, health reports the reason, and it continues by itself when that is
# over.

load lib

case_setup()
{
    pids_group=
    mounted=
}

case_teardown()
{
    if [ -n "$mounted" ]; then umount -l "$mounted"; fi
    if [ -n "$pids_group" ]; then rmdir "$pids_group"; fi
}

# A cgroup with a limit on processes; the daemon and its nursery are moved into it.
# `few_processes 3`, `few_processes max`.
few_processes()
{
    local pid
    [ "$(id -u)" = 0 ] || skip 'needs root to bound processes'
    if [ -z "$pids_group" ]; then
        if [ -d /sys/fs/cgroup/pids ]; then
            pids_group=/sys/fs/cgroup/pids/berth-test-$$
        else
            pids_group=/sys/fs/cgroup/berth-test-$$
        fi
        mkdir "$pids_group" 2>/dev/null || { pids_group=; skip 'cannot make a cgroup'; }
        [ -e "$pids_group/pids.max" ] || skip 'no controller of processes here'
        for pid in $(marked_pids); do
            case $(cat "/proc/$pid/comm") in
            berthd | berth-nursery | berth-probe) echo "$pid" >"$pids_group/cgroup.procs" ;;
            esac
        done
    fi
    echo "$1" >"$pids_group/pids.max"
}

# `full_disk FOLDER`: a file system of its own, which has no room for any name besides the
# folder filler; `full_disk FOLDER size=8m`: a small empty one.
full_disk()
{
    [ "$(id -u)" = 0 ] || skip 'needs root to mount a small disk'
    mkdir -p "$1"
    mount -t tmpfs -o "${2:-size=1m,nr_inodes=20}" none "$1" || skip 'cannot mount'
    mounted=$1
    if [ $# -gt 1 ]; then return; fi
    mkdir "$1/filler"
    while : >"$1/filler/$RANDOM$RANDOM"; do :; done 2>/dev/null
}

health_says()
{
    "$AWAIT" prints "$LIMIT" 'berth health' "$1" || fail_with "health never said '$1'; it says:
$(berth health)"
}

# Each of the jobs ran once.
each_ran_once()
{
    is "jobs that completed" \
        "$(berth show "1-$1" --json | grep -o '"state": *"COMPLETED"' | wc -l)" "$1"
    is "runs of each job" "$(wc -l ran.* | awk '$2 != "total" { print $1 }' | sort | uniq -c |
        tr -s ' ')" " $1 1"
}

@test "no process can be forked: the queue waits, health says so, and it all runs afterwards" {
    start_daemon 4
    few_processes 3
    for i in $(seq 1 30); do
        berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    done
    health_says '^bad +starts .*(no process|Resource temporarily).*jobs wait'
    has "why" "$(berth explain 30)" 'PENDING: Machine: .*cannot be started now'
    has "status" "$(berth status)" '^trouble '
    # It is retried without a job: no job's attempts increase meanwhile.
    wait_until_tried_again
    is "jobs that have ended" "$(events_with kind=ended | wc -l)" 0
    few_processes max
    try berth wait 1-30
    is status "$status" 0
    each_ran_once 30
    try berth health
    has_not "health afterwards" "$out" '^bad +starts'
}

# Wait until a trial has met the fault again.
wait_until_tried_again()
{
    local before
    before=$(berth show 1-30 --json | python3 -c 'import json, sys
print(sum(j["attempt"] or 0 for j in json.load(sys.stdin)["jobs"]))')
    health_says 'has started for ([3-9]|[1-9][0-9])s'
    is "attempts" "$(berth show 1-30 --json | python3 -c 'import json, sys
print(sum(j["attempt"] or 0 for j in json.load(sys.stdin)["jobs"]))')" "$before"
}

@test "a stopped nursery is woken up, and what it had not forked runs once" {
    start_daemon 4
    nursery=$(for pid in $(marked_pids); do
        if [ "$(cat "/proc/$pid/comm")" = berth-nursery ]; then echo "$pid"; fi
    done)
    kill -STOP "$nursery"
    for i in $(seq 1 12); do
        berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    done
    try berth wait 1-12
    is status "$status" 0
    each_ran_once 12
}

# The programs are copied, so that one of them can be removed. A folder for trials exists too,
# as a killed daemon leaves it.
@test "a nursery that cannot be started again: the queue waits, nothing fails, and it all runs afterwards" {
    local programs nursery
    programs=$(dirname "$(command -v berthd)")
    mkdir -p "$ROOT/root/libexec" "$ROOT/root/bin"
    cp "$programs"/berth "$programs"/berthd "$ROOT/root/bin"
    cp -r "$programs/../libexec/berth" "$ROOT/root/libexec"
    PATH=$ROOT/root/bin:$PATH
    start_daemon 4
    nursery=$(for pid in $(marked_pids); do
        if [ "$(cat "/proc/$pid/comm")" = berth-nursery ]; then echo "$pid"; fi
    done)
    mkdir "$BERTH_DIR/state/jobs/.trial.d"
    cd "$ROOT/root/libexec/berth"
    mv berth-shepherd kept
    printf '#!/bin/sh\nexit 1\n' >berth-shepherd
    chmod +x berth-shepherd
    cd "$WORK"
    kill -KILL "$nursery"
    "$AWAIT" pid "$LIMIT" "$nursery"
    for i in $(seq 1 12); do
        berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    done
    health_says '^bad +starts .*process that forks supervisors.*jobs wait'
    mv "$ROOT/root/libexec/berth/kept" "$ROOT/root/libexec/berth/berth-shepherd"
    try berth wait 1-12
    is status "$status" 0
    each_ran_once 12
}

@test "the jobs' cgroups are removed while there are none: they are made again, and a job with --mem has its bound" {
    local group
    start_daemon 2
    berth doctor | grep -q '^ok .*memory' || skip 'memory is not bounded here'
    group=$(sed -n 's/.*event=confinement cgroup=\([^ ]*\) .*/\1/p' "$BERTH_DIR/daemon.log")
    berth submit --wait -G 0 -- true
    # Other programs' groups come and go while find runs.
    find /sys/fs/cgroup -depth -type d -name "${group##*/}" -exec rmdir {} \; 2>/dev/null || true
    is 'groups left' "$(find /sys/fs/cgroup -type d -name "${group##*/}" 2>/dev/null)" ''
    try berth submit --wait -G 0 --mem 64M -- python3 -c 'b = bytearray(400 << 20)'
    is status "$status" 137
    has "why" "$(job_field 2 text)" 'memory'
}

a_folder_that_is_no_more()
{
    start_daemon 2
    mkfifo gate
    berth submit --vram 1000 -- sh -c 'echo ran >>ran.1; read x <gate'
    wait_until_running 1
    wait_until_written ran.1
    command_pid=$(job_field 1 pid)
    rm -rf "$BERTH_DIR"/state/jobs/*
    "$@"
    kill_daemon
    start_daemon 2
    wait_for_event kind=ended job=1 state=LOST
    has text "$(job_field 1 text)" 'folder was removed'
    is runs "$(wc -l <ran.1)" 1
    "$AWAIT" pid "$LIMIT" "$command_pid"
}

@test "a job whose folder is removed does not run twice at once after a restart" {
    a_folder_that_is_no_more
}

@test "a job's folder that becomes a file: what runs is ended, and the job is LOST" {
    a_folder_that_is_no_more touch "$BERTH_DIR/state/jobs/1.1"
}

@test "the folder of attempts is removed with a queue behind it: nothing fails for that" {
    start_daemon 2
    mkfifo gate.1 gate.2
    berth submit -- sh -c 'echo ran >>ran.$BERTH_JOB_ID; read x <gate.1'
    berth submit -- sh -c 'echo ran >>ran.$BERTH_JOB_ID; read x <gate.2'
    for i in $(seq 3 20); do berth submit -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'; done
    wait_until_running 2
    rm -rf "$BERTH_DIR/state/jobs"
    echo >gate.1
    echo >gate.2
    try berth wait 1-20
    is status "$status" 0
    each_ran_once 20
}

@test "a folder that cannot be recreated: jobs wait until it can, and do not fail" {
    [ "$(id -u)" = 0 ] || skip 'needs root to mount'
    start_daemon 2
    kill_daemon
    full_disk "$BERTH_DIR/state/jobs"
    start_daemon 2
    for i in $(seq 1 6); do berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'; done
    health_says '^bad +starts .*No space left'
    is "attempts" "$(job_field 6 attempt)" 0
    rm -r "$BERTH_DIR/state/jobs/filler"
    try berth wait 1-6
    is status "$status" 0
    each_ran_once 6
}

@test "the logs' disk is full: jobs wait, health names that disk, submissions are accepted" {
    full_disk "$BERTH_DIR/logs"
    start_daemon 2
    for i in $(seq 1 8); do
        try berth submit --vram 1000 -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
        is "status of submission $i" "$status" 0
    done
    health_says '^bad +starts .*cannot .*logs.*No space left'
    rm -r "$BERTH_DIR/logs/filler"
    try berth wait 1-8
    is status "$status" 0
    each_ran_once 8
}

@test "a user's own disk has no room for a log: that user's jobs wait, and resume by themselves" {
    start_daemon 2
    full_disk "$WORK/own"
    berth submit --vram 1000 --log "$WORK/own/x.log" -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    health_says '^warn +starts .*jobs of .*own/x.log.*No space left'
    has "why" "$(berth explain 1)" 'Machine: .*No space left'
    try berth submit -G 0 -- true
    is "another submission" "$status" 0
    has_not "status" "$(berth status)" '^trouble'
    # The report ends once no job waits for that any more.
    berth cancel 1
    "$AWAIT" prints "$LIMIT" 'berth health | grep -cE "^warn +starts" || true' '^0' ||
        fail_with "health still says: $(berth health)"
    berth submit --vram 1000 --log "$WORK/own/x.log" -- sh -c 'echo ran >>ran.$BERTH_JOB_ID'
    health_says '^warn +starts .*jobs of .*own/x.log.*No space left'
    rm -r own/filler
    try berth wait 2-3
    is status "$status" 0
    is runs "$(wc -l <ran.3)" 1
}

@test "GPUs keep their numbers when the probe fails at a restart" {
    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 100\nidle_sample_ms: 200\nprobe_deadline_ms: 1000\n' >"$BERTH_DIR/config.yaml"
    start_daemon 3
    mkfifo gate
    berth submit --gpu-ids 2 -- sh -c 'read x <gate'
    wait_until_running 1
    before=$(berth gpus --json | json gpus.0.uuid)
    on_two=$(berth gpus --json | json gpus.2.uuid)
    kill_daemon
    printf 'error\n' >"$BERTH_DIR/sim/fault"
    start_daemon 3
    is "gpu 0" "$(berth gpus --json | json gpus.0.uuid)" "$before"
    berth pause 0
    berth submit --gpu-ids 1 -- sh -c 'echo "$BERTH_GPU_UUIDS" >on'
    rm "$BERTH_DIR/sim/fault"
    wait_for_event kind=ended job=2 state=COMPLETED
    is "gpu 0 afterwards" "$(berth gpus --json | json gpus.0.uuid)" "$before"
    is "its state" "$(berth gpus --json | json gpus.0.state)" paused
    is "the job's gpu" "$(berth gpus --json | json gpus.2.jobs.0)" 1
    is "its uuid" "$(berth gpus --json | json gpus.2.uuid)" "$on_two"
    is "gpu 1" "$(cat on)" "$(berth gpus --json | json gpus.1.uuid)"
    echo >gate
    wait_for_event kind=ended job=1 state=COMPLETED
}

@test "without a readable GPU the daemon starts, says so, and runs jobs that need none" {
    if command -v nvidia-smi >/dev/null || ls /dev/nvidia0 2>/dev/null; then skip "there is one"; fi
    try berth daemon start
    is status "$status" 0
    try berth health
    is "status of health" "$status" 1
    has health "$out" '^bad +probe .*wait'
    try berth submit --wait -G 0 -- sh -c 'exit 5'
    is "status of a job without a GPU" "$status" 5
    try berth submit -- true
    is "status of a submission" "$status" 0
    has note "$err" 'no GPU can be read now.*waits'
    is reason "$(job_field 2 reason)" Probe
    local verb
    for verb in 'show 2' 'explain 2' gpus ''; do
        try berth $verb
        has "the driver's trouble in berth $verb" "$out$err" 'NVML.*NVIDIA driver'
        has_not "berth $verb" "$out$err" 'not been read yet|last known values'
    done
}

@test "without a readable GPU, those of an earlier daemon are shown with the cause, and simulated ones are not" {
    if command -v nvidia-smi >/dev/null || ls /dev/nvidia0 2>/dev/null; then skip "there is one"; fi
    start_daemon 2
    berth submit -G 0 --wait -- true
    stop_daemon
    try berth daemon start
    is status "$status" 0
    is 'GPUs after simulated ones' "$(berth gpus --json | json gpus)" '[]'
    try berth health
    is "status of health" "$status" 1
    has health "$out" '^bad +probe .*NVML.*NVIDIA driver'
    try berth doctor
    has_not 'a line of doctor that breaks off' "$out" ': *$'
    stop_daemon
    export BERTH_NVML=/none BERTH_NVIDIA_SMI=$BATS_TEST_DIRNAME/../gpu/fake_smi FAKE_SMI_DIR=$ROOT/card
    mkdir "$FAKE_SMI_DIR"
    echo '0, GPU-5e0c1a2b-0000-0000-0000-000000000001, 24000, 10, 0, 40, Fake GPU, 00000000:01:00.0, Default' >"$FAKE_SMI_DIR/gpus"
    : >"$FAKE_SMI_DIR/procs"
    timeout "$LIMIT" berth daemon start
    berth submit -G 0 --wait -- true
    stop_daemon
    export BERTH_NVIDIA_SMI=/none
    timeout "$LIMIT" berth daemon start
    local verb
    for verb in gpus 'gpus -o index,state' status ''; do
        try berth $verb
        has "the cause in berth $verb" "$out$err" 'have not answered since .*: nvml: .*/none.*; these are the last known values'
    done
    try berth health
    has health "$out" '^warn +gpu +0 of 1 GPUs are available'
    try berth doctor
    has_not 'a line of doctor that breaks off' "$out" ': *$'
    has 'why VRAM is not enforced' "$out" '^ok +vram +gpu 0: .*not enforced: it has not been read'
}

# An nvidia-smi that takes several times sample_ms for each answer, so its figures are already
# old when they arrive.
@test "GPUs that are read more slowly than sample_ms says: jobs start all the same" {
    export BERTH_NVML=/none BERTH_NVIDIA_SMI=$ROOT/slow_smi FAKE_SMI_DIR=$ROOT/card
    mkdir "$FAKE_SMI_DIR"
    echo '0, GPU-5e0c1a2b-0000-0000-0000-000000000001, 24000, 10, 0, 40, Fake GPU, 00000000:01:00.0, Default' >"$FAKE_SMI_DIR/gpus"
    : >"$FAKE_SMI_DIR/procs"
    printf '#!/bin/sh\nsleep 0.3\nexec "%s" "$@"\n' "$BATS_TEST_DIRNAME/../gpu/fake_smi" >"$ROOT/slow_smi"
    chmod +x "$ROOT/slow_smi"
    printf '%s: 100\n' sample_ms idle_sample_ms >slow.yaml
    timeout "$LIMIT" berth daemon start --config slow.yaml
    berth submit --gpus 0 -- true
    berth submit --vram 1G -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    wait_for_event kind=ended job=2 state=COMPLETED
}

@test "a small disk under a steady load is not filled by the daemon's own log" {
    full_disk "$BERTH_DIR/state" size=8m
    start_daemon 1
    python3 - "$BERTH_DIR/berth.sock" "$WORK" <<'PY'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rw")
for i in range(1500):
    job = {"command": "true", "hold": True, "name": f"n{i}"}
    f.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": "submit",
                        "params": {"cwd": sys.argv[2], "umask": 18, "env": ["PATH=/bin"], "jobs": [job]}}) + "\n")
    f.flush()
    answer = json.loads(f.readline())
    assert "result" in answer, (i, answer)
PY
    try berth submit --wait -G 0 -- sh -c 'exit 3'
    is status "$status" 3
}

@test "a full disk does not keep a daemon with --config from starting" {
    printf 'grace_ms: 1000\n' >x.yaml
    printf 'grace_ms: 2000\n' >y.yaml
    full_disk "$BERTH_DIR/state" size=8m
    timeout "$LIMIT" berth daemon start --sim 1 --config x.yaml
    berth submit --hold -- true
    kill_daemon
    cat /dev/zero >"$BERTH_DIR/state/filler" 2>/dev/null || true
    try berth daemon start --sim 1 --config y.yaml
    is status "$status" 0
    rm "$BERTH_DIR/state/filler"
}

@test "the daemon's database is removed: nothing is accepted, and health says so" {
    start_daemon 1
    berth submit --hold -- true
    mv "$BERTH_DIR/state/berth.db" kept.db
    try berth submit -- true
    is status "$status" 1
    has words "$err" 'berth.db was removed or replaced'
    try berth health
    has health "$out" '^bad +d.* removed or replaced'
    mv kept.db "$BERTH_DIR/state/berth.db"
    "$AWAIT" prints "$LIMIT" 'berth submit --wait -G 0 -- true && echo well' well
}

# A limit of under a second would need none. TERM is ignored, so that the grace period has to
# end as well.
@test "no timer can be made: jobs run, and time limits and grace end them all the same" {
    try python3 "$E2E/denied.py" timerfd_create EMFILE true
    if [ "$status" -eq 77 ]; then skip 'no seccomp here'; fi
    is "a timer" "$(python3 "$E2E/denied.py" timerfd_create EMFILE \
        python3 -c 'import ctypes; print(ctypes.CDLL(None).timerfd_create(7, 0))')" -1
    timeout "$LIMIT" python3 "$E2E/denied.py" timerfd_create EMFILE berth daemon start --sim 2
    berth submit -t 10s --grace 2s -- sh -c 'trap "" TERM; echo ran >>ran.1; while :; do sleep 0.2; done'
    berth submit -t 1h -- sh -c 'echo ran >>ran.2; exit 3'
    try berth wait 1 2
    is "end by the limit" "$(job_field 1 state) $(job_field 1 attempt)" "TIMEOUT 1"
    is "end of the other" "$(job_field 2 state) $(job_field 2 exit_code)" "FAILED 3"
    is "runs" "$(cat ran.1 ran.2)" $'ran\nran'
}
