#!/usr/bin/env bats
# mps: on. Jobs that share a GPU are clients of a control daemon that Berth starts, watches and
# ends. A program stands for the control daemon (fake_mps_daemon).

load lib

case_setup()
{
    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 100\nmps: on\n' >"$BERTH_DIR/config.yaml"
    cp "$E2E/fake_mps_daemon" "$ROOT/"
    : >"$ROOT/begun"
    export BERTH_MPS_CONTROL=$ROOT/fake_mps_daemon
}

setting()
{
    printf '%s: %s\n' "$@" >>"$BERTH_DIR/config.yaml"
}

# The keeper named in an MPS folder; 0 if none is.
keeper()
{
    awk 'FNR == 1 { print $3 }' "$BERTH_DIR"/mps/*/keeper
}

# A job that shares GPU 0 until the file `go` exists, and has written `here.N`.
sharer()
{
    berth submit --gpu-ids 0 --vram 4000 "${@:2}" -- sh -c "env | grep -E '^CUDA_(DEV|MPS|VIS)' | sort >'$ROOT/env.$1'; touch '$ROOT/here.$1'; exec '$AWAIT' prints 120 'ls $ROOT' '^go'"
    "$AWAIT" prints "$LIMIT" "ls $ROOT" "^here.$1"
}

ended()
{
    "$AWAIT" output "$LIMIT" "$ROOT/begun" ended
}

@test "jobs that share a GPU are clients of one control daemon, which ends with the last" {
    start_daemon 2
    uuid=$(berth gpus --json | json gpus.0.uuid)
    sharer a --share 25%
    sharer b
    is begun "$(cat "$ROOT/begun")" "$(id -un) $uuid log"
    is a "$(cat "$ROOT/env.a")" "$(printf '%s\n' CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25 \
        "CUDA_MPS_LOG_DIRECTORY=$BERTH_DIR/mps/$uuid/$(id -u)/log" CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4400M \
        "CUDA_MPS_PIPE_DIRECTORY=$BERTH_DIR/mps/$uuid/$(id -u)/pipe" "CUDA_VISIBLE_DEVICES=$uuid")"
    has_not b "$(cat "$ROOT/env.b")" PERCENTAGE
    # Jobs with a GPU of their own, or several, are not clients.
    berth submit --gpu-ids 1 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    berth submit --gpu-ids 0,1 --vram 1000 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    # A job without a share of a GPU, submitted by a client, does not inherit being one.
    env CUDA_MPS_PIPE_DIRECTORY="$BERTH_DIR/mps/$uuid/0/pipe" CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25 \
        berth submit --gpu-ids 1 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none} ${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE-none}"'
    berth wait 3 4 5
    is pipes "$(berth logs 3) $(berth logs 4) $(berth logs 5)" 'pipe none pipe none pipe none none'
    is gpus "$(berth gpus --json | json gpus.0.mps)" on
    has doctor "$(berth doctor || true)" 'mps .*gpus 0,1: jobs that share it do so by MPS, one user at a time'
    kept=$(keeper)
    touch "$ROOT/go"
    berth wait @
    ended
    "$AWAIT" pid "$LIMIT" "$kept"
    is begun "$(grep -vc ended "$ROOT/begun")" 1
}

@test "it outlives a killed daemon, and the next one's jobs find it" {
    start_daemon 1
    sharer a
    kept=$(keeper)
    kill_daemon
    start_daemon 1
    sharer b
    is keeper "$(keeper)" "$kept"
    is begun "$(wc -l <"$ROOT/begun")" 1
    touch "$ROOT/go"
    berth wait @
    ended
    "$AWAIT" pid "$LIMIT" "$kept"
    # Once more: a new control daemon.
    sharer c
    is begun "$(grep -vc ended "$ROOT/begun")" 2
}

@test "a control daemon that dies: the job's failure names it, and the next job has another" {
    start_daemon 1
    berth submit --vram 4000 -- sh -c "touch '$ROOT/here.a'; '$AWAIT' prints 120 'ls $ROOT' '^go'; exit 3"
    "$AWAIT" prints "$LIMIT" "ls $ROOT" '^here.a'
    kept=$(keeper)
    server=$(cat "$BERTH_DIR"/mps/*/*/pipe/server)
    kill -KILL "$(cat "$BERTH_DIR"/mps/*/*/pipe/pid)"
    "$AWAIT" pid "$LIMIT" "$kept" "$server"
    sharer b
    is begun "$(wc -l <"$ROOT/begun")" 2
    touch "$ROOT/go"
    try berth wait 1
    is status "$status" 3
    has why "$(job_field 1 attempts.0.text)" 'MPS ended under it: fake_mps_daemon was ended by signal 9'
    try berth wait 2
    is status "$status" 0
    is text "$(job_field 2 attempts.0.text)" "exit 0"
}

