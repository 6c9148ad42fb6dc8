#!/usr/bin/env bats
# The drop-in scheduler.py, run as its users run it: the cases of its reference (A1..A19), its
# files, and documented features that never worked.

load lib
load scheduler

case_setup()
{
    scheduler_setup
}

# A scheduler in the background: `schedule run [options]`.
schedule()
{
    local name=$1
    shift
    background "$name" scheduler.py start "$@"
}

@test "A1 A2 lines that add prints, and its usage" {
    try scheduler.py add /x/a.py --output-file -
    is 'A1' "$status:$out" '0:0,/x/a.py'
    try scheduler.py add /x/a.py --args "--llm q --mode train" --conda e --gpus 0,1,2,3 --output-file -
    is 'A2' "$status:$out" '0:0,/x/a.py,e,--llm q --mode train,0,1,2,3'
    try scheduler.py add /x/a.py --gpus 0-3 --priority -2 --output-file -
    is 'gpus alone' "$out" '-2,/x/a.py,,,0-3'
    try scheduler.py add /x/a.py --args --llm
    is 'a value that looks like an option' "$status" 2
    has stderr "$err" 'argument --args: expected one argument'
    try scheduler.py add /x/a.py --args=--x --output-file -
    is 'with an equals sign' "$out" '0,/x/a.py,,--x'
    COLUMNS=80 try scheduler.py
    is 'no command' "$status" 2
    has stderr "$err" '^usage: scheduler.py '
    try scheduler.py fly
    is 'another command' "$status" 2
    for words in 'start --gpus 0' 'start --gpus=-1' 'start --retries 101' 'start --retries=-1' '--state-file= status'; do
        try scheduler.py $words
        is "$words" "$status" 2
        has "$words" "$err" '^scheduler\.py: error: argument --'
    done
}

@test "add appends whole lines; what cannot be written is an error" {
    printf '0,/torn' >jobs.txt
    try scheduler.py add "$PWD/job.py"
    is status "$status" 0
    is said "$out" "Job line appended to: jobs.txt
Line: 0,$PWD/job.py
NOTE: If the scheduler is running with monitoring enabled, it should pick this up."
    is file "$(cat jobs.txt)" "0,/torn
0,$PWD/job.py"
    try scheduler.py add x.py --output-file no/such/jobs.txt
    is 'status where it cannot' "$status" 1
    has 'what it says' "$out" '^Error writing to file no/such/jobs.txt: No such file or directory$'
    # Arguments that would be read back as another job.
    cp jobs.txt before
    for words in '--args=--layers=1,2' '--conda=a,b' "--gpus=0
0,/x.py" "--args=a
b"; do
        try scheduler.py add x.py "$words"
        has "$words" "$status:$out" "^1:Error writing to file jobs.txt: '"
    done
    try scheduler.py add 'x,y.py' --output-file -
    is 'where the line was to be' "$status:$out:$err" "1::scheduler.py: 'x,y.py' cannot stand in a line, which commas take apart"
    try scheduler.py add ''
    is 'no script' "$status:$out" '1:Error writing to file jobs.txt: it has no script'
    is 'the file' "$(cat jobs.txt)" "$(cat before)"
}

