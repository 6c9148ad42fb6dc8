#!/usr/bin/env bats
# Jobs with --on slurm on a real cluster: the words and codes of jobs at home, and each command exactly once, whoever
# is killed.

bats_require_minimum_version 1.5.0
load lib
load berth

@test "a job runs on a node, and its end, log and folder are those of a job at home" {
    start_cluster --nodes 1 --gpus 4
    run -0 submit --dry-run -G 2 -t 5m -- true
    [[ $output == *"gpus          2, whole"$'\n'*"sbatch        "*"--gres=gpu:2"*"would be sent to Slurm now" ]]
    run -3 timeout $LIMIT berth submit --on slurm -W -G 2 -- \
        sh -c 'echo on $(hostname) with $CUDA_VISIBLE_DEVICES in $PWD; exit 3'
    run -0 berth logs 1
    [ "$output" = "on n1 with 0,1 in $ROOT/w" ]
    [ "$(field 1 '[.state, .exit_status, .text, .on] | join(" ")')" = "FAILED 3 exit 3 slurm" ]
    [ "$(field 1 '.attempts[0] | [.slurm_job, .slurm_node] | join(" ")')" = "1 n1" ]
    run -0 berth show 1
    [[ $output == *"2 GPUs, whole, on Slurm"* ]]
    [[ $output == *"attempt 1   Slurm's job 1 on n1, started"* ]]
    run -0 berth history
    [[ $output == *FAILED* ]]
    run ls "$BERTH_DIR/state/jobs"
    [ -z "$output" ]
}

@test "a jobs file runs with its codes, as arrays, and is resumed" {
    start_cluster --nodes 2 --gpus 4
    for i in 1 2 3 4 5 6 7 8; do echo "[gpus=1] echo $i >>runs; exit $((i % 3))"; done >jobs
    echo '[gpus=1 vram=4G oom-retries=1 name=oom] echo CUDA out of memory; exit $((BERTH_ATTEMPT == 1))' >>jobs
    echo '[gpus=0 after=oom] echo last >>runs' >>jobs
    run -0 timeout $LIMIT berth run --on slurm --dry-run jobs
    [[ $output == *"be sent  slurm "*" whole  echo 1 "*"sbatch "*"--gres=gpu:1"* ]]
    run -2 timeout $LIMIT berth run --on slurm jobs
    [[ $output == *"10 jobs from jobs; on Slurm"* ]]
    [[ $output == *"sent "*"Slurm   echo 1 "*"started "*"Slurm's job "*"_0 on n"[12]"   echo 1 "* ]]
    [[ $output == *"10 jobs: 4 completed, 6 failed."* ]]
    [ "$(sort runs | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 last " ]
    [ "$(tail -n 1 runs)" = last ]
    [ "$(grep -c event=sent "$BERTH_DIR/daemon.log")" -le 4 ]
    run -2 timeout $LIMIT berth run --on slurm jobs
    [ "$(wc -l <runs)" = 9 ]
}

@test "the first line for Slurm that a followed file gets is shown where it starts" {
    start_cluster --nodes 1
    echo '[gpus=0] until [ -e go ]; do sleep 0.1; done' >jobs
    timeout $LIMIT berth run jobs >out 2>&1 3>&- &
    within is_state 1 RUNNING
    echo '[gpus=0 on=slurm] until [ -e go ]; do sleep 0.1; done' >>jobs
    started() { grep -q "started .*Slurm's job 1 on n1" out; }
    within started
    touch go
    wait $!
}

@test "a job that waits there says why, and is cancelled before and after it began" {
    start_cluster --nodes 1 --gpus 1
    submit -- sh -c 'trap "echo ended; exit 9" TERM; echo begun; sleep 1000 & wait'
    within is_state 1 RUNNING
    submit -- touch never
    waits() { berth explain 2 | grep -q "STARTING: Slurm: \(Resources\|Priority\): .*Slurm's job 2"; }
    within waits
    [ "$(field 2 .reason)" = Slurm ]
    berth cancel 2
    run -130 wait_for 2
    berth cancel 1
    run -130 wait_for 1
    [ "$(berth logs 1 | tr '\n' ' ')" = "begun ended " ]
    [ ! -e never ]
    [ "$(field 1 .text)" = "cancelled by root" ]
    none_left() { [ -z "$(squeue -h)" ]; }
    within none_left
}

