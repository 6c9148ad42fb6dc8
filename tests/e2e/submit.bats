#!/usr/bin/env bats
# Submissions: scripts with #BERTH and #SBATCH lines, the environment that is sent, tables of
# models, and what is refused before anything is queued.

load lib

script()
{
    cat >"$1"
    chmod "${2:-755}" "$1"
}

# Print one value from --dry-run: `understood share -- --gpus 0.5 -- true`.
understood()
{
    local name=$1
    shift
    timeout "$LIMIT" berth submit --dry-run "$@" 2>"$ROOT/err" | sed -nE "s/^$name +(.*)/\1/p"
}

@test "a Slurm script runs unchanged: its options, its arguments, its log" {
    start_daemon 4x24G
    mkdir out
    script train.sh <<'END'
#!/bin/bash
#SBATCH --job-name=train --time=5
#SBATCH --gres=gpu:2 -n 1 -p gpu
#SBATCH --output=out/%x-%j.txt   # a comment

echo "args $1,$2 gpus $BERTH_GPUS name $BERTH_JOB_NAME"
#SBATCH --time=99
END
    try berth submit --wait train.sh a "b c"
    is status "$status" 0
    is words "$out" "job 1 submitted, time limit 5m00s"
    is log "$(cat out/train-1.txt)" "args a,b c gpus 0,1 name train"
}

@test "options on the command line override those of the script" {
    start_daemon 4x24G
    script s.sh <<'END'
#!/bin/sh
#BERTH --vram 8G --gpus 2 -t 1h --name inner --env A=script
true
END
    is vram "$(understood vram -- s.sh)" "8.0 GiB"
    is gpus "$(understood gpus --gpus 1 s.sh)" 1
    is vram "$(understood vram --gpus 1 s.sh)" "8.0 GiB"
    is name "$(understood name -J outer s.sh)" outer
    is limit "$(understood 'time limit' -t 90 s.sh)" 1m30s
    script mem.sh <<'END'
#!/bin/sh
#SBATCH --mem-per-cpu=20M -c 1 -o mem.txt
echo "$SLURM_MEM_PER_CPU $SLURM_MEM_PER_NODE"
END
    is 'memory of more cores' "$(understood mem --cpus 2 mem.sh)" '40 MiB'
    is 'memory of the job' "$(understood mem --cpus 2 --mem 70M mem.sh)" '70 MiB'
    berth submit --wait --mem 70M mem.sh
    is 'as the script has it' "$(cat mem.txt)" ' 70'
    script env.sh <<'END'
#!/bin/sh
#BERTH --gpus 0 --env A=script --env B=script -o %x.txt
echo "$A $B $C"
END
    C=mine berth submit --wait --env A=line env.sh
    is log "$(cat env.sh.txt)" "line script mine"
}

@test "a script that is not executable runs through its interpreter" {
    start_daemon 1
    script bash.sh 644 <<'END'
#!/bin/bash -e
#BERTH --gpus 0 -o out
false
echo after
END
    try berth submit --wait bash.sh
    is status "$status" 1
    is log "$(cat out)" ""
    script none.sh 644 <<'END'
#BERTH --gpus 0 -o out2
echo "$0 $1" | sed 's,.*/,,'
END
    try berth submit --wait none.sh x
    is status "$status" 0
    is log "$(cat out2)" "none.sh x"
    printf '#!/bin/sh\necho "${0##*/} $BERTH_JOB_NAME"\n' >plain.sh
    try berth submit --gpus 0 -o out3 --wait plain.sh
    is "status of one without options" "$status" 0
    chmod +x plain.sh
    try berth submit --gpus 0 -o out4 --wait plain.sh
    is "log without the right, and with it" "$(cat out3 out4)" $'plain.sh plain.sh\nplain.sh plain.sh'
}

@test "an impossible command is reported immediately, and submit -W says why the job failed" {
    start_daemon 1
    try berth submit --gpus 0 --begin now --wait nosuch.py
    is status "$status" 127
    has words "$err" "program 'nosuch.py' not found"
    has words "$err" "job 1: could not start: cannot execute 'nosuch.py'"
    echo 'print(1)' >train.py
    try berth submit --gpus 0 train.py
    has words "$err" "'train.py' is not executable; .* python3 train.py"
    try berth submit --gpus 0 --wait -- sh -c 'exit 3'
    is "status and words" "$status $err" "3 "
    for empty in '' '  '; do
        try berth submit -- "$empty"
        is "status of nothing" "$status" 2
        has words "$err" 'submit what\? For example'
    done
}

