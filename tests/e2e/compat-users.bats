#!/usr/bin/env bats
# The drop-in commands of two users at once with the machine's daemon: ownership, what neither
# can do to the other, the daemon's death, and its limits.

load lib
load users

teardown_file()
{
    local user
    [ -n "${USERS_HOME:-}" ] || return 0
    for user in "$ALICE" "$BOB"; do
        rm -rf "/tmp/gpu_scheduler_logs-$(id -u "$user")" "/tmp/berth-$(id -u "$user")"
        find /tmp -maxdepth 1 -name gpu_scheduler_logs -user "$user" -exec rm -rf {} +
        userdel -f "$user" || true
    done
    groupdel "$ADMINS" || true
    rm -rf "$USERS_HOME"
}

home_of()
{
    getent passwd "$1" | cut -d : -f 6
}

# A command of a user in a folder below that user's home, which replaces this process.
be()
{
    local user=$1 home
    home=$(home_of "$user")
    cd "$home/$2" || exit 1
    shift 2
    umask 027
    unset BERTH_DIR
    exec setpriv --reuid "$user" --regid "$user" --init-groups env HOME="$home" USER="$user" \
        BERTH_SOCKET="$ROOT/i/berth.sock" MGPU_SCHEDULER_SOCKET="$ROOT/mgpu.sock" OF="$user" "$@"
}

# Each user's folders, and a job per front end that prints its owner and waits at the gate.
make_files()
{
    local home says='echo "$(id -un) $(umask) $(id -Gn) $OF" >>who; cat ../gate'
    home=$(home_of "$1")
    rm -rf "$home"/{gate,closed,gs,cq,s1,x10}
    mkdir "$home"/{gs,cq,s1,x10}
    mkfifo "$home/gate"
    ln "$home/gate" "$home/closed"
    echo "[vram=1G] $says; exit 7" >"$home/gs/jobs.txt"
    echo "$says; exit 4" >"$home/cq/commands.txt"
    printf 'import subprocess, sys\nsubprocess.call(["sh", "-c", """%s"""])\nsys.exit(int(sys.argv[2]))\n' \
        "$says" | tee "$home/x10/a.py" >"$home/s1/a.py"
    echo '0,a.py,,--exit 5' >"$home/s1/jobs.txt"
    echo '0,a.py,,--exit 0' >"$home/x10/jobs.txt"
    echo '{"default_requirement": 0.5, "models": {}}' | tee "$home/x10/llm_config.json" >"$home/s1/llm_config.json"
    chmod -R go= "$home"
    chown -R "$1:" "$home"
}

# Return when it has released its locks.
kill_hard()
{
    kill -KILL "$1"
    "$AWAIT" pid "$LIMIT" "$1"
}

# Release jobs at the gate, and those that come later.
open_gate()
{
    local home
    home=$(home_of "$1")
    install -o "$1" -m 600 /dev/null "$home/open"
    mv "$home/open" "$home/gate"
    : 1<>"$home/closed"
    rm "$home/closed"
}

start_all()
{
    local user=$1 name=$2
    make_files "$user"
    background "${name}_gs" be "$user" gs berth compat gpusched jobs.txt --poll 0.2
    background "${name}_cq" be "$user" cq berth compat cudaq run --min-free-mem-mb 1000
    background "${name}_s1" be "$user" s1 berth compat scheduler start --retries 0
    background "${name}_x10" be "$user" x10 berth compat scheduler_10x start
    background "${name}_mgpu" be "$user" . berth compat mgpu_srun --interactive --gpu-ids 3 --mem 1000 -- \
        'umask; id -Gn; cat gate; exit 6'
}

