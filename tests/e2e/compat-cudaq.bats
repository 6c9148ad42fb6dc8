#!/usr/bin/env bats
# The drop-in cudaq.py, run as its users run it: the cases of its reference (E1..E13), its
# files, and documented features that never worked. Two simulated GPUs of 20,000 MiB; no daemon
# but its own, which exits with it.

load lib

case_setup()
{
    berth compat install "$ROOT/bin" >/dev/null
    PATH=$ROOT/bin:$PATH
    export BERTH_DIR= BERTH_SIM=2x20000M
}

# Start a dispatcher in the background: `dispatch run [options]`.
dispatch()
{
    local name=$1
    shift
    background "$name" cudaq.py run --poll-interval 1 "$@"
}

# It never ends by itself.
stop()
{
    kill -INT "$1"
    finish "${2:-run}"
    is 'status of an interrupted dispatcher' "$status" 130
}

# Print one field of a command's record: `field 'echo A' status`.
field()
{
    python3 - "$1" "$2" <<'PYTHON'
import json, sys
for line in open("jobs.jsonl"):
    try:
        job = json.loads(line)
    except ValueError:
        continue
    if isinstance(job, dict) and job.get("command") == sys.argv[1]:
        print(json.dumps(job.get(sys.argv[2])).strip('"'))
PYTHON
}

# Wait until the file says so: it is replaced, so it is read anew on each change.
wait_for_field()
{
    timeout "$LIMIT" python3 - "$@" <<'PYTHON' || fail_with "never so: $*; the file is: $(cat jobs.jsonl)"
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init()
libc.inotify_add_watch(fd, b".", 0x80 | 0x100 | 0x8)  # moved to, created, closed after writing
command, key, value = sys.argv[1:4]
while True:
    try:
        for line in open("jobs.jsonl"):
            try:
                job = json.loads(line)
            except ValueError:
                continue
            if isinstance(job, dict) and job.get("command") == command and str(job.get(key)) == value:
                sys.exit(0)
    except FileNotFoundError:
        pass
    os.read(fd, 65536)
PYTHON
}

# Release the job that reads this FIFO, by default `gate`; wait until there is one.
open_gate()
{
    timeout "$LIMIT" sh -c "echo go >${1:-gate}" || fail_with 'no job has come to the gate'
}

@test "cudaq's usage, and settings that make no sense" {
    COLUMNS=80 try cudaq.py
    is status "$status" 2
    is stderr "$err" "usage: cudaq.py [-h] {run,status} ...
cudaq.py: error: the following arguments are required: command"
    try cudaq.py fly
    has stderr "$err" "argument command: invalid choice: 'fly' \(choose from 'run', 'status'\)"
    try cudaq.py run --nix
    is status "$status" 2
    try cudaq.py run --poll-interval soon
    is status "$status" 1
    has stderr "$err" "^cudaq: --poll-interval: 'soon' is no number of seconds$"
    while IFS='|' read -r yaml words; do
        printf "$yaml\n" >c.yaml
        try cudaq.py status --config c.yaml
        is "status of $yaml" "$status" "$([ -z "$words" ]; echo $?)"
        is "what is said of $yaml" "$err" "${words:+cudaq: c.yaml: $words}"
    done <<'TABLE'
min_free_mem_mb: "lots"|line 1: min_free_mem_mb: 'lots' is no number of MB
min_free_mem_mb: [1]|line 1: min_free_mem_mb: write a single value
min_free_mem_mb: "8_000"|
poll_interval: .nan|line 1: poll_interval: '.nan' is no number of seconds
# c\ngpu_ids: [0, x]|line 2: gpu_ids: '0,x' is no list of GPU numbers below 64; write 0,1,3
gpu_ids: {a: 1}|line 1: gpu_ids: write a list of GPU numbers: [0, 1]
gpu_ids: null\nlog_dir: ~\n|
log_dir: ""|line 1: log_dir: '' is no name of a file
jobs_file: "a\\0b"|line 1: jobs_file: write a single value
a: b\n c: d|line 2: not YAML: mapping values are not allowed in this context
just words|it is no mapping; write lines such as poll_interval: 30
other: {a: [b]}|
# nothing|
TABLE
}

