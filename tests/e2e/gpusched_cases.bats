#!/usr/bin/env bats
# The cases that a user of gpusched would try first, in Berth's words and attributes, on
# simulated GPUs of 24,576 MiB. Numbers D1... refer to the list of acceptance cases that
# describes gpusched's behaviour; if gpusched was wrong, the case states what is right.

load lib

# Job states and GPUs come from `show`, orders from the events' sequence numbers. A job that
# must run until the test has seen something reads a line from the FIFO `gate`.

# GPUs are sampled ten times as often as usual, so that no test waits for a sample.
case_setup()
{
    mkfifo gate mail
    mkdir -p "$BERTH_DIR"
    echo 'sample_ms: 100' >"$BERTH_DIR/config.yaml"
}

# Release the job that reads the gate; wait until there is one.
open_gate()
{
    timeout "$LIMIT" bash -c 'echo go >gate' || fail_with 'no job has come to the gate'
}

# Read the line that a job writes to the FIFO `mail`: $mail.
read_mail()
{
    mail=$(timeout "$LIMIT" head -1 mail) || fail_with 'no job has written'
}

@test "D1 an attribute block that is never closed: file, line, column; exit 2" {
    printf 'true\n[vram=8G\n' >jobs.txt
    run_file 2 jobs.txt
    is status "$status" 2
    has stderr "$err" 'jobs\.txt:2:[0-9]+: '
    is stdout "$out" ''
}

@test "D2 an empty file and a missing one: exit 2, with a message" {
    printf '\n# nothing to do\n' >empty.txt
    run_file 2 empty.txt
    is status "$status" 2
    has stderr "$err" 'empty\.txt'
    run_file 2 missing.txt
    is status "$status" 2
    has stderr "$err" 'missing\.txt.*No such file'
}

@test "D3 two 8G jobs share GPU 0, a 20G job takes GPU 1, all at once" {
    cat >jobs.txt <<'JOBS'
[vram=8G] berth simjob --vram 7000 --hold 0.5
[vram=8G] berth simjob --vram 7000 --hold 0.5
[vram=20G] berth simjob --vram 18000 --hold 0.5
JOBS
    run_file 2 jobs.txt
    is status "$status" 0
    is 'gpu of 1' "$(job_field 1 gpus.0.index)" 0
    is 'gpu of 2' "$(job_field 2 gpus.0.index)" 0
    is 'gpu of 3' "$(job_field 3 gpus.0.index)" 1
    local last_start first_end
    last_start=$(events_with kind=started | tail -1 | json seq)
    first_end=$(events_with kind=ended | head -1 | json seq)
    is 'number of starts' "$(events_with kind=started | wc -l)" 3
    [ "$last_start" -lt "$first_end" ]
}

@test "D4 two undeclared jobs on one GPU: one after the other" {
    printf 'echo first\necho second\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 0
    [ "$(seq_of kind=ended job=1)" -lt "$(seq_of kind=started job=2)" ]
}

@test "D4 an undeclared job waits for a GPU without other jobs, and says so" {
    cat >jobs.txt <<'JOBS'
[vram=2000] read line <gate
echo alone
JOBS
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    is state "$(job_field 2 state)" PENDING
    is reason "$(job_field 2 reason)" GpuBusy
    open_gate
    finish run
    is status "$status" 0
    [ "$(seq_of kind=ended job=1)" -lt "$(seq_of kind=started job=2)" ]
}

@test "D5 a request for more than any GPU has is infeasible immediately, and the others run" {
    printf '[vram=30G] echo never >never\n[vram=2G] echo yes >yes\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 1
    is 'state of 1' "$(job_field 1 state)" INFEASIBLE
    is 'state of 2' "$(job_field 2 state)" COMPLETED
    is 'exit status of 1' "$(job_field 1 exit_status)" 1
    [ ! -e never ]
    [ -e yes ]
    has output "$out$err" '24(\.0)? GiB|24576|24\.0'
}

@test "D6 the run's exit status is the highest of its jobs'" {
    printf '[vram=1G] exit 7\n[vram=1G] exit 3\n[vram=1G] true\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 7
    is 'code of 1' "$(job_field 1 exit_code)" 7
    is 'code of 2' "$(job_field 2 exit_code)" 3
    is 'code of 3' "$(job_field 3 exit_code)" 0
    is 'state of 2' "$(job_field 2 state)" FAILED
}

@test "D7 a job that is killed: 128 + the signal, never a negative number" {
    printf '[vram=1G] kill -9 $$\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 137
    is state "$(job_field 1 state)" FAILED
    is signal "$(job_field 1 signal)" 9
    is 'exit status' "$(job_field 1 exit_status)" 137
}

