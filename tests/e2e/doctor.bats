#!/usr/bin/env bats
# `berth doctor` in environments with one problem each: it finds the problem, prints the remedy
# in the same line, and exits 1 if jobs would not run.

load lib

case_setup()
{
    export BERTH_DOCTOR_ROOT=$ROOT/machine
    mkdir -p "$BERTH_DOCTOR_ROOT/proc/driver/nvidia" "$BERTH_DOCTOR_ROOT/run"
}

# statfs answers as $FAKE_TYPE and $FAKE_FREE say.
on_fake_disk()
{
    # AddressSanitizer insists on being loaded first.
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
    ldd "$(command -v berth)" | grep -q libc || skip "this berth is linked statically; that of ./check --thorough is not"
    command -v cc >/dev/null || skip "there is no C compiler here"
    cat >"$ROOT/fake.c" <<'C'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
int statfs64(const char *path, struct statfs64 *out)
{
    const char *type = getenv("FAKE_TYPE"), *mib = getenv("FAKE_FREE");
    int rc = (int)syscall(SYS_statfs, path, out);
    if (type)
        out->f_type = strtol(type, NULL, 16);
    if (mib)
        out->f_bavail = (fsblkcnt_t)(atol(mib) * 1048576 / out->f_bsize);
    return rc;
}
C
    cc -shared -fPIC -o "$ROOT/fake.so" "$ROOT/fake.c"
    fake=$ROOT/fake.so
}

# `finds WHAT ok|warn|FAIL WORDS`: check the doctor's line about it.
finds()
{
    has "what doctor says of $1" "$(grep -E " $1 " <<<"$out")" "^$2 +$1 +.*$3"
}

@test "doctor: a driver that does not match its library" {
    mkdir "$ROOT/bin"
    printf '#!/bin/sh\necho "Failed to initialize NVML: Driver/library version mismatch"\nexit 18\n' \
        >"$ROOT/bin/nvidia-smi"
    chmod +x "$ROOT/bin/nvidia-smi"
    PATH=$ROOT/bin:$PATH try berth doctor
    is "exit status" "$status" 1
    finds gpus FAIL "mismatch.*reboot"
}

@test "doctor: no GPU at all" {
    PATH=$(dirname "$(command -v berth)"):/bin
    if command -v nvidia-smi >/dev/null || ls /dev/nvidia0 2>/dev/null; then skip "there is one"; fi
    try berth doctor
    is "exit status" "$status" 1
    finds gpus FAIL "no GPU.*driver.*--sim"
}

@test "state on a network file system: doctor says so, and the daemon does not start" {
    on_fake_disk
    LD_PRELOAD=$fake FAKE_TYPE=6969 try berth doctor
    is "exit status" "$status" 1
    finds state FAIL "network file system \(NFS\).*--dir"
    LD_PRELOAD=$fake FAKE_TYPE=6969 try berth daemon start --sim 1
    is "exit status" "$status" 4
    has "words" "$err" "network file system \(NFS\).*--dir or BERTH_DIR"
    [ ! -e "$BERTH_DIR/state/berth.db" ] || fail_with "it made a database there"
    LD_PRELOAD=$fake FAKE_TYPE=65735546 try berth doctor
    finds state warn "FUSE"
}

@test "doctor: a full disk" {
    on_fake_disk
    LD_PRELOAD=$fake FAKE_FREE=3 try berth doctor
    is "exit status" "$status" 1
    finds state FAIL "only 3.* free.*free some space"
    LD_PRELOAD=$fake FAKE_FREE=500 try berth doctor
    finds state warn "only 500"
}

@test "doctor: state that other users may enter, or that belongs to another user" {
    mkdir -p "$BERTH_DIR/state"
    chmod 755 "$BERTH_DIR/state"
    try berth doctor
    finds rights FAIL "other users can enter.*chmod 700"
    chmod 700 "$BERTH_DIR/state"
    try berth doctor
    finds rights ok
    [ "$(id -u)" -eq 0 ] || skip "the rest needs root"
    chown 65534 "$BERTH_DIR/state"
    try berth doctor
    finds rights FAIL "belongs to user 65534.*chown"
}

