# For tests of the machine's daemon with real users: `load users` after `load lib`. The file's
# first test creates two accounts, $ALICE and $BOB, and a group, $ADMINS; the last one's
# teardown removes them. This needs root: without it, tests skip. Each test has an instance of
# its own in $ROOT, which both users can reach. Since the checkout may be out of their reach,
# e.g. in root's home, the programs are copied to $ROOT/bin and the tests' helpers to where
# $E2E then points.

# Print why accounts cannot be made, if so.
why_no_users()
{
    if [ "$(id -u)" -ne 0 ]; then
        echo "only root can make users and run jobs as them"
    elif ! type -P useradd >/dev/null || ! type -P runuser >/dev/null; then
        echo "there is no useradd or no runuser here"
    fi
}

# Programs that change accounts wait 15 seconds for each other and then give up, which is too
# short on a busy machine when files of tests run in parallel: this takes a lock first.
in_turn()
{
    flock -o /etc "$(type -P "$1")" "${@:2}"
}

# A screen folder outlives its user, and another account of that name, which a later file makes
# with a reused process id, may not use it.
useradd()
{
    rm -rf "/run/screen/S-${!#}"
    in_turn useradd "$@"
}

userdel()
{
    in_turn userdel "$@" || return
    rm -rf "/run/screen/S-${!#}"
}

usermod() { in_turn usermod "$@"; }
groupadd() { in_turn groupadd "$@"; }
groupdel() { in_turn groupdel "$@"; }
gpasswd() { in_turn gpasswd "$@"; }

setup_file()
{
    # Each test prints why it is skipped: bats of Debian 12 takes a skip in here for a failure.
    if [ -n "$(why_no_users)" ]; then return 0; fi
    local tag=$$ # no other file's
    export ALICE=bta$tag BOB=btb$tag ADMINS=btg$tag
    export USERS_HOME
    USERS_HOME=$(mktemp -d /tmp/berth-users.XXXXXX)
    chmod 755 "$USERS_HOME"
    mkdir "$USERS_HOME/e2e"
    find "$BATS_TEST_DIRNAME" -maxdepth 1 -type f ! -name '*.bats' -exec cp {} "$USERS_HOME/e2e" \;
    find_await
    cp "$AWAIT" "$USERS_HOME/e2e"
    chmod -R a+rX "$USERS_HOME/e2e"
    groupadd "$ADMINS"
    useradd -m -d "$USERS_HOME/alice" -s /bin/bash -G users "$ALICE"
    useradd -m -d "$USERS_HOME/bob" -s /bin/bash "$BOB"
    chmod 700 "$USERS_HOME/alice" "$USERS_HOME/bob"
}

teardown_file()
{
    [ -n "${USERS_HOME:-}" ] || return 0
    userdel -f "$ALICE" || true
    userdel -f "$BOB" || true
    groupdel "$ADMINS" || true
    rm -rf "$USERS_HOME"
}

case_setup()
{
    local program why
    why=$(why_no_users)
    if [ -n "$why" ]; then skip "$why"; fi
    E2E=$USERS_HOME/e2e
    AWAIT=$E2E/await
    ROOT=$(mktemp -d "$USERS_HOME/test.XXXXXX")
    chmod 755 "$ROOT"
    export BERTH_DIR=$ROOT/i BERTH_LOCK_DIR=$ROOT/locks
    mkdir -p "$ROOT/bin" "$BERTH_LOCK_DIR"
    for program in berth berthd berth-compat berth-shepherd berth-init berth-user berth-probe berth-web berth-srun-step; do
        install -m 755 "$(find_program $program)" "$ROOT/bin/"
    done
    PATH=$ROOT/bin:$PATH
    cd "$USERS_HOME" || return 1
}

case_teardown()
{
    [ -n "${USERS_HOME:-}" ] || return 0
    # Processes left by a failed test would make the following tests fail.
    if [ -z "${BATS_TEST_COMPLETED:-}" ]; then pkill -KILL -u "$ALICE,$BOB" || true; fi
    umount -l "$ROOT/disk" 2>/dev/null || true # a test's own, if it has one
    rm -rf "$ROOT"
}

# In the folder of berth, or where an installation has it.
find_program()
{
    local bin
    bin=$(dirname "$(command -v berth)")
    if [ -x "$bin/$1" ]; then echo "$bin/$1"; else echo "$bin/../libexec/berth/$1"; fi
}

# Start the machine's daemon for this test: `start_system [berthd options]`. With NO_SIM set
# its GPUs are those that a probe finds.
start_system()
{
    local cards=(--sim 2)
    if [ -n "${NO_SIM:-}" ]; then cards=(); fi
    mkfifo "$ROOT/ready"
    berthd --system --dir "$BERTH_DIR" "${cards[@]}" --ready-fd 9 "$@" 9>"$ROOT/ready" 3>&- &
    read -r line <"$ROOT/ready"
    rm "$ROOT/ready"
    is "the daemon's first word" "$line" ready
}

# Run a command as a user of the file, in their home: `as $ALICE berth queue`.
as()
{
    local user=$1 home=$USERS_HOME/alice
    shift
    if [ "$user" = "$BOB" ]; then home=$USERS_HOME/bob; fi
    # The settings folder is the test's own, in which users cannot write.
    (cd "$home" && exec runuser -u "$user" -- env -u XDG_CONFIG_HOME HOME="$home" USER="$user" "$@")
}

# The same, with output and status kept apart as by `try`.
try_as()
{
    status=0
    as "$@" >"$ROOT/out" 2>"$ROOT/err" </dev/null || status=$?
    out=$(cat "$ROOT/out")
    err=$(cat "$ROOT/err")
}
