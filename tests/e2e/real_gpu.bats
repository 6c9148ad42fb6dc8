#!/usr/bin/env bats
# tests/real-gpu/run, complete, with libraries that imitate the NVIDIA driver: the script
# itself, and Berth's reading and assigning of GPUs that are not simulated.

load lib
load containers

R=$BATS_TEST_DIRNAME/../real-gpu
# Here a step is a whole run of the script.
LIMIT=1100
export REAL_GPU_TOTAL=1000 REAL_GPU_PATIENCE=300

case_setup()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    mkdir "$ROOT/driver" "$ROOT/live"
    cc -shared -fPIC -o "$ROOT/driver/libcuda.so.1" "$R/fake_cuda.c"
    cc -shared -fPIC -o "$ROOT/driver/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    cc -o "$ROOT/cuda_job" "$R/cuda_job.c" -ldl
    cp "$R/fake_live_smi" "$ROOT/driver/nvidia-smi"
    cp "$R/fake_mps_control" "$ROOT/driver/nvidia-cuda-mps-control"
    mkdir "$ROOT/mps" "$ROOT/limits"
    cp "$E2E/fake_mps_daemon" "$ROOT/mps/"
    export BERTH_MPS_CONTROL=$ROOT/mps/fake_mps_daemon BERTH_KMSG=$ROOT/kmsg
    echo '6,1,0,-;Linux version 6.12' >"$BERTH_KMSG"
    # Programs executed by its init find the driver, as they would by CDI.
    {
        printf '%s\n' '#!/bin/sh' 'case $1 in import | rmi) exit ;; --version) echo "fake podman"; exit ;; esac'
        sed "s,env -i ,&LD_LIBRARY_PATH=$ROOT/driver BERTH_FAKE_NVML=$ROOT/world FAKE_PODMAN=$ROOT ," "$E2E/fake_podman"
    } >"$ROOT/driver/podman"
    chmod +x "$ROOT/driver/podman"
    export FAKE_PODMAN=$ROOT
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

# With the driver's libraries where the loader finds them, as on a real machine. IN: a function
# to run it in.
real_gpu()
{
    status=0
    ${IN:-} timeout "$LIMIT" env -u BERTH_DIR LD_LIBRARY_PATH="$ROOT/driver" PATH="$ROOT/driver:$PATH" \
        "$R/run" --programs "$prefix" --cuda-job "$ROOT/cuda_job" "$@" >"$ROOT/out" 2>"$ROOT/err" </dev/null || status=$?
    out=$(cat "$ROOT/out")
    err=$(cat "$ROOT/err")
}

# Device nodes that fake_cuda opens for the GPUs of root's jobs, which a device filter may
# deny. The fake driver's minor numbers are 7 and down.
device_nodes()
{
    local n
    [ "$(id -u)" = 0 ] || return 0
    for n in 0 1; do mknod -m 666 "$ROOT/live/nvidia$n" c 195 $((7 - n)) || skip "device nodes cannot be made here"; done
    if LC_ALL=C cat "$ROOT/live/nvidia0" 2>&1 </dev/null | grep -q 'Permission denied'; then skip "devices are off on $ROOT"; fi
}

ONE="GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab 24564 564 0"
TWO="GPU-a1b2c3d4-0000-1111-2222-abcdefabcdef 24564 564 300"

@test "real-gpu on two GPUs: everything holds" {
    machine "$ONE" "$TWO"
    device_nodes
    printf 'cc 0 8 9\ncc 1 8 0\nlink 0 0 1\nlink 1 0 0\n' >>"$BERTH_FAKE_NVML"
    real_gpu --jobs 20
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^1[6-9] held, 0 did not, ([89]|1[0-2]) skipped" # containers: with CDI only
    has out "$out" "^held     compute capabilities .* 0: 8.9; 1: 8.0; 0 joined to 1; 1 joined to 0"
    has out "$out" "^skipped  a job that books cores .*jobs are not bound: NUMA node 3 has no CPUs"
    has out "$out" "^skipped  --cpu-bind .*jobs are not bound: NUMA node 3 has no CPUs"
    has out "$out" "^skipped  a job of two GPUs .*it takes three GPUs"
    has out "$out" "^skipped  MIG instances .*no GPU is divided"
    has out "$out" "^held     each client of an MPS server .* server [0-9]+; nvidia-smi [0-9]+ and [0-9]+, Berth"
    has out "$out" "^skipped  a PyTorch training run"
}

