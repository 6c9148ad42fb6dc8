#!/usr/bin/env bats
# AMD and Intel GPUs: a daemon with folders that imitate such a machine's /sys and /proc. Jobs
# write there what the kernel would report about their open files.

load lib

case_setup()
{
    SYS=$ROOT/sys PROC=$ROOT/proc
    export BERTH_SYS=$SYS BERTH_PROC=$PROC BERTH_NVML=/none BERTH_NVIDIA_SMI=/none
    mkdir -p "$SYS/class/drm" "$PROC" "$BERTH_DIR"
    echo 'sample_ms: 100' >"$BERTH_DIR/config.yaml"
    unset CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
    cat >use <<'END'
# `use MIB CARD`: a process that uses this much of the card until the daemon has measured it.
here=$PROC/$$
mkdir -p "$here/fd" "$here/fdinfo"
ln -s /dev/dri/renderD$((128 + $2)) "$here/fd/5"
printf 'drm-driver:\tamdgpu\ndrm-client-id:\t%d\ndrm-pdev:\t0000:0%d:00.0\ndrm-resident-vram:\t%d MiB\n' \
    $$ $(($2 + 1)) "$1" >"$here/fdinfo/5"
"$AWAIT" until 120 "berth show $BERTH_JOB_ID --json" "jobs.0.peak_mib.$2" "$1"
status=$?
rm -r "$here"
exit $status
END
    export PROC AWAIT
}

# `device N DRIVER PCI-ID`: card N, at 0000:0(N+1):00.0.
device()
{
    local at=$SYS/bus/pci/devices/0000:0$(($1 + 1)):00.0
    mkdir -p "$at/drm/card$1" "$at/drm/renderD$((128 + $1))" "$at/hwmon/hwmon$1" "$SYS/class/drm/card$1"
    printf 'DRIVER=%s\nPCI_ID=%s\nPCI_SLOT_NAME=0000:0%d:00.0\n' "$2" "$3" $(($1 + 1)) >"$at/uevent"
    ln -s "$at" "$SYS/class/drm/card$1/device"
    echo 42000 >"$at/hwmon/hwmon$1/temp1_input"
}

# `amd N MIB [UUID]`: an AMD card, ROCm's number N.
amd()
{
    local at=$SYS/bus/pci/devices/0000:0$(($1 + 1)):00.0 node=$SYS/class/kfd/kfd/topology/nodes/$1
    device "$1" amdgpu 1002:740F
    echo $(($2 * 1048576)) >"$at/mem_info_vram_total"
    echo 0 >"$at/mem_info_vram_used"
    echo 7 >"$at/gpu_busy_percent"
    echo "AMD Instinct MI210" >"$at/product_name"
    if [ -n "${3:-}" ]; then echo "$3" >"$at/unique_id"; fi
    mkdir -p "$node"
    echo $((100 + $1)) >"$node/gpu_id"
    printf 'simd_count 416\nlocation_id %d\ndomain 0\n' $((($1 + 1) << 8)) >"$node/properties"
}

intel()
{
    local at=$SYS/bus/pci/devices/0000:0$(($1 + 1)):00.0
    device "$1" xe 8086:56A0
    mkdir -p "$at/tile0"
    echo 17179869184 >"$at/tile0/physical_vram_size_bytes"
}

# An NVIDIA card beside them.
nvidia()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world
    printf '%s\n' 'driver 550.54' 'card GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab 24564 564 0' >"$ROOT/world"
}

start()
{
    timeout "$LIMIT" berth daemon start >"$ROOT/start.out" 2>&1 || fail_with "$(cat "$ROOT/start.out")"
}

# `masks OPTIONS`: print the mask variables of a job with these options.
masks()
{
    berth submit --wait "$@" -- sh -c 'env | grep -E "^((CUDA|NVIDIA|ROCR|HIP)_(VIS|DEV)|ZE_|GPU_DEV)" | sort' >/dev/null
    berth logs @
}

