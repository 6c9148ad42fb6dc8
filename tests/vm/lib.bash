# What every case on the virtual machine stands on. `load ../lib` at the head of a .bats file
# gives each test a machine of its own: Debian with systemd as PID 1, what was built installed
# below /usr, berthd.service enabled and running, users alice and bob, nothing in the queue. It begins at
# the same saved moment for each, and is thrown away at the end. Commands run in it by
#
#   guest WORD...         as root; one word is a script for bash, several are a program and arguments
#   as USER WORD...       in a login session of that user, as by ssh
#   push FILE PATH        copies a file of the host into it
#   within SECONDS SCRIPT runs the script (as root) again until it succeeds
#   fails COMMAND...      succeeds where the command fails; `! COMMAND` counts only as a test's last
#
# with the output and the exit status of the command. And it has a power switch:
#
#   reboot                shuts it down in order and boots it again
#   power_cut             takes the power away: what was not flushed to the disk is lost
#   boot                  boots it again after that, on the same disk
#
# The daemon has two simulated GPUs: /etc/systemd/system/berthd.service.d/simulate.conf is the only
# change to what was built. `LIMIT` seconds (longer where the processor is emulated) is what
# any one command may take.
# An emulated machine stands still once in some hundred cases: such a case is run once more, and that is said.
# What a test prints is shown when it fails, with the end of the guest's journal and of its console.

LIMIT=60

setup()
{
    VM_DIR=$BATS_TEST_TMPDIR/vm
    export VM_SOCKET=$VM_DIR/socket
    mkdir -p "$VM_DIR"
    "$BERTH_SOURCE/tests/vm/machine.py" "$VM_SOCKET" "$VM_READY" "$VM_DIR" >"$VM_DIR/log" 2>&1 3>&- &
    VM_PID=$!
    until [ -S "$VM_SOCKET" ]; do
        if ! kill -0 "$VM_PID" 2>/dev/null; then
            cat "$VM_DIR/log"
            return 1
        fi
        sleep 0.05
    done
    if declare -F case_setup >/dev/null; then case_setup; fi
}

teardown()
{
    if [ -z "${BATS_TEST_COMPLETED:-}" ] && [ -S "$VM_SOCKET" ]; then
        if ask hangs; then
            BATS_TEST_RETRIES=1
            # Output of a failed attempt is discarded.
            {
                echo "the emulated machine stands still: $BATS_TEST_DESCRIPTION"
                tail -n 20 "$VM_DIR/console.log"
            } 2>&1 | sed 's/^/# /' >&3
        else
            echo "# the guest's journal:"
            ask run --limit 5 'journalctl -b --no-pager -o short-monotonic | tail -40' || true
        fi
        echo "# its console, and what was said of the machine:"
        tail -n 20 "$VM_DIR/console.log" "$VM_DIR/log" || true
    fi
    kill -KILL "$VM_PID" 2>/dev/null || true
    wait "$VM_PID" 2>/dev/null || true
    # A disk with its changes is large, and each case has one.
    rm -f "$VM_DIR"/*.qcow2
}

ask() { "$BERTH_SOURCE/tests/vm/ask" "$@" 3>&-; }
guest() { ask run --limit "$LIMIT" "$@"; }
# Fail if the command succeeds: `! COMMAND` does so only at a test's end.
fails() { if "$@"; then return 1; fi; }
push() { ask run --stdin "cat >'$2'" <"$1"; }
reboot() { ask reboot; }
power_cut() { ask cut; }
boot() { ask boot; }

# Makes everything ready for `limits-hold`: its programs, devices of two cards, a swap file (without
# it memory.max alone would hold), and the limit for processes.
install_limits()
{
    for program in limit-try limits-hold; do
        push "$BERTH_SOURCE/tests/vm/$program" "/usr/local/bin/$program"
    done
    guest 'chmod 755 /usr/local/bin/limit-try /usr/local/bin/limits-hold
        mknod -m 666 /dev/card0 c 195 0; mknod -m 666 /dev/card1 c 195 1
        dd if=/dev/zero of=/swap bs=1M count=256 status=none && chmod 600 /swap && mkswap -q /swap && swapon /swap
        mkdir -p /etc/berth; echo "job_max_processes: 50" >/etc/berth/config.yaml; systemctl reload berthd'
}

as()
{
    local user=$1
    shift
    ask run --limit "$LIMIT" --user "$user" "$@"
}

# Retry inside the guest, so that an attempt costs little: `within SECONDS SCRIPT`.
within()
{
    local limit=$1 script=$2
    ask run --limit "$limit" "until { $script
        } >/run/within.out 2>&1; do sleep 0.1; done; cat /run/within.out" && return 0
    echo "# not within $limit s: $script"
    ask run 'tail -20 /run/within.out'
    return 1
}
