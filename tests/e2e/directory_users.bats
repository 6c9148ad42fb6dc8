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

# Make the directory, with $NAME and $UID_OF_NAME in it.
make_directory()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    unshare -m true 2>/dev/null || skip "mount namespaces cannot be made here"
    NAME=btn$RANDOM UID_OF_NAME=$((70000 + RANDOM)) NSS=$ROOT/nss
    mkdir "$NSS" "$ROOT/home"
    cc -shared -fPIC -DNSS_FOLDER="\"$NSS\"" -o "$NSS/libnss_away.so.2" "$E2E/nss_away.c"
    printf '%s\n' 'passwd: files away' 'group: files away' 'shadow: files' >"$NSS/nsswitch.conf"
    echo "$NAME:x:$UID_OF_NAME:$UID_OF_NAME::$ROOT/home:/bin/bash" >"$NSS/passwd"
    echo "$NAME:x:$UID_OF_NAME:" >"$NSS/group"
    chown "$UID_OF_NAME:$UID_OF_NAME" "$ROOT/home"
    # The supervisor starts it with an empty environment.
    mv "$ROOT/bin/berth-user" "$ROOT/bin/berth-user.real"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s\n' "$NSS" "$ROOT/bin/berth-user.real" >"$ROOT/bin/berth-user"
    chmod 755 "$ROOT/bin/berth-user"
}

as_name()
{
    (cd "$ROOT/home" && exec setpriv --reuid "$UID_OF_NAME" --regid "$UID_OF_NAME" --clear-groups env HOME="$ROOT/home" "$@")
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

@test "a job whose account the user directory no longer has does not run" {
    make_directory
    start_system --set pam_service= # it has no record in shadow(5)
    as_name berth submit -G 0 --hold -- true
    : >"$NSS/passwd"
    berth release 1
    wait_for_event kind=ended job=1
    has "why" "$(berth show 1)" "no longer has an account on this machine"
}