@test "the time limit is Berth's, with its words and code" {
    start_cluster --nodes 1
    run -124 timeout $LIMIT berth submit --on slurm -W -G 0 -t 1s --grace 1s -- sleep 1000
    [ "$(field 1 .text)" = "time limit of 1.0s reached" ]
}

@test "what Slurm refuses, and what cannot be had there, is said at once or once it is known" {
    start_cluster --nodes 1 --gpus 1
    run -2 submit --gpu-ids 0 -- true
    [[ $output == *"gpu-ids cannot be had on Slurm: Slurm chooses the GPUs"* ]]
    run -1 timeout $LIMIT berth submit --on slurm -W -G 7 -- true
    [[ $(field 1 .text) == *"Slurm: Requested node configuration is not available"* ]]
    is_state 1 INFEASIBLE
    berth daemon stop
    echo "slurm_options: --partitoin=main" >config
    berth daemon start --config config
    run -1 timeout $LIMIT berth submit --on slurm -W -G 0 -- true
    [[ $(field 2 .text) == *"unrecognized option '--partitoin=main'"* ]]
    is_state 2 INFEASIBLE
    berth daemon stop
    echo "slurm_commands: $ROOT/none" >config
    berth daemon start --config config
    run -6 submit -- true
    [[ $output == *"is not a program of Slurm; set slurm_commands"* ]]
    run -0 submit --dry-run -- true
    [[ $output == *"would be refused: "*"is not a program of Slurm; set slurm_commands"* ]]
}

@test "a job that Slurm ends is CANCELLED by Slurm" {
    start_cluster --nodes 1
    submit -G 0 -- sleep 1000
    within is_state 1 RUNNING
    scancel "$(field 1 '.attempts[0].slurm_job')"
    run -130 wait_for 1
    [ "$(field 1 '[.state, .text] | join(" ")')" = "CANCELLED cancelled by Slurm" ]
}

@test "a waiting job that a person cancels in Slurm is not sent again by the next daemon" {
    start_cluster --nodes 1 --gpus 1
    submit -- sleep 1000
    within is_state 1 RUNNING
    submit -- touch never
    waits() { [ -n "$(field 2 '.attempts[0].slurm_job // empty')" ]; }
    within waits
    kill_daemon
    berth daemon start
    within waits
    scancel "$(field 2 '.attempts[0].slurm_job')"
    run -130 wait_for 2
    [[ $(field 2 .text) == *"by Slurm"* ]]
}

@test "the daemon is killed while a job runs, and when its record is there" {
    start_cluster --nodes 1
    submit -G 0 -- sh -c 'echo x >>runs; until [ -e go ]; do sleep 0.1; done; exit 5'
    within is_state 1 RUNNING
    kill_daemon
    berth daemon start
    touch go
    run -5 wait_for 1
    submit -G 0 -- sh -c 'echo x >>runs; until [ -e go2 ]; do sleep 0.1; done; exit 6'
    within is_state 2 RUNNING
    kill_daemon
    touch go2
    within test -e "$BERTH_DIR/state/jobs/2.1/exit"
    berth daemon start
    run -6 wait_for 2
    [ "$(wc -l <runs)" = 2 ]
}

@test "the daemon is killed around sbatch, and nothing is lost or runs twice" {
    start_cluster --nodes 1
    for at in daemon-folder-made daemon-folder-locked slurm-committed slurm-before-sbatch slurm-sbatch-started \
        slurm-sbatch-answered slurm-before-record-taken; do
        BERTH_CRASH_AT=$at berth daemon start
        local first
        first=$(berth status --json | jq .daemon.pid)
        submit -G 0 -- sh -c "echo $at >>runs; exit 9"
        timeout "$LIMIT" tail --pid="$first" -f /dev/null
        berth daemon start
        run -9 wait_for @
        [ "$(grep -c $at runs)" = 1 ]
        berth daemon stop
    done
}