@test "D8 more than declared: reported while it runs, and at the end" {
    printf '[vram=8000] berth simjob --vram 12000 --ramp 0 --hold 60\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=exceeds job=1 >exceeds
    is 'state meanwhile' "$(job_field 1 state)" RUNNING
    is 'declared' "$(json declared_mib <exceeds)" 8000
    is 'seen' "$(json mib <exceeds)" 12000
    is 'budget counts the peak' "$(berth gpus --json | json gpus.0.held_mib)" 13200
    berth cancel 1
    finish run
    has output "$out" '12000|11\.7'
}

@test "D8 more than declared, but successful: the verdict is under" {
    printf '[vram=8000] %s 12000\n' "$E2E/seen" >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 0
    is verdict "$(job_field 1 verdict)" under
    is peak "$(job_field 1 peak_mib.0)" 12000
    is 'warnings' "$(events_with kind=exceeds | wc -l)" 1
}

@test "D9 much less than declared: no warning, the verdict is over" {
    printf '[vram=12000] %s 4000\n' "$E2E/seen" >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 0
    is verdict "$(job_field 1 verdict)" over
    is peak "$(job_field 1 peak_mib.0)" 4000
    is 'warnings' "$(events_with kind=exceeds | wc -l)" 0
}

@test "D11 of two GPUs with room, the fuller one is taken" {
    cat >jobs.txt <<'JOBS'
[vram=16000 devices=1] read line <gate
[vram=6000] echo go >gate
JOBS
    berth run --sim 2 --detach jobs.txt
    timeout "$LIMIT" berth wait 1 2
    is 'gpu of 1' "$(job_field 1 gpus.0.index)" 1
    is 'gpu of 2' "$(job_field 2 gpus.0.index)" 1
}

@test "D14 out of memory once: retried with 1.25 times as much, and the success counts" {
    printf '[vram=2000 oom-retries=1] berth simjob --vram 1800 --ramp 0 --hold 0.1 --oom-once marker\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 0
    is state "$(job_field 1 state)" COMPLETED
    is 'first demand' "$(job_field 1 attempts.0.vram_mib)" 2000
    is 'second demand' "$(job_field 1 attempts.1.vram_mib)" 2500
    is 'attempt' "$(job_field 1 attempt)" 2
    local requeued
    requeued=$(wait_for_event kind=requeued job=1)
    is 'raised from' "$(json vram_mib_old <<<"$requeued")" 2000
    is 'raised to' "$(json vram_mib <<<"$requeued")" 2500
}

@test "D14 out of memory without a retry is named as the reason" {
    printf '[vram=2000] berth simjob --vram 1800 --ramp 0 --hold 0.1 --oom-once marker\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 1
    is state "$(job_field 1 state)" OUT_OF_MEMORY
    has output "$out$err" '[Oo]ut of (GPU |CUDA )?memory|CUDA OOM|OUT_OF_MEMORY|out_of_memory'
}

@test "D15 oom-retries apply to out-of-memory only: any other failure is one attempt" {
    printf '[vram=1G oom-retries=3] echo x >>ran; exit 7\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 7
    is state "$(job_field 1 state)" FAILED
    is attempts "$(job_field 1 attempt)" 1
    is 'times run' "$(wc -l <ran)" 1
}

@test "D16 a time limit: TIMEOUT, exit code 124, no process left behind" {
    printf '[timeout=0.4s] sleep 60 & sleep 60\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 124
    is state "$(job_field 1 state)" TIMEOUT
    # The daemon may stay; the job's processes may not.
    stop_daemon
    "$AWAIT" gone "$LIMIT"
}

@test "D16 a job that ignores TERM is killed after the grace" {
    printf '[timeout=5.4s grace=0.7s] trap "" TERM; sleep 300; sleep 300\n' >jobs.txt
    run_file 1 jobs.txt
    is status "$status" 124
    is state "$(job_field 1 state)" TIMEOUT
    [ "$(job_field 1 run_ms)" -ge 6100 ]
    is signal "$(job_field 1 signal)" 9
}

@test "D17 a line appended while it runs is run too" {
    printf 'read line <gate\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    printf 'echo second >second\n' >>jobs.txt
    cp jobs.txt before
    wait_for_event kind=submitted job=2
    open_gate
    finish run
    is status "$status" 0
    [ -e second ]
    cmp jobs.txt before
}

@test "D17 a pending line that is deleted is not run" {
    printf 'read line <gate\necho x >deleted\necho x >kept\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    printf 'read line <gate\necho x >kept\n' >new
    mv new jobs.txt
    cp jobs.txt before
    wait_for_event kind=ended job=2 state=CANCELLED
    open_gate
    finish run
    is status "$status" 0
    [ ! -e deleted ]
    [ -e kept ]
    cmp jobs.txt before
}

@test "D17 reordered pending lines change places in the queue" {
    printf 'read line <gate\necho a >>order\necho b >>order\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    printf 'read line <gate\necho b >>order\necho a >>order\necho c >>order\n' >new
    mv new jobs.txt
    cp jobs.txt before
    # The new line shows that this version has been read.
    wait_for_event kind=submitted job=4
    open_gate
    finish run
    is status "$status" 0
    is order "$(paste -sd ' ' order)" 'b a c'
    cmp jobs.txt before
}

