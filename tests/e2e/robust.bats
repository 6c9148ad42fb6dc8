#!/usr/bin/env bats
# Faults of real machines: probes that hang, GPUs that vanish, other programs, full disks,
# damaged databases, second daemons, files broken in the middle of an edit.

load lib

case_setup()
{
    mkfifo gate
}

# Unmount the small disk of a test.
case_teardown()
{
    if mountpoint -q "$BERTH_DIR/state"; then umount -l "$BERTH_DIR/state"; fi
}

open_gate()
{
    timeout "$LIMIT" bash -c 'echo go >gate' || fail_with 'no job has come to the gate'
}

# Make the simulated GPUs behave like broken drivers.
fault()
{
    printf '%s\n' "$@" >"$BERTH_DIR/sim/fault"
}

# Short intervals, so that tests do not wait long for a sample.
quick_settings()
{
    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 100\nidle_sample_ms: 200\nprobe_deadline_ms: 1000\n' \
        >"$BERTH_DIR/config.yaml"
}

gpu_field()
{
    berth gpus --json | json "gpus.$1.$2"
}

@test "a probe that hangs: GPUs are unknown, GPU jobs wait, other jobs run, and it recovers" {
    quick_settings
    start_daemon 1
    fault hang
    # An event may be an earlier one: a probe just started on a busy machine is slow as well.
    "$AWAIT" prints "$LIMIT" 'berth gpus --json' 'unknown_since": *[{]'
    has 'unknown since' "$(berth gpus --json | json unknown_since.rfc3339)" '^20'
    berth submit --gpus 0 -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    berth submit -- true
    is reason "$(job_field 2 reason)" Probe
    rm "$BERTH_DIR/sim/fault"
    wait_for_event kind=ended job=2 state=COMPLETED
    is state "$(gpu_field 0 state)" up
}

@test "a probe that dies is replaced, and running jobs do not notice" {
    quick_settings
    start_daemon 1
    berth submit --vram 1000 -- sh -c 'read line <gate; exit 4'
    wait_for_event kind=started job=1
    fault die
    wait_for_event kind=gpu state=unknown
    rm "$BERTH_DIR/sim/fault"
    wait_for_event kind=gpu state=up
    open_gate
    wait_for_event kind=ended job=1 exit_status=4
}

@test "a GPU that falls off the bus stops only itself" {
    quick_settings
    start_daemon 2
    fault 'lost 1'
    wait_for_event kind=gpu gpu=1 state=lost
    berth submit --devices 0 -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    berth submit --devices 1 -- true
    is state "$(job_field 2 state)" PENDING
    has explain "$(job_field 2 explain)" 'gpu 1|lost'
    rm "$BERTH_DIR/sim/fault"
    wait_for_event kind=ended job=2 state=COMPLETED
}

@test "unavailable process lists: peaks are n/a, never guessed" {
    quick_settings
    start_daemon 1
    fault silent-procs
    berth submit --vram 2000 -- berth simjob --vram 1500 --ramp 0 --hold 0.6
    wait_for_event kind=ended job=1 state=COMPLETED
    is peak "$(job_field 1 peak_mib.0)" null
    has show "$(berth show 1)" 'n/a'
}

@test "another program of 642 MiB does not block a GPU, one that grows does" {
    quick_settings
    start_daemon 1
    export BERTH_SIM_DIR=$BERTH_DIR/sim
    background small berth simjob --gpu 0 --vram 642 --ramp 0 --hold 600
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.strangers.0.mib 642
    berth submit -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    background big berth simjob --gpu 0 --vram 20000 --ramp 0 --hold 600
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.used_mib 20642
    berth submit --vram 4000 -- true
    is reason "$(job_field 2 reason)" GpuMemory
    has explain "$(job_field 2 explain)" 'not Berth|stranger|pid'
}

@test "a user directory that does not answer makes no GPU unknown: the uid of another program's user replaces the name" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    quick_settings
    cc -shared -fPIC -o "$ROOT/slow_names.so" "$E2E/slow_names.c" -ldl
    touch "$ROOT/slow"
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 LD_PRELOAD=$ROOT/slow_names.so SLOW_UID=$(id -u) SLOW_WHILE=$ROOT/slow start_daemon 1
    export BERTH_SIM_DIR=$BERTH_DIR/sim
    background other berth simjob --gpu 0 --vram 642 --ramp 0 --hold 600
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.strangers.0.user "uid:$(id -u)"
    berth submit -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    rm "$ROOT/slow"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.strangers.0.user "$(id -un)"
}

