#!/usr/bin/env bats
# Jobs in containers: the command lines of podman and Apptainer, seen with scripts in their
# place; then podman itself, as root, if it is installed.

load lib
load containers

case_setup()
{
    if [[ $BATS_TEST_DESCRIPTION == podman:* ]]; then
        why=$(why_no_podman)
        if [ -n "$why" ]; then skip "$why"; fi
        STORE=$ROOT/store
        mkdir "$STORE"
        storage_conf "$STORE"
        export CONTAINERS_STORAGE_CONF=$STORE/storage.conf
        make_image "$STORE"
        return
    fi
    export FAKE_PODMAN=$ROOT/fake
    mkdir -p "$FAKE_PODMAN" "$ROOT/tools"
    ln -s "$E2E/fake_podman" "$ROOT/tools/podman"
    PATH=$ROOT/tools:$PATH
}

# Wait until a line of a job's log equals this.
wait_for_line()
{
    "$AWAIT" prints "$LIMIT" "berth logs $1" "(^|\n)$2(\n|$)"
}

words()
{
    cat "$FAKE_PODMAN/words"
}

@test "the command runs in the image, as the user, in the folder, with home and mounts" {
    start_daemon
    mkdir sub
    berth submit --container localhost/mine --container-mount /data:/data:ro --container-mount /srv/x:/x --wait -D sub -- \
        sh -c 'pwd; echo "$0 $1"; exit 0' 'two words' 3
    is output "$(berth logs 1)" "$PWD/sub
two words 3"
    has words "$(words)" '^--rm$'
    has words "$(words)" '^--init$'
    has words "$(words)" '^--cgroups=disabled$'
    has words "$(words)" "^--user=$(id -u):$(id -g)\$"
    has words "$(words)" "^--volume=$HOME:$HOME\$"
    has words "$(words)" "^--volume=$PWD/sub:$PWD/sub\$"
    has words "$(words)" "^--volume=/data:/data:ro\$"
    has words "$(words)" "^--volume=/srv/x:/x\$"
    has words "$(words)" "^--workdir=$PWD/sub\$"
    has_not words "$(words)" '^--(interactive|tty|device)'
    has words "$(words)" "^--ulimit=nofile=$(ulimit -Sn):$(ulimit -Hn)\$"
    is image "$(words | sed -n '/^localhost\//{p;n;p;n;p}')" 'localhost/mine
sh
-c'
    has show "$(berth show 1)" 'container +localhost/mine'
    has show "$(berth show 1)" 'container-mount +/data:/data:ro'
    is json "$(job_field 1 container) $(job_field 1 container_mounts.1)" 'localhost/mine /srv/x:/x'
}

@test "a jobs file and a script name an image too; home and / are not mounted twice" {
    start_daemon
    echo '[container=localhost/mine gpus=0] pwd; exit 3' >jobs.txt
    try berth run jobs.txt
    is status "$status" 3
    is output "$(berth logs 1)" "$PWD"
    printf '#!/bin/sh\n#BERTH --container=localhost/other -G 0\ncat /proc/self/cmdline | head -c 10\n' >s.sh
    HOME=$PWD berth submit --wait s.sh
    has words "$(words)" '^localhost/other$'
    is volumes "$(words | grep -c '^--volume=')" 2
    HOME=/ berth submit --wait -G 0 -D / --container localhost/mine -- true
    is volumes "$(words | grep '^--volume=')" '--volume=/dev/shm:/dev/shm'
}

@test "variables: the image's stay, those of this machine's files stay outside, the job's own win" {
    start_daemon
    PATH=/mine:$PATH LD_LIBRARY_PATH=/mine PYTHONPATH=/mine VIRTUAL_ENV=/mine FROM=shell WANDB_KEY=k1 LANG=shell \
        berth submit -G 1 --container i --env LANG=job --env 'X=a=b c' --wait -- env
    log=$(berth logs 1)
    has variables "$log" '^PATH=/usr/bin:/bin$'
    has variables "$log" '^FROM=image$'
    has variables "$log" '^WANDB_KEY=k1$'
    has variables "$log" '^LANG=job$'
    has variables "$log" '^X=a=b c$'
    has variables "$log" "^HOME=$HOME\$"
    has variables "$log" "^PWD=$PWD\$"
    has variables "$log" '^BERTH_JOB_ID=1$'
    has variables "$log" '^CUDA_VISIBLE_DEVICES=SIM-'
    has variables "$log" '^BERTH_MARK='
    has_not variables "$log" '/mine'
    # Podman would have systemd move it to another group if it found a bus.
    has podman "$(cat "$FAKE_PODMAN/environment")" '^DBUS_SESSION_BUS_ADDRESS=disabled:$'
    has_not podman "$(cat "$FAKE_PODMAN/environment")" '^LD_LIBRARY_PATH='
    berth submit -G 0 --container i --env PATH=/own:/usr/bin --wait -- env
    has own "$(berth logs 2)" '^PATH=/own:/usr/bin$'
}