@test "E1 comments are comments; Completed and Failed are what happened" {
    printf '# c\n\necho A\nexit 3\n' >commands.txt
    dispatch run
    wait_for_field 'echo A' status completed
    wait_for_field 'exit 3' status failed
    is code "$(field 'exit 3' exit_code)" 3
    is records "$(wc -l <jobs.jsonl)" 2
    is log "$(cat "$(field 'echo A' log_file)")" A
    has 'name of a log' "$(field 'echo A' log_file)" '^\./logs/job_[0-9]{8}_[0-9]{6}\.log$'
    has 'start' "$(field 'echo A' start_time)" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}$'
    for command in 'echo A' 'exit 3'; do # each state once, however short the job was
        has history "$(field "$command" history | grep -o '"status": "[a-z]*"' | tr -d '\n')" \
            '^"status": "pending""status": "running""status": "(completed|failed)"$'
    done
    # A job may have ended before the dispatcher saw it, and its end was noted then.
    wait_for_output run '^\[cudaq\] No pending jobs\. Sleeping 1s \.\.\.$'
    has pid "$(field 'echo A' pid)" '^[0-9]+$'
    stop "$pid_of_run"
    is 'first line' "$(head -1 <<<"$out")" '[cudaq] Starting job dispatch loop.'
}

@test "E2 a job goes to the GPU with the most free memory, ties to the lowest; several share one" {
    printf 'read a <gate\nread b <gate\nread c <gate\nread d <gate\nread e <gate\n' >commands.txt
    mkfifo gate
    dispatch run --min-free-mem-mb 8000
    wait_for_output run "^\[cudaq\] Assigning job 'read d <gate' to GPU 1 \(free memory ~ 12000 MB\)\.$"
    grep Assigning "$ROOT/run.out" >said
    cmp said - <<'LINES'
[cudaq] Assigning job 'read a <gate' to GPU 0 (free memory ~ 20000 MB).
[cudaq] Assigning job 'read b <gate' to GPU 1 (free memory ~ 20000 MB).
[cudaq] Assigning job 'read c <gate' to GPU 0 (free memory ~ 12000 MB).
[cudaq] Assigning job 'read d <gate' to GPU 1 (free memory ~ 12000 MB).
LINES
    # A promised GPU stays promised: the fifth waits, also in later rounds.
    wait_for_output run '^\[cudaq\] Unable to dispatch any pending jobs; waiting\.\.\.$'
    is 'the fifth' "$(field 'read e <gate' status)" pending
    stop "$pid_of_run"
    is 'one that ran' "$(field 'read a <gate' status)" failed
    is 'one that waited' "$(field 'read e <gate' status)" pending
}

@test "E2 jobs one after the other on one GPU: free memory is never overstated" {
    for i in 1 2 3 4 5 6 7 8; do echo "echo $i"; done >commands.txt
    dispatch run --min-free-mem-mb 20000 --gpu-ids 0
    wait_for_field 'echo 8' status completed
    stop "$pid_of_run"
    is 'times it was said' "$(grep -c 'to GPU 0 (free memory ~ 20000 MB)' <<<"$out")" 8
}

@test "E4 a request for more than any GPU has: nothing starts, and the dispatcher says so and goes on" {
    printf 'echo A\n' >commands.txt
    dispatch run --min-free-mem-mb 30000
    wait_for_output run '^\[cudaq\] Unable to dispatch any pending jobs; waiting\.\.\.$'
    is status "$(field 'echo A' status)" pending
    stop "$pid_of_run"
    dispatch again --gpu-ids 7
    wait_for_output again '^\[Warning\] Failed to query GPU 7: '
    wait_for_output again '^\[cudaq\] No valid GPUs found\. Check your GPU IDs\. Sleeping\.\.\.$'
    stop "$pid_of_again" again
}

@test "E5 only the named GPUs are used" {
    printf 'echo $CUDA_VISIBLE_DEVICES >m1\necho $CUDA_VISIBLE_DEVICES >m2\n' >commands.txt
    dispatch run --gpu-ids 1
    wait_for_field 'echo $CUDA_VISIBLE_DEVICES >m2' status completed
    stop "$pid_of_run"
    is masks "$(cat m1 m2 | paste -sd ' ')" '1 1'
    is gpu "$(field 'echo $CUDA_VISIBLE_DEVICES >m1' gpu_id)" 1
}

@test "a working folder whose path is longer than a socket address" {
    mkdir -p "$(printf 'a-long-name-%d/' {1..10})"
    cd "$(printf 'a-long-name-%d/' {1..10})"
    printf 'echo hello >said\n' >commands.txt
    dispatch run
    wait_for_field 'echo hello >said' status completed
    stop "$pid_of_run"
    is 'what it did' "$(cat said)" hello
}

