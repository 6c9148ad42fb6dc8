#!/usr/bin/env bats
# Scripts as users bring them from Slurm: their headers, and the variables that they read.

load lib

script()
{
    cat >"$1"
    chmod 755 "$1"
}

@test "the usual header of a job on one node runs as it is, with the variables that it reads" {
    start_daemon 4x80G
    mkdir work
    script train.sh <<'END'
#!/bin/bash -l
#SBATCH --job-name=resnet
#SBATCH --output=logs/%x_%j.out
#SBATCH --error=logs/%x_%j.err
#SBATCH --partition=gpu
#SBATCH --account=lab42
#SBATCH --qos=normal
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH --gres=gpu:2
#SBATCH --constraint=sim
#SBATCH --time=0-00:10:00
#SBATCH --mail-type=NONE
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=truncate
#SBATCH --chdir=work
#SBATCH --comment="first try"
#SBATCH --export=ALL,LR=0.1
#SBATCH --exclusive
#SBATCH --begin=now
set -u
for v in JOB_ID JOBID JOB_NAME CPUS_PER_TASK CPUS_ON_NODE NTASKS NPROCS NNODES JOB_NUM_NODES NODEID PROCID LOCALID \
    SUBMIT_DIR JOB_PARTITION JOB_ACCOUNT JOB_QOS MEM_PER_NODE JOB_GPUS GPUS_ON_NODE CLUSTER_NAME; do
    name=SLURM_$v
    echo "$v=${!name}"
done
[ "$SLURM_JOB_NODELIST" = "$(hostname -s)" ] && [ "$SLURM_NODELIST" = "$SLURM_JOB_NODELIST" ] || exit 9
[ "$SLURM_SUBMIT_HOST" = "$(hostname)" ] || exit 8
[ -z "${SLURM_RESTART_COUNT:-}" ] && [ -z "${SLURM_ARRAY_TASK_ID:-}" ] || exit 7
echo "LR=$LR $PWD $CUDA_VISIBLE_DEVICES"
echo trouble >&2
END
    # The profile of the user who runs the test must not matter.
    HOME=$ROOT SLURM_ARRAY_TASK_ID=7 SLURM_JOB_ID=99 try berth submit --wait train.sh
    err=$(grep -v -e '--mem is not enforced' <<<"$err") # printed if no cgroups can be made
    is "status" "$status $err" "0 $(printf '%s\n' 'berth: train.sh:13: --constraint=sim is read as a type of GPU' \
        'berth: train.sh: ignored, as they mean nothing on one machine: --partition, --account, --qos')"
    is "its variables" "$(cat work/logs/resnet_1.out)" "JOB_ID=1
JOBID=1
JOB_NAME=resnet
CPUS_PER_TASK=1
CPUS_ON_NODE=1
NTASKS=1
NPROCS=1
NNODES=1
JOB_NUM_NODES=1
NODEID=0
PROCID=0
LOCALID=0
SUBMIT_DIR=$WORK
JOB_PARTITION=gpu
JOB_ACCOUNT=lab42
JOB_QOS=normal
MEM_PER_NODE=2048
JOB_GPUS=0,1
GPUS_ON_NODE=2
CLUSTER_NAME=berth
LR=0.1 $WORK/work 0,1"
    is "its errors" "$(cat work/logs/resnet_1.err)" trouble
    is "its comment" "$(job_field 1 comment)" "first try"
}

@test "an array's tasks have Slurm's variables and names of files" {
    start_daemon 1
    script array.sh <<'END'
#!/bin/bash
#SBATCH --array=2-6:2%2 --gpus=0 -o %A_%a-%N.out
echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX by $SLURM_ARRAY_TASK_STEP"
END
    try berth submit --wait array.sh
    is status "$status" 0
    is "of task 4" "$(cat "1_4-$(hostname -s).out")" "1 4 of 3, 2 to 6 by 2"
    is "three of them" "$(cat 1_*.out | wc -l)" 3
}