@test "front ends of two users share the cards, touch nothing of each other's, and outlive the daemon" {
    local user name id home
    start_system --sim 4x24G
    background server env -u BERTH_DIR BERTH_SOCKET="$ROOT/i/berth.sock" MGPU_SCHEDULER_SOCKET="$ROOT/mgpu.sock" berth compat mgpu_scheduler_server
    wait_for_output server started
    start_all "$ALICE" alice
    start_all "$BOB" bob
    "$AWAIT" until "$LIMIT" "berth status --json" counts.RUNNING 10 >/dev/null
    is "cards with more than they have" \
        "$(berth gpus --json | jq '[.gpus[] | select(.held_mib > .total_mib or .share_permille > 1000)] | length')" 0

    # What bob may not do to alice's: by any of its numbers, GPUs or files.
    for id in $(berth queue --json | jq --arg u "$ALICE" '.jobs[] | select(.user == $u) | .id'); do
        has "mgpu_cancel $id" "$(be "$BOB" . berth compat mgpu_cancel "$id" 2>&1)" "belongs to $ALICE"
        has "cancel-job $id" "$(be "$BOB" x10 berth compat scheduler_10x cancel-job "$id")" "no such job"
    done
    (be "$BOB" s1 berth compat scheduler pause 0) >/dev/null
    (be "$BOB" x10 berth compat scheduler_10x pause-gpu 1) >/dev/null
    wait_for_output bob_s1 "GPU 0 paused"
    wait_for_output bob_x10 "GPU 1 paused"
    is "cards that are paused for all" "$(berth gpus --json | jq '[.gpus[] | select(.paused)] | length')" 0
    is "alice's state file" "$(jq -c .paused_gpus "$(home_of "$ALICE")/s1/gpu_scheduler_state.json")" "[]"
    has "bob's list" "$(be "$BOB" x10 berth compat scheduler_10x list-jobs)" "running"
    is "jobs in it" "$(be "$BOB" x10 berth compat scheduler_10x list-jobs | grep -c running)" 1
    is "jobs that run" "$(berth status --json | json counts.RUNNING)" 10

    # A restart with another daemon runs nothing twice; with the same one it continues.
    eval "kill_hard \$pid_of_alice_s1"
    home=$(home_of "$ALICE")
    status=0
    (be "$ALICE" s1 env -u BERTH_SOCKET BERTH_DIR="$home/other" BERTH_SIM=4 \
        berth compat scheduler start) >"$ROOT/out" 2>&1 || status=$?
    is "exit status with another daemon" "$status" 1
    has "its words" "$(cat "$ROOT/out")" "would run twice; .* berth --socket $ROOT/i/berth.sock cancel [0-9]+$"
    (be "$ALICE" . env -u BERTH_SOCKET berth --dir "$home/other" daemon stop)
    rm -rf "$home/other"
    background alice_s1 be "$ALICE" s1 berth compat scheduler start --retries 0
    wait_for_output alice_s1 "runs already"

    kill_daemon
    start_system --sim 4x24G
    open_gate "$ALICE"
    open_gate "$BOB"
    for name in alice bob; do
        finish "${name}_gs"
        is "gpusched's exit status" "$status" 7
        finish "${name}_mgpu"
        is "mgpu_srun's exit status, after: $out" "$status" 6
        wait_for_output "${name}_s1" 'failed \(exit 5\)'
        wait_for_output "${name}_x10" completed
        wait_for_output "${name}_cq" 'No pending'
        user=${name^^}
        "$AWAIT" until "$LIMIT" "jq -s . $(home_of "${!user}")/cq/jobs.jsonl" 0.exit_code 4
        for tool in cq s1 x10; do
            eval "kill -INT \$pid_of_${name}_$tool"
            finish "${name}_$tool"
        done
    done
    for user in "$ALICE" "$BOB"; do
        home=$(home_of "$user")
        is "how $user's command ended" "$(jq -c '[.status, .exit_code]' "$home/cq/jobs.jsonl")" '["failed",4]'
        for tool in gs cq s1 x10; do
            is "who ran $tool's" "$(cat "$home/$tool/who")" "$user 0027 $(id -Gn "$user") $user"
        done
        is "mgpu's log" "$(head -2 "$home"/.mgpu_job_*.log)" "$(printf '0027\n%s' "$(id -Gn "$user")")"
        is "files of others" "$(find "$home" ! -user "$user")" ""
        is "open files" "$(find "$home" -type f -perm /027)" ""
    done
    kill -TERM "$pid_of_server"
    finish server
}

