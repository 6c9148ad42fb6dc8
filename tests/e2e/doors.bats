#!/usr/bin/env bats
# The same word means the same at every door: option, #BERTH, #SBATCH, jobs file, socket; and what
# looks like an attribute and would be something else is said.

load lib

@test "retries are after any failure, oom-retries after a CUDA out-of-memory, in a jobs file too" {
    start_daemon 1
    printf '%s\n' '[gpus=0 retries=1] echo x >>any; test -e twice || { touch twice; exit 3; }' \
        '[gpus=0 oom-retries=1] echo x >>oom; exit 4' >jobs.txt
    try berth run jobs.txt
    is "status of the run" "$status" 4
    is "runs with retries, and with oom-retries" "$(wc -l <any) $(wc -l <oom)" "2 1"
    is "as it is kept" "$(job_field 1 retries) $(job_field 1 oom_retries)" "1 0"
}

@test "a line says what an option says: when, which GPU, signal, hooks" {
    start_daemon 2x24G
    printf '%s\n' '[gpus=0 name=first] true' \
        '[gpus=0 after-any=first on-end="touch hooked" begin=now+1d] true' \
        '[gpu-type=sim min-vram=1G max-used=0.9 margin=0 placement=spread hold] true' \
        '[gpus=0 time=1h signal=USR2@90 on-timeout=requeue max-requeues=5 preemptible hold] true' >jobs.txt
    try berth run --detach jobs.txt
    is status "$status" 0
    wait_for_event kind=ended job=1
    is "begin and on-end" "$(job_field 2 state) $(job_field 2 on_end)" "PENDING touch hooked"
    is "after-any" "$(job_field 2 after.0.type)" any
    is "which GPU" "$(job_field 3 gpu_type) $(job_field 3 min_vram_mib) $(job_field 3 placement)" "sim 1024 spread"
    is "signal" "$(job_field 4 warn_signal) $(job_field 4 warn_ms) $(job_field 4 on_timeout) $(job_field 4 max_requeues)" \
        "12 90000 requeue 5"
    # Read again, "now+1d" is another moment and the same words; other words are another moment.
    begins=$(job_field 2 begin.unix)
    sed -i 's/touch hooked/touch again/' jobs.txt
    try berth run --detach jobs.txt
    is "the hook follows the file" "$(job_field 2 on_end)" "touch again"
    is "the moment stays" "$(job_field 2 begin.unix)" "$begins"
    sed -i 's/now+1d/now+2d/' jobs.txt
    try berth run --detach jobs.txt
    [ "$(job_field 2 begin.unix)" != "$begins" ] || fail_with "begin=now+2d changed nothing"
    for attr in array=0-3 pty interactive login; do
        echo "[$attr] true" >no.txt
        try berth run --detach no.txt
        is "status of $attr" "$status" 2
        has "why not $attr" "$err" "no.txt:1:2: ${attr%=*}: .*berth submit"
    done
}

@test "8 is not 8 GiB of VRAM, and 60 is seconds" {
    start_daemon 1
    for words in "--vram 8" "--min-vram 8" "--mem 8"; do
        try berth submit --hold $words true
        is "status of $words" "$status" 2
        has "words of $words" "$err" "8 MiB\? write 8G"
    done
    echo '[vram=8] true' >jobs.txt
    try berth run --detach jobs.txt
    has "in a file" "$err" "jobs.txt:1:2: vram: 8 MiB\? write 8G"
    try berth submit --gpus 0 --hold -t 60 true
    is "a bare limit" "$out" "job 1 submitted, time limit 60 seconds"
    try berth submit --gpus 0 --hold -t 60m true
    is "one with a unit" "$out" "job 2 submitted, time limit 1h00m"
}

@test "a line that looks like attributes and is shell is refused" {
    start_daemon 1
    printf '%s\n' '[vram=8G] [gpus=1] true' >two.txt
    try berth run --detach two.txt
    is status "$status" 2
    has words "$err" "two.txt:1:11: a second \[ of attributes"
    printf '%s\n' 'vram=8G true' >bare.txt
    try berth run --detach bare.txt
    is status "$status" 2
    has words "$err" "bare.txt:1:1: vram=... is an attribute without its brackets; write \[vram=8G\]"
    printf '%s\n' '[vram=8G,gpus=1, hold] true' '[] vram=8G true' >good.txt
    try berth run --detach good.txt
    is status "$status" 0
    is "vram" "$(job_field 1 vram_mib) $(job_field 1 state)" "8192 HELD"
}
