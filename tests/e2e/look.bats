#!/usr/bin/env bats
# What people look at: `queue`, `gpus`, `status`, their order, their columns, and watching them.

load lib

@test "the queue shows who waits in the order of the turns, and who is held last" {
    start_daemon 1
    berth submit -- sleep 1000 >/dev/null
    wait_for_event kind=started job=1 >/dev/null
    berth submit --priority 9 --begin +1d -- true >/dev/null
    berth submit --priority 9 --hold -- true >/dev/null
    berth submit -- true >/dev/null
    berth submit --priority 5 -- true >/dev/null
    is order "$(berth queue --format id | tail -n +2 | tr -d ' ' | tr '\n' ,)" 1,5,4,2,3,
    try berth queue @ --format id
    is named "$status $(tail -1 <<<"$out" | tr -d ' ')" '0 5'
}

@test "columns have a width, rows are sorted by several columns, and a wrong name says which there are" {
    start_daemon 1
    berth submit --priority 1 -- sleep 1000 1000 1000 >/dev/null
    wait_for_event kind=started job=1 >/dev/null
    berth submit --priority 2 -- true >/dev/null
    berth submit --priority 1 -- true >/dev/null
    try berth queue --format id,command:10 1
    has cut "$out" '^ *1  sleep 1\.\.\.$'
    is sorted "$(berth queue --format id --sort -priority,-id | tail -n +2 | tr -d ' ' | tr '\n' ,)" 2,3,1,
    try berth queue --format id,prio
    is status "$status" 2
    has words "$err" "unknown column 'prio'.*; there are: id user .* command"
    try berth queue --format id:x
    has width "$status $err" '^2 .*width of a column'
    try berth queue --sort nothing
    has sort "$status $err" "^2 .*unknown column 'nothing'"
}

@test "a card says who holds how much of it" {
    start_daemon 1
    berth submit --array 3 --vram 4G -- berth simjob --vram 3000 --hold 1000 >/dev/null
    wait_for_event kind=started >/dev/null
    "$E2E/await" until "$LIMIT" "berth gpus --json" gpus.0.holds.0.now_mib 3000
    local gpus
    gpus=$(berth gpus --json)
    is demand "$(json gpus.0.holds.0.vram_mib <<<"$gpus")" 4096
    is task "$(json gpus.0.holds.0.array_job <<<"$gpus")_$(json gpus.0.holds.0.array_task <<<"$gpus")" 1_3
    is user "$(json gpus.0.holds.0.user <<<"$gpus")" "$(id -un)"
}
