#!/usr/bin/env bats
# Choosing among several GPUs: compute capability, type, NVLink, NUMA nodes. With simulated
# GPUs, and with a library that imitates NVIDIA's driver.

load lib

# A driver with these GPUs, one per word TYPE@MAJOR.MINOR: its name, its compute capability.
start_with_driver()
{
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world BERTH_SYS=$ROOT/sys
    local card i=0 cc
    mkdir -p "$BERTH_SYS"
    echo "driver 550.54" >"$BERTH_FAKE_NVML"
    for card in "$@"; do
        cc=${card#*@}
        printf 'card GPU-%s 24576 0 0\nname %s %s\ncc %s %s %s\n' "$i" "$i" "${card%@*}" "$i" "${cc%.*}" "${cc#*.}"
        i=$((i + 1))
    done >>"$BERTH_FAKE_NVML"
    timeout "$LIMIT" berth daemon start >"$ROOT/start.out" 2>&1 || fail_with "$(cat "$ROOT/start.out")"
    "$AWAIT" prints "$LIMIT" "berth gpus --json" "GPU-$((i - 1))"
}

@test "jobs go to GPUs of at least the compute capability that they request" {
    start_with_driver A100@8.0 L40@8.9 H100@9.0
    for cc in 8.0 8.1 9; do berth submit --gpu-cc "$cc" -- true; done
    echo '[gpu-cc=8.9 gpus=2] true' >jobs.txt
    berth run jobs.txt
    is GPUs "$(for i in 1 2 3; do job_field $i attempts.0.gpus.0; done | paste -sd' ')" '0 1 2'
    is both "$(job_field 4 attempts.0.gpus.0) $(job_field 4 attempts.0.gpus.1)" '1 2'
    is JSON "$(job_field 2 gpu_cc)" 8.1
    has show "$(berth show 2)" 'asks +1 GPU, .*of compute capability 8.1 or more'
    has columns "$(berth gpus -o index,name,cc)" '1 +L40 +8.9'
    is card "$(berth gpus --json | json gpus.2.compute_capability)" 9
    # A capability that no GPU has is refused, and the error lists the existing ones.
    try berth submit --gpu-cc 12.0 -- true
    is refused "$status" 6
    has words "$err" 'no GPU here has compute capability 12.0; the highest, of gpu 2, is 9.0'
    try berth submit --gpu-cc 9.0 --gpus a100 -- true
    is "not both a number and a type" "$status" 2
    try berth submit --gpu-cc 9.0 --gpus a100:1 -- true
    has words "$err" "gpu 0 has compute capability 8.0, not 9.0"
    # Restored by a daemon that has not read them yet.
    kill_daemon
    try berth submit --gpu-cc 9.0 --wait -- true
    is status "$status" 0
}

@test "a type with a number is a constraint, also in Slurm's words" {
    start_with_driver A100@8.0 L40@8.9 A100@8.0
    berth submit --gpus a100:2 -- true
    echo '[gpus=L40:1] true' >jobs.txt
    berth run jobs.txt
    printf '#!/bin/sh\n#SBATCH --gres=gpu:a100:2\ntrue\n' >job.sh
    berth submit job.sh
    printf '#!/bin/sh\n#SBATCH --gpus=l40:1\ntrue\n' >job.sh
    berth submit job.sh
    for i in 1 2 3 4; do berth wait $i; done
    is two "$(job_field 1 attempts.0.gpus.0) $(job_field 1 attempts.0.gpus.1)" '0 2'
    is file "$(job_field 2 attempts.0.gpus.0)" 1
    is gres "$(job_field 3 attempts.0.gpus.0) $(job_field 3 attempts.0.gpus.1)" '0 2'
    is sbatch "$(job_field 4 attempts.0.gpus.0)" 1
    try berth submit --gpus a100:3 -- true
    is refused "$status" 6
    has words "$err" "needs 3 GPUs, but only 2 called 'a100' are usable; request at most 2"
    try berth submit --gpus h100:1 -- true
    is refused "$status" 6
    has words "$err" "no GPU here is called 'h100'; there are A100 \(gpus 0,2\) and L40 \(gpu 1\)"
}

# --- NUMA nodes and NVLink ---

# Two simulated nodes make sense only with two CPUs.
needs_two_cpus()
{
    if [ "$(nproc)" -lt 2 ]; then skip "one CPU only"; fi
}

# The CPUs near a GPU, according to the daemon.
cpus_of() { berth gpus --json | json "gpus.$1.cpu_list"; }

# The CPUs that a job was allowed to use, as read by its own process.
allowed() { berth logs "$1" | tr -d '\r' | awk '$1 == "Cpus_allowed_list:" { print $2 }'; }

READ="grep Cpus_allowed_list /proc/self/status"

@test "NVLink first, then the fewest NUMA nodes, then what leaves most to others, decide among GPUs" {
    start_daemon 2+nvlink+numa0,3+numa1,3+numa2
    has columns "$(berth gpus -o index,nvlink,numa)" '1 +0 +0'
    is JSON "$(berth gpus --json | json gpus.0.nvlink.0) $(berth gpus --json | json gpus.2.nvlink)" '1 []'
    berth pause 4
    berth submit --wait --gpus 2 -- true
    berth submit --wait --gpus 3 -- true
    berth submit --wait --devices 2-7 --gpus 3 -- true
    berth submit --wait --devices 2-7 --gpus 4 -- true
    berth submit --wait -- true
    berth submit --wait --placement first -- true
    gpus() { berth show "$1" --json | "$AWAIT" json jobs.0.attempts.0.gpus | tr -d '[] '; }
    is "the pair" "$(gpus 1)" 0,1
    is "a pair and one more" "$(gpus 2)" 0,1,2
    is "one node" "$(gpus 3)" 5,6,7
    is "two nodes" "$(gpus 4)" 2,3,5,6
    is "what breaks no pair and no larger node" "$(gpus 5)" 2
    is "as it says" "$(gpus 6)" 0
}

@test "while jobs wait, GPUs that the driver numbers anew after a restart keep their numbers and their links" {
    start_with_driver T@8.0 T@8.0 T@8.0
    berth daemon stop
    printf '%s\n' 'link 1 0 2' 'link 2 0 1' >>"$ROOT/world"
    berth daemon start
    links() { echo "$(berth gpus --json | json "gpus.$1.uuid") $(berth gpus --json | json "gpus.$1.nvlink")"; }
    is before "$(links 0), $(links 1), $(links 2)" 'GPU-0 [], GPU-1 [2], GPU-2 [1]'
    berth submit --hold -- true
    kill_daemon
    printf '%s\n' 'driver 550.54' 'card GPU-2 24576 0 0' 'card GPU-0 24576 0 0' 'card GPU-1 24576 0 0' \
        'link 0 0 2' 'link 2 0 0' >"$ROOT/world"
    berth daemon start
    is after "$(links 0), $(links 1), $(links 2)" 'GPU-0 [], GPU-1 [2], GPU-2 [1]'
    berth submit --wait --gpus 2 -- true
    is pair "$(job_field 2 attempts.0.gpus | tr -d '[] ')" 1,2
}

@test "a job that books cores runs on CPUs of the NUMA node of its GPUs, and so does all that it starts" {
    needs_two_cpus
    start_daemon 2+numa0,2+numa1
    near=$(cpus_of 0) far=$(cpus_of 2)
    [ "$near" != "$far" ]
    berth submit --wait --gpu-ids 1 --cpus 1 -- sh -c "$READ"
    berth submit --wait --gpu-ids 2 --cpus 1 -- sh -c "setsid sh -c '$READ'"
    berth submit --wait --gpu-ids 3 --cpus 1 --env-setup 'x=1' -- sh -c "$READ"
    berth submit --wait --gpu-ids 0,2 --cpus 1 -- sh -c "$READ"
    berth submit --wait --gpu-ids 2 -- sh -c "$READ"
    berth submit --wait --gpu-ids 2 --cpus 1 --cpu-bind off -- sh -c "$READ"
    berth submit --wait --gpu-ids 2 --cpu-bind node -- sh -c "$READ"
    berth submit --wait --gpus 0 --cpus 1 -- sh -c "$READ"
    echo "[gpu-ids=3 cpu-bind=node] $READ" >jobs.txt
    berth run jobs.txt
    if command -v screen >/dev/null; then berth submit --wait --gpu-ids 2 --cpus 1 --screen -- sh -c "$READ"; fi
    mine=$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)
    is bound "$(allowed 1) $(allowed 2) $(allowed 3)" "$near $far $far"
    is "on both nodes, without cores, off" "$(allowed 4) $(allowed 5) $(allowed 6)" "$mine $mine $mine"
    is "asked for, without a GPU, in a file" "$(allowed 7) $(allowed 8) $(allowed 9)" "$far $mine $far"
    is JSON "$(job_field 2 attempts.0.numa_nodes.0) $(job_field 2 attempts.0.cpu_list)" "1 $far"
    is "JSON, unbound" "$(job_field 5 attempts.0.cpu_list)" null
    has show "$(berth show 2)" "attempt 1 .*, bound to CPUs? $far of NUMA node 1"
    has_not "show, unbound" "$(berth show 5)" "bound to"
    has columns "$(berth gpus -o index,numa,cpus)" "3 +1 +$far"
    has doctor "$(berth doctor)" "cpu-bind +gpus 0,1: jobs that book cores .* run on CPUs? $near, NUMA node 0"
    if command -v screen >/dev/null; then
        is "in a screen session" "$(allowed 10)" "$far"
    fi
}

