# For tests of berth-web: `load web` after `load lib`.

# Start berth-web for this test's daemon, at a free port: $url. `start_web [options]`.
start_web()
{
    mkfifo "$ROOT/web.ready"
    berth-web --listen 127.0.0.1:0 --ready-fd 9 "$@" 9>"$ROOT/web.ready" >"$ROOT/web.out" 2>&1 </dev/null 3>&- &
    web_pid=$!
    background_pids="$background_pids $web_pid"
    read -r url <"$ROOT/web.ready"
    rm "$ROOT/web.ready"
}

# `get PATH [curl options]`: sets $status to HTTP's, $out to the body, $head to the headers.
get()
{
    local path=$1
    shift
    status=$(curl -s --max-time "$LIMIT" -o "$ROOT/body" -D "$ROOT/head" -w '%{http_code}' "$@" "$url$path") || true
    out=$(tr -d '\0' <"$ROOT/body")
    head=$(tr -d '\r' <"$ROOT/head")
}

# One GPU in use, and a job that waits for both.
busy_machine()
{
    start_daemon 2
    berth submit --vram 8G --name holder -- berth simjob --vram 7000 --hold 600
    wait_until_running 1
    berth submit --gpus 2 --name waiter -- true
}
