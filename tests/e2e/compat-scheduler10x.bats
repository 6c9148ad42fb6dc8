#!/usr/bin/env bats
# The drop-in scheduler_10x.py: the contract of its document (B1..B17), which its source never
# kept, and its common features with scheduler.py only where the two interact.

load lib
load scheduler

case_setup()
{
    scheduler_setup
    export XDG_RUNTIME_DIR=$ROOT/runtime
    mkdir "$XDG_RUNTIME_DIR"
    : >jobs.txt
}

# A scheduler in the background, ready when this returns: `schedule run [options]`.
schedule()
{
    local name=$1
    shift
    background "$name" scheduler_10x.py start "$@"
    wait_for_output "$name" '^Press Ctrl\+C to stop$'
}

# The sample with other values: `config KEY=VALUE...`, as in scheduler.num_gpus=2.
config()
{
    scheduler_10x.py config-sample | python3 -c '
import json, sys
c = json.load(sys.stdin)
for word in sys.argv[1:]:
    key, value = word.split("=", 1)
    section, key = key.split(".")
    c[section][key] = json.loads(value)
json.dump(c, open("config.json", "w"))' "security.allowed_script_paths=[\"$PWD\"]" "$@"
}

@test "B1 version, usage, and commands without a scheduler" {
    try scheduler_10x.py --version
    is version "$status:$out" '0:Ultra GPU Scheduler v3.0.0'
    COLUMNS=80 try scheduler_10x.py
    is 'no command' "$status" 2
    try scheduler_10x.py start --log-level LOUD
    is 'a level' "$status" 2
    has words "$err" "invalid choice: 'LOUD'"
    try scheduler_10x.py add "$PWD/job.py"
    is 'add' "$status:$out" "1:❌ Failed to add job: no scheduler runs here; 'scheduler_10x start' starts one"
    try scheduler_10x.py add "$PWD/job.py" --args --priority 5
    is 'an option in the place of a value' "$status" 2
    try scheduler_10x.py cancel-job 1
    is 'cancel' "$status" 1
    try scheduler_10x.py health
    is 'health' "$status" 1
    try scheduler_10x.py add '' --output file
    is 'no script' "$status:$out" '1:❌ Failed to add job: it has no script'
    try scheduler_10x.py pause-gpu 1
    is 'pause' "$status:$out" '0:✅ GPU 1 paused (no scheduler runs here: it holds from the next start)'
    try scheduler_10x.py status
    has 'status' "$out" '^Status: stopped$'
    try scheduler_10x.py test --quick
    is 'its tests' "$status" 0
    has 'what they say' "$out" '^3 of 3 passed$'
    # Ctrl-C in the middle of the long one leaves nothing behind.
    mkdir tmp
    TMPDIR=$PWD/tmp timeout "$LIMIT" python3 - >shown <<'PY'
import os, pty
pid, fd = pty.fork()
if pid == 0:
    os.execvp("scheduler_10x.py", ["scheduler_10x.py", "test"])
text = b""
while b"jobs share" not in text:
    text += os.read(fd, 4096)
while not any("berth.sock" in names for _, _, names in os.walk("tmp")):
    pass
os.write(fd, b"\x03")
try:
    while os.read(fd, 4096):
        pass
except OSError:
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), os.listdir("tmp"))
PY
    is 'after Ctrl-C' "$(cat shown)" '1 []'
}

@test "B2 the sample loads, and says what the document says" {
    scheduler_10x.py config-sample >c.json
    is keys "$(json scheduler.num_gpus <c.json) $(json jobs.queue_size_limit <c.json) $(json files.monitor_interval_s <c.json) $(json security.allowed_script_paths.0 <c.json)" \
        '8 1000 30.0 /data3/'
    schedule run --config c.json
    stop_scheduler run
    has start "$out" '^🚀 Ultra GPU Scheduler v3\.0\.0 started successfully$'
    has gpus "$out" '^📊 Managing 2 GPUs with 8 workers$'
    has file "$out" '^📁 Monitoring jobs file: jobs\.txt$'
    has screen "$out" '^🖥️  Screen mode: Disabled$'
    has stopping "$out" '^🛑 Stopping scheduler\.\.\.$'
    has stopped "$out" '^✅ Scheduler stopped gracefully$'
}

