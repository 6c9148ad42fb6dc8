#!/usr/bin/env bats
# berth-web on a machine with several users: it sees what its own user may see, and shows that
# only to those who may. With two real users and the machine's daemon.

load lib
load users

# berth-web as a user of the file, at a free port: $url. `web_as USER [options]`.
web_as()
{
    local pid
    mkfifo -m 666 "$ROOT/web.ready"
    as "$1" berth-web --listen 127.0.0.1:0 --ready-fd 9 "${@:2}" 9>"$ROOT/web.ready" >"$ROOT/web.out" 2>&1 </dev/null 3>&- &
    read -r url <"$ROOT/web.ready"
    rm "$ROOT/web.ready"
    # Behind runuser, which does not forward signals.
    for pid in $(marked_pids); do
        if [ "$(cat "/proc/$pid/comm")" = berth-web ]; then background_pids="$background_pids $pid"; fi
    done
}

# What a user gets: `get_as USER PATH`; HTTP's status, then the body.
get_as()
{
    as "$1" curl -s --max-time "$LIMIT" -w '\n%{http_code}' "$url$2"
}

@test "with private: on the page, the JSON, the events and the log show nothing of other users' jobs" {
    start_system --set private=on
    web_as "$BOB" --allow-local
    as "$BOB" curl -sN --max-time "$LIMIT" "${url}api/v1/events" >"$ROOT/stream" 3>&- &
    background_pids="$background_pids $!"
    "$AWAIT" output "$LIMIT" "$ROOT/stream" '^event: rev'
    as "$ALICE" berth submit -G 1 --name hush --tag hush --wait -- sh -c 'echo secret words; exit 3' || true
    as "$ALICE" berth submit -G 1 --name hush --hold -- sh -c 'echo secret words'
    as "$BOB" berth submit -G 0 --wait -- true
    "$AWAIT" output "$LIMIT" "$ROOT/stream" '"kind":"ended","job":3'
    for path in "" history jobs/1 jobs/2 report api/v1/overview api/v1/queue api/v1/jobs/1 api/v1/jobs/2 \
        "api/v1/history?search=secret" api/v1/history api/v1/report api/v1/jobs/1/log api/v1/jobs/1/series metrics; do
        out=$(get_as "$ALICE" "$path")
        has_not "/$path" "$out" "secret|hush|$USERS_HOME/alice"
    done
    has_not "events" "$(cat "$ROOT/stream")" "secret|hush|$USERS_HOME/alice"
    has "the queue" "$(get_as "$BOB" api/v1/queue)" "\"user\":\"$ALICE\""
    is "the log" "$(get_as "$BOB" api/v1/jobs/1/log | tail -1)" 403
}

@test "other users of the machine cannot open a user's page without --allow-local" {
    start_system
    as "$ALICE" berth submit -G 0 --wait -- echo secret words
    web_as "$ALICE"
    for path in "" api/v1/overview api/v1/jobs/1/log metrics; do
        has "alice's /$path" "$(get_as "$ALICE" "$path" | tail -1)" 200
        out=$(get_as "$BOB" "$path")
        is "status of bob's /$path" "$(tail -1 <<<"$out")" 403
        has_not "bob's /$path" "$out" secret
    done
    has "root's" "$(curl -s "${url}api/v1/jobs/1/log")" "secret words"
    web_as "$ALICE" --allow-local
    is "bob, let in" "$(get_as "$BOB" api/v1/overview | tail -1)" 200
}

@test "a log that does not belong to the job's user is not shown, whatever path the job names" {
    start_system
    (umask 077; echo 0123456789abcdef0123 >"$ROOT/token")
    chown "$BOB" "$ROOT/token"
    # By hand, because submit refuses a log that it cannot write.
    as "$ALICE" python3 "$E2E/ask.py" submit "{\"cwd\": \"/\", \"jobs\": [{\"command\": \"true\", \"gpus\": 0, \"log\": \"$ROOT/token\"}]}"
    as "$ALICE" berth wait 1 || true
    as "$ALICE" berth submit -G 0 --log /dev/zero --wait -- true || true
    web_as "$BOB"
    has "the words" "$(get_as "$BOB" api/v1/jobs/1/log)" "does not belong to the job's user"
    has "the words" "$(get_as "$BOB" api/v1/jobs/2/log)" "not a regular file"
}

@test "berth-web refuses --allow-local as root" {
    try berth-web --allow-local
    is "exit status" "$status" 2
    has "words" "$err" "as root would show all users"
}
