#!/usr/bin/env bats
# The account rules of the machine that apply when a job starts: expiry, a locked password,
# PAM's account stack, the limits of pam_limits, users that only nsswitch resolves. With two
# real users.

load lib
load users

log_of()
{
    cat "$BERTH_DIR/logs/$(id -u "$1")/$2.log"
}

# A PAM service for this test alone: `pam_service LINE...`; then --set "$PAM".
pam_service()
{
    [ -e /lib/x86_64-linux-gnu/security/pam_limits.so ] || [ -n "$(find /lib /usr/lib -name pam_limits.so -print -quit)" ] ||
        skip "there is no PAM here"
    ldd "$ROOT/bin/berth-user" | grep -q libpam || skip "this build has no PAM"
    mkdir -p "$ROOT/pam"
    printf '%s\n' "$@" >"$ROOT/pam/jobs"
    PAM=pam_service=$ROOT/pam/jobs
}

case_teardown()
{
    chage -E -1 "$ALICE"
    usermod -p '!' "$ALICE"
    rm -rf "$ROOT"
}

# A held job of alice's: its number is 1.
held_job()
{
    as "$ALICE" berth submit -G 0 --hold -- sh -c 'echo ran'
}

@test "a held job of an account that has expired meanwhile does not start, and says why" {
    start_system
    held_job
    chage -E 2000-01-01 "$ALICE"
    berth release 1
    wait_for_event kind=ended job=1
    has "why" "$(berth show 1)" "the account $ALICE has expired"
    [ ! -e "$BERTH_DIR/logs/$(id -u "$ALICE")/1.log" ] || fail_with "it has run"
    chage -E -1 "$ALICE"
    as "$ALICE" berth submit -G 0 --wait -- true
}

@test "nor does one of an account whose password was locked; one that never had a password runs" {
    start_system
    held_job
    echo "$ALICE:a password" | chpasswd
    usermod -L "$ALICE"
    berth release 1
    wait_for_event kind=ended job=1
    has "why" "$(berth show 1)" "the account $ALICE is locked"
    as "$BOB" berth submit -G 0 --wait -- true
    berth daemon stop >/dev/null
    start_system --set locked_accounts=run
    as "$ALICE" berth submit -G 0 --wait -- true
}

@test "a job that PAM's account rules forbid does not start, with the module's message" {
    pam_service "account requisite pam_access.so accessfile=$USERS_HOME/access.conf" \
        "account required pam_permit.so" "session required pam_permit.so"
    printf '%s\n' "+:$BOB:ALL" "-:ALL:ALL" >"$USERS_HOME/access.conf"
    start_system --set "$PAM"
    as "$BOB" berth submit -G 0 --wait -- true
    as "$ALICE" berth submit -G 0 -- true
    wait_for_event kind=ended job=2
    has "why" "$(berth show 2)" "PAM \(service jobs\) does not let $ALICE run jobs: Permission denied"
}

@test "a job has the limits that PAM gives a login, and never more than its user may have" {
    pam_service "account required pam_permit.so" \
        "session required pam_limits.so conf=$USERS_HOME/limits.conf"
    printf '%s\n' "$ALICE soft nofile 300" "$ALICE hard nofile 400" "$ALICE - core 0" \
        "$ALICE hard nproc 900" >"$USERS_HOME/limits.conf"
    start_system --set "$PAM"
    as "$ALICE" berth submit -G 0 --wait -- bash -c 'ulimit -Sn; ulimit -Hn; ulimit -Hc; ulimit -Hu'
    is "as a login has them" "$(log_of "$ALICE" 1 | tr '\n' ' ')" "300 400 0 900 "
    as "$ALICE" bash -c 'ulimit -n 200; berth submit -G 0 --wait -- sh -c "ulimit -Sn; ulimit -Hn"'
    is "what she set lower herself" "$(log_of "$ALICE" 2 | tr '\n' ' ')" "200 200 "
    as "$ALICE" bash -c 'ulimit -Sn 400; ulimit -Hn 400; berth submit -G 0 --wait -- sh -c "ulimit -Sn"'
    is "what she may raise" "$(log_of "$ALICE" 3)" 400
    as "$BOB" bash -c 'ulimit -n 500; berth submit -G 0 --wait -- sh -c "ulimit -n"'
    is "another user's" "$(log_of "$BOB" 4)" 500
    as "$ALICE" berth submit -G 0 --on-end 'ulimit -Hn' --wait -- true
    wait_for_event kind=hook job=5 hook=on_end state=done text=400
}

