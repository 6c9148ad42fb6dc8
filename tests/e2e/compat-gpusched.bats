#!/usr/bin/env bats
# The drop-in gpusched, run as its users run it: the cases of its reference (D1..D24), its
# files byte for byte, and improvements. Simulated GPUs of 24,000 MiB; no daemon but its own,
# which exits with it.

load lib

case_setup()
{
    berth compat install "$ROOT/bin" >/dev/null
    PATH=$ROOT/bin:$PATH
    export BERTH_DIR=
    seen=$E2E/seen
}

simjob='python3 -m gpusched.simjob'

sched()
{
    try gpusched "$@" --poll 0.2
}

# Release the job that reads this FIFO, by default `gate`; wait until there is one.
open_gate()
{
    timeout "$LIMIT" sh -c "echo go >${1:-gate}" || fail_with 'no job has come to the gate'
}

# The line that reports a job's end.
ended()
{
    grep "job $1 finished" <<<"$out"
}

# The journal's last record of a kind: `record done 2`.
record()
{
    grep "\"event\": \"$1\"" gpusched_logs/journal.jsonl | tail -1
}

# Wait until the first job of a background gpusched runs, and its journal has it.
wait_for_start()
{
    wait_for_output "$1" 'started on gpu'
    "$AWAIT" output "$LIMIT" gpusched_logs/journal.jsonl '"event": "started"'
}

@test "--poll also sets how often other GPU processes are measured while the queue is empty" {
    mkfifo gate
    echo 'read line <gate' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run 'started on gpu'
    has 'settings of its daemon' "$(pgrep -af "berthd --dir $PWD/gpusched_logs")" 'idle_sample_ms=200 '
    kill -INT "$pid_of_run"
    finish run
}

@test "gpusched --version and its usage" {
    try gpusched --version
    is version "$out" 'gpusched 0.4.0'
    is status "$status" 0
    COLUMNS=80 try gpusched
    is status "$status" 2
    has stderr "$err" '^usage: gpusched \[-h\] \[--gpus 0,1,3\] \[--idle-threshold MIB\]'
    has stderr "$err" '^gpusched: error: the following arguments are required: jobs_file$'
    try gpusched jobs.txt --margin x
    has stderr "$err" "gpusched: error: argument --margin: invalid int value: 'x'"
    is status "$status" 2
    echo true >jobs.txt
    try gpusched jobs.txt --sim 1 --tolerance nan
    is status "$status" 2
    has stderr "$err" '^gpusched: --tolerance and --spike-buffer are fractions'
}

@test "gpusched.simjob by hand takes its time and exits with its code, like the original" {
    while read -r want args; do
        try gpusched.simjob --ramp 0 --hold 0.01 $args
        is "status of simjob $args" "$status" "$want"
    done <<'CASES'
0 --vram 100
7 --vram=1_000 --exit-code 7
44 --vram 0 --exit 300
255 --vram -5 --exit-code -1
0 --vram 5 --hold -1
1 --vram 5 --oom-once m/marker
0 --vram 5 --oom-once m/marker
2 --hold 1
2 --vram x
CASES
}

