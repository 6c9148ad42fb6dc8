#!/usr/bin/env bats
# Hooks of the machine's daemon: whoever's job it is, that user runs them, with that user's rights
# and no more; nobody learns from them, or waits for them, who should not. With two real users.

load lib
load users

@test "a hook runs as the job's user, with that user's groups and limits, in the job's folder" {
    start_system
    as "$ALICE" bash -c 'ulimit -n 321; umask 027; berth submit -G 0 --on-end "id; umask; ulimit -n; pwd; cat /etc/shadow; touch made" --wait -- true'
    wait_for_event kind=hook job=1 hook=on_end state=done
    as "$ALICE" cat "$BERTH_DIR/logs/$(id -u "$ALICE")/hooks.log" >"$ROOT/log"
    has "who" "$(cat "$ROOT/log")" "uid=[0-9]+\($ALICE\).*groups=.*users"
    has "umask and limit" "$(tr '\n' ' ' <"$ROOT/log")" " 0027 321 $USERS_HOME/alice "
    has "what it may not" "$(cat "$ROOT/log")" "shadow: Permission denied"
    is "its file" "$(stat -c '%U %a' "$USERS_HOME/alice/made")" "$ALICE 640"
    is "its log" "$(stat -c '%U %a' "$BERTH_DIR/logs/$(id -u "$ALICE")/hooks.log")" "$ALICE 600"
}

@test "the settings' hooks run as the job's user too; a hook outlives neither its time nor its session" {
    start_system --set "on_end=id -un >>/tmp/${ROOT##*/}.who" --set hook_limit_s=2
    as "$BOB" berth submit -G 0 --wait -- true
    wait_for_event kind=hook job=1 hook=on_end state=done
    is "who" "$(cat "/tmp/${ROOT##*/}.who")" "$BOB"
    rm -f "/tmp/${ROOT##*/}.who"
    as "$BOB" berth submit -G 0 --on-fail 'setsid sleep 1000 & setsid sleep 1000 & exit 0' --wait -- false || true
    wait_for_event kind=hook job=2 hook=on_fail state=done
    is "what is left of it" "$(pgrep -u "$BOB" -x sleep | wc -l)" 0
    rm -f "/tmp/${ROOT##*/}.who"
}

@test "one user's slow hooks hold up nobody else's, and are for nobody else's eyes" {
    start_system
    local never=$USERS_HOME/alice/never.$BATS_TEST_NUMBER
    as "$ALICE" mkfifo "$never"
    as "$ALICE" berth submit -G 0 --array 0-9 --on-end "read line <$never" --wait -- true
    as "$ALICE" berth submit -G 0 --hold --webhook http://127.0.0.1:9/SECRET --on-end SECRET -- true
    held=$(as "$ALICE" berth show @ --json | json jobs.0.id)
    as "$BOB" berth submit -G 0 --on-end 'echo bob' --wait -- true
    bobs=$(as "$BOB" berth show @ --json | json jobs.0.id)
    wait_for_event kind=hook "job=$bobs" hook=on_end state=done
    for view in "show $held --json" "show $held" "queue --all --json" events; do
        # shellcheck disable=SC2086 # a verb and its options
        has_not "bob's $view" "$(as "$BOB" berth $view)" SECRET
    done
    is "alice's view" "$(as "$ALICE" berth show "$held" --json | json jobs.0.webhook)" \
        http://127.0.0.1:9/SECRET
    background open sh -c "trap '' PIPE; while :; do echo go >$never; done"
    "$E2E/await" until "$LIMIT" "berth status --json" hooks_waiting 0
}

@test "a folder that has gone, and a user's own links where the log was, change nothing for others" {
    start_system
    as "$ALICE" mkdir gone
    as "$ALICE" sh -c 'cd gone && berth submit -G 0 --on-end "pwd; echo told" --wait -- rmdir "$PWD"'
    wait_for_event kind=hook job=1 hook=on_end state=done
    log=$BERTH_DIR/logs/$(id -u "$ALICE")/hooks.log
    is "where" "$(sed -n 2,3p "$log" | tr '\n' ' ')" "/ told "
    echo precious >"$ROOT/precious"
    as "$ALICE" ln -sf "$ROOT/precious" "$log"
    as "$ALICE" berth submit -G 0 --on-end 'echo overwritten' --wait -- true
    wait_for_event kind=hook job=2 hook=on_end state=failed
    is "the file" "$(cat "$ROOT/precious")" precious
}

@test "log-level is for admins" {
    start_system
    try_as "$BOB" berth daemon log-level debug
    is "exit status" "$status" 5
    is "asked" "$(as "$BOB" berth daemon log-level)" info
    is "root's" "$(berth daemon log-level debug)" "debug (was info), until the daemon starts anew"
}