# A new driver on a machine used as root: what it enforces, records and reports.
newest_driver()
{
    machine "$ONE" "$TWO"
    sed -i 's/^driver .*/driver 615.36/' "$BERTH_FAKE_NVML"
    printf '%s\n' "limits $ROOT/limits 0" 'accounting 0 0' 'accounting 1 0' 'watts 0 300' 'watts 1 300' 'load 0 0 40' 'load 1 0 40' >>"$BERTH_FAKE_NVML"
}

@test "real-gpu with a driver that keeps accounts, and tells load, energy and XIDs" {
    newest_driver
    real_gpu '^(the GPU.s load|a job has its part|a job whose processes|a program.s XID|where nothing holds)'
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^held     the GPU's load .* 97 % now, the job's mean [0-9]+ %"
    has out "$out" "^held     a job has its part of the energy .* [0-9]+ J in [0-9]+ s: [0-9]+ W; nvidia-smi 300 W"
    has out "$out" "^held     a job whose processes live shorter .* allocated ([0-9]+) MiB for [0-9]+ ms, peak [0-9]+"
    has out "$out" "^held     a program's XID .* FAILED: .*XID 31 on gpu .*; its neighbour went on"
    has out "$out" "^held     where nothing holds it, .* FAILED: .*; its neighbour went on"
    # What the driver keeps from now on it kept not before.
    is unkept "$(wc -l <"$ROOT/unkept" 2>/dev/null || echo 0)" 0
}

@test "real-gpu with a driver that limits a cgroup's memory: a job is held to its VRAM" {
    [ "$(id -u)" = 0 ] || skip "the driver's limits are root's to set"
    newest_driver
    real_gpu '^(a job beyond its VRAM|a job that met CUDA)'
    echo "$out$err"
    case $out in *"no cgroup v2 tree"* | *"jobs have no cgroup"*) skip "jobs have no cgroup v2 group here" ;; esac
    is status "$status" 0
    has out "$out" "^held     a job beyond its VRAM .* by nvml: capacity of [0-9]+ MiB for [0-9]+ declared; its neighbour went on; attempt [2-5] of another"
    has out "$out" "^held     a job that met CUDA out of memory"
}

@test "real-gpu with MPS as Berth starts it: one server, whose clients have no more than they declared" {
    machine "$ONE" "$TWO"
    real_gpu '^with mps: on'
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^held     with mps: on, .* server [0-9]+, for two jobs; a third one's [0-9]+ MiB did not fit its [0-9]+; it ended with them"
    touch "$ROOT/mps/refuses"
    real_gpu '^with mps: on'
    has out "$out" "^skipped  with mps: on, .* An instance of this daemon is already running"
}

@test "real-gpu with a device filter: CUDA opens the job's own GPU and no other" {
    [ "$(id -u)" = 0 ] || skip "only root's jobs can have a device filter"
    machine "$ONE" "$TWO"
    device_nodes
    real_gpu '^a job can open'
    echo "$out$err"
    case $out in *"skipped  a job can open"*) skip "no device filter can be had here" ;; esac
    is status "$status" 0
    has out "$out" "^held     a job can open .* a job on GPU [01] can use it alone of 2, one without GPUs none"
}

@test "real-gpu where there is little to see: each row that is skipped says why" {
    machine "$ONE"
    printf '%s\n' 'mode 0 3' 'noprocs 0' nocompiler 'load 0 0 40' 'watts 0 300' >>"$BERTH_FAKE_NVML"
    sed -i 's/; processes; }/; }/' "$ROOT/driver/nvidia-smi"
    rm "$BERTH_KMSG" "$ROOT/driver/nvidia-cuda-mps-control" "$ROOT/driver/podman"
    real_gpu --jobs 1 '^(two jobs that fit|each of two|the GPU.s load|a job has its part|a job whose|a job beyond|where nothing|with mps|a program.s XID|a job that met|MIG)'
    echo "$out$err"
    is held "$(grep -c ^held "$ROOT/out")" 0
    is failed "$(grep -c ^FAILED "$ROOT/out")" 0
    # Each skipped line has a reason.
    is silent "$(grep ^skipped "$ROOT/out" | awk 'length($0) < 78' | wc -l)" 0
    has out "$out" "^skipped  two jobs that fit .* compute mode Exclusive_Process"
    has out "$out" "^skipped  the GPU's load .*the driver's compiler .* is missing"
    has out "$out" "^skipped  a job whose processes .* accounting mode is \[N/A\]"
    has out "$out" "^skipped  a job beyond its VRAM .*(615|does not support memory limits|root)"
    has out "$out" "^skipped  a program's XID .*kernel's log cannot be read"
}