@test "only Slurm scripts and --slurm-env jobs have Slurm's variables; a job within a job inherits none" {
    start_daemon 1
    try berth submit --gpus 0 --wait -o plain -- sh -c 'echo "${SLURM_JOB_ID-none}"'
    is "a plain job" "$(cat plain)" none
    try berth submit --gpus 0 --wait --slurm-env -o asked -- sh -c 'echo "$SLURM_JOB_ID $SLURM_JOB_PARTITION"'
    is "by an option" "$(cat asked)" "2 berth"
    script outer.sh <<'END'
#!/bin/sh
#SBATCH --gpus=0
berth submit --gpus 0 --wait -o inner -- sh -c 'echo "${SLURM_JOB_ID-none}"'
END
    try berth submit --wait outer.sh
    is "status" "$status" 0
    is "a job that one for Slurm has submitted" "$(cat inner)" none
    script declined.sh <<'END'
#!/bin/sh
#SBATCH --gpus=0 --ntasks=2 --partition=gpu
env | grep -c '^SLURM'
END
    try berth submit --wait --slurm-env=no -o declined declined.sh
    is "a script that goes without by an option" "$(cat declined)" 0
    sed -i '2a #BERTH --slurm-env=no' declined.sh
    try berth submit --wait -o by-line declined.sh
    is "by a line of its own" "$(cat by-line)" 0
    try berth submit --wait --slurm-env -o taken declined.sh
    has "by an option that wins" "$(cat taken)" "^[1-9]"
    # What a real Slurm has set around us stays.
    SLURM_JOB_ID=77 try berth submit --gpus 0 --wait -o outside -- sh -c 'echo "$SLURM_JOB_ID"'
    is "within a real Slurm's job" "$(cat outside)" 77
}

@test "explicit variables stay, and a job submitted from a Slurm-style job inherits none of its variables" {
    start_daemon 1
    try berth submit --gpus 0 --wait --slurm-env --env SLURM_ARRAY_TASK_ID=5 -o given -- sh -c 'echo "$SLURM_ARRAY_TASK_ID"'
    is "a variable by --env" "$(cat given)" 5
    echo '[slurm-env gpus=0 env=SLURM_ARRAY_TASK_MAX=9 log=line.out] echo "$SLURM_JOB_PARTITION ${SLURM_ARRAY_TASK_ID-none} $SLURM_ARRAY_TASK_MAX"' >lines
    script outer.sh <<'END'
#!/bin/sh
#SBATCH --gpus=0 --array=3 --partition=outer
berth run lines
berth submit --gpus 0 --wait -o inner -- sh -c 'command -v srun | grep libexec || echo "no srun"; echo "$PATH"'
berth submit --gpus 0 --wait --slurm-env -o again -- sh -c 'echo "$PATH"'
END
    PATH=$PATH:/of/mine try berth submit --wait outer.sh
    is "status" "$status" 0
    is "a line with Slurm's variables" "$(cat line.out)" "berth none 9"
    is "a plain job's PATH" "$(cat inner)" "no srun
$PATH:/of/mine"
    is "the folder of our srun, once" "$(tr : '\n' <again | grep -c '/slurm$')" 1
}

@test "a warning with B: reaches only the script, one without it what the script started" {
    start_daemon 1
    script batch.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 --time=1 --signal=B:USR1@30 -o batch.out
trap 'echo script; kill $pid; exit 0' USR1
sh -c 'trap "echo child" USR1; while :; do sleep 0.1; done' & pid=$!
wait
wait
END
    try berth submit --wait batch.sh
    is "with B:" "$status $(cat batch.out)" "0 script"
    script steps.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 --time=1 --signal=USR2@30 -o steps.out
python3 -c 'import signal, sys
signal.signal(signal.SIGUSR2, lambda *a: sys.exit(print("step")))
signal.pause()'
echo after
END
    try berth submit --wait steps.sh
    is "without" "$status $(cat steps.out)" $'0 step\nafter'
}

@test "unsupported lines are reported: module, srun on several nodes" {
    start_daemon 1
    script old.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 --hold
module load cuda
srun -N 2 ./prog
END
    try berth submit old.sh
    is status "$status" 0
    has module "$err" "old.sh:3: 'module' does not exist here"
    has srun "$err" "old.sh:4: srun starts programs on this machine only"
    # Where it may be defined by the time the script runs, nothing is reported.
    try berth submit --env-setup '. ./modules' old.sh
    has_not "with a set-up" "$err" "'module' does not exist"
    for line in 'source /etc/profile.d/modules.sh' ' . ./modules'; do
        sed "3i$line" old.sh >reads.sh
        try berth submit reads.sh
        has_not "behind '$line'" "$err" "'module' does not exist"
    done
    for option in -l --login '-e -l'; do
        sed "1s/\$/ $option/" old.sh >login.sh
        try berth submit login.sh
        has_not "with $option" "$err" "'module' does not exist"
    done
}