# Make utmp say that alice is logged in, by a living process, in a mount namespace of the
# daemon's own.
alice_is_logged_in()
{
    unshare -m true 2>/dev/null || skip "mount namespaces cannot be made here"
    UTMP=$ROOT/utmp
    command -v cc >/dev/null || skip "there is no C compiler here"
    cat >"$ROOT/utmp.c" <<'EOF'
#include <stdio.h>
#include <string.h>
#include <utmp.h>
int main(int argc, char **argv)
{
    struct utmp u = {.ut_type = USER_PROCESS, .ut_pid = 1};
    strncpy(u.ut_user, argv[1], sizeof u.ut_user);
    return fwrite(&u, sizeof u, 1, stdout) != 1;
}
EOF
    cc -o "$ROOT/utmp" "$ROOT/utmp.c"
    UTMP=$ROOT/logins
    "$ROOT/utmp" "$ALICE" >"$UTMP"
}

@test "a limit on logins, whatever is counted, keeps no job from starting, and the other limits apply" {
    pam_service "account required pam_permit.so" \
        "session required pam_limits.so conf=$USERS_HOME/limits.conf"
    printf '%s\n' "$ALICE hard nofile 400" "$ALICE - maxlogins 1" "$BOB hard nofile 500" "$BOB - maxlogins 0" >"$USERS_HOME/limits.conf"
    alice_is_logged_in
    start_system --set "$PAM"
    as "$ALICE" berth submit -G 0 -- bash -c 'ulimit -Hn'
    as "$BOB" berth submit -G 0 -- bash -c 'ulimit -Hn'
    wait_for_event kind=ended job=1
    wait_for_event kind=ended job=2
    is "alice's limit" "$(log_of "$ALICE" 1)" 400
    is "bob's limit" "$(log_of "$BOB" 2)" 500
}

@test "a session rule that forbids jobs does so also if there are too many logins" {
    pam_service "account required pam_permit.so" \
        "session required pam_limits.so conf=$USERS_HOME/limits.conf" \
        "session required pam_access.so accessfile=$USERS_HOME/access.conf"
    echo "$ALICE - maxlogins 1" >"$USERS_HOME/limits.conf"
    printf '%s\n' "+:$BOB:ALL" "-:ALL:ALL" >"$USERS_HOME/access.conf"
    alice_is_logged_in
    start_system --set "$PAM"
    as "$BOB" berth submit -G 0 --wait -- true
    as "$ALICE" berth submit -G 0 -- true
    wait_for_event kind=ended job=2
    has "why" "$(berth show 2)" "PAM \(service jobs\) does not let $ALICE run jobs: Permission denied"
}

@test "a PAM service that cannot be used is named, and the job does not run" {
    pam_service "account required pam_no_such_module.so" "session required pam_permit.so"
    start_system --set "$PAM"
    as "$ALICE" berth submit -G 0 -- sh -c 'echo ran'
    wait_for_event kind=started job=1 attempt=2
    has "why" "$(cat "$BERTH_DIR/daemon.log")" "PAM \(service jobs\) does not let $ALICE run jobs: Module is unknown"
    [ ! -e "$BERTH_DIR/logs/$(id -u "$ALICE")/1.log" ] || fail_with "it has run"
}

@test "a PAM module that looks up another account does not change whose account the job gets" {
    type -P cc >/dev/null || skip "there is no cc here"
    cat >"$ROOT/looks_up.c" <<'EOF'
#include <pwd.h>
int pam_sm_acct_mgmt(void *pam, int flags, int argc, const char **argv) { return getpwuid(0) ? 0 : 4; }
int pam_sm_open_session(void *pam, int flags, int argc, const char **argv) { return getpwuid(0) ? 0 : 4; }
int pam_sm_close_session(void *pam, int flags, int argc, const char **argv) { return 0; }
EOF
    cc -shared -fPIC -o "$ROOT/looks_up.so" "$ROOT/looks_up.c"
    pam_service "account required $ROOT/looks_up.so" "session required $ROOT/looks_up.so"
    start_system --set "$PAM"
    as "$ALICE" berth submit -G 0 --wait --login -- sh -c 'id -u; id -g; id -Gn; echo "$HOME"'
    is "whose" "$(log_of "$ALICE" 1 | tr '\n' ' ')" \
        "$(id -u "$ALICE") $(id -g "$ALICE") $(id -Gn "$ALICE") $USERS_HOME/alice "
}

# Replaces berth-user: it receives the question, and answers with root's account.
answer_as_root()
{
    cat >"$ROOT/bin/berth-user" <<'EOF'
#!/usr/bin/python3
import os, socket
s = socket.socket(fileno=3)
fields = s.recv(131072).split(b"\0")
log = os.open("/dev/null", os.O_WRONLY) if fields[6] else -1
answer = b"\0".join([b"yes", b"root", b"/root", b"/bin/sh", b"0", b"0", b"0", b"", b""])
socket.send_fds(s, [answer], [fd for fd in (os.open("/", os.O_PATH), log) if fd >= 0])
EOF
    chmod 755 "$ROOT/bin/berth-user"
}