@test "real-gpu on a machine with a choice: pairs joined by NVLink are found, else those of one node" {
    machine "$ONE" "$TWO" "${ONE/6ec0/7ec0} " "${TWO/a1b2/b1b2}"
    printf 'link 0 0 2\nlink 2 0 0\nlink 1 0 3\nlink 3 0 1\n' >>"$BERTH_FAKE_NVML"
    real_gpu '^a job of two GPUs'
    is status "$status" 0
    has out "$out" "^held     a job of two GPUs .* GPUs (0 2|1 3) of 4: linked"
    sed -i '/^link/d' "$BERTH_FAKE_NVML"
    real_gpu '^a job of two GPUs'
    has out "$out" "^skipped  a job of two GPUs .* all pairs of GPUs are alike: far"
    export BERTH_SYS=$ROOT/sys
    for card in 0 1 2 3; do
        mkdir -p "$BERTH_SYS/bus/pci/devices/0000:1$card:00.0" "$BERTH_SYS/devices/system/node/node$((card % 2))"
        echo $((card % 2)) >"$BERTH_SYS/bus/pci/devices/0000:1$card:00.0/numa_node"
        echo 0 >"$BERTH_SYS/devices/system/node/node$((card % 2))/cpulist"
    done
    real_gpu '^a job of two GPUs'
    has out "$out" "^held     a job of two GPUs .* GPUs (0 2|1 3) of 4: near"
}

@test "real-gpu on a divided GPU: the rows hold for instances, and say what cannot be seen there" {
    machine "GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab 81920 0 0" "$TWO"
    printf '%s\n' 'name 0 Fake GPU 0' 'mig 0 1' 'instance 0 1 0 MIG-11c0d6f1-3f2c-4b6e-9d0a-0123456789ab 3g.40gb 40448 0 0' \
        'instance 0 7 0 MIG-22c0d6f1-3f2c-4b6e-9d0a-0123456789ab 1g.10gb 9728 0 0' >>"$BERTH_FAKE_NVML"
    real_gpu '(^names|^compute|MIG|order|that fit|60 %|another program|peak|attributed|session)'
    is status "$status" 0
    has out "$out" "^held     names, .* 0: divided by MIG; 2: Fake GPU 1"
    has out "$out" "^held     MIG instances .* 0: 3g.40gb, 40448 MiB; 1: 1g.10gb, 9728 MiB"
    has out "$out" "^skipped  compute capabilities .*divided by MIG"
    has out "$out" "^skipped  each client of an MPS server .*divided by MIG"
    has out "$out" "^held     each of two jobs has its own memory"
    has out "$out" "^9 held, 0 did not, 3 skipped"
    sed -i '/^instance/d' "$BERTH_FAKE_NVML"
    real_gpu 'MIG'
    has out "$out" "^skipped  MIG instances .*MIG mode is on, and there is no instance"
}

@test "real-gpu with podman and a CDI specification: the row about containers holds" {
    if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then skip "only root can have an /etc/cdi of its own"; fi
    command -v crun >/dev/null || skip "there is no crun here"
    machine "$ONE" "$TWO"
    mkdir "$ROOT/cdi"
    printf 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: %s\n- name: %s\n' "${ONE%% *}" "${TWO%% *}" >"$ROOT/cdi/nvidia.yaml"
    CDI=$ROOT/cdi IN=in_machine real_gpu 'in a container'
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^held     a job in a container .* fake podman; it has GPU 0 alone, its [0-9]+ MiB count as the job's"
    has words "$(cat "$ROOT/words")" "^--device=nvidia.com/gpu=${ONE%% *}\$"
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
    real_gpu '^(a job that books cores|--cpu-bind)'
    echo "$out$err"
    is status "$status" 0
    has out "$out" "^held     --cpu-bind .* node: CPUs [0-9]+; off: [0-9]+[-,][0-9,-]+"
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
    real_gpu --jobs 2 '(^names|fit share|60 %|another program|is right|attributed|session)'
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
