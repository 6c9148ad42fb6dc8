# The kernel enforces --mem, --cpus, job_max_processes and device_filter, however the daemon
# was started, in its unit and below a user's own manager. Jobs and their records survive all
# of that, and a shutdown.
load ../lib

case_setup() { install_limits; }

all_hold() { as alice 'limits-hold memory cpus processes devices'; }

# True with controllers of cgroup v1 (run --hybrid): users then have none of them.
is_hybrid() { guest '[ -d /sys/fs/cgroup/unified ]'; }

# A job of alice's that ends on request; its id is 1.
alice_runs() { as alice "berth submit --gpus 0 --mem 100M $* -- 'echo running; exec sleep 1000'" && within 30 'berth show 1 | grep RUNNING'; }

still_runs()
{
    guest 'berth show 1 | grep RUNNING'
    guest 'cd /sys/fs/cgroup; cat {,memory/}berth.slice/*/*/job-1.1/memory.{max,limit_in_bytes} 2>/dev/null | grep -x 104857600'
    ! guest 'journalctl -b --no-pager | grep -i left-over'
}

@test "limits hold after the first start, and doctor says so line by line" {
    all_hold
    local lines
    lines=$(as alice 'berth doctor' || true)
    for what in kill memory swap cpus processes devices; do
        grep -qE "^ok +$what " <<<"$lines"
    done
    # The set-up and the hook are in groups of their own as well.
    as alice "berth submit -W --gpus 0 --env-setup 'cp /proc/self/cgroup setup' --on-end 'cp /proc/self/cgroup ended; mv ended hook' -- true"
    within 30 '[ -e /home/alice/hook ]'
    as alice 'grep "/berth.slice/berth-jobs@.*/job-[0-9]*.1$" setup && grep "/berth.slice/berth-jobs@.*/hook" hook'
}

@test "limits hold after a restart with a running job, which notices nothing" {
    alice_runs
    guest 'systemctl restart berthd'
    still_runs
    all_hold
    still_runs
}

@test "limits hold after something removed the jobs' cgroups, which were empty" {
    alice_runs
    guest 'berth cancel 1; berth wait 1 || true
        find /sys/fs/cgroup -depth -type d -name "berth-????????" -print -exec rmdir {} \; | grep berth-'
    all_hold
}

@test "limits hold after a kill by the watchdog" {
    alice_runs
    guest 'mkdir -p /run/systemd/system/berthd.service.d
        printf "[Service]\nWatchdogSec=4\n" >/run/systemd/system/berthd.service.d/watchdog.conf
        systemctl daemon-reload; systemctl restart berthd
        systemctl kill -s STOP --kill-whom=main berthd'
    within 60 'journalctl -b -u berthd --no-pager | grep -i "watchdog timeout" && berth queue'
    still_runs
    all_hold
}

@test "limits hold after an upgrade, even from a version with jobs in the daemon's own group" {
    alice_runs
    # As in an earlier version: in the group of berthd.service.
    guest 'systemd-run -q --unit old sleep 1000; systemctl show -P MainPID old >/run/old
        cd /sys/fs/cgroup; [ ! -d unified ] || cd unified; cat /run/old >system.slice/berthd.service/cgroup.procs'
    guest 'for program in /usr/bin/berthd /usr/libexec/berth/berth-shepherd /usr/libexec/berth/berth-probe; do
            cp $program $program.new; mv $program.new $program; done; systemctl daemon-reload; systemctl restart berthd'
    guest 'grep earlier /proc/$(cat /run/old)/cgroup'
    guest 'berth show 1 | grep RUNNING'
    all_hold
    guest 'berth cancel 1; berth wait 1 || true'
    guest 'kill $(cat /run/old)'
    # The earlier instance ends with its last job.
    within 30 '[ "$(systemctl list-units --plain --no-legend "berth-jobs@*" | wc -l)" -eq 1 ]'
}

@test "limits hold below a user's own service manager: in a login, and as its unit" {
    local limits='limits-hold memory processes cpus && { berth doctor >/tmp/doctor || true; } &&
        [ "$(grep -cE "^ok +(kill|memory|swap|cpus|processes) " /tmp/doctor)" -eq 5 ] &&
        grep "device_filter cannot be enforced here: .*root" /tmp/doctor'
    if is_hybrid; then
        limits='{ berth doctor | grep "^warn *confine .*berthd.service"; } &&
            berth submit --hold --mem 1G -- true 2>&1 | grep "mem is not enforced"'
    fi
    guest 'systemctl disable -q --now berthd; loginctl enable-linger alice'
    as alice 'berth daemon start --sim 2 && '"$limits"' && berth submit --mem 100M -- sleep 1000 &&
        systemctl --user list-units --plain --no-legend "berth*" | grep scope && berth daemon stop &&
        mkdir -p ~/.config/systemd/user/berthd.service.d &&
        printf "[Service]\nExecStart=\nExecStart=/usr/bin/berthd --stay --sim 2\n" >~/.config/systemd/user/berthd.service.d/sim.conf &&
        systemctl --user daemon-reload && systemctl --user start berthd && systemctl --user reload berthd &&
        systemctl --user restart berthd && berth queue | grep RUNNING && '"$limits"
    ! guest 'journalctl -b --no-pager | grep -i left-over'
}

@test "at a shutdown jobs are asked to end, as their records say afterwards" {
    as alice "berth submit --gpus 0 -- 'trap \"echo asked >asked; exit 3\" TERM; while :; do sleep 0.1; done'"
    as alice "berth submit --gpus 0 --requeue -- 'echo begun >>begun; exec sleep 1000'"
    within 60 '[ "$(berth queue | grep -c RUNNING)" -eq 2 ] && [ -e /home/alice/begun ]'
    reboot
    guest 'cat /home/alice/asked'
    within 60 "berth show 1 | grep 'lost: the machine was shut down'"
    within 60 '[ "$(wc -l </home/alice/begun)" -eq 2 ] && berth show 2 | grep RUNNING'
}

@test "a process that left its session, environment and supervisor behind ends with its job" {
    as alice "berth submit --gpus 0 -- 'setsid env -i sleep 1234 & exec sleep 1000'"
    within 30 'pgrep -f "^sleep 1234"'
    guest 'kill -KILL $(ps -o ppid= -p $(pgrep -f "^sleep 1000"))'
    within 30 '! pgrep -f "^sleep 1234" && berth show 1 | grep LOST'
}

@test "the service runs in a sandbox, and stopping it leaves jobs alone" {
    guest 'systemd-analyze security berthd --no-pager | tail -1' | grep -E ' [0-5]\.[0-9] '
    alice_runs
    guest 'systemctl stop berthd; pgrep -f "^sleep 1000"; systemctl start berthd'
    still_runs
}
