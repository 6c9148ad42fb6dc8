#!/usr/bin/env bats
# MPS by the machine's daemon: the control daemon is the user's, and a GPU serves one user at a time.

load lib
load users

# The daemon, in a mount namespace of its own, which ends with it.
berthd()
{
    exec unshare -m "${plain[@]}" "$ROOT/bin/berthd" "$@"
}

# Run in the view of daemon and jobs, whose root may be below their namespace's.
inside()
{
    nsenter -t "$(daemon_pid)" -m -r "$@"
}

# Mounting fails, as in most containers.
without_mounts()
{
    plain=(setpriv --bounding-set -sys_admin --inh-caps -sys_admin)
}

# Alice's folder on GPU 0.
folder_of_alice()
{
    echo "$BERTH_DIR/mps/$(berth gpus --json | json gpus.0.uuid)/$(id -u "$ALICE")"
}

# Wait until the last keeper has exited, and its mounts are gone.
until_ended()
{
    "$AWAIT" output "$LIMIT" "$ROOT/mps/begun" ended
    "$AWAIT" pid "$LIMIT" "$(awk 'NR == 1 { print $3 }' "$1/../keeper")"
}

start_with_mps()
{
    unshare -m true 2>/dev/null || skip "there is no mount name space to be had here"
    mkdir -p "$BERTH_DIR" "$ROOT/mps"
    chmod 755 "$BERTH_DIR"
    chmod 777 "$ROOT/mps"
    cp "$E2E/fake_mps_daemon" "$ROOT/mps/"
    : >"$ROOT/mps/begun"
    chmod 666 "$ROOT/mps/begun"
    export BERTH_MPS_CONTROL=$ROOT/mps/fake_mps_daemon
    printf 'sample_ms: 100\nmps: on\n' >"$ROOT/config.yaml"
    start_system --config "$ROOT/config.yaml" --sim 1
}

@test "a GPU under MPS serves one user at a time: the other's job waits, and is told why" {
    local uuid folder
    start_with_mps
    mkfifo -m 666 "$ROOT/mps/gate"
    as "$ALICE" berth submit --vram 4000 -- cat "$ROOT/mps/gate"
    wait_until_running 1
    as "$ALICE" berth submit --vram 4000 -- true
    try_as "$ALICE" berth wait 2
    is 'her own' "$status" 0
    as "$BOB" berth submit --vram 4000 -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"'
    has why "$(as "$BOB" berth explain 3)" 'GpuMps: .*gpu 0 serves one user at a time \(MPS\), and is held by job 1'
    uuid=$(berth gpus --json | json gpus.0.uuid)
    folder=$BERTH_DIR/mps/$uuid
    is begun "$(cat "$ROOT/mps/begun")" "$ALICE $uuid log"
    is owner "$(inside stat -c '%U %a' "$folder/$(id -u "$ALICE")" "$folder" | paste -sd' ')" "$ALICE 700 root 711"
    is beneath "$(stat -c '%U %a' "$folder/$(id -u "$ALICE")")" 'root 700'
    try nsenter -t "$(daemon_pid)" -m -r runuser -u "$BOB" -- ls "$folder/$(id -u "$ALICE")/pipe"
    is 'not for bob' "$status" 2
    echo >"$ROOT/mps/gate"
    try_as "$BOB" berth wait 3
    is status "$status" 0
    is pipe "$(as "$BOB" berth logs 3)" "$folder/$(id -u "$BOB")/pipe"
    has begun "$(paste -sd' ' "$ROOT/mps/begun")" "^$ALICE $uuid log ended $BOB $uuid log"
}

