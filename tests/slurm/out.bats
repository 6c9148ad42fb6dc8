#!/usr/bin/env bats
# Jobs with --on slurm on a real cluster: the same texts and exit codes as for jobs at home.
# Ends: out_ends.bats; kills meanwhile: out_kills.bats; sbatch's answers: out_sending.bats.

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
    within has_said 1 begun
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

@test "an array keeps its numbers, and a running job is requeued" {
    start_cluster --nodes 1
    submit -G 0 --array 3-7%2 -- sh -c 'echo $BERTH_ARRAY_TASK_ID >>runs; exit $((BERTH_ARRAY_TASK_ID == 5))'
    run -1 wait_for 1
    [ "$(sort runs | tr '\n' ' ')" = "3 4 5 6 7 " ]
    submit -G 0 --name again -- sh -c 'echo a$BERTH_ATTEMPT; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    job=$(berth queue --json | jq '.jobs[0].id')
    within is_state "$job" RUNNING
    within has_said "$job" a1
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
    # A pending job cannot be signalled.
    submit -G 3 -- sleep 1000
    within is_state @ RUNNING
    submit -G 4 -- true
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

@test "VRAM is measured on the node, and an OOM retry asks for more than was used" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    # Its output is set for the batch script. (With a list in --export, Slurm would run a login
    # shell first.)
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
