#!/usr/bin/env bats
# Slurm's commands in front of Berth's queue, as scripts and tools call them. Their output was
# compared with Slurm 22.05 (tests/slurm runs it beside them).

load lib

case_setup()
{
    berth compat install "$ROOT/bin" slurm >/dev/null
    PATH=$ROOT/bin:$PATH
    unset SLURM_CONF
    host=$(hostname -s)
    start_daemon 2
}

# Write a script of these lines to train.sh.
script()
{
    printf '%s\n' "$@" >train.sh
}

@test "sbatch takes a script, a command, or standard input, and says the job's number" {
    script '#!/bin/bash' '#SBATCH --job-name=trained' 'echo "$SLURM_JOB_NAME $# $2"'
    try sbatch train.sh one 'two words'
    is stdout "$out" 'Submitted batch job 1'
    try sbatch --parsable --wait --wrap='echo "$SLURM_JOB_NAME"'
    is stdout "$status:$out" 0:2
    printf '#!/bin/sh\necho "$SLURM_JOB_NAME"\n' | sbatch -W >said
    is 'from standard input' "$(cat said)" 'Submitted batch job 3'
    berth wait 1
    is 'output of the script' "$(cat slurm-1.out)" 'trained 2 two words'
    is 'output of --wrap' "$(cat slurm-2.out)" wrap
    is 'output of what came from standard input' "$(cat slurm-3.out)" sbatch
    is 'what is left out of the instance' "$(berth queue --all --json | json jobs.0.cwd)" "$WORK"
}

@test "a script runs as it was when it was submitted" {
    script '#!/bin/sh' 'echo first'
    first=$(sbatch --parsable --hold train.sh)
    script '#!/bin/sh' 'echo second'
    second=$(sbatch --parsable train.sh)
    rm train.sh
    berth release "$first"
    berth wait "$first" "$second"
    is 'the first' "$(cat "slurm-$first.out")" first
    is 'the second' "$(cat "slurm-$second.out")" second
    is 'one copy of each text' "$(ls "$BERTH_DIR/scripts/$host" | grep -c '^slurm_script')" 2
    is 'others can read them' "$(find "$BERTH_DIR/scripts" -perm /077)" ''
}

@test "the command line overrides SBATCH_ variables, and these the script" {
    script '#!/bin/sh' '#SBATCH -J script -t 5 --gres=gpu:2 -c 1 --mem-per-cpu=100' 'true'
    SBATCH_JOB_NAME=variable SBATCH_TIMELIMIT=7 sbatch -H -J line -n 2 train.sh
    is name "$(job_field 1 name)" line
    is limit "$(job_field 1 limit_ms)" 420000
    is GPUs "$(job_field 1 gpus_wanted)" 2
    is 'cores of two tasks' "$(job_field 1 cpus)" 2
    is 'memory of their cores' "$(job_field 1 mem_mib)" 200
    SBATCH_REQUEUE=1 SBATCH_GRES=gpu:1 sbatch -H train.sh
    is GPUs "$(job_field 2 gpus_wanted)" 1
    sbatch -H --wrap true
    is 'without a word for GPUs' "$(job_field 3 gpus_wanted)" 0
    is 'run again after a failure of the machine' "$(job_field 3 requeue)" true
    sbatch -H --no-requeue --wrap true
    is 'and not' "$(job_field 4 requeue)" false
    SBATCH_NO_REQUEUE=yes sbatch -H --wrap true
    is 'not, by a variable' "$(job_field 5 requeue)" false
    SBATCH_NO_REQUEUE=0 SBATCH_OVERCOMMIT=no SBATCH_WAIT=0 timeout 60 sbatch -H --wrap true
    is 'variables that say no' "$(job_field 6 requeue)" true
    SBATCH_MEM_PER_CPU=4G sbatch -H --mem=100 train.sh
    is 'memory of the job, not of its cores' "$(job_field 7 mem_mib)" 100
    SBATCH_MEM_PER_NODE=4G sbatch -H train.sh
    is 'memory in the way of the script' "$(job_field 8 mem_mib)" 100
    sbatch -H -G '' --wrap true
    is 'no word for GPUs' "$(job_field 9 gpus_wanted)" 0
}

@test "what cannot be honoured is refused by name, what means nothing is noted" {
    script '#!/bin/sh' '#SBATCH -N 2' '#SBATCH --partition=gpu' 'true'
    try sbatch train.sh
    is status "$status" 1
    is stderr "$err" 'sbatch: error: train.sh:2: #SBATCH --nodes: 2: there is one machine'
    try sbatch --nodelist=a -N1 train.sh
    is 'the line of the command, over the script' "$status:$err" "1:sbatch: error: train.sh:2: #SBATCH --nodes: 2: there is one machine
sbatch: error: --nodelist: a: there is one machine, $host"
    try sbatch -A me -p gpu --qos=high --wrap true
    is stderr "$status:$err" '0:sbatch: ignored, as they mean nothing on one machine: --account, --partition, --qos'
    try sbatch -Q -A me --wrap true
    is 'quietly' "$status:$err" 0:
    try sbatch -c 2 --cpus-per-gpu=1 -G 1 --wrap true
    is 'cores in two ways' "$status:$err" '1:sbatch: error: --cpus-per-gpu: mutually exclusive with --cpus-per-task'
    SBATCH_CPUS_PER_GPU=1 try sbatch -c 2 -G 1 --wrap true
    is 'one of them a variable' "$status:$err" '1:sbatch: error: --cpus-per-gpu: mutually exclusive with --cpus-per-task'
    try sbatch --mem-per-gpu=1G --wrap true
    is 'memory of no GPU' "$status:$err" '1:sbatch: error: --mem-per-gpu: the job requests no GPU'
    try sbatch --gres=gpu:3 --wrap true
    is status "$status" 1
    has stderr "$err" '^sbatch: error: '
    is 'jobs in the queue' "$(squeue -h -t all | wc -l)" 2
}

