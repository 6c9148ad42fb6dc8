#!/usr/bin/env bats
# Disks that are full, failing, or mounted read-only, and then recover: nothing is accepted
# that cannot be stored, running jobs go on, and nothing is lost or run twice.

load lib

case_teardown()
{
    if mountpoint -q "$BERTH_DIR/state"; then umount -l "$BERTH_DIR/state"; fi
    if mountpoint -q "$ROOT/dead"; then umount -l "$ROOT/dead"; fi
    if mountpoint -q "$ROOT/frozen"; then
        fsfreeze -u "$ROOT/frozen" 2>/dev/null || true
        umount -l "$ROOT/frozen"
    fi
}

# Build bad_disk.c's library, for the daemon's state.
make_bad_disk()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    # AddressSanitizer insists on being loaded first.
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
    cc -shared -fPIC -D_LARGEFILE64_SOURCE -o "$ROOT/bad_disk.so" "$E2E/bad_disk.c" -ldl
    export BAD_DISK=$ROOT/bad_disk BAD_FOLDERS=$ROOT/bad_folders BAD_DISK_BELOW=$BERTH_DIR/state
}

on_a_disk_that_can_fail()
{
    LD_PRELOAD=$ROOT/bad_disk.so start_daemon 2
}

# `the_disk fails 28` (ENOSPC; 5: EIO, 30: EROFS), `the_disk recovers`.
the_disk()
{
    if [ "$1" = recovers ]; then
        rm "$BAD_DISK"
    else
        echo "$2" >"$ROOT/new" && mv "$ROOT/new" "$BAD_DISK"
    fi
}

# Wait for a matching line in the daemon's log.
wait_for_log()
{
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" "$1" >/dev/null ||
        fail_with "the daemon's log never said '$1'"
}

# A task of the array: record that it runs, wait for the gate, end with a code of its own.
TASK='echo ran >>ran.$BERTH_ARRAY_TASK_ID; read x <gate.$BERTH_ARRAY_TASK_ID; exit $((BERTH_ARRAY_TASK_ID % 3))'

let_through()
{
    timeout "$LIMIT" sh -c "echo >gate.$1" || fail_with "task $1 has not come to its gate"
}

an_array_of_8_at_most_2_at_once()
{
    local i
    for i in 0 1 2 3 4 5 6 7; do mkfifo gate.$i; done
    try berth submit -G 1 --array 0-7%2 -- sh -c "$TASK"
    is status "$status" 0
    wait_for_event kind=started array_task=0 >/dev/null
    wait_for_event kind=started array_task=1 >/dev/null
}

books_of_the_array()
{
    berth show 1 --json | python3 -c '
import json, sys
a = json.load(sys.stdin)["jobs"][0]["array"]
print(a["pending"], a["waiting"], a["active"], a["left"], json.dumps(a["ended"], sort_keys=True))'
}

everything_came_out_right()
{
    local i
    try berth wait 1
    is "the array's end" "$status" 2
    for i in 0 1 2 3 4 5 6 7; do
        is "runs of task $i" "$(wc -l <ran.$i)" 1
        is "code of task $i" "$(job_field "1_$i" exit_code)" $((i % 3))
    done
    is "books" "$(books_of_the_array)" ' 0 0 0 {"COMPLETED": 3, "FAILED": 5}'
    is "cards held" "$(berth gpus --json | python3 -c '
import json, sys
print([j for g in json.load(sys.stdin)["gpus"] for j in g["jobs"]])')" '[]'
    # Never more than two at once, according to the events; each started and ended once.
    berth events | python3 -c '
import json, sys
now = most = 0
seen = {}
for line in sys.stdin:
    e = json.loads(line)
    if e.get("array_task") is None or e["kind"] not in ("started", "ended"):
        continue
    now += 1 if e["kind"] == "started" else -1
    most = max(most, now)
    key = (e["kind"], e["array_task"])
    seen[key] = seen.get(key, 0) + 1
assert most == 2, most
assert len(seen) == 16 and set(seen.values()) == {1}, seen'
    is "attempts' folders" "$(ls "$BERTH_DIR/state/jobs")" ''
}

# One scenario for every kind of failure: in the turn in which a task ends and the next would
# start nothing can be written, so that start is undone and that end kept until it can.
trouble_while_an_array_runs()
{
    make_bad_disk
    on_a_disk_that_can_fail
    an_array_of_8_at_most_2_at_once
    the_disk fails "$1"
    let_through 0
    wait_for_log 'event=commit-failed'
    try berth submit -- true
    is "status of a submission" "$status" 1
    has "its words" "$err" "$2.*running jobs continue"
    is "books" "$(books_of_the_array)" '2-7 6 1 1 {"COMPLETED": 1}'
    is "a task that cannot start" "$(ls ran.2 2>/dev/null)" ''
    has "status" "$(berth status | head -1)" "^trouble .*$2"
    has "why it waits" "$(berth queue)" 'PENDING .* Disk '
    has "why it waits, in words" "$(berth explain 1)" "^job 1 PENDING: Disk: .*$2"
    try berth health
    is "status of health" "$status" 1
    has "the head of health" "$(sed -n 2p <<<"$out")" "^bad +disk +.*$2"
    has "health" "$out" "^bad +database +.*$2"
    the_disk recovers
    local i
    for i in 1 2 3 4 5 6 7; do let_through $i; done
    everything_came_out_right
    try berth submit --wait -G 0 -- sh -c 'exit 9'
    is "status of a submission afterwards" "$status" 9
    try berth health
    has_not "health afterwards" "$out" "^bad +(disk|database)"
}