@test "cores near a GPU are booked by bound jobs, across a restart too; another node is taken first" {
    needs_two_cpus
    start_daemon 2+numa0,2+numa1
    all=$(berth gpus --json | json gpus.0.cpu_list | tr ',' '\n' | awk -F- '{ n += $2 == "" ? 1 : $2 - $1 + 1 } END { print n }')
    mkfifo go
    berth submit --gpu-ids 0 --cpus "$all" -- cat go
    wait_for_event kind=started job=1
    is "taken by the first" "$(job_field 1 attempts.0.numa_nodes.0)" 0
    kill_daemon
    # The node of GPU 1 has no core left; GPU 2 is preferred.
    berth submit --cpus 1 -- sh -c "$READ; berth explain 2"
    berth wait 2
    is elsewhere "$(job_field 2 attempts.0.gpus.0)" 2
    has explain "$(berth logs 2)" "on gpu 2, bound to CPUs? .* \(NUMA node 1\)"
    # If it insists on that GPU it runs on any CPU, and reports that; if it insists on the
    # CPUs, there.
    berth submit --gpu-ids 1 --cpus 1 -- sh -c "$READ; berth explain 3"
    berth wait 3
    has explain "$(berth logs 3)" "not bound to the CPUs near its GPUs: too few cores were free there"
    is "any CPU" "$(allowed 3)" "$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)"
    berth submit --gpu-ids 1 --cpus 1 --cpu-bind node -- sh -c "$READ"
    berth wait 4
    is insisting "$(allowed 4)" "$(cpus_of 0)"
    : >go
    berth wait 1
}