@test "python scheduler.py works as scheduler.py does; install leaves others' files alone, remove takes out its own" {
    in="$ROOT/bin"
    scheduler.py status >said
    is 'through Python' "$(python3 "$in/scheduler.py" status)" "$(cat said)"
    has 'its name' "$(python3 "$in/scheduler.py" fly 2>&1)" "^scheduler.py: error: argument command: invalid choice: 'fly'"
    is 'words that a shell would take apart' "$(python3 "$in/scheduler.py" add --priority 1 "/a 'b' \$c.py" --output-file -)" "1,/a 'b' \$c.py"

    for file in "$in"/*.py; do sh -n "$file" || fail_with "no shell could read all of $file"; done

    mkdir away && echo mine >away/cudaq.py && ln -s /other/berth away/scheduler
    try berth compat install away
    is 'what is in the way' "$status:$err" "6:berth: there already, and not Berth's: away/cudaq.py; move it away, or name another folder"
    is 'nothing was put' "$(ls away | tr '\n' ' ')" 'cudaq.py scheduler '
    berth compat install "$in" >names
    is 'all names, once more' "$(sort names)" "$(ls -d "$in"/* | sort)"
    echo mine >"$in/other"
    berth compat remove "$in" >removed
    is 'all of them' "$(cat removed)" "$(cat names)"
    is 'and no more' "$(ls "$in")" other
    try berth compat remove "$in"
    is 'once more' "$status:$err" "2:berth: there are none of Berth's commands in $in"
    try berth compat install --force
    is 'no folder' "$status:$err" "2:berth: unknown option '--force'; 'berth compat --help' says what there is"
    has 'its help' "$(berth compat install --help)" '^usage: berth compat'
    is 'no folder was made of an option' "$(ls -d -- -* 2>/dev/null)" ''
}

@test "links and scripts to berth, as earlier versions installed them, work on, and are replaced" {
    in=$ROOT/bin
    mkdir before
    for name in $(ls "$in"); do
        case $name in
        *.py) printf '#!/bin/sh\nexec berth compat %s "$@"\n' "$name" >"before/$name"; chmod +x "before/$name" ;;
        *) ln -s "$(command -v berth)" "before/$name" ;;
        esac
        is "$name --help" "$("before/$name" --help 2>&1)" "$("$in/$name" --help 2>&1)"
        is "berth compat $name" "$(berth compat "$name" --help 2>&1)" "$("$in/$name" --help 2>&1)"
    done
    rm before/*.py
    berth compat install before >names
    is 'all of them' "$(ls before)" "$(ls "$in")"
    for link in before/*; do
        if [ -L "$link" ]; then is "$link" "$(readlink -f "$link")" "$(readlink -f "$in/cudaq")"; fi
    done
    is 'what they are' "$(basename "$(readlink "$in/cudaq")")" berth-compat
}

@test "a start without a GPU fails with status 1, and says what is missing" {
    if [ -e /dev/nvidiactl ] || [ -e /proc/driver/nvidia/version ]; then
        skip 'this machine has an NVIDIA driver'
    fi
    unset BERTH_SIM
    mkdir -m 700 "$ROOT/run"
    : >jobs.txt
    XDG_RUNTIME_DIR=$ROOT/run XDG_STATE_HOME=$ROOT/state try scheduler.py start --jobs-file jobs.txt
    is status "$status" 1
    has stderr "$err" 'ERROR .*nvidia-smi.*BERTH_SIM'
}

@test "A3 A4 halves share a GPU; a job waits for two whole GPUs and gets them as --cuda and mask" {
    mkfifo one two
    printf '0,%s/job.py,,--llm half --gate %s\n' "$PWD" one "$PWD" two >jobs.txt
    printf '1,%s/job.py,,--llm two --cuda 7 --x\n' "$PWD" >>jobs.txt
    schedule run
    wait_for_state '[1.0, 0.0] []'
    try scheduler.py status
    has status "$out" '^0       BUSY \(100%\)    1\.00        0\.0%           0\.0%           $'
    has status "$out" '^1       AVAILABLE      0\.00        0\.0%           0\.0%           $'
    pass one
    wait_for_state '[0.5, 0.0] []'
    has_not 'the one that waits' "$(cat ran)" 'llm two'
    pass two
    wait_for_output run 'Job 3 completed'
    has 'arguments and mask' "$(cat ran)" '^--llm two --x --cuda 0,1 mask 0,1$'
    wait_for_state '[0.0, 0.0] []'
    stop_scheduler run
}

@test "A5 A7 one and a half is two whole GPUs; --cuda=5 is left alone" {
    printf '0,%s/job.py,,--llm onehalf --cuda=5\n' "$PWD" >jobs.txt
    schedule run
    wait_for_output run 'Job 1 completed'
    is ran "$(cat ran)" '--llm onehalf --cuda=5 --cuda 0,1 mask 0,1'
    stop_scheduler run
    # A program that expects its ids after the mask.
    printf '0,%s/job.py,,--l,1\n' "$PWD" >jobs.txt
    schedule local --cuda-ids local
    wait_for_output local 'Job 2 completed'
    is ran "$(tail -1 ran)" '--l --cuda 0 mask 1'
    stop_scheduler local
}

@test "A8 A9 an error in a line affects no other line" {
    export BERTH_SIM=4x24000M
    cat >jobs.txt <<EOF
bad line
x,/s.py
0,$PWD/job.py,,"unbalanced
0,$PWD/missing.py
0,$PWD/job.py,,nine,9
0,$PWD/job.py,,letter,x
,$PWD/job.py
# a comment

0,$PWD/job.py,,allowed,0-1, 3 ,2-1,7
0,$PWD/job.py,,"quo'ted  blanks" a\\ b
EOF
    schedule run --gpus 4 --monitor-interval 1
    wait_for_output run 'Job 1 completed'
    wait_for_output run 'Job 2 completed'
    log=$(cat gpu_scheduler.log)
    has 'the first' "$log" 'ERROR - \[MainThread\] - jobs.txt line 1: a line is '
    has 'a priority' "$log" "jobs.txt line 2: the priority 'x' is no integer: x,/s.py"
    has 'a quote' "$log" 'jobs.txt line 3: No closing quotation'
    has 'a script' "$log" 'jobs.txt line 4: there is no such script yet'
    has 'a card' "$log" "ERROR .* jobs.txt line 5: .*no GPU of '9' is managed here"
    has 'no number' "$log" "jobs.txt line 6: 'x' is no GPU"
    has 'no priority' "$log" 'jobs.txt line 7: a line is '
    has 'backwards' "$log" "WARNING .* jobs.txt line 10: '2-1' runs backwards; GPUs from 7"
    has 'words' "$(cat ran)" "^quo'ted  blanks a b --cuda"
    # It starts once its script exists.
    cp job.py missing.py
    wait_for_output run 'Job 3 completed'
    is runs "$(wc -l <ran)" 3
    export BERTH_DIR=$PWD/.berth
    is 'allowed' "$(berth show 1 --json | json jobs.0.gpus.0.index)" 0
    export BERTH_DIR=
    stop_scheduler run
}

@test "A10 A11 a repeated line runs once; the same arguments in another order run too" {
    for args in '--lr 1 --bs 2' '--lr 2 --bs 1' '--lr 1 --bs 2'; do
        echo "0,$PWD/job.py,,$args"
    done >jobs.txt
    schedule run
    wait_for_output run 'Job 1 completed'
    wait_for_output run 'Job 2 completed'
    # A completed job is never run again, not even by a new scheduler.
    stop_scheduler run
    echo "0,$PWD/job.py,,--lr 1 --bs 2" >>jobs.txt
    echo "0,$PWD/job.py,,new" >>jobs.txt
    schedule again
    wait_for_output again 'Job 3 completed'
    has 'what it says' "$(cat "$ROOT/again.out")" 'Job 1 has completed before and is not run again'
    stop_scheduler again
    is 'runs' "$(sed 's/ --cuda.*//' ran | sort | paste -sd '|')" '--lr 1 --bs 2|--lr 2 --bs 1|new'
}

