#!/usr/bin/env bats
# Jobs with --on slurm --pack on a real cluster: allocations of whole GPUs that jobs share by VRAM. The words and codes of
# jobs at home, each command exactly once, and no GPU promised more than it has, whoever is killed.

bats_require_minimum_version 1.5.0
load lib
load berth

submit() { timeout "$LIMIT" berth submit --on slurm --pack "$@"; }
run_file() { timeout "$LIMIT" berth run --on slurm --pack "$@"; }
# `settings LINE...`: a daemon with these, on GPUs of 24,000 MiB.
settings()
{
    printf '%s\n' "slurm_gpu_mib: 24000" "$@" >config
    berth daemon start --config config
}
none_left() { [ -z "$(squeue -h)" ]; }
n_allocations() { squeue -h -n berth-pack | wc -l; }

# What allocations have written of what began and ended on their GPUs: at no moment is more promised of one than it has.
# Prints how many began.
check_promises()
{
    awk '
        $2 == "here" { for (i = 4; i <= NF; i++) size[FILENAME, i - 4] = $i }
        $2 == "began" {
            n = split($4, gpus, ",")
            began++
            cards[$3] = $4
            vram[$3] = $5
            for (i = 1; i <= n; i++) {
                at = FILENAME SUBSEP gpus[i]
                used[at] += $5 > 0 ? $5 : $4 == "-" ? 0 : size[at]
                if (gpus[i] != "-" && used[at] > size[at]) { print "more than it has: " FILENAME ": " $0; exit 1 }
            }
        }
        $2 == "ended" && $3 in cards {
            n = split(cards[$3], gpus, ",")
            for (i = 1; i <= n; i++) {
                at = FILENAME SUBSEP gpus[i]
                used[at] -= vram[$3] > 0 ? vram[$3] : cards[$3] == "-" ? 0 : size[at]
            }
        }
        END { print began }
    ' $(find "$BERTH_DIR/state/allocations" "$BERTH_DIR/logs" -name events -o -name 'allocation-*.log')
}

@test "a packed job runs in an allocation, with one GPU of it and the words and codes of a job at home" {
    start_cluster --nodes 1 --gpus 4
    settings "slurm_allocation_gpus: 4"
    run -0 submit --dry-run --vram 4G -- true
    [[ $output == *"on            slurm, packed"*"allocation    "*"--gres=gpu:4"*"would be sent to Slurm now" ]]
    run -3 submit -W --vram 4G -- sh -c 'echo on $(hostname) with $CUDA_VISIBLE_DEVICES in $PWD; exit 3'
    run -0 berth logs 1
    [ "$output" = "on n1 with 0 in $ROOT/w" ]
    [ "$(field 1 '[.state, .exit_status, .text, .on, .pack] | join(" ")')" = "FAILED 3 exit 3 slurm true" ]
    [ "$(field 1 '.attempts[0] | [.slurm_job, .slurm_node] | join(" ")')" = "1 n1" ]
    run -0 berth show 1
    [[ $output == *"1 GPU, 4.0 GiB of VRAM, packed, on Slurm"* ]]
    [[ $output == *"attempt 1   Slurm's job 1 on n1, started"* ]]
    # The next ones find the allocation there.
    run -124 submit -W --vram 4G -t 1s --grace 1s -- sleep 1000
    [ "$(field 2 .text)" = "time limit of 1.0s reached" ]
    run -0 submit -W -G 2 -- sh -c 'echo $CUDA_VISIBLE_DEVICES'
    [ "$(berth logs 3)" = 0,1 ]
    run -0 submit -W -G 0 -- sh -c 'echo none: $CUDA_VISIBLE_DEVICES'
    [ "$(berth logs 4)" = "none:" ]
    [ "$(n_allocations)" = 1 ]
    run ls "$BERTH_DIR/state/jobs"
    [ -z "$output" ]
    [ "$(check_promises)" = 4 ]
}