@test "the settings' cpu_bind counts for jobs that do not say, and is reloaded" {
    needs_two_cpus
    mkdir -p "$BERTH_DIR"
    echo 'cpu_bind: node' >"$BERTH_DIR/config.yaml"
    start_daemon 1+numa0,1+numa1
    berth submit --gpu-ids 1 -- sh -c "$READ"
    berth wait 1
    is node "$(allowed 1)" "$(cpus_of 1)"
    echo 'cpu_bind: off' >"$BERTH_DIR/config.yaml"
    kill -HUP "$(daemon_pid)"
    "$AWAIT" prints "$LIMIT" "berth doctor" 'cpu-bind +gpus 0,1: jobs run on any CPU: the settings have cpu_bind: off'
    berth submit --gpu-ids 1 --cpus 1 -- sh -c "$READ"
    berth submit --gpu-ids 1 --cpus 1 --cpu-bind auto -- sh -c "$READ"
    berth wait 3
    is "off, auto" "$(allowed 2) $(allowed 3)" "$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status) $(cpus_of 1)"
}

# `node N CPUS GPU...`: a node in a folder like /sys, and the GPUs on it.
node()
{
    local at gpu
    mkdir -p "$ROOT/sys/devices/system/node/node$1"
    echo "$2" >"$ROOT/sys/devices/system/node/node$1/cpulist"
    for gpu in "${@:3}"; do
        at=$ROOT/sys/bus/pci/devices/0000:1$gpu:00.0
        mkdir -p "$at"
        echo "$1" >"$at/numa_node"
    done
}

@test "the kernel says which CPUs are near a GPU, and none beyond the daemon's own are used" {
    needs_two_cpus
    read -r first second <<<"$(taskset -pc $$ | sed 's/.*: //' | python3 -c '
import sys
cpus = [c for part in sys.stdin.read().split(",") for c in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
print(cpus[0], cpus[-1])')"
    node 0 "$first" 0
    node 1 "$second" 1
    node 2 "" # memory only
    node 3 "1023" 2
    start_with_driver A100@8.0 A100@8.0 A100@8.0 A100@8.0
    for i in 0 1 2; do
        berth submit --gpu-ids $i --cpus 1 -- sh -c "$READ"
        berth wait $((i + 1))
    done
    mine=$(awk '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)
    is "nodes 0, 1 and 3" "$(allowed 1) $(allowed 2) $(allowed 3)" "$first $second $mine"
    has doctor "$(berth doctor)" 'cpu-bind +gpus 2,3: jobs run on any CPU: NUMA node 3 has no CPUs that jobs may use'
    stop_daemon
    taskset -c "$first" berth daemon start
    berth submit --gpu-ids 1 --cpus 1 --cpu-bind node -- sh -c "$READ; berth explain 4"
    berth wait 4
    is "within the daemon's" "$(allowed 4)" "$first"
    has explain "$(berth logs 4)" 'not bound to CPUs, as none is known near its GPUs that jobs may use'
}
