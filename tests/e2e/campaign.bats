#!/usr/bin/env bats
# The crash campaigns (tests/campaign/crash.py), bounded: kills at every edge and at random
# moments, after which each job has run exactly once with its true exit code. Longer ones:
# `tests/campaign/crash.py --bin build/gcc/root/bin --jobs 5000 --kills 2000`. And malformed
# frames of all kinds (tests/campaign/frames.py), a million in the full campaign.

load lib

case_setup()
{
    bounds='--jobs 500 --kills 200 --seconds 300' frames=40000
    # Sanitized programs start slowly, so each kill costs more.
    if [ -n "${BERTH_E2E_SLOW:-}" ]; then bounds='--jobs 150 --kills 50 --seconds 300' frames='10000 --growth-mib 1000'; fi
}

campaign()
{
    timeout 1000 python3 "$E2E/../campaign/${script:-crash}.py" --bin "$(dirname "$(command -v berthd)")" \
        $bounds "$@"
}

@test "kill -9 of the daemon at random moments: each job exactly once, every code right" {
    campaign random-daemon
}

@test "kill -9 of shepherds: LOST with the reason, requeued only where asked" {
    campaign random-shepherd
}

@test "kill -9 of daemon, nursery and supervisors: no job twice, no code invented" {
    campaign random-any
}

@test "a crash at every durable edge of daemon and shepherd loses nothing" {
    campaign points
}

@test "malformed frames: the daemon and a supervisor stay up and serve others" {
    script=frames bounds="--frames $frames"
    campaign
}
