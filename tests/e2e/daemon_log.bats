#!/usr/bin/env bats
# The daemon's own log: followed across rotation, as JSON, log level changed at run time,
# reopened and with new settings on HUP.

load lib

settings()
{
    mkdir -p "$BERTH_DIR"
    printf '%s\n' "$@" >"$BERTH_DIR/config.yaml"
}

@test "daemon logs shows the daemon's log, even after it has exited" {
    try berth daemon logs
    is "exit status without a daemon" "$status" 1
    has "words" "$err" "no daemon has run here"
    start_daemon
    has "log" "$(berth daemon logs)" "event=ready pid=$(daemon_pid)"
    is "its last line alone" "$(berth daemon logs -n 1 | wc -l)" 1
    stop_daemon
    has "log" "$(berth daemon logs)" "event=leaving"
}

@test "the log says more or less at run time, until the daemon is restarted" {
    start_daemon
    is "level" "$(berth daemon log-level)" info
    try berth daemon log-level debug
    has "answer" "$out" "^debug \(was info\), until the daemon is restarted"
    berth submit -G 0 --wait -- true
    has "log" "$(berth daemon logs)" "debug job=1 event=started"
    has "log" "$(berth daemon logs)" "event=log-level old=info new=debug by=$(id -un)"
    try berth daemon log-level loud
    is "exit status" "$status" 2
    has "words" "$err" 'must be "error", "warn", "info" or "debug"'
    stop_daemon
    start_daemon
    is "level" "$(berth daemon log-level)" info
}

@test "log_format json gives one object a line, with the job and what happened" {
    settings 'log_format: json'
    start_daemon
    berth submit -G 0 --wait -- false || true
    berth daemon logs | python3 -c 'import json, sys
lines = [json.loads(line) for line in sys.stdin]
ended = [l for l in lines if l.get("event") == "ended"][0]
assert ended["job"] == 1 and ended["state"] == "FAILED" and ended["level"] == "info", ended
assert all(l["time"].endswith("Z") and l["level"] for l in lines), lines'
}

@test "a follower sees every line while the log is rotated" {
    settings 'log_max_mib: 1' 'log_keep: 2'
    start_daemon
    background follow berth daemon logs -f
    wait_for_output follow event=ready
    berth daemon log-level debug
    # A megabyte not written by the daemon counts like one that was.
    head -c 1048576 /dev/zero | tr '\0' x >>"$BERTH_DIR/daemon.log"
    echo >>"$BERTH_DIR/daemon.log"
    berth submit -G 0 --wait -- true
    wait_for_output follow 'job=1 event=ended'
    berth submit -G 0 --wait -- true
    wait_for_output follow 'job=2 event=ended'
    kill_and_start
    wait_for_output follow "event=ready pid=$(daemon_pid)"
    berth submit -G 0 --wait -- true
    wait_for_output follow 'job=3 event=ended'
    [ -f "$BERTH_DIR/daemon.log.1" ] || fail_with "nothing was put aside: $(ls "$BERTH_DIR")"
}

@test "a follower shows a log that was emptied from its beginning" {
    mkdir -p "$BERTH_DIR"
    seq 1 1000 >"$BERTH_DIR/daemon.log"
    background follow berth daemon logs -f
    wait_for_output follow '^1000$'
    # It finds other text in place of what it has shown, and no later write would wake it.
    kill -STOP "$pid_of_follow"
    echo anew >"$BERTH_DIR/daemon.log"
    kill -CONT "$pid_of_follow"
    wait_for_output follow '^anew$'
    kill "$pid_of_follow"
    finish follow
    is "all that was shown" "$(tail -n 2 <<<"$out")" $'1000\nanew'
}

kill_and_start()
{
    kill_daemon
    start_daemon
}

@test "on HUP the log is reopened and the settings that may change are applied" {
    settings 'log_level: info' 'margin_mib: 100'
    start_daemon
    settings 'log_level: debug' 'margin_mib: 200' 'oom_retries: 7'
    mv "$BERTH_DIR/daemon.log" "$BERTH_DIR/daemon.log.old"
    background follow berth daemon logs -f
    kill -HUP "$(daemon_pid)"
    wait_for_output follow event=reloaded
    has "log" "$(cat "$BERTH_DIR/daemon.log")" "key=log_level changed"
    has "log" "$(cat "$BERTH_DIR/daemon.log")" "key=margin_mib takes effect at the next start"
    is "level" "$(berth daemon log-level)" debug
    berth submit -G 0 --wait -- true
    is "a setting that counts at once" "$(job_field 1 oom_retries)" 7
    settings 'log_level: loud'
    kill -HUP "$(daemon_pid)"
    wait_for_output follow event=not-reloaded
    has "log" "$(cat "$BERTH_DIR/daemon.log")" "config.yaml:1.*loud"
    is "level" "$(berth daemon log-level)" debug
}

@test "in the foreground the daemon says where it logs to" {
    background daemon berthd --dir "$BERTH_DIR" --sim 1 --stay
    wait_for_output daemon event=ready
    try berth daemon logs
    is "exit status" "$status" 1
    has "words" "$err" "logs to its standard error"
    is "status" "$(berth status --json | json daemon.log)" null
    stop_daemon
    finish daemon
}