@test "D1 an invalid line refuses the file, with its number and the reason" {
    while IFS='|' read -r line words; do
        printf '# a comment\n\n%s\n' "$line" >jobs.txt
        sched jobs.txt --sim 1
        is "status of $line" "$status" 2
        is "stderr of $line" "$err" "gpusched: jobs file line 3: $words"
    done <<'CASES'
[vram=8G|unterminated '[...]' attribute block
[vram=8G] |attribute block present but command is empty
[vram=x] c|cannot parse vram value 'x' (use MiB or a G/GiB suffix)
[vram=0] c|vram must be positive, got '0'
[vram=8 G] c|malformed attribute 'G' (expected key=value, or bare 'cancel')
[timeout=5w] c|cannot parse duration '5w' (use s/m/h/d)
[timeout=0] c|timeout must be positive, got '0'
[gpus=0] c|gpus must be >= 1, got 0
[gpus=a] c|gpus must be an integer, got 'a'
[retries=-1] c|retries must be >= 0, got -1
[prio=3] c|unknown attribute 'prio' (known: vram, gpus, timeout, retries, cancel)
[ -f x ] && c|malformed attribute '-f' (expected key=value, or bare 'cancel')
CASES
    [ ! -e gpusched_logs/journal.jsonl ]
}

@test "D2 an empty file and a missing one" {
    printf '# nothing\n\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 2
    is stderr "$err" 'gpusched: jobs file contains no jobs (use --watch to wait for some)'
    sched nope.txt --sim 1
    is status "$status" 2
    is stderr "$err" "gpusched: cannot read jobs file: [Errno 2] No such file or directory: 'nope.txt'"
    sched . --sim 1
    is status "$status" 2
    is stderr "$err" "gpusched: cannot read jobs file: [Errno 21] Is a directory: '.'"
    echo 'echo x >>ran' >jobs.txt
    mkdir -p logs/journal.jsonl
    sched jobs.txt --sim 1 --log-dir logs
    is status "$status" 1
    has stderr "$err" '^gpusched: logs/journal.jsonl is a directory'
    if [ "$(id -u)" -ne 0 ]; then # root ignores permissions
        mkdir other
        touch other/journal.jsonl
        chmod 444 other/journal.jsonl
        sched jobs.txt --sim 1 --log-dir other
        is status "$status" 1
        has stderr "$err" '^gpusched: cannot write other/journal.jsonl: '
    fi
    [ ! -e ran ]
    sched jobs.txt --sim 1 --log-dir ''
    is status "$status" 0
    [ -e journal.jsonl ]
}

@test "D3 jobs that fit share a card; lines, logs, journal and board to the byte" {
    cat >jobs.txt <<JOBS
[vram=8G] $seen 8000 $simjob --vram 8000 --ramp 0 --hold 1000
[vram=8G]   $seen 8000 $simjob --vram 8000 --ramp 0 --hold 1000
[VRAM=20gib] $seen 20000 $simjob --vram 20000 --ramp 0 --hold 1000; echo over
JOBS
    sched jobs.txt --sim 2
    is status "$status" 0
    sed -E 's/^\[[0-9:]{8}\]/[T]/; s/ in [0-9]+s/ in Ns/; s/util [0-9]+%/util U%/' <<<"$out" >lines
    head -5 lines >first
    cmp first - <<LINES
[T] 3 jobs queued [live queue (file re-read each tick)] (poll every 0.2s; status board: gpusched_logs/status.txt)
[T] discovered GPUs: [0, 1]
[T] job 1 started on gpu [0] (1/3 dispatched, declared 8192 MiB/gpu) — $seen 8000 $simjob --vram 8000 --ramp 0 --hold 1000
[T] job 2 started on gpu [0] (2/3 dispatched, declared 8192 MiB/gpu) — $seen 8000 $simjob --vram 8000 --ramp 0 --hold 1000
[T] job 3 started on gpu [1] (3/3 dispatched, declared 20480 MiB/gpu) — $seen 20000 $simjob --vram 20000 --ramp 0 --hold 1000; echo over
LINES
    grep -qxF '[T] job 3 finished [OK] in Ns — peak vram gpu1:20000 MiB | declared 20480 MiB → within ±10% | avg gpu util U%' lines
    is summary "$(tail -1 lines)" '[T] all 3 jobs done — 3 ok, 0 failed, 0 cancelled, 0 under-declared vram, 0 over-declared vram'
    is 'log of 3' "$(cat gpusched_logs/job003_gpu1.log)" over
    [ -e gpusched_logs/job001_gpu0.log ]
    has seen "$(head -2 gpusched_logs/journal.jsonl | tail -1)" '^\{"key": "[0-9a-f]{12}#1", "event": "seen", "no": 2, "command": "'"$seen"' 8000 python3 -m gpusched.simjob --vram 8000 --ramp 0 --hold 1000"\}$'
    has started "$(record started)" '^\{"key": "[0-9a-f]{12}#[01]", "event": "started", "pgid": [0-9]+, "gpus": \[[01]\]\}$'
    has 'end' "$(record done)" '^\{"key": "[0-9a-f]{12}#[01]", "event": "done", "status": "ok", "returncode": 0, "peak_mib": \{"[01]": (8000|20000)\}, "avg_util": [0-9]+\.[0-9]+\}$'
    has board "$(cat gpusched_logs/status.txt)" '^gpusched status @ [0-9:]{8} — 0 running, 0 pending, 3 done$'
    has board "$(cat gpusched_logs/status.txt)" '^✓ job 1   ok \(exit 0, peak 8000 MiB\) — .*python3 -m gpusched'
}

@test "jobs that start together are journaled in the order in which they were started" {
    # Each job ends once all starts are in the journal: an earlier end would trigger the next
    # start.
    seq -f ': >ran%.0f; until [ "$(grep -c "\"event\": \"started\"" gpusched_logs/journal.jsonl)" = 8 ]; do sleep 0.05; done' 8 >jobs.txt
    sched jobs.txt --sim 8
    is status "$status" 0
    is order "$(jq -c 'select(.event == "started") | .gpus[]' gpusched_logs/journal.jsonl | paste -sd ' ')" '0 1 2 3 4 5 6 7'
    is 'before their ends' "$(jq -r 'select(.key) | "\(.key) \(.event)"' gpusched_logs/journal.jsonl |
        awk '$2 == "started" { s[$1] = 1 } $2 == "done" && !s[$1]')" ''
}

@test "D4 undeclared jobs get an idle GPU each, one after the other" {
    printf 'echo a >>order; sleep 0.3; echo b >>order\necho c >>order\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 0
    is order "$(paste -sd ' ' order)" 'a b c'
    has output "$out" 'job 2 started on gpu \[0\] \(2/2 dispatched, undeclared \(exclusive idle GPU\)\) — echo c'
    has output "$(ended 1)" 'peak vram n/a \(attribution failed — see README caveats\)'
}