@test "srun starts a program in its job, once or several times, and refuses other nodes" {
    start_daemon 1
    script steps.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 -o steps.out
srun --cpu-bind=none -u echo "one $SLURM_JOB_ID"
srun -n 2 -o task-%t.out sh -c 'echo "$SLURM_PROCID of $SLURM_NTASKS"'
srun -n2 sh -c 'exit $((SLURM_PROCID + 3))' || echo "status $?"
srun -N 2 true || echo refused
scontrol show hostnames "$SLURM_JOB_NODELIST"
END
    try berth submit --wait steps.sh
    is status "$status" 0
    is "what it wrote" "$(cat steps.out)" "$(printf '%s\n' 'one 1' 'status 4' 'srun: 2 nodes: there is one machine' refused "$(hostname -s)")"
    is "its tasks" "$(cat task-0.out task-1.out)" $'0 of 2\n1 of 2'
}

@test "srun leaves all variables that a job exports to its tasks, whatever their names" {
    start_daemon 1
    local names="program rest exported tasks nodes gpus output error input option value name number text task pids status piece named kept all quote"
    {
        echo '#!/bin/bash'
        echo '#SBATCH -o steps.out'
        for name in $names; do echo "export $name=of-the-job"; done
        echo 'srun -n 1 -o %t.out printenv' "$names"
        echo 'srun -n 2 -o %t.of2 printenv' "$names"
        echo 'srun --export=program=named,rest=too,name sh -c '"'"'echo $program $rest $name'"'"
    } >own.sh
    berth submit --gpus 0 --wait own.sh
    for file in 0.out 0.of2 1.of2; do
        is "variables in $file" "$(sort "$file" | uniq -c | xargs)" "$(wc -w <<<"$names") of-the-job"
    done
    is "those that --export names" "$(cat steps.out)" 'named too of-the-job'
}

@test "srun takes variables by --export and standard input by --input" {
    start_daemon 1
    script steps.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 -o steps.out
export FOO=foo BAR=bar
srun --export=A=b,FOO sh -c 'echo "$A $FOO ${BAR-none} ${SLURM_JOB_ID:+job}"'
srun --export=ALL,A=b sh -c 'echo "$A $FOO $BAR"'
srun --export NONE sh -c 'echo "${FOO-none} ${HOME-none} ${SLURM_JOB_ID:+job}"'
srun --export=1x=2 true || echo refused
echo zero >in.0
echo one >in.1
srun -n 2 --input=in.%t -o out.%t cat
echo all | srun -n2 --input 1 cat
srun -i missing cat || echo missing
END
    try berth submit --wait steps.sh
    is status "$status" 0
    is "what it wrote" "$(cat steps.out)" "$(printf '%s\n' 'b foo none job' 'b foo bar' 'none none job' "srun: --export: '1x' is no name of a variable" \
        refused all 'srun: cannot read missing' missing)"
    is "input of the tasks" "$(cat out.0 out.1)" $'zero\none'
}

@test "SLURM_ variables given by name to a plain job within a Slurm job are kept" {
    start_daemon 1
    script outer.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 -o outer.out
berth submit --gpus 0 --wait -o inner --env SLURM_X=1 --export ALL,SLURM_Y=2 -- sh -c 'echo "$SLURM_X $SLURM_Y ${SLURM_JOB_ID-none}"'
END
    try berth submit --wait outer.sh
    is "inside" "$(cat inner)" "1 2 none"
}

@test "srun starts as many tasks as --ntasks says, each with its cores and GPUs" {
    start_daemon 4
    script tasks.sh <<'END'
#!/bin/bash
#SBATCH --ntasks=2 --gpus-per-task=2 -o tasks.out
echo "$SLURM_NTASKS $SLURM_NPROCS $SLURM_TASKS_PER_NODE $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE"
srun -o 'task.%t' sh -c 'echo "$SLURM_PROCID of $SLURM_NTASKS on $CUDA_VISIBLE_DEVICES"'
srun --gpu-bind=none -n 1 sh -c 'echo "alone on $CUDA_VISIBLE_DEVICES"'
srun -O -n 3 true || echo "status $?"
END
    try berth submit --wait tasks.sh
    is "status and words" "$status $err" "0 "
    is "what the script said" "$(cat tasks.out)" "2 2 2 1 2
alone on 0,1,2,3
srun: 3 tasks with 2 GPUs each are more than the 4 of this job
status 1"
    is "what its tasks said" "$(cat task.0 task.1)" $'0 of 2 on 0,1\n1 of 2 on 2,3'
}