@test "jobs share GPUs by VRAM, and no GPU is promised more than it has" {
    start_cluster --nodes 1 --gpus 2
    settings "slurm_allocation_gpus: 2"
    for i in 1 2 3 4 5; do echo "[vram=9G] echo \$CUDA_VISIBLE_DEVICES >>gpus; until [ -e go ]; do sleep 0.1; done" >>jobs; done
    timeout $LIMIT berth run --on slurm --pack -d jobs
    four() { [ "$(berth queue --json | jq '[.jobs[] | select(.state == "RUNNING")] | length')" = 4 ]; }
    within four
    [ "$(sort gpus | tr '\n' ' ')" = "0 0 1 1 " ]
    berth explain 5 >words
    grep "STARTING: Slurm: it waits for room in 1 allocation" words
    touch go
    run -0 run_file jobs
    [ "$(check_promises)" = 5 ]
}

@test "a file of 40 jobs ends with its codes, OOM retries and dependencies among them, and is resumed" {
    start_cluster --nodes 2 --gpus 2
    settings "slurm_allocation_gpus: 2" "slurm_allocations: 2"
    for i in $(seq 40); do echo "[gpus=$((1 + (i % 10 == 0))) vram=$((1 + i * 7 % 20))G] echo $i >>runs; exit $((i % 4))"; done >jobs
    echo '[vram=4G oom-retries=1 name=oom] echo CUDA out of memory; exit $((BERTH_ATTEMPT == 1))' >>jobs
    echo '[gpus=0 after=oom] echo last >>runs' >>jobs
    echo '[vram=1G after-failed=oom] echo never >>runs' >>jobs
    run -130 run_file jobs
    [[ $output == *"43 jobs: 12 completed, 30 failed, 1 cancelled."* ]]
    [ "$(grep -v last runs | sort -n | tr '\n' ' ')" = "$(seq -s ' ' 40) " ]
    [ "$(berth queue --all --json | jq -r '.jobs[] | select(.line <= 40 and .exit_status != (.line % 4)) | .id')" = "" ]
    run -130 run_file jobs
    [ "$(wc -l <runs)" = 41 ]
    [ "$(check_promises)" = 43 ]
}

@test "allocations grow with the backlog, within their bound, and are given back when there is nothing to do" {
    start_cluster --nodes 2 --gpus 2
    settings "slurm_allocations: 3" "slurm_allocation_idle_s: 1"
    for i in 1 2 3 4 5 6; do echo "[gpus=1] until [ -e go ]; do sleep 0.1; done"; done >jobs
    timeout $LIMIT berth run --on slurm --pack -d jobs
    three() { [ "$(berth queue --json | jq '[.jobs[] | select(.state == "RUNNING")] | length')" = 3 ]; }
    within three
    [ "$(n_allocations)" = 3 ]
    touch go
    run -0 run_file jobs
    within none_left
    # One that Slurm has not started is not waited for.
    sbatch -N 2 --gres=gpu:2 -o /dev/null --wrap 'sleep 1000'
    pending() { [ "$(squeue -h -n berth-pack -o %T)" = PENDING ]; }
    rm go
    submit -G 1 -- true
    within pending
    says_why() { berth explain 7 | grep -q "STARTING: Slurm: .*(an allocation, Slurm's job "; }
    within says_why
    berth cancel 7
    run -130 wait_for 7
    no_pack() { [ "$(n_allocations)" = 0 ]; }
    within no_pack
}