@test "D5 jobs that can never fit fail immediately, the others run; the limit is 23488 MiB" {
    printf '[vram=30G] x\n[gpus=3] y\n[vram=23489] z\n[vram=23488] true\n' >jobs.txt
    sched jobs.txt --sim 2
    is status "$status" 1
    has output "$out" 'WARN  job 1 INFEASIBLE — declared 30720 MiB \+ 512 MiB margin exceeds total capacity of 1 required GPU\(s\); marking failed: x$'
    has output "$out" 'WARN  job 2 INFEASIBLE — needs 3 GPUs but only 2 are usable; marking failed: y$'
    has output "$out" 'job 3 INFEASIBLE'
    has output "$(ended 4)" 'finished \[OK\]'
    has output "$out" '  failed: job 1 \(infeasible, exit 1\) — x$'
    is 'in the journal' "$(grep -c '"status": "infeasible", "returncode": 1, "peak_mib": {}, "avg_util": null}' gpusched_logs/journal.jsonl)" 3
}

@test "D6 D7 the highest code is the program's; a signal counts 1" {
    printf '[vram=1G] exit 7\n[vram=1G] exit 3\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 7
    printf '[vram=1G] kill -9 $$\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 1
    has output "$out" 'finished \[EXIT -9\]'
    has output "$out" 'failed: job 3 \(failed, exit -9\)'
}

@test "D8 more than declared: reported while it runs, with a verdict at the end" {
    mkfifo gate
    printf '[vram=8000] %s --vram 12000 --ramp 0 --hold 1000 & read line <gate; kill $!\n' "$simjob" >jobs.txt
    background run gpusched jobs.txt --sim 1 -v --poll 0.2
    wait_for_output run 'vram now gpu0:12000 MiB'
    open_gate
    finish run
    is status "$status" 0
    has output "$out" 'WARN  job 1 EXCEEDS declared VRAM: 12000 MiB observed on gpu 0 vs 8000 MiB declared \(\+50%\) — neighbors may OOM$'
    is 'times it was said' "$(grep -c EXCEEDS <<<"$out")" 1
    has output "$out" 'job 1 vram now gpu0:12000 MiB \(peak 12000 MiB\)$'
    has end "$(ended 1)" 'declared 8000 MiB → UNDER-DECLARED \(\+50%\); raise it'
    has summary "$out" '1 ok, 0 failed, 0 cancelled, 1 under-declared vram, 0 over-declared vram'
}

@test "D9 much less than declared: reported only at the end" {
    printf '[vram=12000] %s 4000\n' "$seen" >jobs.txt
    sched jobs.txt --sim 1
    has end "$(ended 1)" 'declared 12000 MiB → over-declared \(-67%\); lowering it frees packing headroom'
    has_not output "$out" EXCEEDS
}

@test "D11 of two GPUs with room, the fuller one is taken; --gpus and --exclusive restrict the choice" {
    mkfifo gate
    # The second job lets the first one continue.
    printf '[vram=16000] read line <gate\n[vram=6000] echo go >gate\n' >jobs.txt
    sched jobs.txt --sim 2
    has output "$out" 'job 2 started on gpu \[0\]'
    sched jobs.txt --sim 2 --fresh --exclusive
    has output "$out" 'job 2 started on gpu \[1\]'
    sched jobs.txt --sim 2 --fresh --gpus 1,7
    has_not output "$out" 'discovered'
    has output "$out" 'job 1 started on gpu \[1\]'
    sched jobs.txt --sim 2 --gpus x
    is status "$status" 1
}

@test "D14 out of memory once: retried with 1.25 times as much, recorded in the journal" {
    printf '[vram=2000 retries=1] %s --vram 1800 --ramp 0 --hold 0.5 --oom-once m/marker\n' "$simjob" >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 0
    has output "$out" '↻ job 1 hit CUDA OOM \(attempt 1/2\) — requeued with vram 2000 → 2500 MiB$'
    has 'journal' "$(record oom)" '"event": "oom", "attempts": 1, "next_vram": 2500\}$'
    has output "$out" 'job 1 started on gpu \[0\] \(1/1 dispatched, declared 2500 MiB/gpu\)'
    has log "$(cat gpusched_logs/job001_gpu0.log)" 'CUDA out of memory'
    is 'attempts' "$(grep -c '"event": "started"' gpusched_logs/journal.jsonl)" 2
}

@test "D14 no retries left; --oom-retries raises lines with fewer; an increase beyond the GPU" {
    printf '[vram=2000] echo CUDA out of memory; exit 1\n[vram=20000 retries=5] echo CUDA out of memory; exit 4\n' >jobs.txt
    sched jobs.txt --sim 1 --oom-retries 1
    is status "$status" 1
    has end "$(ended 1)" 'finished \[OOM \(exit 1, retries exhausted\)\]'
    has output "$out" 'job 1 hit CUDA OOM \(attempt 1/2\)'
    has output "$out" 'job 2 hit CUDA OOM \(attempt 1/6\) — requeued with vram 20000 → 25000 MiB$'
    has output "$out" 'WARN  job 2 INFEASIBLE — declared 25000 MiB'
    has journal "$(cat gpusched_logs/journal.jsonl)" '"status": "failed_oom", "returncode": 1'
}