# pam_unix does so if it cannot start its helper for lack of memory.
@test "a PAM module that refuses once does not fail a job" {
    type -P cc >/dev/null || skip "there is no cc here"
    cat >"$ROOT/once.c" <<EOF
#include <sys/stat.h>
int pam_sm_acct_mgmt(void *pam, int flags, int argc, const char **argv) { return mkdir("$ROOT/asked", 0700) == 0 ? 7 : 0; }
int pam_sm_open_session(void *pam, int flags, int argc, const char **argv) { return 0; }
int pam_sm_close_session(void *pam, int flags, int argc, const char **argv) { return 0; }
EOF
    cc -shared -fPIC -o "$ROOT/once.so" "$ROOT/once.c"
    pam_service "account required $ROOT/once.so" "session required $ROOT/once.so"
    start_system --set "$PAM"
    as "$ALICE" berth submit -G 0 --wait -- true
    [ -d "$ROOT/asked" ]
}

@test "an answer about another account than the job's is refused" {
    answer_as_root
    start_system
    as "$ALICE" berth submit -G 0 -- touch "$ROOT/ran"
    wait_for_event kind=ended job=1
    has "why" "$(berth show 1)" "berth-user answered for user 0 instead of $(id -u "$ALICE")"
    [ ! -e "$ROOT/ran" ] || fail_with "it has run"
}

# Make nsswitch.conf use extrausers, or utmp be $UTMP, in a mount namespace of the daemon's own.
berthd()
{
    if [ -n "${UTMP:-}" ]; then
        unshare -m sh -c 'mount -t tmpfs none /run && cp "$0" /run/utmp && exec "$@"' "$UTMP" "$ROOT/bin/berthd" "$@"
        return
    fi
    if [ -z "${NSS:-}" ]; then command berthd "$@"; return; fi
    unshare -m sh -c 'mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf &&
        mount --bind "$0" /var/lib/extrausers && exec "$@"' "$NSS" "$ROOT/bin/berthd" "$@"
}

@test "a user known only to nsswitch gets jobs with that user's name, home, shell and groups" {
    ldconfig -p | grep -q libnss_extrausers || skip "there is no libnss-extrausers here"
    unshare -m true 2>/dev/null || skip "mount namespaces cannot be made here"
    local name=btx$RANDOM uid=$((70000 + RANDOM)) home=$ROOT/home
    NSS=$ROOT/nss
    mkdir "$NSS" "$home"
    printf '%s\n' 'passwd: files extrausers' 'group: files extrausers' 'shadow: files extrausers' \
        >"$NSS/nsswitch.conf"
    echo "$name:x:$uid:$uid::$home:/bin/bash" >"$NSS/passwd"
    echo "$name:*:19000:0:99999:7:::" >"$NSS/shadow"
    printf '%s\n' "$name:x:$uid:" "${name}x:x:$((uid + 1)):$name" >"$NSS/group"
    chown "$uid:$uid" "$home"
    start_system
    cd "$home"
    as_extra() { setpriv --reuid "$uid" --regid "$uid" --clear-groups env HOME="$home" "$@"; }
    as_extra berth submit -G 0 --login --wait -- \
        bash -c 'id -un; id -Gn; echo "$HOME $SHELL $BERTH_USER"'
    is "who" "$(tr '\n' ' ' <"$BERTH_DIR/logs/$uid/1.log")" "$name $name ${name}x $home /bin/bash $name "
    is "in the queue" "$(berth show 1 --json | json jobs.0.user)" "$name"
    as_extra berth submit -G 0 --hold -- true
    sed -i "s/^$name:\*:19000:0:99999:7:::/$name:*:19000:0:99999:7::1:/" "$NSS/shadow"
    as_extra berth release 2
    wait_for_event kind=ended job=2
    has "why it did not start" "$(berth show 2)" "the account $name has expired"
}

@test "what looking the user up has cost is not the job's" {
    mv "$ROOT/bin/berth-user" "$ROOT/bin/berth-user.real"
    # Some tenths of a second of computing.
    printf '#!/bin/bash\nfor ((i = 0; i < 200000; i++)); do :; done\nexec %s\n' "$ROOT/bin/berth-user.real" >"$ROOT/bin/berth-user"
    chmod 755 "$ROOT/bin/berth-user"
    start_system
    as "$ALICE" berth submit -G 0 -- true
    try_as "$ALICE" berth wait 1
    is status "$status" 0
    berth daemon stop # the database may have one user only
    cost=$(python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("SELECT cpu_ms FROM attempts").fetchone()[0])' "$BERTH_DIR/state/berth.db")
    [ "$cost" -lt 100 ] || fail_with "true took $cost ms"
}