@test "mistakes have Slurm's words and statuses" {
    try sbatch missing.sh
    is 'no file' "$status:$err" '1:sbatch: error: Unable to open file missing.sh'
    script 'echo hi'
    try sbatch train.sh
    is 'no #!' "$status:$err" '1:sbatch: error: This does not look like a batch script.  The first
sbatch: error: line must start with #! followed by the path to an interpreter.
sbatch: error: For instance: #!/bin/sh'
    printf '#!/bin/sh\r\ntrue\r\n' >dos.sh
    try sbatch dos.sh
    has 'line ends of DOS' "$status:$err" '^1:sbatch: error: Batch script contains DOS line breaks'
    try sbatch --foo --wrap true
    is 'no option' "$status:$err" "255:sbatch: unrecognized option '--foo'
Try \"sbatch --help\" for more information"
    try sbatch -t abc --wrap true
    is 'no time' "$status" 255
    try sbatch --wrap true train.sh
    is '--wrap and a script' "$status:$err" '1:sbatch: error: Script arguments not permitted with --wrap option'
    try squeue -j 99
    is 'no job' "$status:$err" '1:slurm_load_jobs error: Invalid job id specified'
    try squeue -j abc
    is 'no number' "$status:$err" '1:squeue: error: Invalid job id: abc'
    try squeue -t foo
    is 'no state' "$status" 1
    has 'no state' "$err" '^squeue: error: Invalid job state specified: foo$'
    try squeue extra
    is 'a word' "$status:$err" '1:squeue: error: Unrecognized option: extra'
    try squeue -O foo
    is 'no column' "$status" 1
    try scancel
    is 'nothing to cancel' "$status:$err" '1:scancel: error: No job identification provided'
    try scancel 99
    is 'a job that is gone' "$status:$err" 0:
    try scancel -s USR1 99
    is 'which can get no signal' "$status:$err" '1:scancel: error: Kill job error on job id 99: Invalid job id specified'
    try scancel abc
    is 'no number' "$status:$err" '1:scancel: error: Invalid job id abc'
    try sacct --format=foo
    is 'no column' "$status:$err" '1:sacct: error: Invalid field requested: "foo"'
    try sacct -n -j 99
    is 'no job' "$status:$out$err" 0:
    try sbatch --version
    has 'the release' "$out" '^slurm-wlm 22\.05\.8 \(berth [0-9.]+\)$'
}

@test "sbatch --wait ends with the job's code, 1 for a signal, the highest of an array" {
    try sbatch -W --wrap 'exit 3'
    is code "$status" 3
    try sbatch -W --wrap 'kill -9 $$'
    is signal "$status" 1
    try sbatch -W --array=1-3 --wrap 'exit $SLURM_ARRAY_TASK_ID'
    is array "$status" 3
    try sbatch -W --wrap true
    is success "$status" 0
}

@test "squeue has Slurm's columns, and is asked for them in Slurm's ways" {
    mkfifo go
    sbatch -J long_name_of_a_job --gres=gpu:1 -t 10 --wrap 'read line <go' >/dev/null
    wait_until_running 1
    sbatch -J arr --array=0-9%1 --gres=gpu:1 --wrap 'read line <go' >/dev/null
    wait_for_event kind=started job=3
    sbatch -H -J held --wrap true >/dev/null
    sbatch -d afterok:1 -J after --wrap true >/dev/null
    squeue | sed 's/ [0-9]*:[0-9][0-9]  / 0:00  /' >table
    is table "$(cat table)" "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
         2_[1-9%1]     berth      arr $(printf %8.8s "$(id -un)") PD       0:00      1 (JobArrayTaskLimit)
                 4     berth     held $(printf %8.8s "$(id -un)") PD       0:00      1 (JobHeldUser)
                 5     berth    after $(printf %8.8s "$(id -un)") PD       0:00      1 (Dependency)
                 1     berth long_nam $(printf %8.8s "$(id -un)")  R       0:00      1 $host
               2_0     berth      arr $(printf %8.8s "$(id -un)")  R       0:00      1 $host"
    is letters "$(squeue -h -j 1,4 -S i -o '%i|%.5j|%T|%r|%l|%D|%N|%b|%Z')" "1|long_|RUNNING|None|10:00|1|$host|gres:gpu:1|$WORK
4| held|PENDING|JobHeldUser|UNLIMITED|1||N/A|$WORK"
    is names "$(squeue -j 1 -O jobarrayid:5,name:.10,statecompact,restartcnt:3)" "JOBID      NAMEST                  RES
1    long_name_R                   0  "
    is dependency "$(squeue -h -j 5 -o %E)" 'afterok:1(unfulfilled)'
    is 'a line for each task' "$(squeue -h -r -j 2 -t PD -o %i | tr '\n' ' ')" '2_1 2_2 2_3 2_4 2_5 2_6 2_7 2_8 2_9 '
    is 'one task' "$(squeue -h -j 2_4 -o '%i %T %K %F')" '2_4 PENDING 4 2'
    is states "$(squeue -h -t R -o %i | tr '\n' ' ')" '1 2_0 '
    is 'by name' "$(squeue -h -n arr,held -t PD -o %i | tr '\n' ' ')" '2_[1-9%1] 4 '
    is 'my own' "$(squeue -h --me | wc -l)" 5
    is 'by user' "$(squeue -h -u nobody)" ''
    is JSON "$(squeue --json -j 1 | json jobs.0.job_state)" RUNNING
    is 'JSON of no job' "$(squeue --json -u nobody | json jobs)" '[]'
    scancel -n arr
    berth wait 2 || true # a running task stays in the queue until it has ended
    is 'after scancel by name' "$(squeue -h -n arr)" ''
    is 'tasks that never ran' "$(sacct -n -X -P -j 2 -o jobid,state,start | tail -1)" "2_[1-9]|CANCELLED by $(id -u)|None"
    echo >go
    berth wait 1
    scancel --me
    "$AWAIT" prints "$LIMIT" 'squeue -h | wc -l' '^ *0$'
}