@test "a script with a number of GPUs, and one for each task, has as many tasks" {
    start_daemon 4
    script each.sh <<'END'
#!/bin/bash
#SBATCH -G 4 --gpus-per-task=2 -o each.out
echo "$SLURM_NTASKS tasks"
srun sh -c 'echo "$SLURM_PROCID: $CUDA_VISIBLE_DEVICES"' | sort
END
    berth submit --wait each.sh
    is 'its tasks' "$(cat each.out)" $'2 tasks\n0: 0,1\n1: 2,3'
}

@test "srun knows which of its options take a value, and names files as Slurm does" {
    start_daemon 1
    script steps.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 -o steps.out -J "a/b&c"
srun --cpus-per-gpu 2 --jobid 3 --mem-bind local --reservation r --signal USR1@9 --comment 'two words' -d afterok:1 -L x -T 2 echo long
srun --kill-on-bad-exit --exclusive -K1 -I5 -lun2 -o '%x.%A.%a.%j.%u.%N.%n.%3t.%s.%%' sh -c 'echo task $SLURM_PROCID'
srun --no-such-thing 3 true || echo "status $?"
END
    try berth submit --wait steps.sh
    is status "$status" 0
    is "what it wrote" "$(cat steps.out)" $'long\nsrun: there is no option --no-such-thing here\nstatus 1'
    local of="a_b&c.1.4294967294.1.$(id -un).$(hostname -s).0"
    is "its tasks" "$(cat "$of.000.0.%" "$of.001.0.%")" $'task 0\ntask 1'
}

@test "srun keeps the output of all, none or one of its tasks, and takes names with a backslash as they are" {
    start_daemon 1
    script words.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 -n 2 -o words.out -e words.err
say() { srun "$@" sh -c 'echo $SLURM_PROCID; echo error $SLURM_PROCID >&2'; }
say -o none
say -o 1
say -n 1 -o all -e NONE
say -n 1 -o file -e all
srun -n 1 -o file --open-mode=App echo more
say -n 1 -o 7
say -o '\%t-\%j'
END
    berth submit --wait words.sh
    is 'what it shows' "$(cat words.out)" $'1\n0'
    is 'of its errors' "$(cat words.err)" $'error 1\nerror 0'
    is 'the file that has no letters' "$(echo *%*)" '%t-%j'
    is 'a file' "$(cat file)" $'0\nmore'
    is 'a number of no task' "$(cat 7)" $'0\nerror 0'
    is 'a file of both tasks' "$(sort %t-%j)" $'0\n1\nerror 0\nerror 1'
    is 'no files' "$(ls -d all none NONE 1 2>/dev/null)" ''
    script none.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 -o none
echo nothing
END
    berth submit --wait none.sh
    is 'no log' "$(ls none* | tr '\n' ' ')" 'none.sh '
}

@test "srun passes a signal on, and stays until its tasks have ended" {
    start_daemon 1
    mkfifo ready.{0,1} go.{0,1}
    script steps.sh <<'END'
#!/bin/bash
#SBATCH --gpus=0 -o steps.out
srun -n 2 sh -c 'trap "read line <go.$SLURM_PROCID; exit 5" TERM
    echo >ready.$SLURM_PROCID
    while :; do sleep 0.1; done' & srun=$!
for task in 0 1; do read line <ready.$task; done
kill $srun
for task in 0 1; do echo >go.$task; done
wait $srun
echo "status $?"
END
    try berth submit --wait steps.sh
    is "what it wrote" "$(cat steps.out)" "status 5"
}

@test "Slurm's options on the command line: the message names Berth's equivalent" {
    start_daemon 1
    for words in "-p gpu:omit it" "--partition=gpu:omit it" "-A lab:omit it" "--qos=x:omit it" \
        "-N 1:omit it" "--nodes=1:omit it" "-n 1:a job is one task" "--ntasks=4:a job is one task"; do
        try berth submit ${words%%:*} true
        is "status of ${words%%:*}" "$status" 2
        has "words of ${words%%:*}" "$err" "${words##*:}"
    done
    try berth submit --gpus=sim:1 --job-name=n --output=o --hold true
    is "those that are understood" "$status $(job_field 1 name) $(job_field 1 gpu_type)" "0 n sim"
}
