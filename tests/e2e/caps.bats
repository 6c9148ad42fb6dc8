#!/usr/bin/env bats
# Caps: a job that shares a GPU is held to its declared VRAM, by simulated GPUs that support it
# (+cap) and by a library that imitates NVIDIA's driver with memory limits.

load lib

case_setup()
{
    mkdir -p "$BERTH_DIR"
    echo 'sample_ms: 100' >"$BERTH_DIR/config.yaml"
}

case_teardown()
{
    if [ -n "${elsewhere:-}" ]; then find "$elsewhere" -depth -type d -exec rmdir {} +; fi
}

# Caps are lifted once a job's end is recorded.
all_are_lifted()
{
    "$AWAIT" prints "$LIMIT" "cat '$BERTH_DIR/sim/caps' | wc -c" '^0$'
}

setting()
{
    printf '%s: %s\n' "$@" >>"$BERTH_DIR/config.yaml"
}

@test "a job beyond what it declared fails its own allocation; its neighbour goes on" {
    start_daemon 1+cap
    berth submit --vram 8000 -- "$E2E/seen" 8000
    berth submit --vram 8000 -- berth simjob --vram 12000 --ramp 0 --hold 60
    try berth wait 2
    is status "$status" 1
    is state "$(job_field 2 state)" OUT_OF_MEMORY
    has log "$(berth logs 2)" 'CUDA out of memory.* total capacity of 8800 MiB of which 8800 MiB is free'
    try berth wait 1
    is neighbour "$status" 0
    # The cap that was applied is recorded, and lifted with its job.
    is held "$(job_field 2 attempts.0.cap_mib)" 8800
    has show "$(berth show 2)" 'attempt 1 .*, held to 8.6 GiB'
    all_are_lifted
}

@test "an out-of-memory at the cap is tried again with more" {
    start_daemon 1+cap
    berth submit --vram 8000 --oom-retries 1 -- berth simjob --vram 9600 --ramp 0 --hold 0.5
    try berth wait 1
    is status "$status" 0
    is attempts "$(job_field 1 attempts.1.vram_mib) $(job_field 1 attempts.1.cap_mib)" '10000 11000'
}

@test "all processes of a job together are held, and their use is the measurement" {
    start_daemon 1+cap
    berth submit --vram 8000 -- sh -c "berth simjob --vram 5000 --ramp 0 --hold 100000 &
        first=\$!; '$AWAIT' until 120 'berth show 1 --json' jobs.0.peak_mib.0 5000
        berth simjob --vram 3000 --ramp 0 --hold 100000 & second=\$!
        '$AWAIT' until 120 'berth show 1 --json' jobs.0.peak_mib.0 8000
        berth simjob --vram 4000 --ramp 0; kill \$first \$second; exit 0"
    try berth wait 1
    is status "$status" 0
    has log "$(berth logs 1)" 'of which 800 MiB is free'
    is peak "$(job_field 1 peak_mib.0)" 8000
}

@test "whole GPUs, --vram-cap off and GPUs that cannot are not held" {
    start_daemon 1+cap,1
    berth submit --gpu-ids 0 -- true
    berth submit --gpu-ids 0 --vram 8000 --vram-cap off -- sh -c 'echo "cap ${BERTH_VRAM_CAP_MIB-none}"'
    berth submit --gpu-ids 1 --vram 8000 -- true
    berth submit --gpu-ids 0 --vram 8000 -- sh -c 'echo "cap $BERTH_VRAM_CAP_MIB; $XLA_PYTHON_CLIENT_MEM_FRACTION"'
    berth wait @
    is caps "$(for i in 1 2 3 4; do job_field $i attempts.0.cap_mib; done | paste -sd' ')" 'null null null 8800'
    is off "$(berth logs 2)" 'cap none'
    is on "$(berth logs 4)" 'cap 8800; 0.909'
    is gpus "$(berth gpus --json | json gpus.0.cap) $(berth gpus --json | json gpus.1.cap)" 'sim null'
    has why "$(berth gpus --json | json gpus.1.cap_why)" '\+cap'
    has doctor "$(berth doctor || true)" 'vram .*gpu 0: jobs that share it are held to their VRAM by the simulator'
    has doctor "$(berth doctor || true)" 'vram .*gpu 1: .* measured, not enforced'
}

@test "--vram-cap require: on GPUs that can only, and refused where none can" {
    start_daemon 1,1+cap
    berth submit --vram 8000 --vram-cap require -- true
    berth wait 1
    is gpu "$(job_field 1 gpus.0.index)" 1
    has show "$(berth show 1)" 'vram-cap +require'
    try berth submit --gpu-ids 0 --vram 8000 --vram-cap require -- true
    is status "$status" 6
    has words "$err" "gpu 0 cannot enforce a job's VRAM: simulated GPUs enforce it with \+cap only"
    # A jobs file's line behaves like any other job.
    echo '[vram=8G vram-cap=require] true' >jobs.txt
    berth run jobs.txt >/dev/null
    is gpu "$(job_field 2 gpus.0.index)" 1
}

@test "a driver that refuses: the job runs without, or waits where it must be held" {
    start_daemon 1+cap
    echo no-caps >"$BERTH_DIR/sim/fault"
    berth submit --vram 8000 -- true
    try berth wait 1
    is status "$status" 0
    is attempts "$(job_field 1 attempts.0.outcome) $(job_field 1 attempts.1.cap_mib)" 'never_ran null'
    has why "$(job_field 1 attempts.0.text)" 'cannot enforce its VRAM: simulated refusal'
    berth submit --vram 8000 --vram-cap require -- true
    "$AWAIT" prints "$LIMIT" 'berth explain 2' 'GpuCap: .*gpu 0 cannot enforce its VRAM now: simulated refusal'
    has words "$(berth explain 2)" '--vram-cap auto'
    has gpus "$(berth gpus --json | json gpus.0.cap_why)" 'simulated refusal'
    # Another daemon probes again.
    rm "$BERTH_DIR/sim/fault"
    berth daemon stop
    berth daemon start --sim 1+cap >/dev/null
    try berth wait 2
    is status "$status" 0
    is held "$(job_field 2 attempts.0.cap_mib)" 8800
}

