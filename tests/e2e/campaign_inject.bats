#!/usr/bin/env bats
# The injection campaign (tests/campaign/inject.py), bounded: a few random cases of its table.
# The whole is `tests/campaign/inject.py --bin build/gcc/root/bin`.

load lib

inject()
{
    run timeout 1000 "$BERTH_SOURCE/tests/campaign/inject.py" --bin "$(dirname "$(command -v berthd)")" \
        --seconds 300 "$@"
    echo "$output"
    if [ "$status" -eq 77 ]; then skip "${output#skipped: }"; fi
    [ "$status" -eq 0 ]
}

@test "failing system calls of daemon, nursery and supervisors lose, repeat and fail no job" {
    inject --ways first,window,some,start --cases 6
}

@test "failing system calls of the machine's daemon, its supervisors and berth-user do neither" {
    if [ "$(id -u)" != 0 ]; then skip 'needs root'; fi
    inject --system --program user --program supervisor --ways first,window --cases 3
}

@test "failing system calls of berth-init and of the supervisors of containers do neither" {
    inject --jobs container --program init --calls fork,exec,memfd --ways first --cases 2
    inject --jobs container --program supervisor --ways first,window --cases 1
}

@test "failing system calls of the batch scripts of jobs on Slurm do neither" {
    inject --jobs slurm --program node --calls fork,dupfd,stat,socketpair --ways first --cases 1
}