@test "D14 D17 a line that was removed while it ran does not run again, and nothing of it is left" {
    mkfifo gate
    printf '[vram=2000 retries=3] read line <gate; echo CUDA out of memory; exit 1\n' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start run
    echo '[vram=2000] echo b' >new
    mv new jobs.txt
    wait_for_output run 'job 2 finished'
    open_gate
    wait_for_output run 'job 1 hit CUDA OOM'
    finish run
    is status "$status" 0
    "$AWAIT" gone "$LIMIT"
    has_not 'what ran' "$out" 'job 1 finished \[(OK|EXIT)'
}

@test "D15 only out-of-memory failures are retried" {
    printf '[vram=1G retries=3] echo x >>ran; exit 7\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 7
    is 'times run' "$(wc -l <ran)" 1
}

@test "D15 one that could not be started says why" {
    mkdir here
    printf '[vram=24000] x\n[vram=1G] rmdir "$PWD"\nexit 0\n' >jobs.txt
    cd here
    sched ../jobs.txt --sim 1 --log-dir ../logs
    cd ..
    has output "$out" 'WARN  job 3 could not start: '
    has output "$out" 'job 3 finished \[EXIT [0-9]+\]'
}

@test "D16 a time limit ends the whole tree" {
    printf '[timeout=0.4s] sleep 60 & sleep 60\n[timeout=5.4s] trap "exit 0" TERM; sleep 60 & wait\n' >jobs.txt
    sched jobs.txt --sim 2
    is status "$status" 1
    has output "$out" 'WARN  job 1 TIMEOUT after [0-9]+s \(limit 0s\) — SIGTERM$'
    has end "$(ended 1)" 'finished \[TIMEOUT\] in [0-9]+s'
    has journal "$(cat gpusched_logs/journal.jsonl)" '"status": "timeout", "returncode": -15'
    # A job that exits with 0 when stopped was stopped all the same.
    has 'the other' "$out" 'all 2 jobs done — 0 ok, 2 failed, '
    has 'its reason' "$out" '  failed: job 2 \(timeout, exit 0\) — '
    has 'on the board' "$(cat gpusched_logs/status.txt)" '^✗ job 2   timeout \(exit 0, '
    # A job that does not end is reported while it runs, however long the rounds are.
    mkfifo gate
    printf '[timeout=5.4s] trap "" TERM; cat gate\n' >jobs.txt
    background late gpusched jobs.txt --sim 1 --poll 3600
    wait_for_output late 'WARN  job 3 TIMEOUT after [0-9]+s \(limit 5s\) — SIGTERM$'
    open_gate
    finish late
    has 'its end' "$out" 'job 3 finished \[TIMEOUT\]'
    "$AWAIT" gone "$LIMIT"
}

@test "D17 added, removed and reordered lines take effect; the file is not modified" {
    mkfifo gate
    printf 'read line <gate\necho a >>order\necho x >>order\necho b >>order\n' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run 'job 1 started'
    printf 'read line <gate\necho b >>order\necho a >>order\necho c >>order\n' >new
    cp new jobs.txt
    "$AWAIT" output "$LIMIT" gpusched_logs/journal.jsonl '"no": 5'
    # The journal comes first; then the queue changes, all at once.
    BERTH_DIR=$PWD/gpusched_logs/.berth "$AWAIT" prints "$LIMIT" 'berth queue' 'echo c >>order'
    open_gate
    finish run
    is status "$status" 0
    is order "$(paste -sd ' ' order)" 'b a c'
    cmp jobs.txt new
}

@test "stopped by TERM it says how to find and end its jobs, and the board says that it is no longer updated" {
    mkfifo gate
    echo 'read line <gate' >jobs.txt
    background run gpusched jobs.txt --sim 1
    wait_for_start run
    kill -TERM "$pid_of_run"
    finish run
    is status "$status" 143
    has words "$out" 'stopped by signal 15 — the jobs go on, .* finds them again, and Ctrl-C there ends them'
    has board "$(cat gpusched_logs/status.txt)" '^stopped: the jobs go on, but nobody keeps this up'
    background again gpusched jobs.txt --sim 1
    wait_for_output again 'gpusched|job 1'
    kill -INT "$pid_of_again"
    finish again
}

