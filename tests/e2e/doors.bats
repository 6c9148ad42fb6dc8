#!/usr/bin/env bats
# The same word means the same at every door: option, #BERTH, #SBATCH, jobs file, socket; a
# word that looks like an attribute but is something else is reported.

load lib

script()
{
    cat >"$1"
    chmod "${2:-755}" "$1"
}

@test "retries cover any failure, oom-retries a CUDA out-of-memory, in a jobs file too" {
    start_daemon 1
    printf '%s\n' '[gpus=0 retries=1] echo x >>any; test -e twice || { touch twice; exit 3; }' \
        '[gpus=0 oom-retries=1] echo x >>oom; exit 4' >jobs.txt
    try berth run jobs.txt
    is "status of the run" "$status" 4
    is "runs with retries, and with oom-retries" "$(wc -l <any) $(wc -l <oom)" "2 1"
    is "as it is kept" "$(job_field 1 retries) $(job_field 1 oom_retries)" "1 0"
}

@test "a line takes what an option takes: begin time, GPU, signal, hooks" {
    start_daemon 2x24G+cc8.9
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
    # Read again, "now+1d" is another time in the same words; other words are another time.
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

@test "--vram 8 is not 8 GiB, and -t 60 is seconds" {
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

@test "a shell command that looks like attributes is refused" {
    start_daemon 1
    printf '%s\n' '[vram=8G] [gpus=1] true' >two.txt
    try berth run --detach two.txt
    is status "$status" 2
    has words "$err" "two.txt:1:11: a second \[ of attributes"
    printf '%s\n' 'vram=8G true' >bare.txt
    try berth run --detach bare.txt
    is status "$status" 2
    has words "$err" "bare.txt:1:1: vram=... looks like an attribute without brackets; write \[vram=8G\]"
    printf '%s\n' '[vram=8G,gpus=1, hold] true' '[] vram=8G true' >good.txt
    try berth run --detach good.txt
    is status "$status" 0
    is "vram" "$(job_field 1 vram_mib) $(job_field 1 state)" "8192 HELD"
}

@test "standard error has a file of its own where one is asked for" {
    start_daemon 1
    script train.sh <<'END'
#!/bin/bash
#SBATCH --job-name=tr -o out/%x-%j.out -e err/%x-%4j-%u.err
echo to-out; echo to-err >&2
END
    try berth submit --gpus 0 --wait train.sh
    is status "$status" 0
    is "output" "$(cat out/tr-1.out)" to-out
    is "errors" "$(cat "err/tr-0001-$(id -un).err")" to-err
    is "its JSON" "$(job_field 1 error)" "$WORK/err/tr-0001-$(id -un).err"
    has "show" "$(berth show 1)" "error +$WORK/err/tr-0001"
    try berth logs 1
    is "berth logs" "$out" to-out
    has "where the rest is" "$err" "berth logs --stderr 1"
    try berth logs --stderr 1
    is "berth logs --stderr" "$out" to-err
    # One file for both is opened once, under whatever names.
    try berth submit --gpus 0 --wait -o both.%j -e both.2 -- sh -c 'echo a; echo b >&2; echo c'
    is "both" "$(cat both.2)" $'a\nb\nc'
    is "no file for errors" "$(job_field 2 error)" null
    echo "[gpus=0 log=l error=e open-mode=truncate retries=1] echo x; echo y >&2; test -e z || { touch z; exit 1; }" >jobs.txt
    echo old >l
    try berth run jobs.txt
    is "emptied before each attempt" "$(cat l e)" $'x\ny'
    echo "[gpus=0 error=e oom-retries=0 log=l2] echo 'CUDA out of memory' >&2; exit 1" >jobs.txt
    try berth run jobs.txt
    is "a CUDA out-of-memory is seen there too" "$(job_field 4 state)" OUT_OF_MEMORY
    try berth submit --gpus 0 --interactive -e e -- true
    has "not where somebody looks" "$err" "an interactive job has one stream for output and errors"
    try berth submit --gpus 0 -e A=1 -- true
    has "-e was --env" "$err" "'A=1' looks like a variable; write --env"
}

@test "a file for errors is bounded as the log is" {
    echo 'job_log_max_mib: 1' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 1 --config settings.yaml >"$ROOT/start.out" 2>&1
    try berth submit --gpus 0 --wait -e big -- sh -c 'head -c 5000000 /dev/zero | tr "\\0" "x" >&2; until grep -q "cut out" big; do sleep 0.1; done'
    is status "$status" 0
    [ "$(stat -c %s big)" -lt 3000000 ] || fail_with "$(stat -c %s big) bytes"
}

@test "a job's own log-max cuts its log, the log says so, and the job runs to its end" {
    start_daemon 1
    try berth submit --gpus 0 --wait --log-max 2M -o big -- sh -c \
        'echo first; head -c 40000000 /dev/zero | tr "\0" x
        until [ "$(stat -c %s big)" -lt 2000000 ] && grep -q "cut out" big; do sleep 0.1; done; echo; echo last; exit 7'
    is "status" "$status" 7
    is "its head and its end" "$(head -n 1 big) $(tail -n 1 big)" "first last"
    is "lines that say so" "$(grep -c '^berth: 3[0-9] MiB of output were cut out of this log here: it has reached its largest size (log-max' big)" 1
    [ "$(stat -c %s big)" -lt 2200000 ] || fail_with "$(stat -c %s big) bytes"
    is "its bound" "$(job_field 1 log_max_mib)" 2
    cut=$(job_field 1 log_cut_bytes)
    # The command goes on writing while its log is cut: a part of that is not counted.
    [ "$cut" -gt 30000000 ] && [ "$cut" -lt 40000000 ] || fail_with "$cut bytes were cut out"
    has "shown" "$(berth show 1)" '^ *log cut +3[0-9] MiB of output are missing'
    # After a restart it comes from the store, and the settings bound it from above.
    berth daemon stop
    echo 'job_log_max_mib: 1' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 1 --config settings.yaml >"$ROOT/start.out" 2>&1
    is "later" "$(job_field 1 log_cut_bytes)" "$cut"
    try berth submit --gpus 0 --wait --log-max 1T -o more -- sh -c 'head -c 5000000 /dev/zero'
    is "status" "$status" 0
    [ "$(stat -c %s more)" -le 1048576 ] || fail_with "$(stat -c %s more) bytes"
    try berth submit --gpus 0 --wait -o short -- echo hello
    is "one that is short" "$(job_field 3 log_cut_bytes) $(cat short)" "0 hello"
    has_not "shown" "$(berth show 3)" "log cut"
    try berth submit --gpus 0 --pty --log-max 1M -o seen -- sh -c 'head -c 5000000 /dev/zero'
    is "status" "$status" 0
    [ "$(stat -c %s seen)" -le 1048576 ] || fail_with "$(stat -c %s seen) bytes"
}

@test "the folder of a log is made, and an impossible log is refused immediately" {
    start_daemon 1
    try berth submit --gpus 0 --wait -o new/%x/deep/%j.log -J n -- echo here
    is "log in new folders" "$status $(cat new/n/deep/1.log)" "0 here"
    touch file
    for place in file/x.log file/%j/x.log new; do
        try berth submit --gpus 0 -o "$place" -- true
        is "status of $place" "$status" 2
        has "words of $place" "$err" "log: $place cannot be written: .* is (not )?a folder"
        echo "[gpus=0 error=$place] true" >jobs.txt
        try berth run jobs.txt
        has "in a file" "$err" "jobs.txt:1:1: error: $place cannot be written"
    done
    try berth submit --gpus 0 --chdir nowhere -- true
    has "folder" "$err" "chdir: nowhere: No such file"
    echo "[gpus=0 chdir=nowhere] true" >jobs.txt
    try berth run jobs.txt
    has "folder in a file" "$err" "jobs.txt:1:1: chdir: nowhere: No such file"
    is "nothing else was queued" "$(berth queue --all --json | grep -c '"id"')" 1
}

@test "a missing program is refused, unless it may appear later" {
    start_daemon 1
    try berth submit --gpus 0 nosuchfile.sh
    is status "$status" 2
    has words "$err" "program 'nosuchfile.sh' not found"
    echo 'true' >plain.sh
    try berth submit --gpus 0 plain.sh
    is status "$status" 2
    has words "$err" "write its interpreter before it, as in sh plain.sh"
    try berth submit --gpus 0 --hold nosuchfile.sh
    is status "$status" 0
    has words "$err" "program 'nosuchfile.sh' not found; the job fails if this is still so when it starts"
}

@test "options after the command, and shell syntax without a shell, cause a note" {
    start_daemon 1
    try berth submit --gpus 0 --hold sh train.py --vram 8G
    is status "$status" 0
    has words "$err" "--vram is passed to sh"
    try berth submit --gpus 0 --hold -- sh train.py --vram 8G
    is "with --" "$err" ""
    try berth submit --gpus 0 --hold -- echo '$BERTH_ARRAY_TASK_ID'
    has words "$err" "'\\\$BERTH_ARRAY_TASK_ID' is passed on unchanged"
    has "the queue" "$(berth queue)" "echo '\\\$BERTH_ARRAY_TASK_ID'"
    for fine in "sh -c 'echo \$HOME'" "echo a-b" "awk '{print \$NF}'"; do
        eval "try berth submit --gpus 0 --hold -- $fine"
        is "$fine" "$err" ""
    done
}

@test "a line of a jobs file can set its folder and variables" {
    start_daemon 1
    mkdir sub
    printf '%s\n' '[gpus=0 chdir=sub env=A=1 env="B=two words" env=C="the same" log=o] echo "$A $B $C ${PWD##*/}"' >jobs.txt
    try berth run jobs.txt
    is "what it saw" "$(cat sub/o)" "1 two words the same sub"
    is "its JSON" "$(job_field 1 env.1) $(job_field 1 cwd)" "B=two words $WORK/sub"
    has "show" "$(berth show 1)" "env +A=1,B=two words,C=the same"
    try berth submit --gpus 0 --wait -o o2 --env A=2 --env A=3 -D sub -- sh -c 'echo $A $PWD'
    is "as options" "$(cat sub/o2)" "3 $WORK/sub"
}

@test "--dry-run says what vram=auto requests, and has no key without a file" {
    start_daemon 1
    try berth submit --dry-run --vram auto -- true
    has words "$out" "learned +nothing about this command yet: it gets whole GPUs"
    [[ $out != *"whole and idle"* ]] || fail_with "auto is told as a whole card: $out"
    try berth submit --dry-run --json -- true
    [[ $out != *'"key"'* ]] || fail_with "a key: $out"
}

@test "every attribute works as option, script line, file key and request, or is refused with a reason" {
    # Held jobs are neither sent nor started, but without Slurm, or podman, they would be
    # refused.
    mkdir bin
    printf '#!/bin/sh\nexit 1\n' | tee bin/sbatch >bin/podman
    chmod +x bin/sbatch bin/podman
    PATH=$PWD/bin:$PATH start_daemon 2x24G+cc8.9
    timeout 1000 "$E2E/doors_walk.py" >"$ROOT/walk" 2>&1 || fail_with "$(cat "$ROOT/walk")"
    has "what was walked" "$(cat "$ROOT/walk")" "^[0-9]{2} attributes, [0-9]{3} jobs, 0 wrong"
}
