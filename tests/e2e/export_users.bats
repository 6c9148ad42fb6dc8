#!/usr/bin/env bats
# `berth export` with two users: neither gets another's commands, variables or jobs.

load lib
load users

ask() { as "$1" python3 "$E2E/ask.py" "${@:2}"; }

@test "requests and environments are shown to their user and admins alone" {
    start_system
    as "$ALICE" env TOKEN=of-alice berth submit --gpus 0 --hold --env KEY=hers -- echo secret
    ask "$ALICE" jobs '{"select":["1"],"fields":["submission"]}' | grep -F '"KEY=hers"'
    ask "$ALICE" environment '{"job":1}' | grep -F '"TOKEN=of-alice"'
    python3 "$E2E/ask.py" environment '{"job":1}' | grep -F '"TOKEN=of-alice"'
    run ask "$BOB" jobs '{"select":["1"],"fields":["submission"]}'
    [ "$status" -eq 0 ]
    [ "$(jq -c .rows <<<"$output")" = '[[null]]' ]
    run ask "$BOB" environment '{"job":1}'
    [ "$status" -eq 1 ]
    [[ $output == *"job 1 belongs to $ALICE"* ]]
    for job in 0 '"1"' 99 4294967296; do
        run ask "$BOB" environment "{\"job\":$job}"
        [ "$status" -eq 1 ]
    done
    # Fields requested by name are in no other answer.
    as "$ALICE" berth show --json 1 | jq -e '.jobs[0] | has("submission") | not'
}

@test "users export their own jobs, admins all of them, and nobody else can read the folder" {
    start_system
    as "$ALICE" berth submit --gpus 0 --hold -- true
    as "$BOB" berth submit --gpus 0 --hold -- true
    as "$ALICE" berth submit --gpus 0 --hold --after 1 -- true
    as "$ALICE" berth export --to slurm -o mine
    [ "$(ls "$USERS_HOME/alice/mine/scripts" | tr '\n' ,)" = 1.sh,3.sh, ]
    run as "$ALICE" berth export --to slurm --all -o all
    [ "$status" -ne 0 ]
    [[ $output == *"only root and members of admin_group may export other users' jobs"* ]]
    [ ! -e "$USERS_HOME/alice/all" ]
    berth export --to slurm -o "$ROOT/all"
    [ "$(ls "$ROOT/all/scripts" | tr '\n' ,)" = 1.sh,2.sh,3.sh, ]
    grep "^submit 2 $BOB " "$ROOT/all/submit-all"
    [ -z "$(find "$ROOT/all" ! -type d -perm /077 ! -name '*.conf')" ]
    [ "$(stat -c %a "$ROOT/all")" = 700 ]
}

# An sbatch wrapper script as sites have it, which records its user and its arguments.
@test "root submits with none of a user's variables, and a user's job gets none of root's" {
    local env evil
    start_system
    evil=$USERS_HOME/bob/evil
    env=$(jq -nc --arg e "$evil" '["PATH=/usr/bin:/bin", "BASH_ENV=\($e)", "LD_PRELOAD=\($e).so", "KEY=his",
        "--split-string=touch \($e).ran", "-C=/", "SLURM_CONF=/x", "SBATCH_UID=0", "A[$(id)]=x"]')
    as "$BOB" sh -c "echo 'touch $evil.ran' >$evil"
    ask "$BOB" submit "{\"cwd\":\"/\",\"env\":$env,\"jobs\":[{\"command\":\"true\",\"name\":\"a \\\" \\\\ b\",\"gpus\":0,\"hold\":true}]}"
    ask "$BOB" submit '{"cwd":"/","jobs":[{"command":"true","gpus":0,"hold":true}]}'
    berth export --to slurm -o "$ROOT/out"
    mkdir "$ROOT/fake"
    cat >"$ROOT/fake/sbatch" <<'END'
#!/bin/bash
here=${0%/*}
tr '\0' '\n' </proc/self/environ >>"$here/environ"
echo "$*" >>"$here/calls"
case $* in *--export-file*) tr '\0' ' ' <.environment >"$here/exported" ;; esac
echo 1
END
    printf '#!/bin/sh\nexit 0\n' | tee "$ROOT/fake/squeue" >"$ROOT/fake/scontrol"
    chmod +x "$ROOT"/fake/*
    SECRET=of-root PATH=$ROOT/fake:$PATH "$ROOT/out/submit-all"
    [ ! -e "$evil.ran" ]
    has_not "sbatch's variables" "$(cat "$ROOT/fake/environ")" 'of-root|evil|KEY|BASH_ENV|LD_PRELOAD'
    is "calls" "$(cat "$ROOT/fake/calls")" "--export-file=.environment --uid=$BOB --gid=$(id -g "$BOB") --parsable ./scripts/1.sh
--uid=$BOB --gid=$(id -g "$BOB") --parsable ./scripts/2.sh"
    is "the job's" "$(cat "$ROOT/fake/exported")" "PATH=/usr/bin:/bin BASH_ENV=$evil LD_PRELOAD=$evil.so KEY=his \
--split-string=touch $evil.ran -C=/ A[\$(id)]=x SLURM_JOB_NAME=a \" \\ b "
    # Only digits count as a number.
    rm "$ROOT/out/submitted"
    printf '#!/bin/bash\necho "7 a[\\$(touch %s.ran)]"\n' "$evil" >"$ROOT/fake/sbatch"
    PATH=$ROOT/fake:$PATH run "$ROOT/out/submit-all"
    [ "$status" -eq 1 ]
    [[ $output == *"sbatch gave no number for job 1, but '7 a["* ]]
    PATH=$ROOT/fake:$PATH run "$ROOT/out/submit-all"
    [ "$status" -eq 1 ]
    [ ! -e "$evil.ran" ]
}