@test "all unsupported options of a script are listed at once, and nothing is queued" {
    start_daemon 1
    script big.sh <<'END'
#!/bin/sh
#SBATCH --nodes=2
#SBATCH --time=1 --deadline=noon
#SBATCH --constraint=a100|h100
true
END
    try berth submit big.sh
    is status "$status" 2
    is lines "$(grep -c '^berth: big.sh:[234]: #SBATCH --' <<<"$err")" 3
    has words "$err" 'big.sh:2: #SBATCH --nodes: 2: there is one machine'
    has words "$err" 'nothing was queued; --ignore-unsupported continues'
    is queued "$(berth queue --all --json | json jobs)" "[]"
    try berth submit --ignore-unsupported --wait big.sh
    is status "$status" 0
    has words "$err" 'big.sh:4: #SBATCH --constraint: .*\(ignored\)'
    script bad.sh <<'END'
#!/bin/sh
#SBATCH --tim=5
END
    try berth submit --ignore-unsupported bad.sh
    is status "$status" 2
    has words "$err" 'bad.sh:2: #SBATCH --tim: .*did you mean --time'
}

@test "a command that is not a script is left alone" {
    start_daemon 1
    printf '#!/bin/sh\necho plain\n#BERTH --nonsense\n' >plain
    chmod +x plain
    try berth submit --gpus 0 -o log --wait ./plain
    is status "$status" 0
    is log "$(cat log)" plain
}

@test "--dry-run prints values as they were understood" {
    start_daemon 4x24G
    is share "$(understood share --gpus 0.5 -- true)" "50 %"
    is gpus "$(understood gpus --gpus 1.5 -- true)" "2, whole and idle"
    has words "$(cat "$ROOT/err")" 'this requests 2 whole GPUs'
    is array "$(understood array -a 0-9,20%3 -- true)" "11 tasks: 0-9,20, 3 at once"
    is begin "$(TZ=UTC understood begin --begin 2126-12-24T18:30 -- true)" "2126-12-24T18:30:00Z"
    try berth submit --dry-run --gpus 9 -- true
    has verdict "$out" 'would be refused'
    try berth submit --dry-run --vram 2G -- true
    has verdict "$out" 'would start now on gpu [0-3]'
    is queued "$(berth queue --all --json | json jobs)" "[]"
    berth submit --hold -J x -- true
    is after "$(understood after --after 1,x -- true | tr '\n' ' ')" "1 x "
    try berth submit --dry-run --after x -- true
    has verdict "$out" '^would wait: Dependency: runs after job 1$'
    try berth submit --dry-run --after nobody -- true
    is status "$status" 6
    has words "$err" "^berth: it should run after 'nobody', but none of your jobs has that name"
    try berth submit --dry-run --unique -- true
    has verdict "$out" '^would be refused: job 1 .* has the same command in the same folder'
    berth cancel 1
    try berth submit --dry-run --after 1 -- true
    has verdict "$out" '^would be refused: it can never start: .*job 1 '
}

@test "--dry-run of lines of which one starts beside a reservation of a pending job" {
    start_daemon 1
    berth submit -t 1h -- sleep 3600
    wait_until_running 1
    berth submit -t 30m -- true
    printf '[gpus=0] true\n[gpus=0] false\n' >two.txt
    try berth run --dry-run two.txt
    is status "$status" 0
    has both "$(tr '\n' ' ' <<<"$out")" '1 +start .*2 +start '
    try berth submit --dry-run --gpus 0 -- true
    is status "$status" 0
    try berth cancel 1
    is status "$status" 0
}