@test "B3 settings that are wrong are refused, and named" {
    while IFS='|' read -r setting words; do
        config "$setting"
        try scheduler_10x.py start --config config.json
        is "status of $setting" "$status" 1
        has "words of $setting" "$out" "^❌ Error: config\.json: $words"
        has "the last line of $setting" "$out" '^❌ Failed to start scheduler$'
    done <<'CASES'
scheduler.num_gpus=0|scheduler\.num_gpus is 0; it goes from 1 to 64$
scheduler.num_gpus=65|scheduler\.num_gpus is 65; it goes from 1 to 64$
scheduler.num_gpus="2"|scheduler\.num_gpus must be a whole number$
scheduler.num_gpus=2.5|scheduler\.num_gpus must be a whole number$
scheduler.num_gpus=1e300|scheduler\.num_gpus must be a whole number$
scheduler.max_workers=200|scheduler\.max_workers is 200; it goes from 1 to 128$
scheduler.job_timeout_s=59|scheduler\.job_timeout_s is 59; it must be at least 60$
gpu.memory_threshold=1.5|gpu\.memory_threshold is 1\.5; it goes from 0 to 1$
gpu.load_threshold=-0.1|gpu\.load_threshold is -0\.1; it goes from 0 to 1$
gpu.allocation_precision=0.2|gpu\.allocation_precision is 0\.2; it goes from 0\.001 to 0\.1$
jobs.queue_size_limit=9|jobs\.queue_size_limit is 9; it must be at least 10$
files.jobs_file=7|files\.jobs_file must be a path$
files.monitor_interval_s=4|files\.monitor_interval_s is 4; it must be at least 5$
logging.level="LOUD"|logging\.level must be one of TRACE, DEBUG
logging.structured=1|logging\.structured must be true or false$
files.state_file=""|files\.state_file must be a path$
security.max_memory_per_job_gb=0.05|security\.max_memory_per_job_gb is 0\.05; it must be at least 0\.1$
security.allowed_script_paths=[]|security\.allowed_script_paths must be a list of folders$
CASES
    config scheduler.num_gpus=2 scheduler.max_workers=5
    try scheduler_10x.py start --config config.json
    has 'too many workers' "$out" '^❌ Error: scheduler\.max_workers is 5; with 2 GPUs it may be 4 at most$'
    BERTH_SIM=12x1G try scheduler_10x.py start --workers 30
    has 'workers without a config' "$out" '^❌ Error: scheduler\.max_workers is 30; with 12 GPUs it may be 24 at most$'
    config 'files.log_file="none/x.log"'
    try scheduler_10x.py start --config config.json
    has 'a log' "$status:$out" '^1:❌ Error: cannot write the log none/x\.log: No such file or directory'
    printf '{"scheduler": {' >bad.json
    try scheduler_10x.py start --config bad.json
    has 'bad JSON' "$status:$out" '^1:❌ Error: bad\.json: line 1: '
    echo '{"scheduler": {"num_gpus": 2}}' >bad.json
    try scheduler_10x.py start --config bad.json
    has 'a section' "$out" '^❌ Error: bad\.json: the section "files" is missing$'
    echo '{"scheduler": [], "files": {}}' >bad.json
    try scheduler_10x.py start --config bad.json
    has 'a section that is none' "$out" '^❌ Error: bad\.json: the section "scheduler" is no object$'
    try scheduler_10x.py start --config none.json
    has 'no file' "$status:$out" '^1:❌ Error: .*none\.json: No such file'
}