@test "AMD: jobs are placed by VRAM, measured by their open files, and see their own GPUs" {
    amd 0 65520 0c1e8a2b5f3d4960
    amd 1 65520 de5d8cf5c5b2d9a1
    start
    is gpus "$(berth gpus --json | json backend) $(berth gpus --json | json driver)" 'drm amdgpu'
    is vendor "$(berth gpus --json | json gpus.1.vendor)" amd
    has gpus "$(berth gpus)" 'AMD Instinct MI210'
    # Two of 40 GiB do not fit on one; the third of 20 fits beside one of them. They start
    # together, or the first would end before the second comes.
    berth submit --hold --vram 40G -- sh use 30000 0
    berth submit --hold --vram 40G -- sh use 39000 1
    berth submit --hold --vram 20G -- true
    berth release 1 2 3
    try berth wait 1 2 3
    is status "$status" 0
    is gpus "$(job_field 1 gpus.0.index) $(job_field 2 gpus.0.index)" '0 1'
    is peaks "$(job_field 1 peak_mib.0) $(job_field 2 peak_mib.1)" '30000 39000'
    is util "$(berth gpus --json | json gpus.0.util) $(berth gpus --json | json gpus.0.temperature_c)" '7 42'
    export CUDA_VISIBLE_DEVICES=9 GPU_DEVICE_ORDINAL=9
    is one "$(masks --gpu-ids 1)" "HIP_VISIBLE_DEVICES=0
ROCR_VISIBLE_DEVICES=GPU-de5d8cf5c5b2d9a1"
    is order "$(masks --gpu-ids 1,0)" "HIP_VISIBLE_DEVICES=0,1
ROCR_VISIBLE_DEVICES=GPU-de5d8cf5c5b2d9a1,GPU-0c1e8a2b5f3d4960"
    is none "$(masks -G 0)" "HIP_VISIBLE_DEVICES=
ROCR_VISIBLE_DEVICES="
    has set-up "$(masks --gpu-ids 0 --env-setup 'export ROCR_VISIBLE_DEVICES=7 HIP_VISIBLE_DEVICES=7')" 'ROCR_VISIBLE_DEVICES=GPU-0c1e'
}

@test "AMD: GPUs without a UUID go by their number; integrated and unreadable ones are left out" {
    amd 0 512
    echo vddnb >"$SYS/class/drm/card0/device/hwmon/hwmon0/in1_label"
    amd 1 24560
    amd 2 24560
    : >"$SYS/class/drm/card2/device/mem_info_vram_total"
    start
    is gpus "$(berth gpus --json | json gpus | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))')" 1
    is uuid "$(berth gpus --json | json gpus.0.uuid)" PCI-0000:02:00.0
    has masks "$(masks)" ROCR_VISIBLE_DEVICES=1
    has log "$(cat "$BERTH_DIR/daemon.log")" 'event=gpu-left-out 0000:01:00.0 \(amdgpu\) .* integrated'
    has doctor "$(berth doctor || true)" 'gpus .*0000:03:00.0 \(amdgpu\) is left out: the size of its memory'
    # The needs of programs are checked, too.
    mkdir -p "$ROOT/dev/dri"
    : >"$ROOT/dev/kfd"
    BERTH_DOCTOR_ROOT=$ROOT try berth doctor
    has doctor "$out" 'devices .*/dev/dri/renderD129 cannot be opened: No such file.*--device'
    has_not doctor "$out" /dev/kfd
}

@test "AMD: a program outside Berth is seen, and a job waits for its memory" {
    amd 0 24560 0c1e8a2b5f3d4960
    echo 21474836480 >"$SYS/class/drm/card0/device/mem_info_vram_used"
    start
    berth submit --vram 8G -- true
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.reason GpuMemory
    echo 0 >"$SYS/class/drm/card0/device/mem_info_vram_used"
    try berth wait 1
    is status "$status" 0
}

@test "AMD: a GPU that disappears is lost, and the other goes on" {
    amd 0 24560 0c1e8a2b5f3d4960
    amd 1 24560 de5d8cf5c5b2d9a1
    start
    rm "$SYS/class/drm/card0/device"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.state lost
    berth submit -- true
    try berth wait 1
    is gpu "$status $(job_field 1 gpus.0.index)" '0 1'
}

@test "Intel: GPUs go by Level Zero's numbers, and what is used is what processes have" {
    device 0 i915 8086:A780
    sed -i 's/0000:01:00.0/0000:00:02.0/' "$SYS/class/drm/card0/device/uevent"
    intel 1
    intel 2
    start
    is gpus "$(berth gpus --json | json gpus.0.vendor) $(berth gpus --json | json gpus.0.total_mib)" 'intel 16384'
    if [ "$(id -u)" = 0 ]; then
        is used "$(berth gpus --json | json gpus.0.used_mib)" 0
    fi
    is masks "$(masks --gpu-ids 1)" "ZE_AFFINITY_MASK=2
ZE_ENABLE_PCI_ID_DEVICE_ORDER=1
ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"
}

