#!/usr/bin/env bats
# MIG: the instances of a divided GPU are the GPUs that jobs get. A library imitates NVIDIA's
# driver; the file `world` describes the partition and the processes' memory.

load lib

case_setup()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world BERTH_KMSG=$ROOT/kmsg BERTH_NVIDIA_SMI=/none
    # Hide the machine's own GPUs and devices.
    export BERTH_SYS=$ROOT/sys BERTH_PROC=$ROOT/proc
    mkdir -p "$ROOT/live" "$ROOT/sys" "$ROOT/proc" "$BERTH_DIR"
    : >"$ROOT/kmsg"
    echo 'sample_ms: 100' >"$BERTH_DIR/config.yaml"
    echo 'idle_sample_ms: 100' >>"$BERTH_DIR/config.yaml"
}

# `divide INSTANCE...`: GPU 0 gets these instances, GPU 1 is whole. Written atomically, since
# it is read all the time.
divide()
{
    {
        printf '%s\n' 'driver 550.54' "live $ROOT/live" 'card GPU-aaaa 81920 0 0' 'name 0 NVIDIA A100-SXM4-80GB' \
            'load 0 50 61' 'mig 0 1' 'card GPU-bbbb 24576 0 0' 'name 1 NVIDIA RTX A5000'
        for instance; do echo "instance 0 $instance"; done
    } >"$ROOT/world.new"
    mv "$ROOT/world.new" "$ROOT/world"
}

SMALL_1='7 0 MIG-1111 1g.10gb 9728 0 0'
SMALL_2='8 0 MIG-2222 1g.10gb 9728 0 0'
LARGE='1 0 MIG-3333 3g.40gb 40448 0 0'

start_divided()
{
    divide "$@"
    timeout "$LIMIT" berth daemon start >/dev/null
}

gpu()
{
    berth gpus --json | json "gpus.$1"
}

becomes()
{
    "$AWAIT" until "$LIMIT" 'berth gpus --json' "$@"
}

@test "the instances are GPUs with their own memory, name and UUID; the divided GPU is none" {
    start_divided "$SMALL_1" "$LARGE"
    is names "$(gpu 0.name), $(gpu 1.name), $(gpu 2.name)" \
        'NVIDIA A100-SXM4-80GB MIG 1g.10gb, NVIDIA A100-SXM4-80GB MIG 3g.40gb, NVIDIA RTX A5000'
    is number "$(berth gpus --json | json gpus.3 2>/dev/null || echo none)" none
    is uuid "$(gpu 0.uuid) $(gpu 0.total_mib) $(gpu 0.temperature_c) $(gpu 0.util)" 'MIG-1111 9728 61 null'
    is part "$(gpu 0.mig.gpu) $(gpu 0.mig.gi) $(gpu 0.mig.ci) $(gpu 2.mig)" 'GPU-aaaa 7 0 null'
    has metrics "$(berth metrics --prometheus)" 'berth_gpu_info.gpu="0",uuid="MIG-1111",name="NVIDIA A100-SXM4-80GB MIG 1g.10gb". 1'
    has table "$(berth gpus)" 'MIG 3g.40gb'
}

@test "jobs are placed on instances by profile, size and number, and see them by UUID" {
    start_divided "$SMALL_1" "$LARGE"
    local show='echo "$CUDA_VISIBLE_DEVICES $BERTH_GPUS $BERTH_GPU_UUIDS $NVIDIA_VISIBLE_DEVICES"'
    berth submit --gpu-type 3g.40gb -- sh -c "$show"
    berth submit --vram 20G -- sh -c "$show"
    berth submit --gpu-ids 0 --vram 4G -- sh -c "$show"
    berth submit --gpu-type a5000 -- sh -c "$show"
    berth wait @
    is type "$(berth logs 1)" 'MIG-3333 1 MIG-3333 MIG-3333'
    is size "$(berth logs 2)" 'GPU-bbbb 2 GPU-bbbb GPU-bbbb'
    is id "$(berth logs 3)" 'MIG-1111 0 MIG-1111 MIG-1111'
    is whole "$(berth logs 4)" 'GPU-bbbb 2 GPU-bbbb GPU-bbbb'
    try berth submit --gpu-ids 0 --vram 20G -- true
    is status "$status" 6
    has words "$err" 'the largest has 9.5 GiB'
}