@test "sacct has Slurm's states and exit codes" {
    sbatch -W -J ok -t 5 --gres=gpu:1 --wrap 'true' >/dev/null
    sbatch -W -J fail --wrap 'exit 3' >/dev/null || true
    sbatch -W -J killed --wrap 'kill -9 $$' >/dev/null || true
    script '#!/bin/sh' '#BERTH -t 1s' 'sleep 100'
    sbatch -W -J late train.sh >/dev/null || true
    sbatch -J stopped --wrap 'sleep 100' >/dev/null
    wait_until_running 5
    scancel 5
    berth wait 5 || true
    sbatch -W --array=1,2 --wrap 'exit $((SLURM_ARRAY_TASK_ID - 1))' >/dev/null || true
    sbatch -H --wrap true >/dev/null
    scancel 9
    uid=$(id -u)
    is table "$(sacct)" "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode 
------------ ---------- ---------- ---------- ---------- ---------- -------- 
1                    ok      berth                     1  COMPLETED      0:0 
1.batch           batch                                1  COMPLETED      0:0 
2                  fail      berth                     1     FAILED      3:0 
2.batch           batch                                1     FAILED      3:0 
3                killed      berth                     1     FAILED      0:9 
3.batch           batch                                1  CANCELLED      0:9 
4                  late      berth                     1    TIMEOUT      0:0 
4.batch           batch                                1  CANCELLED     0:15 
5               stopped      berth                     1 CANCELLED+      0:0 
5.batch           batch                                1  CANCELLED     0:15 
6_1                wrap      berth                     1  COMPLETED      0:0 
6_1.batch         batch                                1  COMPLETED      0:0 
6_2                wrap      berth                     1     FAILED      1:0 
6_2.batch         batch                                1     FAILED      1:0 
9                  wrap      berth                     1 CANCELLED+      0:0 "
    is 'for programs' "$(sacct -nPX -j 1,5,9 --format=jobid,jobidraw,state,exitcode,timelimit,alloctres,nodelist)" \
        "1|1|COMPLETED|0:0|00:05:00|billing=1,cpu=1,gres/gpu=1,node=1|$host
5|5|CANCELLED by $uid|0:0|UNLIMITED|billing=1,cpu=1,node=1|$host
9|9|CANCELLED by $uid|0:0|UNLIMITED||None assigned"
    is 'a column of a width' "$(sacct -nX -j 6 -o jobid%-6,state%12)" "6_1       COMPLETED 
6_2          FAILED "
    is 'a task by its number' "$(sacct -nPX -j 6_2 -o jobid,state)" '6_2|FAILED'
    is 'steps by name' "$(sacct -nP -j 1.batch,6_2.batch -o jobid,state)" $'1.batch|COMPLETED\n6_2.batch|FAILED'
    is 'those of all tasks' "$(sacct -nP -j 6.batch -o jobid | tr '\n' ' ')" '6_1.batch 6_2.batch '
    is 'steps that there are not' "$(sacct -nP -j 1.0,2.extern,5.1 -o jobid)" ''
    is 'a step and all of a job' "$(sacct -nP -j 2.batch,1,1.batch -o jobid | tr '\n' ' ')" '1 1.batch 2.batch '
    is 'a step without steps' "$(sacct -nXP -j 1.batch -o jobid)" ''
    try sacct -j 1.foo
    is 'no step' "$status:$err" '1:sacct: error: Bad job/step specified: 1.foo'
    is 'with a bar at the end' "$(sacct -npX -j 1 -o jobid,state)" '1|COMPLETED|'
    is 'a delimiter of columns that have a width' "$(sacct -nX --delimiter=, -j 1 -o jobid%3,state%12)" '  1    COMPLETED '
    is 'another delimiter' "$(sacct -nPX --delimiter=, -j 1 -o jobid,state)" '1,COMPLETED'
    is 'by state, in the last hour' "$(sacct -nPX -s F,TO -S now-1hour -E now -o jobid | tr '\n' ' ')" '2 3 4 6_2 '
    is 'by state, now' "$(sacct -nPX -s F,TO -o jobid)" ''
    is 'by state, an hour ago' "$(sacct -nPX -s F,TO -S now-1hour -o jobid)" ''
    is 'before there were any' "$(sacct -nX -E 2020-01-01)" ''
    is 'by name' "$(sacct -nPX --name=fail -o jobid)" 2
    sacct --json -j 1,2,3,5,6 >accounts
    sacct --json -j 1.batch,2.0,5 >steps
    is 'jobs with the steps that are asked for' "$(python3 -c 'import json, sys
print([(job["job_id"], [step["step"]["id"] for step in job["steps"]]) for job in json.load(sys.stdin)["jobs"]])' <steps)" \
        "[(1, ['batch']), (2, []), (5, ['batch'])]"
    is 'without steps' "$(sacct --json -X -j 1 | json jobs.0.steps)" '[]'
    is 'JSON' "$(json jobs.0.state.current <accounts) $(json jobs.0.time.limit <accounts)" 'COMPLETED 5'
    is 'a code' "$(json jobs.1.exit_code.status <accounts) $(json jobs.1.exit_code.return_code <accounts)" 'ERROR 3'
    is 'a signal' "$(json jobs.2.exit_code.status <accounts) $(json jobs.2.exit_code.signal.name <accounts)" 'SIGNALED KILL'
    is 'who cancelled it' "$(json jobs.3.kill_request_user <accounts)" "$(id -un)"
    is 'a task' "$(json jobs.5.array.job_id <accounts)_$(json jobs.5.array.task_id <accounts)" 6_2
    srun true
    is 'the step of srun' "$(sacct -nP -j 10.0,10.batch -o jobid)" 10.0
    is 'every column that sacct has' "$(sacct -e | wc -w)" 109
}