@test "A12 pause and resume affect the running scheduler immediately, whichever program writes the file" {
    : >jobs.txt
    schedule run --state-interval 1000 --monitor-interval 1000
    wait_for_state '[0.0, 0.0] []'
    # Both are there when it looks: a user who pauses a GPU and then adds a line relies on
    # that. It is stopped while it does not hold the folder's lock, for which `pause` would
    # wait; it may get the lock just as it is stopped.
    while flock . kill -STOP "$pid_of_run" && "$AWAIT" prints "$LIMIT" "cat /proc/$pid_of_run/status" '^State:.*T' &&
        ! flock -n . true; do
        kill -CONT "$pid_of_run"
    done
    try scheduler.py pause 1
    is 'pause' "$status:$out" "0:GPU 1 pause request written to state file 'gpu_scheduler_state.json'.
The running scheduler should detect this change shortly."
    echo "0,$PWD/job.py,,late,1" >>jobs.txt
    kill -CONT "$pid_of_run"
    wait_for_output run 'Job 1 queued'
    has 'first the pause' "$(cat "$ROOT/run.out")" 'GPU 1 paused'
    has status "$(scheduler.py status)" '^1       PAUSED         0\.00'
    is 'it waits' "$(cat ran 2>/dev/null)" ''
    try scheduler.py resume 1
    has 'resume' "$out" "^GPU 1 resume request written to state file"
    wait_for_output run 'Job 1 completed'
    is mask "$(cat ran)" 'late --cuda 1 mask 1'
    # Written by a tool that ignores locks and does not rename.
    python3 -c 'import json; p = "gpu_scheduler_state.json"; s = json.load(open(p)); s["paused_gpus"] = [0]
json.dump(s, open(p, "w"))'
    wait_for_output run 'GPU 0 paused'
    wait_for_state '[0.0, 0.0] [0]'
    # A slow writer's file is not overwritten; a file that stays truncated is repaired.
    exec 7>gpu_scheduler_state.json
    printf '{"gpu_status": [0.0, ' >&7
    echo "0,$PWD/job.py,,meanwhile,1" >>jobs.txt
    wait_for_output run 'Job 2 completed'
    printf '0.0], "paused_gpus": [0, 1]}' >&7
    exec 7>&-
    "$AWAIT" until "$LIMIT" "berth --dir $PWD/.berth gpus --json" gpus.1.state paused
    has 'the file is theirs' "$(cat gpu_scheduler_state.json)" '^\{"gpu_status": \[0\.0, 0\.0'
    echo '{"gpu_status": [0.0, 0.0], "paused_gpus": "1"}' >gpu_scheduler_state.json
    wait_for_output run 'WARNING .* the state file gpu_scheduler_state.json: paused_gpus is no list of ids; it is written'
    wait_for_state '[0.0, 0.0] [0, 1]'
    scheduler.py resume 1 >/dev/null
    try scheduler.py pause 0
    is 'a second time' "$status" 0
    has 'its warning' "$err" 'WARNING .*GPU 0 is paused already'
    try scheduler.py resume 1
    has 'the other' "$status:$err" '^0:.*WARNING .*GPU 1 is not paused$'
    try scheduler.py pause 2
    is 'no such card' "$status:$out" '1:Error: Invalid GPU ID 2. Expected 0 to 1.'
    stop_scheduler run
    # Paused GPUs stay paused.
    echo "0,$PWD/job.py,,next" >>jobs.txt
    schedule again
    wait_for_output again 'Job 3 completed'
    is mask "$(tail -1 ran)" 'next --cuda 1 mask 1'
    # Another state file beside it shares the daemon, and has no paused GPUs.
    schedule other --state-file other.json --jobs none.txt
    "$AWAIT" until "$LIMIT" "cat other.json" paused_gpus.0 0
    has_not 'what it says' "$(cat "$ROOT/other.out")" 'GPU 0 resumed'
    stop_scheduler other
    stop_scheduler again
    # Removing the file resets the state.
    rm gpu_scheduler_state.json
    schedule third
    wait_for_state '[0.0, 0.0] []'
    wait_for_output third 'GPU 0 resumed'
    stop_scheduler third
}

