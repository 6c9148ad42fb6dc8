#!/usr/bin/env bats
# The drop-in mgpu_scheduler_server, mgpu_srun, mgpu_queue and mgpu_cancel: the cases of their
# reference (C1..C19) with two users, and clients of the old protocol. Two simulated GPUs, of
# 20,000 and 10,000 MB; the server starts the machine's daemon.

load lib
load users

# `serve [options]`: root's server, on a socket of this test.
serve()
{
    export MGPU_SCHEDULER_SOCKET=$ROOT/mgpu.sock BERTH_SIM=1x20000M,1x10000M
    berth compat install "$ROOT/bin" >/dev/null
    background server mgpu_scheduler_server "$@"
    wait_for_output server '^mgpu_scheduler_server started$'
}

# The same by the command in the systemd unit.
serve_as_unit()
{
    local berth unit program name
    for berth in $(type -ap berth); do
        unit=$(dirname "$berth")/../lib/systemd/system/mgpu_scheduler_server.service
        if [ -f "$unit" ]; then break; fi
    done
    read -r program name _ <<<"$(sed -n 's/^ExecStart=@//p' "$unit")"
    background server bash -c 'exec -a "$1" "$0"' "$program" "$name"
    wait_for_output server '^mgpu_scheduler_server started$'
}

# A user's background process that receives signals: `in_background NAME USER COMMAND...`.
in_background()
{
    local name=$1 user=$2
    shift 2
    background "$name" env --default-signal=INT HOME="$USERS_HOME/alice" USER="$user" \
        setpriv --reuid "$user" --regid "$user" --init-groups "$@"
}

# The id that mgpu_srun has just printed.
told_id()
{
    sed -n 's/^Job submitted. ID: \([A-Z0-9]\{8\}\) .*/\1/p' <<<"$out"
}

old()
{
    as "$ALICE" python3 - "$MGPU_SCHEDULER_SOCKET" "$@" <"$E2E/mgpu_old.py"
}

srun()
{
    try_as "$ALICE" mgpu_srun "$@"
}

usage='Usage: mgpu_srun --gpu-ids <id,id,...> [--mem <MB>] [--time-limit <sec>] [--priority <N>] [--env-setup-cmd <cmd>] [--interactive|--background] -- <command>'

@test "C1 missing arguments print the usage, wrong ones a message" {
    serve
    for words in '' '--gpu-ids 0' '--gpu-ids 0 --' '-- true' '--mem 5 -- true' 'true'; do
        srun $words
        is "output of '$words'" "$out" "$usage"
        is "status of '$words'" "$status" 1
    done
    srun --gpu-ids 0 --mem 4G -- true
    is "status" "$status" 1
    is "words" "$err" "mgpu_srun: --mem takes a whole number, not '4G'"
    try_as "$ALICE" mgpu_cancel
    is "output" "$out" 'Usage: mgpu_cancel <job_id>'
    is "status" "$status" 1
    try mgpu_scheduler_server --max-job-time soon
    is "status" "$status" 2
    has "words" "$err" "argument --max-job-time: invalid int value: 'soon'"
    try mgpu_scheduler_server
    is "a second server's status" "$status" 1
    has "its words" "$err" 'a server for .*mgpu.sock runs already'
}