@test "a disk that is full in the turn of an end and a start" {
    trouble_while_an_array_runs 28 'no space'
}

@test "a disk that fails in the turn of an end and a start" {
    trouble_while_an_array_runs 5 'Input/output error'
}

@test "a disk that is mounted read-only in the turn of an end and a start" {
    trouble_while_an_array_runs 30 'Read-only file system'
}

# Its folder can be made, so a supervisor gets ready; but the database cannot store the start.
@test "a start that cannot be written is none, though its supervisor was ready" {
    make_bad_disk
    export BAD_DISK_BELOW=$BERTH_DIR/state/berth.db
    on_a_disk_that_can_fail
    mkfifo gate
    berth submit -G 2 -- sh -c 'read x <gate; exit 3'
    berth submit -G 2 -- sh -c 'echo ran >>ran; exit 4'
    wait_for_event kind=started job=1 >/dev/null
    the_disk fails 28
    timeout "$LIMIT" sh -c 'echo >gate' || fail_with 'no job has come to the gate'
    wait_for_log 'event=commit-failed'
    "$AWAIT" prints "$LIMIT" 'berth status | head -1' '^trouble '
    is 'the job that cannot start' "$(ls ran 2>/dev/null)" ''
    the_disk recovers
    try berth wait 2
    is 'its code' "$(job_field 2 exit_code)" 4
    is 'code of the one before' "$(job_field 1 exit_code)" 3
    is runs "$(wc -l <ran)" 1
    is attempts "$(job_field 2 attempt)" 1
    is folders "$(ls "$BERTH_DIR/state/jobs")" ''
}

@test "a disk that is full in the middle of a long jobs file: the words say how many lines are accepted, and the rest follows" {
    make_bad_disk
    on_a_disk_that_can_fail
    seq -f '[gpus=0 hold] echo %.0f' 30000 >jobs.txt
    background run berth run --detach jobs.txt
    wait_for_event kind=submitted job=1 >/dev/null
    the_disk fails 28
    finish run
    is status "$status" 1
    has words "$out" '^.*[1-9][0-9]* lines of it are accepted, .*the same command continues .*no space.*Running jobs continue'
    has_not words "$out" 'nothing was accepted'
    is "lines that are queued" "$(berth status --json | json counts.HELD)" "$(grep -oE '[0-9]+ lines' <<<"$out" | cut -d' ' -f1)"
    the_disk recovers
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.disk_trouble null
    try berth run --detach jobs.txt
    is "status of the same command" "$status" 0
    is "lines that are queued then" "$(berth status --json | json counts.HELD)" 30000
    berth cancel --all >/dev/null
}

@test "a daemon that dies on a full disk is started again there, and knows how jobs ended meanwhile" {
    [ "$(id -u)" = 0 ] || skip 'needs root to mount a small disk'
    mkdir -p "$BERTH_DIR/state"
    mount -t tmpfs -o size=8m none "$BERTH_DIR/state" || skip 'cannot mount'
    start_daemon 1
    mkfifo one two
    berth submit --vram 1000 -- sh -c 'read x <one; exit 6'
    berth submit --vram 1000 -- sh -c 'read x <two; exit 8'
    berth submit --vram 1000 --hold -- true
    wait_for_event kind=started job=2
    cat /dev/zero >"$BERTH_DIR/state/filler" 2>/dev/null || true
    kill_daemon
    # One ends while no daemon runs, the other under a daemon that cannot write.
    echo >one
    start_daemon 1
    echo >two
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.disk_full true
    try berth submit -- true
    has "a submission" "$err" 'no space.*running jobs continue'
    rm "$BERTH_DIR/state/filler"
    wait_for_event kind=ended job=1 exit_status=6
    wait_for_event kind=ended job=2 exit_status=8
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.disk_trouble null
    berth release 3
    wait_for_event kind=ended job=3 exit_status=0
    stop_daemon
}

# Also if daemons are killed meanwhile, after a commit.
@test "after a reboot a folder that cannot be read for a while is read again, and what may have run does not run twice" {
    make_bad_disk
    start_daemon 2
    mkfifo gate
    berth submit --vram 1000 -- sh -c 'echo ran >>ran; read x <gate'
    wait_until_running 1
    wait_until_written ran
    cut_power
    # The mark of its start is not flushed, and may be lost.
    : >"$BERTH_DIR/state/jobs/1.1/lock"
    echo 5 >"$BAD_FOLDERS"
    for _ in 1 2; do
        on_a_disk_that_can_fail
        berth submit --hold -- true
        is state "$(job_field 1 state)" STARTING
        kill_daemon
    done
    on_a_disk_that_can_fail
    rm "$BAD_FOLDERS"
    wait_for_event kind=ended job=1 state=LOST
    has text "$(job_field 1 text)" 'machine went down'
    is runs "$(wc -l <ran)" 1
}

