#!/usr/bin/env bats
# What Slurm's commands show of jobs: which ones, in which order, and safe for a terminal.

load lib

case_setup()
{
    berth compat install "$ROOT/bin" slurm >/dev/null
    PATH=$ROOT/bin:$PATH
    unset SLURM_CONF
    start_daemon 2
}

@test "squeue sorts held and pending jobs as one state" {
    sbatch -H --wrap true >/dev/null
    sbatch -d afterok:1 --wrap true >/dev/null
    sbatch -H --wrap true >/dev/null
    is 'by state and number' "$(squeue -h -S t,i -o %i | tr '\n' ' ')" '1 2 3 '
    is 'by state downwards' "$(squeue -h -S -t,-i -o %i | tr '\n' ' ')" '3 2 1 '
}

@test "squeue sorts times by their length, and jobs without a limit last" {
    for limit in 2-0 5 10:00:00 0 30; do sbatch -H -t $limit --wrap true >/dev/null; done
    is 'by limit' "$(squeue -h -S l -o %i:%l | tr '\n' ' ')" '2:5:00 5:30:00 3:10:00:00 1:2-00:00:00 4:UNLIMITED '
    is 'by limit downwards' "$(squeue -h -S -l -o %i | tr '\n' ' ')" '4 1 3 5 2 '
    is 'by what is left' "$(squeue -h -S L -o %i:%L | tr '\n' ' ')" '2:5:00 5:30:00 3:10:00:00 1:2-00:00:00 4:UNLIMITED '
}

# The jobs in the order of a key for -S.
sorted()
{
    squeue -h -S "$1" -o %A | tr '\n' ' '
}

@test "squeue sorts numbers as numbers, and names by the alphabet" {
    sbatch -H --mem=1G -c 2 -J b10 --nice=-100 --wrap true >/dev/null
    sbatch -H --mem=900M -J b9 --nice=100 --wrap true >/dev/null
    sbatch -H --mem=1500M -J a --nice=-5 --wrap true >/dev/null
    sbatch -H -a 2,10 -J c --wrap true >/dev/null
    is memory "$(sorted m)" '4 2 1 3 '
    is 'memory downwards' "$(sorted -m)" '3 1 2 4 '
    is cores "$(sorted -C,m)" '1 4 2 3 '
    is names "$(sorted j)" '3 1 2 4 '
    is niceness "$(sorted y)" '1 3 4 2 '
    is 'tasks' "$(squeue -h -r -j 4 -S i -o %i | tr '\n' ' ')" '4_2 4_10 '
    is 'ends that are not known' "$(sorted e,-i)" '4 3 2 1 '
    try squeue -S i,1
    is 'no letter' "$status:$err" '1:squeue: error: Invalid sort specification: 1'
    try squeue -S foo
    is 'no order' "$status:$out:$err" '1::squeue: error: Invalid sort specification: o'
    is 'one cluster' "$(sorted -cluster,j)" "$(sorted j)"
}

@test "squeue sorts by when jobs start, without the column and with --start" {
    berth submit --gpus 0 --cpus 1 -t 1h -- sleep 600 >/dev/null
    for hours in 9 3 6; do sbatch -b now+${hours}hours -t 5 --wrap true >/dev/null; done
    sbatch -H --wrap true >/dev/null
    wait_for_event kind=started job=1
    is 'by start' "$(sorted S)" '1 3 4 2 5 '
    is 'of --start' "$(squeue -h --start -o %i | tr '\n' ' ')" '3 4 2 5 '
    is 'of --start, in another order' "$(squeue -h --start -S -i -o %i | tr '\n' ' ')" '5 4 3 2 '
    berth cancel 1
}

@test "squeue reads which jobs to show from its variables, unless an option says so" {
    sbatch -H -J one --wrap true >/dev/null
    sbatch -H -J two --wrap true >/dev/null
    scancel 2
    is 'names' "$(SQUEUE_NAMES=two,three squeue -h -t all -o %i)" 2
    is 'states' "$(SQUEUE_STATES=ca squeue -h -o %i)" 2
    is 'states and names' "$(SQUEUE_STATES=all SQUEUE_NAMES=one squeue -h -o %i)" 1
    is 'a user' "$(SQUEUE_USERS=$(id -u) squeue -h -o %i)" 1
    is 'another' "$(SQUEUE_USERS=nobody squeue -h -o %i)" ''
    is 'options' "$(SQUEUE_USERS=nobody SQUEUE_STATES=CA SQUEUE_NAMES=two squeue -h --me -t PD -n one -o %i)" 1
    is 'empty ones' "$(SQUEUE_USERS='' SQUEUE_STATES='' SQUEUE_NAMES='' squeue -h -o %i)" 1
    is 'what means nothing here' "$(SQUEUE_PARTITION=gpu SQUEUE_ACCOUNT=lab SQUEUE_QOS=low SQUEUE_ALL=1 squeue -h -o %i)" 1
    SQUEUE_STATES=foo try squeue
    is 'no state' "$status" 1
    has 'no state' "$err" '^squeue: error: Invalid job state specified: foo$'
    SQUEUE_USERS=nobody-of-that-name try squeue
    has 'no user' "$err" '^squeue: error: Invalid user: nobody-of-that-name$'
}