@test "pausing and resuming without a scheduler, in a file that the original wrote" {
    cat >s.json <<'JSON'
{
    "gpu_status": [
        0.5,
        0.0,
        1.0,
        0.3333
    ],
    "paused_gpus": [
        1
    ]
}
JSON
    truncate -s -1 s.json # without a newline at the end
    try scheduler.py --state-file s.json status
    # The last column is padded to its width, too.
    is status "$status:$(sed 's/   *$/$/' <<<"$out")" "0:
--- GPU Status (Based on State File: s.json) ---
GPU ID  State          Allocation  Memory Util    Load Util$
----------------------------------------------------------------------
0       BUSY (50%)     0.50        N/A            N/A$
1       PAUSED         0.00        N/A            N/A$
2       BUSY (100%)    1.00        N/A            N/A$
3       BUSY (33%)     0.33        N/A            N/A$

Note: Real-time utilization requires GPUtil. Status reflects state file content.
Job queue information is only available within the running scheduler process."
    cp s.json before.json
    scheduler.py --state-file s.json pause 3 >/dev/null
    scheduler.py pause --state-file s.json 0 >/dev/null
    is paused "$(json paused_gpus.2 <s.json)" 3
    scheduler.py --state-file s.json resume 3 >/dev/null
    scheduler.py --state-file s.json resume 0 >/dev/null
    cmp s.json before.json
    try scheduler.py --state-file s.json pause 4
    is 'no such card' "$status:$out" '1:Error: Invalid GPU ID 4. Expected 0 to 3.'
    try scheduler.py pause 7
    is 'without a file' "$status:$out" '1:Error: Invalid GPU ID 7. Expected 0 to 1.'
    try env BERTH_SIM=65x24G scheduler.py --state-file new.json pause 64
    is 'more than there can be' "$status" 1
    mkfifo pipe
    try scheduler.py --state-file pipe start
    is 'a file that cannot be replaced' "$status" 1
    has 'its words' "$err" 'pipe is no regular file'
    try scheduler.py --state-file pipe pause 0
    is 'a pipe to pause in' "$status" 1
}

@test "a state file left behind: its allocations are not trusted, its paused GPUs are" {
    echo '{"gpu_status": [1.0, 0.5, 0.25], "paused_gpus": [0, 9]}' >gpu_scheduler_state.json
    mkfifo gate
    echo "0,$PWD/job.py,,--gate gate" >jobs.txt
    schedule run
    wait_for_state '[0.0, 1.0] [0]'
    pass gate
    wait_for_state '[0.0, 0.0] [0]'
    stop_scheduler run
}

@test "A14 the scheduler is killed: its job continues, the allocation is what really runs, nothing runs twice" {
    mkfifo gate
    printf '0,%s/job.py,,--gate gate --llm two\n0,%s/job.py,,--llm two behind\n' "$PWD" "$PWD" >jobs.txt
    schedule first
    wait_for_state '[1.0, 1.0] []'
    kill -KILL "$pid_of_first"
    finish first
    echo '{"gpu_status": [1.0, 0.0], "paused_gpus": []}' >gpu_scheduler_state.json
    schedule run
    wait_for_state '[1.0, 1.0] []'
    wait_for_output run 'Job 1 runs already'
    try scheduler.py start
    is 'a second one' "$status" 1
    has 'its words' "$err" 'another scheduler works with gpu_scheduler_state.json'
    pass gate
    wait_for_output run 'Job 2 completed'
    wait_for_state '[0.0, 0.0] []'
    stop_scheduler run
    is 'runs' "$(wc -l <ran)" 2
}