@test "--dry-run says when a job would start behind the pending ones" {
    echo 'order: queue' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 1 --config settings.yaml
    mkfifo gate
    berth submit -t 1h -- sh -c 'read line <gate'
    BEGAN_US=$(wait_for_event kind=started job=1 | json at_us)
    export BEGAN_US
    # However long this test takes: the limit of job 1 runs from its start.
    cat >behind.py <<'PY'
import json, os, sys
began = int(os.environ["BEGAN_US"]) / 1e6
for line in json.load(sys.stdin)["lines"]:
    start = line.get("expected_start")
    print(line["state"], line.get("key"), round((start["unix"] - began) / 60) if start else None)
PY
    berth submit -t 30m -- true
    try berth submit --dry-run -t 30m -- true
    has "behind the queue" "$out" '^would wait: .*; job 2, with the same request, is first; expected to start at [0-9:]{8} \(in 1h[0-9]+m'
    # With a higher priority it comes before the waiting job.
    try berth submit --dry-run -p 5 -- true
    has "before the queue" "$out" '^would wait: .*held by job 1; expected to start at [0-9:]{8} \(in ([0-9]+m|1h)'
    try berth submit --dry-run --gpus 0 -- true
    is "beside it" "$(tail -1 <<<"$out")" "would start now"
    berth submit --dry-run --json -t 10m -- true >plan.json
    is "as JSON" "$(python3 behind.py <plan.json)" "PENDING None 90"
    is "one that starts" "$(berth submit --dry-run --json --gpus 0 -- true | json lines.0.expected_start.unix | grep -c .)" 1
    try berth submit --dry-run --begin 2126-12-24T18:30 -- true
    has "one with a time" "$out" '^would wait: BeginTime: .*; expected to start at 18:30:00 '
    printf '%s\n' '[time=20m] true' '[gpus=0] true' '[time=5m] true' >jobs.txt
    berth run --dry-run jobs.txt >plan
    has "the first line" "$(cat plan)" '^ +1 +wait .*; expected to start at [0-9:]{8} \(in 1h[0-9]+m'
    has "one that starts" "$(cat plan)" '^ +2 +start '
    has "the one behind it" "$(cat plan)" '^ +3 +wait .*; expected to start at [0-9:]{8} \(in 1h[0-9]+m'
    berth run --dry-run --json jobs.txt >plan.json
    python3 behind.py <plan.json >plan
    has "lines as JSON: the first" "$(sed -n 1p plan)" '^PENDING [^ ]+ 90$'
    has "one that starts" "$(sed -n 2p plan)" '^STARTING '
    has "the one behind the first" "$(sed -n 3p plan)" '^PENDING [^ ]+ 110$'
    timeout "$LIMIT" sh -c 'echo go >gate'
}

@test "contradictions are refused before a daemon is asked" {
    for words in "--share 0.5 --gpus 2" "--share 0.5 --exclusive" "--gpus 0 --max-load 0.5" \
        "--signal USR1@60" "--array 5-1" "--begin soon" "--after 0" "-t 1m --signal TERM@2m"; do
        # shellcheck disable=SC2086
        try berth submit $words -- true
        is "status of $words" "$status" 2
    done
    [ ! -e "$BERTH_DIR/berth.sock" ]
}

@test "--export selects the variables of a job" {
    start_daemon 1
    export A=a B=b
    # shellcheck disable=SC2016
    berth submit --gpus 0 --wait --export NONE -o none -- sh -c 'echo "$A,$B,$HOME"'
    is none "$(cat none)" ",,$HOME"
    # shellcheck disable=SC2016
    berth submit --gpus 0 --wait --export A,C=c -o some -- sh -c 'echo "$A,$B,$C"'
    is some "$(cat some)" "a,,c"
    # shellcheck disable=SC2016
    berth submit --gpus 0 --wait --export ALL,B=x -o all -- sh -c 'echo "$A,$B"'
    is all "$(cat all)" "a,x"
}

@test "defaults for frameworks never replace what a user exported" {
    local show='env | grep -E "^(XLA_PYTHON|TF_FORCE|MASTER_)" | sort'
    start_daemon 2
    berth submit --vram 12G --log none -W -- "$show"
    is 'of a job that shares' "$(cat none)" $'TF_FORCE_GPU_ALLOW_GROWTH=true\nXLA_PYTHON_CLIENT_MEM_FRACTION=0.500'
    XLA_PYTHON_CLIENT_MEM_FRACTION=.9 TF_FORCE_GPU_ALLOW_GROWTH= berth submit --vram 12G --log own -W -- "$show"
    is 'what the user exported' "$(cat own)" $'TF_FORCE_GPU_ALLOW_GROWTH=\nXLA_PYTHON_CLIENT_MEM_FRACTION=.9'
    MASTER_PORT=4711 berth submit --gpus 2 --log port -W -- "$show"
    is 'a meeting point of its own' "$(cat port)" MASTER_PORT=4711
    BERTH_DEFAULTS=off berth submit --gpus 2 --log off -W -- "$show"
    is 'none of them' "$(cat off)" ''
}