@test "a driver script in Slurm's style: chains, polling, cancelling" {
    script '#!/bin/bash' '#SBATCH --output=%x-%j.log' 'echo "$1"; exit "${2:-0}"'
    cat >driver.sh <<'SCRIPT'
set -e
prep=$(sbatch --parsable -J prep train.sh prep)
train=$(sbatch --parsable -J train -d afterok:$prep --gres=gpu:1 train.sh train)
bad=$(sbatch --parsable -J bad --dependency=afterok:$train train.sh bad 4)
never=$(sbatch --parsable -J never -d afterok:$bad train.sh never)
last=$(sbatch --parsable -J last -d afternotok:$bad,afterany:$train train.sh last)
while [ -n "$(squeue -h -j $prep,$train,$bad,$never,$last -o %i 2>/dev/null)" ]; do sleep 0.2; done
sacct -X -n -P -j $prep,$train,$bad,$never,$last -o jobname,state,exitcode | sed 's/ by [0-9]*//'
SCRIPT
    try bash driver.sh
    is 'how they ended' "$out" "prep|COMPLETED|0:0
train|COMPLETED|0:0
bad|FAILED|4:0
never|CANCELLED|0:0
last|COMPLETED|0:0"
    is 'a log' "$(cat train-2.log)" train
}

@test "singletons: one at a time of each name in their order, with other dependencies, and shown as Slurm shows them" {
    # shellcheck disable=SC2016 # the jobs' shells are to expand these
    local single='singleton(unfulfilled)'
    printf '#!/bin/sh\ncat go$SLURM_JOB_ID\necho $SLURM_JOB_ID >>ran\n' >train
    mkfifo go1 go2 go7
    printf '#!/bin/sh\n#SBATCH -J train\n#SBATCH --dependency=afterok:1,singleton\necho 3 >>ran\n' >after.sh
    sbatch ./train
    wait_until_running 1
    sbatch --dependency=singleton ./train # both are named after their script
    sbatch after.sh
    sbatch -J train -d SINGLETON,afterany:1 -a 0-1 --wrap 'echo 4_$SLURM_ARRAY_TASK_ID >>ran'
    sbatch -J train -d singleton --wrap 'echo 5 >>ran'
    sbatch -J train -d afternotok:1,singleton --wrap 'echo 6 >>ran'
    sbatch -J other -d singleton --wrap 'cat go7'
    wait_until_running 7
    is 'those that wait' "$(squeue -h -t PD -S i -o '%A %T %r %R %E')" "2 PENDING Dependency (Dependency) $single
3 PENDING Dependency (Dependency) afterok:1(unfulfilled),$single
4 PENDING Dependency (Dependency) afterany:1(unfulfilled),$single
5 PENDING Dependency (Dependency) $single
6 PENDING Dependency (Dependency) afternotok:1(unfulfilled),$single"
    is 'in long' "$(squeue -h -j 2 -O reason:12,dependency:30)" "Dependency  $(printf %-30s "$single")"
    has scontrol "$(scontrol show job 3)" '^   JobState=PENDING Reason=Dependency Dependency=afterok:1\(unfulfilled\),singleton\(unfulfilled\)$'
    has scontrol "$(scontrol show job 2)" ' Reason=Dependency Dependency=singleton\(unfulfilled\)$'
    is JSON "$(squeue -j 2 --json | json jobs.0.dependency)" "$single"
    : >go1
    wait_until_running 2
    has 'in its turn' "$(squeue -h -j 3 -o %E)" 'singleton\(unfulfilled\)$'
    is 'of one that runs' "$(squeue -h -j 2 -o '%r %E')" 'None (null)'
    scancel 2
    berth wait 3-5
    is 'their order, with no regard to how the one before ended' "$(tr '\n' ' ' <ran)" '1 3 4_0 4_1 5 '
    berth wait 6 || true
    is 'the dependency that can no longer be met' "$(sacct -nXP -j 6 -o state)" CANCELLED
    : >go7
    berth wait 7
    for wrong in 'afterok:1?singleton' afterok:1:singleton singletons singleton:1; do
        try sbatch -d "$wrong" ./train
        [ "$status" -ne 0 ] || fail_with "$wrong is accepted"
        has "words on $wrong" "$err" '^sbatch: error: --dependency: '
    done
}

@test "a job whose dependency has failed already is accepted, and cancelled" {
    sbatch -W --wrap 'exit 4' >/dev/null || true
    try sbatch --parsable -d afterok:1 --wrap true
    is 'after a failure' "$status:$out:$err" '0:2:sbatch: job 1 has ended without success, so this job can never start and is cancelled'
    sbatch -W -a 1-2 --wrap true >/dev/null
    try sbatch -Q --parsable -d afternotok:3 --wrap true
    is 'after a success of all tasks' "$status:$out:$err" 0::
    is 'their states' "$(sacct -nXP -j 2,6 -o state | cut -d' ' -f1 | sort -u)" CANCELLED
    try sbatch -W -d afterok:3,afternotok:1 --wrap true
    is 'what can be met' "$status" 0
    try sbatch --parsable -W -d afterok:99,afterany:98,afterok:3 --wrap true
    is 'no such job' "$status:$out:$err" $'0:8:sbatch: job 99 is not known, so this job does not wait for it\nsbatch: job 98 is not known, so this job does not wait for it'
    try sbatch -Q -d afterany:99,afterok:1 --parsable --wrap true
    is 'and one that failed' "$status:$out:$err" 0::
    is 'which counts' "$(sacct -nXP -j 9 -o state | cut -d' ' -f1)" CANCELLED
}