@test "a keeper that is killed takes its control daemon along, and is replaced" {
    start_daemon 1
    berth submit --vram 4000 -- sh -c "touch '$ROOT/here.a'; '$AWAIT' prints 120 'ls $ROOT' '^go'; exit 3"
    "$AWAIT" prints "$LIMIT" "ls $ROOT" '^here.a'
    control=$(cat "$BERTH_DIR"/mps/*/*/pipe/pid)
    server=$(cat "$BERTH_DIR"/mps/*/*/pipe/server)
    kill -KILL "$(keeper)"
    "$AWAIT" pid "$LIMIT" "$control" "$server"
    sharer b
    touch "$ROOT/go"
    try berth wait 1
    has why "$(job_field 1 attempts.0.text)" 'MPS ended under it: its keeper was killed'
    try berth wait 2
    is status "$status" 0
}

# Kill keeper and nursery at the same moment, so that nothing is left to end their leftovers.
kill_keeper_and_nursery()
{
    local nursery pids kept
    kept=$(keeper)
    nursery=$(awk '{ print $4 }' "/proc/$kept/stat")
    is nursery "$(cat "/proc/$nursery/comm")" berth-nursery
    pids="$kept $nursery"
    kill -STOP $pids
    kill -KILL $pids
    "$AWAIT" pid "$LIMIT" $pids
}

@test "keeper and nursery are killed: the jobs go on, and the next keeper takes the control daemon over" {
    local kept server
    start_daemon 1
    sharer a
    control=$(cat "$BERTH_DIR"/mps/*/*/pipe/pid)
    server=$(cat "$BERTH_DIR"/mps/*/*/pipe/server)
    kill_keeper_and_nursery
    is_alive "$control" && is_alive "$server"
    sharer b
    [ "$(keeper)" != "$kept" ]
    is begun "$(wc -l <"$ROOT/begun")" 1
    is_alive "$control" && is_alive "$server"
    kept=$(keeper)
    touch "$ROOT/go"
    try berth wait @
    is status "$status" 0
    ended
    "$AWAIT" pid "$LIMIT" "$kept" "$control" "$server"
}

@test "keeper and nursery are killed, and no other job comes: the daemon has it kept, and ended" {
    start_daemon 1
    sharer a
    control=$(cat "$BERTH_DIR"/mps/*/*/pipe/pid)
    server=$(cat "$BERTH_DIR"/mps/*/*/pipe/server)
    kill_keeper_and_nursery
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" "event=mps-left uid=$(id -u)"
    is_alive "$control" && is_alive "$server"
    touch "$ROOT/go"
    try berth wait 1
    is status "$status" 0
    "$AWAIT" pid "$LIMIT" "$control" "$server"
}

@test "servers whose control daemon and keeper are killed end before another one is started" {
    local server
    start_daemon 1
    sharer a
    control=$(cat "$BERTH_DIR"/mps/*/*/pipe/pid)
    server=$(cat "$BERTH_DIR"/mps/*/*/pipe/server)
    kill -STOP "$control" # so that its end is not seen
    kill_keeper_and_nursery
    kill -KILL "$control"
    "$AWAIT" pid "$LIMIT" "$control"
    is_alive "$server"
    sharer b
    is begun "$(wc -l <"$ROOT/begun")" 2
    if is_alive "$server"; then fail_with "the first server is still there"; fi
    touch "$ROOT/go"
    try berth wait 2
    is status "$status" 0
}

@test "a control daemon that does not answer is ended, and the keeper of the next one rests" {
    start_daemon 1
    sharer a
    control=$(cat "$BERTH_DIR"/mps/*/*/pipe/pid)
    touch "$ROOT/mute"
    kill_keeper_and_nursery
    sharer b
    is begun "$(wc -l <"$ROOT/begun")" 2
    "$AWAIT" pid "$LIMIT" "$control"
    # It would be notified of the end of that process again and again.
    is "what it waits for beside its child" "$(find "/proc/$(keeper)/fd" -lname '*pidfd*')" ''
    touch "$ROOT/go"
    berth wait 2
}

