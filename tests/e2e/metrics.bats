#!/usr/bin/env bats
# Measurements and counters: `metrics`, `health`, and the use of GPUs and runs over time.

load lib

# A metric's value: `metric 'berth_jobs{state="pending"}'`.
metric()
{
    berth metrics --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["metrics"].get(sys.argv[1], "none"))' "$1"
}

# Send one request to the daemon, its result on standard output: `ask series '{"gpus": true}'`.
ask()
{
    python3 - "$BERTH_DIR/berth.sock" "$@" <<'PYTHON'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
ask = {"jsonrpc": "2.0", "id": 1, "method": sys.argv[2], "params": json.loads(sys.argv[3])}
s.sendall(json.dumps(ask).encode() + b"\n")
answer = json.loads(s.makefile().readline())
print(json.dumps(answer.get("result", answer)))
PYTHON
}

# Compare the counters with the history, number by number.
counters_agree_with_the_history()
{
    berth metrics --json >"$ROOT/metrics.json"
    berth history --json >"$ROOT/history.json"
    python3 - "$ROOT/metrics.json" "$ROOT/history.json" <<'PYTHON'
import collections, json, sys
m = json.load(open(sys.argv[1]))["metrics"]
# An array counts as its tasks; those that never left it are only in its own counts.
jobs = json.load(open(sys.argv[2]))["jobs"]
ended, outcomes, gpu_ms, runs = collections.Counter(), collections.Counter(), 0, 0
left = collections.Counter()
for j in jobs:
    if j["array"]:
        ended.update(j["array"]["ended"])
        continue
    if j["array_job"]:
        left[j["state"]] += 1
    else:
        ended[j["state"]] += 1
    for a in j["attempts"]:
        outcomes[a["outcome"]] += 1
        runs += 1
        gpu_ms += round((a["ended"]["unix"] - a["started"]["unix"]) * 1000) * len(a["gpus"])
for name, n in m.items():
    if name.startswith("berth_jobs_completed_total"):
        state = name.split('"')[1].upper()
        assert n == ended[state], (name, n, ended, left)
    if name.startswith("berth_job_attempts_ended_total"):
        assert n == outcomes[name.split('"')[1]], (name, n, outcomes)
total = sum(ended.values())
assert m["berth_jobs_submitted_total"] == total, (m["berth_jobs_submitted_total"], total)
assert m["berth_job_starts_total"] == runs == m["berth_job_run_seconds_count"], runs
have = sum(n for name, n in m.items() if name.startswith("berth_user_gpu_seconds_total"))
# Start and end use the wall clock, the run time does not: some milliseconds of difference per
# run.
assert abs(have - gpu_ms / 1000) < 0.05 * (runs + 1), (have, gpu_ms)
assert all(n == 0 for name, n in m.items() if name.startswith("berth_jobs{"))
PYTHON
}

@test "the counters agree with the history, even after the daemon is killed" {
    start_daemon 2
    berth submit --vram 4G -- true
    berth submit --vram 4G -- false
    berth submit --vram 4G --time 1s --grace 0.1s -- sleep 100
    berth submit --vram 30G -- true || true
    berth submit --vram 4G --oom-retries 1 -- berth simjob --vram 100 --ramp 0 --hold 0 --oom-once "$WORK/marker"
    berth submit -G 0 --array 0-4 -- sh -c 'exit $((BERTH_ARRAY_TASK_ID % 2))'
    berth submit -G 2 --array 0-9%1 --name slow -- sleep 100
    berth submit --gpus 0 --hold -- true
    timeout "$LIMIT" berth wait 1 2 3 4 5 6 || true
    wait_for_event kind=started name=slow array_task=0
    is waiting "$(metric 'berth_jobs{state="pending"}')" 9
    is held "$(metric 'berth_jobs{state="held"}')" 1
    berth cancel --all
    timeout "$LIMIT" berth wait --all || true
    is "retries after OOM" "$(metric 'berth_job_retries_total{reason="oom"}')" 1
    counters_agree_with_the_history
    kill_daemon
    start_daemon 2
    counters_agree_with_the_history
    is "passes of this daemon" "$(metric berth_commit_failures_total)" 0
}