@test "two jobs of 14G that arrive together never share one GPU of 24G" {
    cat >jobs.txt <<'JOBS'
[vram=14G] berth simjob --vram 14000 --ramp 0 --hold 0.5
[vram=14G] berth simjob --vram 14000 --ramp 0 --hold 0.5
JOBS
    run_file 1 jobs.txt
    is status "$status" 0
    [ "$(seq_of kind=ended job=1)" -lt "$(seq_of kind=started job=2)" ]
}

@test "a job that daemonises a child leaves nothing behind" {
    start_daemon 1
    berth submit -- sh -c 'setsid sh -c "sleep 600 & exec sleep 600" & sleep 0.1; exit 5'
    wait_for_event kind=ended job=1 exit_status=5
    is leftovers "$("$AWAIT" list | while read -r pid; do
        tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null; done | grep -c 'sleep 600')" 0
}

@test "a second daemon on the same state is refused" {
    start_daemon 1
    status=0
    timeout "$LIMIT" berthd --dir "$BERTH_DIR" --sim 1 2>err.txt || status=$?
    is status "$status" 6
    has words "$(cat err.txt)" 'already running'
}

@test "SIGTERM leaves jobs running; the next daemon takes them over" {
    start_daemon 1
    berth submit --vram 1000 -- sh -c 'read line <gate; exit 9'
    wait_for_event kind=started job=1
    pid=$(daemon_pid)
    kill -TERM "$pid"
    "$AWAIT" pid "$LIMIT" "$pid"
    start_daemon 1
    wait_until_running 1
    open_gate
    wait_for_event kind=ended job=1 exit_status=9
}

@test "daemon stop --cancel ends the jobs" {
    start_daemon 1
    berth submit -- sleep 600
    wait_for_event kind=started job=1
    stop_daemon --cancel
    start_daemon 1
    is state "$(job_field 1 state)" CANCELLED
}

@test "daemon stop --cancel in the middle of a long jobs file: the rest is refused, and the daemon stops" {
    start_daemon 1
    seq -f '[hold] true %.0f' 50000 >long.txt
    berth run --detach long.txt >out 2>&1 &
    local client=$!
    wait_for_event kind=submitted job=500
    stop_daemon --cancel
    wait "$client" || true
    start_daemon 1
    is 'still in the queue' "$(berth queue -o id | wc -l)" 1
}

@test "a database that cannot be read: refuse to start from nothing, and say what to do" {
    start_daemon 1
    berth submit --hold -- true
    stop_daemon
    rm -f "$BERTH_DIR"/state/berth.db-*
    printf 'this is no database, whatever its name says, and long enough to be one' \
        >"$BERTH_DIR/state/berth.db"
    try berth daemon start --sim 1
    [ "$status" -ne 0 ]
    has stderr "$err" 'berth\.db'
    has 'the file' "$(cat "$BERTH_DIR/state/berth.db")" 'this is no database'
}

@test "a full disk: no new jobs are accepted, running jobs continue, and nothing is lost" {
    [ "$(id -u)" = 0 ] || skip 'needs root to mount a small disk'
    mkdir -p "$BERTH_DIR/state"
    mount -t tmpfs -o size=8m none "$BERTH_DIR/state" || skip 'cannot mount'
    start_daemon 1
    berth submit --vram 1000 -- sh -c 'read line <gate; exit 6'
    wait_for_event kind=started job=1
    cat /dev/zero >"$BERTH_DIR/state/filler" 2>/dev/null || true
    # The log has room for some more; then it is refused, with an error.
    local i refused=
    for i in $(seq 400); do
        try berth submit --hold -J "$(printf 'n%0100d' "$i")" -- echo "$(printf '%03000d' "$i")"
        if [ "$status" -ne 0 ]; then refused=1; break; fi
    done
    is refused "$refused" 1
    has stderr "$err" 'full|no space|No space'
    open_gate
    rm "$BERTH_DIR/state/filler"
    wait_for_event kind=ended job=1 exit_status=6
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.disk_full false
    try berth submit -- true
    is status "$status" 0
    berth cancel --all >/dev/null
    stop_daemon --cancel
}

