#!/usr/bin/env bats
# Options of Slurm's commands in the various spellings that users and scripts use.

load lib

case_setup()
{
    berth compat install "$ROOT/bin" slurm >/dev/null
    PATH=$ROOT/bin:$PATH
    unset SLURM_CONF
    start_daemon 2
}

@test "sbatch -Q prints nothing, but errors" {
    try sbatch -Q -A me --parsable --wrap true
    is 'what was said' "$status:$out:$err" 0::
    try sbatch -Q --nodes=2 --wrap true
    has 'an error' "$status:$err" '^1:sbatch: error: --nodes: 2: there is one machine'
}

@test "a script is looked for here, and then in PATH" {
    printf '#!/bin/sh\necho from PATH\n' >"$ROOT/bin/evaluate.sh"
    try sbatch -W evaluate.sh
    is 'in PATH' "$status:$(cat slurm-1.out)" '0:from PATH'
    is 'its name' "$(job_field 1 name)" evaluate.sh
    printf '#!/bin/sh\necho from here\n' >evaluate.sh
    sbatch -W evaluate.sh >/dev/null
    is 'here' "$(cat slurm-2.out)" 'from here'
    try sbatch ./nosuch.sh
    is 'with a slash' "$status:$err" '1:sbatch: error: Unable to open file ./nosuch.sh'
    try sbatch nosuch.sh
    is 'nowhere' "$status:$err" '1:sbatch: error: Unable to open file nosuch.sh'
}

@test "variables that are not set name nothing, and a list of tasks may have blanks" {
    try sbatch -H -J "" --comment= --array '1-3, 5' --wrap true
    is 'accepted' "$status:$out" '0:Submitted batch job 1'
    is 'its name' "$(squeue -h -o %j)" wrap
    is 'its tasks' "$(squeue -h -o %K)" 1-3,5
}

@test "this machine and its cluster may be named" {
    host=$(hostname -s)
    sbatch -H -w "$host" -M berth --wrap true >/dev/null
    sbatch -W -w "$host.example.org" --wrap 'exit 0' >/dev/null
    try sbatch -w nosuch --wrap true
    is 'another' "$status:$err" "1:sbatch: error: --nodelist: nosuch: there is one machine, $host"
    is 'with its domain' "$(sinfo -h -n "$host.example.org" -o %T)" idle
    is 'another' "$(sinfo -h -n nosuch -o %T)" ''
    mkfifo go
    sbatch --wrap 'read line <go' >/dev/null
    wait_until_running 3
    is 'what runs there' "$(squeue -h -w "$host.example.org" -o %i)" 3
    scancel -w "$host.example.org"
    berth wait 3 || true
    is 'cancelled' "$(squeue -h -o %i)" 1
}

@test "a folder named ~ is refused as a place for output" {
    try sbatch -o '~/%j.out' --wrap true
    has 'sbatch' "$status:$err" "^255:sbatch: error: --output: '~/%j.out': ~ is not expanded here; write the whole path"
    try berth submit --error='~/x' -- true
    has 'submit' "$status:$err" "^2:berth: .*: '~/x': ~ is not expanded here"
    is 'folders' "$(ls -d '~' 2>/dev/null)" ''
}

@test "users and words that do not exist are said by sacct and squeue" {
    sbatch -H --wrap true >/dev/null
    try sacct 2 x
    is 'words of sacct' "$status:$out:$err" '1::Unknown arguments: 2 x'
    try sacct -u nosuch
    is 'a user of sacct' "$status:$out:$err" '1::sacct: error: Invalid user id: nosuch'
    scancel 1
    is 'everybody' "$(sacct -nXP -u -1 -o jobid)" 1
    sbatch -H --wrap true >/dev/null
    try squeue -h -o %i -u "nosuch,$(id -un)"
    is 'a user of squeue' "$status:$out:$err" '0:2:squeue: error: Invalid user: nosuch'
    is 'columns by their beginnings' "$(sacct -nXP -j 1 -o jobi,jobn)" '1|wrap'
}

@test "a range of jobs is a mistake, which changes no job" {
    sbatch -H --wrap true >/dev/null
    sbatch -H --array=0-3 --wrap true >/dev/null
    for words in 'scancel 1-2' 'scancel 2_0-1' 'scontrol release 1-2' 'scontrol requeue 1-2'; do
        try $words
        is "$words" "$status:$out" 1:
        has "$words" "$err" "${words##* }"
    done
    is 'what is left' "$(squeue -h -S i -o '%i %r')" $'1 JobHeldUser\n2_[0-3] JobHeldUser'
    scancel 2_[0-1]
    is 'tasks of an array have ranges' "$(squeue -h -S i -o %i | tr '\n' ' ')" '1 2_[2-3] '
}

@test "limits are rounded up to minutes, and #PBS lines are noted" {
    printf '#!/bin/sh\n#PBS -l walltime=1\n#SBATCH -t 0:30\ntrue\n' >pbs.sh
    try sbatch -H pbs.sh
    is 'a note' "$status:$err" '0:sbatch: pbs.sh:2: #PBS lines are not read; write #SBATCH'
    is 'the limit' "$(squeue -h -o %l)" 1:00
    sbatch -H -t -1 --wrap true >/dev/null
    is 'none' "$(squeue -h -j 2 -o %l)" UNLIMITED
}