@test "the metrics text is valid for Prometheus" {
    local promtool
    start_daemon 2
    berth submit --vram 4G -- true
    timeout "$LIMIT" berth wait 1
    try berth metrics --prometheus
    is status "$status" 0
    has text "$out" '^berth_jobs_completed_total\{result="completed"\} 1$'
    has text "$out" '^berth_gpu_memory_total_bytes\{gpu="0",uuid="SIM-[^"]*"\} 25769803776$'
    has text "$out" '^berth_job_wait_seconds_bucket\{le="\+Inf"\} 1$'
    try berth metrics
    has table "$out" '^berth_jobs_submitted_total +1$'
    has_not table "$out" '_bucket'
    promtool=$(command -v promtool || ls "$E2E/../../build/promtool" 2>/dev/null) ||
        skip "promtool is not here; tools/install-deps --check fetches it"
    berth metrics --prometheus | timeout "$LIMIT" "$promtool" check metrics
}

@test "the use of a run is kept, with its peak, and thinned to the requested points" {
    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 50\nidle_sample_ms: 100\n' >"$BERTH_DIR/config.yaml"
    start_daemon 2
    mkfifo seen
    berth submit -G 2 --vram 8G -- sh -c 'berth simjob --vram 3000 --ramp 0.5 --hold 1000 & read x <seen; kill $!'
    "$AWAIT" prints "$LIMIT" "$E2E/ask.py series '{\"job\": 1}' | jq '(.points | length >= 5) and (.points[-1][1] | .\"0\" == 3000 and .\"1\" == 3000)'" true
    echo >seen
    timeout "$LIMIT" berth wait 1
    ask series '{"job": 1}' >"$ROOT/run.json"
    stop_daemon
    start_daemon 2
    ask series '{"job": 1}' >"$ROOT/again.json"
    ask series '{"job": 1, "points": 3}' >"$ROOT/three.json"
    ask series '{"gpus": true}' >"$ROOT/cards.json"
    berth show 1 --json >"$ROOT/show.json"
    python3 - "$ROOT" <<'PYTHON'
import json, sys
run, again, three, cards, show = (json.load(open(f"{sys.argv[1]}/{name}.json"))
                                  for name in ("run", "again", "three", "cards", "show"))
job = show["jobs"][0]
peak = lambda s, gpu: max(p[1][gpu] or 0 for p in s["points"])
assert run == again
assert run["attempt"] == 1 and run["step_ms"] >= 100
assert len(run["points"]) >= 5, run
for gpu in "0", "1":
    assert peak(run, gpu) == peak(three, gpu) == job["peak_mib"][gpu] == 3000, run
assert 1 <= len(three["points"]) <= 3
times = [p[0] / 1e6 for p in run["points"]]
assert times == sorted(times)
assert job["started"]["unix"] - 1 < times[0] and times[-1] < job["ended"]["unix"] + 1
# The GPUs' per-minute history survived the daemon.
for card in cards["gpus"]:
    assert max(p[1] for p in card["points"]) == 3000, card
PYTHON
    has error "$(ask series '{"job": 77}')" 'no job 77'
    has error "$(ask series '{"job": 1, "attempt": 2}')" 'no attempt 2'
    has error "$(ask series '{"gpus": true, "points": 1}')" '"code": 2'
}

# Wait until no check fails, as a probe may be late on a busy machine: $out.
until_healthy()
{
    "$AWAIT" prints "$LIMIT" "berth health >$ROOT/health.out && echo healthy" healthy >/dev/null ||
        fail_with "$(cat "$ROOT/health.out")"
    out=$(cat "$ROOT/health.out")
}

@test "health: no daemon, all well, a paused GPU, a probe that hangs" {
    try berth health
    is "status without a daemon" "$status" 4
    has text "$out" '^bad +daemon +no daemon is running'
    try berth health --json
    is "status without a daemon" "$status" 4
    is state "$(json state <<<"$out")" bad

    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 100\nidle_sample_ms: 200\nprobe_deadline_ms: 3000\n' \
        >"$BERTH_DIR/config.yaml"
    start_daemon 2
    until_healthy
    has_not text "$out" '^bad'
    has text "$out" '^ok +gpu +all 2 GPUs are available'
    for check in daemon probe disk database socket clients shepherds files memory clock; do
        has checks "$out" "^(ok|warn) +$check "
    done

    berth pause 1 --reason 'new fan'
    until_healthy # the exit status with a warning is 0
    has text "$out" '^warn +gpu +gpu 1 is paused by .* \(new fan\)'
    try berth health --strict
    is "status with a warning" "$status" 1

    echo hang >"$BERTH_DIR/sim/fault"
    wait_for_event kind=gpu state=unknown
    try berth health
    is "status with a bad probe" "$status" 1
    has "first line" "$(sed -n 2p <<<"$out")" '^bad +probe +the GPUs have not answered'
    rm "$BERTH_DIR/sim/fault"
}