@test "B4 three bands of priorities, in order; B5 a queue has a limit; cancel-job, list-jobs" {
    export BERTH_SIM=1x24000M
    mkfifo gate
    config scheduler.num_gpus=1.0 scheduler.max_workers=2 jobs.queue_size_limit=10.0
    schedule run --config config.json
    try scheduler_10x.py add "$PWD/job.py" --args '--gate gate'
    is 'the first' "$status:$out" '0:✅ Job added with ID: 1'
    wait_for_output run '"message": "Job 1 assigned to GPU 0'
    scheduler_10x.py add "$PWD/job.py" --priority 5 --args normal >/dev/null
    scheduler_10x.py add "$PWD/job.py" --priority 15 --args 'low,band' >/dev/null
    scheduler_10x.py add "$PWD/job.py" --priority -1 --args --high >/dev/null
    for _ in 1 2 3 4 5 6; do scheduler_10x.py add "$PWD/job.py" --priority 20 --args more >/dev/null; done
    # Room for one, and four that want it.
    for who in a b c d; do background "$who" scheduler_10x.py add "$PWD/job.py" --priority 20; done
    for who in a b c d; do
        finish "$who"
        echo "$out"
    done >adds
    is 'who got in' "$(grep -c '✅ Job added' adds)" 1
    try scheduler_10x.py add "$PWD/job.py" --priority 20
    is 'B5' "$status:$out" '1:❌ Failed to add job: the queue is full: 10 jobs wait, of 10 that may'
    scheduler_10x.py status >shown
    has total "$(cat shown)" '^  Total Jobs: 10$'
    has high "$(cat shown)" '^  High Priority: 1$'
    has normal "$(cat shown)" '^  Normal Priority: 1$'
    has low "$(cat shown)" '^  Low Priority: 8$'
    for id in 5 6 7 8 9 10 11; do
        is "cancelling $id" "$(scheduler_10x.py cancel-job $id)" "✅ Job $id cancelled"
    done
    try scheduler_10x.py cancel-job 5
    is 'a second time' "$status:$out" '1:❌ Failed to cancel job 5: it has ended already'
    try scheduler_10x.py cancel-job abc123def
    is 'none of its' "$status:$out" '1:❌ Failed to cancel job abc123def: there is no such job'
    is 'B15' "$(scheduler_10x.py list-jobs --status running)" \
"ID        STATUS      PRIORITY  GPUS        SCRIPT
1         running            0  [0]         $PWD/job.py"
    is 'queued ones' "$(scheduler_10x.py list-jobs --status queued | sed 1d | awk '{print $1, $3}' | paste -sd ' ')" \
        '4 -1 2 5 3 15'
    pass gate
    wait_for_output run '"Job 3 completed'
    is order "$(sed 1d ran | paste -sd '|')" '--high mask 0|normal mask 0|low,band mask 0'
    is 'completed ones' "$(scheduler_10x.py list-jobs --status completed | sed 1d | awk '{print $1}' | paste -sd ' ')" \
        '1 2 3 4'
    stop_scheduler run
}

@test "B7 B8 allowed cards, and a card that is paused by a command" {
    export BERTH_SIM=4x24000M
    schedule run
    scheduler_10x.py add "$PWD/job.py" --gpus 2-3 --args a >/dev/null
    wait_for_output run '"Job 1 completed'
    has 'B7' "$(cat ran)" '^a mask [23]$'
    try scheduler_10x.py pause-gpu 0
    is pause "$status:$out" '0:✅ GPU 0 paused'
    scheduler_10x.py status --json >status.json
    is 'checks of that name' "$(python3 -c 'import json; h = json.load(open("status.json"))["health"]; print(h["check_names"].count("gpu"), len(h["check_names"]) == h["total_checks"])')" '1 True'
    scheduler_10x.py add "$PWD/job.py" --gpus 0,1 --args b >/dev/null
    wait_for_output run '"Job 2 completed'
    has 'B8' "$(cat ran)" '^b mask 1$'
    has status "$(scheduler_10x.py status)" '^  GPU 0: PAUSED$'
    try scheduler_10x.py pause-gpu 99
    is 'B11' "$status:$out" '1:❌ Failed to pause GPU 99: there are 0 to 3'
    try scheduler_10x.py resume-gpu 0
    is resume "$status:$out" '0:✅ GPU 0 resumed'
    scheduler_10x.py add "$PWD/job.py" --gpus 0 --args c >/dev/null
    wait_for_output run '"Job 3 completed'
    try scheduler_10x.py add "$PWD/job.py" --gpus 7
    has 'a card that is not there' "$status:$out" '^1:❌ Failed to add job: GPUs from 7 on are not managed here$'
    try scheduler_10x.py add "$PWD/job.py" --args '--llm two' --gpus 3
    is 'more than it may use' "$status:$out" '1:❌ Failed to add job: it needs 2 GPUs, and may use 1'
    stop_scheduler run
}