@test "doctor: another daemon that uses a GPU" {
    echo "alice uid 1001 pid 4711 state /home/alice/state" >"$BERTH_LOCK_DIR/berth-gpu-GPU-1"
    try berth doctor
    has_not "what doctor says" "$out" "another daemon"
    exec 7<"$BERTH_LOCK_DIR/berth-gpu-GPU-1"
    flock -n 7
    try berth doctor
    exec 7<&-
    finds daemons warn "GPU-1: alice uid 1001 pid 4711.*stop it"
}

@test "doctor: a machine where only root can write to /run/lock" {
    [ "$(id -u)" -eq 0 ] || skip "needs a user to become"
    unshare -m true || skip "no mount name space can be made here"
    unset BERTH_LOCK_DIR
    exec 7<"$(command -v berth)"
    try unshare -m sh -ec 'mount --make-rprivate /
        mount -t tmpfs none /run
        mkdir -m 755 /run/lock
        exec setpriv --reuid 65534 --clear-groups /proc/self/fd/7 --dir "$1/n" doctor' sh "$ROOT"
    exec 7<&-
    finds locks warn "/tmp, as only root can write to /run/lock;.*not seen; set BERTH_LOCK_DIR"
}

@test "control characters in names and locks move no cursor, and are valid JSON" {
    local name=$'berth-gpu-\033[2J\377'
    printf '\033]0;x\007\376 state /x\n' >"$BERTH_LOCK_DIR/$name"
    exec 7<"$BERTH_LOCK_DIR/$name"
    flock -n 7
    try berth doctor
    has_not "what doctor says" "$out" $'\033'
    finds daemons warn '\\x1B\[2J\\xFF: \\x1B\]0;x\\x07\\xFE state /x'
    try berth doctor --json
    exec 7<&-
    has "its JSON" "$(json checks <<<"$out")" '"check":"daemons"'
}

@test "doctor: a driver that nothing keeps loaded" {
    try berth doctor
    has_not "what doctor says without a driver" "$out" persistenced
    echo 550.54 >"$BERTH_DOCTOR_ROOT/proc/driver/nvidia/version"
    try berth doctor
    finds driver warn "systemctl enable"
    mkdir "$BERTH_DOCTOR_ROOT/run/nvidia-persistenced"
    : >"$BERTH_DOCTOR_ROOT/run/nvidia-persistenced/socket"
    try berth doctor
    finds driver ok
}

@test "doctor: a user whose processes end at logout" {
    [ "$(id -u)" -eq 0 ] || skip "needs a user to become"
    mkdir -p "$BERTH_DOCTOR_ROOT/run/systemd/users" "$BERTH_DOCTOR_ROOT/var/lib/systemd/linger"
    chmod 755 "$ROOT" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
    exec 7<"$(command -v berth)"
    as_nobody() { setpriv --reuid 65534 --clear-groups /proc/self/fd/7 --dir "$ROOT/n" doctor; }
    out=$(as_nobody || true)
    if ! grep -q " linger " <<<"$out"; then
        exec 7<&-
        skip "this folder cannot be reached by another user"
    fi
    finds linger warn "loginctl enable-linger"
    : >"$BERTH_DOCTOR_ROOT/var/lib/systemd/linger/$(id -un 65534)"
    out=$(as_nobody || true)
    exec 7<&-
    finds linger ok
}

@test "the daemon reports line by line which limits are enforced on jobs" {
    local what
    try berth doctor
    finds confine ok "known once a daemon"
    start_daemon
    try berth doctor
    for what in kill memory swap cpus processes; do
        if [ "$(berth status --json | json "daemon.confinement.enforced.$what")" = true ]; then
            finds "$what" ok
        else
            finds "$what" warn "$(berth status --json | json "daemon.confinement.why.$what" | cut -c 1-20)"
        fi
    done
    finds devices ok "(only their own GPUs|every GPU)"
}

@test "doctor: a driver whose calls hang in the kernel, where a kill ends nothing" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world BERTH_NVIDIA_SMI=/none
    printf '%s\n' 'driver 550.54' 'card GPU-a 81920 0 0' 'load 0 7 41' "stuck $ROOT/stuck" >"$ROOT/world"
    exec 9>"$ROOT/stuck"
    flock 9
    try berth doctor 9>&-
    exec 9>&-
    is status "$status" 1
    has doctor "$out" 'the driver has not answered for 10 s; .*persistence mode'
}
