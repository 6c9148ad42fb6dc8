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
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}/TIME/g' -e 's/\b0:[0-5][0-9]\b/0:SS/g' -e 's/\b00:0[0-9]:[0-5][0-9]\b/00:0M:SS/g' \
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
    export SBATCH_TIMELIMIT=15
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
    # Accounting lists an array's tasks where it first heard of them, on a busy machine behind later jobs.
    try bash -o pipefail -c 'sacct -X --format=jobname,state,exitcode,timelimit,alloccpus | sort'
    try bash -o pipefail -c 'sacct -P -X -n --format=jobname,state,exitcode,elapsed,ncpus,nnodes,user | sort'
    try sacct -p -n -j 2 --format=jobid,jobidraw,jobname,state,exitcode
    try sacct -P -n -j 4 --format=jobid,jobname,state,exitcode
    try sacct -P -X -n --format=jobname -s F -S now-1hour
    try sacct -P -X -n --format=jobname -s F -S now-1hour -E now
    try sacct -X -n --name=bad -o 'jobname%-8,state%12'
    try sacct -n -j 4711
    try sacct --format=nonsense
}

# How jobs are called that were submitted in different ways, and what every column says of a held one.
commands()
{
    local name
    printf '#!/bin/sh\nsleep 300\n' >t.sh
    mkdir sub
    cp t.sh 'sub/two words.sh'
    try sbatch -H -t 5 -J named t.sh one 'two words' "q'uote" '$HOME'
    sbatch -H ./t.sh >/dev/null
    sbatch -H 'sub/two words.sh' x >/dev/null
    sbatch -H --wrap 'echo hi' >/dev/null
    sbatch -H <t.sh >/dev/null
    sbatch -H -a 1-3 t.sh task >/dev/null
    try squeue -S i -o '%i [%o] [%.9o] [%6o]'
    try squeue -h -S i -O jobid:3,command:60,name
    try squeue -h -j 2 -O Command
    try sh -c "scontrol show job 1 | grep -o 'Command=.*'"
    try sh -c "scontrol show job 4 | grep -o 'Command=.*'"
    squeue --json | python3 -c '
import json, sys
for job in sorted(json.load(sys.stdin)["jobs"], key=lambda job: job["job_id"]): print(job["command"])' | same
    for name in a A b B c C d D e E f F g G h H i I j J k K l L M n N o O q r R s S t T u U v w W x X y Y z Z; do
        squeue -j 1 -o "%$name|" | same | tr '\n' ' '
    done
    echo
    for name in AccrueTime admin_comment AssocID BatchFlag BoardsPerNode BurstBuffer BurstBufferState ClusterFeature Container cpus-per-task CpusPerTask \
        cpus-per-tres Deadline DelayBoot DerivedEC EligibleTime exit_code HetJobID HetJobIDSet HetJobOffset MaxCPUs MaxNodes MCSLabel mem-per-tres MinTime Network \
        NTPerBoard NTPerCore NTPerNode NTPerSocket NumTasks Origin OriginRaw PreemptTime Prefer Profile Reboot ReqSwitch Requeue ResizeTime RestartCnt \
        SiblingsActive SiblingsActiveRaw SiblingsViable SiblingsViableRaw SPerBoard STDIN system_comment tres-bind tres-freq tres-per-job tres-per-socket \
        tres-per-task Wait4Switch; do
        squeue -j 1 -O "$name:40" | same | tr '\n' '|'
    done
    echo
    try squeue -j 1 -o '%i %5!x %t'
    try sinfo -h -o '%j %.5k| %U'
    try sinfo -T
    scancel -u "$me"
    srun sleep 300 >/dev/null 2>&1 &
    until squeue -h -t R -o '%o' | grep -q .; do sleep 0.3; done
    try squeue -h -t R -o '[%o]'
    scancel -u "$me"
    wait
}

# Which variables reach a job and its steps.
exports()
{
    local choice text='echo "A=${A-none} B=${B-none} C=${C-none} I=${I-none} X=${SLURM_EXPORT_ENV-none}"'
    unset SLURM_EXPORT_ENV SRUN_EXPORT_ENV
    export A=1 B='two words' TEXT="$text" SBATCH_TIMELIMIT=15
    for choice in ALL all NONE A A,C=3 ALL,C=3 ALL,A=9 C=3,ALL A=9 NONE,A A=5,A "C='a,b',A" 'C="x y"' A=; do
        try srun "--export=$choice" /bin/sh -c "$text"
    done
    SLURM_EXPORT_ENV=A try env SRUN_EXPORT_ENV=B srun /bin/sh -c 'echo "A=${A-none} B=${B-none}"'
    SLURM_EXPORT_ENV=A try srun /bin/sh -c 'echo "A=${A-none} B=${B-none}"'
    cat >steps.sh <<'EOF'
#!/bin/sh
I=7
export I
[ -n "$2" ] || for choice in ALL all NONE I A,C=3 ALL,C=3 ALL,A=9 C=3,ALL NONE,A A=5,A "C='a,b',A" 'C="x y"' A=; do
    echo "$choice: $(srun -n 1 "--export=$choice" /bin/sh -c "$1" 2>&1)"
done
echo "said nothing: $(srun -n 1 /bin/sh -c "$1")"
echo "SRUN_EXPORT_ENV: $(SRUN_EXPORT_ENV=I srun -n 1 /bin/sh -c "$1")"
echo "SLURM_EXPORT_ENV: $(SLURM_EXPORT_ENV=I srun -n 1 /bin/sh -c "$1")"
echo "overridden: $(SLURM_EXPORT_ENV=I srun -n 1 --export=ALL /bin/sh -c "$1")"
EOF
    sbatch -W -o all.out steps.sh "$text" >/dev/null
    cat all.out
    sbatch -W -o some.out --export=A,C=3 steps.sh "$text" few >/dev/null
    cat some.out
    SBATCH_EXPORT=NONE sbatch -W -o variable.out --wrap "$text" >/dev/null
    cat variable.out
}

"$1"