@test "--test-only queues nothing; --export, --chdir and stdin of a job are Slurm's" {
    try sbatch --test-only --gres=gpu:1 --wrap true
    is status "$status:$out" 0:
    has stderr "$err" "^sbatch: Job to start at $(date +%Y)-.* using 1 processors on nodes $host in partition berth"
    is 'no job' "$(squeue -h -t all)" ''
    try sbatch --test-only -Q -x "other,$host-2" --wrap true
    is 'other machines' "$status" 0
    try sbatch --test-only -d afterok:4711 --wrap true
    has 'what is not known' "$status:$err" '^0:sbatch: job 4711 is not known, so this job does not wait for it'
    try sbatch --test-only -x "other,$host" --wrap true
    is 'no machine is left' "$status:$err" "1:sbatch: error: --exclude: other,$host: there is one machine, $host"
    mkdir sub
    A=1 B=2 sbatch -W -D sub --export=A,C=3 --wrap 'echo "$A${B-none}$C $PWD"; cat' >/dev/null
    is 'variables and folder' "$(cat sub/slurm-1.out)" "1none3 $WORK/sub"
    sbatch -W --open-mode=append -o sub/slurm-1.out --wrap 'echo more' >/dev/null
    is 'appended' "$(wc -l <sub/slurm-1.out)" 2
    sbatch -W -o sub/slurm-1.out --wrap 'echo anew' >/dev/null
    is 'emptied' "$(cat sub/slurm-1.out)" anew
}

@test "compat install puts Slurm's names only where they are asked for" {
    berth compat install "$ROOT/rest" >/dev/null
    is 'without a word' "$(ls "$ROOT/rest" | grep -c '^s[bqa]')" 0
    berth compat install "$ROOT/some" squeue cudaq >names
    is 'some' "$(ls "$ROOT/some" | tr '\n' ' ')" 'cudaq cudaq.py squeue '
    is 'what they are' "$(basename "$(realpath "$ROOT/some/squeue")")" berth-compat
    try berth compat install "$ROOT/none" slurmy
    is status "$status" 2
    [ ! -e "$ROOT/none" ]
    berth compat remove "$ROOT/some" >removed
    is 'all of them' "$(cat removed | wc -l)" 3
}

@test "srun is a job with its output and code here, in a job a step of it; salloc runs a command in one" {
    try srun --gres=gpu:1 -t 5 sh -c 'echo "$SLURM_JOB_ID $CUDA_VISIBLE_DEVICES"; exit 7'
    is 'output and code' "$status:$out" '7:1 0'
    is 'its name' "$(job_field 1 name)" sh
    try srun -n 2 -o task-%t.out sh -c 'echo "$SLURM_PROCID of $SLURM_NTASKS"; exit $SLURM_PROCID'
    is 'the highest code of its tasks' "$status" 1
    is 'their files' "$(cat task-0.out task-1.out)" $'0 of 2\n1 of 2'
    is 'standard input' "$(echo typed | srun cat)" typed
    sbatch -W -n 2 --wrap 'srun sh -c "echo step of \$SLURM_NTASKS"; sbatch --parsable --wrap "echo child"' >/dev/null
    is 'steps, and a job from within a job' "$(sort slurm-4.out)" $'5\nstep of 2\nstep of 2'
    berth wait 5
    is 'the child' "$(cat slurm-5.out)" child
    try salloc --gres=gpu:1 sh -c 'echo "$SLURM_JOB_ID"; srun -n 2 echo step; exit 3'
    is 'salloc' "$status:$out" $'3:salloc: Granted job allocation 6\n6\nstep\nstep'
    salloc=$err
    try srun -N 2 true
    is 'two nodes' "$status:$err" '1:srun: error: --nodes: 2: there is one machine'
    try srun
    is 'no program' "$status:$err" '1:srun: error: No command given to execute.'
    has 'the end of an allocation' "$salloc" '^salloc: Relinquishing job allocation 6$'
    try salloc -Q true
    is 'a quiet allocation' "$status:$out:$err" 0::
    for verb in srun salloc sbatch; do
        printf '#!/bin/sh\n' >true.sh
        chmod +x true.sh
        try $verb --gres=gpu:9 ./true.sh
        has 'too many GPUs' "$status:$err" "^1:$verb: error: .*GPUs"
    done
    try srun ./none
    is 'no such program' "$status:$err" "2:srun: error: program './none' not found"
    try srun --gres=gpu:99 true
    has 'one prefix' "$status:$err" "^1:srun: error: --gres: '99' is not a number of GPUs"
    try salloc --no-shell
    is 'no shell' "$status" 1
    has 'no shell' "$err" '^salloc: error: --no-shell: '
    is 'their lines in sacct' "$(sacct -nP -j 1,4 -o jobid,jobname,exitcode)" '1|sh|7:0
1.0|sh|7:0
4|wrap|0:0
4.batch|batch|0:0'
}