@test "C2 C3 C9 an interactive job: its exact output, its exit code, its GPUs in the order given" {
    serve
    srun --gpu-ids 0 --mem 4000 --interactive -- sh -c 'echo hi $CUDA_VISIBLE_DEVICES'
    is "status" "$status" 0
    is "output" "$out" "Job submitted. ID: $(told_id) (priority=0)
Waiting for job to start...
hi 0

Job $(told_id) completed with exit code 0"
    is "its log" "$(cat "$USERS_HOME/alice/.mgpu_job_$(told_id).log")" 'hi 0'
    srun --interactive --gpu-ids 1,0 --unknown --priority 7 -- 'echo $CUDA_VISIBLE_DEVICES && sh -c "echo \$CUDA_VISIBLE_DEVICES"; pwd; id -un; exit 5'
    is "status" "$status" 5
    is "output" "$out" "Job submitted. ID: $(told_id) (priority=7)
Waiting for job to start...
1,0
1,0
$USERS_HOME/alice
$ALICE

Job $(told_id) completed with exit code 5"
    srun --gpu-ids 0 --interactive -- printf '%s|' --mem 5 'a  b' '$HOME' "it's"
    has "words behind --" "$out" "^--mem\|5\|a  b\|\\\$HOME\|it's\|\$"
    srun --gpu-ids 0 --interactive -- printf '%s|%s' $'\377 ä' "it's"
    has "bytes that are no text" "$(printf '%s' "$out" | LC_ALL=C od -An -c | tr -d ' \n')" "377303244\\|it's"
    srun --gpu-ids 0 --interactive --env-setup-cmd $'\377' -- true
    is "a set-up that cannot be sent is not left out" "$status $err" '1 mgpu_srun: what is to run is no UTF-8 text, and cannot be sent'
    as "$ALICE" mgpu_srun --gpu-ids 0 --interactive -- 'head -c 70000 /dev/zero; printf "\377\n50%%\r"; kill -9 $$' \
        >"$ROOT/raw" 2>"$ROOT/err" || status=$?
    is "status of a killed one" "$status" 137
    is "its bytes" "$(sed 1,2d "$ROOT/raw" | head -c 70006 | sha1sum)" \
        "$( (head -c 70000 /dev/zero; printf '\377\n50%%\r') | sha1sum)"
    has "why" "$(cat "$ROOT/err")" 'mgpu_srun: job [A-Z0-9]{8}: .*signal 9'
    srun --gpu-ids 0 --background --interactive -- true
    is "output in the background" "$out" "Job submitted. ID: $(told_id) (priority=0)
Job queued. Use mgpu_queue to check status."
}

@test "C4 C5 a request that no GPU could meet is refused, and the next job runs" {
    serve
    for ids in x 99 -1 0,0 '' 0,x 0.5; do
        srun --gpu-ids "$ids" -- true
        is "status of --gpu-ids '$ids'" "$status" 1
        has "words of --gpu-ids '$ids'" "$out" '^Submit failed: .* \(ID: [A-Z0-9]{8}\)$'
    done
    while read -r mem ids; do
        srun --gpu-ids "$ids" --mem "$mem" -- true
        is "status of --mem $mem" "$status" 1
        has "words of --mem $mem" "$out" '^Submit failed: '
    done <<<'999999 0
20001 0
10001 1
10001 0,1
0 0
-5 0'
    chmod 500 "$USERS_HOME/bob"
    try_as "$BOB" mgpu_srun --gpu-ids 0 -- true
    chmod 700 "$USERS_HOME/bob"
    is "status where the home takes no log" "$status" 1
    has "words" "$out" "^Submit failed: cannot make the job's log, $USERS_HOME/bob/.mgpu_job_.*Permission denied"
    is "logs of what was refused" "$(find "$USERS_HOME/alice" "$USERS_HOME/bob" -name '.mgpu_job_*' -newer "$MGPU_SCHEDULER_SOCKET")" ''
    srun --gpu-ids 0 --mem 20000 --interactive -- echo ran
    is "the next job's status" "$status" 0
    has "its output" "$out" '^ran$'
    is "queue" "$(as "$BOB" mgpu_queue)" $'--- Running Jobs ---\n--- Queue ---'
}

