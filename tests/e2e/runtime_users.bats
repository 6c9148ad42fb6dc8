#!/usr/bin/env bats
# A user's own daemon and the folder of the user's login, /run/user/UID, which XDG_RUNTIME_DIR
# should name: after `su` or `sudo -E` it names another user's.

load lib
load users

# `as_on_another_machine COMMANDS`: run them as Alice where /run has nothing but her folder,
# root's and a service manager's; the manager's program notes the environment it got.
as_on_another_machine()
{
    cat >"$ROOT/systemd-run" <<'SH'
#!/bin/sh
echo "$XDG_RUNTIME_DIR ${DBUS_SESSION_BUS_ADDRESS:-none}" >>"$HOME/asked"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
SH
    chmod 755 "$ROOT/systemd-run"
    chmod 1777 "$BERTH_LOCK_DIR"
    cd "$USERS_HOME/alice"
    USER_ID=$(id -u "$ALICE") unshare -m bash -ec '
        mount --make-rprivate /
        mount -t tmpfs none /run
        mkdir -p /run/systemd/system /run/user/0/systemd /run/user/$USER_ID/systemd
        : >/run/user/$USER_ID/systemd/private
        chmod 700 /run/user/*
        chown -R "$ALICE" /run/user/$USER_ID
        mount --bind "$ROOT/systemd-run" /usr/bin/systemd-run
        exec runuser -u "$ALICE" -- env -u BERTH_DIR -u XDG_CONFIG_HOME HOME="$PWD" USER="$ALICE" "$@"' sh "$@"
}

@test "a daemon started with another user's XDG_RUNTIME_DIR asks its own user's service manager" {
    [ -e /usr/bin/systemd-run ] || skip "there is no systemd-run here"
    unshare -m true || skip "no mount name space can be made here"
    export ROOT
    XDG_RUNTIME_DIR=/run/user/0 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus as_on_another_machine \
        sh -ec 'berth daemon start --sim 1; berth submit --wait -G 0 -- true; berth daemon stop'
    is "what the manager's program got" "$(cat "$USERS_HOME/alice/asked")" "/run/user/$(id -u "$ALICE") none"
}