@test "--gpu-ids takes UUIDs, or their beginning, beside numbers; a wrong one is refused with what there is" {
    start_divided "$SMALL_1" "$LARGE"
    berth submit --gpu-ids MIG-3333 -- true
    berth submit --gpu-ids gpu-b -- true
    printf '%s\n' '[gpu-ids=MIG-1111 vram=1G] true' '[gpu-ids=MIG-11] true' >jobs.txt
    berth run jobs.txt >/dev/null
    berth wait @
    is ids "$(for i in 1 2 3 4; do job_field $i gpus.0.uuid; done | paste -sd' ')" 'MIG-3333 GPU-bbbb MIG-1111 MIG-1111'
    is number "$(job_field 1 gpu_ids.0)" 1
    # The same lines are the same jobs.
    berth run jobs.txt >/dev/null
    is jobs "$(job_field 5 id 2>/dev/null || echo none)" none
    try berth submit --gpu-ids MIG-9999 -- true
    is status "$status" 2
    has words "$err" "gpu-ids: no GPU 'MIG-9999'; use 0-2, a UUID or its beginning such as 'MIG-1111'"
    try berth submit --gpu-ids MIG- -- true
    has words "$err" "'MIG-' matches the UUIDs of gpu 0 and gpu 1; write more of it"
    try berth submit --gpu-ids 2,GPU-bbbb -- true
    has words "$err" 'gpu-ids names GPU 2 twice'
    try berth submit --gpu-ids MIG-1111,,2 -- true
    has words "$err" "'MIG-1111,,2' is no list of GPUs"
    try berth submit --gpus 2 --gpu-ids MIG-1111 -- true
    has words "$err" 'gpus=2, but gpu-ids names 1'
}

@test "a job that requests several GPUs gets no instance, and is told why" {
    start_divided "$SMALL_1" "$SMALL_2" "$LARGE"
    try berth submit --gpus 2 -- true
    is status "$status" 6
    has words "$err" 'needs 2 GPUs, but only 1 is no MIG instance, and a CUDA program can use only one MIG instance; request one'
    try berth submit --gpus 2 --gpu-type 1g.10gb -- true
    is status "$status" 6
    has words "$err" 'only 0 are no MIG instance'
    try berth submit --gpu-ids 0,1 -- true
    is status "$status" 6
    has words "$err" 'gpu 0 is a MIG instance, beside which a CUDA program can use no other GPU; request it alone'
    # A job that can run beside it starts there.
    berth submit --gpus 1 --gpu-ids 1 -- true
    berth wait @
}

@test "memory and processes count for the instance they are on" {
    start_divided "$SMALL_1" "$SMALL_2"
    berth submit --gpu-ids 1 --vram 4G -- sh -c "echo 3000 >'$ROOT/live/9.'\$\$
        exec '$AWAIT' until 120 'berth show 1 --json' jobs.0.peak_mib.1 3000"
    try berth wait 1
    is status "$status" 0
    # Another program's memory leaves no room on its instance, and takes none on the others.
    sleep 1000 &
    background_pids=$!
    echo 9000 >"$ROOT/live/8.$background_pids"
    becomes gpus.0.used_mib 9000
    is other "$(gpu 1.external_mib)" 0
    berth submit --vram 4G --gpu-type 1g.10gb -- true
    berth wait 2
    is gpu "$(job_field 2 gpus.0.index)" 1
}

@test "a new partition: a job on a removed instance goes on, waiting ones get the new instances" {
    echo 'mig_wait_ms: 86400000' >>"$BERTH_DIR/config.yaml"
    start_divided "$SMALL_1" "$SMALL_2"
    mkfifo gate
    berth submit --gpu-ids 0 -- sh -c 'read x <gate; exit 3'
    berth submit --gpu-type 1g.10gb -- sleep 1000
    wait_until_running 1 2
    # It fits no free GPU, and no GPU of that type remains when the partition changes.
    berth submit --gpu-type 1g.10gb -- true
    # The first two are replaced by another two, of which one is like them.
    divide "$LARGE" '9 0 MIG-4444 1g.10gb 9728 0 0'
    wait_for_event kind=ended job=3 exit_status=0
    is gpu "$(job_field 3 gpus.0.uuid)" MIG-4444
    # A missing instance keeps its number while it may come back; new ones get new numbers.
    is states "$(gpu 0.state) $(gpu 1.state) $(gpu 3.state) $(gpu 4.state)" 'lost lost up up'
    is uuids "$(gpu 0.uuid) $(gpu 2.uuid) $(gpu 3.uuid)" 'MIG-1111 GPU-bbbb MIG-3333'
    has why "$(gpu 0.state_text)" 'its MIG instance was removed'
    is running "$(job_field 1 state)" RUNNING
    timeout "$LIMIT" sh -c 'echo >gate'
    try berth wait 1
    has why "$(job_field 1 attempts.0.text)" 'GPU fault on gpu 0: its MIG instance was removed'
    # Nothing starts on it, and a job that fits nothing else waits for it to come back.
    berth submit --gpu-ids 0 -- true
    has explain "$(berth explain 4)" 'GpuSick: .*its MIG instance was removed'
    divide "$SMALL_1" "$LARGE" '9 0 MIG-4444 1g.10gb 9728 0 0'
    wait_for_event kind=ended job=4 exit_status=0
    is uuid "$(job_field 4 gpus.0.uuid)" MIG-1111
}

