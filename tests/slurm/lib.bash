# For tests on a real Slurm cluster: `load lib` at the head of a .bats file gives each test a folder $ROOT, which
# all users can reach, and
#
#   start_cluster OPTION...   a cluster of its own (cluster start), which ends with the test; skips where there can be none
#   cluster VERB...           the program of that name, for that cluster
#
# A test that fails prints the end of slurmctld's log.

# Deadline in seconds for any one step, for a busy machine.
LIMIT=${LIMIT:-300}

setup()
{
    # A socket's path must be short, and the folders of bats are long.
    ROOT=$(mktemp -d /tmp/berth-slurm.XXXXXX)
    chmod 755 "$ROOT"
    cd "$ROOT" || return 1
    if declare -F case_setup >/dev/null; then case_setup; fi
}

teardown()
{
    if declare -F case_teardown >/dev/null; then case_teardown; fi
    if [ -z "${BATS_TEST_COMPLETED:-}" ] && [ -e "$ROOT/c/log/slurmctld.log" ]; then
        echo "# slurmctld.log:"
        tail -n 30 "$ROOT/c/log/slurmctld.log"
    fi
    cluster stop
    cd /
    rm -rf "$ROOT"
}

cluster() { timeout "$LIMIT" "$BATS_TEST_DIRNAME/cluster" "$ROOT/c" "$@"; }

start_cluster()
{
    local why
    why=$("$BATS_TEST_DIRNAME/cluster" why-not "$([[ " $* " == *" --accounting "* ]] && echo --accounting)")
    if [ -n "$why" ]; then skip "$why"; fi
    cluster start "$@"
    eval "$(cluster env)"
}

# `within COMMAND...`: retry until it succeeds. Slurm's commands cannot wait for most events.
within()
{
    local end=$((SECONDS + LIMIT))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}

# `job_is ID STATE`: compares with scontrol's state.
job_is() { [ "$(scontrol show job "$1" | grep -oP 'JobState=\K\w+')" = "$2" ]; }
