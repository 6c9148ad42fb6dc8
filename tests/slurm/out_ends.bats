#!/usr/bin/env bats
# How jobs on Slurm end that are ended by Slurm, a user or a node: CANCELLED, LOST, or not at
# all.

bats_require_minimum_version 1.5.0
load lib
load berth

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

@test "an attempt whose folder was removed is LOST, and is not sent for ever" {
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

@test "a node that loses power costs only what ran there: LOST, and again where it was asked for" {
    start_cluster --nodes 2 --conf SlurmdTimeout=5 --conf BatchStartTimeout=1 --conf MessageTimeout=2
    submit -G 0 --requeue -- sh -c 'echo $(hostname) >>runs; [ $BERTH_ATTEMPT -gt 1 ] || sleep 1000'
    submit -G 0 -- sh -c 'sleep 1000'
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    within test -s runs
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
    scontrol update nodename=n1 state=resume || true # it may already be back in service
    run -0 wait_for 1
    [ "$(wc -l <runs)" = 2 ]
}

@test "a job whose node Slurm cannot reach is not LOST while it runs, and can be cancelled" {
    start_cluster --nodes 1 --conf SlurmdTimeout=30
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

@test "a command that ends by TERM is LOST where its supervisor got one too, whichever was first, and else FAILED" {
    start_cluster --nodes 1
    # As Slurm ends a job that it has forgotten: each process of it, one after the other.
    submit -G 0 -- sh -c '(kill -STOP $PPID; kill -TERM $$; kill -TERM $PPID; kill -CONT $PPID) & wait'
    run -1 wait_for 1
    is_state 1 LOST
    [[ $(field 1 .text) == *"ended"*"on its node"* ]]
    submit -G 0 -- sh -c 'kill -TERM $$'
    run -143 wait_for 2
    is_state 2 FAILED
}