@test "C7 a higher priority runs first, and equal ones in order of submission" {
    local name priority
    serve
    mkfifo -m 666 "$ROOT/gate"
    srun --gpu-ids 0 --mem 20000 -- "cat $ROOT/gate"
    holder=$(told_id)
    wait_for_event kind=started job=1 >/dev/null
    while read -r name priority; do
        srun --gpu-ids 0 --mem 15000 --priority "$priority" -- "echo $name >>order"
    done <<<'a 0
b 10
c 5
d 10'
    is "queue" "$(as "$BOB" mgpu_queue | sed 's/ID: [A-Z0-9]\{8\}/ID: X/')" "--- Running Jobs ---
ID: X | User: $ALICE | GPUs: 1 | Mem: 20000 | CMD: cat $ROOT/gate | Status: running
--- Queue ---
ID: X | User: $ALICE | GPUs: 1 | Mem: 15000 | CMD: echo b >>order | Status: queued
ID: X | User: $ALICE | GPUs: 1 | Mem: 15000 | CMD: echo d >>order | Status: queued
ID: X | User: $ALICE | GPUs: 1 | Mem: 15000 | CMD: echo c >>order | Status: queued
ID: X | User: $ALICE | GPUs: 1 | Mem: 15000 | CMD: echo a >>order | Status: queued"
    has "queue" "$(mgpu_queue)" "^ID: $holder \|"
    echo >"$ROOT/gate"
    wait_for_event kind=ended job=2 >/dev/null
    is "order" "$(tr -d '\n' <"$USERS_HOME/alice/order")" bdca

    srun --gpu-ids 1 --mem 10000 -- "cat $ROOT/gate"
    srun --gpu-ids 1 -- 'echo ran >>order'
    background stranger env "BERTH_SIM_DIR=$BERTH_DIR/sim" berth simjob --vram 300 --ramp 0 --hold 1000 --gpu 1
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.strangers.0.mib 300
    echo >"$ROOT/gate"
    wait_for_event kind=ended job=7 state=COMPLETED >/dev/null
}

@test "C10 C11 a job over its time limit is stopped and goes to the end of the queue; its own limit wins" {
    serve --max-job-time 2
    berth pause 0 1 >/dev/null # all three are queued before the first starts
    srun --gpu-ids 0 --mem 20000 --time-limit 1 -- 'echo limited >>turns; sleep 60'
    srun --gpu-ids 1 -- 'echo global >>turns; sleep 60'
    srun --gpu-ids 0 --mem 20000 -- 'echo other >>turns'
    is "limits" "$(for job in 1 2 3; do berth show $job --json | json jobs.0.limit_ms; done | xargs)" '1000 2000 2000'
    berth resume 0 1 >/dev/null
    wait_for_event kind=requeued job=1 >/dev/null
    wait_for_event kind=started job=1 attempt=2 >/dev/null
    wait_for_event kind=requeued job=2 >/dev/null
    first=$(seq_of kind=started job=1 attempt=1) second=$(seq_of kind=started job=1 attempt=2)
    between=$(seq_of kind=started job=3)
    [ "$first" -lt "$between" ] && [ "$between" -lt "$second" ] || fail_with "turns: $first $between $second"
    # A job that has reached its limit for the last time meanwhile can no longer be cancelled.
    for job in $(mgpu_queue | sed -n 's/^ID: \([A-Z0-9]*\) .*/\1/p'); do mgpu_cancel "$job" || true; done
}

@test "C12 C13 only its owner can cancel a job, and all its processes end" {
    serve
    srun --gpu-ids 0 --mem 20000 -- 'trap "" TERM; setsid sleep 1000 & echo $! $$ >pids; mkfifo went; cat went'
    running=$(told_id)
    srun --gpu-ids 0 --mem 20000 -- true
    waiting=$(told_id)
    "$AWAIT" output "$LIMIT" "$USERS_HOME/alice/pids" .
    for id in "$running" "$waiting" NOTTHERE 17 1 '*' 'user:root' $'\377'; do
        try_as "$BOB" mgpu_cancel "$id"
        is "what bob is told of $id" "$out" 'Cancel failed.'
        is "status" "$status" 1
        words="no job of yours called $id waits or runs; mgpu_queue lists those that do"
        case $id in
            1) words='job 1 .*' ;;
            '*') words=${words/\*/\\*} ;;
            $'\377') words="a job's id is 8 letters and digits, or a number" ;;
        esac
        has "why $id" "$err" "^mgpu_cancel: $words$"
    done
    try mgpu_cancel NOTTHERE
    is "what root is told" "$err" 'mgpu_cancel: no job NOTTHERE waits or runs; mgpu_queue lists those that do'
    for id in "$waiting" "$running"; do
        try_as "$ALICE" mgpu_cancel "$id"
        is "what alice is told" "$out" 'Job cancelled.'
        is "status" "$status" 0
    done
    [ ! -e "$USERS_HOME/alice/.mgpu_job_$waiting.log" ] || fail_with "what has not run left a log"
    for pid in $(cat "$USERS_HOME/alice/pids"); do
        [ ! -e "/proc/$pid" ] || fail_with "process $pid lives"
    done
    try_as "$ALICE" mgpu_cancel "$running"
    is "what is told of an ended one" "$out" 'Cancel failed.'
    is "queue" "$(mgpu_queue)" $'--- Running Jobs ---\n--- Queue ---'
}

