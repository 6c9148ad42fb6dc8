#!/usr/bin/env bats
# `berth export` with two users: nobody gets another's commands, variables or jobs.

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
    # What was asked for by name is in no other answer.
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
