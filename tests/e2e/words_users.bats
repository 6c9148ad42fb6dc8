#!/usr/bin/env bats
# Text of one user on another's terminal: no verb prints a character that moves the cursor (C0,
# C1) or changes the direction of text, wherever a job can carry one.

load lib
load users

@test "no verb prints control characters or direction changes from a job to root" {
    start_system
    # U+009B (CSI as one character), U+202E (right to left), U+2066, U+061C.
    local bad=$'\xc2\x9b31m\xe2\x80\xae\xe2\x81\xa6\xd8\x9c' verb
    as "$BOB" mkdir -p "dir$bad"
    as "$BOB" bash -c 'cd "dir$1" && berth submit -G 0 --name "n$1" --tag "t$1" --log "l$1.log" \
        --on-end "echo hook$1" --mail-user "" --wait -- sh -c "echo $1; exit 3" "$1"' sh "$bad" || true
    as "$BOB" bash -c 'cd "dir$1" && berth submit --gpu-type "g$1" --hold --log "l$1" -- true "$1"' sh "$bad" || true
    as "$BOB" berth submit -G 0 --name "n$bad" --hold -- true "$bad" $'\e[31m'
    wait_for_event kind=hook job=1 hook=on_end state=done >/dev/null
    for verb in "show 1" "show 2 3" "queue --all" "queue" "explain 3" "history" "events" "status" "gpus" \
        "report" "health" "wait 1" "show 1 --json" "queue --all --json" "history --json" "events --json" \
        "report --json" "status --json" "gpus --json" "explain 3 --json" "metrics" "requeue 1" "cancel 3" \
        "queue --all -o id,name,command,log,reason" "logs 999" "simulate nothing"; do
        # shellcheck disable=SC2086 # a verb and its options
        berth $verb >"$ROOT/seen" 2>&1 </dev/null || true
        if LC_ALL=C grep -aqP '\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c|\x1b|\x07' "$ROOT/seen"; then
            fail_with "berth $verb shows it: $(LC_ALL=C cat -v "$ROOT/seen")"
        fi
    done
    berth events | "$AWAIT" match kind=submitted job=1 | json name >"$ROOT/name"
    is "the event's own text" "$(cat "$ROOT/name")" "n$bad"
}