@test "squeue takes its columns from an option, else from SQUEUE_FORMAT, else from SQUEUE_FORMAT2" {
    sbatch -H -J one --wrap true >/dev/null
    export SQUEUE_FORMAT='%j of format' SQUEUE_FORMAT2=partition
    is 'both variables' "$(squeue -h)" 'one of format'
    is '-o' "$(squeue -h -o %i)" 1
    is '-O' "$(squeue -h -O jobid | tr -d ' ')" 1
    has '-l' "$(squeue -l)" 'TIME_LIMI +NODES'
    has '--start' "$(squeue --start)" 'START_TIME +NODES'
    is 'the second variable' "$(unset SQUEUE_FORMAT && squeue -h | tr -d ' ')" berth
    is 'the second one and -o' "$(unset SQUEUE_FORMAT && squeue -h -o %i)" 1
    has 'the second one and -l' "$(unset SQUEUE_FORMAT && squeue -l)" 'TIME_LIMI +NODES'
    for options in '-o %i -O jobid' '-O jobid -o %i'; do
        try squeue $options
        is "$options" "$status:$out:$err" '1::squeue: error: -o (--format) is incompatible with -O (--Format)'
    done
    try squeue -l -o %i
    has '-l -o' "$status:$err" '^1:squeue: error: Options -o\(--format\) and -l\(--long\) are mutually exclusive'
}

@test "a job that never ran has no node" {
    sbatch -H --wrap true >/dev/null
    scancel 1
    berth wait 1 || true
    squeue -t all --json >jobs
    is 'what else programs read' "$(python3 -c 'import json, sys
job = json.load(sys.stdin)["jobs"][0]
print(job["job_resources"], job["flags"], job["nice"], job["cpus_per_task"], job["shared"], repr(job["tres_per_task"]))' <jobs)" "{} [] None 1 None ''"
    is 'its node' "$(json jobs.0.nodes <jobs):$(json jobs.0.batch_host <jobs)" ':'
}

@test "an empty word for jobs is a mistake, and does not mean all of them" {
    sbatch -H --wrap true >/dev/null
    try sacct -j ''
    is 'sacct' "$status:$out" 1:
    try squeue -j ''
    is 'squeue' "$status:$out" 1:
    try scontrol show job ''
    is 'scontrol' "$status:$out:$err" '1::Invalid job id specified'
}

@test "states of sinfo are read in any case" {
    is 'idle' "$(sinfo -h -t IDLE -o %T)" idle
    is 'others' "$(sinfo -h -t Drain,MIX -o %T)" ''
}

@test "the log says as Slurm's does why a job was ended" {
    host=$(hostname -s)
    printf '#!/bin/sh\n#SBATCH -e late.err\n#BERTH -t 1s\nsleep 100\n' >late.sh
    sbatch -W late.sh >/dev/null || true
    has 'at its limit' "$(cat late.err)" "^slurmstepd: error: \*\*\* JOB 1 ON $host CANCELLED AT [0-9-]+T[0-9:]+ DUE TO TIME LIMIT \*\*\*$"
    is 'in its output' "$(cat slurm-1.out)" ''
    sbatch --wrap 'sleep 100' >/dev/null
    wait_until_running 2
    scancel 2
    berth wait 2 || true
    has 'by scancel' "$(cat slurm-2.out)" "^slurmstepd: error: \*\*\* JOB 2 ON $host CANCELLED AT [0-9-]+T[0-9:]+ \*\*\*$"
    berth submit -t 1s -o plain.out -- sleep 100 >/dev/null
    berth wait 3 || true
    is 'of Berth itself' "$(grep -c slurmstepd plain.out)" 0
}

@test "any partition is the one that there is, but for sinfo and scancel" {
    sbatch -H -p gpu --wrap true 2>/dev/null >&2
    is squeue "$(squeue -h -p gpu -o '%i %P')" '1 berth'
    is sinfo "$(sinfo -h -p gpu -o %P):$(sinfo -h -p berth -o %P)" ':berth*'
    scancel -p gpu
    is 'scancel' "$(squeue -h -o %i)" 1
}

@test "scontrol shows no control characters of a job" {
    folder=$(printf 'in\033[2J')
    mkdir "$folder"
    (cd "$folder" && sbatch -H --wrap true >/dev/null)
    scontrol show job 1 >shown
    is 'escapes' "$(grep -c "$(printf '[\033\r\t]')" shown)" 0
    has 'the folder' "$(cat shown)" '^   WorkDir=.*/in\\x1B\[2J$'
}