@test "what a keeper said before the machine was started is not believed" {
    local folder
    start_daemon 1
    folder=$BERTH_DIR/mps/$(berth gpus --json | json gpus.0.uuid)
    sharer a
    touch "$ROOT/go"
    berth wait 1
    ended
    "$AWAIT" pid "$LIMIT" "$(keeper)"
    # As if this test's shell were a keeper, with its control daemon, of another boot.
    python3 - "$folder/keeper" $$ "$(awk '{ print $22 }' /proc/$$/stat)" <<'PY'
import sys
path, pid, ticks = sys.argv[1:]
text = open(path, "rb").read()
first, second = text[:512], text[512:]
lines = second.split(b"\n")
assert len(lines[0]) == 36, lines
uid = first.split()[1].decode()
first = f"1 {uid} {pid} {ticks} 1 \n0 0 \n".encode().ljust(512, b"\n")
lines[0] = b"00000000-0000-4000-8000-000000000000"
lines[1] = f"1 {uid} {pid} {ticks}".encode()
second = b"\n".join(lines)[:len(second) - 1].ljust(len(second), b"\n")
open(path, "r+b").write(first + second)
PY
    rm "$ROOT/go"
    sharer b
    is begun "$(grep -vc ended "$ROOT/begun")" 2
    touch "$ROOT/go"
    berth wait 2
}

@test "a control daemon that does not start: jobs run without, and the reason is said" {
    touch "$ROOT/refuses"
    start_daemon 1
    berth submit --vram 4000 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    try berth wait 1
    is status "$status" 0
    has why "$(job_field 1 attempts.0.text)" 'cannot start MPS: fake_mps_daemon ended with exit status 1: An instance of this daemon is already running'
    is without "$(berth logs 1)" 'pipe none'
    has gpus "$(berth gpus --json | json gpus.0.mps_why)" 'An instance of this daemon is already running'
    has doctor "$(berth doctor || true)" 'mps .*gpu 0: jobs do not get the MPS of the settings: fake_mps_daemon ended'
}

# The control daemon starts slowly, until be_slow_no_more.
be_slow()
{
    mkfifo "$ROOT/slow"
    exec 7<>"$ROOT/slow"
}

be_slow_no_more()
{
    mv "$ROOT/slow" "$ROOT/was-slow"
    exec 7>&-
}

# Wait until N processes that wait for a control daemon have its keeper's file open: `waiters
# N`.
waiters()
{
    "$AWAIT" prints "$LIMIT" "find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/fd/*' -lname '$BERTH_DIR/mps/*/keeper' 2>/dev/null | wc -l" "^$1\$"
}

@test "a control daemon that takes its time to refuse: a job that came meanwhile hears of it too" {
    start_daemon 1
    touch "$ROOT/refuses"
    be_slow
    berth submit --vram 4000 -- true
    waiters 2 # its keeper and its supervisor
    berth submit --vram 4000 -- true
    waiters 4
    be_slow_no_more
    berth wait 1 2
    for job in 1 2; do
        has why "$(job_field $job attempts.0.text)" 'fake_mps_daemon ended with exit status 1: An instance of this daemon is already running'
    done
}

@test "a job that waits for its control daemon is cancelled without having begun" {
    start_daemon 1
    be_slow
    berth submit --vram 4000 -- touch "$ROOT/begun-it"
    waiters 2
    berth cancel 1
    try berth wait 1
    is state "$(job_field 1 state)" CANCELLED
    be_slow_no_more
    if [ -e "$ROOT/begun-it" ]; then fail_with "it ran"; fi
}

@test "the client of an interactive job that is cancelled while it waits for its control daemon ends with it" {
    start_daemon 1
    be_slow
    # A client keeps typing there.
    background client sh -c 'while echo; do sleep 1; done | berth submit --interactive --vram 4000 -- true'
    waiters 2
    berth cancel 1
    finish client
    is status "$status" 130
    has words "$out" 'job 1: cancelled'
    be_slow_no_more
}