@test "an attempt whose folder was removed is LOST, and is not sent for ever" {
    LIMIT=$((LIMIT + 180)) # two minutes of silence are part of it
    start_cluster --nodes 1 --gpus 1
    submit -- sleep 1000
    within is_state 1 RUNNING
    submit -- touch never
    waits() { berth explain 2 | grep -q "STARTING: Slurm: \(Resources\|Priority\): "; }
    within waits
    rm -r "$BERTH_DIR/state/jobs/2.1"
    berth cancel 1
    run -1 wait_for 2
    is_state 2 LOST
    [[ $(field 2 .text) == *"its folder was removed"* ]]
    [ ! -e never ]
}

@test "jobs whose attempts the database has lost are sent again, each of them" {
    start_cluster --nodes 1 --gpus 1
    submit -- sh -c 'until [ -e go ]; do sleep 0.1; done'
    within is_state 1 RUNNING
    for i in 2 3; do submit -- sh -c "echo $i >>runs"; done
    both_wait() { [ "$(squeue -h -t PENDING | wc -l)" = 2 ]; }
    within both_wait
    kill_daemon
    python3 -c "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('DELETE FROM attempts WHERE job > 1')
db.commit()" "$BERTH_DIR/state/berth.db"
    scancel -t PENDING -u root
    berth daemon start
    touch go
    run -0 wait_for 2
    run -0 wait_for 3
    [ "$(sort runs | tr '\n' ' ')" = "2 3 " ]
}

@test "slurmctld is killed right after it took jobs, and forgets them: each runs once" {
    start_cluster --nodes 1
    for i in 1 2 3 4 5; do echo "[gpus=0] echo $i >>runs"; done >jobs
    timeout $LIMIT berth run --on slurm -d jobs
    is_sent() { grep -q event=sent "$BERTH_DIR/daemon.log"; }
    within is_sent
    cluster kill-ctld
    cluster restart-ctld
    # It gives numbers out again that jobs on the node still have, and then takes the node out of service.
    is_over() { scontrol update nodename=n1 state=resume || true; [ "$(berth queue --json | jq '.jobs | length')" = 0 ]; }
    within is_over
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort runs | tr '\n' ' ')" = "1 2 3 4 5 " ]
}

@test "a node that loses power costs only what ran there: LOST, and again where it was asked for" {
    LIMIT=$((LIMIT + 180)) # two minutes of silence are part of it
    start_cluster --nodes 2 --conf SlurmdTimeout=5
    submit -G 0 --requeue -- sh -c 'echo $(hostname) >>runs; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    submit -G 0 -- sh -c 'sleep 1000'
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    cluster kill-node 1
    cluster kill-node 2
    cluster start-node 1
    cluster start-node 2
    run -0 wait_for 1
    [ "$(wc -l <runs)" = 2 ]
    run -1 wait_for 2
    is_state 2 LOST
    [[ $(field 2 .text) == *"Slurm"*"before it could record the end"* ]]
}

@test "a job whose node is set down is LOST, and runs again where it was asked for" {
    start_cluster --nodes 1
    submit -G 0 --requeue -- sh -c 'echo x >>runs; [ $BERTH_ATTEMPT -gt 1 ] || exec sleep 1000'
    submit -G 0 -- sh -c 'sleep 1000'
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    within test -s runs
    scontrol update nodename=n1 state=down reason=test
    run -1 wait_for 2
    is_state 2 LOST
    scontrol update nodename=n1 state=resume || true # it may be in service again already
    run -0 wait_for 1
    [ "$(wc -l <runs)" = 2 ]
}

