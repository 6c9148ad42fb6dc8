#!/usr/bin/env bats
# Hooks of the system daemon run as the job's user, with that user's rights and no more; they
# reveal nothing to other users, and do not delay them. With two real users.

load lib
load receiver
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

@test "a hook outlives neither its time limit nor its session" {
    start_system --set hook_limit_s=10
    as "$BOB" berth submit -G 0 --on-fail 'setsid sleep 1000 & setsid sleep 1000 & exit 0' --wait -- false || true
    wait_for_event kind=hook job=1 hook=on_fail state=done
    is "what is left of it" "$(pgrep -u "$BOB" -x sleep | wc -l)" 0
}

# The account that runs the settings' hooks if they name none.
standard_account()
{
    if id berth-hook >/dev/null 2>&1; then echo berth-hook; else echo nobody; fi
}

@test "the settings' hooks run as a service account, with nothing of the job's user's" {
    start_system --set 'on_end=id -un; pwd; umask; ulimit -n; env'
    as "$ALICE" bash -c 'ulimit -n 321; umask 077; export http_proxy=evil BASH_ENV=evil LD_PRELOAD=
        PATH=$HOME:$PATH berth submit -G 0 --name n --wait -- true'
    wait_for_event kind=hook job=1 hook=on_end state=done
    is "who, where, umask" "$(sed -n 2,4p "$BERTH_DIR/logs/hooks.log" | tr '\n' ' ')" \
        "$(standard_account) / 0022 "
    has_not "her limit" "$(sed -n 5p "$BERTH_DIR/logs/hooks.log")" '^321$'
    log=$(cat "$BERTH_DIR/logs/hooks.log")
    for line in BERTH_JOB_ID=1 BERTH_JOB_NAME=n "BERTH_USER=$ALICE" BERTH_JOB_STATE=COMPLETED \
        "USER=$(standard_account)" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; do
        has "environment" "$log" "^$line\$"
    done
    has_not "her environment" "$(grep -v ^BERTH_SUBMIT_DIR= <<<"$log")" 'evil|BASH_ENV|LD_PRELOAD|/alice'
    is "its log" "$(stat -c '%U %a' "$BERTH_DIR/logs/hooks.log")" "root 600"
    is "none of it in her folder" "$(ls "$BERTH_DIR/logs/$(id -u "$ALICE")")" 1.log
}

@test "the settings say which account runs their hooks, and a missing one is named" {
    start_system --set 'on_end=id -un' --set "hook_user=$BOB"
    as "$ALICE" berth submit -G 0 --wait -- true
    wait_for_event kind=hook job=1 hook=on_end state=done text="$BOB"
    berth daemon stop >/dev/null
    start_system --set 'on_end=id -un' --set hook_user=no-such-account
    as "$ALICE" berth submit -G 0 --wait -- true
    wait_for_event kind=hook job=2 hook=on_end state=failed \
        "text=no account 'no-such-account' on this machine"
}

@test "no job's environment redirects the settings' webhook, and its user's slow hooks do not delay it" {
    serve 200
    start_system --set "webhook=http://127.0.0.1:$PORT/site?token=secret"
    as "$ALICE" mkfifo "never.$BATS_TEST_NUMBER"
    as "$ALICE" env http_proxy=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 \
        CURL_HOME="$USERS_HOME/alice" ALL_PROXY=http://127.0.0.1:9 \
        berth submit -G 0 --array 0-5 --on-end "read line <never.$BATS_TEST_NUMBER" --wait -- true
    wait_for_event kind=hook job=1 hook=webhook state=done
    has "what came" "$(cat "$ROOT/server.out")" 'post 200 /site.*"kind":"ended"'
    background open sh -c "trap '' PIPE; while :; do echo go >$USERS_HOME/alice/never.$BATS_TEST_NUMBER; done"
    "$AWAIT" until "$LIMIT" "berth status --json" hooks_waiting 0
}

@test "one user's slow hooks delay no other user's, and are hidden from other users" {
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
    "$AWAIT" until "$LIMIT" "berth status --json" hooks_waiting 0
}

@test "a removed folder, and a user's own links in place of the log, change nothing for other users" {
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
    is "root's" "$(berth daemon log-level debug)" "debug (was info), until the daemon is restarted"
}
