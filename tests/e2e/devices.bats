#!/usr/bin/env bats
# A job of the machine's daemon can open the devices of its own GPUs and no others. The nodes
# are made here, with the numbers of NVIDIA's devices: the filter uses numbers. If a GPU exists
# the open succeeds; otherwise it fails with an error other than the filter's.

load lib
load users

make_nodes()
{
    NODES=$ROOT/nodes
    mkdir "$NODES"
    local n
    for n in 0 1 254 255; do
        mknod -m 666 "$NODES/nvidia$n" c 195 "$n" || skip "device nodes cannot be made here"
    done
    # On a file system mounted with nodev the test would show nothing.
    python3 -c 'import errno, sys
try: open(sys.argv[1], "rb")
except OSError as e: sys.exit(e.errno == errno.EACCES)' "$NODES/nvidia0" || skip "devices are off on $NODES"
}

# Print for each node: open, or the error.
LOOK='import errno, os, sys
for n in 0, 1, 254, 255:
    try:
        os.open("%s/nvidia%d" % (sys.argv[1], n), os.O_RDWR)
        word = "open"
    except OSError as e:
        word = errno.errorcode[e.errno]
    print(n, "refused" if word == "EPERM" else "let through")
print(open("/dev/null", "w").write("x"), os.environ["CUDA_VISIBLE_DEVICES"])'

start_filtering()
{
    start_system "$@"
    if [ "$(berth status --json | json daemon.device_filter)" = false ]; then
        grep no-device-filter "$BERTH_DIR/daemon.log" || true
        skip "no device filter can be had here"
    fi
    make_nodes
}

# `job_sees OPTIONS`: print what a job of alice's reports about the nodes.
job_sees()
{
    as "$ALICE" berth submit --wait "$@" -- python3 -c "$LOOK" "$NODES" >/dev/null
    as "$ALICE" berth logs @
}

@test "a job can open its own GPU, no other one, and the devices that all GPUs share" {
    start_filtering
    uuid0=$(berth gpus --json | json gpus.0.uuid)
    uuid1=$(berth gpus --json | json gpus.1.uuid)
    is "a job on card 0" "$(job_sees --gpu-ids 0)" "0 let through
1 refused
254 let through
255 let through
1 $uuid0"
    is "a job on card 1" "$(job_sees --gpu-ids 1)" "0 refused
1 let through
254 let through
255 let through
1 $uuid1"
    has "a job on both" "$(job_sees -G 2)" "0 let through
1 let through"
    has "a job on none" "$(job_sees -G 0)" "0 refused
1 refused"
    is "a job of root's" "$(berth submit --wait -G 0 -- python3 -c "$LOOK" "$NODES" >/dev/null; berth logs @ | head -1)" "0 refused"
}

@test "the filter can be turned off, and doctor says so" {
    start_system --set device_filter=off
    make_nodes
    has "a job on none" "$(job_sees -G 0)" "0 let through
1 let through"
    has "doctor" "$(berth doctor || true)" " devices .*device_filter: on"
}

# AMD GPUs, whose devices are in /dev/dri, with numbers that no real one has.
amd_card()
{
    local at=$ROOT/sys/bus/pci/devices/0000:0$1:00.0
    mkdir -p "$at/drm/renderD$((180 + $1))" "$ROOT/sys/class/drm/card$((50 + $1))"
    printf 'DRIVER=amdgpu\nPCI_ID=1002:740F\nPCI_SLOT_NAME=0000:0%d:00.0\n' "$1" >"$at/uevent"
    echo 17179869184 >"$at/mem_info_vram_total"
    echo 0 >"$at/mem_info_vram_used"
    ln -s "$at" "$ROOT/sys/class/drm/card$((50 + $1))/device"
    mkdir -p "$ROOT/sys/class/kfd/kfd/topology/nodes/$1"
    echo "$1" >"$ROOT/sys/class/kfd/kfd/topology/nodes/$1/gpu_id"
    printf 'simd_count 416\nlocation_id %d\ndomain 0\n' $(($1 << 8)) \
        >"$ROOT/sys/class/kfd/kfd/topology/nodes/$1/properties"
}