@test "C14 a job belongs to the user of the connection, whatever the message says" {
    serve
    old ask '{"cmd":"submit","user":"root","gpus":1,"gpu_ids":["0"],"cmdline":"id -un; id -Gn; pwd"}' >"$ROOT/answer"
    id=$(json job_id <"$ROOT/answer")
    is "answer" "$(cat "$ROOT/answer")" "{\"status\": \"ok\", \"job_id\": \"$id\"}"
    wait_for_event kind=ended job=1 >/dev/null
    is "who it ran as" "$(cat "$USERS_HOME/alice/.mgpu_job_$id.log")" "$ALICE
$(id -Gn "$ALICE")
$USERS_HOME/alice"
    is "owner of its log" "$(stat -c %U "$USERS_HOME/alice/.mgpu_job_$id.log")" "$ALICE"
    [ -z "$(find /root/ -maxdepth 1 -name ".mgpu_job_$id.log")" ]
    is "bob's limits go along" "$(cd "$USERS_HOME/bob" && ulimit -n 345 && as "$BOB" mgpu_srun --gpu-ids 0 --interactive -- ulimit -n | sed -n 3p)" 345
}

@test "C15 any request gets an answer, and the server survives" {
    serve
    has "answers" "$(old malformed)" '^[0-9]+ refused$'
    is "what comes in pieces" "$(old pieces '{"cmd":"queue","more":{"\u00e9 } é €":[-1.5e3,true,{}]}}')" ok
    is "many at once" "$(old many 200 '{"cmd":"queue"}')" 200
    old rude '{"cmd":"queue"}'
    is "what is right" "$(old send '{"cmd":"queue"}' \
        '{"cmd":"submit","user":"","gpus":2,"cmdline":"true","gpu_ids":null,"mem":null,"time_limit":null,"env_setup_cmd":null}' \
        '{"cmd":"submit","user":"","gpus":1,"cmdline":"true","gpu_ids":[1,0],"mem":9000,"interactive":false,"more":[1]}' | xargs)" \
        'ok ok ok'
    srun --gpu-ids 0,1 --interactive -- echo alive
    has "output" "$out" '^alive$'
    is "the last job" "$(berth queue --all --format id | sort -n | tail -1 | xargs)" 3
}

@test "C17 long commands and long queues are transferred completely" {
    serve
    mkfifo -m 666 "$ROOT/gate"
    srun --gpu-ids 0 --mem 20000 -- "cat $ROOT/gate"
    long=$(printf 'x%.0s' {1..40000})
    srun --gpu-ids 0 --mem 20000 -- "printf %s $long | wc -c; true $long"
    id=$(told_id)
    for n in {1..30}; do
        printf '{"cmd":"submit","user":"","gpus":1,"gpu_ids":[0],"mem":20000,"cmdline":"true %s %s"}\n' "$n" "${long:0:300}"
    done >"$ROOT/requests"
    mapfile -t requests <"$ROOT/requests"
    is "answers" "$(old send "${requests[@]}" | sort | uniq -c | xargs)" '30 ok'
    is "queue" "$(as "$BOB" mgpu_queue | grep -c 'Status: queued')" 31
    old ask '{"cmd":"queue"}' | python3 -c 'import json, sys
q = json.load(sys.stdin)
assert len(q["queue"]) == 31 and len(q["running"]) == 1, q
assert set(q["queue"][5]) == {"id", "user", "gpus", "mem", "cmd", "status", "gpu_ids", "env_setup_cmd"}, q["queue"][5]
assert q["queue"][5]["gpu_ids"] == ["0"] and q["queue"][5]["mem"] == 20000'
    echo >"$ROOT/gate"
    wait_for_event kind=ended job=2 >/dev/null
    is "the long one's output" "$(cat "$USERS_HOME/alice/.mgpu_job_$id.log")" 40000
}

