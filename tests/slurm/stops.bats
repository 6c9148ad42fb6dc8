#!/usr/bin/env bats
# Ending jobs with --on slurm on a real cluster: cancels and signals reach them, whatever else
# is to end, and whatever is unavailable.

bats_require_minimum_version 1.5.0
load lib
load berth

@test "a waiting job is cancelled though many that run take long to end" {
    start_cluster --nodes 1 --gpus 1 --cpus 16
    submit -- sh -c 'until [ -e go ]; do sleep 0.1; done'
    for i in $(seq 12); do
        echo '[gpus=0 grace=1h] trap "" TERM; echo >up$BERTH_JOB_ID; until [ -e go ]; do sleep 0.1; done'
    done >jobs
    timeout $LIMIT berth run -d --on slurm jobs
    all_run() { [ "$(ls up* | wc -l)" = 12 ]; }
    within all_run
    within is_state 1 RUNNING
    submit -- touch never
    waits() { [ -n "$(squeue -h -t PENDING)" ]; }
    within waits
    berth cancel 2-13
    berth cancel 14
    run -130 wait_for 14
    [ -z "$(squeue -h -t PENDING)" ]
    touch go
    timeout $LIMIT berth wait 1-13 || true
    [ ! -e never ]
}

@test "what is cancelled while slurmctld is away ends once it is back and has been asked what it has" {
    start_cluster --nodes 1 --gpus 1
    local folder=$PWD/bin
    mkdir "$folder"
    for name in sbatch squeue scancel; do
        printf '#!/bin/sh\necho "%s" >>"%s"\n%s "$@"\ns=$?\n[ $s != 0 ] || echo "%s ok" >>"%s"\nexit $s\n' \
            $name "$PWD/calls" "$(command -v $name)" $name "$PWD/calls" >"$folder/$name"
        chmod 755 "$folder/$name"
    done
    echo "slurm_commands: $folder" >config
    berth daemon start --config config
    submit -- sleep 1000
    within is_state 1 RUNNING
    submit -- touch never
    waits() { [ -n "$(squeue -h -t PENDING)" ]; }
    within waits
    # So that it is not forgotten when slurmctld is killed.
    is_saved() { [ "$(sed -n 's/.*event=sent key=\([0-9a-f]*\) .*/\1/p' "$BERTH_DIR/daemon.log" | xargs -I{} grep -alF {} "$ROOT/c/state/job_state" | wc -l)" = 2 ]; }
    within is_saved
    cluster kill-ctld
    away() { berth explain 2 | grep -q "Slurm does not answer now: squeue: "; }
    within away
    : >calls
    berth cancel 2
    refused() { grep -q squeue calls; }
    within refused
    cluster restart-ctld
    run -130 wait_for 2
    # None before the first answered squeue.
    [ "$(grep -m 1 -e '^squeue ok' -e '^scancel' calls)" = "squeue ok" ]
    grep -q '^scancel ok' calls
    [ ! -e never ]
}

@test "the word of a cancel is written again, by the next daemon too, where it could not be" {
    start_cluster --nodes 1
    submit -G 0 --grace 1h -- sh -c 'trap "" TERM; echo >up; until [ -e go ]; do sleep 0.1; done'
    within test -e up
    within is_state 1 RUNNING
    word=$BERTH_DIR/state/jobs/1.1/stop
    mkdir "$word"
    berth cancel 1
    within grep -q event=stop-not-written "$BERTH_DIR/daemon.log"
    rmdir "$word"
    within test -f "$word"
    kill_daemon
    rm "$word"
    berth daemon start
    within grep -q '"by":"root"' "$word"
    touch go
    run -130 wait_for 1
}

@test "a signal that was asked for before a cancel reaches the command before its end" {
    start_cluster --nodes 1
    for pack in "" --pack; do
        rm -f got up
        submit $pack -G 0 --grace 5m -- sh -c \
            'trap "echo usr1 >>got" USR1; trap "echo term >>got; exit 5" TERM; echo >up; while :; do sleep 0.1; done'
        within test -e up
        within is_state @ RUNNING
        berth signal @ USR1
        berth cancel @
        run -130 wait_for @
        said=$(tr '\n' ' ' <got)
        echo "it got $said"
        [ "$said" = "usr1 term " ]
    done
}