@test "a card that an ordinary user's scheduler_10x has paused gets none of the jobs that add hands over" {
    local home args id
    start_system --sim 2x24G
    make_files "$ALICE"
    home=$(home_of "$ALICE")
    : >"$home/x10/jobs.txt"
    echo '{"default_requirement": 1.0, "models": {}}' >"$home/x10/llm_config.json"
    cat >"$home/x10/a.py" <<'PY'
import os, sys
open("ran", "a").write(f"{sys.argv[1]} on {os.environ['CUDA_VISIBLE_DEVICES'][-1]}\n")
if sys.argv[1] == "first":
    open("../gate").read()
PY
    background x10 be "$ALICE" x10 berth compat scheduler_10x start
    wait_for_output x10 '^Press Ctrl'
    (be "$ALICE" x10 berth compat scheduler_10x add a.py --gpus 0 --args first)
    wait_for_event kind=started job=1 >/dev/null
    (be "$ALICE" x10 berth compat scheduler_10x add a.py --gpus 0 --args queued)
    # What has not happened is not reported, however long the scheduler takes.
    kill -STOP "$pid_of_x10"
    status=0
    out=$(be "$ALICE" x10 berth compat scheduler_10x pause-gpu 0) || status=$?
    is 'pause, of one that does nothing' "$status:$out" '1:❌ GPU 0 is not paused yet: the scheduler that runs here has not answered; it will pause it'
    kill -CONT "$pid_of_x10"
    wait_for_output x10 'GPU 0 paused'
    is pause "$(be "$ALICE" x10 berth compat scheduler_10x pause-gpu 0)" '✅ GPU 0 paused'
    (be "$ALICE" x10 berth compat scheduler_10x add a.py --gpus 0 --args new)
    for id in 2 3; do is "job $id" "$(job_field $id state)" HELD; done
    open_gate "$ALICE"
    wait_for_event kind=ended job=1 >/dev/null
    (be "$ALICE" x10 berth compat scheduler_10x add a.py --args any)
    wait_for_event kind=ended job=4 >/dev/null
    # The next one finds them held too, and remembers who paused them.
    eval "kill -INT \$pid_of_x10"
    finish x10
    background x10 be "$ALICE" x10 berth compat scheduler_10x start
    wait_for_output x10 '^Press Ctrl'
    for id in 2 3; do is "job $id, later" "$(job_field $id state)" HELD; done
    is resume "$(be "$ALICE" x10 berth compat scheduler_10x resume-gpu 0)" '✅ GPU 0 resumed'
    for id in 2 3; do wait_for_event kind=ended job=$id >/dev/null; done
    eval "kill -INT \$pid_of_x10"
    finish x10
    is 'what ran where' "$(sort "$home/x10/ran" | paste -sd ' ')" 'any on 1 first on 0 new on 0 queued on 0'
}

@test "lines for which limits leave no room wait in the front end, and none ends it" {
    local home tool last=5
    start_system --set user_max_pending=2 --set user_max_running=1 --set time_max_s=3600
    mkfifo -m 666 "$ROOT/gate"
    make_files "$ALICE"
    home=$(home_of "$ALICE")
    printf '[vram=1G] echo %s\n' 1 2 3 4 5 6 >"$home/gs/jobs.txt"
    echo '[vram=1G timeout=2h] true' >>"$home/gs/jobs.txt"
    printf 'echo %s\n' 1 2 3 4 5 6 >"$home/cq/commands.txt"
    echo 'import sys; sys.exit(0)' | tee "$home/s1/a.py" >"$home/x10/a.py"
    printf '0,a.py,,%s\n' 1 2 3 4 5 6 | tee "$home/s1/jobs.txt" >"$home/x10/jobs.txt"
    status=0
    (be "$ALICE" gs berth compat gpusched jobs.txt) >"$ROOT/out" 2>&1 || status=$?
    out=$(cat "$ROOT/out")
    is "exit status" "$status" 1
    has "what did not fit" "$out" "lines wait until there is room in the queue: .*user_max_pending"
    has "what may not" "$out" "job 7 INFEASIBLE .* its time limit of 2h00m is above .*time_max_s"
    has "the end" "$out" "all 7 jobs done — 6 ok, 1 failed"
    for tool in cq s1 x10; do
        # Room is also freed by the same user's jobs from elsewhere.
        try_as "$ALICE" berth submit --vram 1G -- cat "$ROOT/gate"
        try_as "$ALICE" berth submit --vram 1G -- true
        try_as "$ALICE" berth submit --vram 1G -- true
        case $tool in
            cq) background cq be "$ALICE" cq berth compat cudaq run --min-free-mem-mb 1000 ;;
            s1) background s1 be "$ALICE" s1 berth compat scheduler start ;;
            x10) background x10 be "$ALICE" x10 berth compat scheduler_10x start ;;
        esac
        wait_for_output $tool "wait until there is room in the queue"
        echo >"$ROOT/gate"
        last=$((last + 9))
        "$AWAIT" until "$LIMIT" "berth history --json --state completed" jobs.$last.state COMPLETED
        eval "kill -INT \$pid_of_$tool"
        finish $tool
    done
    is "what ended how" "$(berth history --json | jq -c '[.jobs[].state] | group_by(.) | map([.[0], length])')" \
        '[["COMPLETED",33],["INFEASIBLE",1]]'
}