@test "D17 a pending line starts with its edited request" {
    printf 'read line <gate\n[vram=1G] echo x\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_for_event kind=started job=1
    printf 'read line <gate\n[vram=3G] echo x\n' >jobs.txt
    wait_for_event kind=updated job=2
    open_gate
    finish run
    is status "$status" 0
    is demand "$(job_field 2 attempts.0.vram_mib)" 3072
    is 'number of jobs' "$(berth queue --all --json | json jobs | grep -o '"id":' | wc -l)" 2
}

@test "D18 a broken save is reported once, and changes no running or pending job" {
    printf 'read line <gate\necho x >second\n' >jobs.txt
    follow_file 1 jobs.txt
    wait_until_running 1
    printf '[vram=8G\n' >>jobs.txt
    wait_for_output run 'jobs\.txt:3:'
    is 'state of 1' "$(job_field 1 state)" RUNNING
    is 'state of 2' "$(job_field 2 state)" PENDING
    printf 'read line <gate\necho x >second\n' >jobs.txt
    open_gate
    finish run
    is status "$status" 0
    is 'warnings' "$(grep -c 'jobs\.txt:3:' <<<"$out")" 1
    [ -e second ]
}

@test "D19 the same file again: ended lines are skipped, their results still count" {
    printf '[vram=1G] echo x >>ran\n[vram=1G] echo x >>ran; exit 3\n' >jobs.txt
    run_file 1 jobs.txt
    is 'status of the first' "$status" 3
    run_file 1 jobs.txt
    is 'status of the second' "$status" 3
    is 'lines run' "$(wc -l <ran)" 2
    is 'starts' "$(events_with kind=started | wc -l)" 2
}

@test "D19 the same file with --fresh: everything again" {
    printf '[vram=1G] echo x >>ran\n' >jobs.txt
    run_file 1 jobs.txt
    run_file 1 --fresh jobs.txt
    is status "$status" 0
    is 'lines run' "$(wc -l <ran)" 2
}

@test "D21 the daemon is killed while a job runs: the job continues, and is not started twice" {
    printf '[vram=1G] echo x >>ran; read line <gate; exit 5\n' >jobs.txt
    berth run --sim 1 --detach jobs.txt
    wait_until_running 1
    kill_daemon
    follow_file 1 jobs.txt
    wait_until_running 1
    open_gate
    finish run
    is status "$status" 5
    is 'times run' "$(wc -l <ran)" 1
    is code "$(job_field 1 exit_code)" 5
}

@test "D21 a job that ends while no daemon runs: its exit code is recorded, it is not run again" {
    printf '[vram=1G] echo x >>ran; echo $$ >mail; read line <gate; exit 5\n' >jobs.txt
    berth run --sim 1 --detach jobs.txt
    read_mail
    kill_daemon
    open_gate
    "$AWAIT" pid "$LIMIT" "$mail"
    run_file 1 jobs.txt
    is status "$status" 5
    is 'times run' "$(wc -l <ran)" 1
}

# The supervisor of a job, given the process of the job's command.
shepherd_of()
{
    sed -E 's/.*\) . ([0-9]+).*/\1/' "/proc/$1/stat"
}

@test "D21 a killed supervisor: its job is LOST, with the reason, and does not run again by itself" {
    printf '[vram=1G] echo x >>ran; echo $$ >mail; sleep 300\n' >jobs.txt
    follow_file 1 jobs.txt
    read_mail
    kill -KILL "$(shepherd_of "$mail")"
    finish run
    is state "$(job_field 1 state)" LOST
    is status "$status" 1
    is 'times run' "$(wc -l <ran)" 1
    has 'the reason' "$(job_field 1 text)" '[Ss]upervisor|shepherd'
    # Processes that it started are ended with it.
    "$AWAIT" pid 0 "$mail"
}

@test "D23 two GPUs: both in the mask, peaks on both" {
    printf '[gpus=2 vram=10G] echo $CUDA_VISIBLE_DEVICES >mask; %s 9000\n' "$E2E/seen" >jobs.txt
    run_file 2 jobs.txt
    is status "$status" 0
    is mask "$(cat mask)" 0,1
    is 'peak on 0' "$(job_field 1 peak_mib.0)" 9000
    is 'peak on 1' "$(job_field 1 peak_mib.1)" 9000
}

@test "D24 no GPU and no --sim: an error that says what to do, never a silent success" {
    if [ -e /dev/nvidiactl ] || [ -e /proc/driver/nvidia/version ]; then
        skip 'this machine has an NVIDIA driver'
    fi
    printf 'echo x >ran\n' >jobs.txt
    try berth run jobs.txt
    [ "$status" -ne 0 ]
    has stderr "$err" '--sim'
    [ ! -e ran ]
}