@test "B10 halves are spread; B13 status as JSON, in detail, again and again" {
    mkfifo one two
    printf '0,%s/job.py,,--llm half --gate %s --mode test\n' "$PWD" one "$PWD" two >jobs.txt
    BERTH_SIM=3x24000M schedule run --gpus 2
    wait_for_state '[0.5, 0.5] []'
    # A busy machine's probe may be late.
    "$AWAIT" prints "$LIMIT" 'scheduler_10x.py health' 'HEALTHY$'
    scheduler_10x.py status --json >status.json
    is scheduler "$(json scheduler.version <status.json) $(json scheduler.status <status.json)" '3.0.0 running'
    is queue "$(json queue.total_jobs <status.json) $(json queue.high_priority_size <status.json) $(json queue.oldest_queued_job <status.json)" '0 0 null'
    is resources "$(json resources.total_allocation <status.json) $(json resources.active_jobs_per_gpu.1 <status.json)" '1.0 1'
    is active "$(json active_jobs.1.script <status.json) $(json active_jobs.2.gpu_ids.0 <status.json)" "$PWD/job.py 1"
    is health "$(json health.current_status <status.json)" HEALTHY
    is metrics "$(json metrics.gpu_metrics.0.samples <status.json | grep -c '[0-9]')" 1
    is 'metrics of its own cards' "$(python3 -c 'import json; print(*json.load(open("status.json"))["metrics"]["gpu_metrics"])')" '0 1'
    scheduler_10x.py status --detailed >shown
    has 'active jobs' "$(cat shown)" '^🏃 Active Jobs: 2$'
    has 'one of them' "$(cat shown)" "^  2: $PWD/job\.py \(GPUs: \[1\]\)$"
    has 'an allocation' "$(cat shown)" '^  GPU 0: 50% allocated$'
    has 'its health' "$(cat shown)" '^✅ Health: HEALTHY$'
    background watch scheduler_10x.py status --watch
    wait_for_output watch '^🏃 Active Jobs: 2$'
    pass one
    wait_for_output watch '^🏃 Active Jobs: 1$'
    pass two
    wait_for_output watch '^Jobs Processed: 2$'
    kill -TERM "$pid_of_watch"
    finish watch
    try scheduler_10x.py metrics
    has 'jobs' "$out" '^Total Jobs: 2$'
    has 'a card' "$out" '^  GPU 1: [0-9.]+% avg, [0-9.]+% peak$'
    "$AWAIT" prints "$LIMIT" 'scheduler_10x.py health' '^Status: ✅ HEALTHY$'
    try scheduler_10x.py health
    is health "$status" 0
    has 'what it says' "$out" '^Status: ✅ HEALTHY$'
    has 'a check' "$out" '^  ✅ probe: '
    stop_scheduler run
}

@test "B14 scripts from elsewhere never start: real paths, whole components" {
    mkdir good goodevil
    cp job.py good/in.py
    cp job.py goodevil/out.py
    ln -s ../goodevil/out.py good/link.py
    ln -s good alias
    # More folders than usual; one of them is relative to the scheduler's working folder.
    config "security.allowed_script_paths=[$(printf '"/nowhere/%s", ' {1..70})\"good\"]" scheduler.num_gpus=2 scheduler.max_workers=4
    printf '0,%s\n' "$PWD/goodevil/out.py" "$PWD/good/link.py" "$PWD/good/../goodevil/out.py" "$PWD/alias/in.py" >jobs.txt
    schedule run --config config.json
    wait_for_output run '"Job 1 completed'
    is 'what it reports' "$(grep -c 'goodevil/out.py lies outside of the allowed paths' gpu_scheduler.log)" 3
    try scheduler_10x.py add "$PWD/goodevil/out.py"
    has add "$status:$out" '^1:❌ Failed to add job: the script .*/goodevil/out\.py lies outside of the allowed paths$'
    has 'a folder that is not there' "$(cat gpu_scheduler.log)" 'security.allowed_script_paths: /nowhere/1 is not there'
    mkdir elsewhere elsewhere/good
    cp job.py elsewhere/good/own.py
    cd elsewhere
    try scheduler_10x.py add good/own.py
    has 'a folder of that name elsewhere' "$status:$out" '^1:❌ Failed to add job: .* lies outside of the allowed paths$'
    cd ..
    # A script that is replaced while it waits.
    scheduler_10x.py pause-gpu 0 >/dev/null
    scheduler_10x.py pause-gpu 1 >/dev/null
    scheduler_10x.py add "$PWD/good/in.py" --args late >/dev/null
    ln -sf ../goodevil/out.py good/in.py
    scheduler_10x.py resume-gpu 0 >/dev/null
    wait_for_output run '"Job 2 failed \(exit 126: its script lies outside of the allowed paths\)'
    wait_for_state '[0.0, 0.0] [1]'
    stop_scheduler run
    is runs "$(wc -l <ran)" 1
}

