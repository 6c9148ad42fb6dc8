#!/usr/bin/env bats
# MPS by the machine's daemon: the control daemon is the user's, and a GPU serves one user at a time.

load lib
load users

start_with_mps()
{
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
    is owner "$(stat -c '%U %a' "$folder/$(id -u "$ALICE")" "$folder" | paste -sd' ')" "$ALICE 700 root 711"
    try_as "$BOB" ls "$folder/$(id -u "$ALICE")/pipe"
    is 'not for bob' "$status" 2
    echo >"$ROOT/mps/gate"
    try_as "$BOB" berth wait 3
    is status "$status" 0
    is pipe "$(as "$BOB" berth logs 3)" "$folder/$(id -u "$BOB")/pipe"
    has begun "$(paste -sd' ' "$ROOT/mps/begun")" "^$ALICE $uuid log ended $BOB $uuid log"
}

@test "what a user puts into their folder of MPS misleads nobody" {
    local folder
    start_with_mps
    folder=$BERTH_DIR/mps/$(berth gpus --json | json gpus.0.uuid)/$(id -u "$ALICE")
    as "$ALICE" berth submit --vram 4000 -- true
    as "$ALICE" berth wait 1
    "$AWAIT" output "$LIMIT" "$ROOT/mps/begun" ended
    touch "$ROOT/precious"
    as "$ALICE" sh -c "rm -r '$folder/pipe' '$folder/log'; ln -s '$ROOT' '$folder/pipe'; ln -s '$ROOT' '$folder/log'"
    as "$ALICE" berth submit --vram 4000 -- true
    as "$ALICE" berth wait 2
    # Nothing behind the links was touched, and it ran without.
    [ -e "$ROOT/precious" ]
    has why "$(job_field 2 attempts.0.text)" 'cannot start MPS'
}