@test "a command longer than an argument may be reaches the image's shell" {
    start_daemon
    { echo '[container=i gpus=0] \'; printf ': %0200000d; ' 7; echo 'echo came; ls /dev/fd >/dev/null; exit 4'; } >jobs.txt
    try berth run jobs.txt
    is status "$status" 4
    is output "$(berth logs 1 | cut -c 1-300)" came
}

@test "a full disk of the images keeps a job waiting, and fails none" {
    start_daemon 1
    touch "$FAKE_PODMAN/full"
    try berth submit --gpus 0 --container img -- sh -c 'echo ran >>ran; exit 3'
    "$AWAIT" prints "$LIMIT" "berth health" 'no space left on device'
    is "what has ended" "$(events_with kind=ended | wc -l)" 0
    rm "$FAKE_PODMAN/full"
    try berth wait 1
    is "its end" "$status $(cat ran)" "3 ran"
}

@test "exit codes and signals are the command's; podman's own are a failed set-up" {
    start_daemon
    for code in 0 1 125 126 127 137 255; do
        try berth submit -G 0 --container i --wait -- sh -c "exit $code"
        is status "$status" "$code"
        is ended "$(job_field @ exit_code)" "$code"
    done
    try berth submit -G 0 --container i --wait -- sh -c 'kill -SEGV $$'
    is status "$status" 139
    has ended "$(berth show @)" 'killed by signal 11'
    try berth submit -G 0 --container missing --wait -- true
    is status "$status" 125
    has ended "$(berth show @)" 'ended +set-up failed: .*podman: missing: image not known'
    try berth submit -G 0 --container missing --error err.%j --wait -- true
    has ended "$(berth show @)" 'podman: missing: image not known'
    try berth submit -G 0 --container i --wait -- /not/in/the/image
    is status "$status" 127
    has ended "$(berth show @)" "set-up failed: .*cannot execute '/not/in/the/image' in the image: No such file"
    try berth submit -G 0 --container i --wait -- /etc
    is status "$status" 126
    has ended "$(berth show @)" "cannot execute '/etc' in the image: Permission denied"
    try berth submit -G 0 --container wordy --wait -- true
    has 'a long message, which is cut' "$(berth show @)" 'ended +set-up failed: .*podman: 0+\.\.\.$'
}

@test "doctor says whether podman works, and not only that it is there" {
    export BERTH_DOCTOR_ROOT=$ROOT/machine
    mkdir -p "$BERTH_DOCTOR_ROOT/etc"
    ln -s /bin/true "$ROOT/tools/crun"
    ln -s /bin/true "$ROOT/tools/newuidmap"
    echo "$(id -un):100000:65536" | tee "$BERTH_DOCTOR_ROOT/etc/subuid" >"$BERTH_DOCTOR_ROOT/etc/subgid"
    try berth doctor
    has 'one that works' "$out" "^ok +container +$ROOT/tools/podman.*, for --container"
    printf 'time="now" level=error\nError: configure storage: no overlay here\n' >"$FAKE_PODMAN/broken"
    try berth doctor
    has 'one that does not' "$out" "^warn +container +'.*/podman (info|--version)' fails: Error: configure storage: no overlay here$"
    rm "$FAKE_PODMAN/broken"
    mkdir -p "$BERTH_DOCTOR_ROOT/sys/fs/cgroup/unified"
    : >"$BERTH_DOCTOR_ROOT/sys/fs/cgroup/unified/cgroup.procs"
    try berth doctor
    has 'mixed cgroups' "$out" '^warn +container +.*cgroups of both versions'
}

@test "cancel and the time limit reach the command, and a killed podman's container is removed" {
    start_daemon
    # The fake leaves nothing behind: in a real container the kernel would end that process
    # before podman exits.
    berth submit -G 0 --container i -- sh -c 'trap "kill \$!; wait; echo caught; exit 9" TERM; echo ready; while :; do sleep 1 & wait; done'
    wait_for_line 1 ready
    berth cancel 1
    try berth wait 1
    has log "$(berth logs 1)" caught
    is state "$(job_field 1 state)" CANCELLED
    [ ! -e "$FAKE_PODMAN/removed" ] || fail_with "podman ended by itself: $(cat "$FAKE_PODMAN/removed")"
    berth submit -G 0 --grace 1s --container i -- sh -c 'trap "" TERM; echo ready; while :; do sleep 1; done'
    wait_for_line 2 ready
    touch "$FAKE_PODMAN/fail"
    berth cancel 2
    try berth wait 2
    is state "$(job_field 2 state)" CANCELLED
    is "tries to remove it" "$(grep -c -- '-2\.1$' "$FAKE_PODMAN/removed")" 2
    has removed "$(cat "$FAKE_PODMAN/removed")" '^--cgroup-manager=cgroupfs rm --force --ignore berth-[0-9a-f]{8}-2.1$'
    # Without its supervisor, by the sweep.
    berth submit -G 0 --container i --open-mode truncate --log log.txt -- sh -c 'echo ready; kill -KILL "$(cut -d" " -f4 /proc/$PPID/stat)"; exec sleep 1000'
    try berth wait 3
    is state "$(job_field 3 state)" LOST
    is log "$(cat log.txt)" ready
    has removed "$(cat "$FAKE_PODMAN/removed")" 'rm --force --ignore berth-[0-9a-f]{8}-3.1$'
}

# Start a job that ignores TERM and prints its groups: $id, and the command's $pid.
run_stubborn()
{
    id=$(berth submit --parsable -G 0 --mem 2G --grace 1s --container i -- \
        sh -c 'trap "" TERM; cat /proc/self/cgroup; echo ready; while :; do sleep 1; done')
    wait_for_line "$id" ready
    pid=$(berth show "$id" --json | json jobs.0.pid)
}

@test "a container is removed inside the attempt's groups, and the removal ends with the supervisor" {
    start_daemon
    groups=$(berth status --json | json daemon.cgroup)
    [ "$groups" != null ] || skip "no cgroups can be made here"
    run_stubborn
    berth cancel "$id"
    try berth wait "$id"
    is "groups of the removal" "$(sed 's,/ending$,,' "$FAKE_PODMAN/removed_in")" "$(berth logs "$id" | grep -v '^ready$')"
    has "groups of the removal" "$(cat "$FAKE_PODMAN/removed_in")" "/job-$id\.1/ending\$"
    has_not "outcome" "$(berth show "$id")" 'host memory'
    is "groups left behind" "$(find "$groups" -mindepth 1 -type d)" ""
    touch "$FAKE_PODMAN/hold"
    run_stubborn
    supervisor=$(awk '{print $4}' "/proc/$pid/stat")
    berth cancel "$id"
    "$AWAIT" prints "$LIMIT" "cat '$FAKE_PODMAN/holders' 2>/dev/null" ' [0-9]+$'
    kill -KILL "$supervisor"
    try berth wait "$id"
    is state "$(job_field "$id" state)" LOST
    for pid in $(cat "$FAKE_PODMAN/holders"); do
        "$AWAIT" pid "$LIMIT" "$pid"
    done
    is "removals" "$(grep -c "$id.1\$" "$FAKE_PODMAN/removed")" 2
    has "groups of the sweeper's removal" "$(cat "$FAKE_PODMAN/removed_in")" "/job-$id\.1/ending\$"
}

@test "NVIDIA: the job's GPUs by CDI, by UUID where the specification has that, else by number" {
    local uuid=GPU-6ec0d6f1-3f2c-4b6e-9d0a-0123456789ab other=GPU-7fd1e702-4a3d-5c7f-ae1b-123456789abc
    command -v cc >/dev/null || skip "there is no C compiler here"
    if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then skip "only root can give the daemon an /etc/cdi"; fi
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world
    mkdir -p "$ROOT/live" "$ROOT/cdi"
    printf '%s\n' 'driver 550.54' "live $ROOT/live" "card $uuid 24564 564 0" "card $other 24564 564 0" >"$ROOT/world"
    CDI=$ROOT/cdi in_machine timeout "$LIMIT" berth daemon start >/dev/null
    try berth submit --gpu-ids 1 --container i --wait -- true
    has "without a specification" "$(berth show @)" "/etc/cdi has no specification of them; run 'nvidia-ctk cdi generate"
    printf 'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: "0"\n- name: "1"\n' >"$ROOT/cdi/nvidia.yaml"
    berth submit --gpu-ids 1 --container i --wait -- env
    is devices "$(words | grep '^--device')" '--device=nvidia.com/gpu=1'
    has masks "$(berth logs @)" "^CUDA_VISIBLE_DEVICES=$other\$"
    has masks "$(berth logs @)" "^NVIDIA_VISIBLE_DEVICES=$other\$"
    has podman "$(cat "$FAKE_PODMAN/environment")" '^NVIDIA_VISIBLE_DEVICES=void$'
    printf -- "- name: $uuid\n- name: $other\n" >>"$ROOT/cdi/nvidia.yaml"
    berth submit --gpu-ids 1,0 --container i --wait -- true
    is devices "$(words | grep '^--device')" "--device=nvidia.com/gpu=$other
--device=nvidia.com/gpu=$uuid"
    berth submit -G 0 --container i --wait -- true
    is devices "$(words | grep -c '^--device')" 0
    # For containers that a job starts itself.
    berth submit --gpu-ids 1,0 --wait -- sh -c 'echo "$BERTH_CONTAINER_OPTIONS"'
    is options "$(berth logs @)" \
        "--device=nvidia.com/gpu=$other --device=nvidia.com/gpu=$uuid --env=BERTH_JOB_ID --env=BERTH_MARK"
}

@test "Apptainer: folders, GPUs and variables by its options, and its own failures" {
    cat >"$ROOT/tools/apptainer" <<'EOF'
#!/bin/sh
printf '%s\n' "$@" >"$FAKE_PODMAN/words"
while case $1 in exec | --*) : ;; *) false ;; esac do shift; done
case $1 in missing.sif) echo 'FATAL:   could not open image missing.sif: no such file' >&2; exit 255 ;; esac
shift
exec "$@"
EOF
    chmod +x "$ROOT/tools/apptainer"
    start_daemon
    berth submit -G 0 --container image.sif --container-mount /srv:/srv:ro --env A=b --wait -- sh -c 'env; exit 0'
    is image "$(words | tail -4 | head -1)" image.sif
    has words "$(words)" "^--pwd=$PWD\$"
    has words "$(words)" '^--bind=/srv:/srv:ro$'
    has variables "$(berth logs 1)" '^APPTAINERENV_A=b$'
    has variables "$(berth logs 1)" '^APPTAINERENV_BERTH_JOB_ID=1$'
    has_not variables "$(berth logs 1)" '^APPTAINERENV_PATH='
    try berth submit -G 0 --container missing.sif --wait -- true
    is status "$status" 255
    has ended "$(berth show @)" 'set-up failed: .*apptainer: could not open image missing.sif: no such file'
    try berth submit -G 0 --container image.sif --wait -- sh -c 'exit 255'
    has ended "$(berth show @)" 'ended +exit 255'
    # Output of the command is not Apptainer's own error, which would have the job retried.
    for words in 'FATAL: save: No space left on device' $'epoch 1\nFATAL:   save: No space left on device'; do
        try berth submit -G 0 --container image.sif --wait -- sh -c 'echo "$1" >&2; exit 255' sh "$words"
        is status "$status" 255
        has ended "$(berth show @)" 'ended +exit 255'
    done
}