@test "A15 failed jobs are retried as often as configured; their logs have the exit code" {
    echo "0,$PWD/job.py,,--fail 7 --mode 'eval/b c'" >jobs.txt
    schedule run --retries 0
    wait_for_output run 'ERROR .*Job 1 failed \(exit 7\)'
    log=$(ls "$ROOT/joblogs")
    has 'name' "$log" '^job_1_[0-9]{8}_[0-9]{6}\.log$'
    has 'the other name' "$(ls)" '^job_job\.py_eval_b_c_[0-9a-f]{8}_gpu0_[0-9]{8}_[0-9]{6}\.log$'
    cmp "$ROOT/joblogs/$log" job_job.py_*.log
    sed -e 's/^\(.* Time\): .*/\1/' -e 's/^\(Job Hash\): [0-9a-f]\{8\}$/\1/' job_job.py_*.log >log
    diff log - <<EOF
Job ID: 1
Job Hash
Original Line: 0,$PWD/job.py,,--fail 7 --mode 'eval/b c'
LLM Name: None
GPUs Required: 1.00
Mode Tag: eval_b_c
Script: $PWD/job.py
Conda Env: None
Arguments: ['--fail', '7', '--mode', 'eval/b c']
GPU ID(s) Assigned: 0
Start Time
------------------------------------------------------------
OUT: to stdout
ERR: to stderr
------------------------------------------------------------
End Time
Process finished with exit code: 7
EOF
    # Adding it again requests it again; so does starting a new scheduler.
    scheduler.py add "$PWD/job.py" --args "--fail 7 --mode 'eval/b c'" >/dev/null
    wait_for_output run 'Job 2 failed'
    stop_scheduler run
    schedule again --retries 1
    wait_for_output again 'WARNING .*Job 3 runs again \(exit 7\)'
    wait_for_output again 'Job 3 failed'
    stop_scheduler again
    is runs "$(wc -l <ran)" 4
}

@test "a program's last output, bytes that are not text, and a signal that ends it" {
    cat >bytes.py <<'PY'
import os, signal
os.write(1, b"a\xff\xfeb")
os.write(1, b" of a line\nlast")
os.kill(os.getpid(), signal.SIGKILL)
PY
    echo "0,$PWD/bytes.py" >jobs.txt
    schedule run --retries 0
    wait_for_output run 'Job 1 failed \(.*9'
    stop_scheduler run
    grep -aq "^OUT: a$(printf '\377\376')b of a line$" "$ROOT"/joblogs/job_1_*.log
    grep -aq '^OUT: last$' "$ROOT"/joblogs/job_1_*.log
    grep -aq 'Process finished with exit code: -9' "$ROOT"/joblogs/job_1_*.log
}

@test "A16 the lowest number first, equals in the file's order" {
    export BERTH_SIM=1x24000M
    mkfifo gate
    {
        echo "0,$PWD/job.py,,--gate gate"
        for line in 5,five 0,zero-a 1,one -3,minus 0,zero-b 100000,last 99999,before; do
            echo "${line%,*},$PWD/job.py,,${line#*,}"
        done
    } >all.txt
    head -1 all.txt >jobs.txt
    schedule run
    wait_for_output run 'Job 1 assigned'
    # Appended lines are sent alone, unless positions among all lines matter.
    sed -n 2,4p all.txt >>jobs.txt
    wait_for_output run 'Job 4 queued'
    sed -n 5,6p all.txt >>jobs.txt
    wait_for_output run 'Job 6 queued'
    has 'what was told' "$(cat .berth/daemon.log)" 'event=file-sync .* lines=2 new=2 '
    cp all.txt jobs.txt
    wait_for_output run 'Job 8 queued'
    pass gate
    wait_for_output run 'Job 8 completed'
    stop_scheduler run
    is order "$(sed 1d ran | cut -d ' ' -f 1 | paste -sd ' ')" 'minus zero-a zero-b one five before last'
}

@test "A18 added lines run; a removed one stays queued" {
    export BERTH_SIM=1x24000M
    mkfifo gate jobs.txt
    schedule run --monitor-interval 1000
    wait_for_output run 'jobs.txt is no regular file'
    # As Windows editors write it.
    printf '\xef\xbb\xbf0,%s/job.py,,--gate gate\r\n' "$PWD" >new
    mv new jobs.txt
    wait_for_output run 'Job 1 assigned'
    scheduler.py add "$PWD/job.py" --args added >/dev/null
    wait_for_output run 'Job 2 queued'
    : >jobs.txt
    scheduler.py add "$PWD/job.py" --priority 1 --args 'and "one more"' >/dev/null
    wait_for_output run 'Job 3 queued'
    pass gate
    wait_for_output run 'Job 3 completed'
    stop_scheduler run
    is order "$(sed 1d ran | paste -sd '|')" 'added --cuda 0 mask 0|and one more --cuda 0 mask 0'
}

@test "A19 SIGINT and SIGTERM end the scheduler and its running jobs; the next start continues with the queue" {
    export BERTH_SIM=1x24000M
    mkfifo gate
    printf '0,%s/job.py,,--gate gate\n0,%s/job.py,,queued\n' "$PWD" "$PWD" >jobs.txt
    schedule run
    wait_for_state '[1.0] []'
    stop_scheduler run
    has 'what it says' "$(cat "$ROOT/run.out")" 'Job 1 was stopped; it runs again with the next start'
    is 'state' "$(tr -d ' \n' <gpu_scheduler_state.json)" '{"gpu_status":[0.0],"paused_gpus":[]}'
    schedule again
    wait_for_state '[1.0] []'
    kill -TERM "$pid_of_again"
    finish again
    is 'status after TERM' "$status" 0
    schedule last
    wait_for_state '[1.0] []'
    pass gate
    "$AWAIT" output "$LIMIT" ran '^queued --cuda 0'
    stop_scheduler last
}