@test "D17 cancel on a line: stopped, or never started; its exit code does not count" {
    printf '[vram=1G] sleep 60 & sleep 60\n[vram=24G cancel] never\n[cancel] echo no >ran\n' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run 'job 3 started'
    has 'seen first' "$(head -1 gpusched_logs/journal.jsonl)" '"no": 1, "command": "never"'
    sed -i '1s/.*/[vram=1G cancel] sleep 60 \& sleep 60/' jobs.txt
    finish run
    is status "$status" 0
    has output "$out" 'job 1 cancelled before start: never$'
    has output "$out" 'WARN  job 3 CANCELLED by user — SIGTERM to its process group$'
    has output "$out" 'job 3 finished \[CANCELLED\]'
    has summary "$out" 'all 3 jobs done — 0 ok, 0 failed, 3 cancelled'
    has board "$(cat gpusched_logs/status.txt)" '^⊘ job 1   cancelled \(exit 0, peak 0 MiB\) — never$'
    [ ! -e ran ]
    sed -i 's/ *cancel//; s/\[\] //' jobs.txt
    sched jobs.txt --sim 1
    has output "$out" 'all 0 jobs done'
}

@test "D17 a job that had to be killed is reported as killed" {
    printf '[vram=1G] trap "kill -KILL \$\$" TERM; echo on >ready; while :; do read -r line <hang; done\n' >jobs.txt
    mkfifo ready hang
    background run gpusched jobs.txt --sim 1 --poll 0.2
    timeout "$LIMIT" head -1 ready
    sed -i 's/1G/1G cancel/' jobs.txt
    finish run
    is status "$status" 0
    has output "$out" 'WARN  job 1 did not exit after SIGTERM — SIGKILL$'
    has journal "$(record 'done')" '"status": "cancelled", "returncode": -9'
}

@test "D18 a broken save is reported once and changes nothing" {
    mkfifo gate
    printf 'read line <gate\necho x >second\n' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.1
    wait_for_output run 'job 1 started'
    printf '[vram=8G\n' >>jobs.txt
    wait_for_output run 'WARN  jobs file unreadable, keeping previous queue: jobs file line 3: unterminated'
    printf 'read line <gate\necho x >second\n' >jobs.txt
    open_gate
    finish run
    is status "$status" 0
    is warnings "$(grep -c unreadable <<<"$out")" 1
    [ -e second ]
}

@test "D19 run again: completed lines are skipped; --fresh runs everything; an edited line is a new one" {
    printf '[vram=1G] echo x >>ran\n[vram=1G] echo x >>ran; exit 3\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 3
    sched jobs.txt --sim 1
    is 'status of a run with nothing to do' "$status" 3
    has output "$out" 'all 0 jobs done — 0 ok, 0 failed'
    has output "$out" '  failed before: job 2 \(failed, exit 3\) — echo x >>ran; exit 3$'
    has output "$out" 'job 1 already completed ok — skipping \(journal\): echo x >>ran$'
    has_not output "$out" 'job 2 (started|already)'
    is 'times run' "$(wc -l <ran)" 2
    sched jobs.txt --sim 1 --fresh
    is 'times run' "$(wc -l <ran)" 4
    printf '[vram=2G] echo x >>ran\n[vram=1G] echo y >>ran\n' >jobs.txt
    sched jobs.txt --sim 1
    is 'status once the line that failed has gone' "$status" 0
    is 'times run' "$(wc -l <ran)" 5
    # The journal alone decides which jobs are done, whatever the daemon remembers.
    rm gpusched_logs/journal.jsonl
    sched jobs.txt --sim 1
    is 'times run' "$(wc -l <ran)" 7
    # Also if --fresh dies between its journal and the daemon, which remembers the last run.
    BERTH_CRASH_AT=gpusched-noted sched jobs.txt --sim 1 --fresh
    is 'status of the run that died' "$status" 137
    is 'lines in its journal' "$(wc -l <gpusched_logs/journal.jsonl)" 2
    sched jobs.txt --sim 1
    is 'times run' "$(wc -l <ran)" 9
}

@test "D21 a job whose gpusched was killed continues, is found again, and its exit code is recorded" {
    mkfifo gate
    printf 'echo x >>ran; read line <gate; exit 5\n' >jobs.txt
    background first gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start first
    kill -KILL "$pid_of_first"
    finish first
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run 'job 1 is still running on gpu \[0\] — following it again'
    open_gate
    finish run
    is status "$status" 5
    is 'times run' "$(wc -l <ran)" 1
    has journal "$(record 'done')" '"status": "failed", "returncode": 5'
}

@test "D21 a job that ended while no gpusched ran has its true exit code" {
    mkfifo gate
    printf 'echo $$ >pid; read line <gate; exit 5\n' >jobs.txt
    background first gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start first
    kill -KILL "$pid_of_first"
    finish first
    open_gate
    "$AWAIT" pid "$LIMIT" "$(cat pid)"
    sched jobs.txt --sim 1
    is status "$status" 5
    has end "$(ended 1)" 'finished \[EXIT 5\]'
    has_not output "$out" 'started on gpu'
}

@test "D21 pending jobs run while no gpusched is running, and not twice" {
    mkfifo gate
    printf 'read line <gate; echo a >>ran\necho b >>ran; exit 3\necho c >>ran\n' >jobs.txt
    background first gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start first
    kill -KILL "$pid_of_first"
    finish first
    export BERTH_DIR=$WORK/gpusched_logs/.berth
    open_gate
    wait_for_event kind=ended job=3 >last
    export BERTH_DIR=
    sched jobs.txt --sim 1
    is status "$status" 3
    has_not output "$out" 'started on gpu'
    has output "$out" 'all 3 jobs done — 2 ok, 1 failed'
    is 'times run' "$(paste -sd ' ' ran)" 'a b c'
    is 'in the journal' "$(grep -c '"event": "done"' gpusched_logs/journal.jsonl)" 3
}

