#!/usr/bin/env bats
# The machine's daemon, supervisors and probes are killed at random moments under jobs of two
# real users and of every kind (tests/campaign/users.py), bounded; the full campaign is a
# thousand kills: `tests/campaign/users.py --bin build/gcc/root/bin`.

load lib
load users

@test "kill -9 of the machine's daemon under jobs of two users: each runs once, as its user, with its true exit code" {
    local cycles=15
    if [ -n "${BERTH_E2E_SLOW:-}" ]; then cycles=5; fi
    timeout 1000 python3 "$BATS_TEST_DIRNAME/../campaign/users.py" --bin "$ROOT/bin" --users "$ALICE,$BOB" \
        --cycles "$cycles" --round "$cycles"
}

@test "one user's attacks on the machine's daemon leave another served" {
    timeout 1000 python3 "$BATS_TEST_DIRNAME/../campaign/hostile.py" --bin "$ROOT/bin" --users "$ALICE,$BOB" --seconds 20 --queue 20000 --smoke \
        >"$ROOT/out" 2>&1 || fail_with "$(cat "$ROOT/out")"
    has "the last line" "$(tail -1 "$ROOT/out")" "^the bystander was served$"
}
