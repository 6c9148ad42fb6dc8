#!/usr/bin/env bats
# tests/real-gpu/run, whole, against libraries that play the NVIDIA driver: the script itself, and
# Berth's way of reading and giving out GPUs that are not simulated ones.

load lib

R=$BATS_TEST_DIRNAME/../real-gpu
# A step is a whole run of the script here.
LIMIT=280

case_setup()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    mkdir "$ROOT/driver" "$ROOT/live"
    cc -shared -fPIC -o "$ROOT/driver/libcuda.so.1" "$R/fake_cuda.c"
    cc -shared -fPIC -o "$ROOT/driver/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    cc -o "$ROOT/cuda_job" "$R/cuda_job.c" -ldl
    cp "$R/fake_live_smi" "$ROOT/driver/nvidia-smi"
    export BERTH_FAKE_NVML=$ROOT/world
    prefix=$(dirname "$(dirname "$(readlink -f "$(command -v berth)")")")
}

# machine CARD...: each "UUID TOTAL RESERVED USED"
machine()
{
    local card
    {
        echo "driver 550.54.14"
        echo "live $ROOT/live"
        for card in "$@"; do echo "card $card"; done
    } >"$BERTH_FAKE_NVML"
}

# With the driver's libraries where the loader finds them, as on a real machine.
real_gpu()
{
    try env -u BERTH_DIR LD_LIBRARY_PATH="$ROOT/driver" PATH="$ROOT/driver:$PATH" \
        "$R/run" --programs "$prefix" --cuda-job "$ROOT/cuda_job" "$@"
}

ONE="GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab 24564 564 0"
TWO="GPU-a1b2c3d4-0000-1111-2222-abcdefabcdef 24564 564 300"

@test "real-gpu on two GPUs: everything holds" {
    machine "$ONE" "$TWO"
    printf 'cc 0 8 9\ncc 1 8 0\nlink 0 0 1\nlink 1 0 0\n' >>"$BERTH_FAKE_NVML"
    real_gpu --jobs 20
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^13 held, 0 did not, 2 skipped"
    has out "$out" "^held     compute capabilities .* 0: 8.9; 1: 8.0; 0 joined to 1; 1 joined to 0"
    has out "$out" "^skipped  a job that books cores .*jobs are not bound: NUMA node 3 has no CPUs"
    has out "$out" "^skipped  a PyTorch training run"
}

@test "the CPUs near a GPU are those of the node that the kernel says, and bind its jobs" {
    if [ "$(nproc)" -lt 2 ]; then skip "one CPU only"; fi
    machine "$ONE" "$TWO"
    export BERTH_SYS=$ROOT/sys
    local cpu node=0
    for cpu in $(taskset -pc $$ | sed 's/.*: //' | tr ',-' '  ' | awk '{ print $1, $NF }'); do
        mkdir -p "$BERTH_SYS/devices/system/node/node$node" "$BERTH_SYS/bus/pci/devices/0000:1$node:00.0"
        echo "$cpu" >"$BERTH_SYS/devices/system/node/node$node/cpulist"
        echo "$node" >"$BERTH_SYS/bus/pci/devices/0000:1$node:00.0/numa_node"
        node=$((node + 1))
    done
    real_gpu '^a job that books cores'
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^held     a job that books cores .* CPUs [0-9]+ of node [01]"
}

@test "without a driver, or with one that shows no GPU: 77 and the reason" {
    machine
    real_gpu
    is status "$status" 77
    has err "$err" "skipped: cuda_job: CUDA shows no GPU: CUDA_ERROR_NO_DEVICE"
    rm "$ROOT/driver/libcuda.so.1"
    real_gpu
    is status "$status" 77
    has err "$err" "skipped: cuda_job: no NVIDIA driver: .*libcuda.so.1"
}

@test "where the driver lists no processes, as in a container: the rest holds, on one GPU" {
    machine "$ONE"
    echo "noprocs 0" >>"$BERTH_FAKE_NVML"
    sed -i 's/; processes; }/; }/' "$ROOT/driver/nvidia-smi"
    real_gpu --jobs 2 '(^names|share|60 %|another program|peak|attributed|session)'
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^skipped  each of two jobs has its own memory attributed .*container"
    has out "$out" "^held     another program's memory .* left; a job of 70 % waited"
}

@test "problems are reported with exit status 1" {
    machine "$ONE"
    sed -i 's/"card" { printf/"card" { $3 *= 2; printf/' "$ROOT/driver/nvidia-smi"
    real_gpu '^names'
    is status "$status" 1
    has out "$out" "^FAILED   names, .* GPU 0 has 49128 MiB, 564 reserved; for Berth 24000"
    has out "$out" "^0 held, 1 did not"
}
