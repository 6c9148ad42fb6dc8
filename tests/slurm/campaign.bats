#!/usr/bin/env bats
# The campaigns of campaign.py on a real cluster, bounded. Longer ones:
# `tests/slurm/campaign.py --bin build/gcc/root/bin --lines 300 --kills 100 --many 10000`.

load lib

campaign()
{
    local why
    why=$("$BATS_TEST_DIRNAME/cluster" why-not)
    if [ -n "$why" ]; then skip "$why"; fi
    timeout 1150 python3 "$BATS_TEST_DIRNAME/campaign.py" --bin "$(dirname "$(command -v berth)")" \
        --nodes 2 --gpus 4 --lines 50 --kills 4 --each 4 --many 200 --wait 5 "$@"
}

@test "a file of all kinds of jobs ends the same at home, on Slurm and packed" {
    campaign same
}

@test "kills under a packed file: nothing is lost, nothing runs twice" {
    [ -n "${BERTH_E2E_SLOW:-}" ] || skip "minutes in which nodes are silent: BERTH_E2E_SLOW=1 runs it"
    campaign --ways pack kills
}

@test "kills under a file sent to Slurm: nothing is lost, nothing runs twice" {
    [ -n "${BERTH_E2E_SLOW:-}" ] || skip "minutes in which nodes are silent: BERTH_E2E_SLOW=1 runs it"
    campaign --ways slurm kills
}

@test "200 lines are sent, cancelled and followed with at most one call in a second" {
    campaign many
}
