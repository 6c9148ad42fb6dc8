#!/usr/bin/env bats
# --env-setup and --conda: from every door, kept across retries and restarts, and the effect of
# a failed set-up. conda is a folder with a fake conda.sh.

load lib

case_setup()
{
    unset CONDA_PREFIX CONDA_EXE
    export HOME=$ROOT
    mkdir -p "$ROOT/miniconda3/etc/profile.d"
    cat >"$ROOT/miniconda3/etc/profile.d/conda.sh" <<'SH'
conda() {
    [ "$1" = activate ] || return 2
    case $2 in torch | jax) ;; *) echo "EnvironmentNameNotFound: $2" >&2; return 1 ;; esac
    export CONDA_DEFAULT_ENV=$2
}
SH
    mkdir venv
    echo 'VIRTUAL_ENV=$PWD/venv; export VIRTUAL_ENV; deactivate() { :; }' >venv/activate
}

# Print a job's view of its set-up.
SEES='echo "conda ${CONDA_DEFAULT_ENV-no} venv ${VIRTUAL_ENV##*/}"'

@test "a set-up comes from options, #BERTH lines, a jobs file and the socket" {
    start_daemon 1
    try berth submit -G 0 --wait --conda torch --env-setup 'source venv/activate' -- "$SEES"
    is "status of the options" "$status" 0
    is "log of the options" "$(berth logs 1)" "conda torch venv venv"
    printf '%s\n' '#!/bin/sh' '#BERTH --conda=jax -G 0' "#BERTH --env-setup='source venv/activate'" \
        "$SEES; exit 4" >job.sh
    try berth submit --wait job.sh
    is "status of the script" "$status" 4
    is "log of the script" "$(berth logs 2)" "conda jax venv venv"
    cat >jobs.txt <<EOF
[gpus=0 env-setup="source venv/activate" conda=torch] $SEES
[gpus=0 env-setup='echo "x]y"'] $SEES
EOF
    try berth run jobs.txt
    is "status of the file" "$status" 0
    is "its first line's log" "$(berth logs 3)" "conda torch venv venv"
    is "its second line's log" "$(berth logs 4)" "x]y
conda no venv "
    python3 - "$BERTH_DIR/berth.sock" "$PWD" <<'PY'
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rw")
env = [f"{k}={v}" for k, v in os.environ.items()]
job = {"argv": ["sh", "-c", "echo $CONDA_DEFAULT_ENV $1", "sh", "$(touch no) 'a"], "gpus": 0,
       "conda": "torch", "env_setup": "cd venv"}
print(json.dumps({"id": 1, "method": "submit", "params": {"jobs": [job], "cwd": sys.argv[2], "env": env}}),
      file=f, flush=True)
assert json.loads(f.readline())["result"]["ids"] == [5]
PY
    berth wait 5
    is "log of the socket's" "$(berth logs 5)" "torch \$(touch no) 'a"
    is "what it shows" "$(job_field 5 conda) $(job_field 5 env_setup)" "torch cd venv"
}

@test "a set-up can use conda activate, whether or not its shell is set up for conda" {
    start_daemon 1
    while IFS='|' read -r words sees; do
        berth submit -G 0 --wait --env-setup "$words" -- "$SEES; type -t conda berth_find_conda; true" >/dev/null
        is "with '$words'" "$(berth logs @ | xargs)" "$sees"
    done <<'CASES'
conda activate torch && X=1|conda torch venv function
. ~/miniconda3/etc/profile.d/conda.sh; conda activate jax|conda jax venv function
. ~/miniconda3/etc/profile.d/conda.sh|conda no venv function
X=1|conda no venv
CASES
    try berth submit -G 0 --wait --env-setup 'conda activate none' -- true
    is "status of an environment that is not there" "$status" 1
    has "why" "$(berth show @)" 'set-up failed: exit 1: conda activate none'
    mv "$ROOT/miniconda3" "$ROOT/away"
    try berth submit -G 0 --wait --env-setup 'conda activate torch' -- true
    is "status without conda" "$status" 127
}

@test "a set-up cannot change a job's GPUs" {
    start_daemon 2
    berth submit -G 1 --gpu-ids 1 --wait --env-setup 'export CUDA_VISIBLE_DEVICES=0' -- 'echo $CUDA_VISIBLE_DEVICES'
    is "its cards" "$(berth logs @)" 1
}