@test "an instance that stays away is gone: not listed, its number given to the next, jobs for it refused" {
    echo 'mig_wait_ms: 0' >>"$BERTH_DIR/config.yaml"
    start_divided "$SMALL_1" "$SMALL_2"
    mkfifo gate
    berth submit --gpu-ids 1 -- sh -c 'read x <gate'
    wait_until_running 1
    berth submit --hold --gpu-ids 0 -- true
    divide
    # The number of an instance with a job is not reused, and a job that must wait is never
    # refused.
    becomes gpus.0.index 1
    is state "$(gpu 0.state)" lost
    berth release 2
    wait_for_event kind=ended job=2 state=INFEASIBLE
    has why "$(job_field 2 text)" 'gpu 0 is gone: its MIG instance was removed'
    divide "$LARGE"
    becomes gpus.0.uuid MIG-3333
    is number "$(gpu 0.index)" 0
    berth submit --gpu-type 3g -- sh -c 'echo $BERTH_GPUS'
    try berth wait 3
    is log "$(berth logs 3)" 0
    timeout "$LIMIT" sh -c 'echo >gate'
    berth wait 1
    becomes gpus.1.uuid GPU-bbbb
    has health "$(berth health)" 'all 2 GPUs are available'
    has metrics "$(berth metrics --prometheus)" 'gpu="2",uuid="GPU-bbbb"'
    if berth metrics --prometheus | grep MIG-2222; then fail_with "an instance that is gone is in the metrics"; fi
    # Numbers survive a restart while jobs wait.
    berth submit --hold -- true
    stop_daemon
    timeout "$LIMIT" berth daemon start >/dev/null
    is numbers "$(gpu 0.uuid) $(gpu 0.index) $(gpu 1.uuid) $(gpu 1.index)" 'MIG-3333 0 GPU-bbbb 2'
}

@test "a number that a held job names is not given to another instance" {
    echo 'mig_wait_ms: 0' >>"$BERTH_DIR/config.yaml"
    start_divided "$SMALL_1" "$SMALL_2" "$LARGE"
    berth submit --hold --gpu-ids 0 -- true
    berth submit --hold --gpu-ids 1 -- true
    divide
    becomes gpus.0.index 3
    divide '2 0 MIG-4444 2g.20gb 19968 0 0'
    becomes gpus.0.uuid MIG-4444
    is number "$(gpu 0.index) $(gpu 1.index)" '2 3'
    # An instance that comes back gets its own number.
    divide '2 0 MIG-4444 2g.20gb 19968 0 0' "$SMALL_1"
    becomes gpus.0.uuid MIG-1111
    is number "$(gpu 0.index) $(gpu 1.index)" '0 2'
    berth release 1
    wait_for_event kind=ended job=1 exit_status=0
}

@test "MIG mode that is turned on, and off again: the instances and the whole GPU take turns" {
    echo 'mig_wait_ms: 0' >>"$BERTH_DIR/config.yaml"
    start_divided
    is gpus "$(gpu 0.uuid)" GPU-bbbb
    has doctor "$(berth doctor || true)" '0000:10:00.0 is in MIG mode and has no instances; make some with'
    sed 's/^mig 0 1/mig 0 0/' "$ROOT/world" >"$ROOT/world.new"
    mv "$ROOT/world.new" "$ROOT/world"
    becomes gpus.1.uuid GPU-aaaa
    divide "$SMALL_1"
    becomes gpus.1.uuid MIG-1111
    berth submit --gpu-type 1g -- true
    berth wait 1
    is gpu "$(job_field 1 gpus.0.uuid)" MIG-1111
    try berth submit --gpu-type a100 --min-vram 40G -- true
    is status "$status" 6
}