@test "min_free_mem_mb sets no framework's memory limit" {
    printf 'env | grep -cE "^(XLA_PYTHON|TF_FORCE)" >seen; true\n' >commands.txt
    dispatch run --min-free-mem-mb 6000
    wait_for_field 'env | grep -cE "^(XLA_PYTHON|TF_FORCE)" >seen; true' status completed
    stop "$pid_of_run"
    is variables "$(cat seen)" 0
}

@test "E7 E9 a command that is listed twice runs once, and never again" {
    printf 'echo x >>ran\necho x >>ran\n' >commands.txt
    dispatch run
    wait_for_field 'echo x >>ran' status completed
    stop "$pid_of_run"
    dispatch again
    wait_for_output again 'No pending jobs'
    stop "$pid_of_again" again
    is 'times run' "$(wc -l <ran)" 1
    is records "$(wc -l <jobs.jsonl)" 1
}

@test "jobs that start within one second have a log each" {
    for i in 1 2 3 4; do echo "echo job $i"; done >commands.txt
    dispatch run --min-free-mem-mb 100
    for i in 1 2 3 4; do
        wait_for_field "echo job $i" status completed
        is "log of $i" "$(cat "$(field "echo job $i" log_file)")" "job $i"
    done
    stop "$pid_of_run"
}

@test "E8 the dispatcher is killed: its job continues, is not started twice, and its exit code is recorded" {
    mkfifo gate
    printf 'echo x >>ran; read line <gate; exit 5\necho late >>ran\n' >commands.txt
    dispatch first --min-free-mem-mb 20000 --gpu-ids 0
    wait_for_field 'echo x >>ran; read line <gate; exit 5' status running
    kill -KILL "$pid_of_first"
    finish first
    # A GPU used by one daemon is not given to another as well.
    export BERTH_DIR=$WORK/other
    try cudaq.py run
    is 'status with another daemon' "$status" 6
    has 'where they are' "$err" "would run twice; go on there \\(BERTH_SOCKET=$WORK/logs/.berth/berth.sock\\)"
    berth daemon stop
    export BERTH_DIR=
    dispatch run --min-free-mem-mb 20000 --gpu-ids 0
    wait_for_output run 'Starting job dispatch loop'
    open_gate
    wait_for_field 'echo x >>ran; read line <gate; exit 5' status failed
    is code "$(field 'echo x >>ran; read line <gate; exit 5' exit_code)" 5
    wait_for_field 'echo late >>ran' status completed
    stop "$pid_of_run"
    is 'times run' "$(paste -sd ' ' ran)" 'x late'
}

@test "E8 jobs that end or wait while no dispatcher runs are run once, with their true results" {
    mkfifo gate
    printf 'echo a >>ran; read line <gate\necho b >>ran; exit 4\n' >commands.txt
    dispatch first --min-free-mem-mb 20000 --gpu-ids 0
    wait_for_field 'echo a >>ran; read line <gate' status running
    kill -KILL "$pid_of_first"
    finish first
    export BERTH_DIR=$WORK/logs/.berth
    open_gate
    wait_for_event kind=ended job=2 >last
    export BERTH_DIR=
    dispatch run
    wait_for_field 'echo a >>ran; read line <gate' status completed
    wait_for_field 'echo b >>ran; exit 4' status failed
    stop "$pid_of_run"
    is 'times run' "$(paste -sd ' ' ran)" 'a b'
}

@test "stopped by TERM it says which jobs continue; status shows their results without changing the file" {
    mkfifo gate.1 gate.2
    printf 'read line <gate.%s\n' 1 2 >commands.txt
    dispatch run --min-free-mem-mb 20000 --gpu-ids 0
    wait_for_field 'read line <gate.1' status running
    kill -TERM "$pid_of_run"
    finish run
    is status "$status" 143
    has 'what goes on' "$out" "Stopped. 1 running and 1 pending jobs go on without it; 'status' shows them"
    cp jobs.jsonl before
    open_gate gate.1
    BERTH_DIR=$WORK/logs/.berth wait_for_event kind=started job=2 >started
    try cudaq.py status
    is lines "${out% (PID*}" '[✓] read line <gate.1 → GPU 0 → Completed
[→] read line <gate.2 → GPU 0 → Running'
    cmp jobs.jsonl before
    # A user's request to rerun it does not count as a run.
    sed -i '1s/"status": "running", "pid"/"status": "pending", "pid"/' jobs.jsonl
    try cudaq.py status
    has 'a record set back' "$out" 'gate.1 → .* → Pending'
    BERTH_DIR=$WORK/logs/.berth berth daemon stop --cancel
    try cudaq.py status
    has 'without a daemon' "$out" 'gate.2 → GPU N/A → Pending'
}

