#!/bin/bash
# What a script in Slurm's style does, and what it sees: run by dropins.bats on real Slurm and on
# Berth. What it prints must be the same but for names, times and priorities, which it leaves out.
# It polls, as such scripts do. Usage: driver.sh CASE
cd "$(mktemp -d -p "${TMPDIR:-/tmp}")" || exit 1

# Runs a command and prints what it printed and its status.
try()
{
    echo "\$ $*" | sed "s|$me|USER|g"
    "$@" 2>&1 | same
    echo "status ${PIPESTATUS[0]}"
}

# Without what differs between two systems or two runs.
same()
{
    sed -E -e "s/\b($node)\b/NODE/g" -e "s/ +\b(main|berth)\b/ PART/g" -e 's/=(main|berth)\b/=PART/g' -e 's/\|(main|berth)\b/|PART/g' -e "s|$PWD|DIR|g" \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}/TIME/g' -e 's/\b0:0[0-9]\b/0:0S/g' -e 's/\b00:00:0[0-9]\b/00:00:0S/g' \
        -e 's/  +/ /g'
}

# Waits until squeue no longer shows any of these.
gone()
{
    while squeue -h -o %i -j "$1" 2>/dev/null | grep -q .; do sleep 0.3; done
}

# Waits until the job is in that state.
until_state()
{
    until [ "$(squeue -h -t all -j "$1" -o %T 2>/dev/null)" = "$2" ]; do sleep 0.3; done
}

me=$(id -un)
node=$(sinfo -h -o %n | head -1)

submit()
{
    printf '#!/bin/bash\n#SBATCH --job-name=from_script -t 5\necho "$# $1 $SLURM_JOB_NAME $SLURM_JOB_NUM_NODES $SLURM_CPUS_ON_NODE"; exit 3\n' >job.sh
    try sbatch job.sh 'two words' more
    try sbatch --parsable --hold -J held job.sh
    try sbatch --wrap true --dependency=afterany:2 -J after
    try sbatch --array=1-3%1 -J tasks --hold --gres=gpu:1 --wrap 'exit $SLURM_ARRAY_TASK_ID'
    gone 1
    same <slurm-1.out
    try squeue -S i
    try squeue -h -S i -o '%i|%A|%F|%K|%j|%t|%T|%r|%l|%D|%C|%b|%u|%y|%E|%S|%e'
    try squeue -h -S i -O jobid:8,name:.12,state,timelimit,tres-per-node
    try squeue -h -r -j 4 -o '%i %K %T'
    try scontrol release 4
    gone 4
    scontrol release 2
    gone 2
    gone 3
}

mistakes()
{
    try sbatch missing.sh
    echo 'echo hi' >plain.sh
    try sbatch plain.sh
    : >empty.sh
    try sbatch empty.sh
    try sbatch --nonsense --wrap true
    try sbatch --wrap true plain.sh
    try squeue -j 4711
    try squeue -j abc
    try squeue --nonsense
    try sh -c 'squeue extra 2>&1 | head -n 1' # the usage behind it differs
    # With a job in the queue that none of these means.
    try sbatch --hold -J here --wrap true
    # Berth has one partition, and takes any name for it.
    squeue -h -p "$(sinfo -h -o %R | head -n 1)" -o '%j %T'
    try squeue -n nobody -h
    try squeue -n here -h -o '%j %T'
    try scancel
    try scancel 4711
    try scancel -s USR1 4711
    try scancel -n nosuchname
    try scancel -u nosuchuser
    try scancel abc
    try scancel --nonsense
    try squeue -h -o '%j %T'
    scancel -n here
    gone 1
    try scontrol show job 4711
    try scontrol hold 4711
    try scontrol release 4711
    try scontrol requeue 4711
    try scontrol show node nosuch
    try scontrol show partition nosuch
    try scontrol nonsense
    try scontrol show hostnames 'n[08-10],m'
    try sinfo -h -o '%a %l %D %t'
    try sinfo --nonsense
}

waits()
{
    try sbatch --wait --wrap 'exit 5'
    try sbatch --wait --wrap 'kill -9 $$'
    try sbatch --wait --parsable --array=1-2 --wrap 'exit $SLURM_ARRAY_TASK_ID'
    # Slurm also says which task failed, and when an allocation ends.
    try sh -c "srun sh -c 'echo \$SLURM_PROCID of \$SLURM_NTASKS; exit 6' 2>/dev/null"
    try sh -c "srun -n 2 sh -c 'exit \$SLURM_PROCID' 2>/dev/null"
    try sh -c "echo typed | srun cat"
    try sh -c "salloc sh -c 'exit 4' 2>/dev/null >/dev/null"
}

# Keys of a record in their order, with the values that must be the same.
record()
{
    sbatch -J shown -t 10 --gres=gpu:1 -o out.log --wrap 'sleep 300' >/dev/null
    until_state 1 RUNNING
    scontrol show job 1 | sed -E -e 's/(Priority|LastSchedEval|SubmitTime|EligibleTime|AccrueTime|StartTime|EndTime|AllocNode:Sid|Command|RunTime|Account|QOS|TRES|Scheduler)=[^ ]*/\1=/g' -e 's/MinMemory(CPU|Node)=[^ ]*/MinMemory=/' | same
    scontrol -o show job 1 | grep -c '^JobId=1 JobName=shown '
    squeue --json -j 1 | python3 -c '
import json, sys
job = [j for j in json.load(sys.stdin)["jobs"] if j["job_id"] == 1][0]
for key in "name job_state state_reason time_limit partition user_name cpus node_count tres_per_node array_job_id exit_code".split():
    print(key, job[key] if key != "partition" else "")'
    scancel 1
    gone 1
    try squeue -h -j 1
}

accounts()
{
    export SBATCH_TIMELIMIT=5
    sbatch -J ok --wrap true
    sbatch -J bad --wrap 'exit 3'
    sbatch -J killed --wrap 'kill -9 $$'
    sbatch -J tasks --array=1-2 --wrap 'exit $((SLURM_ARRAY_TASK_ID - 1))'
    gone 1,2,3,4
    sbatch -J long --wrap 'exec sleep 300' >/dev/null
    job=$(squeue -h -n long -o %i)
    until_state "$job" RUNNING
    scancel "$job"
    gone "$job"
    # What is over reaches accounting a moment later.
    until [ "$(sacct -nX -n -o state | grep -vcE 'RUNNING|PENDING|COMPLETING')" = 6 ]; do sleep 0.3; done
    try sacct -X --format=jobname,state,exitcode,timelimit,alloccpus
    try sacct -P -X -n --format=jobname,state,exitcode,elapsed,ncpus,nnodes,user
    try sacct -p -n -j 2 --format=jobid,jobidraw,jobname,state,exitcode
    try sacct -P -n -j 4 --format=jobid,jobname,state,exitcode
    try sacct -P -X -n --format=jobname -s F -S now-1hour
    try sacct -P -X -n --format=jobname -s F -S now-1hour -E now
    try sacct -X -n --name=bad -o 'jobname%-8,state%12'
    try sacct -n -j 4711
    try sacct --format=nonsense
}

"$1"