# `leaves_a_removed_line LINE`: a gpusched starts the line and is killed; then another line
# takes its place.
leaves_a_removed_line()
{
    mkfifo gate
    echo "$1" >jobs.txt
    background first gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start first
    kill -KILL "$pid_of_first"
    finish first
    echo '[vram=2000] echo b' >jobs.txt
}

@test "D21 a job whose line was removed while no gpusched ran is found again, and its exit code is recorded" {
    leaves_a_removed_line '[vram=2000] echo x >>ran; read line <gate; exit 5'
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run 'job 1 is still running on gpu \[0\] — following it again'
    wait_for_output run 'job 2 finished'
    open_gate
    finish run
    is status "$status" 5
    has journal "$(record 'done')" '"status": "failed", "returncode": 5'
    sched jobs.txt --sim 1
    is 'status of the next' "$status" 0
    has_not 'the next' "$out" 'job 1 '
}

@test "D21 Ctrl-C also ends a job whose line was removed while no gpusched ran" {
    leaves_a_removed_line '[vram=2000] echo $$ >pid; read line <gate'
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run 'job 2 finished'
    kill -INT "$pid_of_run"
    finish run
    is status "$status" 130
    "$AWAIT" pid "$LIMIT" "$(cat pid)"
    "$AWAIT" gone "$LIMIT"
}

@test "D21 a daemon that is killed is started again, with the same GPUs" {
    mkfifo gate
    printf '[vram=20G] echo a >>ran; read line <gate; exit 5\n[vram=20G] echo b >>ran\n' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start run
    export BERTH_DIR=$WORK/gpusched_logs/.berth
    kill_daemon
    wait_for_event kind=started job=1 >started
    is 'what waits' "$(job_field 2 state)" PENDING
    export BERTH_DIR=
    open_gate
    finish run
    is status "$status" 5
    has output "$out" 'all 2 jobs done — 1 ok, 1 failed'
    is 'times run' "$(paste -sd ' ' ran)" 'a b'
}

# Wait until a process has a process group of its own.
wait_until_alone()
{
    "$AWAIT" prints "$LIMIT" "ps -o pgid= -p $1" "^ *$1\$"
}

@test "D21 an orphan of the original is not started twice, but run again once it has ended" {
    mkdir gpusched_logs
    setsid sleep 300 3>&- &
    local orphan=$! key
    wait_until_alone "$orphan"
    key=$(printf 'echo x >>ran' | sha1sum | cut -c1-12)
    cat >gpusched_logs/journal.jsonl <<JOURNAL
{"key": "$key#0", "event": "seen", "no": 4, "command": "echo x >>ran"}
{"key": "$key#0", "event": "started", "pgid": $orphan, "gpus": [0]}
JOURNAL
    printf '[vram=1G] echo x >>ran\n[vram=1G] true\n' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run "WARN  job 4 is still running as an ORPHAN of a previous scheduler \(pgid $orphan\) — not re-dispatching"
    wait_for_output run 'job 5 finished \[OK\]'
    [ ! -e ran ]
    kill "$orphan"
    wait_for_output run 'job 4 was interrupted mid-run by a previous scheduler.s death — re-queuing'
    finish run
    is status "$status" 0
    has end "$out" 'job 4 finished \[OK\]'
    is 'times run' "$(wc -l <ran)" 1
}

@test "D21 a reused process id is not adopted, nor is any other process" {
    mkdir gpusched_logs
    local other
    setsid sleep 1000 3>&- &
    other=$!
    wait_until_alone "$other"
    cat >gpusched_logs/journal.jsonl <<JOURNAL
{"key": "$(printf 'echo x' | sha1sum | cut -c1-12)#0", "event": "seen", "no": 4, "command": null}
{"key": "$(printf 'echo x' | sha1sum | cut -c1-12)#0", "event": "started", "pgid": $other, "gpus": [0]}
{"key": "$(printf 'echo y' | sha1sum | cut -c1-12)#0", "event": "started", "pgid": 1, "gpus": [0]}
JOURNAL
    touch -d '1 hour ago' gpusched_logs/journal.jsonl
    printf '[vram=1G] echo x\n[vram=1G] echo y\n' >jobs.txt
    sched jobs.txt --sim 1
    kill "$other"
    is status "$status" 0
    has_not output "$out" ORPHAN
    has output "$out" 'job 4 started on gpu \[0\] \([12]/2 dispatched, declared 1024 MiB/gpu\) — echo x$'
}

