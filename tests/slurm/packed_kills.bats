#!/usr/bin/env bats
# The daemon, slurmctld, nodes and allocations end while packed jobs run: nothing is lost, and nothing runs twice.

bats_require_minimum_version 1.5.0
load lib
load berth
load packed

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

@test "the daemon is killed while it gives back an allocation that waits in Slurm: the next one does, and nothing is lost" {
    start_cluster --nodes 1 --gpus 1
    printf '%s\n' "slurm_gpu_mib: 24000" "slurm_allocation_idle_s: 1" >config
    n_wait() { [ "$(squeue -h -t PENDING -n berth-pack | wc -l)" = "$1" ]; }
    for at in slurm-allocation-unwanted slurm-allocation-stop-asked; do
        blocker=$(sbatch --parsable --exclusive -N 1 --gres=gpu:1 -o /dev/null --wrap 'sleep 1000')
        within job_is "$blocker" RUNNING
        BERTH_CRASH_AT=$at berth daemon start --config config
        for i in 1 2 3 4; do echo "[vram=20G] echo $at $i >>runs"; done >jobs
        timeout $LIMIT berth run --on slurm --pack -d --fresh jobs
        within n_wait 4
        last=$(berth queue --json | jq '.jobs[-1].id')
        pid=$(berth status --json | jq .daemon.pid)
        berth cancel $((last - 2))-$last || true
        timeout "$LIMIT" tail --pid="$pid" -f /dev/null
        berth daemon start --config config
        within n_wait 1
        scancel "$blocker"
        run -0 wait_for $((last - 3))
        [ "$(grep -c "$at" runs)" = 1 ]
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
    start_cluster --nodes 2 --gpus 1 --conf SlurmdTimeout=5
    settings "slurm_allocations: 2"
    # Each takes a whole GPU, and so a node; those after them wait.
    submit --requeue -- sh -c 'echo 1 on $(hostname) >>runs; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    within is_state 1 RUNNING
    within test -s runs
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
    both_ran() { [ "$(wc -l <runs)" = 2 ]; }
    within both_ran
    scancel "$(field 1 '.attempts[0].slurm_job')"
    run -0 wait_for 1 2
    [ "$(sort runs | tr '\n' ' ')" = "x x y y " ]
    [ "$(field 1 '.attempts[0].outcome')" = requeued ]
    [[ $(field 1 '.attempts[0].text') == "stopped to run again"*": its allocation was ended by Slurm"* ]]
    [ "$(field 1 '.attempts | map(.slurm_job) | join(" ")')" = "1 2" ]
}

@test "what a supervisor leaves that is killed has ended before another job gets its room" {
    start_cluster --nodes 1 --gpus 1
    settings
    submit --vram 20G -- sh -c 'setsid sleep 1000 & echo $! >left; kill -KILL $PPID; sleep 1000'
    submit --vram 20G -- sh -c 'if kill -0 $(cat left); then echo beside it; else echo alone; fi >>runs'
    run -0 wait_for 2
    [ "$(cat runs)" = alone ]
    within is_state 1 LOST
    [ "$(field 2 '.attempts | map(.slurm_job) | join(" ")')" = 1 ]
    check_promises
}
