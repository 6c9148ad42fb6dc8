#!/usr/bin/env bats
# vram=auto: the peaks of a command's last runs decide the next demand.

load lib

# The command uses this much of a GPU until that has been sampled, however busy the machine is.
command=(sh -c 'berth simjob --vram $(cat mib) --ramp 0 --hold 1000 & read x <seen; kill $!')

case_setup()
{
    mkfifo seen
}

run_with()
{
    local id
    echo "$1" >mib
    id=$(berth submit --vram auto --parsable -- "${command[@]}")
    "$AWAIT" until "$LIMIT" "berth show $id --json" jobs.0.peak_mib.0 "$1"
    timeout "$LIMIT" sh -c 'echo >seen'
    wait_for_event kind=ended "job=$id" >/dev/null
}

@test "an unknown command gets a whole GPU, a known one its peak plus a tenth" {
    start_daemon 1
    run_with 6000
    is first "$(job_field 1 vram_mib)" null
    is runs "$(job_field 1 auto_runs)" 0
    has unknown "$(berth explain 1)" '^  asks +auto: a whole GPU, as this command has not run yet$'
    berth submit --vram auto --hold -- "${command[@]}"
    is second "$(job_field 2 vram_mib)" 6600
    is runs "$(job_field 2 auto_runs)" 1
    has show "$(berth show 2)" '^  asks +1 GPU, auto: 6.4 GiB from 1 run$'
    has queue "$(berth queue 2)" ' auto 6.4 GiB '
    has explain "$(berth explain 2)" '^  asks +auto: 6.4 GiB from 1 run$'
    has other "$(berth submit --vram auto --hold -- true && berth show @)" \
        'auto: a whole GPU, as this command has not run yet'
    # Another number of GPUs is learned separately.
    berth submit --vram auto --gpus 0.5 --hold -- "${command[@]}"
    is same "$(job_field @ vram_mib)" 6600
}

@test "pending jobs profit from runs that end: the tasks of an array share a GPU" {
    start_daemon 1
    berth submit --vram auto --array 0-7 -- "$E2E/seen" 5000
    wait_for_event kind=ended job=1 state=COMPLETED
    is first "$(wait_for_event kind=started array_task=0 | json vram_mib)" null
    is last "$(wait_for_event kind=started array_task=7 | json vram_mib)" 5500
    # As soon as one run is known, four run side by side.
    local second
    second=$(seq_of kind=started array_task=4)
    [ "$second" -lt "$(seq_of kind=ended array_task=1)" ] || fail_with "they came one by one"
}

@test "nothing is learned from a failed run, and from an out-of-memory that the request was too small" {
    start_daemon 1
    local failing='"$0" 100; exit 1' id
    berth submit --vram auto -W -- sh -c "$failing" "$E2E/seen" || true
    is sampled "$(job_field @ peak_mib.0)" 100
    berth submit --vram auto --hold -- sh -c "$failing" "$E2E/seen"
    is failed "$(job_field @ vram_mib)" null
    # The same command needs more than before: it is retried with a quarter more.
    echo "$E2E/seen 4000" >step.sh
    berth submit --vram auto -W -- sh step.sh
    cat >>step.sh <<<'[ "$BERTH_ATTEMPT" = 2 ] || { echo CUDA out of memory; exit 1; }'
    id=$(berth submit --vram auto --oom-retries 1 --parsable -W -- sh step.sh)
    is attempts "$(job_field "$id" attempts.0.vram_mib) $(job_field "$id" attempts.1.vram_mib)" \
        '4400 5500'
    berth submit --vram auto --hold -- sh step.sh
    is after "$(job_field @ vram_mib)" 5500
}

@test "learned VRAM survives the daemon and the jobs" {
    start_daemon 1
    run_with 6000
    berth submit --vram auto --hold -- "${command[@]}"
    kill_daemon
    start_daemon 1
    is demand "$(job_field 2 vram_mib)" 6600
    is runs "$(job_field 2 auto_runs)" 1
    # The jobs are forgotten, the learned peaks are not.
    stop_daemon --cancel
    echo 'keep_jobs: 1' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 1 --config settings.yaml
    ln -s "$BERTH_DIR/daemon.log" "$ROOT/log.out"
    berth submit --gpus 0 -W -- true
    wait_for_output log 'event=pruned'
    try berth show 1
    is gone "$status" 3
    berth submit --vram auto --hold -- "${command[@]}"
    is demand "$(job_field @ vram_mib)" 6600
}

@test "a jobs file says vram=auto, and the same file changes nothing" {
    local line='berth simjob --vram 3000 --ramp 0 --hold 1000 & read x <seen; kill $!'
    start_daemon 1
    echo "[vram=auto] $line" >jobs.txt
    background run berth run --sim 1 jobs.txt
    wait_for_event kind=started job=1 >/dev/null
    "$AWAIT" until "$LIMIT" "berth show 1 --json" jobs.0.peak_mib.0 3000
    timeout "$LIMIT" sh -c 'echo >seen'
    finish run
    is status "$status" 0
    echo "[vram=auto hold] $line" >more.txt
    try berth run --detach more.txt
    is demand "$(job_field @ vram_mib)" 3300
    has plan "$(berth run --dry-run --fresh jobs.txt)" ' start +0 +auto 3.2 GiB +berth simjob'
    local before
    before=$(berth status --json | json counts.HELD)
    try berth run --detach more.txt
    is updates "$(events_with kind=updated | wc -l)" 0
    is held "$(berth status --json | json counts.HELD)" "$before"
    try berth submit --vram auto --gpus 0 -- true
    is status "$status" 2
    has words "$err" 'gpus=0 requests no GPU, so vram has no effect'
    try berth submit --vram aut -- true
    is status "$status" 2
}

@test "a command that needs nearly the whole GPU gets it, and is not refused" {
    start_daemon 1
    run_with 24000
    run_with 24000
    is demand "$(job_field @ vram_mib)" null
    is runs "$(job_field @ auto_runs)" 1
    is state "$(job_field @ state)" COMPLETED
}