@test "a GPU that others use above a threshold gets no job, one below it does" {
    echo "0,$PWD/job.py,,--llm half" >jobs.txt
    echo '{"paused_gpus": [0, 1]}' >gpu_scheduler_state.json
    schedule run
    wait_for_output run 'Job 1 queued'
    background full env "BERTH_SIM_DIR=$PWD/.berth/sim" berth simjob --vram 20000 --ramp 0 --hold 1000 --gpu 0
    background used env "BERTH_SIM_DIR=$PWD/.berth/sim" berth simjob --vram 12000 --ramp 0 --hold 1000 --gpu 1 --util 10
    "$AWAIT" until "$LIMIT" "berth --dir $PWD/.berth gpus --json" gpus.0.used_mib 20000
    "$AWAIT" until "$LIMIT" "berth --dir $PWD/.berth gpus --json" gpus.1.used_mib 12000
    scheduler.py resume 0 >/dev/null
    wait_for_output run 'GPU 0 resumed'
    scheduler.py resume 1 >/dev/null
    wait_for_output run 'Job 1 assigned to GPU 1'
    wait_for_output run 'Job 1 completed'
    stop_scheduler run
}

@test "a half that uses more than its half keeps another half away by the thresholds alone" {
    export BERTH_SIM=1x24000M
    mkfifo end
    cat >big.py <<'PY'
import subprocess, sys
with subprocess.Popen(["berth", "simjob", "--vram", sys.argv[2], "--ramp", "0", "--hold", "1000", "--util", "10"]) as job:
    open("end").read()
    job.kill()
PY
    printf '0,%s/big.py,,--vram 15000 --llm half\n' "$PWD" >jobs.txt
    schedule run
    "$AWAIT" until "$LIMIT" "berth --dir $PWD/.berth gpus --json" gpus.0.used_mib 15000
    printf '1,%s/big.py,,--vram 5000 --llm half\n' "$PWD" >>jobs.txt
    "$AWAIT" until "$LIMIT" "berth --dir $PWD/.berth gpus --json" gpus.0.used_mib 20000
    has 'both' "$(berth --dir "$PWD/.berth" gpus --json)" '"jobs":\[1,2\]'
    wait_for_state '[1.0] []'
    pass end
    wait_for_output run 'Job [12] completed'
    stop_scheduler run
}

@test "conda is set up before the script; a missing environment fails the job" {
    mkdir -p "$ROOT/miniconda3/etc/profile.d"
    cat >"$ROOT/miniconda3/etc/profile.d/conda.sh" <<'SH'
conda() {
    [ "$1" = activate ] || return 2
    [ "$2" = torch ] || { echo "EnvironmentNameNotFound: $2" >&2; return 1; }
    export CONDA_DEFAULT_ENV=$2
}
SH
    echo 'import os; print(os.environ.get("CONDA_DEFAULT_ENV"))' >env.py
    printf '0,%s/env.py,torch\n0,%s/env.py,nowhere\n0,%s/env.py\n' "$PWD" "$PWD" "$PWD" >jobs.txt
    schedule run --retries 0
    wait_for_output run 'Job 1 completed'
    wait_for_output run 'Job 2 failed'
    wait_for_output run 'Job 3 completed'
    stop_scheduler run
    has 'with' "$(cat "$ROOT"/joblogs/job_1_*)" '^OUT: torch$'
    has 'head' "$(cat "$ROOT"/joblogs/job_1_*)" '^Conda Env: torch$'
    has 'without' "$(cat "$ROOT"/joblogs/job_3_*)" '^OUT: None$'
}

@test "screen sessions: their names, their exit codes, and that they outlive the scheduler" {
    mkfifo gate
    printf '0,%s/job.py,,--mode train --gate gate --fail 3\n1,%s/job.py,,--llm two\n' "$PWD" "$PWD" >jobs.txt
    schedule run --screen --retries 0
    wait_for_output run 'Job 1 assigned'
    "$AWAIT" until "$LIMIT" "berth --dir $PWD/.berth screens --json" screens.0.job 1
    is screens "$(scheduler.py screens)" "Listing active scheduler GNU Screen sessions...

--- Active GPU Job Screen Sessions ---
1. gpujob_0_train_1 (Attach: screen -r gpujob_0_train_1)"
    stop_scheduler run
    schedule again --screen --retries 0
    wait_for_state '[1.0, 0.0] []'
    pass gate
    wait_for_output again 'Job 1 failed \(exit 3\)'
    wait_for_output again 'Job 2 completed'
    is 'no sessions' "$(scheduler.py screens)" "Listing active scheduler GNU Screen sessions...
No matching screen sessions found."
    stop_scheduler again
    is runs "$(wc -l <ran)" 2
    has log "$(cat "$ROOT/joblogs/output_gpujob_0_train_1_"*.typescript)" '^to stdout'
    has 'log of two cards' "$(cat "$ROOT/joblogs/output_gpujob_0,1_unknown_2_"*.typescript)" '^to stdout'
}