@test "what cannot be had in a container is refused when the job is submitted" {
    mkdir -p "$BERTH_DIR"
    start_daemon
    refused()
    {
        try berth submit -G 0 "${@:2}" -- true
        has "words for ${*:2}" "$err" "$1"
        [ "$status" -ne 0 ] || fail_with "${*:2} was not refused"
    }
    refused "'-v' is not an image; write docker.io/pytorch/pytorch:latest, localhost/mine or image.sif" --container=-v
    refused "'a b' is not an image" --container 'a b'
    refused 'must not be empty' --container ''
    refused "'data:/x' is not a mount; write SOURCE:DESTINATION" --container i --container-mount data:/x
    refused "'/a:/:ro' is not a mount" --container i --container-mount /a:/:ro
    refused "'/a:/b:suid' is not a mount" --container i --container-mount /a:/b:suid
    refused 'container-mount has no effect without container' --container-mount /a:/b
    refused 'container and conda exclude each other' --container i --conda base
    refused 'container and env-setup exclude each other' --container i --env-setup true
    refused 'container and login exclude each other' --container i --login
    refused 'container cannot be had on Slurm' --container i --on slurm
    command -v apptainer >/dev/null || command -v singularity >/dev/null ||
        refused "the image 'x.sif' needs apptainer, which is not installed" --container x.sif
    is jobs "$(berth queue --all --json | json jobs)" '[]'
}

