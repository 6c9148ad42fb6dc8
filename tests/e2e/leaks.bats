#!/usr/bin/env bats
# `berth` frees its memory. The leak check runs only on request, because it takes longer than
# everything else that `berth` does (src/cli/sanitized.c): here each verb is checked once.
# Without sanitizers each must just work.

load lib

# `free_of_leaks STATUS VERB...`
free_of_leaks()
{
    local want=$1
    shift
    seen+=("$1")
    try env ASAN_OPTIONS="${ASAN_OPTIONS:-}:leak_check_at_exit=1" berth "$@" </dev/null
    is "status of $*" "$status" "$want"
}

@test "no verb leaks" {
    local seen=()
    start_daemon 2
    printf 'true  # name=a\nfalse  # after=a vram=1G\n' >jobs.txt
    printf 'arrival_s,duration_s,gpus\n0,60,1\n' >past.csv
    free_of_leaks 1 run jobs.txt
    free_of_leaks 0 submit -W --name one --vram 1G --tag x=y -- sh -c 'echo hello'
    free_of_leaks 0 submit --hold -- true
    free_of_leaks 0 queue
    free_of_leaks 0 queue --json
    free_of_leaks 0 show 1
    free_of_leaks 0 explain 4
    free_of_leaks 0 logs 3
    free_of_leaks 0 wait 1
    free_of_leaks 2 attach 1
    free_of_leaks 0 screens
    free_of_leaks 0 priority 4 5
    free_of_leaks 0 release 4
    free_of_leaks 0 wait 4
    free_of_leaks 0 requeue 1
    free_of_leaks 0 wait 1
    free_of_leaks 0 report
    free_of_leaks 0 history --csv
    free_of_leaks 0 gpus
    free_of_leaks 0 pause 1
    free_of_leaks 0 resume 1
    free_of_leaks 0 status
    "$AWAIT" prints "$LIMIT" 'berth health >/dev/null && echo healthy' healthy # a busy machine's probe may be late
    free_of_leaks 0 health
    free_of_leaks 0 metrics
    free_of_leaks 0 events
    free_of_leaks 0 daemon status
    free_of_leaks 0 config show
    free_of_leaks 0 doctor
    free_of_leaks 0 simulate past.csv
    free_of_leaks 0 export --to slurm -o exported
    free_of_leaks 0 compat list
    free_of_leaks 0 completion bash
    free_of_leaks 0 version
    free_of_leaks 0 help
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:leak_check_at_exit=1
    seen+=(top shell simjob)
    printf 'q' | TERM=xterm script -qec 'berth top' top.txt >/dev/null
    printf 'exit 7\n' | script -qec 'berth shell' shell.txt >/dev/null || status=$?
    is "status of shell" "$status" 7
    free_of_leaks 0 submit -W --vram 1G -- berth simjob --vram 100 --ramp 0 --hold 0.1
    berth submit -- sleep 1000
    wait_until_running 7
    free_of_leaks 0 signal 7 USR1
    free_of_leaks 1 hold 7
    free_of_leaks 0 cancel 7
    free_of_leaks 2 submit --vram nonsense -- true
    is verbs "$(berth help | sed -n 's/^  \([a-z]\+\) .*/\1/p' | sort)" "$(printf '%s\n' "${seen[@]}" | sort -u)"
}