@test "a daemon that comes while a job waits for its control daemon reaches its supervisor" {
    start_daemon 1
    be_slow
    berth submit --vram 4000 -- sh -c "touch '$ROOT/here.a'; exec sleep 1000"
    waiters 2
    kill_daemon
    start_daemon 1
    be_slow_no_more
    "$AWAIT" prints "$LIMIT" "ls $ROOT" "^here.a"
    wait_until_running 1
    berth cancel 1
    try berth wait 1
    is state "$(job_field 1 state)" CANCELLED
}

@test "where the program is missing no job waits for it, and the reason is said" {
    export BERTH_MPS_CONTROL=$ROOT/none
    start_daemon 1
    berth submit --vram 4000 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    try berth wait 1
    is status "$status" 0
    is text "$(job_field 1 attempts.0.text)" 'exit 0'
    is without "$(berth logs 1)" 'pipe none'
    is gpus "$(berth gpus --json | json gpus.0.mps_why)" "there is no $ROOT/none"
    # It is noticed once it exists.
    cp "$E2E/fake_mps_daemon" "$ROOT/none"
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.mps on
    berth submit --vram 4000 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    berth wait 2
    has_not with "$(berth logs 2)" none
    ended
}

@test "simulated GPUs have no MPS but by a program that is named for them" {
    unset BERTH_MPS_CONTROL
    start_daemon 1
    is gpus "$(berth gpus --json | json gpus.0.mps_why)" "there is no GPU of NVIDIA's"
}

@test "only on GPUs that the settings name; no limit where none is wanted" {
    setting vram_cap off
    sed -i 's/^mps: on/mps: 1/' "$BERTH_DIR/config.yaml"
    start_daemon 2
    berth submit --gpu-ids 0 --vram 4000 -- sh -c 'echo "pipe ${CUDA_MPS_PIPE_DIRECTORY-none}"'
    berth submit --gpu-ids 1 --vram 4000 -- sh -c 'echo "limit ${CUDA_MPS_PINNED_DEVICE_MEM_LIMIT-none}"'
    berth wait @
    is 0 "$(berth logs 1)" 'pipe none'
    is 1 "$(berth logs 2)" 'limit none'
    is gpus "$(berth gpus -o index,mps | tail -n +2 | tr -s ' ' | tr '\n' ' ')" ' 0  1 on '
    ended
    echo 'mps: some' >"$ROOT/config.yaml"
    try berth config check "$ROOT/config.yaml"
    has err "$err$out" "mps: 'some' is none of off, on and GPUs by number, 0-3,5"
}

# A GPU seen through NVIDIA's library; its processes are those of $ROOT/live.
nvidia_daemon()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world
    mkdir "$ROOT/live"
    printf '%s\n' 'driver 550.54' "live $ROOT/live" 'card GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab 24564 564 0' "$@" >"$ROOT/world"
    timeout "$LIMIT" berth daemon start >/dev/null
}

@test "NVIDIA: the server is no stranger, and each client's memory is its job's" {
    nvidia_daemon
    berth submit --vram 8000 -- sh -c "echo 3000 >'$ROOT/live/0.'\$\$; exec '$AWAIT' until 120 'berth show 1 --json' jobs.0.peak_mib.0 3000"
    berth submit --vram 8000 -- sh -c "echo 2000 >'$ROOT/live/0.'\$\$; exec '$AWAIT' until 120 'berth show 2 --json' jobs.0.peak_mib.0 2000"
    berth submit --vram 4000 -- "$AWAIT" prints 120 "ls $ROOT" '^go'
    try berth wait 1 2
    is status "$status" 0
    # The third keeps the server, whose 30 MiB count as used but belong to no program.
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.used_mib 30
    is strangers "$(berth gpus --json | json gpus.0.strangers)" '[]'
    # Nor do they for a daemon that must not start any more control daemons.
    kept=$(keeper)
    sed -i 's/^mps: on/mps: off/' "$BERTH_DIR/config.yaml"
    kill_daemon
    timeout "$LIMIT" berth daemon start >/dev/null
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.used_mib 30
    is strangers "$(berth gpus --json | json gpus.0.strangers)" '[]'
    touch "$ROOT/go"
    berth wait @
    ended
    "$AWAIT" pid "$LIMIT" "$kept"
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.used_mib 0
}