@test "a job whose node Slurm cannot reach is not LOST while it runs, and can be cancelled" {
    start_cluster --nodes 1 --conf SlurmdTimeout=5
    submit -G 0 --requeue -- sh -c 'echo x >>runs; until [ -e go ]; do sleep 0.1; done; exit 5'
    submit -G 0 -- sleep 1000
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    cluster kill-slurmd 1
    failed() { [ "$(squeue -h -t all -o %T | sort -u)" = NODE_FAIL ]; }
    within failed
    pulse() { cut -d' ' -f1 "$BERTH_DIR/state/jobs/1.1/pulse" 2>/dev/null || echo 0; }
    before=$(pulse)
    more() { [ "$(pulse)" -ge $((before + 3)) ]; }
    within more
    is_state 1 RUNNING
    berth cancel 2
    run -130 wait_for 2
    touch go
    run -5 wait_for 1
    [ "$(wc -l <runs)" = 1 ]
}

# `fake_sbatch SCRIPT`: the daemon's sbatch from now on; in it, $real is Slurm's.
fake_sbatch()
{
    local folder=$PWD/src/slurm/bin # as where a site builds its own
    mkdir -p "$folder"
    ln -s "$(command -v squeue)" "$(command -v scancel)" "$folder/"
    printf '#!/bin/sh\nreal=%s\n%s\n' "$(command -v sbatch)" "$1" >"$folder/sbatch"
    chmod 755 "$folder/sbatch"
    echo "slurm_commands: $folder" >config
    berth daemon start --config config
}

@test "a job that Slurm got later than its answer is seen, though sbatch fails from then on" {
    start_cluster --nodes 1
    # The first call gives no answer, and what it sends comes when there is a file `late`.
    fake_sbatch "cd '$PWD'"'
echo call >>calls
[ $(wc -l <calls) = 1 ] || { echo "sbatch: error: Unable to contact slurm controller" >&2; exit 1; }
cat >script
(until [ -e late ]; do sleep 0.1; done; exec "$real" "$@" <script) >/dev/null 2>&1 &
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1'
    submit -G 0 -- sh -c 'echo x >>runs; exit 5'
    second() { [ "$(wc -l <calls)" -ge 2 ]; }
    within second
    touch late
    run -5 wait_for 1
    [ "$(wc -l <runs)" = 1 ]
}

@test "a job that runs is not refused, though Slurm refuses it when it is sent again" {
    start_cluster --nodes 1
    # The first call gives no answer and sends nothing yet. The second has that come, and is refused once it runs.
    fake_sbatch "cd '$PWD'; mark=$BERTH_DIR/state/jobs/1.1/started"'
echo call >>calls
if [ $(wc -l <calls) = 1 ]; then
    cat >script
    (until [ -e late ]; do sleep 0.1; done; exec "$real" "$@" <script) >/dev/null 2>&1 &
    echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
    exit 1
fi
touch late
until [ -e "$mark" ]; do sleep 0.1; done
echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2
exit 1'
    submit -G 0 -- sh -c 'until [ -e go ]; do sleep 0.1; done; exit 5'
    refused() { grep -q "event=not-sent .*Invalid partition" "$BERTH_DIR/daemon.log"; }
    within refused
    within is_state 1 RUNNING
    touch go
    run -5 wait_for 1
}

@test "the daemon is killed when it has ruled that a job never begins" {
    start_cluster --nodes 1 --gpus 1
    BERTH_CRASH_AT=slurm-mark-taken berth daemon start
    local pid
    pid=$(berth status --json | jq .daemon.pid)
    submit -G 7 -- true || true
    timeout "$LIMIT" tail --pid="$pid" -f /dev/null
    berth daemon start
    run -1 wait_for 1
    is_state 1 INFEASIBLE
    [[ $(field 1 .text) == *"Slurm: Requested node configuration is not available"* ]]
}

@test "a limit on submitted jobs lets as many go as it allows, and is in no other job's way" {
    start_cluster --nodes 1 --gpus 4
    # Slurm's words for a user who may have three jobs, and a job of two GPUs never.
    fake_sbatch "cd '$PWD'"'
n=1
for word; do
    case $word in
    --array=*) n=$(echo "${word#*=}" | tr , "\n" | awk -F- "{ n += NF > 1 ? \$2 - \$1 + 1 : 1 } END { print n }") ;;
    --gres=gpu:2) n=9 ;;
    esac