LOOK_DRI='import errno, os, sys
for n in 51, 52, 181, 182, 60, 190:
    try:
        os.open("%s/dri%d" % (sys.argv[1], n), os.O_RDWR)
        word = "open"
    except OSError as e:
        word = errno.errorcode[e.errno]
    print(n, "refused" if word == "EPERM" else "let through")
print("rocr", os.environ.get("ROCR_VISIBLE_DEVICES"))'

@test "AMD: a job can open the devices of its own GPUs, and those in /dev/dri that are not Berth's" {
    amd_card 1
    amd_card 2
    export BERTH_SYS=$ROOT/sys BERTH_NVML=/none BERTH_NVIDIA_SMI=/none
    NO_SIM=1 start_filtering
    local n
    for n in 51 52 181 182 60 190; do mknod -m 666 "$NODES/dri$n" c 226 "$n"; done
    LOOK=$LOOK_DRI
    # ROCm's numbering, too, counts only the devices that the filter leaves.
    is "a job on card 1" "$(job_sees --gpu-ids 1)" "51 refused
52 let through
181 refused
182 let through
60 let through
190 let through
rocr 0"
    is "a job on both" "$(job_sees -G 2 | tail -1)" "rocr 0,1"
    has "a job on none" "$(job_sees -G 0)" "181 refused
182 refused
60 let through"
}

# An NVIDIA GPU divided into two instances, and one that is whole; /dev/nvidia-caps with an
# unused number.
LOOK_MIG='import errno, os, sys
for n in "nvidia7", "nvidia6", "cap1", "cap66", "cap67", "cap75", "cap76":
    try:
        os.open("%s/%s" % (sys.argv[1], n), os.O_RDONLY)
        word = "open"
    except OSError as e:
        word = errno.errorcode[e.errno]
    print(n, "refused" if word == "EPERM" else "let through")'

@test "MIG: a job can open what its own instance is opened by, and no other instance" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world BERTH_SYS=$ROOT/sys BERTH_PROC=$ROOT/proc
    local gi n at=$ROOT/proc/driver/nvidia/capabilities/gpu7/mig
    for gi in 7 8; do
        mkdir -p "$at/gi$gi/ci0"
        echo "DeviceFileMinor: $((66 + (gi - 7) * 9))" >"$at/gi$gi/access"
        echo "DeviceFileMinor: $((67 + (gi - 7) * 9))" >"$at/gi$gi/ci0/access"
    done
    printf 'Character devices:\n195 nvidia\n240 nvidia-caps\n' >"$ROOT/proc/devices"
    printf '%s\n' 'card GPU-a 81920 0 0' 'mig 0 1' 'card GPU-b 24576 0 0' \
        'instance 0 7 0 MIG-7 1g.10gb 9728 0 0' 'instance 0 8 0 MIG-8 1g.10gb 9728 0 0' >"$ROOT/world"
    NO_SIM=1 start_filtering
    for n in 6 7; do mknod -m 666 "$NODES/nvidia$n" c 195 "$n"; done
    for n in 1 66 67 75 76; do mknod -m 666 "$NODES/cap$n" c 240 "$n"; done
    LOOK=$LOOK_MIG
    is "a job on the second instance" "$(job_sees --gpu-ids 1)" "nvidia7 let through
nvidia6 refused
cap1 let through
cap66 refused
cap67 refused
cap75 let through
cap76 let through"
    is "a job on the whole GPU" "$(job_sees --gpu-ids 2 | paste -sd' ')" \
        "nvidia7 refused nvidia6 let through cap1 let through cap66 refused cap67 refused cap75 refused cap76 refused"
    is "a job on none" "$(job_sees -G 0 | paste -sd' ')" \
        "nvidia7 refused nvidia6 refused cap1 let through cap66 refused cap67 refused cap75 refused cap76 refused"
    # An instance whose numbers are unknown leaves all accessible.
    rm -r "$at/gi7/ci0"
    berth daemon stop
    NO_SIM=1 start_system
    has "a job on the first instance" "$(job_sees --gpu-ids 0)" "cap76 let through"
}
