#!/usr/bin/env bats
# Slurm's commands of two users with the machine's daemon.

load lib
load users

# Run a command as a user, with Slurm's commands in PATH and a home of their own.
slurm_as()
{
    local user=$1
    shift
    try_as "$user" env PATH="$ROOT/bin:$PATH" HOME="$(getent passwd "$user" | cut -d : -f 6)" BERTH_DIR= BERTH_SOCKET="$ROOT/i/berth.sock" "$@"
}

@test "users submit, see and cancel their own jobs; scripts are kept in their homes" {
    start_system
    berth compat install "$ROOT/bin" slurm >/dev/null
    chmod 755 "$ROOT/bin"
    slurm_as "$ALICE" sbatch -D /tmp -o /dev/null --gres=gpu:1 --wrap 'exec sleep 1000'
    is 'submitted' "$status:$out" '0:Submitted batch job 1'
    wait_until_running 1
    slurm_as "$BOB" sbatch -D /tmp -o /dev/null --parsable -H --wrap true
    is 'submitted' "$status:$out" 0:2
    home=$(getent passwd "$ALICE" | cut -d : -f 6)
    is 'the copy' "$(find "$home" -name 'slurm_script.*' -printf '%u %m\n')" "$ALICE 700"
    slurm_as "$BOB" squeue -h -S i -o '%i %u %t'
    is 'what bob sees' "$out" "1 $ALICE R
2 $BOB PD"
    slurm_as "$BOB" squeue -h --me -o %i
    is 'his own' "$out" 2
    slurm_as "$BOB" scancel 1
    is 'what is not his' "$status" 1
    has 'words' "$err" '^scancel: error: Kill job error on job id 1: '
    slurm_as "$BOB" scontrol hold 1
    is 'nor to hold' "$status" 1
    slurm_as "$BOB" scancel -u "$ALICE"
    is 'nor by name' "$status" 1
    is 'alice runs on' "$(job_field 1 state)" RUNNING
    slurm_as "$ALICE" scancel --me
    is status "$status:$err" 0:
    berth wait 1 || true
    slurm_as "$ALICE" sacct -nXP -S now-1hour -o jobid,state,user
    is 'in her accounts' "$out" "1|CANCELLED by $(id -u "$ALICE")|$ALICE"
    slurm_as "$ALICE" sacct -nXPa -j 2 -o state,user
    is "bob's, which waits" "$out" "PENDING|$BOB"
    slurm_as "$BOB" srun -D /tmp id -un
    is 'a job at once' "$status:$out" "0:$BOB"
}

# Its name is predictable: it has the user, the job and its start.
@test "what another user has put in the place of a job's steps is named, and not waited for" {
    local id=0 thing
    start_system
    berth compat install "$ROOT/bin" slurm >/dev/null
    chmod 755 "$ROOT/bin"
    mkdir -m 1777 "$ROOT/tmp"
    as "$ALICE" mkfifo gate
    as "$ALICE" sh -c 'printf "#!/bin/sh\necho \$SLURM_JOB_START_TIME\nread x <gate\nsrun -G 1 echo ran\n" >job.sh; chmod +x job.sh'
    for thing in 'mkdir -m 700' mkfifo 'ln -s /nonexistent'; do
        id=$((id + 1))
        slurm_as "$ALICE" env TMPDIR="$ROOT/tmp" sbatch -D "$USERS_HOME/alice" -o "out$id" --gres=gpu:1 job.sh
        is status "$status" 0
        "$AWAIT" prints "$LIMIT" "cat $USERS_HOME/alice/out$id" '^[0-9]+'
        # shellcheck disable=SC2086
        as "$BOB" $thing "$ROOT/tmp/berth-steps-$(id -u "$ALICE")-$id-$(head -1 "$USERS_HOME/alice/out$id")"
        as "$ALICE" sh -c 'echo >gate'
        try berth wait "$id"
        is status "$status" 1
        has words "$(cat "$USERS_HOME/alice/out$id")" "berth-steps-[0-9-]+ is somebody else's; set TMPDIR"
    done
    rm "$USERS_HOME/alice/gate"
}
