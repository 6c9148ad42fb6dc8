#!/usr/bin/env bats
# `berth explain`: blocked situations and endings, each real on simulated GPUs, and the
# sentence that users read.

load lib

# Start a daemon with these settings: `with_settings SIM KEY VALUE...`.
with_settings()
{
    local sim=$1
    shift
    : >settings.yaml
    while [ $# -gt 0 ]; do
        echo "$1: $2" >>settings.yaml
        shift 2
    done
    timeout "$LIMIT" berth daemon start --sim "$sim" --config settings.yaml >"$ROOT/start.out" 2>&1 ||
        fail_with "$(cat "$ROOT/start.out")"
}

# A job that holds what its options say until the test is over: `holder OPTIONS...`.
holder()
{
    berth submit --parsable "$@" -- sleep 1000 >"$ROOT/holder"
    "$AWAIT" until "$LIMIT" "berth show $(cat "$ROOT/holder") --json" jobs.0.state RUNNING
}

# `waits REASON SENTENCE HELP OPTIONS...`: a job with these options must wait for that reason;
# the sentence and the advice are regular expressions. The job is cancelled again.
waits()
{
    local reason=$1 sentence=$2 help=$3 id text
    shift 3
    id=$(berth submit --parsable "$@" -- true) || fail_with "refused: $*"
    "$AWAIT" until "$LIMIT" "berth explain $id --json" jobs.0.reason "$reason" ||
        fail_with "$*: $(berth explain "$id")"
    text=$(berth explain "$id")
    has "explanation of $*" "$text" "^job $id (PENDING|HELD): $reason: $sentence"
    if [ -n "$help" ]; then
        has "help for $*" "$text" "^  would help  $help"
    else
        has_not "help for $*" "$text" 'would help'
    fi
    berth cancel "$id" >/dev/null
}

# `ended_as STATE SENTENCE HELP ID`
ended_as()
{
    local text
    wait_for_event kind=ended "job=$4" "state=$1" >/dev/null
    text=$(berth explain "$4")
    has "explanation of $4" "$text" "^job $4 $1: $2"
    if [ -n "$3" ]; then
        has "help for $4" "$text" "^  would help  $3"
    else
        has_not "help for $4" "$text" 'would help'
    fi
}

@test "waiting for memory, shares and idle GPUs: which GPU, how much is missing, which jobs hold it" {
    start_daemon 2
    holder --gpu-ids 0 --vram 18G
    holder --gpu-ids 1 --gpus 0.75
    waits GpuMemory 'needs 22.0 GiB .* gpu [01] has [0-9.]+ GiB free \([0-9.]+ GiB short\), held by job [12]' \
        '' --vram 22G
    waits GpuMemory 'needs 7.0 GiB .* on gpu 0; gpu 0 has 6.0 GiB free \(1.5 GiB short\), held by job 1' \
        '--vram 5G would fit on gpu 0 now' --vram 7G --gpu-ids 0
    waits GpuShare 'needs 0.5 of .*gpu 1 .*0.25.*held by job 2' 'a smaller --gpus share' \
        --gpus 0.5 --gpu-ids 1
    waits GpuBusy 'wants an idle GPU; gpu [01] is held by job [12]' '--vram SIZE lets it share'
    waits GpuBusy 'wants 2 idle GPUs' '--vram SIZE' -G 2
    waits GpuBusy 'wants gpu 1 idle; gpu 1 is held by job 2' '--vram SIZE' --gpu-ids 1
}

@test "waiting because of a hold, a time, another job, cores and memory" {
    start_daemon 2
    berth pause 0 >/dev/null
    waits GpuPaused '.*gpu 0.* paused' 'berth resume 0' --gpu-ids 0
    berth resume 0 >/dev/null
    waits Held 'held by a user' 'berth release' --hold
    waits BeginTime 'not before 20' '' --begin now+2h
    holder --gpus 0 -J first
    waits Dependency '.*job [0-9]+' 'berth explain [0-9]+' --after first
    holder --gpus 0 --cpus "$(($(nproc) - 2 > 0 ? $(nproc) - 2 : 1))"
    waits Cpus "needs $(nproc) cores" 'fewer --cpus' --gpus 0 --cpus "$(nproc)"
}

@test "waiting for the other tasks of an array" {
    start_daemon 1
    local id
    id=$(berth submit --parsable --gpus 0 --array '0-3%1' -- sleep 1000)
    "$AWAIT" until "$LIMIT" "berth explain $id --json" jobs.0.reason ArrayLimit
    has array "$(berth explain "$id")" "^job $id PENDING: ArrayLimit: 1 task of the array runs"
    has array "$(berth explain "$id")" 'would help  a larger %N in --array'
}

@test "waiting for other processes, guards and a broken GPU" {
    start_daemon 2
    background stranger env "BERTH_SIM_DIR=$BERTH_DIR/sim" berth simjob --vram 9000 --ramp 0 --hold 1000 --gpu 0 --util 93
    "$AWAIT" until "$LIMIT" "berth gpus --json" gpus.0.used_mib 9000
    waits GpuBusy 'wants gpu 0 idle; gpu 0 has 9.7 GiB in use outside Berth \(pid [0-9]+\)' \
        'end process [0-9]+' --gpu-ids 0
    has 'the same figure' "$(berth gpus)" '^gpu 0: 9.7 GiB counted as used outside Berth'
    waits GpuMemory 'needs 20.0 GiB .*9.7 GiB in use outside Berth' '--vram 13G would fit' --vram 20G --gpu-ids 0
    waits GpuBusy '.*gpu 0.*9[0-9.]+ %.*80 %' 'a higher --max-load' --vram 1G --gpu-ids 0 --max-load 0.8
    waits GpuBusy '.*gpu 0.*3[0-9.]+ %.*20 %' 'a higher --max-used' --vram 1G --gpu-ids 0 --max-used 0.2
    echo '3,1,0,-;NVRM: Xid (PCI:0000:02:00): 79, pid=1, name=x, GPU has fallen off the bus.' \
        >>"$BERTH_DIR/sim/kmsg"
    wait_for_event kind=gpu gpu=1 state=sick >/dev/null
    waits GpuSick '.*gpu 1.*XID 79' "'berth gpus'" --gpu-ids 1
}

@test "waiting for limits: of a user and of all" {
    with_settings 2 user_max_running 1 max_gpus 1
    holder --gpus 0
    waits UserLimit '.*1.*running' '' --gpus 0
}

@test "waiting for limits of all together" {
    with_settings 2 max_gpus 1
    holder --vram 1G
    waits QueueLimit '.*1.*GPU' '' --vram 1G
}

@test "waiting behind a reservation, with the time at which it falls due" {
    with_settings 2 order queue reservation_horizon_s 0
    holder --gpu-ids 0 -t 2h
    id=$(berth submit --parsable -G 2 -t 1h -- true)
    "$AWAIT" until "$LIMIT" "berth explain $id --json" jobs.0.reserved true
    has expected "$(berth explain "$id")" '^  expected +start at [0-9:]+ \(in (1h5[0-9]|2h00)m\), with gpus 0,1 kept for it'
    has promised "$(berth explain "$id")" '^  promised +to start at [0-9:]+ \(in (1h5[0-9]|2h00)m\) at the latest'
    has text "$(berth explain "$id")" "^job $id PENDING: Resources: wants 2 idle GPUs; 1 of them has room, 1 more when job 1 ends$"
    has position "$(berth explain "$id")" '^  position +the only pending job$'
    waits Reservation ".*job $id" 'with a time limit'
    has running "$(berth explain 1)" '^job 1 RUNNING: running for .* on gpu 0'
    has running "$(berth explain 1)" '^  expected +end at [0-9:]+ \(in (1h5[0-9]|2h00)m\)'
}

@test "waiting for a GPU that one job holds and another has reserved" {
    with_settings 2 order queue
    holder --gpu-ids 0 -t 1h
    holder --gpu-ids 1 -t 2h
    id=$(berth submit --parsable -G 2 -t 1h -- true)
    "$AWAIT" until "$LIMIT" "berth explain $id --json" jobs.0.reserved true
    waits GpuBusy "wants an idle GPU; gpu 0 is held by job 1; gpu 0 is reserved for job $id, which is expected to start at 20" 'with a time limit'
    waits GpuBusy ".*gpu 0 is reserved for job $id" '--vram SIZE' -t 3h
}

@test "a start is promised only where time limits bound it; who waits for it is told" {
    with_settings 2 order queue reservation_horizon_s 0
    holder --gpu-ids 0 -t 2h
    id=$(berth submit --parsable --gpu-ids 0 -t 1h -- true)
    "$AWAIT" until "$LIMIT" "berth explain $id --json" jobs.0.firm true
    has shown "$(berth show "$id")" 'promised +[^ ]'
    is "the latest start" "$(berth explain "$id" --json | json jobs.0.latest_start)" "$(berth show "$id" --json | json jobs.0.latest_start)"
    has "the column" "$(berth queue -o id,promised --no-header)" "^ *$id  *[0-9:]+$"
    # The second of two waiting jobs has no reservation any more, but its text names the first
    # one's.
    waits GpuBusy ".*gpu 0 is reserved for job $id, which is expected to start at" '--vram SIZE' --gpu-ids 0 -t 1h
    has "of others" "$(berth explain "$id" --json)" '"firm":true'
    holder --gpu-ids 1
    guess=$(berth submit --parsable --gpu-ids 1 -t 1h -- true)
    has "behind an unknown end" "$(berth explain "$guess" --json)" '"firm":false,"latest_start":null'
    has_not "behind an unknown end" "$(berth explain "$guess")" 'promised'
}

@test "pending jobs have an expected start, except behind a job without a known end" {
    start_daemon 2
    holder --gpu-ids 0 -t 1h
    holder --gpu-ids 1
    berth submit --gpu-ids 0 -t 1h -- true
    berth submit --gpu-ids 0 -- true
    berth submit --gpu-ids 1 -- true
    has first "$(berth explain 3)" 'start at [0-9:]+ \(in (59m[0-9]+s|1h00m)\)'
    has second "$(berth explain 4)" 'start at [0-9:]+ \(in (1h59m|2h00m)\)'
    has_not third "$(berth explain 5)" 'expected'
    has position "$(berth explain 5)" '3 of 3 pending jobs'
    has column "$(berth queue)" 'EXPECTED'
}

@test "the expected start of a job with a begin time is its turn after that time" {
    start_daemon 1
    holder -t 1h
    berth submit --begin now+10m -t 10m -- true
    berth submit --begin now+3h -t 10m -- true
    has "while another runs" "$(berth explain 2)" 'start at [0-9:]+ \(in (59m[0-9]+s|1h00m)\)'
    has "when none does" "$(berth explain 3)" 'start at [0-9:]+ \(in (2h59m|3h00m)\)'
    berth submit --priority 1 -- true
    "$AWAIT" until "$LIMIT" "berth explain 3 --json" jobs.0.expected_start null
}

@test "ended jobs: what happened and what would help" {
    start_daemon 1
    local id
    echo true >not-executable # with #! its interpreter would run it
    ended_as FAILED 'exit 3' 'berth logs 1' "$(berth submit --parsable --gpus 0 -- sh -c 'exit 3')"
    ended_as FAILED 'exit 127' 'the shell did not find the command' \
        "$(berth submit --parsable --gpus 0 'no-such-program; exit 127')"
    ended_as FAILED 'killed by signal 9 \(KILL\)' 'Berth did not kill it' \
        "$(berth submit --parsable --gpus 0 -- sh -c 'kill -9 $$')"
    ended_as FAILED 'could not start: .*No such file' 'check the name' \
        "$(berth submit --parsable --gpus 0 --after-any 3 -- /no/such/program)"
    ended_as FAILED 'could not start: .*Permission denied' 'is it executable' \
        "$(berth submit --parsable --gpus 0 --after-any 3 -- ./not-executable)"
    ended_as TIMEOUT 'time limit of 0.2s reached' '--time 0.4s' \
        "$(berth submit --parsable --gpus 0 -t 200ms -- sleep 1000)"
    ended_as OUT_OF_MEMORY 'CUDA out of memory \(exit 1\): .*CUDA out of memory' \
        'peaked at 7.8 GiB of 8.0 GiB: --vram 10G or --oom-retries 2' \
        "$(berth submit --parsable --vram 8G -- sh -c '"$0" 8000; echo CUDA out of memory; exit 1' "$E2E/seen")"
    id=$(berth submit --parsable --gpus 0 -- sleep 1000)
    wait_for_event kind=started "job=$id" >/dev/null
    berth cancel "$id" >/dev/null
    ended_as CANCELLED "cancelled by $(id -un)" '' "$id"
    id=$(berth submit --parsable --gpus 0 --after 1 -- true) || id=
    if [ -n "$id" ]; then
        ended_as CANCELLED '.*job 1 ' '' "$id"
    fi
    ended_as COMPLETED 'exit 0' '' "$(berth submit --parsable --gpus 0 -- true)"
}

@test "a killed supervisor: its job's end is found without it" {
    start_daemon 1
    local shepherd
    holder --gpus 0
    shepherd=$(pgrep -P "$(pgrep -P "$(daemon_pid)" -f nursery)" | head -1)
    kill -KILL "$shepherd"
    ended_as LOST 'lost: its supervisor vanished' 'berth requeue 1' 1
}

@test "a log that cannot be opened: the advice is about it, and not about the program" {
    [ "$(id -u)" -eq 0 ] || skip 'for others it is refused at submission'
    start_daemon 1
    try berth submit -W -o /proc/none/here.log --gpus 0 -- true
    is status "$status" 127
    has why "$(berth explain 1)" 'cannot open the log /proc/none/here.log'
    has advice "$(berth explain 1)" 'would help +--log with a file'
}
