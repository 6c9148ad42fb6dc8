#!/usr/bin/env bats
# berth-web from the outside: its answers to each user, and that nothing that happens to it
# affects the daemon. web_browser.bats tests its pages.

load lib
load web

@test "a missing page is HTML for a browser, and JSON for a program" {
    start_daemon 1
    start_web
    for path in nothing jobs/x logout; do
        get "$path" -H 'Accept: text/html,application/xhtml+xml,*/*;q=0.8'
        is "status of $path" "$status" 404
        has "type of $path" "$head" '^Content-Type: text/html'
        has "the way back from $path" "$out" '<a href="/">Overview</a>'
    done
    for path in api/v1/nothing nothing; do
        get "$path" -H 'Accept: */*'
        has "type of $path" "$head" '^Content-Type: application/json'
    done
    get api/v1/nothing -H 'Accept: text/html'
    has "type below the API" "$head" '^Content-Type: application/json'
}

@test "the JSON agrees with berth's; a missing object is 404" {
    busy_machine
    start_web
    get api/v1/overview
    is "status" "$status" 200
    has "type" "$head" '^Content-Type: application/json'
    is "running" "$(json counts.RUNNING <<<"$out")" 1
    is "who runs" "$(json queue.0.name <<<"$out")" holder
    is "who waits" "$(json queue.1.name <<<"$out")" waiter
    is "what failed" "$(json failed <<<"$out")" "[]"
    is "a GPU" "$(json gpus.1.index <<<"$out")" 1
    try berth submit --wait -G 0 -- false
    "$AWAIT" until "$LIMIT" "curl -s ${url}api/v1/overview" failed.0.id 3
    get api/v1/jobs/2
    is "explained" "$(json explanation.reason <<<"$out")" "$(berth explain 2 --json | json jobs.0.reason)"
    get api/v1/queue?limit=1
    is "one line" "$(json jobs.0.id <<<"$out")" 1
    get api/v1/gpus
    is "GPUs" "$(json gpus.0.jobs.0 <<<"$out")" 1
    get api/v1/series
    is "series of" "$(json gpus.0.index <<<"$out")" 0
    get metrics
    has "metrics" "$out" '^berth_jobs\{state="running"\} 1$'
    get health
    is "health" "$(json state <<<"$out")" "$(berth health --json | json state)"
    get assets/page.js
    get assets/page.js -H "If-None-Match: $(sed -n 's/^ETag: //p' <<<"$head")"
    is "the same again" "$status" 304
    get api/v1/jobs/99
    is "no such job" "$status" 404
    has "words" "$out" 'no job 99'
    get "api/v1/jobs/1/series?attempt=99"
    is "no such attempt" "$status" 404
    get jobs/99
    is "no such job's page" "$status" 404
    has "words" "$out" 'no job 99'
    for path in nothing api/v1/nothing jobs/x jobs/0 assets/../web.h assets/; do
        get "$path" --path-as-is
        is "status of $path" "$status" 404
    done
    get "api/v1/queue?limit=x"
    is "a limit that is none" "$status" 400
}

@test "the history is paged and filtered; a job's log is its last part, made printable" {
    start_daemon 1
    for word in one two three; do berth submit -G 0 --wait -- echo $word; done
    berth submit -G 0 --wait -- sh -c 'printf "\033[31mred\033[0m\r50 percent\rdone\n\200\001"; exit 3' || true
    start_web
    get "api/v1/history?limit=3"
    is "the newest first" "$(json jobs.0.id <<<"$out")-$(json jobs.2.id <<<"$out")" 4-2
    get "api/v1/history?limit=3&before_id=$(json before_id <<<"$out")"
    is "the rest" "$(json jobs.0.id <<<"$out")" 1
    get "api/v1/history?state=FAILED"
    is "failed" "$(json jobs.0.id <<<"$out")" 4
    get "api/v1/history?search=TWO"
    is "found" "$(json jobs.0.id <<<"$out")" 2
    get api/v1/jobs/4/log
    is "its log" "$out" $'done\n\xef\xbf\xbd\xef\xbf\xbd'
    get api/v1/jobs/1/log?bytes=2
    is "its end" "$out" e
    berth submit -G 0 --wait -- seq 20000
    get api/v1/jobs/5/log?bytes=50000
    is "the whole lines of a longer end" "$out" "$(seq 20000 | tail -c 50000 | tail -n +2)"
    get api/v1/report
    is "the report" "$(json total.jobs <<<"$out")" 5
}