@test "C18 the set-up takes effect, and a failing set-up fails the job" {
    serve
    echo 'export CUDA_VISIBLE_DEVICES=7; tool() { echo "tool $1"; }' >"$USERS_HOME/alice/.bash_profile"
    srun --gpu-ids 1 --interactive --env-setup-cmd 'export Z=1; Y=2; tool up' -- 'echo $Z $Y $CUDA_VISIBLE_DEVICES; [[ a == a ]] && tool on'
    has "output" "$(xargs <<<"$out")" 'tool up 1 2 1 tool on'
    srun --gpu-ids 1 --interactive -- 'echo $CUDA_VISIBLE_DEVICES; shopt -q login_shell && echo login; echo $PYTHONUNBUFFERED'
    has "output" "$(xargs <<<"$out")" 'start... 1 login 1 Job'
    mkdir -p "$USERS_HOME/alice/miniconda3/etc/profile.d"
    echo 'conda() { echo "conda $*"; }' >"$USERS_HOME/alice/miniconda3/etc/profile.d/conda.sh"
    srun --gpu-ids 1 --interactive --env-setup-cmd 'conda activate myenv' -- true
    has "output" "$out" '^conda activate myenv$'
    srun --gpu-ids 1 --interactive -- no-such-tool
    has "a line that is wrong" "$out" '^-bash: line 1: no-such-tool: command not found$'
    srun --gpu-ids 1 --interactive --env-setup-cmd 'echo no; false' -- 'touch ran'
    is "status" "$status" 1
    has "output" "$out" '^no$'
    has "why" "$err" 'set-up failed'
    [ ! -e "$USERS_HOME/alice/ran" ]
}

@test "the log of an interactive job is cut, and its client goes on behind the cut" {
    start_system --set job_log_max_mib=4
    export MGPU_SCHEDULER_SOCKET=$ROOT/mgpu.sock
    berth compat install "$ROOT/bin" >/dev/null
    background server env -u BERTH_DIR BERTH_SOCKET="$BERTH_DIR/berth.sock" mgpu_scheduler_server
    wait_for_output server '^mgpu_scheduler_server started$'
    mkfifo -m 666 "$ROOT/gate"
    # The client stops when its log is cut to less than it has shown.
    in_background run "$ALICE" mgpu_srun --gpu-ids 0 --interactive -- "echo first; yes | head -c 3000000; echo ready; cat $ROOT/gate
until grep -q 'were cut out' ~/.mgpu_job_*.log; do yes | head -c 100000; done; cat $ROOT/gate; echo last"
    wait_for_output run '^ready'
    echo >"$ROOT/gate"
    wait_for_output run 'were cut out'
    echo >"$ROOT/gate"
    finish run
    is status "$status" 0
    is 'first and last words' "$(grep -cx first "$ROOT/run.out") $(grep -cx last "$ROOT/run.out")" '1 1'
    rm "$USERS_HOME/alice"/.mgpu_job_*.log
    kill -TERM "$pid_of_server"
    finish server
}