@test "scontrol writes the script of sbatch, and no other file that a job names" {
    printf '#!/bin/sh\necho of mine\n' >train.sh
    chmod +x train.sh
    berth submit --hold ./train.sh >/dev/null
    try scontrol write batch_script 1 -
    is 'of berth submit' "$status:$out:$err" '1::scontrol: error: job script retrieval failed: Invalid job id specified'
    sbatch -H train.sh >/dev/null
    is 'of sbatch' "$(scontrol write batch_script 2 -)" "$(cat train.sh)"
}

@test "scontrol says that there are no reservations and no licenses" {
    is reservations "$(scontrol show reservation)" 'No reservations in the system'
    is licenses "$(scontrol show lic)" 'No licenses configured in Slurm.'
    try scontrol show reservation=maintenance
    is 'one by name' "$status:$out" '1:Reservation maintenance not found'
}

@test "a job that is being started has its node and a start, as all that run" {
    local nursery
    nursery=$(for pid in $(marked_pids); do
        if [ "$(cat "/proc/$pid/comm")" = berth-nursery ]; then echo "$pid"; fi
    done)
    kill -STOP "$nursery" # nothing is forked until it continues
    mkfifo gate
    sbatch --wrap 'read x <gate' >/dev/null
    wait_for_event kind=started job=1 >/dev/null
    scontrol show job 1 >job
    kill -CONT "$nursery"
    has state "$(cat job)" 'JobState=RUNNING'
    has node "$(cat job)" ' NodeList=[^ ]+$'
    has host "$(cat job)" ' BatchHost=.'
    if grep -q 'StartTime=Unknown' job; then fail_with "$(cat job)"; fi
}

@test "the command of a job is the script as it was named and its arguments, with Slurm's words" {
    printf '#!/bin/sh\n' >t.sh
    sbatch -H t.sh one 'two words' "q'uote" >/dev/null
    sbatch -H ./t.sh >/dev/null
    sbatch -H --wrap 'echo hi' >/dev/null
    sbatch -H <t.sh >/dev/null
    berth submit --hold -- echo 'of Berth' >/dev/null
    is 'squeue' "$(squeue -h -S i -o '%o')" "$PWD/t.sh one two words q'uote
./t.sh
(null)
(null)
echo 'of Berth'"
    is 'with a width' "$(squeue -h -j 1 -o '[%.9o] [%2o]')" "[${PWD:0:9}] [${PWD:0:2}]"
    is 'by name' "$(squeue -h -j 2,3 -S i -O Command:8,jobid:2)" './t.sh  2 
(null)  3 '
    is 'scontrol' "$(scontrol show job 1 | sed -n 's/^ *Command=//p')" "$PWD/t.sh one two words q'uote"
    is 'nothing there' "$(scontrol show job 3 | sed -n 's/^ *Command=//p')" '(null)'
    is 'in JSON' "$(squeue --json -j 1 | json jobs.0.command):$(squeue --json -j 3 | json jobs.0.command)" "$PWD/t.sh one two words q'uote:"
    # The copy is still what runs, and what is shown.
    has 'to Berth' "$(job_field 1 command)" '/slurm_script\.[0-9a-f]+ one '
    is 'the script' "$(scontrol write batch_script 1 -)" '#!/bin/sh'
    mkfifo go
    srun sh -c 'read line <go' &
    wait_until_running 6
    is 'srun' "$(squeue -h -j 6 -o %o)" sh
    echo >go
    wait $!
}

@test "columns that Slurm has show what is known, and others are refused by name" {
    sbatch -H --wrap true >/dev/null
    sbatch --begin now+1hour --wrap true >/dev/null
    for letter in a A b B c C d D e E f F g G h H i I j J k K l L m M n N o O p P q Q r R s S t T u U v V w W x X y Y z Z; do
        try squeue -j 1 -o "%$letter|"
        is "%$letter" "$status:$err" 0:
    done
    is 'cluster and node' "$(squeue -h -j 1 -O cluster:6,allocnodes)" "berth $(printf %-20s "$(hostname -s)")"
    is 'eligible' "$(squeue -h -j 1 -O eligibletime:4,accruetime:4)" 'N/A N/A '
    has 'in an hour' "$(squeue -h -j 2 -O eligibletime)" '^20[0-9-]+T'
    try squeue -o '%i %5!x %t' -j 1
    is 'no letter' "$status:$out:$err" $'0:JOBID %5!x ST\n1 %5!x PD:squeue: error: Invalid job format specification: !'
    try squeue -O 'jobid,,allocsid:9'
    is 'not known' "$status:$out:$err" '1::squeue: error: Invalid job format specification: allocsid'
    try sinfo -h -o '%j %a %U'
    is 'sinfo' "$status:$out:$err" $'0:%j up Unknown:Invalid node format specification: j'
    has 'all columns' "$(sinfo -h -O all)" '^berth\*\|berth\|up\|infinite\|'
    is 'reservations' "$(sinfo -T)" 'No reservations in the system'
    try squeue -P --noconvert --array-unique -h -o %i -j 1
    is 'options' "$status:$out" 0:1
    is 'of later releases' "$(sacct -nXP -j 1 -o stdout,stdin,restarts)" "$PWD/slurm-1.out|/dev/null|0"
}
