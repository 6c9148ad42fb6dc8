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
    real_gpu --jobs 20
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^12 held, 0 did not, 1 skipped"
    has out "$out" "^skipped  a PyTorch training run"
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