@test "B17 SIGTERM ends it and its jobs; lines of the file and queued jobs are there with the next" {
    export BERTH_SIM=1x24000M
    mkfifo gate
    printf '0,%s/job.py,,--gate gate\n' "$PWD" >jobs.txt
    schedule run
    wait_for_output run '"Job 1 assigned'
    scheduler_10x.py add "$PWD/job.py" --args kept >/dev/null
    kill -TERM "$pid_of_run"
    finish run
    is status "$status" 0
    has 'its last words' "$out" '^✅ Scheduler stopped gracefully$'
    schedule again
    wait_for_state '[1.0] []'
    pass gate
    wait_for_output again '"Job 2 completed'
    has 'the queued one' "$(cat ran)" '^kept mask 0$'
    # A job that was queued and runs is stopped, and comes back.
    scheduler_10x.py add "$PWD/job.py" --args '--gate gate back' >/dev/null
    wait_for_output again '"Job 4 assigned'
    stop_scheduler again
    schedule third
    wait_for_output third '"Job 4 assigned'
    pass gate
    wait_for_output third '"Job 4 completed'
    has 'the one that was stopped' "$(tail -1 ran)" '^--gate gate back'
    # So does a slow one, whichever of them loses patience with it.
    cat >stubborn.py <<'PY'
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("ran", "a").write("stubborn\n")
open("gate").read()
PY
    scheduler_10x.py add "$PWD/stubborn.py" >/dev/null
    "$AWAIT" output "$LIMIT" ran "^stubborn" >/dev/null
    kill -INT "$pid_of_third"
    BERTH_DIR=$PWD/.berth wait_for_event kind=requeue job=5 >/dev/null
    kill -INT "$pid_of_third"
    finish third
    is 'status where something is left' "$status" 1
    pass gate
    BERTH_DIR=$PWD/.berth wait_for_event kind=held job=5 >/dev/null
    schedule fourth
    wait_for_output fourth '"Job 5 assigned'
    pass gate
    wait_for_output fourth '"Job 5 completed'
    stop_scheduler fourth
    is 'times that it ran' "$(grep -c stubborn ran)" 2
}

@test "a cancelled line is not run again; those that ended with the scheduler are" {
    export BERTH_SIM=1x24000M
    mkfifo gate
    printf '0,%s/job.py,,%s\n' "$PWD" '--gate gate one' "$PWD" two "$PWD" 'three --gate gate' "$PWD" four >jobs.txt
    schedule run
    "$AWAIT" output "$LIMIT" ran one >/dev/null
    is 'one that waits' "$(scheduler_10x.py cancel-job 2)" '✅ Job 2 cancelled'
    is 'one that runs' "$(scheduler_10x.py cancel-job 1)" '✅ Job 1 cancelled'
    "$AWAIT" output "$LIMIT" ran three >/dev/null
    stop_scheduler run
    has 'the one that was stopped' "$out" '"Job 3 was stopped; it runs again with the next start'
    schedule again
    has 'the cancelled ones' "$(cat "$ROOT/again.out")" "\"Job 2 was cancelled by $(id -un) and is not run again: 0,"
    wait_for_output again '"Job 5 assigned'
    pass gate
    wait_for_output again '"Job 5 completed'
    is 'what ran' "$(grep -oE '(one|two|three|four) ' ran | sort | paste -sd ' ' | tr -s ' ')" 'four one three three '
    # A line written again is requested again.
    printf '0,%s/job.py,,two\n' "$PWD" >>jobs.txt
    wait_for_output again '"Job 6 completed'
    has 'that it ran' "$(tail -1 ran)" '^two '
    stop_scheduler again
}