@test "D23 two GPUs: both in the mask, peaks for both" {
    printf '[gpus=2 vram=10G] echo $CUDA_VISIBLE_DEVICES; %s 9000\n' "$seen" >jobs.txt
    sched jobs.txt --sim 2
    has output "$out" 'started on gpu \[0,1\]'
    has end "$(ended 1)" 'peak vram gpu0:9000 MiB, gpu1:9000 MiB'
    is mask "$(cat gpusched_logs/job001_gpu0-1.log)" 0,1
}

@test "D24 no GPU and no --sim: an error, never a silent success" {
    if [ -e /dev/nvidiactl ] || [ -e /proc/driver/nvidia/version ]; then
        skip 'this machine has an NVIDIA driver'
    fi
    printf 'echo x >ran\n' >jobs.txt
    try gpusched jobs.txt --poll 0.2
    is status "$status" 1
    has stderr "$err" '^gpusched: .*no GPU'
    [ ! -e ran ]
}

@test "an old journal resumes: numbers, finished jobs, the raised request; bad lines are skipped" {
    mkdir gpusched_logs
    local a b c
    a=$(printf 'python train.py --config a' | sha1sum | cut -c1-12)
    b=$(printf 'echo b' | sha1sum | cut -c1-12)
    c=$(printf 'echo c' | sha1sum | cut -c1-12)
    cat >gpusched_logs/journal.jsonl <<JOURNAL
{"key": "$a#0", "event": "seen", "no": 1, "command": "python train.py --config a"}
{"key": "$a#0", "event": "done", "status": "ok", "returncode": 0, "peak_mib": {"0": 17910}, "avg_util": 96.0}
{"key": "$b#0", "event": "seen", "no": 2, "command": "echo b"}
{"key": "$b#0", "event": "oom", "attempts": 1, "next_vram": 9750}
not json
{"key": "$c#0", "event": "seen", "no": 7, "command": "echo c"}
{"key": "$c#0", "event": "done", "status": "cancelled", "returncode": 0, "peak_mib": {}, "avg_util": null}
{"key": "$c#0", "ev
JOURNAL
    truncate -s -1 gpusched_logs/journal.jsonl
    cp gpusched_logs/journal.jsonl old
    printf '[vram=18G] python train.py --config a\n[vram=7800 retries=2] echo b\necho c\n[vram=1G] echo d\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 0
    has output "$out" 'job 1 already completed ok — skipping'
    has output "$out" 'job 2 started on gpu \[0\] \(1/4 dispatched, declared 9750 MiB/gpu\) — echo b'
    has output "$out" 'job 8 started on gpu'
    has_not output "$out" 'job 7'
    head -c "$(wc -c <old)" gpusched_logs/journal.jsonl | cmp - old
    is 'new lines are whole' "$(tail -n +9 gpusched_logs/journal.jsonl | python3 -c 'import json,sys; print(sum(1 for l in sys.stdin if json.loads(l)))')" 5
}

@test "a full disk is reported, running jobs continue, and the rest follows when there is room" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
    cc -shared -fPIC -D_LARGEFILE64_SOURCE -o "$ROOT/bad_disk.so" "$E2E/bad_disk.c" -ldl
    export BAD_DISK=$ROOT/bad_disk BAD_DISK_BELOW=$WORK/gpusched_logs
    mkfifo gate
    printf 'read line <gate; exit 3\necho b >>ran\n' >jobs.txt
    LD_PRELOAD=$ROOT/bad_disk.so background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start run
    echo 28 >"$ROOT/new" && mv "$ROOT/new" "$BAD_DISK"
    open_gate
    wait_for_output run 'WARN  nothing new starts until there is room: '
    echo 'echo c >>ran' >>jobs.txt
    wait_for_output run 'WARN  cannot (write|open) gpusched_logs/journal.jsonl: .*; what happens is kept in memory'
    rm "$BAD_DISK"
    finish run
    is status "$status" 3
    has output "$out" 'the daemon can write again — going on$'
    is 'times said' "$(grep -c 'WARN  nothing new' <<<"$out")" 1
    is 'times run' "$(paste -sd ' ' ran)" 'b c'
    is 'the journal' "$(python3 -c 'import json, sys
print(*sorted(e["event"] for e in map(json.loads, open(sys.argv[1]))))' gpusched_logs/journal.jsonl)" \
        'done done done seen seen seen started started started'
    export BAD_DISK_BELOW=$WORK/gpusched_logs/journal.jsonl
    echo 28 >"$BAD_DISK"
    echo 'echo d >>ran' >>jobs.txt
    LD_PRELOAD=$ROOT/bad_disk.so sched jobs.txt --sim 1
    has stderr "$err" '^gpusched: gpusched_logs/journal.jsonl lacks what happened last'
    has output "$out" 'job 4 finished \[OK\]'
}