@test "the settings decide: require binds every job, off takes it away" {
    setting vram_cap require tolerance 0
    start_daemon 1+cap
    berth submit --vram 8000 --vram-cap off -- true
    berth wait 1
    is held "$(job_field 1 attempts.0.cap_mib)" 8000
    sed -i 's/require/off/' "$BERTH_DIR/config.yaml"
    kill -HUP "$(daemon_pid)"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=reloaded
    berth submit --vram 8000 -- true
    berth wait 2
    is held "$(job_field 2 attempts.0.cap_mib)" null
    try berth submit --vram 8000 --vram-cap require -- true
    is status "$status" 6
    has words "$err" 'the settings have vram_cap: off'
}

@test "a cap holds across daemons, and is lifted after a supervisor that was killed" {
    start_daemon 1+cap
    mkfifo gate
    berth submit --vram 8000 -- sh -c 'read line <gate; berth simjob --vram 9000 --ramp 0 --hold 60'
    wait_until_running 1
    berth daemon stop
    start_daemon 1+cap
    timeout "$LIMIT" sh -c 'echo go >gate'
    try berth wait 1
    is state "$(job_field 1 state)" OUT_OF_MEMORY
    berth submit --vram 8000 -- sh -c 'kill -KILL $PPID; exec sleep 1000'
    try berth wait 2
    is state "$(job_field 2 state)" LOST
    all_are_lifted
}

# A machine with NVIDIA's library, which limits a cgroup's memory if LIMITS is a folder.
nvidia_daemon()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world
    mkdir -p "$ROOT/limits" "$ROOT/live"
    printf '%s\n' 'driver 615.36' "live $ROOT/live" 'card GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab 24564 564 0' \
        "limits $ROOT/limits 0" >"$ROOT/world"
    timeout "$LIMIT" berth daemon start >/dev/null
    [ "$(berth status --json | json daemon.cgroup)" != null ] || skip "jobs have no cgroup v2 group here"
    [ "$(id -u)" = 0 ] || skip "the driver's limits are root's to set"
}

@test "NVIDIA: the driver limits the job's group before the command runs, and reports its use" {
    nvidia_daemon
    is cap "$(berth gpus --json | json gpus.0.cap)" nvml
    has doctor "$(berth doctor || true)" "gpu 0: jobs that share it are held to their VRAM by the driver's memory limits"
    # 3,000 MiB in one process, which the driver's library lists while the process lives.
    berth submit --vram 8000 -- sh -c "cat '$ROOT'/limits/*job-1.1; ls '$ROOT/limits'
        echo 3000 >'$ROOT/live/0.'\$\$; exec '$AWAIT' until 120 'berth show 1 --json' jobs.0.peak_mib.0 3000"
    try berth wait 1
    is status "$status" 0
    has limits "$(berth logs 1)" '^0 9227468800$'
    has file "$(berth logs 1)" '^0,.*,berth-.*,job-1.1$'
    "$AWAIT" prints "$LIMIT" "ls '$ROOT/limits' | wc -l" '^0$'
    # If the driver returns an error the job runs without a cap, and is shown as such.
    sed -i 's/^limits \(.*\) 0/limits \1 9/' "$ROOT/world"
    berth submit --vram 8000 -- true
    try berth wait 2
    is status "$status" 0
    has why "$(job_field 2 attempts.0.text)" 'the driver does not limit its memory: Driver Not Loaded'
}

# Process lists are empty here, so the group's memory is all that is seen.
@test "NVIDIA: a daemon whose jobs' groups are elsewhere than its own still reads their use" {
    nvidia_daemon
    elsewhere=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/berth-test-$$
    mkdir "$elsewhere" 2>/dev/null || { elsewhere=; skip 'cannot make a cgroup'; }
    echo 'noprocs 0' >>"$ROOT/world"
    mkfifo gate
    berth submit --vram 8000 -- sh -c "read line <gate; echo 3000 >'$ROOT/live/0.'\$\$; exec sleep 1000"
    wait_until_running 1
    before=$(berth status --json | json daemon.cgroup)
    kill_daemon
    timeout "$LIMIT" sh -c 'echo $$ >"$0/cgroup.procs" && exec berth daemon start' "$elsewhere" >/dev/null
    [ "$(berth status --json | json daemon.cgroup)" != "$before" ] || fail_with "both daemons use $before"
    timeout "$LIMIT" sh -c 'echo go >gate'
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.peak_mib.0 3000
    berth cancel 1
    "$AWAIT" prints "$LIMIT" "ls '$ROOT/limits' | wc -l" '^0$'
}

@test "NVIDIA: an older driver has no limits, which is said, and nothing is claimed" {
    nvidia_daemon
    berth daemon stop
    sed -i '/^limits/d' "$ROOT/world"
    timeout "$LIMIT" berth daemon start >/dev/null
    is cap "$(berth gpus --json | json gpus.0.cap)" null
    has why "$(berth gpus --json | json gpus.0.cap_why)" 'does not support memory limits'
    berth submit --vram 8000 -- true
    berth wait 1
    is held "$(job_field 1 attempts.0.cap_mib)" null
}