@test "at a start on a slow disk the probe is not taken for one that does not answer" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
    cc -shared -fPIC -o "$ROOT/slow_disk.so" "$E2E/slow_disk.c"
    LD_PRELOAD=$ROOT/slow_disk.so start_daemon 2
    has_not "the daemon's log" "$(cat "$BERTH_DIR/daemon.log")" 'does not answer'
    is "its GPUs" "$(berth gpus --json | jq '.gpus | length')" 2
}

@test "a full disk: what was refused of jobs that were there does not happen later, and the words say what may" {
    make_bad_disk
    on_a_disk_that_can_fail
    berth submit -G 0 -- false
    wait_for_event kind=ended job=1 >/dev/null
    printf '[hold gpus=0] true\n' >jobs.txt
    berth run --detach jobs.txt
    the_disk fails 28
    try berth requeue 1
    is "status of the requeue" "$status" 1
    has words "$err" 'no new job was accepted, and a change to jobs may take effect only later, .*Running jobs continue'
    the_disk recovers
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.disk_trouble null
    is "state of the ended job" "$(job_field 1 state) $(job_field 1 attempt)" 'FAILED 1'
    printf '[hold gpus=0 after=prep] true\n[name=prep gpus=0 hold] echo prep\n' >jobs.txt
    the_disk fails 28
    try berth run --detach jobs.txt
    is "status of the file" "$status" 1
    the_disk recovers
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.disk_trouble null
    berth release 2
    wait_for_event kind=ended job=2 state=COMPLETED
}

# A disk of its own at $ROOT/frozen, which fsfreeze can stop.
mount_a_disk_to_freeze()
{
    [ "$(id -u)" = 0 ] || skip 'needs root to mount a disk'
    type -P mkfs.ext4 fsfreeze >/dev/null || skip 'there is no mkfs.ext4 or no fsfreeze here'
    mkdir "$ROOT/frozen"
    truncate -s 8M "$ROOT/disk"
    mkfs.ext4 -q "$ROOT/disk"
    mount -o loop "$ROOT/disk" "$ROOT/frozen" 2>/dev/null || skip 'cannot mount'
}

@test "a job whose log lies on a disk that no longer answers is cancelled, and ends at its limit, all the same" {
    mount_a_disk_to_freeze
    start_daemon 2
    # Slurm jobs: their logs contain the reason why they were ended.
    berth compat install "$ROOT/slurm" sbatch >/dev/null
    mkfifo first second
    printf '#!/bin/sh\necho begun; echo >first; exec sleep 10000\n' >cancelled.sh
    printf '#!/bin/sh\n#BERTH -t 30s\necho begun; echo >second; exec sleep 10000\n' >late.sh
    "$ROOT/slurm/sbatch" -o "$ROOT/frozen/log" cancelled.sh
    "$ROOT/slurm/sbatch" -o "$ROOT/frozen/log2" late.sh
    timeout "$LIMIT" cat first second
    fsfreeze -f "$ROOT/frozen"
    berth cancel 1
    local ends=0
    wait_for_event kind=ended job=1 state=CANCELLED || ends=$?
    wait_for_event kind=ended job=2 state=TIMEOUT || ends=$?
    fsfreeze -u "$ROOT/frozen" # first of all: a failed test would stop here
    is 'that waiting for their ends' "$ends" 0
    berth submit --wait -G 2 -o "$ROOT/frozen/log3" -- true
}

@test "a folder in PATH on a disk that fails is passed over, and the reason given if nothing else is found" {
    [ "$(id -u)" = 0 ] || skip 'needs root to mount a disk'
    type -P mkfs.ext4 >/dev/null || skip 'there is no mkfs.ext4 here'
    mkdir "$ROOT/dead"
    truncate -s 8M "$ROOT/disk"
    mkfs.ext4 -q -O ^metadata_csum "$ROOT/disk"
    mount -o loop "$ROOT/disk" "$ROOT/dead" 2>/dev/null || skip 'cannot mount'
    mkdir "$ROOT/dead/bin"
    umount "$ROOT/dead" # so that nothing of it is in use
    mount -o loop "$ROOT/disk" "$ROOT/dead"
    truncate -s 4K "$ROOT/disk"
    # Nor cached: the loop device may be the one of before.
    "$AWAIT" prints "$LIMIT" "blockdev --flushbufs $(findmnt -no SOURCE "$ROOT/dead"); ls $ROOT/dead/bin 2>&1" 'Input/output error'
    start_daemon 1
    PATH=$ROOT/dead/bin:$PATH berth submit --wait -G 0 -- true
    PATH=$ROOT/dead/bin:$PATH berth submit --hold -G 0 -- no-such-program-at-all
    berth release 2
    wait_for_event kind=started job=2 attempt=2
    has 'the reason' "$(grep job=2 "$BERTH_DIR/daemon.log")" "'no-such-program-at-all': Input/output error"
    berth cancel 2
}
