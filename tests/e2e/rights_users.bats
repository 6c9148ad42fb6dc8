#!/usr/bin/env bats
# The rights that a job starts with and can get: like a login by default, fewer if the settings
# say so. With two real users.

load lib
load users

# The daemon inherits a capability, as in some containers.
berthd()
{
    setpriv --inh-caps +net_raw "$ROOT/bin/berthd" "$@"
}

# A job's rights according to /proc: `rights_in LOG`.
FIELDS='^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs)'

own_bounding_set()
{
    awk '/^CapBnd/ {print $2}' /proc/self/status
}

# A program that gets root's uid when it is executed, as sudo does.
setuid_program()
{
    install -m 4755 "$(command -v id)" "$ROOT/bin/setuid-id"
}

@test "a job starts without capabilities, and can get those that a login can" {
    setuid_program
    start_system
    as "$ALICE" berth submit -G 0 --wait -- sh -c "grep -E '$FIELDS' /proc/self/status; setuid-id -u"
    none=0000000000000000
    is "rights" "$(awk '{print $NF}' "$BERTH_DIR/logs/$(id -u "$ALICE")/1.log" | tr '\n' ' ')" \
        "$none $none $none $(own_bounding_set) $none 0 0 "
}

@test "drop_capabilities applies to setuid programs and root's jobs too" {
    setuid_program
    start_system --set drop_capabilities=all
    as "$ALICE" berth submit -G 0 --wait --on-end 'grep CapBnd /proc/self/status' -- sh -c 'grep CapBnd /proc/self/status; setuid-id -u'
    is "nothing is left" "$(awk '{print $NF}' "$BERTH_DIR/logs/$(id -u "$ALICE")/1.log" | tr '\n' ' ')" "0000000000000000 0 "
    wait_for_event kind=hook job=1 hook=on_end text='CapBnd:\t0000000000000000' >/dev/null ||
        wait_for_event kind=hook job=1 hook=on_end state=done
    berth daemon stop
    start_system --set drop_capabilities=chown,CAP_NET_RAW
    berth submit -G 0 --wait -- awk '/^Cap(Eff|Bnd)/ {print $2}' /proc/self/status
    while read -r mask; do
        is "chown and net_raw in root's job" "$((0x$mask & (1 << 13 | 1)))" 0
        [ "$((0x$mask & 2))" -ne 0 ] || fail_with "dac_override is gone as well: $mask"
    done <"$BERTH_DIR/logs/0/2.log"
}

@test "no_new_privs makes setuid programs ineffective" {
    setuid_program
    start_system --set no_new_privs=on
    as "$ALICE" berth submit -G 0 --wait -- sh -c 'setuid-id -u; grep NoNewPrivs /proc/self/status'
    is "what it got" "$(tr -d '\n' <"$BERTH_DIR/logs/$(id -u "$ALICE")/1.log" | tr -s '\t' ' ')" \
        "$(id -u "$ALICE")NoNewPrivs: 1"
}

@test "an unknown capability is refused by name" {
    try berthd --system --dir "$BERTH_DIR" --sim 1 --set drop_capabilities=sys_modul
    is "exit status" "$status" 2
    has "why" "$err" "drop_capabilities: 'sys_modul' is not a capability"
}
