#!/usr/bin/env bats
# --screen, --env-setup and --login under the machine's daemon: sessions belong to the job's
# user alone, in that user's socket folder.

load lib
load users

users_case_setup=$(declare -f case_setup)
eval "users_${users_case_setup}"

case_setup()
{
    command -v screen >/dev/null || skip "GNU screen is not installed"
    users_case_setup
    unset STY SCREENDIR
    export TERM=vt100
}

# The session of a running job: `session_of 3`.
session_of()
{
    "$AWAIT" until "$LIMIT" "berth show $1 --json" jobs.0.state RUNNING >/dev/null || return 1
    job_field "$1" screen_session
}

@test "a session can be attached to by its own user, not by another" {
    start_system
    # Makes screen create its folder, as at boot.
    screen -ls >/dev/null || true
    alices=$(as "$ALICE" berth submit --parsable -G 0 --screen -- sh -c 'id -un; read x; echo "got $x"; exit 3')
    bobs=$(as "$BOB" berth submit --parsable -G 0 --screen -- sh -c 'id -un; read x; echo "got $x"; exit 4')
    session=$(session_of "$alices")
    other=$(session_of "$bobs")
    has "alice's list" "$(as "$ALICE" screen -ls)" "$session"
    has_not "bob's list" "$(as "$BOB" screen -ls)" "$session"
    has "whose process it is" "$(ps -o user:32= -p "${session%%.*}")" "^$ALICE"
    has "berth screens" "$(as "$ALICE" berth screens)" "${session#*.} .* $ALICE .* screen -r $session"
    has "bob's is not hers" "$(as "$ALICE" berth screens)" "as $BOB: screen -r $other"
    try_as "$BOB" screen -S "$ALICE/$session" -X stuff $'stolen\n'
    [ "$status" -ne 0 ] || fail_with "bob typed into alice's session"
    as "$ALICE" screen -S "$session" -X stuff $'hers\n'
    as "$BOB" screen -S "$other" -X stuff $'his\n'
    status=0; as "$ALICE" berth wait "$alices" || status=$?
    is "alice's exit status" "$status" 3
    status=0; as "$BOB" berth wait "$bobs" || status=$?
    is "bob's exit status" "$status" 4
    has "alice's log" "$(as "$ALICE" berth logs "$alices")" "^$ALICE.*"
    has "what she typed" "$(as "$ALICE" berth logs "$alices")" "got hers"
    has "what he typed" "$(as "$BOB" berth logs "$bobs")" "got his"
    is "processes of theirs left" "$(ps -u "$ALICE,$BOB" -o pid= | wc -l)" 0
}

@test "without a folder for sockets the user sees screen's own message, and the GPU is free again" {
    start_system
    as "$ALICE" mkdir -m 755 open
    id=$(as "$ALICE" env SCREENDIR="$USERS_HOME/alice/open" berth submit --parsable -G 1 --screen -- touch ran)
    status=0; as "$ALICE" berth wait "$id" || status=$?
    is "exit status" "$status" 1
    has "why" "$(job_field "$id" text)" "no screen session: .*must have mode 700"
    [ ! -e "$USERS_HOME/alice/ran" ] || fail_with "it ran without its session"
    is "processes left" "$(ps -u "$ALICE" -o pid= | wc -l)" 0
    as "$ALICE" berth submit -G 2 --wait -- true
}

@test "a set-up runs as the user, in the job's folder; a login's profile is read before it" {
    start_system
    echo 'export FROM_PROFILE=yes; site() { echo "site $1"; }; export -f site' >"$USERS_HOME/alice/.bash_profile"
    echo 'export WHO=$(id -un) AT=$PWD' >"$USERS_HOME/alice/activate"
    chmod 600 "$USERS_HOME/alice/activate"
    chown "$ALICE" "$USERS_HOME/alice/activate"
    as "$ALICE" env SECRET=1 berth submit -G 0 --login --env-setup 'source activate && site up' --wait -- \
        'echo "$WHO $AT $FROM_PROFILE ${SECRET-unset} ${BASH_ENV-none} $#"'
    is "its log" "$(as "$ALICE" berth logs @)" "site up
$ALICE $USERS_HOME/alice yes unset none 0"
    try_as "$BOB" berth submit -G 0 -D "$USERS_HOME/bob" --wait --env-setup "source $USERS_HOME/alice/activate" -- touch ran
    is "bob's exit status" "$status" 1
    has "why" "$(as "$BOB" berth show @)" "set-up failed: exit 1: source"
    [ ! -e "$USERS_HOME/bob/ran" ] || fail_with "it ran without its set-up"
}
