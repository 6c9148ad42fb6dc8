#!/usr/bin/env bats
# `berth simulate` as users call it: files of each kind, figures as table and JSON, schedules,
# pictures, and error messages. Needs no daemon. tests/sim checks that schedules are right.

setup()
{
    data=${BERTH_SOURCE:-$BATS_TEST_DIRNAME/../..}/tests/sim/data
    export BERTH_DIR=$BATS_TEST_TMPDIR/no-daemon
    cd "$BATS_TEST_TMPDIR" || return 1
}

# says STATUS WORDS COMMAND...: check the exit status and standard error.
says()
{
    local status=$1 words=$2 got=0
    shift 2
    "$@" >out 2>err || got=$?
    [ "$got" = "$status" ] || { echo "status $got of $*: $(cat err)"; return 1; }
    grep -qF -- "$words" err || { echo "no '$words' in: $(cat err)"; return 1; }
    [ ! -s out ]
}

@test "simulate: several policies are the rows of a table" {
    berth simulate "$data/node8.csv" --policy fifo,easy-e,hrrn-e >out
    [ "$(wc -l <out)" = 5 ]
    sed -n 1p out | grep -q '^1000 jobs (9 on several GPUs) on 8x24G; no makespan is below 4d16h$'
    sed -n 2p out | grep -qE '^POLICY +WAIT +P95 +P99 +MAX +MULTI +MULTI MAX +SLOWDOWN +MAKESPAN +/BOUND +VRAM$'
    sed -n 3p out | grep -qE '^fifo +8h02m .* 68\.3%$'
    [ ! -e "$BERTH_DIR" ]
}

# Number of lines that start before the first, which has no priority: `before_the_first
# [options]`.
before_the_first()
{
    berth simulate jobs.txt --gpus 1x24G --policy short --dump schedule.csv "$@" >out
    python3 - <<'PY'
import csv
start = {int(r[0]): int(r[1]) for r in csv.reader(open("schedule.csv"))}
print(sum(s < start[min(start)] for s in start.values()))
PY
}

@test "simulate: the daemon's policies have its aging, which can be another or none" {
    { echo '[gpus=1 time=1h] brief'; for _ in $(seq 19); do echo '[gpus=1 time=12h priority=1] long'; done; } >jobs.txt
    [ "$(before_the_first --aging 0)" = 19 ]
    [ "$(before_the_first)" -lt 6 ]
    [ "$(before_the_first --aging 1d)" = "$(before_the_first)" ]
    [ "$(before_the_first --aging 5d)" -gt "$(before_the_first)" ]
    says 2 "--aging: 'soon'" berth simulate jobs.txt --aging soon
}

@test "simulate: JSON has the figures in seconds" {
    berth simulate "$data/node8.csv" --policy greedy --json >out
    python3 - <<'PY'
import json
r = json.load(open("out"))
assert r["version"] == 1 and r["jobs"] == 1000 and r["gpus_mib"] == [24576] * 8
assert r["lower_bound"] == 405037 and not r["batch"] and r["margin_mib"] == 512
p, = r["policies"]
assert p["policy"] == "greedy" and p["wait_max"] == 306743 and p["events"] == 2000
assert round(p["wait_mean"], 3) == 6736.803 and round(p["mem_util"], 4) == 0.7491
assert round(p["makespan_ratio"], 4) == round(415486 / 405037, 4)
PY
}

@test "simulate: --dump and --svg write one policy's schedule" {
    berth simulate "$data/node8.csv" --policy easy-e --dump schedule --svg picture.svg
    want=$(awk -F'\t' '$1=="node8" && $4=="trace" && $5=="easy-e"{print $NF}' "$data/reference.tsv")
    [ "$(sha256sum <schedule | cut -d' ' -f1)" = "$want" ]
    python3 - <<'PY'
import xml.etree.ElementTree as tree
root = tree.parse("picture.svg").getroot()
titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
assert len(titles) == 1000, len(titles)
PY
    says 2 "show one policy" berth simulate "$data/node8.csv" --policy easy-e,fifo --dump x
    says 1 "cannot write /nowhere/x" berth simulate "$data/node8.csv" --dump /nowhere/x
}

@test "simulate: --batch, --scale, --margin and --gpus change what is simulated" {
    max_of()
    {
        berth simulate "$data/node8.csv" --policy easy-e --json "$@" |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["policies"][0]["wait_max"])'
    }
    plain=$(max_of)
    [ "$(max_of --batch)" = "$(awk -F'\t' '$1=="node8" && $4=="batch" && $5=="easy-e"{print $10}' "$data/reference.tsv")" ]
    [ "$(max_of --scale 0.5)" -gt "$plain" ]
    [ "$(max_of --gpus 16x24G)" -lt "$plain" ]
    [ "$(max_of --margin 0)" = "$plain" ]
    says 6 "needs 23.5 GiB and a margin of 600 MiB" berth simulate "$data/node8.csv" --margin 600
}