@test "sinfo shows the machine as one node, in Slurm's columns" {
    cores=$(nproc)
    is table "$(sinfo)" "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST
berth*       up   infinite      1   idle $host"
    is 'the default partition, as Snakemake looks for it' "$(sinfo -o %P | tail -1)" 'berth*'
    sbatch --gres=gpu:1 --wrap 'sleep 100' >/dev/null
    wait_until_running 1
    has 'with a job' "$(sinfo -h -o '%T %C %G')" "^(mixed|allocated) 1/$((cores - 1))/0/$cores gpu:2$"
    is names "$(sinfo -h -O gres:8,gresused:8,nodehost)" "gpu:2   gpu:1   $(printf %-20s "$host")"
    is 'another partition' "$(sinfo -h -p gpu)" ''
    is JSON "$(sinfo --json | json nodes.0.gres)" gpu:2
    berth pause all --reason 'new driver' >/dev/null
    is 'what is paused' "$(sinfo -h -t drng -o '%t %E')" 'drng new driver'
    scancel 1
    berth wait 1 || true
    is 'and empty' "$(sinfo -h -R -o '%T')" drained
    try sinfo --foo
    is status "$status" 1
}

@test "scontrol shows jobs as Slurm does, and changes what can be changed" {
    mkfifo go
    sbatch -J first -t 10 -c 1 --mem=100M --gres=gpu:1 --comment=words --wrap 'read line <go' >/dev/null
    wait_until_running 1
    sbatch -J second -d afterok:1 --array=1-4%2 --wrap true >/dev/null
    scontrol show job 1 >shown
    for line in "^JobId=1 JobName=first$" "^   UserId=$(id -un)\($(id -u)\) GroupId=$(id -gn)\($(id -g)\) MCS_label=N/A$" \
        '^   JobState=RUNNING Reason=None Dependency=\(null\)$' '^   RunTime=00:0[0-9]:[0-9][0-9] TimeLimit=00:10:00 TimeMin=N/A$' \
        "^   NodeList=$host$" '^   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:\*:\*$' \
        '^   TRES=cpu=1,mem=100M,node=1,billing=1,gres/gpu=1$' "^   StdOut=$WORK/slurm-1.out$" '^   TresPerNode=gres:gpu:1$' \
        '^   Comment=words$'; do
        has 'the job' "$(cat shown)" "$line"
    done
    has 'on one line' "$(scontrol -o show job 2)" '^JobId=2 ArrayJobId=2 ArrayTaskId=1-4%2 .* JobState=PENDING Reason=Dependency Dependency=afterok:1\(unfulfilled\) '
    is 'one line' "$(scontrol show job 1 -o | wc -l)" 1
    has 'details' "$(scontrol show jobid -dd 1)" 'GRES=gpu:1\(IDX:0\)'
    scontrol hold 2
    is held "$(squeue -h -j 2 -o %r)" JobHeldUser
    scontrol release jobid=2
    is released "$(squeue -h -j 2 -o %r)" Dependency
    scontrol update JobId=2 Nice=7
    is 'as Berth has it' "$(job_field 2 priority)" -7
    scontrol update job=2 priority=0
    is 'held once more' "$(squeue -h -j 2 -o %r)" JobHeldUser
    try scontrol update jobid=2 timelimit=5
    is 'what cannot be changed' "$status:$err" $'1:Update of this parameter is not supported: timelimit=5\nRequest aborted'
    try scontrol show job 99
    is 'no job' "$status:$err" '1:slurm_load_jobs error: Invalid job id specified'
    try scontrol hold 99
    is 'no job' "$status:$err" $'1:Invalid job id specified for job 99\nslurm_suspend error: Invalid job id specified'
    try scontrol frobnicate
    is 'no command' "$status:$err" '1:invalid keyword: frobnicate'
    scontrol requeue 1
    wait_for_event kind=started job=1 attempt=2
    scontrol requeuehold 1
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.state HELD
    is 'its script' "$(scontrol write batch_script 1 - | tail -1)" 'read line <go'
    is names "$(scontrol show hostnames 'n[08-10,3],m' | tr '\n' ' ')" 'n08 n09 n10 n3 m '
    has 'the node' "$(scontrol show node "$host")" '^   Gres=gpu:2$'
    has 'the partition' "$(scontrol show partition)" '^PartitionName=berth$'
    has 'the daemon' "$(scontrol ping)" 'is UP$'
}

@test "scancel ends only what all its options fit, and never a job for its step" {
    mkfifo go
    sbatch -J runs --wrap 'read line <go' >/dev/null
    wait_until_running 1
    sbatch -H -J waits --wrap true >/dev/null
    scancel -w nowhere
    scancel -p other
    scancel -n waits -p other
    scancel -n runs -w nowhere
    for filter in --account=x --qos=x --reservation=x --wckey=x; do
        try scancel -n waits "$filter"
        is 'what no job has' "$status:$err" "1:scancel: error: $filter fits no job: jobs have nothing like that here; name the jobs"
    done
    try scancel -M elsewhere 1
    is 'another cluster' "$status:$err" '1:scancel: error: --clusters: elsewhere is not here; the one cluster is berth'
    for step in 1.0 1.7; do
        try scancel "$step"
        is 'a step' "$status:$err" "1:scancel: error: $step: a step is not cancelled by itself; end the program, or cancel job 1"
    done
    try scancel 1.batch
    is 'the batch step' "$status:$err" '1:scancel: error: Invalid job id 1.batch'
    try scontrol hold 2.0
    is 'a step to hold' "$status:$err" $'1:Invalid job id specified for job 2.0\nslurm_suspend error: Invalid job id specified'
    is 'all are left' "$(squeue -h -S i -o '%i %T' | tr '\n' ' ')" '1 RUNNING 2 PENDING '
    try scancel -u 4000000
    is 'no user has that number' "$status:$err" '1:scancel: error: Invalid user name: 4000000'
    scancel -u "$(id -u)" -w "$host" -p other,berth
    berth wait 1 || true
    is 'what runs on the node' "$(squeue -h -o '%i %T')" '2 PENDING'
    scancel -t PD -M berth
    is 'what waits' "$(squeue -h)" ''
}

