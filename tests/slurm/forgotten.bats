#!/usr/bin/env bats
# Jobs that slurmctld or a node has lost track of, and that nobody asked to end, are LOST:
# never cancelled, and never run twice.

bats_require_minimum_version 1.5.0
load lib
load berth

# `is_saved JOB`: slurmctld has it on its disk, and has not started it.
is_saved()
{
    local id key
    id=$(field "$1" '.attempts[0].slurm_job // empty')
    key=$(sed -n "s/.*event=sent key=\([0-9a-f]*\) slurm_job=$id .*/\1/p" "$BERTH_DIR/daemon.log")
    [ -n "$id" ] && [ -n "$key" ] && grep -qaF "$key" "$ROOT/c/state/job_state"
}

# slurmctld is killed before it saved that it started a job, and starts it once more on another
# node: that attempt exits, because the mark exists. Then the first node, when it reports its
# jobs, is told that the job is over.
@test "a job that slurmctld has started twice, and whose node then ends it, is LOST and not cancelled" {
    start_cluster --nodes 2 --gpus 1 --conf SlurmdTimeout=60
    echo '[name=a] until [ -e go1 ]; do sleep 0.1; done' >jobs
    echo '[name=b] until [ -e go2 ]; do sleep 0.1; done' >>jobs
    echo '[name=c] echo x >>runs; sleep 1000' >>jobs
    timeout $LIMIT berth run -d --on slurm jobs
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    within is_saved 3
    cp -a "$ROOT/c/state" saved
    touch go1
    within is_state 3 RUNNING
    within test -s runs
    local node
    node=$(field 3 '.attempts[0].slurm_node')
    cluster kill-ctld
    cluster kill-slurmd "${node#n}"
    rm -r "$ROOT/c/state"
    cp -a saved "$ROOT/c/state"
    cluster restart-ctld
    touch go2
    started_again() { squeue -h -t FAILED -o '%k' | grep -q berth:; }
    within started_again
    is_state 3 RUNNING
    [ "$(field 3 '.attempts[0].slurm_node')" = "$node" ]
    # A job that ended less than MessageTimeout ago is not examined.
    is_over() { cluster restart-slurmd "${node#n}" && ! is_state 3 RUNNING; }
    within is_over
    run -1 wait_for 3
    is_state 3 LOST
    [[ $(field 3 .text) == *"ended on its node, and Slurm (FAILED) does not say why" ]]
    # The file, run once more, has nothing to run.
    run -1 timeout $LIMIT berth run --on slurm jobs
    [ "$(wc -l <runs)" = 1 ]
}

@test "a job that its node has lost, and that Slurm goes on calling RUNNING, is LOST in the end" {
    start_cluster --nodes 1 --conf SlurmdTimeout=3000 --conf BatchStartTimeout=3000
    submit -G 0 -- sleep 1000
    within is_state 1 RUNNING
    submit -G 0 --requeue -- sh -c 'echo x >>runs; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    within test -s runs
    within is_state 2 RUNNING
    cluster kill-node 1
    cluster start-node 1
    [ "$(squeue -h -t RUNNING | wc -l)" = 2 ]
    run -1 wait_for 1
    is_state 1 LOST
    [[ $(field 1 .text) == *"nothing was heard of it any more on n1" ]]
    run -0 wait_for 2
    [ "$(wc -l <runs)" = 2 ]
}