@test "simulate: a jobs file runs for its time limits, or for --duration" {
    printf '[vram=7G time=1h] a\n[gpus=2 vram=7G] b\n[vram=7G time=2h priority=1] c\n' >jobs.txt
    says 2 "jobs.txt:2:1: the run time is unknown" berth simulate jobs.txt
    berth simulate jobs.txt --duration 30m --gpus 2x24G --dump schedule >/dev/null
    printf '1,0,3600,0\n2,0,1800,0;1\n3,0,7200,0\n' | diff - schedule
}

@test "simulate: jobs that never run are counted, not left out in silence" {
    printf '[name=a time=1h] a\n[after-failed=a time=1h gpus=2] b\n[time=2h] c\n' >jobs.txt
    berth simulate jobs.txt --gpus 2x24G --policy queue,greedy >out
    sed -n 1p out | grep -q '^3 jobs (1 on several GPUs)'
    [ "$(tail -n +5 out)" = 'queue: 1 of 3 jobs never ran and is not in the figures' ]
    berth simulate --compare jobs.txt --gpus 2x24G --policy short,greedy >out
    [ "$(tail -n +6 out)" = 'jobs.txt, short: 1 of 3 jobs never ran and is not in the figures' ]
    berth simulate jobs.txt --gpus 2x24G --policy queue,greedy --json >one
    berth simulate --compare jobs.txt --gpus 2x24G --policy queue,greedy --json >many
    python3 - <<'PY'
import json
one, many = json.load(open("one")), json.load(open("many"))
assert one["multi_jobs"] == 1
for policies in one["policies"], many["files"][0]["policies"]:
    assert [(p["policy"], p["never_ran"]) for p in policies] == [("queue", 1), ("greedy", 0)]
PY
}

@test "simulate: SWF logs; processors and memory are cut to the machine" {
    echo '7 0 -1 60 64 -1 -1 64 90 -1 1 1 1 1 1 1 -1 -1' >log.swf
    berth simulate log.swf --gpus 2x24G --dump schedule >/dev/null 2>err
    echo '7,0,60,0;1' | diff - schedule
    grep -q '^berth: log.swf: 1 job requests more than the machine has' err
    cp log.swf log.txt
    berth simulate log.txt --format swf --gpus 2x24G >/dev/null 2>&1
}

@test "simulate: a mixed machine puts jobs where they fit" {
    printf 'job_id,arrival_s,duration_s,vram_mib\n0,0,10,60000\n1,0,10,60000\n2,0,10,1000\n' >m.csv
    berth simulate m.csv --gpus 1x24G,1x80G --dump schedule >/dev/null
    printf '0,0,10,1\n1,10,20,1\n2,0,10,1\n' | diff - schedule
}

@test "simulate: errors are reported with their line" {
    printf 'job_id,arrival_s,duration_s\n0,0,10\n1,x,10\n' >bad.csv
    says 2 "berth: bad.csv:3:3: arrival_s: 'x' is not a whole number" berth simulate bad.csv
    printf 'job_id,arrival_s,duration_s,gpus\n0,0,10,9\n' >wide.csv
    says 6 "wide.csv:2: job 0 needs 9 GPUs; there are 8" berth simulate wide.csv
    : >empty.csv
    says 2 "empty.csv:1:1: the file is empty" berth simulate empty.csv
    echo 'arrival_s,duration_s' >none.csv
    says 2 "none.csv: no jobs" berth simulate none.csv
    says 1 "missing.csv" berth simulate missing.csv
    says 2 "unknown policy 'easy'" berth simulate bad.csv --policy easy
    says 2 "did you mean 'greedy'?" berth simulate bad.csv --policy gredy
    says 2 "--gpus: '8x' does not describe" berth simulate bad.csv --gpus 8x
    says 2 "name one FILE" berth simulate
    says 2 "'tsv' is not a format" berth simulate bad.csv --format tsv
}

@test "simulate: --policy list names every policy, and all compares them" {
    berth simulate --policy list >list
    for name in fifo greedy greedy-wf greedy-ff whole whole-fifo easy-p easy-e hrrn-e sjf-e lpt-e aged-e; do
        grep -qE "^$name +[a-z]" list
    done
    berth simulate "$data/philly8.csv" --policy all >out
    [ "$(tail -n +3 out | awk '{print $1}')" = "$(awk '{print $1}' list)" ]
}

@test "simulate: random workloads on random machines agree with the oracle" {
    python3 "$BATS_TEST_DIRNAME/../campaign/simulate.py" berth 6
}

@test "simulate: the daemon's orders are policies too, with separate users" {
    printf 'arrival_s,duration_s,gpus,vram_mib,user\n0,100,1,20000,a\n0,100,1,20000,a\n1,100,1,20000,b\n' >users.csv
    berth simulate users.csv --gpus 1x24G --policy queue --dump schedule >out
    # The second job was promised its start before the other user came.
    printf '0,0,100,0\n1,100,200,0\n2,200,300,0\n' | diff - schedule
    berth simulate users.csv --gpus 1x24G --policy queue --reservations 0 --dump schedule >out
    sed -n 3p out | grep -q '^queue '
    printf '0,0,100,0\n1,200,300,0\n2,100,200,0\n' | diff - schedule
    # The daemon's default.
    berth simulate users.csv --gpus 1x24G | sed -n 3p | grep -q '^balanced '
    berth simulate "$data/node8.csv" --policy queue,short,longest,balanced >out
    [ "$(wc -l <out)" = 6 ]
}