done
if [ $(($(squeue -h -r | wc -l) + n)) -gt 3 ]; then
    echo "$n" >>refused
    echo "sbatch: error: AssocMaxSubmitJobLimit" >&2
    echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)" >&2
    exit 1
fi
exec "$real" "$@"'
    submit -G 2 -- touch never
    says_so() { berth explain 1 | grep -q "Slurm: sbatch: .*AssocMaxSubmitJobLimit"; }
    within says_so
    for i in 1 2 3 4 5 6 7; do echo "[gpus=0] echo $i >>runs"; done >jobs
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort runs | tr '\n' ' ')" = "1 2 3 4 5 6 7 " ]
    grep -q 7 refused
    says_so
    [ ! -e never ]
}

@test "a daemon leaves at once though a site's sbatch is a script whose child does not end" {
    start_cluster --nodes 1
    fake_sbatch "cd '$PWD'"'
sleep 1000 &
echo $! >child.new
mv child.new child
wait'
    submit -G 0 -- true
    within test -e child
    berth daemon stop
    timeout "$LIMIT" tail --pid="$(cat child)" -f /dev/null
}

@test "a job that squeue never lists is not sent for ever" {
    start_cluster --nodes 1
    echo "slurm_options: --comment=mine --hold" >config
    berth daemon start --config config
    run -1 timeout $LIMIT berth submit --on slurm -W -G 0 -- true
    is_state 1 INFEASIBLE
    [[ $(field 1 .text) == *"squeue does not list it once it was sent"* ]]
    [ "$(squeue -h | wc -l)" = 3 ]
}

@test "an array keeps its numbers, and a running job is requeued" {
    start_cluster --nodes 1
    submit -G 0 --array 3-7%2 -- sh -c 'echo $BERTH_ARRAY_TASK_ID >>runs; exit $((BERTH_ARRAY_TASK_ID == 5))'
    run -1 wait_for 1
    [ "$(sort runs | tr '\n' ' ')" = "3 4 5 6 7 " ]
    submit -G 0 --name again -- sh -c 'echo a$BERTH_ATTEMPT; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    job=$(berth queue --json | jq '.jobs[0].id')
    within is_state "$job" RUNNING
    berth requeue "$job"
    run -0 wait_for "$job"
    [ "$(berth logs "$job" | tr '\n' ' ')" = "a1 a2 " ]
}

@test "signals reach the command on its node, each once, alone and packed" {
    start_cluster --nodes 1
    for pack in "" --pack; do
        rm -f got up
        submit $pack -G 0 --name "s$pack" -- sh -c \
            'trap "echo usr1 >>got" USR1; trap "echo hup >>got; exit 5" HUP; echo >up; while :; do sleep 0.1; done'
        within test -e up
        within is_state @ RUNNING
        berth signal @ USR1
        seen() { [ "$(cat got 2>/dev/null)" = usr1 ]; }
        within seen
        berth signal @ HUP
        run -5 wait_for @
        [ "$(tr '\n' ' ' <got)" = "usr1 hup " ]
        no_folder() { [ -z "$(ls "$BERTH_DIR/state/jobs")" ]; }
        within no_folder
    done
    # One that waits cannot be signalled.
    submit -G 7 -- true
    run berth signal @ USR1
    [ "$status" -ne 0 ]
    [[ $output == *"not "* ]]
}

@test "of jobs that went as one array some are cancelled, and the others keep their place" {
    start_cluster --nodes 1 --gpus 1
    submit --vram 1G -- sh -c 'until [ -e go ]; do sleep 0.1; done'
    within is_state 1 RUNNING
    for i in 2 3 4 5 6 7; do echo "echo $i >>runs"; done >jobs
    timeout $LIMIT berth run -d --on slurm jobs
    waiting() { [ "$(squeue -h -r -t PENDING | wc -l)" = "$1" ]; }
    within waiting 6
    array=$(squeue -h -r -t PENDING -o %F | sort -u)
    berth cancel 3 5-6
    within waiting 3
    run -130 wait_for 3 5-6
    touch go
    run -130 wait_for 1-7
    [ "$(sort runs | tr '\n' ' ')" = "2 4 7 " ]
    [ "$(field 2 '.attempts | map(.slurm_job) | join(" ")')" = "${array}_0" ]
    [ "$(field 7 '.attempts | map(.slurm_job) | join(" ")')" = "${array}_5" ]
}

