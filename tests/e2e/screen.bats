#!/usr/bin/env bats
# --screen, with the real GNU screen: a session to attach to while the job runs; the job's exit
# status and complete output are kept whatever happens to the session.

load lib

case_setup()
{
    command -v screen >/dev/null || skip "GNU screen is not installed"
    export SCREENDIR=$ROOT/screens TERM=vt100
    mkdir -m 700 "$SCREENDIR"
    unset STY
}

case_teardown()
{
    # Only left-over sockets, of killed sessions.
    rm -rf "$SCREENDIR"
}

# The name of a job's session: `session_of 3`.
session_of()
{
    "$AWAIT" until "$LIMIT" "berth show $1 --json" jobs.0.state RUNNING >/dev/null || return 1
    job_field "$1" screen_session
}

sessions()
{
    screen -ls | grep -c "gpujob_" || true
}

# A session's socket may outlive its job by a moment.
none_left()
{
    "$AWAIT" prints "$LIMIT" 'screen -ls | grep -c gpujob_ || true' '^0$'
}

@test "a job in a screen session: its name, its terminal, its exit status, its output" {
    start_daemon 2
    mkfifo gate
    id=$(berth submit --parsable --screen -G 2 -- \
        sh -c 'echo "STY $STY TERM $TERM $(tty)"; read x <gate; echo bye; exit 7' -- --mode 'fine tune')
    session=$(session_of "$id")
    has "the session" "$session" "^[0-9]+\.gpujob_0,1_fine_tune_1$"
    has "screen's own list" "$(screen -ls)" "$session.*Detached"
    has "berth screens" "$(berth screens)" "gpujob_0,1_fine_tune_1 .* 1 .* 0,1 .* screen -r $session$"
    is "its JSON" "$(berth screens --json | json screens.0.session)" "$session"
    echo >gate
    try berth wait "$id"
    is "exit status" "$status" 7
    has "its log" "$(berth logs "$id")" "STY $session TERM screen /dev/pts/"
    has "its log" "$(berth logs "$id")" "bye"
    none_left
    has "berth screens" "$(berth screens 2>&1)" "no screen sessions"
}

@test "screen -r shows the job and takes input; after detaching the job continues" {
    start_daemon 1
    id=$(berth submit --parsable --screen -- sh -c 'echo ready; read a; echo "first $a"; read b; echo "then $b"; exit 4')
    session=$(session_of "$id")
    "$E2E/onpty" "$LIMIT" 'see:ready' 'type:one\r' 'see:first one' 'type:\x01d' -- \
        screen -r "$session" >"$ROOT/person"
    has "screen's words" "$(cat "$ROOT/person")" "detached"
    is "state" "$(job_field "$id" state)" RUNNING
    screen -S "$session" -X stuff $'two\n'
    try berth wait "$id"
    is "exit status" "$status" 4
    has "its log" "$(berth logs "$id")" "then two"
}

@test "short jobs in screen sessions, one and many, have true records and all their output" {
    start_daemon 1
    for code in 0 3 200; do
        try berth submit -G 0 --screen --wait -- sh -c "exit $code"
        is "exit status" "$status" "$code"
    done
    seq -f "[gpus=0 screen] echo line %.0f; exit 0" 1 12 >jobs.txt
    try berth run jobs.txt
    is "exit status of the file" "$status" 0
    for id in 4 9 15; do has "log of $id" "$(berth logs $id)" "^line $((id - 3))"; done
    try berth submit -G 0 --screen --wait -- sh -c 'stty -onlcr; seq 200000'
    berth logs @ >"$ROOT/got"
    seq 200000 | cmp - "$ROOT/got"
    none_left
}

@test "closing the session hangs up the job; killing screen only ends the view" {
    start_daemon 1
    berth submit -G 0 --screen -- sh -c 'echo one; exec sleep 1000'
    session=$(session_of 1)
    screen -S "$session" -X quit
    try berth wait 1
    is "exit status" "$status" 129
    has "its text" "$(job_field 1 text)" "killed by signal 1 \(HUP\): its screen session was closed"
    mkfifo gate
    berth submit -G 0 --screen -- sh -c 'echo two; read x <gate; exit 6'
    session=$(session_of 2)
    kill -KILL "${session%%.*}"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/logs/2.log" "the screen session was killed \(signal 9\)"
    is "state" "$(job_field 2 state)" RUNNING
    is "its session" "$(job_field 2 screen_session)" null
    echo >gate
    try berth wait 2
    is "exit status" "$status" 6
}