@test "a broken jobs file affects no queued or running job" {
    local line
    printf '[vram=1000] read line <gate; exit 3\n[hold] echo two\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    # control bytes, not UTF-8, an unknown key, an unclosed block, a vanished file
    printf 'echo \001\n' >new && mv new jobs.txt
    wait_for_output run 'jobs\.txt:1:6'
    printf 'echo ok\necho \377\n' >new && mv new jobs.txt
    wait_for_output run 'jobs\.txt:2:6'
    printf '[vrma=3G] echo\n' >new && mv new jobs.txt
    wait_for_output run 'vrma'
    rm jobs.txt
    wait_for_output run 'No such file|vanished|gone'
    is 'state of 1' "$(job_field 1 state)" RUNNING
    is 'state of 2' "$(job_field 2 state)" HELD
    printf '[vram=1000] read line <gate; exit 3\necho two\n' >new && mv new jobs.txt
    wait_for_event kind=released job=2
    open_gate
    finish run
    is status "$status" 3
}

@test "a file of 100,000 lines, and a line of a MiB, are accepted" {
    LIMIT=$((2 * LIMIT))
    start_daemon 1
    awk 'BEGIN { for (i = 0; i < 100000; i++) print "[hold] echo", i }' >many.txt
    try berth run --detach many.txt
    is status "$status" 0
    is held "$(berth status --json | json counts.HELD)" 100000
    { printf ': '; head -c 1048576 /dev/zero | tr '\0' x; printf '; exit 8\n'; } >long.txt
    try berth run long.txt
    is status "$status" 8
}

@test "a long file is queued in pieces: no job starts before its dependencies, and numbers follow the lines" {
    { printf '[gpus=0 name=first after=last] echo first >>ran\n'
        for ((i = 2; i < 2000; i++)); do echo "[hold name=n$i] echo $i"; done
        printf '[gpus=0 name=last] read line <gate; echo last >>ran\n'; } >long.txt
    start_daemon 2
    background one berth run -q long.txt
    background other berth run -q long.txt
    wait_until_running 2000
    "$AWAIT" until "$LIMIT" 'berth status --json' counts.HELD 1998
    is held "$(berth status --json | json counts.HELD)" 1998
    is "the first" "$(job_field 1 name) $(job_field 1 state) $(job_field 1 line)" "first PENDING 1"
    is "one between" "$(job_field 1234 name) $(job_field 1234 line)" "n1234 1234"
    # The last line now comes first, within the positions that the file's jobs have.
    { tail -n 1 long.txt; head -n 1999 long.txt | tac; } >turned && mv turned long.txt
    "$AWAIT" until "$LIMIT" 'berth show 2 --json' jobs.0.line 1999
    is "in the file's order" "$(berth queue --state held --sort turn --json | grep -o '"id":[0-9]*' | tr -dc '0-9\n' | head -n 3 | tr '\n' ' ')" "1999 1998 1997 "
    open_gate
    wait_for_event kind=ended job=1
    is order "$(tr '\n' ' ' <ran)" "last first "
    berth cancel state:held >/dev/null
    finish one
    finish other
}

@test "a killed client leaves its jobs, and the same command finds them again" {
    printf 'read line <gate; exit 5\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_until_running 1
    kill -KILL "$pid_of_run"
    is state "$(job_field 1 state)" RUNNING
    background again berth run jobs.txt
    wait_for_output again ' running '
    open_gate
    finish again
    is status "$status" 5
}

@test "kill -9 of the nursery: the next job starts all the same" {
    start_daemon 1
    berth submit -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    pkill -KILL -x -P "$(daemon_pid)" berth-nursery
    berth submit -- sh -c 'exit 2'
    wait_for_event kind=ended job=2 exit_status=2
}

@test "a nursery that gets TERM while a job runs goes on, and so does the job" {
    start_daemon 1
    berth submit -- sh -c 'read line <gate; exit 4'
    wait_for_event kind=started job=1
    nursery=$(pgrep -x -P "$(daemon_pid)" berth-nursery)
    kill -TERM "$nursery"
    berth submit -G 0 -- sh -c 'exit 2'
    wait_for_event kind=ended job=2 exit_status=2
    is "the nursery now" "$(pgrep -x -P "$(daemon_pid)" berth-nursery)" "$nursery"
    open_gate
    wait_for_event kind=ended job=1 exit_status=4
}

@test "invalid requests get an error and disturb no other client" {
    start_daemon 1
    berth submit --vram 1000 -- sh -c 'read line <gate; exit 4'
    wait_for_event kind=started job=1
    timeout "$LIMIT" python3 "$E2E/hostile.py" "$BERTH_DIR/berth.sock"
    open_gate
    wait_for_event kind=ended job=1 exit_status=4
}

@test "an unknown id is named, even among known ones" {
    start_daemon 1
    berth submit --wait -- true
    try berth wait 1,999
    is status "$status" 3
    has stderr "$err" 'no job 999'
    try berth cancel 1 998
    is status "$status" 3
    try berth show 1
    is status "$status" 0
}
