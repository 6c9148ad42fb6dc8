#!/usr/bin/env bats
# Berth's sbatch, squeue and others beside a real Slurm's: driver.sh runs on both, and its
# observations must be equal.

load lib

case_setup()
{
    export BERTH_DIR=$ROOT/i BERTH_LOCK_DIR=$ROOT/locks TMPDIR=$ROOT/tmp SQUEUE_FORMAT='' LC_ALL=C.UTF-8
    unset SQUEUE_FORMAT
    mkdir "$BERTH_LOCK_DIR" "$TMPDIR"
    berth compat install "$ROOT/bin" slurm >/dev/null
}

case_teardown()
{
    timeout "$LIMIT" berth daemon stop --cancel >/dev/null 2>&1 || true
}

# Berth imitates the commands of 22.05; later ones print some columns and their JSON
# differently.
needs_22_05()
{
    local version
    # sbatch of later releases prints its own only once it has found a cluster.
    version=$(slurmctld -V) || return 0 # start_cluster says what is missing
    [[ $version == slurm-wlm\ 22.05.* ]] || skip "the Slurm here is another release: $version"
}

# Compare driver.sh's output on the cluster and on Berth with as many GPUs, without the lines
# that Slurm's srun prints when it has to wait, e.g. for a node that is not idle again yet, or
# a step that has just ended.
compare()
{
    timeout $LIMIT "$BATS_TEST_DIRNAME/driver.sh" "$1" 2>&1 |
        sed -zE -e 's/srun: job [0-9]+ (queued and waiting for|has been allocated) resources\n//g' \
            -e 's/srun: Job [0-9]+ step creation temporarily disabled, retrying \([^)]*\)\n//g' \
            -e 's/srun: Step created for job [0-9]+\n//g' >slurm.out
    berth daemon start --sim 2 >/dev/null
    PATH=$ROOT/bin:$PATH timeout $LIMIT env -u SLURM_CONF "$BATS_TEST_DIRNAME/driver.sh" "$1" >berth.out 2>&1
    diff -u slurm.out berth.out
}

@test "scripts are submitted, held, chained and listed alike" {
    needs_22_05
    start_cluster --nodes 1 --gpus 2
    compare submit
}

@test "mistakes have the same words and statuses" {
    start_cluster --nodes 1 --gpus 2
    compare mistakes
}

@test "sbatch --wait, srun and salloc end with the same statuses" {
    start_cluster --nodes 1 --gpus 2
    compare waits
}

@test "a job's record has the same keys in the same order" {
    needs_22_05
    start_cluster --nodes 1 --gpus 2
    compare record
}

@test "sacct has the same states, exit codes and columns" {
    start_cluster --nodes 1 --gpus 2 --accounting
    compare accounts
}

@test "squeue has the same commands and columns" {
    needs_22_05
    start_cluster --nodes 1 --gpus 2
    compare commands
}

@test "--export lets the same variables through to jobs and steps" {
    needs_22_05
    start_cluster --nodes 1 --gpus 2
    compare exports
}