@test "a set-up that fails fails the job, which says so everywhere; the command is never run" {
    start_daemon 1
    for setup in 'exit 3' 'false' 'source nowhere/activate' 'exit 0' 'kill -9 $$'; do
        try berth submit -G 0 --wait --env-setup "$setup" -- touch ran
        [ "$status" -ne 0 ] || fail_with "'$setup' is a success"
        is "state" "$(job_field @ state)" FAILED
        has "its text" "$(job_field @ text)" "^set-up failed: .*: ${setup%% *}"
    done
    has "show" "$(berth show 1)" "set-up failed: exit 3: exit 3"
    has "explain" "$(berth explain 1)" "set-up failed: exit 3"
    has "the event" "$(wait_for_event kind=ended job=1)" '"text":"set-up failed: exit 3: exit 3"'
    is "outcome" "$(job_field 1 attempts.0.outcome)" setup_failed
    is "exit status" "$(job_field 1 exit_status)" 3
    echo '[gpus=0 conda=missing oom-retries=2] touch ran' >jobs.txt
    try berth run jobs.txt
    is "status of the run" "$status" 1
    has "its words" "$out" "set-up failed: exit 1: conda activate missing"
    has "its log" "$(berth logs @)" "EnvironmentNameNotFound: missing"
    rm -r "$ROOT/miniconda3"
    try berth submit -G 0 --wait --conda torch -- touch ran
    is "status without conda" "$status" 127
    has "text" "$(job_field @ text)" "there is no conda to activate torch"
    [ ! -e ran ] || fail_with "a command ran without its set-up"
}

@test "a set-up survives a crash of the daemon and a requeue" {
    start_daemon 1
    echo 'test -e go || exit 9' >setup.sh
    id=$(berth submit --parsable -G 0 --hold --env-setup 'source setup.sh; A=b' -- 'echo "$A"')
    kill_daemon
    start_daemon 1
    berth release "$id"
    try berth wait "$id"
    is "exit status" "$status" 9
    touch go
    berth requeue "$id"
    berth wait "$id"
    has "its log" "$(berth logs "$id")" "^b$"
    is "state" "$(job_field "$id" state)" COMPLETED
}

@test "jobs without a set-up get that of the settings; an empty one means none" {
    mkdir -p "$BERTH_DIR"
    printf 'env_setup: "export FROM=settings"\nconda: jax\n' >"$BERTH_DIR/config.yaml"
    start_daemon 1
    berth submit -G 0 --wait -- 'echo "$FROM $CONDA_DEFAULT_ENV"'
    is "by default" "$(berth logs 1)" "settings jax"
    berth submit -G 0 --wait --env-setup '' --conda torch -- 'echo "${FROM-none} $CONDA_DEFAULT_ENV"'
    is "said otherwise" "$(berth logs 2)" "none torch"
    berth submit -G 0 --wait --env-setup '' --conda '' -- 'echo "${FROM-none} ${CONDA_DEFAULT_ENV-none}"'
    is "neither" "$(berth logs 3)" "none none"
    echo '[gpus=0 hold] true' >jobs.txt
    berth run --detach jobs.txt
    berth run --detach jobs.txt
    is "updates of a file that has not changed" "$(events_with kind=updated)" ""
}

@test "--unique and estimates distinguish set-ups, also when a pending line's is edited" {
    start_daemon 1
    berth submit -G 0 --hold --unique --env-setup 'A=1' -- true
    berth submit -G 0 --hold --unique --env-setup 'A=2' -- true
    berth submit -G 0 --hold --unique --conda torch -- true
    try berth submit -G 0 --hold --unique --env-setup 'A=1' -- true
    is "exit status" "$status" 6
    echo '[gpus=0 hold env-setup="A=3"] true' >jobs.txt
    berth run --detach jobs.txt
    before=$(job_field 4 fingerprint)
    echo '[gpus=0 hold env-setup="A=4"] true' >jobs.txt
    berth run --detach jobs.txt
    is "env_setup" "$(job_field 4 env_setup)" "A=4"
    [ "$(job_field 4 fingerprint)" != "$before" ] || fail_with "the fingerprint is still $before"
    after=$(job_field 4 fingerprint)
    kill_daemon
    start_daemon 1
    is "after a crash" "$(job_field 4 fingerprint)" "$after"
}
