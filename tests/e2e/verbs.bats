#!/usr/bin/env bats
# Output of the verbs when a user's machine is not as it should be: missing folders, full
# outputs, excess words, jobs that have ended.

load lib

@test "a removed working folder is refused before anything is queued" {
    start_daemon 1
    mkdir gone
    echo true >jobs.txt
    try bash -c "cd gone && rmdir ../gone && berth submit -- true"
    is status "$status" 2
    has words "$err" 'the current folder has been removed; change to another one, or choose one with -D'
    mkdir gone
    try bash -c "cd gone && rmdir ../gone && berth run $WORK/jobs.txt"
    is status "$status" 2
    has words "$err" 'the current folder has been removed'
    is jobs "$(berth queue --all --json | json jobs)" '[]'
    mkdir gone
    try bash -c "cd gone && rmdir ../gone && berth submit -D $WORK -W -- true"
    is status "$status" 0
    is folder "$(job_field 1 cwd)" "$WORK"
}

@test "names and values that are not UTF-8 are not altered on the way" {
    local bad
    start_daemon 1
    bad=$(printf 'f\377o')
    mkdir "$bad"
    try bash -c "cd $bad && berth submit -- true"
    is status "$status" 2
    has words "$err" 'f.xFFo is not UTF-8'
    try env "BERTH_BAD=$bad" berth submit -W --gpus 0 -- sh -c 'test "${BERTH_BAD-unset}" = unset'
    is status "$status" 0
    has words "$err" 'BERTH_BAD is not UTF-8 and is not passed on'
    is lines "$(wc -l <<<"$err")" 1
    try berth submit --env "BERTH_BAD=$bad" -- true
    is status "$status" 2
}

@test "a config's path is relative to the folder where it was given" {
    echo 'sample_ms: 300' >mine.yaml
    try berth daemon start --sim 1 --config mine.yaml
    is status "$status" 0
    stop_daemon
    try berth daemon start --sim 1 --config none.yaml
    is status "$status" 4
    has words "$err" "$WORK/none.yaml"
}

@test "output that cannot be written is an error, and a job that was queued is named" {
    start_daemon 1
    try bash -c 'berth submit --gpus 0 -- true >/dev/full'
    is status "$status" 1
    has words "$err" 'cannot write the output: No space left on device'
    has words "$err" 'job 1 was queued'
    wait_for_event kind=ended job=1
    echo true >jobs.txt
    for verb in 'queue --all' 'show 1' status 'wait 1' events 'logs 1 --path' version help 'show --help' \
        'run --detach jobs.txt'; do
        try bash -c "berth $verb >/dev/full"
        is "status of $verb" "$status" 1
        has "words of $verb" "$err" 'cannot write the output: No space left on device'
    done
    try bash -c 'berth show 1 | true; echo ${PIPESTATUS[0]} >&2'
    has_not words "$err" cannot
}

@test "unexpected arguments are errors, and so is an empty folder name" {
    for line in 'status x' 'version x' 'daemon status x' 'help nosuch' '--dir= status' \
        'status --dir='; do
        # shellcheck disable=SC2086 # the words of the line are meant
        try berth $line
        is "status of $line" "$status" 2
    done
    try berth help shwo
    has words "$err" "did you mean 'berth show'"
    try berth sbatch --gres=gpu:1 job.sh
    is status "$status" 2
    has words "$err" "unknown verb 'sbatch'; Berth's equivalent: 'berth submit'"
    try berth submit --gres=gpu:1 -- true
    is status "$status" 2
    has words "$err" "unknown option '--gres'; Berth's equivalent: --gpus 2 for gpu:2"
    try berth submit -d afterok:1 -- true
    has words "$err" "unknown option '-d'; Berth's equivalent: --after 12"
    try berth queue --gres=1
    has words "$err" "unknown option '--gres'; 'berth queue --help' lists them"
    try berth help show
    is status "$status" 0
}

@test "verbs on ended jobs: hold, queue, logs and all say so" {
    start_daemon 1
    berth submit --gpus 0 -W -- true
    berth submit --gpus 0 --begin now -- /nonexistent/program
    wait_for_event kind=ended job=2 state=FAILED
    berth submit --gpus 0 --hold -- true
    berth cancel 3
    wait_for_event kind=ended job=3 state=CANCELLED
    for verb in hold release; do
        try berth $verb 1
        is status "$status" 1
        has words "$err" 'job 1 has ended \(COMPLETED\)'
        try berth $verb 99
        is status "$status" 3
    done
    has queue "$(berth queue --all)" 'could not start'
    try berth logs 3
    is status "$status" 1
    has words "$err" 'has ended and left no log'
    has_not words "$err" 'will be'
    export TZ=XYZ-9
    has "local times" "$(berth show 1)" '^  started +20[0-9-]{8} [0-9:]{8} XYZ$'
    has "local times of attempts" "$(berth show 1)" '^  attempt 1 .* started 20[0-9-]{8} [0-9:]{8} XYZ,'
    try berth show --all
    has out "$out" '^job 1 '
    has out "$out" '^job 3 '
    has_not out "$out" 'started ,'
    try berth logs --all --path
    is logs "$(wc -l <<<"$out")" 3
    try berth show --all 1
    is status "$status" 2
}

