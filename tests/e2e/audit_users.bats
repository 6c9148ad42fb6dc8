#!/usr/bin/env bats
# The audit: whatever a user does to a job, a GPU or the daemon of all users is in the events,
# with the user's name and the kernel's uid, whoever owns the job.

load lib
load users

# A job of alice's that runs until it is ended: $id. More options may be given.
alice_runs()
{
    id=$(as "$ALICE" berth submit --parsable --requeue "$@" -- sh -c 'trap "" USR1 TERM; echo deaf; sleep 300')
    "$AWAIT" prints "$LIMIT" "berth logs $id" '^deaf'
}

alice_waits()
{
    id=$(as "$ALICE" berth submit --parsable -G 0 "$@" -- true)
}

# Check the last event of a kind after $before: $1 must be its user: `was_done_by USER KIND
# [WORDS...]`.
was_done_by()
{
    local user=$1 kind=$2 event
    shift 2
    event=$(wait_for_event --after "$before" "kind=$kind" "$@")
    is "by, of $kind" "$(json by <<<"$event")" "$user"
    is "by_uid, of $kind" "$(json by_uid <<<"$event")" "$(id -u "$user")"
    if json job <<<"$event" >/dev/null 2>&1; then
        is "whose job, of $kind" "$(json user <<<"$event")" "$ALICE"
    fi
}

# How the job is made | what an admin does | the event | other fields
VERBS='
alice_runs -G 1         | cancel JOB --grace 1s   | cancelled | job=JOB
alice_waits --hold      | cancel JOB              | ended     | job=JOB state=CANCELLED
alice_waits --begin now+1h | hold JOB                | held      | job=JOB
alice_waits --hold      | release JOB             | released  | job=JOB
alice_waits --hold      | priority JOB 7          | updated   | job=JOB priority=7
alice_runs -G 0         | requeue JOB             | requeue   | job=JOB
alice_waits             | requeue JOB             | requeued  | job=JOB
alice_runs -G 0         | signal JOB USR1         | signal    | job=JOB
true                    | pause 0                 | gpu       | state=paused
true                    | resume 0                | gpu       | state=up
true                    | daemon log-level debug  | daemon    | state=log_level
'

@test "each verb of an admin on another's job is in the events, under the admin's name" {
    start_system --set "admin_group=$ADMINS"
    usermod -aG "$ADMINS" "$BOB"
    while IFS='|' read -r make verb kind words; do
        [ -n "$make" ] || continue
        id=
        $make </dev/null
        kind=${kind// /}
        if [ "${make// /}" = alice_waits ]; then as "$ALICE" berth wait "$id"; fi
        before=$(berth events | tail -1 | json seq)
        try_as "$BOB" berth ${verb//JOB/$id}
        is "status of $verb: $err" "$status" 0
        was_done_by "$BOB" "$kind" ${words//JOB/$id}
        if [ -n "$id" ]; then berth cancel "$id" --grace 1s; fi
    done <<<"$VERBS"
    gpasswd -d "$BOB" "$ADMINS" >/dev/null
}

@test "a second user who cancels with a shorter grace is in the events beside the first" {
    start_system
    alice_runs -G 0
    as "$ALICE" berth cancel "$id" --grace 1m
    before=0
    was_done_by "$ALICE" cancelled "job=$id"
    berth cancel "$id" --grace 1s
    was_done_by root cancelled "job=$id" by=root
    status=0; as "$ALICE" berth wait "$id" || status=$?
    is status "$status" 130
    is "who is said to have cancelled it" "$(job_field "$id" cancelled_by)" "$ALICE"
}

@test "events record who stopped the daemon, also for followers" {
    start_system
    alice_waits --hold
    background follow berth events -f --since 0
    wait_for_output follow '"kind":"submitted"' >/dev/null
    berth daemon stop --cancel
    wait_for_output follow '"kind":"daemon"' >"$ROOT/stopping"
    is state "$(json state <"$ROOT/stopping")" stopping
    is by "$(json by <"$ROOT/stopping") $(json by_uid <"$ROOT/stopping")" "root 0"
    wait_for_output follow '"kind":"ended"' >"$ROOT/ended"
    is "of alice's job" "$(json by <"$ROOT/ended") $(json user <"$ROOT/ended")" "root $ALICE"
}

# An interactive job of alice's: $id and $socket.
alice_is_interactive()
{
    as "$ALICE" mkfifo gate.$BATS_TEST_NUMBER
    background job as "$ALICE" berth submit -G 0 --interactive -- \
        sh -c 'echo ready; read x <gate.$1' sh "$BATS_TEST_NUMBER"
    wait_for_output job '^ready$'
    id=1
}

let_it_end()
{
    as "$ALICE" sh -c "echo >gate.$BATS_TEST_NUMBER"
    finish job
    is status "$status" 0
}

@test "events record who attaches to which job, also while no daemon is running" {
    start_system
    alice_is_interactive
    before=0
    was_done_by "$ALICE" attached "job=$id"
    background look berth attach "$id" --from-start
    wait_for_output look '^ready$'
    was_done_by root attached "job=$id" by=root
    kill "$pid_of_look"
    was_done_by root detached "job=$id"
    is "she is attached" "$(events_with kind=detached "job=$id" "by=$ALICE" | wc -l)" 0
    before=$(berth events | tail -1 | json seq)
    try_as "$BOB" berth attach "$id"
    is "status of bob" "$status" 5
    socket=$(job_field "$id" attach)
    kill_daemon
    background look python3 "$E2E/attached.py" "$socket"
    wait_for_output look '^ready$'
    start_system
    was_done_by root attached "job=$id" by=root input=false
    is "of bob" "$(events_with kind=attached "by=$BOB" | wc -l)" 0
    let_it_end
}

@test "attaching again and again does not fill the log of events" {
    start_system
    alice_is_interactive
    as "$ALICE" python3 "$E2E/attached.py" --times 200 "$(job_field "$id" attach)"
    let_it_end
    n=$(events_with kind=attached "job=$id" | wc -l)
    [ "$n" -ge 20 ] && [ "$n" -le 30 ] || fail_with "$n events of 200 visits"
}