# A view of /run in which the machine's daemon has its usual place, and GPUs that count as real
# for programs in that view.
make_machine()
{
    background machine unshare -m sh -c 'mount -t tmpfs -o mode=755 tmpfs /run &&
        mkdir /run/berth && ln -s "$1/berth.sock" /run/berth/ && echo there && exec sleep 1000' sh "$BERTH_DIR"
    wait_for_output machine there
    chmod 1777 "$BERTH_LOCK_DIR"
    mkdir "$ROOT/smi"
    cp "$BATS_TEST_DIRNAME/../gpu/fake_smi" "$ROOT/smi/nvidia-smi"
    echo "0, GPU-$BERTH_E2E_MARK, 24576, 0, 0, 30, A card, 00000000:01:00.0, Default" >"$ROOT/smi/gpus"
    : >"$ROOT/smi/procs"
}

# Like be, without naming a daemon. It enters the root directory too, since the mount
# namespace's own root is outside a chroot.
at_machine()
{
    local user=$1 home
    home=$(home_of "$user")
    umask 027
    unset BERTH_DIR
    exec nsenter -t "$pid_of_machine" -m -r --wd="$home/$2" setpriv --reuid "$user" --regid "$user" \
        --init-groups env HOME="$home" USER="$user" XDG_RUNTIME_DIR="$home" FAKE_SMI_DIR="$ROOT/smi" \
        BERTH_NVML=/none BERTH_NVIDIA_SMI="$ROOT/smi/nvidia-smi" "${@:3}"
}

@test "a front end follows the jobs of its own daemon when the system daemon starts, and waits for the latter" {
    local home
    unshare -m true || skip "no mount namespaces here"
    make_machine
    make_files "$ALICE"
    make_files "$BOB"
    home=$(home_of "$ALICE")
    background own at_machine "$ALICE" cq berth compat cudaq run --min-free-mem-mb 1000
    wait_for_output own Assigning
    status=0
    (at_machine "$BOB" cq berth compat cudaq run) >"$ROOT/out" 2>&1 || status=$?
    is "bob's exit status" "$status" 1
    has "bob's words" "$(cat "$ROOT/out")" "another daemon has this GPU: $ALICE .*berthd --system"

    start_system
    kill_hard "$pid_of_own"
    background cq at_machine "$ALICE" cq berth compat cudaq run --min-free-mem-mb 1000
    wait_for_output cq 'No pending'
    open_gate "$ALICE"
    "$AWAIT" until "$LIMIT" "jq -s . $home/cq/jobs.jsonl" 0.exit_code 4
    kill -INT "$pid_of_cq"
    finish cq
    is "how often it ran" "$(wc -l <"$home/cq/who")" 1
    (at_machine "$ALICE" gs berth compat gpusched jobs.txt) >"$ROOT/out" 2>&1 || status=$?
    is "exit status" "$status" 7
    is "jobs of the machine's daemon" "$(berth history --json | jq -c '[.jobs[].user]')" "[\"$ALICE\"]"

    kill_daemon
    background s1 at_machine "$ALICE" s1 berth compat scheduler start
    wait_for_output s1 "nobody answers at /run/berth/berth.sock; waiting"
    kill -TERM "$pid_of_s1"
    finish s1
    has "the end of s1" "$out" "stopped while the daemon of this machine is away"
    background bob at_machine "$BOB" gs berth compat gpusched jobs.txt
    wait_for_output bob "nobody answers"
    start_system
    open_gate "$BOB"
    finish bob
    is "bob's exit status" "$status" 7
}

@test "a front end stays with the user's own daemon when that dies while the system daemon runs" {
    local own
    unshare -m true || skip "no mount namespaces here"
    make_machine
    make_files "$ALICE"
    (at_machine "$ALICE" . berth daemon start)
    background gs at_machine "$ALICE" gs berth compat gpusched jobs.txt --poll 0.2
    wait_for_output gs 'job 1 started'
    own=$( (at_machine "$ALICE" . berth status --json) | jq .daemon.pid)
    start_system
    kill_hard "$own"
    open_gate "$ALICE"
    finish gs
    is "exit status" "$status" 7
    is "how often it ran" "$(wc -l <"$(home_of "$ALICE")/gs/who")" 1
    is "jobs of the machine's daemon" "$(berth history --json | jq '.jobs | length')" 0
    (at_machine "$ALICE" . berth daemon stop)
}