@test "who keeps a control daemon from starting is without MPS, and nobody else" {
    start_with_mps
    # It fails to start for alice.
    sed -i "2i [ \"\$(id -un)\" != $ALICE ] || exit 7" "$ROOT/mps/fake_mps_daemon"
    as "$ALICE" berth submit --vram 4000 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    try_as "$ALICE" berth wait 1
    is hers "$status $(as "$ALICE" berth logs 1)" '0 pipe none'
    has why "$(job_field 1 attempts.0.text)" 'cannot start MPS: fake_mps_daemon ended with exit status 7'
    as "$BOB" berth submit --vram 4000 -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"'
    try_as "$BOB" berth wait 2
    is status "$status" 0
    has pipe "$(as "$BOB" berth logs 2)" "/$(id -u "$BOB")/pipe"
    # Each user sees what concerns them; the administrator sees all.
    has hers "$(as "$ALICE" berth gpus --json | json gpus.0.mps_why)" 'exit status 7'
    is his "$(as "$BOB" berth gpus --json | json gpus.0.mps)" on
    has root "$(berth gpus --json | json gpus.0.mps_why)" 'exit status 7'
    "$AWAIT" output "$LIMIT" "$ROOT/mps/begun" ended
}

@test "what one user's killed keeper leaves ends before another user's is started" {
    local folder kept nursery control server
    start_with_mps
    folder=$(folder_of_alice)
    mkfifo -m 666 "$ROOT/mps/gate"
    as "$ALICE" berth submit --vram 4000 -- cat "$ROOT/mps/gate"
    wait_until_running 1
    kept=$(awk 'NR == 1 { print $3 }' "$folder/../keeper")
    nursery=$(awk '{ print $4 }' "/proc/$kept/stat")
    control=$(inside cat "$folder/pipe/pid")
    server=$(inside cat "$folder/pipe/server")
    kill -STOP "$control" "$kept" "$nursery"
    kill -KILL "$kept" "$nursery" "$control"
    "$AWAIT" pid "$LIMIT" "$kept" "$nursery" "$control"
    is_alive "$server"
    as "$BOB" berth submit --vram 4000 -- grep -qs '^State:[[:space:]][^ZX]' "/proc/$server/status"
    echo >"$ROOT/mps/gate"
    try_as "$BOB" berth wait 2
    [ "$status" -ne 0 ] || fail_with "the server was still there"
    has begun "$(paste -sd' ' "$ROOT/mps/begun")" "$BOB"
    "$AWAIT" pid "$LIMIT" "$server"
}

@test "where no MPS can be had a GPU serves several users" {
    start_with_mps
    rm "$ROOT/mps/fake_mps_daemon"
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.mps null
    mkfifo -m 666 "$ROOT/mps/gate"
    as "$ALICE" berth submit --vram 4000 -- cat "$ROOT/mps/gate"
    wait_until_running 1
    as "$BOB" berth submit --vram 4000 -- true
    try_as "$BOB" berth wait 2
    is 'beside hers' "$status" 0
    echo >"$ROOT/mps/gate"
    as "$ALICE" berth wait 1
}

@test "what a user writes into their folder of MPS takes of nobody's room, and goes with the last job" {
    local folder
    start_with_mps
    folder=$(folder_of_alice)
    as "$ALICE" berth submit --vram 4000 -- sh -c 'cd "$CUDA_MPS_LOG_DIRECTORY" || exit 9
        ! dd if=/dev/zero of=large bs=1M count=17 2>/dev/null || exit 8
        stat -c %s large; rm large; i=0
        while touch n$i 2>/dev/null; do i=$((i + 1)); [ $i -lt 2000 ] || exit 7; done
        grep " $(dirname "$PWD") " /proc/self/mounts'
    try_as "$ALICE" berth wait 1
    is status "$status" 0
    has log "$(as "$ALICE" berth logs 1)" "^berth-mps $folder tmpfs rw,nosuid,nodev,noexec,.*size=16384k,nr_inodes=1024,mode=700,uid=$(id -u "$ALICE"),gid="
    [ "$(as "$ALICE" berth logs 1 | grep -xE '[0-9]+')" -le $((16 << 20)) ]
    until_ended "$folder"
    try nsenter -t "$(daemon_pid)" -m -r mountpoint "$folder"
    has 'it is gone' "$out$err" 'is not a mountpoint'
    is beneath "$(stat -c '%U %a' "$folder")" 'root 700'
}

