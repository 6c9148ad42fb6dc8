#!/usr/bin/env bats
# berth logs -f: what it shows, and when.

load lib

case_setup()
{
    cd "$ROOT" || return 1
    mkfifo gate
}

@test "logs -f of a job whose folder is made when it starts shows what it prints meanwhile" {
    start_daemon 1
    berth submit --hold -G 0 -o made/later/out.log -- sh -c 'echo first; read line <gate; echo last'
    background follows berth logs -f 1
    wait_for_clients 1
    berth release 1
    wait_for_output follows first
    has state "$(berth show 1)" RUNNING
    echo >gate
    finish follows
    is status "$status" 0
    is shown "$(tail -n 2 <<<"$out")" $'first\nlast'
}

@test "logs -f goes on behind what is cut out of a log, and begins anew with one that was emptied" {
    mkfifo end # a new one: the job that opened the gate may not have closed it yet
    start_daemon 1
    # Its last line comes after the last cut, and after an empty line, because a cut may lose
    # text written at that moment, even the end of a line.
    berth submit -G 0 --log-max 1M -o big -- sh -c \
        'seq 1 110000; read line <gate; seq 110001 249999
        until [ "$(stat -c %s big)" -lt 1000000 ] && grep -q "cut out" big; do sleep 0.1; done; printf "\n250000\n"
        read line <gate; : >big; echo anew; read line <end; : >big; echo last'
    background follows berth logs -f 1
    wait_for_output follows '^110000$'
    # It looks again only once the rest of the log is longer than what it has shown.
    kill -STOP "$pid_of_follows"
    echo >gate
    "$AWAIT" prints "$LIMIT" 'grep -c "^250000$" big' '^1$'
    "$AWAIT" prints "$LIMIT" 'grep -c "were cut out" big' '^1$'
    kill -CONT "$pid_of_follows"
    wait_for_output follows 'MiB of output were cut out of this log here'
    wait_for_output follows '^250000$'
    # It finds other text in place of what it has shown, and no later write would wake it.
    kill -STOP "$pid_of_follows"
    echo >gate
    "$AWAIT" prints "$LIMIT" 'cat big' '^anew$'
    kill -CONT "$pid_of_follows"
    wait_for_output follows '^anew$'
    # And once more, when the job has ended.
    kill -STOP "$pid_of_follows"
    echo >end
    berth wait 1
    kill -CONT "$pid_of_follows"
    finish follows
    is status "$status" 0
    is "the first line" "$(grep -c '^1$' <<<"$out")" 1
    is "the last lines" "$(tail -n 3 <<<"$out")" $'250000\nanew\nlast'
}