@test "NVIDIA and AMD in one machine: each job sees the GPUs of its own vendor only" {
    nvidia
    amd 0 24560 0c1e8a2b5f3d4960
    amd 1 24560 de5d8cf5c5b2d9a1
    start
    is gpus "$(berth gpus --json | json backend) $(berth gpus --json | json gpus.0.vendor) $(berth gpus --json | json gpus.2.vendor)" \
        'nvml+drm nvidia amd'
    is nvidia "$(masks --gpu-ids 0)" "CUDA_DEVICE_ORDER=PCI_BUS_ID
CUDA_VISIBLE_DEVICES=0
HIP_VISIBLE_DEVICES=
NVIDIA_VISIBLE_DEVICES=GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab
ROCR_VISIBLE_DEVICES="
    is amd "$(masks --gpu-type mi210)" "CUDA_DEVICE_ORDER=PCI_BUS_ID
CUDA_VISIBLE_DEVICES=
HIP_VISIBLE_DEVICES=0
NVIDIA_VISIBLE_DEVICES=void
ROCR_VISIBLE_DEVICES=GPU-0c1e8a2b5f3d4960"
    # Several GPUs are of one vendor, whichever has enough.
    berth submit -G 2 -- true
    berth wait @
    is gpus "$(job_field @ gpus.0.index) $(job_field @ gpus.1.index)" '1 2'
    try berth submit -G 3 -- true
    is status "$status" 6
}

# NVIDIA's only GPU is divided into these instances.
divide()
{
    {
        printf '%s\n' 'driver 550.54' 'card GPU-aaaa 81920 0 0' 'mig 0 1'
        for instance; do echo "instance 0 $instance"; done
    } >"$ROOT/world.new"
    mv "$ROOT/world.new" "$ROOT/world"
}

@test "MIG instances that are made or removed beside an AMD GPU come and go with the same probe" {
    nvidia
    divide
    amd 0 24560 0c1e8a2b5f3d4960
    printf '%s\n' 'idle_sample_ms: 100' 'mig_wait_ms: 0' 'probe_deadline_ms: 600000' >>"$BERTH_DIR/config.yaml"
    start
    probe=$(pgrep -P "$(daemon_pid)" berth-probe)
    is gpus "$(berth gpus --json | json gpus.0.vendor)" amd
    has doctor "$(berth doctor || true)" 'in MIG mode and has no instances; make some with'
    divide '7 0 MIG-1111 1g.10gb 9728 0 0'
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.1.uuid MIG-1111
    is mask "$(masks --gpu-type 1g.10gb | sed -n 's/^CUDA_VISIBLE_DEVICES=//p')" MIG-1111
    divide
    "$AWAIT" prints "$LIMIT" "berth gpus --json | grep -c MIG- || true" '^0$'
    is gpus "$(berth gpus --json | json gpus.0.state)" up
    divide '8 0 MIG-2222 1g.10gb 9728 0 0'
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.1.uuid MIG-2222
    is mask "$(masks --gpu-type mi210 | sed -n 's/^HIP_VISIBLE_DEVICES=//p')" 0
    is probe "$(pgrep -P "$(daemon_pid)" berth-probe)" "$probe"
}

@test "NVIDIA's driver that is loaded later: its GPUs come without a restart, beside the others" {
    amd 0 24560 0c1e8a2b5f3d4960
    nvidia
    echo 'init 9' >>"$ROOT/world"
    start
    is backend "$(berth gpus --json | json backend)" drm
    berth submit --gpu-ids 0 --vram 1000 -- "$AWAIT" prints 120 "ls $ROOT" '^go'
    wait_until_running 1
    sed -i /^init/d "$ROOT/world"
    mkdir -p "$PROC/driver/nvidia"
    echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Thu' >"$PROC/driver/nvidia/version"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' backend nvml+drm
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.vendor nvidia
    is first "$(berth gpus --json | json gpus.0.uuid)" GPU-0c1e8a2b5f3d4960
    has cuda "$(masks --gpu-type fake)" CUDA_VISIBLE_DEVICES=
    is running "$(job_field 1 state) $(job_field 1 gpus.0.index)" 'RUNNING 0'
    touch "$ROOT/go"
    try berth wait 1
    is status "$status" 0
}

@test "NVIDIA's driver and library that disagree beside an AMD GPU: said, and NVIDIA's GPUs come once they agree" {
    amd 0 24560 0c1e8a2b5f3d4960
    nvidia
    echo 'idle_sample_ms: 100' >>"$BERTH_DIR/config.yaml"
    mkdir -p "$PROC/driver/nvidia"
    echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54  Thu' >"$PROC/driver/nvidia/version"
    echo 'init 18' >>"$ROOT/world"
    start
    is backend "$(berth gpus --json | json backend)" drm
    try berth health
    has health "$out" "^warn +gpu +NVIDIA's GPUs are left out: NVML cannot start: Driver/library version mismatch .*reboot"
    try berth doctor
    has doctor "$out" "NVIDIA's GPUs are left out"
    sed -i /^init/d "$ROOT/world"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' backend nvml+drm
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.vendor nvidia
    try berth health
    has_not health "$out" 'left out'
}
