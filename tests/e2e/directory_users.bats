#!/usr/bin/env bats
# A user directory of the network, an nsswitch module (nss_away.c), that is away for a while.
# $NAME is known only to it.

load lib
load users

# Run the daemon with nsswitch.conf and the module, in a mount namespace of its own.
berthd()
{
    LD_LIBRARY_PATH=$NSS ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 \
        unshare -m sh -c 'mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf && exec "$@"' "$NSS" "$ROOT/bin/berthd" "$@"
}

# Make the directory, with the user $NAME, whose uid is $UID_OF_NAME, and the group ${NAME}s.
make_directory()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    unshare -m true 2>/dev/null || skip "mount namespaces cannot be made here"
    NAME=btn$RANDOM UID_OF_NAME=$((70000 + RANDOM)) NSS=$ROOT/nss
    mkdir "$NSS" "$ROOT/home"
    cc -shared -fPIC -DNSS_FOLDER="\"$NSS\"" -o "$NSS/libnss_away.so.2" "$E2E/nss_away.c"
    printf '%s\n' 'passwd: files away' 'group: files away' 'shadow: files' >"$NSS/nsswitch.conf"
    echo "$NAME:x:$UID_OF_NAME:$UID_OF_NAME::$ROOT/home:/bin/bash" >"$NSS/passwd"
    printf '%s\n' "$NAME:x:$UID_OF_NAME:" "${NAME}s:x:$((UID_OF_NAME + 1)):" >"$NSS/group"
    chown "$UID_OF_NAME:$UID_OF_NAME" "$ROOT/home"
    # The supervisor starts it with an empty environment.
    mv "$ROOT/bin/berth-user" "$ROOT/bin/berth-user.real"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s\n' "$NSS" "$ROOT/bin/berth-user.real" >"$ROOT/bin/berth-user"
    chmod 755 "$ROOT/bin/berth-user"
}

# `as_name COMMAND` and `try_as_name COMMAND`: as $NAME, who is in the groups of this list.
GROUPS_OF_NAME=
as_name()
{
    env -C "$ROOT/home" HOME="$ROOT/home" setpriv --reuid "$UID_OF_NAME" --regid "$UID_OF_NAME" \
        --groups "${GROUPS_OF_NAME:-$UID_OF_NAME}" "$@"
}

try_as_name()
{
    status=0
    as_name "$@" >"$ROOT/out" 2>"$ROOT/err" </dev/null || status=$?
    err=$(cat "$ROOT/err")
}

@test "a job waits while the user directory is away, and then runs" {
    make_directory
    start_system --set pam_service= # it has no record in shadow(5)
    as_name berth submit -G 0 --hold -- sh -c 'echo ran'
    touch "$NSS/away"
    berth release 1
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=user-trouble
    has "why" "$(berth explain 1)" "the user directory does not answer for user $UID_OF_NAME"
    rm "$NSS/away"
    as_name berth wait 1
    is "its log" "$(cat "$BERTH_DIR/logs/$UID_OF_NAME/1.log")" ran
}

# `shift_clock SECONDS`: set all clocks but the wall clock that far ahead. A request makes the
# daemon notice.
shift_clock()
{
    echo "0 $1 $1" >"$ROOT/new" && mv "$ROOT/new" "$CLOCK_SHIFT"
    berth explain 2 >/dev/null
}

@test "a job whose account is not found waits for it, and fails only after ten minutes" {
    make_directory
    cc -shared -fPIC -o "$ROOT/clock_shift.so" "$E2E/clock_shift.c"
    export CLOCK_SHIFT=$ROOT/shift
    LD_PRELOAD=$ROOT/clock_shift.so start_system --set pam_service=
    as_name berth submit -G 0 --hold -- true
    as_name berth submit -G 0 --hold -- true
    mv "$NSS/passwd" "$NSS/kept"
    : >"$NSS/passwd"
    berth release 1
    "$AWAIT" prints "$LIMIT" "berth explain 1" "user $UID_OF_NAME \($NAME\) no longer has an account on this machine"
    mv "$NSS/kept" "$NSS/passwd"
    as_name berth wait 1
    : >"$NSS/passwd"
    berth release 2
    "$AWAIT" prints "$LIMIT" "berth explain 2" "no longer has an account"
    local seconds tries count="grep -c 'job=2 .*event=not-started' $BERTH_DIR/daemon.log"
    for seconds in 700 800 900 1000 1100 1200; do # nobody looked in the first 700
        tries=$(eval "$count")
        shift_clock $seconds
        "$AWAIT" prints "$LIMIT" "berth explain 2 >/dev/null; $count" "^$((tries + 1))\$"
    done
    shift_clock 1300
    wait_for_event kind=ended job=2 state=FAILED
    has "why" "$(berth show 2)" "no longer has an account on this machine"
}

@test "the limits of a user for whom the directory came late apply without a reload" {
    make_directory
    touch "$NSS/away"
    printf 'users:\n  %s: {max_pending: 1}\n' "$NAME" >"$ROOT/settings.yaml"
    start_system --config "$ROOT/settings.yaml"
    has "a warning" "$(cat "$BERTH_DIR/daemon.log")" "setting=users user=$NAME unknown user"
    rm "$NSS/away"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=users-found
    as_name berth submit -G 0 --hold -- true
    try_as_name berth submit -G 0 --hold -- true
    has "the second job" "$err" 'has 1 of at most 1 pending.*user_max_pending'
}

@test "limits stay when the directory is away during a reload" {
    make_directory
    printf 'users:\n  %s: {max_pending: 1}\n' "$NAME" >"$ROOT/settings.yaml"
    start_system --config "$ROOT/settings.yaml"
    touch "$NSS/away"
    printf 'users:\n  %s: {max_pending: 1}\n  %s: {max_pending: 2}\n' "$NAME" "$BOB" >"$ROOT/settings.yaml"
    kill -HUP "$(daemon_pid)"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=users-found
    as_name berth submit -G 0 --hold -- true
    try_as_name berth submit -G 0 --hold -- true
    has "the second job" "$err" 'has 1 of at most 1 pending.*user_max_pending'
}

@test "the daemon starts without admin_group, and its members are admins once it is there" {
    make_directory
    touch "$NSS/away"
    : >"$ROOT/settings.yaml"
    start_system --config "$ROOT/settings.yaml" --set user_priority_max=10 --set "admin_group=${NAME}s"
    has "a warning" "$(cat "$BERTH_DIR/daemon.log")" "setting=admin_group group=${NAME}s unknown group"
    GROUPS_OF_NAME=$((UID_OF_NAME + 1))
    try_as_name berth submit -G 0 --hold --priority 500 -- true
    is "status" "$status" 5
    rm "$NSS/away"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" event=users-found
    as_name berth submit -G 0 --hold --priority 500 -- true
    touch "$NSS/away"
    # Names are looked up one after the other, and the new user's is found.
    printf 'users:\n  %s: {max_pending: 2}\n' "$BOB" >"$ROOT/settings.yaml"
    kill -HUP "$(daemon_pid)"
    "$AWAIT" prints "$LIMIT" "grep -c event=users-found $BERTH_DIR/daemon.log" '^2$'
    as_name berth submit -G 0 --hold --priority 500 -- true
}