@test "jobs with many names are not sent one by one" {
    start_cluster --nodes 1
    for i in $(seq 20); do echo "[gpus=0 name=n$i] echo $i >>runs"; done >jobs
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort -n runs | tr '\n' ' ')" = "$(seq -s ' ' 20) " ]
    [ "$(grep -c event=sent "$BERTH_DIR/daemon.log")" = 1 ]
    for i in 1 2; do echo "[gpus=0 name=m$i] true"; done >few
    run -0 timeout $LIMIT berth run --on slurm few
    [ "$(squeue -h -t all -o %j | sort -u | tr '\n' ' ')" = "berth m1 m2 " ]
}

@test "Berth's own sbatch is never taken for Slurm's, and doctor says whether slurmctld answers" {
    start_cluster --nodes 1
    berth compat install "$ROOT/bin" slurm
    PATH=$ROOT/bin:$PATH timeout $LIMIT berth submit --on slurm -W -G 0 -- true
    [ "$(field 1 '.attempts[0].slurm_node')" = n1 ]
    berth doctor >doctor || true
    grep 'slurm  *slurmctld answers' doctor
    cluster kill-ctld
    berth doctor >doctor || true
    grep 'warn  *slurm .*finds no slurmctld' doctor
    submit -G 0 -- true
    says_so() { berth explain 2 | grep -q "Slurm: sbatch: "; }
    within says_so
    cluster restart-ctld
    # It may have forgotten that job 1 has ended, and then takes the node out of service.
    is_over() { scontrol update nodename=n1 state=resume || true; is_state 2 COMPLETED; }
    within is_over
}

@test "the daemon is killed again and again while a file runs" {
    start_cluster --nodes 2
    for i in $(seq 40); do echo "[gpus=0] echo $i >>runs; exit $((i % 4))"; done >jobs
    timeout $LIMIT berth run -d --on slurm jobs
    for i in $(seq 10); do
        kill_daemon
        berth daemon start
        more() { [ "$(berth queue --json | jq '.jobs | length')" -lt $((42 - 2 * i)) ]; }
        within more
    done
    run -3 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort -n runs | tr '\n' ' ')" = "$(seq -s ' ' 40) " ]
    [ "$(berth queue --all --json | jq -r '.jobs[] | select(.exit_status != (.line % 4)) | .id')" = "" ]
}

@test "VRAM is measured on the node, and an OOM retry asks for more than was used" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    # What it prints is set for the batch script. (With a list in --export, Slurm would run a login shell first.)
    printf '#!/bin/sh\necho export LD_LIBRARY_PATH=%s/driver\necho export BERTH_FAKE_NVML=%s/world\n' "$PWD" "$PWD" >prolog
    chmod 755 prolog
    start_cluster --nodes 1 --gpus 1 --conf "TaskProlog=$PWD/prolog"
    mkdir driver live
    cc -shared -fPIC -o driver/libnvidia-ml.so.1 "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    printf 'driver 550.54.14\nlive %s/live\ncard GPU-a 24000 100 0\n' "$PWD" >world
    submit --vram 2G --oom-retries 1 -- sh -c \
        'echo 5000 >live/0.$$; until [ -e go ]; do sleep 0.1; done; [ $BERTH_ATTEMPT -gt 1 ] || { echo CUDA out of memory; exit 1; }'
    seen() { grep -q " 5000$" "$BERTH_DIR/state/jobs/1.1/pulse"; }
    within seen
    touch go
    run -0 wait_for 1
    [ "$(field 1 '.attempts[0].peak_mib.max')" = 5000 ]
    [ "$(field 1 .vram_mib)" = 6250 ]
    [[ $(berth show 1) == *"peak 4.9 GiB"* ]]
}
