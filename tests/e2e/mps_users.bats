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

@test "who keeps a control daemon from starting is without MPS, and nobody else" {
    start_with_mps
    # It does not start for alice.
    sed -i "2i [ \"\$(id -un)\" != $ALICE ] || exit 7" "$ROOT/mps/fake_mps_daemon"
    as "$ALICE" berth submit --vram 4000 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    try_as "$ALICE" berth wait 1
    is hers "$status $(as "$ALICE" berth logs 1)" '0 pipe none'
    has why "$(job_field 1 attempts.0.text)" 'cannot start MPS: fake_mps_daemon ended with exit status 7'
    as "$BOB" berth submit --vram 4000 -- sh -c 'echo "$CUDA_MPS_PIPE_DIRECTORY"'
    try_as "$BOB" berth wait 2
    is status "$status" 0
    has pipe "$(as "$BOB" berth logs 2)" "/$(id -u "$BOB")/pipe"
    # Each hears of what concerns them; the administrator of all.
    has hers "$(as "$ALICE" berth gpus --json | json gpus.0.mps_why)" 'exit status 7'
    is his "$(as "$BOB" berth gpus --json | json gpus.0.mps)" on
    has root "$(berth gpus --json | json gpus.0.mps_why)" 'exit status 7'
    "$AWAIT" output "$LIMIT" "$ROOT/mps/begun" ended
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