@test "a time limit, cancel, and KILL for a job that ignores both, end the job and its session" {
    start_daemon 1
    try berth submit -G 0 --screen --time 1s --wait -- sleep 1000
    is "exit status at the limit" "$status" 124
    is "state" "$(job_field 1 state)" TIMEOUT
    berth submit -G 0 --screen -- sh -c 'trap "echo told; exit 3" TERM; while :; do sleep 0.1; done'
    session_of 2 >/dev/null
    berth cancel 2
    try berth wait 2
    is "state" "$(job_field 2 state)" CANCELLED
    berth submit -G 0 --screen -- sh -c 'trap "" TERM HUP; echo deaf; while :; do sleep 0.1; done'
    session_of 3 >/dev/null
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/logs/3.log" deaf
    berth cancel --grace 100ms 3
    try berth wait 3
    is "state" "$(job_field 3 state)" CANCELLED
    none_left
}

@test "a killed daemon does not disturb a session; a killed supervisor leaves nothing behind" {
    start_daemon 1
    mkfifo gate
    berth submit -G 0 --screen -- sh -c 'read x <gate; exit 5'
    session=$(session_of 1)
    kill_daemon
    start_daemon 1
    is "the session, for the next daemon" "$(session_of 1)" "$session"
    has "berth screens" "$(berth screens)" "$session"
    echo >gate
    try berth wait 1
    is "exit status" "$status" 5
    berth submit -G 0 --screen -- sleep 1000
    session=$(session_of 2)
    shepherd=$(ps -o ppid= -p "${session%%.*}")
    kill -KILL $shepherd
    try berth wait 2
    is "state" "$(job_field 2 state)" LOST
}

@test "two jobs of one name have two sessions" {
    start_daemon 1
    screen -d -m -S gpujob_cpu_unknown_1 sleep 1000
    berth submit -G 0 --screen -- sh -c 'read x; echo "got $x"; exit 2'
    session=$(session_of 1)
    screen -S "$session" -X stuff $'this\n'
    try berth wait 1
    is "exit status" "$status" 2
    has "its log" "$(berth logs 1)" "got this"
    is "the other one" "$(sessions)" 1
    screen -S gpujob_cpu_unknown_1 -X quit
}

@test "without a session the job says why: no screen, no folder for sockets" {
    start_daemon 1
    mkdir "$ROOT/nobin"
    for program in berth berthd; do ln -s "$(command -v $program)" "$ROOT/nobin/"; done
    try env PATH="$ROOT/nobin" berth submit --screen -- true
    is "exit status" "$status" 6
    has "words" "$err" "install the package 'screen'"
    echo '[screen] true' >jobs.txt
    try env PATH="$ROOT/nobin" berth run jobs.txt
    has "words of the file" "$err" "jobs.txt:1:1: .*install the package 'screen'"
    try berth submit -G 0 --screen --wait --env PATH=/nowhere -- /bin/true
    is "exit status" "$status" 127
    has "text" "$(job_field @ text)" "cannot execute 'screen', which --screen needs"
    try berth submit -G 0 --screen --wait --env SCREENDIR=/nowhere/x -- true
    is "exit status" "$status" 1
    has "text" "$(job_field @ text)" "no screen session: .*/nowhere/x"
    try berth submit --screen --interactive -- true
    is "exit status" "$status" 2
    has "words" "$err" "use pty instead of interactive"
    none_left
}

@test "screen sessions with a set-up, in an array, from a terminal, and after requeue" {
    start_daemon 1
    try berth submit -G 0 --screen --wait --env-setup 'A=b; false' -- echo no
    has "text" "$(job_field 1 text)" "set-up failed: exit 1: A=b; false"
    try berth submit -G 0 --screen --array 0-2 --env-setup A=b --wait -- 'echo "task $BERTH_ARRAY_TASK_ID $A"'
    is "exit status of the array" "$status" 0
    has "a task's log" "$(berth logs 2_1)" "task 1 b"
    "$E2E/onpty" "$LIMIT" 'see:ready' 'type:go\r' -- \
        berth submit -G 0 --screen --pty -- sh -c 'echo "ready $STY"; read x; echo "got $x"; exit 9' >"$ROOT/here"
    has "shown here" "$(cat "$ROOT/here")" "got go"
    has "its status" "$(cat "$ROOT/here")" "status 9"
    berth requeue 1
    try berth wait 1
    is "its attempts" "$(job_field 1 attempts.1.number)" 2
    none_left
}