@test "E10 the output of status" {
    cat >jobs.jsonl <<'JOBS'
{"command": "python train.py", "status": "running", "pid": 1234, "gpu_id": 0, "start_time": "2025-04-10T07:36:31.123456", "log_file": "./logs/job_20250410_073631.log"}
{"command": "python infer.py", "status": "completed", "pid": 99, "gpu_id": 1, "start_time": "2025-04-10T07:36:31.123456", "log_file": "./logs/job_20250410_073631.log"}
{"command": "python bad.py", "status": "failed", "pid": 98, "gpu_id": 2, "start_time": "2025-04-10T07:36:32", "log_file": "l"}
{"command": "python eval.py", "status": "pending", "pid": null, "gpu_id": null, "start_time": null, "log_file": null}
JOBS
    try cudaq.py status
    is status "$status" 0
    is lines "$out" '[→] python train.py → GPU 0 → Running (PID 1234)
[✓] python infer.py → GPU 1 → Completed
[!] python bad.py → GPU 2 → Failed
[ ] python eval.py → GPU N/A → Pending'
    try cudaq.py status --jobs-file none.jsonl
    is 'without a file' "$status:$out" 0:
    # Users' edits are shown as they are, and lines that are no records are reported.
    cat >jobs.jsonl <<'JOBS'
{"command": 5, "status": "pending"}
{"command": "a", "status": "running", "gpu_id": 0.5, "pid": null}
{"command": "\u00df \ud83d\ude00", "status": "completed", "gpu_id": "1"}
{"command": true, "gpu_id": 1e16}
{"status": "pending"}
JOBS
    printf '{"command": "torn' >>jobs.jsonl
    try cudaq.py status
    is lines "$out" '[Warning] No command in ./jobs.jsonl: {"status": "pending"}
[Warning] Invalid JSON line in ./jobs.jsonl: {"command": "torn
[ ] 5 → GPU N/A → Pending
[→] a → GPU 0.5 → Running (PID None)
[✓] ß 😀 → GPU 1 → Completed
[ ] True → GPU 1e+16 → Unknown'
    try cudaq.py status --jobs-file .
    is 'a folder' "$status:$err" '1:cudaq: . is a directory, not a file'
}

@test "E11 settings: the file over the defaults, the command line over the file" {
    cat >config.yaml <<'YAML'
gpu_ids: [0, 1]             # Use only GPU 0 and 1
min_free_mem_mb: 30000
poll_interval: 1
commands_file: list.txt
log_dir: ./job_logs
jobs_file: ./queue.jsonl
unknown: {a: b}
YAML
    printf 'echo A\n' >list.txt
    background run cudaq run --config config.yaml --min-free-mem-mb 8000
    wait_for_output run "Assigning job 'echo A' to GPU 0"
    wait_for_output run 'Sleeping 1s'
    stop "$pid_of_run"
    try cudaq status --config config.yaml
    is status "$out" '[✓] echo A → GPU 0 → Completed'
    is 'logs' "$(cat job_logs/job_*.log)" A
}

@test "E13 records that are appended by hand are picked up; bad lines stay; nothing is lost" {
    printf 'not json\n{"command": "echo first", "status": "pending"}\n{"no": "command"}\n' >jobs.jsonl
    printf '{"command": 5, "status": "pending"}\n\n{"command": "torn o' >>jobs.jsonl
    printf 'echo \377\necho trunca\0ted\n' >commands.txt
    dispatch run
    wait_for_output run '^\[Warning\] No UTF-8 text in commands\.txt, which is not run: echo trunca\\x00ted$'
    wait_for_output run '^\[Warning\] Invalid JSON line in \./jobs\.jsonl: not json$'
    wait_for_field 'echo first' status completed
    printf '{"command": "echo hand", "status": "pending"}\n' >>jobs.jsonl
    wait_for_field 'echo hand' status completed
    is 'the bad line' "$(head -1 jobs.jsonl)" 'not json'
    is 'the odd line' "$(sed -n 3p jobs.jsonl)" '{"no": "command"}'
    is 'times it was said' "$(grep -c 'not json' "$ROOT/run.out")" 1
    # The end of a truncated line, and of unterminated lines, is not joined with the next line.
    is 'the torn line' "$(sed -n 5p jobs.jsonl)" '{"command": "torn o'
    printf '{"command": "echo open", "status": "pending"}{"command": "echo end", "status": "pending"}' >>jobs.jsonl
    wait_for_field 'echo open' status completed
    wait_for_field 'echo end' status completed
    is 'lines' "$(grep -c . jobs.jsonl)" 8
    # A user's request to rerun it is honoured.
    sed -i 's/"echo hand", "status": "completed"/"echo hand; true", "status": "pending"/' jobs.jsonl
    wait_for_field 'echo hand; true' status completed
    sed -i 's/"echo first", "status": "completed"/"echo first", "status": "pending"/' jobs.jsonl
    wait_for_field 'echo first' status completed
    stop "$pid_of_run"
    is 'runs of the first' "$(grep -c "Assigning job 'echo first'" <<<"$out")" 2
}

@test "a writer that has the file open while it is replaced loses nothing" {
    printf '{"command": "echo first", "status": "pending"}\n' >jobs.jsonl
    dispatch run
    wait_for_field 'echo first' status completed
    exec 7>>jobs.jsonl
    printf '{"command": "echo held", "stat' >&7
    printf 'echo other\n' >commands.txt
    wait_for_field 'echo other' status completed
    printf 'us": "pending"}\n{"command": "echo last", "status": "pending"}' >&7
    exec 7>&-
    wait_for_field 'echo held' status completed
    wait_for_field 'echo last' status completed
    stop "$pid_of_run"
    is 'lines' "$(grep -c . jobs.jsonl)" 4
    has_not 'what it said' "$out" Warning.*JSON
}

@test "records removed, restored, or set back to pending: what was requested runs, and once" {
    printf 'echo a >>ran\necho b >>ran\necho c >>ran\n' >commands.txt
    dispatch run
    wait_for_field 'echo c >>ran' status completed
    wait_for_field 'echo b >>ran' status completed
    wait_for_field 'echo a >>ran' status completed
    # Completed records are removed, and their commands do not come back while it runs.
    sed -i '/echo a/d' jobs.jsonl
    printf '{"command": "echo d >>ran", "status": "pending"}\n' >>jobs.jsonl
    wait_for_field 'echo d >>ran' status completed
    stop "$pid_of_run"
    is 'times run' "$(sort ran | paste -sd ' ')" 'a b c d'
    # b as it was written before the daemon had it; c as a program of its owner resets it.
    python3 - <<'PYTHON'
import json
jobs = [json.loads(line) for line in open("jobs.jsonl")]
nulls = dict.fromkeys(("pid", "gpu_id", "start_time", "log_file"))
for job in jobs:
    if "echo b" in job["command"]:
        job.update(nulls, status="pending", history=job["history"][:1])
        del job["berth_job"], job["exit_code"]
    if "echo c" in job["command"]:
        job.update(nulls, status="pending")
open("jobs.jsonl", "w").write("".join(json.dumps(job) + "\n" for job in jobs))
PYTHON
    : >commands.txt
    dispatch again
    wait_for_output again 'No pending jobs'
    stop "$pid_of_again" again
    is 'times run' "$(sort ran | paste -sd ' ')" 'a b c c d'
    is 'the end of b' "$(field 'echo b >>ran' status) $(field 'echo b >>ran' exit_code)" 'completed 0'
    has 'history of c' "$(field 'echo c >>ran' history)" 'completed.*pending.*running.*completed'
}

@test "a command that is edited while it waits runs as it then is, whether a dispatcher runs or not" {
    export BERTH_SIM=1x20000M
    mkfifo gate
    printf '%s\n' 'cat gate' 'echo old >>ran' 'echo former >>ran' >commands.txt
    dispatch run --min-free-mem-mb 15000
    wait_for_field 'cat gate' status running
    wait_for_field 'echo former >>ran' status pending
    wait_for_output run 'Unable to dispatch|Assigning'
    sed -i 's/echo old/echo new/' jobs.jsonl
    BERTH_DIR=$PWD/logs/.berth wait_for_event kind=submitted job=4 >/dev/null
    kill -TERM "$pid_of_run"
    finish run
    sed -i 's/echo former/echo latter/' jobs.jsonl
    : >commands.txt # lines without a record would be added
    dispatch again --min-free-mem-mb 15000
    BERTH_DIR=$PWD/logs/.berth wait_for_event kind=submitted job=5 >/dev/null
    timeout "$LIMIT" sh -c ': >gate'
    wait_for_field 'echo latter >>ran' status completed
    is 'what ran' "$(paste -sd ' ' ran)" 'new latter'
    is records "$(grep -c . jobs.jsonl)" 3
    has assigned "$(cat "$ROOT/again.out")" "Assigning job 'echo new >>ran' to GPU 0"
    stop "$pid_of_again" again
}

@test "a queue of the original: its running jobs are left alone, and their outcome is not invented" {
    setsid sleep 300 3>&- &
    local pid=$!
    cat >jobs.jsonl <<JOBS
{"command": "sleep 300", "status": "running", "pid": $pid, "gpu_id": 0, "start_time": "$(date +%Y-%m-%dT%H:%M:%S.000000)", "log_file": "./logs/job_1.log"}
{"command": "gone", "status": "running", "pid": $$, "gpu_id": 0, "start_time": "2001-04-10T07:36:31.123456", "log_file": "./logs/job_2.log"}
{"command": "done", "status": "completed", "pid": 3, "gpu_id": 1, "start_time": "2025-04-10T07:36:31.123456", "log_file": "./logs/job_3.log"}
JOBS
    sed -n 3p jobs.jsonl >before
    printf 'sleep 300\ndone\ngone\necho new\n' >commands.txt
    dispatch run
    wait_for_field 'echo new' status completed
    is 'one that runs' "$(field 'sleep 300' status)" running
    is 'a process that is another by now' "$(field gone status)" unknown
    sed -n 3p jobs.jsonl | cmp - before
    kill "$pid"
    wait_for_field 'sleep 300' status unknown
    stop "$pid_of_run"
}

@test "two dispatchers on one file: the second is refused" {
    dispatch run
    wait_for_output run 'No pending jobs'
    try cudaq.py run
    is status "$status" 1
    has stderr "$err" 'another dispatcher works with \./jobs\.jsonl'
    stop "$pid_of_run"
}

@test "Ctrl-C ends running jobs, however many are pending" {
    awk -v x="$(printf '%0200d' 0)" 'BEGIN { print "sleep 300"; for (i = 0; i < 25000; i++) print "true", i, x }' >commands.txt
    BERTH_SIM=1x20000M dispatch run --min-free-mem-mb 20000
    wait_for_output run "Assigning job 'sleep 300'"
    stop "$pid_of_run"
    has_not 'what it says' "$out" '^cudaq:'
    "$AWAIT" gone "$LIMIT"
    is 'what waits' "$(grep -c ', "status": "pending"' jobs.jsonl)" 25000
    is 'what ran' "$(field 'sleep 300' status)" failed
}

@test "the machine's daemon is used where the environment names one" {
    unset BERTH_SIM
    export BERTH_DIR=$ROOT/i
    start_daemon 2x20000M
    printf 'echo $BERTH_JOB_ID\n' >commands.txt
    dispatch run
    wait_for_field 'echo $BERTH_JOB_ID' status completed
    stop "$pid_of_run"
    is 'state there' "$(job_field 1 state)" COMPLETED
    is 'placement' "$(job_field 1 placement)" spread
    is 'its number' "$(field 'echo $BERTH_JOB_ID' berth_job)" 1
    [ ! -e logs/.berth ]
    # Started, and put back into the queue while no dispatcher was running.
    mkfifo gate
    echo 'read line <gate' >>commands.txt
    dispatch first
    wait_for_field 'read line <gate' status running
    kill -TERM "$pid_of_first"
    finish first
    berth pause 0 1 >/dev/null
    berth requeue 2 >/dev/null
    "$AWAIT" until "$LIMIT" "berth show 2 --json" jobs.0.state PENDING
    dispatch again
    wait_for_field 'read line <gate' status pending
    berth resume 0 1 >/dev/null
    wait_for_field 'read line <gate' status running
    open_gate
    wait_for_field 'read line <gate' status completed
    stop "$pid_of_again" again
    # A daemon with an unexpected answer is not taken for a machine without GPUs.
    background other python3 -c 'import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("up", flush=True)
while True:
    c, _ = s.accept()
    for line in c.makefile():
        c.sendall(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {}}).encode() + b"\n")' "$ROOT/other.sock"
    wait_for_output other '^up$'
    echo 'true' >jobs.txt
    for tool in 'cudaq.py run' 'gpusched jobs.txt' 'scheduler.py start'; do
        # shellcheck disable=SC2086 # its words
        BERTH_SOCKET=$ROOT/other.sock try $tool
        is "status of $tool" "$status" 1
        has "words of $tool" "$err" 'another version than this program; restart it with this version'
    done
    kill "$pid_of_other"
    finish other
}
