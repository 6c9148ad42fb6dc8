#!/usr/bin/env bats
# The crash campaigns (tests/campaign/crash.py), bounded: kills at every edge and at random
# moments, after which each job has run exactly once with its true exit code. Longer ones:
# `tests/campaign/crash.py --bin build/gcc/root/bin --jobs 5000 --kills 2000`.

load lib

case_setup()
{
    jobs=500 kills=200
    # Sanitized programs start slowly, so each kill costs more.
    if [ -n "${BERTH_E2E_SLOW:-}" ]; then jobs=150 kills=50; fi
}

campaign()
{
    timeout 600 python3 "$E2E/../campaign/crash.py" --bin "$(dirname "$(command -v berthd)")" \
        --jobs "$jobs" --kills "$kills" "$@"
}

@test "kill -9 of the daemon at random moments: each job exactly once, every code right" {
    campaign random-daemon
}

@test "kill -9 of shepherds: LOST with the reason, requeued only where asked" {
    campaign random-shepherd
}

@test "a crash at every durable edge of daemon and shepherd loses nothing" {
    campaign points
}