@test "jobs fit into the time of their allocations, and what does not end in one goes on in the next" {
    start_cluster --nodes 1 --gpus 2
    settings "slurm_allocation_s: 30" "slurm_allocation_idle_s: 1"
    # The second begins when the allocation has been there for a while, also on a busy machine, is cut off, and
    # ends in the next. The third's limit is longer than an allocation: it gets one that is longer.
    submit --vram 1G --name first -- sleep 5
    submit --vram 1G --grace 1s --after first -- sh -c 'echo $BERTH_ATTEMPT >>runs; [ $BERTH_ATTEMPT = 2 ] || sleep 1000'
    submit --vram 1G -t 1h -- true
    run -0 wait_for 1-3
    [ "$(tr '\n' ' ' <runs)" = "1 2 " ]
    [ "$(field 2 '.attempts[0] | [.outcome, .text] | join(": ")')" = "requeued: stopped to run again: the time of its allocation is over" ]
    [ "$(field 3 '.attempts | length')" = 1 ]
    [ "$(field 3 '.attempts[0].slurm_job')" != "$(field 1 '.attempts[0].slurm_job')" ]
    # One that takes all of an allocation's time would never end. The third's longer one has gone before.
    within none_left
    run -124 submit -W --vram 1G --grace 1s -- sleep 1000
    [[ $(field 4 .text) == "time limit reached: it did not end in the time of an allocation (slurm_allocation_s)"* ]]
}

@test "packed jobs are cancelled and requeued, before they begin and while they run" {
    start_cluster --nodes 1 --gpus 1
    settings
    submit -- sh -c 'trap "echo ended; exit 9" TERM; echo begun; sleep 1000 & wait'
    within is_state 1 RUNNING
    submit -- touch never
    waits() { berth explain 2 | grep -q "STARTING: Slurm: it waits for room in 1 allocation"; }
    within waits
    berth cancel 2
    run -130 wait_for 2
    [ "$(field 2 .text)" = "cancelled by root" ]
    berth cancel 1
    run -130 wait_for 1
    [ "$(berth logs 1 | tr '\n' ' ')" = "begun ended " ]
    [ ! -e never ]
    [ "$(field 1 .text)" = "cancelled by root" ]
    submit --name again --vram 1G -- sh -c 'echo a$BERTH_ATTEMPT; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    within is_state 3 RUNNING
    berth requeue 3
    run -0 wait_for 3
    [ "$(berth logs 3 | tr '\n' ' ')" = "a1 a2 " ]
    # Another one was asked for when the second job had waited for long.
    one_is_left() { [ "$(n_allocations)" = 1 ]; }
    within one_is_left
}

@test "what no allocation can have is said, and nothing else waits for it" {
    start_cluster --nodes 1 --gpus 2
    settings "slurm_allocation_idle_s: 1"
    submit --vram 30G -- true
    submit -G 7 -- true
    submit --vram 4G -- true
    run -0 wait_for 3
    run -1 wait_for 1
    is_state 1 INFEASIBLE
    [[ $(field 1 .text) == *"it needs 30720 + 512 MiB margin of VRAM, and the GPUs of allocations have 24000"* ]]
    run -1 wait_for 2
    is_state 2 INFEASIBLE
    [[ $(field 2 .text) == *"Slurm: Requested node configuration is not available"* ]]
    # With its margin it is too large; a grace that is longer than an allocation's makes that longer.
    submit --vram 23900M -- true
    run -1 wait_for 4
    [[ $(field 4 .text) == *"it needs 23900 + 512 MiB margin of VRAM"* ]]
    submit --vram 4G -t 4h --grace 5m -- true
    run -0 wait_for 5
}

@test "the daemon is killed around the making of an allocation and of ends: nothing is lost or runs twice" {
    start_cluster --nodes 1
    for at in slurm-allocation-made slurm-before-sbatch slurm-sbatch-started slurm-sbatch-answered slurm-before-record-taken; do
        printf '%s\n' "slurm_gpu_mib: 24000" "slurm_allocation_idle_s: 1" >config
        BERTH_CRASH_AT=$at berth daemon start --config config
        submit --vram 1G -- sh -c "echo $at >>runs; exit 9" || true
        ended() { berth daemon start --config config >/dev/null 2>&1 || true; run wait_for @; [ "$status" = 9 ]; }
        within ended
        [ "$(grep -c $at runs)" = 1 ]
        within none_left
        berth daemon stop
    done
}