@test "only GET and HEAD under the server's own name are answered, with protective headers" {
    start_daemon 1
    start_web
    for method in POST PUT DELETE PATCH OPTIONS; do
        get api/v1/overview -X $method
        is "status of $method" "$status" 405
    done
    get api/v1/overview -I
    is "status of HEAD" "$status" 200
    get api/v1/overview -H 'Host: evil.example'
    is "another name" "$status" 421
    get "" -H "Host: evil.example:${url##*:}"
    is "another name's page" "$status" 421
    get api/v1/overview -H 'Host: localhost:1'
    is "localhost" "$status" 200
    get api/v1/overview -H 'Host: [::1]:7461'
    is "an address" "$status" 200
    get api/v1/overview -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: no-cors'
    is "another site's request" "$status" 403
    for path in "" api/v1/overview nothing assets/page.js history; do
        get "$path" -H 'Origin: http://evil.example'
        has "the policy of /$path" "$head" "^Content-Security-Policy: default-src 'none'; script-src 'self';.*frame-ancestors 'none'"
        has "no guessing of types" "$head" '^X-Content-Type-Options: nosniff'
        has "no referrer elsewhere" "$head" '^Referrer-Policy: same-origin'
        has_not "no CORS" "$head" '^Access-Control'
        has_not "no cookie" "$head" '^Set-Cookie'
    done
    get ""
    has_not "a script in the page" "$out" '<script>|javascript:| on[a-z]+="'
}

@test "with a token: requests without it or with a wrong one get nothing, the right one or its cookie everything" {
    start_daemon 1
    (umask 077; echo 0123456789abcdef0123 >token)
    start_web --token-file token
    for path in api/v1/overview api/v1/events metrics health history api/v1/jobs/1/log; do
        get "$path"
        is "status of /$path" "$status" 401
        get "$path" -H 'Authorization: Bearer 0123456789abcdef0124'
        is "status of /$path with a wrong token" "$status" 401
    done
    get api/v1/overview -H 'Authorization: Bearer 0123456789abcdef0123'
    is "with the token" "$status" 200
    get login -d token=wrong
    is "a wrong login" "$status" 403
    get login -d token=0123456789abcdef0123 -H 'Origin: http://evil.example'
    is "another site's form" "$status" 403
    get login -d "token=0123456789abcdef0123&next=//evil.example/"
    is "a login" "$status" 303
    has "it leads" "$head" '^Location: /$'
    has "the cookie" "$head" '^Set-Cookie: berth_session=[0-9a-f]{64}; .*HttpOnly; SameSite=Strict'
    has_not "no token in it" "$head" 0123456789abcdef0123
    cookie=$(sed -nE 's/^Set-Cookie: ([^;]*);.*/\1/p' <<<"$head")
    get api/v1/overview -H "Cookie: x=1; $cookie"
    is "with the cookie" "$status" 200
    get api/v1/overview -H "Cookie: ${cookie}0"
    is "with another cookie" "$status" 401
    get logout -d x=
    has "it ends" "$head" '^Set-Cookie: berth_session=; .*Max-Age=0'
}

@test "login reads only urlencoded forms; a multipart body is refused" {
    start_daemon 1
    (umask 077; echo 0123456789abcdef0123 >token)
    start_web --token-file token
    printf -- '--boundary\r\nContent-Disposition: form-data\r\n\r\nhello\r\n--boundary--\r\n' >nameless
    get login --data-binary @nameless -H 'Content-Type: multipart/form-data; boundary=boundary'
    is "a part without a name" "$status" 403
    get login -F token=0123456789abcdef0123
    is "a multipart form" "$status" 403
    get login -d token=0123456789abcdef0123 -H 'Host: evil.example'
    is "another name's form" "$status" 421
    get login -d token=0123456789abcdef0123 -H 'Content-Type: application/x-www-form-urlencoded; charset=UTF-8'
    is "a form with its character set" "$status" 303
}

# libmicrohttpd keeps the beginning of an escape until the form is destroyed, when a path of
# any length may be the one that makes its buffer grow.
@test "a login form that ends within an escape leads back to the whole path" {
    start_daemon 1
    (umask 077; echo 0123456789abcdef0123 >token)
    start_web --token-file token
    path=/
    for _ in $(seq 140); do
        path+=a
        get login -d "token=0123456789abcdef0123&next=$path%2"
        has "it leads there" "$head" "^Location: $path"
    done
}

