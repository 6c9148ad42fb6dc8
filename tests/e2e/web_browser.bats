#!/usr/bin/env bats
# berth-web's pages in a real Chromium, if there is one that can be driven.

load lib
load web

in_browser()
{
    python3 "$E2E/browser.py" || skip "there is no Chromium here that can be driven"
    timeout $((LIMIT * 6)) python3 "$E2E/web_pages.py" "$@"
}

@test "at every width, in light and dark, nothing overflows, lacks contrast or logs errors; pages update live, across a restart too" {
    busy_machine
    start_web
    in_browser look "$url" live "$url" "berth submit --parsable -G 0 -- sleep 600" \
        elsewhere "$url" restart "$url" "berth daemon stop" "berth daemon start --sim 2"
}

@test "holders of GPUs, gaps in a curve, a paused GPU, arrays, a job that does not exist" {
    start_daemon 2
    berth submit --vram 4G -- berth simjob --vram 3072 --ramp 0 --hold 600
    wait_for_event kind=usage job=1
    berth cancel 1
    wait_for_event kind=ended job=1
    berth submit --vram 20G -- sleep 600
    berth submit --vram 20G -- sleep 600
    berth submit --gpus 2 -- true
    berth submit --gpus 0 --hold --array 0-9 -- true
    start_web
    in_browser details "$url" 4
}

@test "a job's page, history and report; users' text stays text" {
    local escape=$'\e'
    mkfifo seen
    start_daemon 1
    berth submit -G 0 --wait -- false || true
    berth submit --vram 2G --name '<img src=x onerror=alert(1)>' -- \
        "echo 'said by the job </script><img src=x onerror=alert(2)>'; : '$escape[31m' '<img src=x onerror=alert(3)>'; berth simjob --vram 1000 --ramp 0.3 --hold 1000 & read x <seen; kill \$!"
    # A curve needs some points.
    "$AWAIT" prints "$LIMIT" "$E2E/ask.py series '{\"job\": 2}' | jq '.points | length >= 3'" true
    echo >seen
    berth wait 2
    (umask 077; echo 0123456789abcdef0123 >token)
    start_web
    open=$url
    start_web --token-file token
    in_browser pages "$open" 2 login "$url" 0123456789abcdef0123
}

@test "VRAM in use is that of the GPUs that report theirs" {
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world BERTH_NVIDIA_SMI=/none BERTH_SYS=$ROOT BERTH_PROC=$ROOT
    printf '%s\n' 'driver 580.95' 'card GPU-a 24564 564 512' 'card GPU-b 1 0 0' 'memory 1 3' >"$ROOT/world"
    timeout "$LIMIT" berth daemon start >/dev/null
    start_web
    in_browser vram "$url" '0.5 / 23.4 GiB VRAM used on 1 of 2 GPUs'
    stop_daemon
    echo 'memory 0 3' >>"$ROOT/world"
    timeout "$LIMIT" berth daemon start >/dev/null
    in_browser vram "$url" 'n/a VRAM used'
}