@test "a folder of MPS that is in use stays mounted, and the next job uses it" {
    local folder
    start_with_mps
    folder=$(folder_of_alice)
    mkfifo -m 666 "$ROOT/mps/gate"
    as "$ALICE" berth submit --vram 4000 -- cat "$ROOT/mps/gate"
    wait_until_running 1
    background holder nsenter -t "$(daemon_pid)" -m -r runuser -u "$ALICE" -- sh -c "cd '$folder' && touch mine && echo there && exec cat '$ROOT/mps/gate'"
    wait_for_output holder there
    kept=$(awk 'NR == 1 { print $3 }' "$folder/../keeper")
    as "$ALICE" berth cancel 1
    "$AWAIT" pid "$LIMIT" "$kept"
    inside mountpoint "$folder"
    as "$ALICE" berth submit --vram 4000 -- sh -c 'ls "$CUDA_MPS_PIPE_DIRECTORY/../mine"; grep -c berth-mps /proc/self/mounts'
    try_as "$ALICE" berth wait 2
    is status "$status" 0
    has log "$(as "$ALICE" berth logs 2 | paste -sd' ')" 'mine 1$'
    echo >"$ROOT/mps/gate"
    finish holder
}

@test "a folder of MPS of an earlier version becomes root's again, without what was in it" {
    local folder
    start_with_mps
    folder=$(folder_of_alice)
    touch "$ROOT/precious"
    mkdir -p "$folder"
    chown "$ALICE" "$folder"
    as "$ALICE" sh -c "cd '$folder' && mkdir -p pipe/a/b/c log && touch log/x pipe/a/b/y && ln -s '$ROOT' pipe/z && ln -s '$ROOT' z"
    as "$ALICE" berth submit --vram 4000 -- true
    try_as "$ALICE" berth wait 1
    is text "$(job_field 1 attempts.0.text)" 'exit 0'
    is beneath "$(stat -c '%U %a' "$folder") $(ls -A "$folder")" 'root 700 '
    [ -e "$ROOT/precious" ]
    until_ended "$folder"
}

@test "where nothing can be mounted MPS goes on in a folder of the user's, and doctor says so" {
    local folder
    without_mounts
    start_with_mps
    folder=$(folder_of_alice)
    as "$ALICE" berth submit --vram 4000 -- sh -c 'stat -c %U "$CUDA_MPS_PIPE_DIRECTORY/.."'
    try_as "$ALICE" berth wait 1
    is status "$status" 0
    is hers "$(as "$ALICE" berth logs 1) $(stat -c %U "$folder")" "$ALICE $ALICE"
    has doctor "$(berth doctor || true)" 'warn +mps .*what users write into their folders of MPS is not limited: no file system can be mounted here: Operation not permitted'
    until_ended "$folder"
}

@test "what a user puts into their folder of MPS misleads nobody" {
    local folder
    without_mounts # they can access it between jobs
    start_with_mps
    folder=$(folder_of_alice)
    as "$ALICE" berth submit --vram 4000 -- true
    as "$ALICE" berth wait 1
    "$AWAIT" output "$LIMIT" "$ROOT/mps/begun" ended
    touch "$ROOT/precious"
    as "$ALICE" sh -c "rm -r '$folder/pipe' '$folder/log'; ln -s '$ROOT' '$folder/pipe'; ln -s '$ROOT' '$folder/log'"
    as "$ALICE" berth submit --vram 4000 -- true
    as "$ALICE" berth wait 2
    # Nothing behind the links was touched, and the job ran without MPS.
    [ -e "$ROOT/precious" ]
    has why "$(job_field 2 attempts.0.text)" 'cannot start MPS'
}