@test "options that would open the page to others are refused with a message" {
    try berth-web --listen 0.0.0.0:0
    is "exit status" "$status" 2
    has "words" "$err" '--token-file FILE'
    echo 0123456789abcdef0123 >token
    chmod 644 token
    try berth-web --listen 0.0.0.0:0 --token-file token
    has "words" "$err" 'every user can read it'
    (umask 077; echo short >short)
    try berth-web --token-file short
    has "words" "$err" 'at least 16'
    try berth-web --listen gpu.example.org:80
    has "words" "$err" "is not an address; write 127.0.0.1:7461"
    try berth-web --nonsense
    has "words" "$err" "unknown option '--nonsense'"
}

@test "without a daemon the page says so, and finds one that starts; through a UNIX socket too" {
    start_web
    get api/v1/overview
    is "status" "$status" 503
    has "words" "$out" 'no daemon is running at'
    get ""
    is "the page" "$status" 200
    has "its words" "$out" 'no daemon is running at'
    start_web --listen "unix:$ROOT/web.sock"
    is "where" "$url" "unix:$ROOT/web.sock"
    is "its mode" "$(stat -c %a "$ROOT/web.sock")" 660
    start_daemon 1
    url=http://localhost/
    get api/v1/status --unix-socket "$ROOT/web.sock"
    is "running" "$(json counts.RUNNING <<<"$out")" 0
    kill "$web_pid"
    "$AWAIT" pid "$LIMIT" "$web_pid"
    [ ! -e "$ROOT/web.sock" ]
}

@test "the page gets events as they happen" {
    start_daemon 1
    start_web
    curl -sN --max-time "$LIMIT" "${url}api/v1/events" >"$ROOT/stream" 3>&- &
    background_pids="$background_pids $!"
    "$AWAIT" output "$LIMIT" "$ROOT/stream" '^event: rev'
    berth submit -G 0 --wait -- true
    "$AWAIT" output "$LIMIT" "$ROOT/stream" '"kind":"ended","job":1'
    # It shuts down cleanly with clients connected.
    kill "$web_pid"
    "$AWAIT" pid "$LIMIT" "$web_pid"
    wait "$web_pid"
}

@test "killing, stopping or flooding berth-web affects neither the daemon nor the jobs" {
    start_daemon 2
    start_web
    curl -sN "${url}api/v1/events" >"$ROOT/stream" 3>&- &
    background_pids="$background_pids $!"
    "$AWAIT" output "$LIMIT" "$ROOT/stream" '^event: rev'
    cat >flood.py <<'PY'
import socket, sys, threading
host, port = sys.argv[1].split("//")[1].strip("/").split(":")
def ask(n):
    for i in range(150):
        s = socket.create_connection((host, int(port)))
        s.sendall(b"GET /api/v1/history?search=%d-%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % (n, i))
        s.close()
held = [socket.create_connection((host, int(port))) for _ in range(200)]
for s in held:
    s.sendall(b"GET / HTTP/1.1\r\nHost: loc")
threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
PY
    background flood python3 flood.py "$url"
    for _ in 1 2 3; do berth submit -G 0 --wait -- true; done
    finish flood
    is "flood" "$status" 0
    # Requests of clients that have gone may still be waiting for the daemon: others are told
    # to retry soon.
    get api/v1/status --retry "$LIMIT" --retry-delay 1
    is "status afterwards" "$status" 200
    kill -STOP "$web_pid"
    for _ in 1 2 3; do berth submit -G 0 --wait -- true; done
    kill -CONT "$web_pid"
    get api/v1/status
    is "status afterwards" "$status" 200
    kill -KILL "$web_pid"
    berth submit -G 0 --wait -- true
}

@test "hundreds of incomplete requests do not block the page" {
    start_daemon 1
    start_web
    "$E2E/webcrowd.py" "$url" half || fail_with 'the page was not served beside them'
}

@test "hundreds of slow readers do not block the page" {
    start_daemon 1
    start_web
    "$E2E/webcrowd.py" "$url" slow || fail_with 'the page was not served beside them'
}

@test "an open berth-web without visitors does not keep an idle daemon running" {
    local pid
    mkdir -p "$BERTH_DIR"
    echo 'idle_exit_s: 10' >"$BERTH_DIR/config.yaml"
    berth submit --sim 1 -G 0 --wait -- true
    start_web
    get api/v1/status
    is "leaves" "$(json daemon.leaves_when_idle <<<"$out")" true
    pid=$(json daemon.pid <<<"$out")
    "$AWAIT" pid "$LIMIT" "$pid"
}