@test "Ctrl-C ends the jobs, exits 130, and the next run repeats the unfinished ones" {
    mkfifo gate
    printf '[vram=20G] echo x >>ran; test -e go || sleep 60\n[vram=20G] read line <gate; echo y >>ran\n[vram=20G] echo z >>ran\n' >jobs.txt
    background run gpusched jobs.txt --sim 2 --poll 0.2
    wait_for_start run
    wait_for_output run 'job 2 started'
    # The second has ended, unreported, when Ctrl-C comes.
    kill -STOP "$pid_of_run"
    export BERTH_DIR=$WORK/gpusched_logs/.berth
    open_gate
    wait_for_event kind=ended job=2 >ended
    export BERTH_DIR=
    kill -INT "$pid_of_run"
    kill -CONT "$pid_of_run"
    finish run
    is status "$status" 130
    has output "$out" 'WARN  interrupted — terminating running jobs$'
    has_not output "$out" 'job 1 finished'
    has output "$out" 'job 2 finished \[OK\]'
    "$AWAIT" gone "$LIMIT"
    touch go
    sched jobs.txt --sim 1
    is status "$status" 0
    has output "$out" 'job 1 was interrupted mid-run by a previous scheduler.s death — re-queuing'
    is 'times run' "$(sort ran | paste -sd ' ')" 'x x y z'
}

@test "Ctrl-C ends running jobs, however many are pending" {
    awk -v x="$(printf '%0200d' 0)" 'BEGIN { print "sleep 300"; for (i = 0; i < 25000; i++) print "true", i, x }' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_start run
    kill -INT "$pid_of_run"
    finish run
    is status "$status" 130
    has_not output "$out" '^gpusched:'
    "$AWAIT" gone "$LIMIT"
}

@test "--watch waits for new lines, even with an empty file" {
    : >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2 --watch
    wait_for_output run 'queue drained — watching jobs file for new lines \(Ctrl-C to stop\)'
    echo '[vram=1G] echo late' >>jobs.txt
    wait_for_output run 'job 1 finished \[OK\]'
    "$AWAIT" prints "$LIMIT" "grep -c 'queue drained' '$ROOT/run.out'" '^2$'
    kill -INT "$pid_of_run"
    finish run
    is status "$status" 130
}

@test "a second gpusched in the same folder is refused, since it would start everything twice" {
    mkfifo gate
    printf 'read line <gate\n' >jobs.txt
    background run gpusched jobs.txt --sim 1 --poll 0.2
    wait_for_output run 'job 1 started'
    try gpusched jobs.txt --sim 1
    is status "$status" 1
    has stderr "$err" 'another gpusched works with gpusched_logs'
    open_gate
    finish run
    is status "$status" 0
}

@test "the machine's daemon is used where the environment names one" {
    export BERTH_DIR=$ROOT/i
    start_daemon 2
    printf '[vram=1G] echo $BERTH_JOB_ID\n' >jobs.txt
    try gpusched jobs.txt --poll 0.2 --log-dir logs
    is status "$status" 0
    is 'state there' "$(job_field 1 state)" COMPLETED
    is 'margin' "$(job_field 1 margin_mib)" 512
    is 'idle' "$(job_field 1 idle_mib)" 200
    [ -e logs/job001_gpu0.log ]
    [ ! -e logs/.berth ]
}

# A machine with one GPU of 24,000 MiB, as nvidia-smi shows it.
fake_card()
{
    if ldconfig -p | grep -q libnvidia-ml.so.1 || [ -e /proc/driver/nvidia/version ]; then
        skip 'this machine has an NVIDIA driver'
    fi
    cp "$BATS_TEST_DIRNAME/../gpu/fake_smi" "$ROOT/bin/nvidia-smi"
    export FAKE_SMI_DIR=$ROOT/card
    mkdir "$FAKE_SMI_DIR"
    echo '0, GPU-5e0c1a2b-0000-0000-0000-000000000001, 24000, 10, 0, 40, Fake GPU, 00000000:01:00.0, Default' >"$FAKE_SMI_DIR/gpus"
    : >"$FAKE_SMI_DIR/procs"
}

@test "two gpuscheds in two folders share the real GPUs, and one ledger" {
    fake_card
    mkfifo gate
    printf '[vram=14G] read line <gate\n' >a.txt
    printf '[vram=14G] echo second\n' >b.txt
    background first gpusched a.txt --poll 0.2 --log-dir a
    wait_for_output first 'job 1 started on gpu \[0\]'
    background run gpusched b.txt --poll 0.2 --log-dir b
    wait_for_output run 'discovered GPUs: \[0\]'
    export BERTH_DIR=$WORK/a/.berth
    wait_for_event kind=submitted job=2 >second
    open_gate
    finish first
    is 'status of the first' "$status" 0
    finish run
    is 'status of the second' "$status" 0
    is 'log of the second' "$(cat b/job001_gpu0.log)" second
}

@test "the line of a job that ends before the first sample has its load as 0" {
    printf '[vram=1G] true\n' >jobs.txt
    sched jobs.txt --sim 1
    is status "$status" 0
    has 'its end' "$out" '^\[.*\] job 1 finished \[OK\] in [0-9]+s — .* \| avg gpu util 0%$'
    has 'in the journal' "$(cat gpusched_logs/journal.jsonl)" '"event": "done", .*"avg_util": 0\.0}$'
}
