#!/usr/bin/env bats
# Interactive jobs of the machine's daemon: accessible to their user alone, including terminal
# and socket.

load lib
load users

# Start an interactive job of alice's that prints `ready`: $socket is for attaching.
start_alices()
{
    start_system
    as "$ALICE" mkfifo gate.$BATS_TEST_NUMBER
    background job as "$ALICE" berth submit --gpus 0 --interactive -- \
        sh -c 'id -un; echo ready; read x <gate.$1; echo over; exit 4' sh "$BATS_TEST_NUMBER"
    wait_for_output job '^ready$'
    socket=$(berth show 1 --json | json jobs.0.attach)
}

# Attach as that user and see the job continue and end.
see_the_rest_as()
{
    background again runuser -u "$1" -- berth attach 1 --from-start
    wait_for_output again '^ready$'
    as "$ALICE" sh -c "echo >gate.$BATS_TEST_NUMBER"
    finish again
    is status "$status" 4
    has output "$out" '^over$'
    finish job
    is status "$status" 4
}

@test "an interactive job runs as its user, and its socket is that user's alone" {
    start_alices
    has output "$(cat "$ROOT/job.out")" "^$ALICE\$"
    is socket "$(stat -c '%U %a' "$socket")" "$ALICE 600"
    is folder "$(stat -c '%U %a' "$(dirname "$socket")")" 'root 711'
    try_as "$BOB" berth attach 1
    is status "$status" 5
    is output "$out" ''
    see_the_rest_as "$ALICE"
}

@test "root may attach to any user's job, whose output is that user's file" {
    start_alices
    see_the_rest_as root
    is log "$(stat -c %U "$BERTH_DIR/logs/$(id -u "$ALICE")/1.log")" "$ALICE"
}

@test "a job's terminal belongs to its user, also when opened by name" {
    start_system
    try_as "$ALICE" berth submit --gpus 0 --pty -- \
        sh -c 'stat -c %U "$(tty)"; echo named >"$(tty)"; echo own >/dev/tty; exit 3'
    is status "$status" 3
    has output "$out" "^$ALICE"
    has output "$out" named
    has output "$out" own
}

@test "what a terminal shows is held to the room that a disk has for its user, and what is lost is counted" {
    type -P mkfs.ext4 >/dev/null || skip 'there is no mkfs.ext4 here'
    mkdir "$ROOT/disk"
    truncate -s 8M "$ROOT/image"
    mkfs.ext4 -q -m 50 "$ROOT/image" # half of it is reserved for root
    mount -o loop "$ROOT/image" "$ROOT/disk" 2>/dev/null || skip 'cannot mount'
    chown "$ALICE" "$ROOT/disk"
    # A write for which there is no room writes nothing, so that room for smaller ones is left.
    for size in 128k 4k; do
        has 'the disk' "$(as "$ALICE" dd if=/dev/zero of="$ROOT/disk/filler" bs=$size oflag=append conv=notrunc 2>&1)" 'No space left'
        sync -f "$ROOT/disk/filler"
    done
    truncate -s -8K "$ROOT/disk/filler" # the log's, with less than another 4K
    start_system
    background job as "$ALICE" berth submit -G 0 --pty -o "$ROOT/disk/log" -- sh -c 'printf %020000d 7'
    finish job
    is status "$status" 0
    local log cut
    log=$(stat -c %s "$ROOT/disk/log")
    cut=$(berth show 1 --json | json jobs.0.log_cut_bytes)
    is 'all that it printed' "$((log + cut))" 20000
    [ "$cut" -gt 0 ] || fail_with "the log has the room that is for root"
}

# Writers to a terminal of alice's that are not part of her job.
outsiders()
{
    local i
    for i in 1 2 3 4; do
        background "outsider$i" as "$ALICE" sh -c "exec yes >>$1"
        eval "outside=\"\${outside:-} \$pid_of_outsider$i\""
    done
}

@test "a job whose terminal other processes go on writing to ends all the same" {
    start_system
    as "$ALICE" mkfifo "$USERS_HOME/alice/end"
    background job as "$ALICE" berth submit -G 0 --pty --log-max 1M -- sh -c 'tty >terminal; echo ready; read x <end'
    wait_for_output job '^ready'
    outsiders "$(cat "$USERS_HOME/alice/terminal")"
    wait_for_output job '^y'
    as "$ALICE" sh -c 'echo >end'
    wait_for_event kind=ended job=1
    finish job
    is status "$status" 0
}

# No terminal can be made, in a mount namespace of the daemon's own.
berthd()
{
    if [ -z "${NO_PTMX:-}" ]; then command berthd "$@"; return; fi
    unshare -m sh -c 'mount --bind /dev/null /dev/ptmx && exec "$0" "$@"' "$ROOT/bin/berthd" "$@"
}

@test "a job whose terminal cannot be made fails and says why, and stops no other job" {
    unshare -m true 2>/dev/null || skip "mount namespaces cannot be made here"
    NO_PTMX=1 start_system
    background job as "$ALICE" berth submit -G 0 --pty -- true
    wait_for_event kind=ended job=1
    has 'why' "$(berth show 1)" 'cannot make a terminal: Inappropriate ioctl for device'
    as "$BOB" berth submit -G 0 --wait -- true
    has_not 'of the machine' "$(cat "$BERTH_DIR/daemon.log")" 'machine-trouble'
    finish job
}