@test "simulate: --compare puts policies side by side over files, each drawn anew" {
    berth simulate --compare "$data/node8.csv" "$data/philly8.csv" --policy easy-e,queue,greedy --one-user >out
    sed -n 1p out | grep -q '^Each file as it is, on 8x24G; '
    sed -n 3p out | grep -qE '^FILE +POLICY +WAIT +P90 +SLOWDOWN +P90 +MULTI MAX +P90 +>1\.15 +TO GREEDY$'
    [ "$(awk 'NR > 3 && /csv/ {print $1, $2}' out | tr '\n' ';')" = 'node8.csv easy-e;node8.csv queue;node8.csv greedy;philly8.csv easy-e;philly8.csv queue;philly8.csv greedy;' ]
    grep -E '^node8.csv +easy-e' out | grep -qE ' 1\.00 +1\.00 +0% '
    grep -E '^node8.csv +greedy' out | grep -qE '^node8.csv +greedy +\+0% +\+0% .* 100% +1\.00$'
    berth simulate --compare "$data/node8.csv" --draws 3 --seed 5 --policy queue,balanced --json >out
    python3 - "$data/node8.csv" <<'PY'
import json, sys
r = json.load(open("out"))
assert r["version"] == 1 and r["draws"] == 3 and r["seed"] == 5
f, = r["files"]
assert f["file"] == sys.argv[1] and f["jobs"] == 1000
assert [p["policy"] for p in f["policies"]] == ["queue", "balanced"]
for p in f["policies"]:
    assert p["promised"] > 0 and p["promised_late"] == p["promised_overtaken"] == 0
    for key in ("wait_mean_to_greedy", "bsld_to_greedy", "multi_max_to_easy", "multi_max_to_greedy"):
        draws = p[key]["draws"]
        assert len(draws) == 3 and p[key]["median"] == sorted(draws)[1] and p[key]["p90"] == max(draws)
        assert len(set(draws)) == 3 or key == "multi_max_to_easy"
PY
    berth simulate --compare "$data/node8.csv" --policy queue --reservations 2 >out
    grep -qE '^Promised starts: [1-9][0-9]*, 0 of them late\.$' out
    berth simulate --compare "$data/node8.csv" --policy queue --reservations 0 >out
    ! grep '^Firm' out || return 1
    berth simulate --compare "$data/node8.csv" --draws 1 --seed 7 --policy balanced >one
    berth simulate --compare "$data/node8.csv" --draws 1 --seed 7 --policy balanced | diff one -
}

@test "simulate: --compare --svg draws a panel for each file and a point for each policy" {
    cp "$data/philly8.csv" 'a<b&c.csv'
    files=("$data/node8.csv" 'a<b&c.csv')
    berth simulate --compare "${files[@]}" --draws 2 --policy queue,short,easy-e --svg picture.svg --json >out
    python3 - <<'PY'
import json, xml.etree.ElementTree as tree
ns = "{http://www.w3.org/2000/svg}"
root = tree.parse("picture.svg").getroot()
texts = [t.text for t in root.iter(ns + "text")]
assert "Policies on 8x24G, 2 workloads like each file" in texts
assert "node8.csv" in texts and "a<b&c.csv" in texts
want = []
for f in json.load(open("out"))["files"]:
    for p in f["policies"]:
        want.append("%s: mean wait %+.0f%%, longest multi-GPU wait %.2f" % (
            p["policy"], (p["wait_mean_to_greedy"]["median"] - 1) * 100, p["multi_max_to_easy"]["p90"]))
assert [t.text for t in root.iter(ns + "title")] == want, want
# A longer wait is further right, a longer multi-GPU wait higher up.
points = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(ns + "circle")]
assert len(points) == 6
for panel in points[:3], points[3:]:
    queue, short, easy = panel
    assert short[0] < queue[0] and short[1] < easy[1]
PY
}

@test "simulate: --compare refuses what it cannot do" {
    echo '[gpus=1 time=1h] brief' >jobs.txt
    says 2 'name one FILE or several' berth simulate --compare
    says 2 "no arrival times" berth simulate --compare jobs.txt --draws 2
    says 2 'from 0 to 16' berth simulate "$data/node8.csv" --reservations 17
    says 2 'omit --compare' berth simulate --compare "$data/node8.csv" --dump x
    says 1 'cannot write /nowhere/x.svg' berth simulate --compare "$data/node8.csv" --svg /nowhere/x.svg
    says 2 '--draws belongs to --compare' berth simulate "$data/node8.csv" --draws 2
    says 2 '--seed belongs to --compare' berth simulate "$data/node8.csv" --seed 2
    says 2 "--draws: '0'" berth simulate --compare "$data/node8.csv" --draws 0
}