@test "C19 closing the client of an interactive job leaves it running; Ctrl-C twice ends it" {
    serve
    mkfifo -m 666 "$ROOT/gate"
    in_background killed "$ALICE" mgpu_srun --gpu-ids 0 --mem 1000 --interactive -- "echo here; cat $ROOT/gate; echo over"
    wait_for_output killed '^here$'
    kill -KILL "$pid_of_killed"
    finish killed
    in_background left "$ALICE" mgpu_srun --gpu-ids 0 --mem 1000 --interactive -- "echo there; cat $ROOT/gate"
    wait_for_output left '^there$'
    kill -INT "$pid_of_left"
    finish left
    is "status" "$status" 130
    has "output" "$out" '^User interrupted. Job [A-Z0-9]{8} goes on; Ctrl-C again cancels it'
    is "running" "$(mgpu_queue | grep -c 'Status: running')" 2
    in_background closed "$ALICE" mgpu_srun --gpu-ids 0 --mem 1000 --interactive -- "echo where; cat $ROOT/gate"
    wait_for_output closed '^where$'
    kill -INT "$pid_of_closed"
    wait_for_output closed '^User interrupted. Job'
    kill -HUP "$pid_of_closed"
    finish closed
    is "running once a terminal was closed" "$(mgpu_queue | grep -c 'Status: running')" 3
    in_background twice "$ALICE" mgpu_srun --gpu-ids 0 --mem 1000 --interactive -- "echo ready; exec sleep 1000"
    wait_for_output twice '^ready$'
    kill -INT "$pid_of_twice"
    wait_for_output twice '^User interrupted. Job'
    kill -INT "$pid_of_twice"
    finish twice
    is "status" "$status" 130
    has "output" "$out" '^User interrupted. Canceling job...$'
    has "output" "$out" '^Job [A-Z0-9]{8} canceled successfully.$'
    is "running" "$(mgpu_queue | grep -c 'Status: running')" 3
    echo >"$ROOT/gate"
    wait_for_event kind=ended job=1 state=COMPLETED >/dev/null
    has "the log of the first" "$(cat "$USERS_HOME"/alice/.mgpu_job_*.log)" '^over$'
}

@test "an old client gets its job's output line by line, and its end" {
    serve
    is "frames" "$(old follow '{"cmd":"submit","user":"x","gpus":1,"gpu_ids":["0"],"cmdline":"echo one; printf \"tw\\303\\266\\377\\n\"; sh -c \"exit 3\"","interactive":true}')" \
'{"status": "ok", "job_id": "ID", "interactive": true}
{"type": "output", "data": "one\n"}
{"type": "output", "data": "tw\u00f6\ufffd\n"}
{"type": "completion", "job_id": "ID", "exit_code": 3}'
    is "much output" "$(old total '{"cmd":"submit","user":"x","gpus":1,"cmdline":"printf \"äöü€ 𝄞 %s\\n\" {1..9000}","interactive":true}')" \
        "$(printf 'äöü€ 𝄞 %s\n' {1..9000} | python3 -c 'import hashlib, sys
text = sys.stdin.read(); print(len(text), hashlib.sha1(text.encode()).hexdigest(), True)')"
}

