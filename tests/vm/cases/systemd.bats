# systemd's effects on jobs besides starting the daemon (confine.bats): the journal, and the
# end of a login session.
load ../lib

# Start a daemon of alice's as her service, with a job that reports when it is asked to end;
# the machine's daemon stops.
alices_service()
{
    guest 'systemctl disable -q --now berthd'
    as alice 'mkdir -p ~/.config/systemd/user/berthd.service.d
        printf "[Service]\nExecStart=\nExecStart=/usr/bin/berthd --stay --sim 2\n" >~/.config/systemd/user/berthd.service.d/sim.conf
        systemctl --user daemon-reload; systemctl --user start berthd && berth submit -- '"'$JOB'${1:-}"
}

# For `JOB` in a script for alice.
JOB='trap "echo asked >asked; exit 3" TERM; echo begun >begun; while :; do sleep 0.1; done'

# Alice's manager exits some seconds after her last session.
logged_out() { within 60 '! systemctl is-active user@$(id -u alice)'; }

@test "journal entries have fields by which those of a job or a user are found" {
    as alice 'berth submit -W -- "exit 3"; berth submit -- sleep 1000; berth cancel 2; berth wait 2; true'
    as bob 'berth submit -W --gpus 0 -- true'
    guest 'journalctl -u berthd -o json BERTH_JOB=1 BERTH_EVENT=ended' >"$BATS_TEST_TMPDIR/line"
    jq -e '.BERTH_USER == "alice" and .BERTH_STATE == "FAILED" and .BERTH_EXIT_STATUS == "3" and .PRIORITY == "6"
        and .SYSLOG_IDENTIFIER == "berthd" and (.MESSAGE | test("^job=1 event=ended "))' "$BATS_TEST_TMPDIR/line"
    [ "$(guest 'journalctl -u berthd -o cat BERTH_EVENT=ended BERTH_USER=alice' | grep -oE '^job=[0-9]+' | tr '\n' ' ')" = 'job=1 job=2 ' ]
    guest 'journalctl -u berthd -o cat BERTH_JOB=2' | grep 'event=cancel by=alice'
    [ -z "$(guest 'journalctl -u berthd -o cat BERTH_JOB=2' | grep -v '^job=2 ')" ]
    # A job's name cannot add a field or a line of its own.
    as alice "berth submit -W --gpus 0 --name \$'x\nBERTH_EVENT=forged' -- true || true"
    [ -z "$(guest 'journalctl -q -o cat BERTH_EVENT=forged')" ]
    guest 'systemctl restart berthd; journalctl -u berthd -o cat BERTH_EVENT=ready' | grep -c gpus=2 | grep -x 2
}

@test "a job of the machine's daemon survives its user's last logout, even with KillUserProcesses" {
    guest 'printf "[Login]\nKillUserProcesses=yes\n" >>/etc/systemd/logind.conf; systemctl restart systemd-logind'
    as alice "berth submit -- '$JOB'; setsid sleep 1234 & sleep 0"
    within 20 '[ -e /home/alice/begun ]'
    logged_out
    guest '! pgrep -f "^sleep 1234" && [ ! -e /home/alice/asked ] && berth show 1' | grep RUNNING
    as alice 'berth cancel 1; berth wait 1; cat asked' | grep asked
}

@test "without lingering a user's service and its jobs end after the logout, and their records say so" {
    alices_service '; berth submit --requeue -- "echo again >>again; exec sleep 1000"; berth doctor' | grep 'warn  *linger'
    within 20 '[ -e /home/alice/begun ] && [ -e /home/alice/again ]'
    logged_out
    guest 'cat /home/alice/asked && ! pgrep -u alice'
    as alice 'systemctl --user start berthd; berth show 1 | grep "the unit of its jobs stopped"; until [ $(wc -l <again) = 2 ]; do sleep 0.1; done'
}

@test "with lingering a user's service and its jobs go on" {
    guest 'loginctl enable-linger alice'
    alices_service '; systemctl --user enable berthd; berth doctor' | grep 'ok  *linger'
    within 60 '[ -e /home/alice/begun ] && [ -z "$(loginctl --no-legend list-sessions)" ]'
    as alice '[ ! -e asked ] && berth show 1' | grep RUNNING
    reboot
    as alice 'berth show 1 | grep LOST; berth submit -W -- true'
}

@test "a daemon started in a shell survives the logout, except with KillUserProcesses" {
    guest 'systemctl disable -q --now berthd'
    as alice "berth daemon start --sim 2; berth submit -- '$JOB'"
    within 60 '[ -e /home/alice/begun ] && loginctl --no-legend list-sessions -o json | grep -q closing || loginctl show-user alice -p State | grep closing'
    as alice 'berth show 1; berth daemon stop --cancel; rm begun' | grep RUNNING
    logged_out
    guest 'printf "[Login]\nKillUserProcesses=yes\n" >>/etc/systemd/logind.conf; systemctl restart systemd-logind'
    as alice "berth daemon start --sim 2; berth submit -- '$JOB'; until [ -e begun ]; do sleep 0.1; done"
    logged_out
    guest '! pgrep -u alice'
    as alice 'berth daemon start --sim 2 >&2; berth show 2' | grep 'the unit of its jobs stopped'
}
