#!/usr/bin/env bats
# Containers of users without root, started by the machine's daemon: podman itself.

load lib
load users
load containers

# Run the daemon, and all that it starts, in an environment that podman accepts.
berthd()
{
    in_machine "$(type -P berthd)" "$@"
}

# Alice may map users, and has an image. The process that imported it ended with its job.
start_with_image()
{
    local why first=$((1000000 + RANDOM * 65536))
    why=$(why_no_podman)
    if [ -z "$why" ] && ! command -v newuidmap >/dev/null; then why="there is no newuidmap here"; fi
    if [ -z "$why" ] && ! as "$ALICE" unshare --user true 2>/dev/null; then why="no user namespaces for users here, as in a chroot"; fi
    if [ -n "$why" ]; then skip "$why"; fi
    grep -q "^$ALICE:" /etc/subuid || usermod --add-subuids $first-$((first + 65535)) --add-subgids $first-$((first + 65535)) "$ALICE"
    STORE=$USERS_HOME/store
    export CONTAINERS_STORAGE_CONF=$STORE/storage.conf TMPDIR=$STORE
    if [ -d "$STORE" ]; then
        start_system
        return
    fi
    mkdir "$STORE"
    storage_conf "$STORE"
    chown -R "$ALICE" "$STORE"
    start_system
    make_image "$STORE" as "$ALICE" berth submit -G 0 --wait -- || fail_with "$(as "$ALICE" berth logs @)"
}

@test "a user's container runs as the user, with home, groups, group and exact end" {
    start_with_image
    as "$ALICE" berth submit -G 1 --container localhost/small --wait -- sh -c 'id; echo "$HOME $FROM"; pwd; echo made >made; exit 6' || status=$?
    is status "$status" 6
    log=$(as "$ALICE" berth logs @)
    has id "$log" "^uid=$(id -u "$ALICE")\($ALICE\)"
    has home "$log" "^$USERS_HOME/alice image\$"
    is made "$(stat -c '%U' "$USERS_HOME/alice/made")" "$ALICE"
}

# Wait until a line of a job's log equals this.
wait_for_line()
{
    "$AWAIT" prints "$LIMIT" "berth logs $1" "(^|\n)$2(\n|$)"
}

# Start one of alice's that ignores TERM: $id, and its podman's $pid.
run_one()
{
    id=$(as "$ALICE" berth submit --parsable -G 0 --grace 1s --container localhost/small -- \
        sh -c 'trap "" TERM; echo ready; while :; do sleep 1000; done')
    wait_for_line "$id" ready
    pid=$(berth show "$id" --json | json jobs.0.pid)
}

@test "two containers of a user run side by side, and any death leaves none behind" {
    local first
    start_with_image
    run_one
    first=$id
    run_one
    containers_come_to 2
    kill -KILL "$(awk '{print $4}' "/proc/$pid/stat")"
    as "$ALICE" berth wait "$id" || status=$?
    is state "$(job_field "$id" state)" LOST
    containers_come_to 1
    is state "$(job_field "$first" state)" RUNNING
    run_one
    kill -KILL "$pid" # podman, which then cannot remove it
    as "$ALICE" berth wait "$id" || status=$?
    containers_come_to 1
    berth cancel "$first"
    as "$ALICE" berth wait "$first" || status=$?
    is state "$(job_field "$first" state)" CANCELLED
    containers_come_to 0
}

# A machine with one NVIDIA GPU, and alice's job 1 on it. `use PID` makes a process use 1000
# MiB of it.
start_on_card()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world
    mkdir -p "$ROOT/live" "$BERTH_DIR"
    chmod 755 "$BERTH_DIR"
    echo 'sample_ms: 100' >"$ROOT/config.yaml"
    printf '%s\n' 'driver 550.54' "live $ROOT/live" 'card GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab 24564 564 0' >"$ROOT/world"
    NO_SIM=1 start_system --config "$ROOT/config.yaml"
}

use()
{
    echo 1000 >"$ROOT/live/0.$1"
}

@test "a process that a daemon of containers started for a job is that job's, others' with its mark are not" {
    local mark pid
    unshare -pf true || skip "no pid namespaces here"
    as "$BOB" unshare --user true 2>/dev/null || skip "no user namespaces for users here, as in a chroot"
    start_on_card
    as "$ALICE" mkfifo "$USERS_HOME/alice/gate.$BATS_TEST_NUMBER"
    as "$ALICE" berth submit --vram 8000 -- sh -c "echo \$BERTH_MARK; cat gate.$BATS_TEST_NUMBER"
    "$AWAIT" prints "$LIMIT" "berth logs 1" ':1\.1'
    mark=$(berth logs 1)
    # A process of root's, as of any user who starts a setuid program; one of bob's; one of
    # bob's in a user namespace of his own.
    background root env BERTH_MARK="$mark" sleep 1000
    use "$pid_of_root"
    background bob as "$BOB" env BERTH_MARK="$mark" sh -c 'echo $$; exec sleep 1000'
    wait_for_output bob '[0-9]'
    use "$(cat "$ROOT/bob.out")"
    background space as "$BOB" env BERTH_MARK="$mark" unshare -Urpf --kill-child sleep 1000
    "$AWAIT" prints "$LIMIT" "pgrep -u $BOB -P \$(pgrep -u $BOB -x unshare) sleep" '[0-9]'
    use "$(pgrep -u "$BOB" -P "$(pgrep -u "$BOB" -x unshare)" sleep)"
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.strangers.2.mib 1000
    # Alice's, mapped to an otherwise unused id, as in rootless containers.
    background mapped env BERTH_MARK="$mark" python3 "$E2E/mapped_sleep.py" "$(id -u "$ALICE")" "$ROOT/mapped"
    "$AWAIT" prints "$LIMIT" "cat '$ROOT/mapped' 2>/dev/null" '^[0-9]+$'
    use "$(cat "$ROOT/mapped")"
    "$AWAIT" until "$LIMIT" "berth show 1 --json" jobs.0.peak_mib.0 1000
    # Like dockerd's: root's, in a PID namespace that only root can make.
    background dockerd env BERTH_MARK="$mark" unshare -pf --kill-child sleep 1000
    "$AWAIT" prints "$LIMIT" "pgrep -P $pid_of_dockerd" '[0-9]'
    use "$(pgrep -P "$pid_of_dockerd")"
    "$AWAIT" until "$LIMIT" "berth show 1 --json" jobs.0.peak_mib.0 2000
    is others "$(berth gpus --json | grep -o '"pid"' | wc -l)" 3
    kill -KILL $(pgrep -u "$BOB") "$(cat "$ROOT/mapped")"
    rm "$ROOT"/live/*
    as "$ALICE" berth cancel 1
}