@test "podman: the command is in the image, in the attempt's group, and its end is exact" {
    in_machine timeout "$LIMIT" berth daemon start --sim 2 >/dev/null
    HOME=$WORK berth submit -G 1 --container localhost/small --wait -- sh -c 'cat /etc/is-image; pwd; echo "$FROM $LANG $BERTH_JOB_ID"
        id -u; echo made >file; exit 7' || status=$?
    is status "$status" 7
    is file "$(cat file)" made
    log=$(berth logs 1)
    has log "$log" '^image$'
    has log "$log" "^$WORK\$"
    has log "$log" '^image image 1$'
    try berth submit -G 0 --container localhost/small --wait -- sh -c 'kill -KILL $$'
    has ended "$(berth show @)" 'killed by signal 9'
    try berth submit -G 0 --container localhost/small --wait -- /none
    has ended "$(berth show @)" "cannot execute '/none' in the image"
    try berth submit -G 0 --container localhost/small --container-mount /not/there:/x --wait -- true
    has ended "$(berth show @)" 'set-up failed: .*podman: .*/not/there: no such file'
    containers_come_to 0
}

# All that podman started for a job is in its group, with the processes in the container.
all_are_in_group()
{
    local pid inside=0
    [ "$(berth status --json | json daemon.cgroup)" != null ] || return 0
    for pid in $(grep -lE "^0::.*/job-$1\.1\$" /proc/[0-9]*/cgroup 2>/dev/null | cut -d/ -f3); do
        if grep -qE $'^NSpid:\t[0-9]+\t' "/proc/$pid/status"; then inside=$((inside + 1)); fi
    done
    [ "$inside" -ge 2 ] || fail_with "$inside of the container's processes are in the group of job $1"
}