@test "scancel -s KILL cancels at once, and a signal to the batch shell is only that" {
    mkfifo go
    sbatch --wrap 'trap "" TERM; read line <go' >/dev/null
    wait_until_running 1
    scancel -s KILL 1
    berth wait 1 || true
    is 'cancelled' "$(sacct -nXP -j 1 -o state)" "CANCELLED by $(id -u)"
    sbatch --wrap 'read line <go' >/dev/null
    wait_until_running 2
    scancel -b -s KILL 2
    berth wait 2 || true
    is 'killed' "$(sacct -nXP -j 2 -o state,exitcode)" 'FAILED|0:9'
}

@test "scontrol wait_job waits until a job runs, not until its end" {
    mkfifo go
    try sbatch -W --wrap 'scontrol wait_job $SLURM_JOB_ID && echo ready'
    is 'in the job itself' "$status:$(cat slurm-1.out)" 0:ready
    sbatch -H --wrap 'read line <go' >/dev/null
    scontrol wait_job 2 &
    pid=$!
    "$AWAIT" until "$LIMIT" 'berth status --json' daemon.clients 2
    is 'still held' "$(squeue -h -j 2 -o %T)" PENDING
    scontrol release 2
    wait "$pid"
    is 'it runs' "$(squeue -h -j 2 -o %T)" RUNNING
    echo >go
    berth wait 2
    try scontrol wait_job 2
    is 'it has ended' "$status:$err" '1:scontrol: error: Job 2 no longer running'
    try scontrol wait_job 99
    is 'no job' "$status:$err" '1:scontrol: error: Invalid job id specified'
}

@test "scontrol runs no job again that forbids it, and releases what is free without a word" {
    mkfifo go
    sbatch --no-requeue --wrap 'echo once; read line <go' >/dev/null
    wait_until_running 1
    for again in requeue requeuehold; do
        try scontrol "$again" 1
        is "$again" "$status:$err" '1:Requested operation is presently disabled for job 1'
    done
    try scontrol release 1
    is 'not held' "$status:$out$err" 0:
    try scontrol update jobid=1 nice=5
    is 'the words of an error' "$status:$err" '1:scontrol: error: job 1 is not pending: it has started'
    echo >go
    berth wait 1
    is 'its output' "$(cat slurm-1.out)" once
    try scontrol release 1
    is 'what has ended' "$status" 1
}

@test "a step has as many GPUs as it asks for, which no other step has meanwhile" {
    mkfifo go.1 go.2 ready.1 ready.2 waits
    cat >steps.sh <<'SCRIPT'
#!/bin/sh
#SBATCH --gres=gpu:2 -n 2 -o steps.out
srun -n 1 --gres=gpu:1 sh -c 'echo "$CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS $SLURM_GPUS_ON_NODE" >first; echo >ready.1; read line <go.1' &
read line <ready.1
srun -n 1 -G 1 sh -c 'echo "$CUDA_VISIBLE_DEVICES" >second; echo >ready.2; read line <go.2' &
read line <ready.2
srun -n 1 --gpus=1 sh -c 'echo "$CUDA_VISIBLE_DEVICES" >third' 2>waits &
read words <waits
echo "$words"
[ -e third ] && echo "too early"
echo >go.1
echo >go.2
wait
srun -n 1 --gres=gpu:0 sh -c 'echo "none: ${CUDA_VISIBLE_DEVICES-unset}"'
srun -n 1 sh -c 'echo "all: $CUDA_VISIBLE_DEVICES"'
srun -n 2 --gpus-per-task=1 sh -c 'echo "each: $CUDA_VISIBLE_DEVICES"' | sort
srun -n 1 --gres=gpu:3 true || echo "status $?"
srun -n 1 --gres=shard:1 true || echo "status $?"
srun -n 3 true || echo "status $?"
srun -n 3 -O true && echo overcommitted
ls -d "${TMPDIR:-/tmp}"/berth-steps-*-"$SLURM_JOB_ID-$SLURM_JOB_START_TIME" 2>/dev/null
true
SCRIPT
    sbatch -W steps.sh >/dev/null
    is 'the first' "$(cat first)" '0 0 1'
    is 'the second' "$(cat second)" 1
    has 'and has one of them' "$(cat third)" '^[01]$'
    is 'the others' "$(cat steps.out)" 'srun: Job 1 step creation temporarily disabled, retrying (Requested nodes are busy)
none: 
all: 0,1
each: 0
each: 1
srun: error: Unable to create step for job 1: 3 GPUs are more than the 2 of the job
status 1
srun: --gres: shard:1: only gpu:N and gpu:TYPE:N are supported
status 1
srun: error: Unable to create step for job 1: More processors requested than permitted
status 1
overcommitted'
}

@test "no more steps with --exclusive run at a time than the job has cores" {
    mkfifo ready go waits
    cat >steps.sh <<'SCRIPT'
#!/bin/sh
#SBATCH -n 2 -o steps.out
srun -n 2 --exclusive sh -c '[ "$SLURM_PROCID" = 1 ] || { echo >ready; read line <go; echo first; }' &
read line <ready
srun -n 1 --exact echo second 2>waits &
read words <waits
echo >go
wait
SCRIPT
    sbatch -W steps.sh >/dev/null
    is 'one behind the other' "$(cat steps.out)" $'first\nsecond'
}

