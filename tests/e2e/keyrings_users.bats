#!/usr/bin/env bats
# Session keyrings, with two real users: no job, hook or screen session can read keys of the
# daemon, of another user or of another job.

load lib
load users

setup_keys()
{
    "$E2E/keys" session >/dev/null || skip "this kernel or container has no keyrings"
    # Users cannot reach a checkout in another user's home.
    install -m 755 "$E2E/keys" "$ROOT/bin/keys"
}

# Start the machine's daemon from a session keyring with the key "secret".
start_with_key()
{
    mkfifo "$ROOT/ready"
    "$ROOT/bin/keys" with secret rootkey berthd --system --dir "$BERTH_DIR" --sim 2 --ready-fd 9 "$@" \
        9>"$ROOT/ready" 3>&- &
    read -r line <"$ROOT/ready"
    rm "$ROOT/ready"
    is "the daemon's first word" "$line" ready
}

# The output of the job with that number.
log_of()
{
    cat "$BERTH_DIR/logs/$(id -u "$1")/$2.log"
}

@test "a job reads no key of the daemon's session, nor one of another user's or another job's" {
    setup_keys
    start_with_key
    as "$ALICE" berth submit -G 0 --wait -- keys read secret
    is "root's key, in alice's job" "$(log_of "$ALICE" 1)" none
    as "$ALICE" berth submit -G 0 --wait -- sh -c 'keys add token alices && keys read token'
    is "her own key" "$(log_of "$ALICE" 2)" alices
    as "$BOB" berth submit -G 0 --wait -- keys read token
    is "alice's key, in bob's job" "$(log_of "$BOB" 3)" none
    as "$ALICE" berth submit -G 0 --wait -- keys read token
    is "alice's key, in her next job" "$(log_of "$ALICE" 4)" none
    berth submit -G 0 --wait -- keys read secret
    is "the daemon's key, in root's job" "$(log_of root 5)" none
}

@test "a job's session keyring is its user's own and links to the user keyring, as a login's does" {
    setup_keys
    start_with_key
    as "$ALICE" berth submit -G 0 --wait -- keys session
    is "it" "$(log_of "$ALICE" 1)" "$(id -u "$ALICE") linked"
}

@test "neither set-up, hooks nor screen sessions have the daemon's session keyring" {
    setup_keys
    command -v screen >/dev/null || skip "there is no screen here"
    start_with_key
    as "$ALICE" berth submit -G 0 --env-setup 'keys read secret' --on-end 'keys read secret' \
        --wait -- true
    is "set-up" "$(log_of "$ALICE" 1)" none
    wait_for_event kind=hook job=1 hook=on_end state=done
    is "hook" "$(as "$ALICE" sed -n 2p "$BERTH_DIR/logs/$(id -u "$ALICE")/hooks.log")" none
    as "$ALICE" mkfifo seen
    as "$ALICE" berth submit -G 0 --screen --wait -- \
        sh -c 'screen -S "$STY" -X screen sh -c "keys read secret >seen"; cat seen'
    has "another window of the screen session" "$(log_of "$ALICE" 2)" "^none"
}