@test "a job submitted by a job does not inherit its defaults" {
    local show='env | grep -E "^(XLA_PYTHON|TF_FORCE|MASTER_|MINE)" | sort'
    start_daemon 4
    export MINE=1
    berth submit --gpus 2 --log outer -W -- "berth submit --gpus 1 --log inner -W -- '$show'"
    is 'of a whole card' "$(cat inner)" MINE=1
    berth submit --vram 12G --log outer -W -- "berth submit --vram 6G --log inner2 -W -- '$show'"
    has 'the fraction of its own VRAM' "$(cat inner2)" 'MEM_FRACTION=0.250$'
    berth submit --vram 12G --log outer -W -- \
        "XLA_PYTHON_CLIENT_MEM_FRACTION=.4 berth submit --vram 6G --log inner3 -W -- '$show'"
    has 'what the job exported' "$(cat inner3)" 'MEM_FRACTION=.4$'
}

@test "a table of models says what a command with --llm needs, and is read again" {
    printf 'default_requirement: 0.25\nmodels:\n  big: 18G\n' >models.yaml
    mkdir -p "$BERTH_DIR"
    printf 'models: %s/models.yaml\n' "$WORK" >"$BERTH_DIR/config.yaml"
    start_daemon 2x24G
    berth submit --hold -- python x.py --llm big
    is vram "$(job_field 1 vram_mib)" 18432
    berth submit --hold -- python x.py --llm=other
    is share "$(job_field 2 share)" 0.25
    berth submit --hold --vram 2G -- python x.py --llm big
    is vram "$(job_field 3 vram_mib)" 2048
    printf '[hold] python y.py --llm big\n' >jobs.txt
    berth run --detach jobs.txt
    is vram "$(job_field 4 vram_mib)" 18432
    printf 'models:\n  big: 19G\n' >new && mv new models.yaml
    berth submit --hold -- python x.py --llm big
    is vram "$(job_field 5 vram_mib)" 19456
    printf 'models:\n  big: 19X\n' >new && mv new models.yaml
    berth submit --hold -- python x.py --llm big
    is vram "$(job_field 6 vram_mib)" 19456
    has log "$(cat "$BERTH_DIR/daemon.log")" 'models.yaml:2: big: .19X. is not a requirement.*last valid table'
}

@test "--models names the user's own table" {
    start_daemon 2x24G
    printf '{"models": {"big": "18G", "wide": 2}}' >m.json
    is vram "$(understood vram --models m.json -- python x.py --llm big)" "18.0 GiB"
    is gpus "$(understood gpus --models m.json -- python x.py --llm wide)" "2, whole and idle"
    printf 'python x.py --llm big\n' >jobs.txt
    try berth run --dry-run --models m.json jobs.txt
    has plan "$out" '18.0 GiB'
    printf '{"models": {"big": [1]}}' >m.json
    try berth submit --models m.json -- python x.py --llm big
    is status "$status" 2
    has words "$err" 'm.json:1: big: expected a number or a size'
}

@test "config check names every error of a file" {
    printf 'margin_mib: -1\nxyzzy: 1\nusers:\n  alice: {weight: 0}\n' >c.yaml
    try berth config check c.yaml
    is status "$status" 2
    is lines "$(grep -c '^c.yaml:[124]: ' <<<"$err")" 3
}

@test "an unknown user in the settings is a warning" {
    mkdir -p "$BERTH_DIR"
    printf 'users:\n  nobody-here: {weight: 2}\n  %s: {max_running: 1}\n' "$(id -un)" \
        >"$BERTH_DIR/config.yaml"
    start_daemon 2
    has log "$(cat "$BERTH_DIR/daemon.log")" 'user=nobody-here unknown user'
    berth submit -- sleep 60
    berth submit -- sleep 60
    wait_for_event kind=started job=1
    has why "$(berth queue)" 'UserLimit'
}