@test "srun gives its input to every task, empties its files, and with -K ends all when one fails" {
    printf 'one\ntwo\n' >typed
    mkfifo ready
    cat >steps.sh <<'SCRIPT'
#!/bin/sh
#SBATCH -n 2 -o steps.out
srun cat <typed | sort
cat typed | srun -o 'pipe.%t' cat
srun -n 1 -o same echo first
srun -o same echo second
srun -n 1 -o same --open-mode=append echo third
srun -K sh -c '[ "$SLURM_PROCID" = 0 ] && { echo >ready; trap "" TERM; while :; do sleep 1; done; }; read line <ready; exit 3' 2>/dev/null || echo "status $?"
srun -K0 sh -c 'exit $SLURM_PROCID' || echo "status $?"
srun -n 1 nosuchprogram || echo "status $?"
SCRIPT
    sbatch -W steps.sh >/dev/null
    is output "$(cat steps.out)" 'one
one
two
two
status 137
status 1
slurmstepd: error: execve(): nosuchprogram: No such file or directory
status 2'
    is 'from a pipe' "$(cat pipe.0 pipe.1)" $'one\ntwo\none\ntwo'
    is 'the file' "$(cat same)" $'second\nsecond\nthird'
    is 'nothing is left' "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name "berth-steps-*-1-*" -newer typed)" ''
}

@test "srun -K ends a task that has only just begun" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/signal_after_fork.so" "$E2E/signal_after_fork.c" -ldl
    cat >steps.sh <<SCRIPT
#!/bin/sh
#SBATCH -n 2 -o steps.out
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
LD_PRELOAD=$ROOT/signal_after_fork.so srun -K sh -c 'exec sleep 1000' 2>/dev/null | cat # until the last task has closed it
echo over
LD_PRELOAD=$ROOT/signal_after_fork.so srun -K sh -c 'exec sleep 1000' 2>/dev/null || echo "status \$?"
SIGNAL_SECOND=1 LD_PRELOAD=$ROOT/signal_after_fork.so srun -K sh -c 'exit 3' 2>/dev/null || echo "not begun: \$?"
SCRIPT
    timeout "$LIMIT" sbatch -W steps.sh >/dev/null
    is output "$(cat steps.out)" $'over\nstatus 137\nnot begun: 137'
}

@test "a job of srun or salloc ends with it" {
    mkfifo ready never
    for sign in TERM HUP INT; do
        env --default-signal=INT srun sh -c 'echo >ready; read line <never' 2>"said.$sign" &
        read -r _ <ready
        kill -s "$sign" $!
        status=0
        wait $! || status=$?
        is "status after $sign" "$status" "$((128 + $(kill -l "$sign")))"
    done
    salloc sh -c 'echo >ready; read line <never' 2>said.salloc &
    read -r _ <ready
    kill $!
    wait $! || true
    berth wait --all || true
    is 'all are cancelled' "$(sacct -nXP -o state | sort -u)" "CANCELLED by $(id -u)"
    has 'and it is said' "$(cat said.TERM)" 'job 1 is cancelled$'
    try srun -n 2 -K -o same --open-mode=append sh -c 'echo "$SLURM_PROCID"; [ "$SLURM_PROCID" = 1 ] && { echo >ready; read line <never; }; read line <ready; exit 3'
    is '-K of a job of its own' "$status" 137
    try srun -n 1 -o same --open-mode=append echo more
    is 'appended' "$(tail -1 same)" more
    is 'not emptied' "$(wc -l <same)" 3
}

# Printed only if the daemon cannot create cgroups.
without_warnings() { grep -v -e '--mem is not enforced' || true; }

@test "sbatch takes the options of scripts for nodes without GPUs, and memory in MiB" {
    try sbatch -W --parsable --exclusive=user -C skylake -N 1-4 --mem=100 -d '' --wrap 'echo "$SLURM_MEM_PER_NODE"'
    is status "$status:$out" 0:1
    is 'what is said' "$(without_warnings <<<"$err" | sort)" "sbatch: --constraint=skylake is ignored: the job has no GPU
sbatch: --exclusive is ignored: the job has no GPU, and the machine is shared"
    is memory "$(cat slurm-1.out)" 100
    try sbatch -H --mem=50 --wrap true
    is 'little memory' "$status:$(without_warnings <<<"$err")" '0:sbatch: --mem=50 is 50 MiB, as with Slurm; write 50G for GiB'
    is 'as much' "$(job_field 2 mem_mib)" 50
    sbatch -H --exclusive --gres=gpu:1 --wrap true >/dev/null
    is 'whole GPUs' "$(job_field 3 exclusive)" true
    try sbatch -H -d 1,2 --wrap true
    is 'numbers alone' "$status" 0
}

@test "a step that begins while another one ends still finds the folder in which they hold what they use" {
    [ "$(nproc)" -ge 2 ] || skip 'two steps ask for two cores'
    mkdir wrapped
    cat >wrapped/flock <<EOF
#!/bin/sh
[ "\$1" != 8 ] || : >asked
"$(command -v flock)" "\$@"
status=\$?
if [ "\$1" = -n ] && rm slow 2>/dev/null; then echo >held; read line <go; fi
exit \$status
EOF
    chmod +x wrapped/flock
    mkfifo ready end held go
    cat >steps.sh <<'EOF'
#!/bin/sh
#SBATCH -n 2 -o steps.out
PATH=$PWD/wrapped:$PATH
srun -n 1 --exact sh -c 'echo >ready; read line <end' &
first=$!
read line <ready
: >slow
srun -n 1 --exact echo second &
read line <held
rm -f asked
echo >end
while kill -0 $first 2>/dev/null && [ ! -e asked ]; do :; done
echo >go
wait
EOF
    sbatch -W steps.sh >/dev/null
    is 'what they said' "$(cat steps.out)" second
}
