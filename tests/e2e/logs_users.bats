#!/usr/bin/env bats
# What root's clients open if a job's user has replaced the log by something else, with two
# real users. tests/base/test_file.c checks that no device is opened at all.

load lib
load screen
load users

@test "root reads a job's log with the rights of the job's user" {
    start_system
    as "$ALICE" berth submit -G 0 --log kept.log --wait -- echo hers
    is "root's look" "$(berth logs 1)" hers
    echo precious >"$ROOT/precious"
    chmod 600 "$ROOT/precious"
    as "$ALICE" ln -sf "$ROOT/precious" kept.log
    try berth logs 1
    is "exit status" "$status" 5
    has_not "root's look through her link" "$out" precious
    has "why" "$err" "cannot read .*kept.log: Permission denied"
    try berth logs -f 1
    has_not "following it" "$out" precious
    as "$ALICE" ln -sf /dev/ptmx kept.log
    try berth logs 1
    has "a device" "$err" "is not a regular file"
    as "$ALICE" rm kept.log
}

@test "another user is refused a log by the job's number and owner" {
    start_system
    as "$ALICE" berth submit -G 0 --wait -- echo hers
    try_as "$BOB" berth logs 1
    is "status and words" "$status $out $err" "5  berth: only the owner can read the log of job 1, which is $ALICE's"
    try_as "$BOB" berth logs -f 1
    is "following" "$status $out $err" "5  berth: only the owner can read the log of job 1, which is $ALICE's"
    is "her own" "$(as "$ALICE" berth logs 1)" hers
}

@test "berth top as root shows nothing of a file that the job's user cannot read" {
    start_system
    as "$ALICE" mkfifo go
    as "$ALICE" berth submit -G 0 --name peeked --log peek.log -- sh -c 'echo hers; read x <go'
    wait_until_running 1
    echo precious >"$ROOT/precious"
    chmod 600 "$ROOT/precious"
    open_terminal 100 30 berth top
    see '^hers'
    as "$ALICE" ln -sf "$ROOT/precious" peek.log
    see 'cannot read the log: Permission denied'
    as "$ALICE" ln -sf "$USERS_HOME/alice/go" peek.log
    see 'the log is not a regular file'
    press q
    see '^left 0'
    as "$ALICE" sh -c 'echo on >go; rm go peek.log'
}

@test "what a user mounts on the folder of that user's logs keeps that user's jobs waiting, and nobody else's" {
    start_system
    as "$ALICE" berth submit -G 0 --wait -- true
    local folder
    folder=$BERTH_DIR/logs/$(id -u "$ALICE")
    # Stands for a program of the user's (FUSE) that answers with an error.
    mount -t tmpfs -o ro none "$folder" 2>/dev/null || skip 'cannot mount'
    as "$ALICE" berth submit -G 0 -- true
    wait_for_event kind=started job=2 attempt=2
    umount -l "$folder" # a supervisor may be looking at it
    as "$BOB" berth submit -G 0 --wait -- true
    wait_for_event kind=ended job=2 state=COMPLETED
    has 'why it waited' "$(grep 'event=user-trouble' "$BERTH_DIR/daemon.log")" \
        "user=$ALICE .*another file system is mounted on the folder of logs $folder"
    has_not 'of the machine' "$(cat "$BERTH_DIR/daemon.log")" 'machine-trouble'
}
