#!/usr/bin/env bats
# The daemon and slurmctld are killed while jobs are on Slurm: each command runs exactly once.

bats_require_minimum_version 1.5.0
load lib
load berth

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
    # It reuses numbers of jobs that are still on the node, and then takes the node out of
    # service.
    is_over() { scontrol update nodename=n1 state=resume || true; [ "$(berth queue --json | jq '.jobs | length')" = 0 ]; }
    within is_over
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort runs | tr '\n' ' ')" = "1 2 3 4 5 " ]
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