@test "a job reported as cancelled has ended, even one that ignores TERM" {
    export BERTH_SIM=1x24000M
    cat >stubborn.py <<'PY'
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pid.new", "w").write(str(os.getpid()) + "\n")
os.rename("pid.new", "pid")
signal.pause()
PY
    schedule run
    scheduler_10x.py add "$PWD/stubborn.py" >/dev/null
    "$AWAIT" output "$LIMIT" pid . >/dev/null
    is words "$(scheduler_10x.py cancel-job 1)" "✅ Job 1 cancelled"
    [ ! -e "/proc/$(cat pid)" ] || fail_with "it is still there"
    stop_scheduler run
}

@test "limits: of memory, which ends the job; of jobs at once; of time" {
    cat >hog.py <<'PY'
import os, sys, time
print(os.environ["GPU_SCHEDULER_JOB_ID"], os.environ["GPU_SCHEDULER_ASSIGNED_GPUS"], os.environ["GPU_SCHEDULER_MEMORY_LIMIT"])
data = bytearray(os.urandom(1) * (200 << 20))
open("hog.fifo").read()
PY
    mkfifo hog.fifo one two three
    config security.max_memory_per_job_gb=0.1 scheduler.num_gpus=2 scheduler.max_workers=2 scheduler.job_timeout_s=60
    schedule run --config config.json
    scheduler_10x.py add "$PWD/hog.py" >/dev/null
    wait_for_output run '"Job 1 failed \(exit 137: it had more memory than its limit\)'
    log=$(cat "$ROOT/joblogs/direct_1_0.log")
    has 'what it was told' "$log" '^OUT: 1 0 106954752$'
    has 'its end' "$log" '^The job used more than its 102 MiB of memory and was stopped\.$'
    # The next attempt would end like this one.
    BERTH_DIR=$PWD/.berth wait_for_event kind=ended job=1 >/dev/null
    has 'what is told of it' "$(scheduler_10x.py list-jobs --status failed)" '^1 '
    for gate in one two three; do
        scheduler_10x.py add "$PWD/job.py" --args "--llm half --gate $gate" >/dev/null
    done
    wait_for_output run '"Job 3 assigned'
    is 'at once' "$(scheduler_10x.py list-jobs --status running | sed 1d | wc -l)" 2
    export BERTH_DIR=$PWD/.berth
    is 'time limit' "$(job_field 3 limit_ms)" 60000
    export BERTH_DIR=
    pass one
    wait_for_output run '"Job 4 assigned'
    pass two
    pass three
    wait_for_output run '"Job 4 completed'
    stop_scheduler run
}

@test "a shared daemon gets no more lines than may run at the same time" {
    export BERTH_DIR=$ROOT/i
    start_daemon 4x24000M
    mkfifo one two three
    printf "0,$PWD/job.py,,--gate %s\n" one two three >jobs.txt
    config scheduler.num_gpus=4 scheduler.max_workers=2
    schedule run --config config.json
    wait_for_output run '"Job 2 assigned'
    is 'at once' "$(berth queue | sed 1d | wc -l)" 2
    pass two
    wait_for_output run '"Job 3 assigned'
    pass one
    pass three
    wait_for_output run '"Job 3 completed'
    stop_scheduler run
}

@test "a shared daemon with less room than workers gets the lines as there is some" {
    export BERTH_DIR=$ROOT/i
    printf 'user_max_pending: 2\nuser_max_running: 1\n' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 2x24000M --config settings.yaml >/dev/null
    mkfifo gate
    printf "0,$PWD/job.py,,--gate gate first\n" >jobs.txt
    printf "0,$PWD/job.py,,--n %s\n" {1..11} >>jobs.txt
    config scheduler.num_gpus=2 scheduler.max_workers=4
    schedule run --config config.json
    wait_for_output run 'Jobs wait until there is room in the queue'
    stop_scheduler run
    schedule again --config config.json
    pass gate
    "$AWAIT" output "$LIMIT" ran '^--n 11 ' >/dev/null
    is 'what ran' "$(grep -c -- --n ran)" 11
    stop_scheduler again
    stop_daemon
}

@test "the log: one JSON object per line, rotated by size; or plain lines" {
    config logging.max_log_size_mb=1 logging.backup_count=2 logging.level='"DEBUG"' scheduler.num_gpus=2 scheduler.max_workers=4
    schedule run --config config.json
    scheduler_10x.py add "$PWD/job.py" >/dev/null
    wait_for_output run '"Job 1 completed'
    python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("gpu_scheduler.log")]
