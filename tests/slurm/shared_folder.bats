#!/usr/bin/env bats
# The daemon's state is on a disk of its own, which the nodes do not see: they share only the
# folder slurm_folder.

bats_require_minimum_version 1.5.0
load lib
load berth

eval "$(declare -f case_teardown | sed '1s/.*/stop_daemon()/')"
case_teardown()
{
    umount "$ROOT/shared" 2>/dev/null || true
    stop_daemon
}

# `cluster_apart OPTION...`: its nodes do not see the state, but do see $ROOT/shared.
cluster_apart()
{
    mkdir -p "$BERTH_DIR" "$ROOT/shared"
    chmod 700 "$ROOT/shared"
    start_cluster "$@" --on-boot "mount -t tmpfs none '$BERTH_DIR'"
}

# `settings LINE...`: the daemon's, from its start on.
settings() { printf '%s\n' "slurm_gpu_mib: 24000" "slurm_allocation_idle_s: 1" "$@" >"$BERTH_DIR/config.yaml"; }
# `own FOLDER`: the daemon's own in it.
own() { find "$1" -mindepth 1 -maxdepth 1 -name '????????????????'; }
# `logged REGEX`
logged() { grep -qE "$1" "$BERTH_DIR/daemon.log"; }
explained() { [[ $(berth explain "$1") == *$2* ]]; }

@test "a job, a packed one and a file run with the state out of the nodes' sight" {
    cluster_apart --nodes 2 --gpus 1
    settings "slurm_folder: $ROOT/shared"
    run -3 submit -W -G 0 -- sh -c "ls '$BERTH_DIR'; echo one; exit 3"
    run -0 timeout $LIMIT berth logs 1
    [ "$output" = one ]
    run -4 submit --pack --vram 4G -W -- sh -c 'echo two; exit 4'
    run -0 timeout $LIMIT berth logs 2
    [ "$output" = two ]
    for i in 3 4 5; do echo "[gpus=0] echo $i >>runs"; done >jobs
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort runs | tr '\n' ' ')" = "3 4 5 " ]
    run berth doctor
    [[ $output == *"nodes must see $(own "$ROOT/shared") (local)"* ]]
    # None of their files is at home, and nothing is left of their attempts.
    [ -z "$(ls -A "$BERTH_DIR/state/jobs")" ]
    [ ! -e "$BERTH_DIR/state/allocations" ]
    [ -z "$(ls -A "$BERTH_DIR/logs")" ]
    cd "$(own "$ROOT/shared")"
    none_left() { [ -z "$(ls -A jobs)" ] && ls logs | grep -q allocation; }
    within none_left
    ls logs/1.log logs/2.log
}

@test "the daemon is killed while jobs run: the next one finds them, and their folder without the setting" {
    cluster_apart --nodes 2 --gpus 1
    settings "slurm_folder: $ROOT/shared"
    submit -G 1 -- sh -c 'echo 1 >>runs; until [ -e go ]; do sleep 0.1; done; exit 5'
    submit --pack --vram 4G -- sh -c 'echo 2 >>runs; until [ -e go ]; do sleep 0.1; done; exit 6'
    submit --pack --vram 4G -- sh -c 'echo 3; sleep 1000'
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    within has_said 3 3
    kill_daemon
    settings
    berth daemon start
    [ "$(berth status --json | jq -r .daemon.slurm_folder)" = "$(own "$ROOT/shared")" ]
    berth cancel 3
    run -130 wait_for 3
    touch go
    run -5 wait_for 1
    run -6 wait_for 2
    [ "$(sort runs | tr '\n' ' ')" = "1 2 " ]
    run -0 timeout $LIMIT berth logs 3
    [ "$output" = 3 ]
}

@test "the daemon is killed while it takes a folder into use" {
    cluster_apart --nodes 1
    settings "slurm_folder: $ROOT/shared"
    for at in daemon-folder-made daemon-folder-locked slurm-committed slurm-sbatch-started; do
        settings "slurm_folder: $ROOT/shared/$at"
        berth daemon stop || true
        BERTH_CRASH_AT=$at berth daemon start
        local first
        first=$(berth status --json | jq .daemon.pid)
        submit -G 0 -- sh -c "echo $at >>runs; exit 9"
        timeout "$LIMIT" tail --pid="$first" -f /dev/null
        berth daemon start
        run -9 wait_for @
        [ "$(grep -c $at runs)" = 1 ]
        run -0 timeout $LIMIT berth logs @
        [ -e "$(own "$ROOT/shared/$at")/logs" ]
    done
}