@test "the daemon is killed again and again while a packed file runs" {
    start_cluster --nodes 2
    settings "slurm_allocation_gpus: 2"
    for i in $(seq 40); do echo "[vram=$((2 + i % 9))G] echo $i >>runs; sleep 0.5; exit $((i % 4))"; done >jobs
    timeout $LIMIT berth run -d --on slurm --pack jobs
    for i in $(seq 8); do
        kill_daemon
        berth daemon start --config config
        more() { [ "$(berth queue --json | jq '.jobs | length')" -lt $((42 - 2 * i)) ]; }
        within more
    done
    run -3 run_file jobs
    [ "$(sort -n runs | tr '\n' ' ')" = "$(seq -s ' ' 40) " ]
    [ "$(berth queue --all --json | jq -r '.jobs[] | select(.exit_status != (.line % 4)) | .id')" = "" ]
    check_promises
}

@test "slurmctld is killed right after it took allocations, and forgets them: each job runs once" {
    start_cluster --nodes 2 --gpus 2
    settings "slurm_allocations: 2"
    for i in $(seq 8); do echo "[gpus=1] echo $i >>runs; sleep 0.2"; done >jobs
    timeout $LIMIT berth run --on slurm --pack -d jobs
    is_sent() { grep -q event=sent "$BERTH_DIR/daemon.log"; }
    within is_sent
    cluster kill-ctld
    cluster restart-ctld
    is_over() { scontrol update nodename=n[1-2] state=resume 2>/dev/null || true; [ "$(berth queue --json | jq '.jobs | length')" = 0 ]; }
    within is_over
    run -0 run_file jobs
    [ "$(sort -n runs | tr '\n' ' ')" = "$(seq -s ' ' 8) " ]
}

@test "a node that loses power costs only what ran there: the rest goes on elsewhere" {
    [ -n "${BERTH_E2E_SLOW:-}" ] || skip "two minutes of silence: BERTH_E2E_SLOW=1 runs it"
    LIMIT=$((LIMIT + 180))
    start_cluster --nodes 2 --gpus 1 --conf SlurmdTimeout=5
    settings "slurm_allocations: 2"
    # Each takes a whole GPU, and so a node; those behind them wait.
    submit --requeue -- sh -c 'echo 1 on $(hostname) >>runs; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    within is_state 1 RUNNING
    node=$(field 1 '.attempts[0].slurm_node')
    submit -- sh -c 'echo 2 >>runs; until [ -e go ]; do sleep 0.1; done'
    within is_state 2 RUNNING
    for i in 3 4 5; do submit -- sh -c "echo $i >>runs"; done
    cluster kill-node "${node#n}"
    cluster start-node "${node#n}"
    touch go
    run -0 wait_for 1-5
    [ "$(cut -c1 runs | sort | tr '\n' ' ')" = "1 1 2 3 4 5 " ]
    [ "$(field 1 '.attempts[0].outcome')" = lost ]
    [[ $(field 1 '.attempts[0].text') == "lost: Slurm ended it ("*") before it could record the end" ]]
}

@test "an allocation that is cancelled in Slurm costs nothing: its jobs go on in the next" {
    start_cluster --nodes 1 --gpus 1
    settings
    submit --vram 1G --grace 1s -- sh -c 'echo x >>runs; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    submit --vram 2G --grace 1s -- sh -c 'echo y >>runs; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    scancel "$(field 1 '.attempts[0].slurm_job')"
    run -0 wait_for 1 2
    [ "$(sort runs | tr '\n' ' ')" = "x x y y " ]
    [ "$(field 1 '.attempts[0].outcome')" = requeued ]
    [[ $(field 1 '.attempts[0].text') == "stopped to run again"*": its allocation was ended by Slurm"* ]]
    [ "$(field 1 '.attempts | map(.slurm_job) | join(" ")')" = "1 2" ]
}