assert all({"timestamp", "level", "logger", "thread", "message"} <= set(line) for line in lines), lines
one = [line for line in lines if line["message"].startswith("Job 1 assigned")][0]
assert one["job_id"] == "1" and one["gpu_ids"] == [0] and one["required_gpus"] == 1.0 and one["attempt"] == 1, one
one = [line for line in lines if line["message"].startswith("Job 1 completed")][0]
assert one["gpu_ids"] == [0] and one["exit_code"] == 0, one
assert any(line["level"] == "DEBUG" for line in lines), lines
PY
    truncate -s 1048576 gpu_scheduler.log
    scheduler_10x.py add "$PWD/job.py" --args b >/dev/null
    wait_for_output run '"Job 2 completed'
    stop_scheduler run
    is aside "$(stat -c %s gpu_scheduler.log.1)" 1048576
    has 'the new one' "$(head -1 gpu_scheduler.log)" '^\{"timestamp": '
    config logging.structured=false logging.max_log_size_mb=1e300 jobs.max_concurrent_jobs=1000000000000000000 security.max_memory_per_job_gb=1e300 scheduler.num_gpus=2 scheduler.max_workers=4
    rm gpu_scheduler.log*
    schedule plain --config config.json
    stop_scheduler plain
    has 'a plain line' "$(cat gpu_scheduler.log)" '^[0-9-]{10} [0-9:]{8},[0-9]{3} - gpu_scheduler - INFO - \[MainThread\] - Scheduler started$'
}

@test "start in the background; commands from other folders; options beside a config; add to the file" {
    config
    try scheduler_10x.py start --daemon --config config.json --gpus 1 --workers 2
    is status "$status" 0
    has 'what it says' "$out" '^Running in the background, PID [0-9]+$'
    has 'an option' "$out" '^📊 Managing 1 GPUs with 2 workers$'
    pid=${out##*PID }
    try scheduler_10x.py start
    is 'a second one' "$status" 1
    has 'why' "$out" '^❌ Error: another scheduler works with gpu_scheduler_state\.json'
    try scheduler_10x.py add "$PWD/job.py" --output file --args 'from file' --conda ''
    is 'to the file' "$status:$(cat jobs.txt)" "0:0,$PWD/job.py,,from file"
    try scheduler_10x.py add "$PWD/job.py" --output file --args 'a,b'
    has 'a comma' "$status:$out" "^1:❌ Failed to add job: 'a,b' cannot stand in a line"
    cd "$ROOT"
    "$AWAIT" until "$LIMIT" "scheduler_10x.py status --json" scheduler.jobs_processed 1
    has elsewhere "$(scheduler_10x.py status)" '^Status: running$'
    cp "$WORK/job.py" own.py
    scheduler_10x.py add own.py --output file
    cd "$WORK"
    is 'a script from elsewhere' "$(tail -1 jobs.txt)" "0,$ROOT/own.py"
    kill -TERM "$pid"
    "$AWAIT" pid "$LIMIT" "$pid"
    has 'after that' "$(scheduler_10x.py status)" '^Status: stopped$'
    is 'its log' "$(grep -c '"message": "Stopping..."' gpu_scheduler.log)" 1
}

@test "the state of scheduler.py is taken over, completed jobs included" {
    # More lines than the queue may hold.
    printf "0,$PWD/job.py,,--llm half done %s\n" {1..12} >jobs.txt
    echo "0,$PWD/job.py,,--gate gate last" >>jobs.txt
    mkfifo gate
    background old scheduler.py start
    for n in {1..12}; do wait_for_output old "Job $n completed"; done
    scheduler.py pause 0 >/dev/null
    wait_for_output old 'GPU 0 paused'
    kill -KILL "$pid_of_old"
    finish old
    config jobs.queue_size_limit=10
    schedule run --config config.json
    wait_for_output run '"Job 12 has completed before and is not run again'
    has 'the paused one' "$(scheduler_10x.py status)" '^  GPU 0: PAUSED$'
    pass gate
    wait_for_output run '"Job 13 completed'
    stop_scheduler run
    is runs "$(wc -l <ran)" 13
}
