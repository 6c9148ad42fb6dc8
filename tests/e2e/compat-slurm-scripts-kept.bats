#!/usr/bin/env bats
# The copies of scripts that sbatch keeps: which are removed, and when.

load lib

case_setup()
{
    berth compat install "$ROOT/bin" slurm >/dev/null
    PATH=$ROOT/bin:$PATH
    unset SLURM_CONF
    kept=$BERTH_DIR/scripts/$(hostname -s)
    start_daemon 2
}

# Make copies look submitted a week ago, and last cleaned up a day ago.
make_old()
{
    rm -f "$kept/tidied"
    touch -d '8 days ago' "$kept"/slurm_script.*
}

copies_with()
{
    grep -l -- "$1" "$kept"/slurm_script.* | wc -l
}

@test "old copies are removed once no job needs them" {
    sbatch -H --wrap 'echo held' >/dev/null
    sbatch -W --wrap 'echo ended' >/dev/null
    make_old
    sbatch -H --wrap 'echo third' >/dev/null
    is 'held, ended' "$(copies_with 'echo held'):$(copies_with 'echo ended')" 1:0
    scancel 1
    berth wait 1 || true
    make_old
    sbatch -H --wrap 'echo fourth' >/dev/null
    is 'held no more' "$(copies_with 'echo held')" 0
}

@test "copies that jobs of another daemon need stay" {
    sbatch -H --wrap 'echo mine' >/dev/null
    BERTH_DIR=$ROOT/other berth daemon start --sim 1 >/dev/null
    make_old
    BERTH_SOCKET=$ROOT/other/berth.sock sbatch -H --wrap 'echo other' >/dev/null
    is 'of the own daemon, which runs' "$(copies_with 'echo mine')" 1
    stop_daemon
    make_old
    BERTH_SOCKET=$ROOT/other/berth.sock sbatch -H --wrap 'echo third' >/dev/null
    is 'of the own daemon, which does not run' "$(copies_with 'echo mine')" 1
    BERTH_DIR=$ROOT/other berth daemon stop
}

@test "copies of another machine with the same home folder stay" {
    mkdir -p "$BERTH_DIR/scripts/elsewhere"
    sbatch -H --wrap true >/dev/null
    cp "$kept"/slurm_script.* "$BERTH_DIR/scripts/elsewhere/slurm_script.0"
    touch -d '8 days ago' "$BERTH_DIR/scripts/elsewhere/slurm_script.0"
    make_old
    sbatch -H --wrap 'echo second' >/dev/null
    [ -f "$BERTH_DIR/scripts/elsewhere/slurm_script.0" ]
}

@test "a line with a DOS end anywhere in a script is refused" {
    printf '#!/bin/sh\necho first\r\necho second\n' >dos.sh
    try sbatch dos.sh
    is 'refused' "$status:$err" $'1:sbatch: error: Batch script contains DOS line breaks (\\r\\n)\nsbatch: error: instead of expected UNIX line breaks (\\n).'
    is 'queued' "$(squeue -h)" ''
}