@test "wait --all waits for what has not ended" {
    start_daemon 1
    mkfifo gate
    berth submit --gpus 0 -- sh -c 'read line <gate; exit 3'
    try berth wait --all --timeout 100ms
    is status "$status" 7
    has words "$err" 'time is up'
    timeout "$LIMIT" bash -c 'echo go >gate'
    try berth wait 1
    is status "$status" 3
}

@test "wait --all and state:NAME do not count jobs that ended before" {
    start_daemon 1
    berth submit --gpus 0 -W -- sh -c 'exit 5' || true
    try berth wait --all
    is 'status without jobs' "$status" 0
    is output "$out" ''
    try berth wait state:failed
    is 'status of a state' "$status" 0
    mkfifo gate
    berth submit --gpus 0 -- sh -c 'read line <gate; exit 3'
    background waits berth wait --all
    wait_for_event kind=started job=2
    wait_for_clients 1
    timeout "$LIMIT" bash -c 'echo go >gate'
    finish waits
    is 'status of the job that ran' "$status" 3
    try berth wait 1
    is 'status of a job that was named' "$status" 5
    try berth wait all 1
    is 'status of both' "$status" 5
}

@test "events -f notices that its reader has gone" {
    start_daemon 1
    berth submit --gpus 0 -W -- true
    background events bash -c 'berth events -f --since 0 | head -1'
    finish events
    is status "$status" 0
}

@test "a file's name cannot send control characters to the terminal" {
    local name=$'a\033[31mb.txt'
    start_daemon 1
    echo '[gpus=0] true' >"$name"
    try berth run "$name"
    is status "$status" 0
    has words "$err" 'a.x1B\[31mb.txt'
    has_not words "$err" $'\033'
    try berth run "$name" --detach
    has_not words "$out" $'\033'
    echo "[gpus=0 log=its.log] false" >named
    mkdir $'b\033[2J'
    cd $'b\033[2J'
    try berth run ../named
    has "the summary" "$out" "x1B.*its.log"
    has_not "the summary" "$out" $'\033'
}

# `in_json VERB [ARG...]`: the output for a script that adds --json: one object with a version,
# or a refusal.
in_json()
{
    try berth "$@" --json
    case $status in
    2)
        is "output of '$*'" "$out" ''
        has "refusal of '$*'" "$err" 'JSON|--json'
        ;;
    *) is "version of '$*'" "$(jq -s 'map(.version) | unique | .[]' <<<"$out")" 1 ;;
    esac
}

@test "every verb either answers --json with JSON or refuses it" {
    local verb refused=
    local -A arguments=([show]=1 [explain]=2 [logs]=1 [attach]=2 [wait]=1 [cancel]=3 [hold]=2 [release]=4
        [priority]='2 1' [requeue]=1 [signal]='5 CONT' [pause]=0 [resume]=0 [daemon]=status [config]=show
        [simulate]='past.csv --gpus 1x24G' [simjob]='--vram 1' [export]='--to slurm' [compat]=list [completion]=bash
        [run]=jobs.txt)
    start_daemon 1
    berth submit -G 0 -W -- true
    for _ in 2 3 4; do berth submit -G 0 --hold -- true; done
    berth submit -G 0 -- sleep 1000
    wait_until_running 5
    echo '[gpus=0] true' >jobs.txt
    printf '%s\n' arrival_s,duration_s,gpus 0,10,1 >past.csv
    for verb in $(berth help --json | jq -r '.verbs[].verb'); do
        case $verb in
        events | submit) continue ;; # JSON lines; a command after it
        esac
        # shellcheck disable=SC2086 # words are meant
        in_json $verb ${arguments[$verb]:-}
        if [ "$status" = 2 ]; then refused+="$verb "; fi
    done
    is refused "$refused" 'run shell logs attach top simjob export completion '
    is 'nothing is run' "$(berth queue --all --json | jq '.jobs | length')" 5
    [ ! -e slurm-export ]
    in_json config check
    in_json config sample
    in_json daemon logs
    in_json daemon log-level
    in_json compat install "$ROOT/bin"
    in_json help run
    try berth --json compat squeue
    is 'a drop-in' "$status" 2
    is commands "$(berth --json compat list | jq -r '.commands[] | select(.name == "squeue").group')" slurm
    is settings "$(berth config show --json | jq .settings.margin_mib)" \
        "$(berth config show | sed -n 's/^margin_mib: //p')"
    try berth wait 2 -t 10ms --json
    is 'timed out' "$status $(jq -c . <<<"$out")" '7 {"version":1,"timed_out":true,"waited_for":["2"]}'
    is stop "$(berth daemon stop --cancel --json | json stopped) $(berth daemon stop --json | json stopped)" 'true false'
}

@test "in help, what options do stands in one column, and no page ends in two empty lines" {
    local verb page
    for verb in $(berth help --json | jq -r '.verbs[].verb'); do
        page=$(berth "$verb" --help)
        is "$verb" "$(grep -E '^  (-.,|   ) --' <<<"$page" | grep -vE '^.{28} [^ ]|^  .{4}--[^ ]+( [^ ]+)?$')" ''
        has_not "end of $verb" "$(tail -n 3 <<<"$page" | tr '\n' '|')" '^\|\|'
        has "$verb" "$page" '^usage: berth|verbs'
    done
}
