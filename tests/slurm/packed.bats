#!/usr/bin/env bats
# Jobs with --on slurm --pack on a real cluster: allocations of whole GPUs that jobs share by
# VRAM. The same texts and exit codes as for jobs at home, each command exactly once, and no
# GPU overcommitted. Kills: packed_kills.bats.

bats_require_minimum_version 1.5.0
load lib
load berth
load packed

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
    # The next ones use the same allocation.
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
    all_said() { [ "$(wc -l <gpus)" = 4 ]; }
    within all_said
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
    # A job that Slurm has not started is not waited for.
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
    settings "slurm_allocation_s: 45" "slurm_allocation_idle_s: 1"
    # The second begins when a tenth of the allocation's time is over, and before the first has
    # ended: an allocation without jobs is soon given back. It is cut off, and ends in the next.
    # The third's limit is longer than an allocation: it gets a longer one, and comes when no
    # other job could use that.
    submit --vram 1G -- sh -c 'sleep 6; touch late; until [ -e runs ]; do sleep 0.1; done'
    within test -e late
    submit --vram 1G --grace 1s -- sh -c 'echo $BERTH_ATTEMPT >>runs; [ $BERTH_ATTEMPT = 2 ] || sleep 1000'
    run -0 wait_for 1-2
    submit --vram 1G -t 1h -- true
    run -0 wait_for 3
    [ "$(tr '\n' ' ' <runs)" = "1 2 " ]
    [ "$(field 2 '.attempts[0] | [.outcome, .text] | join(": ")')" = "requeued: stopped to run again: the time of its allocation is over" ]
    [ "$(field 3 '.attempts | length')" = 1 ]
    [ "$(field 3 '.attempts[0].slurm_job')" != "$(field 1 '.attempts[0].slurm_job')" ]
    # A job that needs all of an allocation's time would never end. The third's longer one has
    # ended before.
    within none_left
    run -124 submit -W --vram 1G --grace 1s -- sleep 1000
    [[ $(field 4 .text) == "time limit reached: it did not end in the time of an allocation (slurm_allocation_s)"* ]]
}

@test "packed jobs are cancelled and requeued, before they begin and while they run" {
    start_cluster --nodes 1 --gpus 1
    settings
    submit -- sh -c 'trap "echo ended; exit 9" TERM; echo begun; sleep 1000 & wait'
    within is_state 1 RUNNING
    within has_said 1 begun
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
    within has_said 3 a1
    berth requeue 3
    run -0 wait_for 3
    [ "$(berth logs 3 | tr '\n' ' ')" = "a1 a2 " ]
    # Another one was requested when the second job had waited for long. On a busy machine both
    # may have ended.
    no_more_than_one() { [ "$(n_allocations)" -le 1 ]; }
    within no_more_than_one
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
    # With its margin it is too large; a grace period longer than an allocation's extends the
    # allocation.
    submit --vram 23900M -- true
    run -1 wait_for 4
    [[ $(field 4 .text) == *"it needs 23900 + 512 MiB margin of VRAM"* ]]
    submit --vram 4G -t 4h --grace 5m -- true
    run -0 wait_for 5
}

@test "a few allocations are asked for at once, before the first of them has begun" {
    start_cluster --nodes 1 --gpus 1
    settings
    # Slurm has no room for any of them.
    sbatch --exclusive -N 1 --gres=gpu:1 -o /dev/null --wrap 'sleep 1000'
    within job_is 1 RUNNING
    for i in $(seq 12); do echo "[vram=20G] echo $i >>runs"; done >jobs
    timeout $LIMIT berth run --on slurm --pack -d jobs
    four_wait() { [ "$(squeue -h -t PENDING -n berth-pack | wc -l)" = 4 ]; }
    within four_wait
    scancel 1
    run -0 run_file jobs
    [ "$(sort -n runs | tr '\n' ' ')" = "$(seq -s ' ' 12) " ]
    [ "$(check_promises)" = 12 ]
}

@test "allocations that wait in Slurm are given back as soon as what may run needs fewer" {
    start_cluster --nodes 1 --gpus 1
    settings "slurm_allocation_idle_s: 1"
    sbatch --exclusive -N 1 --gres=gpu:1 -o /dev/null --wrap 'sleep 1000'
    within job_is 1 RUNNING
    for i in $(seq 12); do echo "[vram=20G] echo $i >>runs"; done >jobs
    timeout $LIMIT berth run --on slurm --pack -d jobs
    n_wait() { [ "$(squeue -h -t PENDING -n berth-pack | wc -l)" = "$1" ]; }
    within n_wait 4
    berth cancel 3-12
    within n_wait 2
    # A job that waits for something else needs no allocation.
    submit --hold --name held --vram 20G -- sh -c 'echo held >>runs'
    submit --after held --vram 20G -- sh -c 'echo after >>runs'
    submit --begin now+1h --vram 20G -- sh -c 'echo later >>runs'
    berth cancel 2
    within n_wait 1
    # A job that needs another kind of allocation keeps that one, and no more of the others
    # than before.
    submit --vram 1G -t 9h -- sh -c 'echo long >>runs'
    within n_wait 2
    berth cancel 1
    within n_wait 1
    scancel 1
    run -0 wait_for 16
    berth release name:held
    run -0 wait_for 13 14
    [ "$(tr '\n' ' ' <runs)" = "long held after " ]
}

@test "an allocation that is asked for because all have no room is one that a job that waits can use" {
    start_cluster --nodes 1 --gpus 1
    settings "slurm_allocation_s: 30" "slurm_allocation_idle_s: 1"
    submit -G 1 -t 1h -- sh -c 'until [ -e go ]; do sleep 0.1; done'
    within is_state 1 RUNNING
    submit -G 1 -t 1h -- true
    pending() { [ "$(squeue -h -n berth-pack -t PENDING -o %T)" = PENDING ]; }
    within pending
    [ "$(squeue -h -n berth-pack -t PENDING -o %l)" = "$(squeue -h -n berth-pack -t RUNNING -o %l)" ]
    touch go
    run -0 wait_for 1-2
}