@test "logs of two projects do not mix, though both count from 1" {
    local project
    for project in one two; do
        mkdir "$project"
        printf 'print("of %s")\n' "$project" >"$project/job.py"
        cd "$project"
        printf '0,%s/job.py,\n' "$PWD" >jobs.txt
        schedule "$project" --screen --retries 0
        wait_for_output "$project" 'Job 1 completed'
        stop_scheduler "$project"
        cd ..
    done
    is logs "$(ls "$ROOT/joblogs"/output_gpujob_0_unknown_1_*.typescript | wc -l)" 2
    is 'lines of each' "$(grep -h '^of ' "$ROOT/joblogs"/*.typescript | tr -d '\r' | sort | paste -sd ' ')" 'of one of two'
    for project in "$ROOT/joblogs"/*.typescript; do
        is "output in $project" "$(grep -c '^of ' "$project")" 1
    done
}

@test "the machine's daemon is used where the environment names one" {
    unset BERTH_SIM
    export BERTH_DIR=$ROOT/i
    start_daemon 2x24000M
    # Its GPUs are known before a scheduler runs.
    has status "$(scheduler.py status)" '^1       AVAILABLE      0\.00        0\.0% '
    has pause "$(scheduler.py pause 1)" '^GPU 1 pause request written'
    scheduler.py resume 1 >/dev/null
    echo "-1,$PWD/job.py,,--llm half" >jobs.txt
    schedule run
    wait_for_output run 'Job 1 completed'
    stop_scheduler run
    is 'what it asked' "$(job_field 1 share) $(job_field 1 priority) $(job_field 1 name)" '0.5 1 job.py'
    [ ! -e .berth ]
}

@test "a start with another daemon is refused while the last one, which no variable named, has jobs" {
    local other=$ROOT/other
    unset BERTH_SIM
    export XDG_RUNTIME_DIR=$ROOT/runtime
    mkdir "$XDG_RUNTIME_DIR"
    mkfifo gate
    echo "0,$PWD/job.py,,--gate gate" >jobs.txt
    start_daemon 2
    schedule run
    wait_for_output run 'Job 1 assigned'
    BERTH_DIR=$other start_daemon 2
    has 'the cards that it asks for, whatever a command beside it is told' \
        "$(BERTH_DIR=$other scheduler.py status)" '^0       BUSY \(100%\)'
    kill -KILL "$pid_of_run"
    finish run
    BERTH_DIR=$other try scheduler.py start
    is 'status with another daemon' "$status" 1
    has 'its words' "$err" 'would run twice; go on there \(BERTH_SOCKET=.*, or cancel them: berth --socket .* cancel 1$'
    schedule again
    wait_for_output again 'Job 1 runs already'
    pass gate
    wait_for_output again 'Job 1 completed'
    stop_scheduler again
    is runs "$(wc -l <ran)" 1
    BERTH_DIR=$other stop_daemon
    stop_daemon
}

@test "sessions that outlive a scheduler keep a start with another daemon away" {
    local other=$ROOT/other
    mkfifo gate
    echo "0,$PWD/job.py,,--gate gate" >jobs.txt
    BERTH_DIR=$ROOT/i schedule run --screen
    "$AWAIT" output "$LIMIT" ran gate >/dev/null
    stop_scheduler run
    BERTH_DIR=$other try scheduler.py start --screen
    is 'status with another daemon' "$status" 1
    has 'its words' "$err" 'would run twice; .* cancel 1$'
    BERTH_DIR=$ROOT/i schedule again --screen
    wait_for_output again 'Job 1 runs already'
    pass gate
    wait_for_output again 'Job 1 completed'
    stop_scheduler again
    is runs "$(wc -l <ran)" 1
    BERTH_DIR=$other stop_daemon
    BERTH_DIR=$ROOT/i stop_daemon
}

@test "a full disk and a lost GPU are reported, and end no scheduler" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
    cc -shared -fPIC -D_LARGEFILE64_SOURCE -o "$ROOT/bad_disk.so" "$E2E/bad_disk.c" -ldl
    export BAD_DISK=$ROOT/bad_disk BAD_DISK_BELOW=$WORK/.berth
    echo "0,$PWD/job.py,,one" >jobs.txt
    LD_PRELOAD=$ROOT/bad_disk.so schedule run
    wait_for_output run 'Job 1 completed'
    echo 28 >"$ROOT/new" && mv "$ROOT/new" "$BAD_DISK"
    echo "0,$PWD/job.py,,two" >>jobs.txt
    wait_for_output run 'ERROR .*no space left.*; it is tried again every 5 s'
    rm "$BAD_DISK"
    "$AWAIT" output "$LIMIT" ran '^two ' >/dev/null
    scheduler.py pause 1 >/dev/null
    wait_for_state '[0.0, 0.0] [1]'
    echo 'lost 1' >.berth/sim/fault
    BERTH_DIR=$PWD/.berth wait_for_event kind=gpu gpu=1 state=lost >/dev/null
    scheduler.py resume 1 >/dev/null
    wait_for_output run 'WARNING .*gpu 1 is lost'
    echo "0,$PWD/job.py,,three" >>jobs.txt
    "$AWAIT" output "$LIMIT" ran '^three ' >/dev/null
    stop_scheduler run
    is 'what ran' "$(cut -d ' ' -f 1 ran | paste -sd ' ')" 'one two three'
}

@test "a scheduler that stops removes its pending jobs from the queue of a daemon that is not its own" {
    export BERTH_DIR=$ROOT/i
    start_daemon 2
    berth pause 0 1 >/dev/null
    seq -f "0,$PWD/job.py,,--n %.0f" 3 >jobs.txt
    schedule run
    wait_for_output run 'Job 3 queued'
    stop_scheduler run
    is 'what waits without it' "$(berth queue --json | jq '.jobs | length')" 0
    stop_daemon
}

@test "a failed line that was removed and is added again later runs once more" {
    echo 'raise SystemExit(3)' >fails.py
    echo 'import time; time.sleep(1.5)' >later.py
    echo '0,fails.py,' >jobs.txt
    schedule run --retries 0
    wait_for_output run 'Job 1 failed'
    # It starts once the file has been read, so that the line is missing long enough.
    echo '0,later.py,' >jobs.txt
    wait_for_output run 'Job 2 completed'
    echo '0,fails.py,' >>jobs.txt
    wait_for_output run 'Job 3 failed'
    stop_scheduler run
}

@test "a line that is added again runs once more, even if the daemon dies while it receives it" {
    local daemon job jobs_of_line='.jobs[] | select(.command | endswith("-- fails.py")) | .id'
    export BERTH_DIR=$ROOT/i
    echo 'raise SystemExit(3)' >fails.py
    echo '0,fails.py,,,0' >jobs.txt
    start_daemon 2
    berth pause 1 >/dev/null
    BERTH_SOCKET=$BERTH_DIR/berth.sock schedule run --retries 0
    wait_for_output run 'Job 1 failed'
    stop_daemon >/dev/null
    # After this commit the line is a job again, and not all lines after it have been sent.
    BERTH_CRASH_AT=daemon-after-commit:14 start_daemon 2
    daemon=$(daemon_pid)
    wait_for_output run 'is found again'
    # They never start, because their GPU is paused. They come in one write, since the
    # scheduler removes the lines that it reads.
    { echo '0,fails.py,,,0'; seq -f '1,fails.py,,--n %.0f,1' 1600; } >more.txt
    cat more.txt >>jobs.txt
    timeout "$LIMIT" tail --pid="$daemon" -f /dev/null
    # It comes back when the job has ended again.
    kill -STOP "$pid_of_run"
    start_daemon 2
    for job in $(berth queue --json | jq "$jobs_of_line"); do berth wait "$job" || true; done
    kill -CONT "$pid_of_run"
    wait_for_output run ' queued: 1,fails.py,,--n 1600,1'
    # A job that ends between the two commands is in both.
    is 'jobs of the line' "$({ berth queue --json; berth history --json; } | jq "$jobs_of_line" | sort -u | wc -l)" 2
    stop_scheduler run
    stop_daemon
}

@test "a line that comes in the moment in which the daemon dies is queued when it is back" {
    export BERTH_DIR=$ROOT/i
    mkfifo held go
    echo "0,$PWD/job.py,,--n first" >jobs.txt
    start_daemon 2
    BERTH_SOCKET=$BERTH_DIR/berth.sock schedule run
    wait_for_output run 'Job 1 completed'
    timeout "$LIMIT" bash -c 'until jq -e ".gpu_status | add == 0" gpu_scheduler_state.json; do :; done' >/dev/null
    # Having read this, it has checked its GPUs after that job.
    echo 'soon,job.py' >>jobs.txt
    wait_for_output run 'line 2: '
    # It has seen that the file changed, and waits for the state file's lock before it reads
    # it. (The lock's holder stays alive: in a PID namespace /proc/locks hides a dead
    # process's.)
    timeout "$LIMIT" flock . sh -c 'echo >held; cat go' 3>&- &
    timeout "$LIMIT" cat held
    echo "0,$PWD/job.py,,--n second" >>jobs.txt
    timeout "$LIMIT" bash -c 'until grep -q -- "-> FLOCK.* $1 " /proc/locks; do :; done' - "$pid_of_run"
    kill_daemon
    pass go
    start_daemon 2
    wait_for_output run 'Job 2 completed'
    stop_scheduler run
    stop_daemon
}