@test "a changed setting waits until no job is on Slurm, and logs are found after it" {
    cluster_apart --nodes 1
    settings "slurm_folder: $ROOT/shared"
    submit -G 0 -- sh -c 'echo one; until [ -e go ]; do sleep 0.1; done; exit 5'
    within has_said 1 one
    settings "slurm_folder: $ROOT/other"
    kill -HUP "$(berth status --json | jq .daemon.pid)"
    within logged "slurm_folder takes effect when no job is on Slurm"
    [ "$(berth status --json | jq -r .daemon.slurm_folder_next)" = "$ROOT/other" ]
    run -0 submit -W -G 0 -- echo two
    [ "$(cat "$(own "$ROOT/shared")/logs/2.log")" = two ]
    [ ! -e "$ROOT/other" ]
    touch go
    run -5 wait_for 1
    run -0 submit -W -G 0 -- echo three
    [ "$(cat "$(own "$ROOT/other")/logs/3.log")" = three ]
    settings
    kill -HUP "$(berth status --json | jq .daemon.pid)"
    run -0 berth daemon stop
    berth daemon start
    local n=0
    for words in one two three; do
        run -0 timeout $LIMIT berth logs $((++n))
        [ "$output" = "$words" ]
    done
    run -0 berth show --json 3
    [ "$(jq -r '.jobs[0].log' <<<"$output")" = "$(own "$ROOT/other")/logs/3.log" ]
}

@test "a folder that cannot be used: jobs on Slurm wait with the reason, others run" {
    cluster_apart --nodes 1
    echo "slurm_folder: shared" >relative
    run -2 berth config check relative
    [[ $output == *"slurm_folder"*"must begin with /"* ]]
    chmod 777 "$ROOT/shared"
    settings "slurm_folder: $ROOT/shared"
    submit -G 0 -- sh -c 'exit 5'
    within explained 1 "slurm_folder: other users can write to $ROOT/shared (mode 777); run 'chmod go-w $ROOT/shared'"
    run berth doctor
    [[ $output == *"chmod go-w $ROOT/shared"* ]]
    run -4 timeout $LIMIT berth submit -W -G 0 -- sh -c 'exit 4'
    chmod 700 "$ROOT/shared"
    run -5 wait_for 1
    for folder in /proc/nothing:"cannot make /proc/nothing" "$ROOT/w/relative":"relative is not a folder"; do
        settings "slurm_folder: ${folder%%:*}"
        kill -HUP "$(berth status --json | jq .daemon.pid)"
        within logged "event=reloaded"
        submit -G 0 -- true
        within explained @ "${folder#*:}"
        berth cancel @
    done
    mkdir "$ROOT/nobodys"
    chown nobody "$ROOT/nobodys"
    settings "slurm_folder: $ROOT/nobodys"
    kill -HUP "$(berth status --json | jq .daemon.pid)"
    submit -G 0 -- true
    within explained @ "$ROOT/nobodys belongs to user $(id -u nobody) and not to user 0"
    berth cancel @
}

# On this machine another file system hides the folder; the nodes do not see that. Waits are
# short, and calls of squeue are counted.
@test "the folder is away for a while: nothing is lost, cancelled or sent, and other jobs run" {
    export BERTH_SLURM_HASTE=20
    cluster_apart --nodes 2 --gpus 1
    mkdir commands
    ln -s "$(command -v sbatch)" "$(command -v scancel)" commands
    printf '#!/bin/sh\necho x >>"%s"\nexec "%s" "$@"\n' "$PWD/polls" "$(command -v squeue)" >commands/squeue
    chmod +x commands/squeue
    settings "slurm_folder: $ROOT/shared" "slurm_commands: $PWD/commands"
    submit -G 1 -- sh -c 'echo 1 >>runs; until [ -e go ]; do sleep 0.1; done; exit 5'
    submit --pack --vram 4G -- sh -c 'echo 2 >>runs; until [ -e go ]; do sleep 0.1; done; exit 6'
    within is_state 1 RUNNING
    within is_state 2 RUNNING
    mount -t tmpfs none "$ROOT/shared"
    within logged "slurm-folder-trouble.*cannot open .*No such file"
    submit -G 0 -- sh -c 'echo 3 >>runs; exit 7'
    run -4 timeout $LIMIT berth submit -W -G 0 -- sh -c 'exit 4'
    within explained 3 "slurm_folder: cannot open $ROOT/shared/"
    run berth doctor
    [[ $output == *"slurm_folder: cannot open $ROOT/shared/"*"mount its file system"* ]]
    touch go
    none_runs() { [ -z "$(squeue -h)" ]; }
    within none_runs
    # An allocation and a job that Slurm no longer has, silent for longer than it takes to be
    # LOST.
    local n
    n=$(wc -l <polls)
    polled_since() { [ "$(wc -l <polls)" -ge $((n + 6)) ]; }
    within polled_since
    is_state 1 RUNNING
    is_state 2 RUNNING
    is_state 3 PENDING
    umount "$ROOT/shared"
    run -5 wait_for 1
    run -6 wait_for 2
    run -7 wait_for 3
    [ "$(sort runs | tr '\n' ' ')" = "1 2 3 " ]
    # The removal of a single attempt's folder is a different case.
    submit -G 0 -- sh -c 'echo 5 >>runs; sleep 1000'
    within grep -q 5 runs
    within is_state 5 RUNNING
    rm -r "$(own "$ROOT/shared")/jobs/5.1"
    scancel -u root
    run -1 wait_for 5
    [[ $(field 5 .text) == *"its folder was removed" ]]
}
