#!/usr/bin/env bats
# The test cluster itself: it runs real jobs, and survives what tests do to it.

load lib

@test "jobs of root and of users run on both nodes, with GPUs that nobody else has" {
    start_cluster --nodes 2 --gpus 4
    # shellcheck disable=SC2016
    timeout $LIMIT srun -N2 --gres=gpu:3 bash -c 'echo $(hostname) $(id -un) $CUDA_VISIBLE_DEVICES' >out
    [ "$(sort out)" = "$(printf 'n1 root 0,1,2\nn2 root 0,1,2')" ]
    # shellcheck disable=SC2016
    timeout $LIMIT runuser -u nobody -- sbatch -W -o /dev/null --gres=gpu:3 --wrap '[ "$(id -un)" = nobody ]'
    run timeout $LIMIT srun --gres=gpu:5 true
    [ "$status" -eq 1 ]
    [[ $output == *"configuration is not available"* ]]
    # No two of four jobs of two GPUs have the same ones, on the four of each node.
    timeout $LIMIT sbatch -W -a 1-4 -o 'r%a' --gres=gpu:2 --wrap \
        'echo $(hostname) $CUDA_VISIBLE_DEVICES; until [ "$(cat r? | wc -l)" = 4 ]; do sleep 0.1; done'
    [ "$(cat r? | sort)" = "$(printf 'n1 0,1\nn1 2,3\nn2 0,1\nn2 2,3')" ]
}

@test "shards of a job come from one GPU" {
    start_cluster --nodes 1 --gpus 2 --shards 8
    # shellcheck disable=SC2016
    [ "$(timeout $LIMIT srun --gres=shard:3 bash -c 'echo $SLURM_SHARDS_ON_NODE $CUDA_VISIBLE_DEVICES')" = '3 0' ]
}

@test "a job outlives slurmctld and slurmd" {
    start_cluster --nodes 1
    mkfifo gate
    job=$(sbatch --parsable -o out --wrap "echo begun >begun; read -r x <$ROOT/gate; echo \$x; exit 7")
    within test -s begun
    # slurmctld forgets a start that it had not saved when it is killed. A change makes it save
    # everything again.
    touch before
    scontrol update jobid="$job" comment=begun
    is_saved() { [ c/state/job_state -nt before ]; }
    within is_saved
    cluster kill-ctld
    run squeue
    [ "$status" -ne 0 ]
    cluster kill-slurmd 1
    cluster restart-ctld
    cluster restart-slurmd 1
    timeout $LIMIT bash -c 'echo on >gate'
    within job_is "$job" FAILED
    scontrol show job "$job" | grep ExitCode=7:0
    [ "$(cat out)" = on ]
}

@test "a node that loses power takes its job's processes with it, and comes back" {
    start_cluster --nodes 2
    # A name that no process of another test has.
    cp "$(command -v sleep)" asleep
    sbatch -w n2 --no-requeue -o /dev/null --wrap "exec '$ROOT/asleep' 10101"
    within pgrep -f "^$ROOT/asleep 10101$"
    cluster kill-node 2
    run pgrep -f "^$ROOT/asleep 10101$"
    [ "$status" -eq 1 ]
    cluster start-node 2
    [ "$(timeout $LIMIT srun -w n2 hostname)" = n2 ]
}

@test "with --accounting, sacct finds a job and accounts can be made" {
    start_cluster --nodes 1 --accounting
    sacctmgr -i add account lab >/dev/null
    sacctmgr -i add user nobody account=lab >/dev/null
    job=$(timeout $LIMIT runuser -u nobody -- sbatch --parsable -W -A lab -o /dev/null --gres=gpu:1 --wrap 'exit 3') || true
    [ -n "$job" ]
    is_recorded() { [ "$(sacct -n -X -P -j "$job" -o account,state,exitcode)" = 'lab|FAILED|3:0' ]; }
    within is_recorded
}

@test "nothing is left of a cluster that has ended" {
    start_cluster --nodes 2
    # By its number, because the name may then belong to another cluster.
    link=$(cat "/sys/class/net/$(cat c/run/link)/ifindex")
    is_linked() { ip -o link | grep -q "^$link:"; }
    none_of() { ! "$@" >/dev/null; }
    is_linked
    cluster stop
    # The kernel may not be done yet.
    within none_of pgrep -f "$ROOT/c/"
    within none_of is_linked
    within none_of grep "$ROOT" /proc/mounts
    cluster stop
}

@test "without root it says why not" {
    # Other users may not be able to reach the checkout.
    run runuser -u nobody -- bash -s "$ROOT/x" start <"$BATS_TEST_DIRNAME/cluster"
    [ "$status" -eq 77 ]
    [ "$output" = "only root can make the namespaces of a Slurm cluster" ]
}