@test "the last instance of the only GPU is removed: jobs go on and wait until there are others" {
    echo 'mig_wait_ms: 86400000' >>"$BERTH_DIR/config.yaml"
    one() { printf '%s\n' 'card GPU-aaaa 81920 0 0' 'mig 0 1' "$@" >"$ROOT/world.new" && mv "$ROOT/world.new" "$ROOT/world"; }
    one "instance 0 $SMALL_1"
    timeout "$LIMIT" berth daemon start >/dev/null
    mkfifo gate
    berth submit -- sh -c 'read x <gate'
    wait_until_running 1
    berth submit -- true
    one
    becomes gpus.0.state unknown
    is running "$(job_field 1 state) $(job_field 2 state)" 'RUNNING PENDING'
    one "instance 0 $LARGE"
    wait_for_event kind=ended job=2 exit_status=0
    is uuid "$(job_field 2 gpus.0.uuid)" MIG-3333
    is lost "$(gpu 0.state) $(job_field 1 state)" 'lost RUNNING'
    timeout "$LIMIT" sh -c 'echo >gate'
    wait_for_event kind=ended job=1 exit_status=0
    # A divided GPU without instances is reported with the remedy.
    one
    has words "$(berth doctor || true)" 'in MIG mode and has no instances; make some with'
}

# `xid WORDS`: write a line of the driver to the kernel's log.
xid()
{
    line=$((${line:-0} + 1))
    printf '4,%d,1,-;NVRM: Xid (PCI:0000:10:00%s\n' "$line" "$1" >>"$ROOT/kmsg"
}

@test "an error of the GPU stops all of its instances, a program's error concerns its own" {
    start_divided "$SMALL_1" "$SMALL_2"
    mkfifo gate0 gate1
    berth submit --gpu-ids 0 -- sh -c 'read x <gate0; exit 1'
    berth submit --gpu-ids 1 -- sh -c 'read x <gate1; exit 1'
    wait_until_running 1 2
    xid ' GPU-I:08 GPU-CI:00): 31, pid=99999999, name=python, Ch 00000008, MMU Fault'
    wait_for_event kind=warning job=2
    is state "$(gpu 0.state) $(gpu 1.state)" 'up up'
    xid '): 48, pid=1, name=x, An uncorrectable double bit error'
    becomes gpus.0.state sick
    becomes gpus.1.state sick
    is whole "$(gpu 2.state)" up
    timeout "$LIMIT" sh -c 'echo >gate0; echo >gate1'
    try berth wait 1
    has why "$(job_field 1 attempts.0.text)" 'GPU fault on gpu 0: XID 48'
    # Repartitioning the GPU clears no error: neither for a new instance, nor for one that
    # comes back.
    divide "$LARGE"
    becomes gpus.3.uuid MIG-3333
    has inherited "$(gpu 3.state) $(gpu 3.state_text)" 'sick XID 48: '
    divide "$SMALL_1" "$LARGE"
    becomes gpus.0.state sick
    is whole "$(gpu 2.state)" up
    berth resume 3
    becomes gpus.3.state up
}

@test "simulated instances are GPUs like a driver's, and programs find their own by its UUID" {
    start_daemon 1x80G+mig3,1x24G
    is names "$(gpu 0.name); $(gpu 2.name); $(gpu 3.name)" 'Simulated GPU MIG 2g.20gb; Simulated GPU MIG 2g.20gb; Simulated GPU'
    is sizes "$(gpu 0.total_mib) $(gpu 3.total_mib)" '20480 24576'
    is mig "$(gpu 0.mig.gpu) $(gpu 3.mig)" "$(gpu 2.mig.gpu) null"
    berth submit --gpu-ids 1 --exclusive -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"; berth simjob --vram 9000 --hold 600'
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.used_mib 9000
    is used "$(gpu 0.used_mib) $(gpu 2.used_mib) $(gpu 3.used_mib)" '0 0 0'
    is mask "$(berth logs 1 | head -n 1)" "$(gpu 1.uuid)"
    try berth submit -G 2 -- true
    is status "$status" 6
    berth cancel 1
    try berth simulate --gpus 1+mig2 /dev/null
    has err "$err" 'MIG instances .* are not simulated here'
}
