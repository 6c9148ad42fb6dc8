#!/usr/bin/env bats
# Fair shares between real users: a user who queued a thousand jobs first does not keep the
# others waiting, and a daemon that dies meanwhile does not change that.

load lib
load users

# Alice has every GPU until the test lets go, and a thousand jobs queued. Then come bob and
# root with two each.
queue_them()
{
    mkfifo -m 666 "$ROOT/gate"
    as "$ALICE" berth submit --parsable --gpus 2 -- cat "$ROOT/gate"
    wait_for_event kind=started job=1
    as "$ALICE" sh -c 'yes true | head -1000 >many; exec berth run --detach many'
    bob=$(as "$BOB" berth submit --parsable -- true)
    as "$BOB" berth submit -- true
    root=$(berth submit --parsable -- true)
    berth submit -- true
}

# The users of the first N jobs that started after alice's, in order.
starters()
{
    local event
    events_with kind=started | sed 1d | head -"$1" | while read -r event; do
        json user <<<"$event"
    done | tr '\n' ' '
}

others_are_next()
{
    timeout "$LIMIT" tee "$ROOT/gate" </dev/null
    wait_for_event kind=ended "job=$bob"
    wait_for_event kind=ended "job=$root"
    has 'the first two' "$(starters 2)" "^($BOB root|root $BOB) $"
    berth cancel --all
}

@test "three users, one of whom queued 1,000 jobs first: the others' first jobs start next" {
    start_system
    queue_them
    is "bob's place" "$(berth explain "$bob" --json | json jobs.0.position)" 1
    is "root's place" "$(berth explain "$root" --json | json jobs.0.position)" 2
    is 'how many wait' "$(berth explain "$bob" --json | json jobs.0.waiting)" 1004
    others_are_next
}

@test "recent use survives the daemon: the other users are still next" {
    start_system
    queue_them
    kill_daemon
    start_system
    others_are_next
}