@test "podman: signals, cancel, limit and any death leave no container behind" {
    in_machine timeout "$LIMIT" berth daemon start --sim 2 >/dev/null
    local trapped='trap "echo TERM" TERM; trap "echo USR1" USR1; echo ready; while :; do sleep 1000 & wait; done' ignored='trap "" TERM; echo ready; while :; do sleep 1000; done'
    HOME=$WORK
    berth submit -G 0 --grace 1h --container localhost/small -- sh -c "$trapped"
    wait_for_line 1 ready
    berth signal 1 USR1
    wait_for_line 1 USR1
    berth cancel 1
    wait_for_line 1 TERM
    berth cancel 1 --grace 0.1s
    try berth wait 1
    is "TERM, once" "$(berth logs 1 | grep -c TERM)" 1
    berth submit -G 0 -t 1s --grace 1s --container localhost/small -- sh -c "$ignored"
    try berth wait 2
    is state "$(job_field 2 state)" TIMEOUT
    containers_come_to 0
    for victim in supervisor podman; do
        id=$(berth submit --parsable -G 0 --container localhost/small -- sh -c "$ignored")
        wait_for_line "$id" ready
        pid=$(berth show "$id" --json | json jobs.0.pid)
        all_are_in_group "$id"
        containers_come_to 1
        case $victim in
        supervisor) kill -KILL "$(awk '{print $4}' "/proc/$pid/stat")" ;;
        podman) kill -KILL "$pid" ;;
        esac
        try berth wait "$id"
        [ "$status" -ne 0 ] || fail_with "job $id of a killed $victim completed"
        containers_come_to 0
    done
}

@test "podman: a terminal, and a stream of input, reach the command" {
    in_machine timeout "$LIMIT" berth daemon start --sim 2 >/dev/null
    HOME=$WORK
    echo hello >input
    status=0
    timeout "$LIMIT" berth submit -G 0 --interactive --container localhost/small -- sh -c 'cat; exit 3' <input >output || status=$?
    is status "$status" 3
    has output "$(cat output)" '^hello'
    status=0
    timeout "$LIMIT" script -qec "berth submit -G 0 --pty --container localhost/small -- sh -c 'readlink /proc/self/fd/0; exit 4'" /dev/null >output </dev/null || status=$?
    is status "$status" 4
    has output "$(cat output)" '/dev/pts/0'
    containers_come_to 0
}