@test "jobs outlive the server, and the next one takes over its socket; other users' sockets are not trusted" {
    serve
    mkfifo -m 666 "$ROOT/gate"
    srun --gpu-ids 0 -- "cat $ROOT/gate"
    in_background watcher "$ALICE" mgpu_srun --gpu-ids 0 --mem 1000 --interactive -- "echo here; cat $ROOT/gate; exit 4"
    wait_for_output watcher '^here$'
    kill -KILL "$pid_of_server"
    finish server
    try_as "$ALICE" mgpu_queue
    is "without a server the daemon answers, status" "$status" 0
    is "running" "$(grep -c 'Status: running' <<<"$out")" 2
    serve_as_unit
    is "running" "$(as "$ALICE" mgpu_queue | grep -c 'Status: running')" 2
    rm "$MGPU_SCHEDULER_SOCKET"
    "$AWAIT" until "$LIMIT" "$E2E/is-there $MGPU_SCHEDULER_SOCKET" there true
    is "an old client once the name was lost" "$(old send '{"cmd":"queue"}')" ok
    kill_daemon
    is "an old client while the daemon is started again" "$(old send '{"cmd":"queue"}')" ok
    echo >"$ROOT/gate"
    finish watcher
    is "who watched: status" "$status" 4
    kill -TERM "$pid_of_server"
    finish server
    is "the server's status" "$status" 0
    [ ! -e "$MGPU_SCHEDULER_SOCKET" ]
    mkdir -m 777 "$ROOT/open"
    MGPU_SCHEDULER_SOCKET=$ROOT/open/s
    in_background liar "$BOB" env PATH=/usr/bin:/bin python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print("up", flush=True); s.accept()[0].recv(1)' "$ROOT/open/s"
    wait_for_output liar '^up$'
    chmod 666 "$ROOT/open/s"
    try_as "$ALICE" mgpu_queue
    is "status" "$status" 1
    has "words" "$err" 'neither root.s nor yours'

    MGPU_SCHEDULER_SOCKET=$ROOT/open/slow
    mkfifo "$ROOT/answer"
    background slow python3 "$E2E/mgpu_old.py" "$MGPU_SCHEDULER_SOCKET" serve "$ROOT/answer"
    wait_for_output slow '^up$'
    in_background early "$ALICE" mgpu_srun --gpu-ids 0 --interactive -- true
    wait_for_output slow '^asked$'
    kill -INT "$pid_of_early"
    echo '{"status": "ok", "job_id": "ABCDEFGH", "interactive": true}' >"$ROOT/answer"
    finish early
    is "status after a Ctrl-C before the answer" "$status" 130
    has "output" "$out" '^Job submitted. ID: ABCDEFGH'
    has "output" "$out" '^User interrupted. Job ABCDEFGH goes on'
}

@test "without root the server serves the user who started it; without a daemon requests fail" {
    export MGPU_SCHEDULER_SOCKET=$ROOT/mgpu.sock BERTH_SIM=2
    berth compat install "$ROOT/bin" >/dev/null
    mkdir "$ROOT/i"
    chown "$ALICE" "$ROOT/i" "$ROOT/locks"
    try_as "$ALICE" mgpu_srun --gpu-ids 0 -- true
    is "status" "$status" 1
    has "words" "$err" 'no server listens at .*; start mgpu_scheduler_server as root'
    MGPU_SCHEDULER_SOCKET=$USERS_HOME/alice/s
    in_background server "$ALICE" nohup mgpu_scheduler_server
    wait_for_output server '^mgpu_scheduler_server started$'
    kill -HUP "$pid_of_server"
    is "an old client after the terminal was closed" "$(old send '{"cmd":"queue"}')" ok
    srun --gpu-ids 1 --interactive -- 'echo $CUDA_VISIBLE_DEVICES'
    has "output" "$out" '^1$'
    kill -TERM "$pid_of_server"
    finish server
}

@test "the machine's settings limit a priority, and no script fails because of that" {
    export MGPU_SCHEDULER_SOCKET=$ROOT/mgpu.sock BERTH_SOCKET=$BERTH_DIR/berth.sock
    berth compat install "$ROOT/bin" >/dev/null
    start_system --set user_priority_max=3 --set private=on
    while read -r asked given is; do
        srun --gpu-ids 0 --priority "$asked" -- true
        is "status" "$status" 0
        has "output" "$out" "\(priority=$given\)$"
        words="mgpu_srun: job $(told_id): priority $asked is $is that this machine's settings let you ask for, and counts as that"
        is "words" "$err" "${is:+$words}"
    done <<<'10 3 above 3, the highest
3 3
-7 -7
-5000 -1000 below -1000, the lowest
99999 3 above 3, the highest'
    is "priorities" "$(for job in 1 2 3 4 5; do berth show $job --json | json jobs.0.priority; done | xargs)" '3 3 -7 -1000 3'
    mkfifo -m 666 "$ROOT/gate"
    srun --gpu-ids 1 -- "cat $ROOT/gate"
    is "what is not for others to see" "$(as "$BOB" mgpu_queue | sed -n 2p)" \
        "ID: 6 | User: $ALICE | GPUs: 1 | Mem: 24064 | CMD: (private) | Status: running"
    has "its owner sees it" "$(as "$ALICE" mgpu_queue)" "^ID: $(told_id) .*CMD: cat $ROOT/gate "
    echo >"$ROOT/gate"
}
