#!/usr/bin/env bats
# `berth top` at a real terminal: what it shows, what its keys do, and what it survives.

load lib
load screen

# Wait for the verdict of a machine on which nothing is wrong. A commit that took more than a second is told
# for ten minutes, and a busy machine has such.
see_well()
{
    see 'all is well|^database: .* the slowest lately [0-9]{4,}'
}

# A running job, one that waits for its memory, one that is held: `three_jobs`.
three_jobs()
{
    berth submit --vram 16G --name prep -- sh -c 'echo line one; berth simjob --vram 15000 --util 60 --hold 1000' >/dev/null
    wait_for_event kind=started job=1 >/dev/null
    berth submit --vram 20G -- sleep 1000 >/dev/null
    berth submit --hold -- later >/dev/null
}

@test "shows cards, queue, reasons, the selected job and its log, and follows what happens" {
    start_daemon 1
    three_jobs
    open_terminal 80 24 berth top
    see '^berth on .*1 running, 1 pending \(GpuMemory\), 1 held +(all is well|see below)'
    see '^GPU 0 +Simulated GPU +up +load +60 %'
    see '^\[1█+▒+·+\] +14\.6 of 24\.0 GiB'
    see '^1 .* 14\.6 of 16\.0 GiB .*free 8\.'
    see '^ *1  RUNNING +0 +16\.0 GiB .*\[prep\] sh -c'
    see '^ *2  PENDING +20\.0 GiB +GpuMemory.*sleep 1000'
    see '^ *3  HELD .*later'
    see '^── job 1 RUNNING +on gpu 0'
    see '^line one'
    press j
    see '^── job 2 PENDING'
    see 'GpuMemory: needs 20\.0 GiB .*'
    see 'held by job 1'
    berth submit --gpus 0 -- sh -c 'exit 3' >/dev/null
    see 'job 4 failed exit 3'
    see '^1 job failed in the last hour: 4 FAILED; press a'
    press /
    enter_text gpu:x
    press Enter
    see "'x' is not a GPU's number"
    see '^ *1  RUNNING'
    press q
    see '^left 0'
    see '^cooked'
    see '^the line before'
}

@test "its keys cancel, hold, release, raise, pause and resume" {
    start_daemon 1
    three_jobs
    open_terminal 100 30 berth top
    see '3  HELD'
    press G
    see '^── job 3 HELD'
    press r
    see 'released job 3'
    see '3  PENDING'
    press h
    see 'held job 3'
    press +
    see 'priority 1 for job 3'
    "$AWAIT" until "$LIMIT" "berth show 3 --json" jobs.0.priority 1
    press p
    see 'pause which GPUs'
    enter_text 0
    press Enter
    see 'paused gpu 0'
    see 'gpu 0: paused by .* for'
    see 'see below'
    press u
    enter_text 7
    press Enter
    see 'no GPU|there is no'
    press u
    enter_text 0
    press Enter
    see_well
    press g
    see '^── job 1 RUNNING'
    press c
    see 'cancel job 1\? y or n'
    press n
    see_gone 'cancel job 1\?'
    press c
    see 'cancel job 1\?'
    press y
    see 'cancelled job 1'
    wait_for_event kind=ended job=1 state=CANCELLED >/dev/null
    see_gone '\[prep\]'
    press C-c
    see '^left 130'
    see '^cooked'
}

@test "a confirmed action applies to the job that was asked about, even if that has ended meanwhile" {
    start_daemon 2
    berth submit --name short -- sleep 1000 >/dev/null
    berth submit --name long -- sleep 1000 >/dev/null
    wait_for_event kind=started job=2 >/dev/null
    open_terminal 80 24 berth top
    see ' 2  RUNNING '
    press c
    see 'cancel job 1\? y or n'
    berth cancel 1 >/dev/null
    see '^── job 2 RUNNING '
    press y
    see 'nothing to do|has ended|no job'
    is survivor "$(job_field 2 state)" RUNNING
}

@test "filters, sorts, shows ended jobs, explains, helps, follows a log" {
    mkfifo fifo
    start_daemon 1
    berth submit --gpus 0 -- sh -c 'exit 1' >/dev/null
    wait_for_event kind=ended job=1 >/dev/null
    berth submit --gpus 0 -- sh -c 'echo first; read line <fifo; echo "second $line"; sleep 1000' >/dev/null
    wait_for_event kind=started job=2 >/dev/null
    berth submit --hold -- python one >/dev/null
    berth submit --hold -- python two >/dev/null
    open_terminal 120 40 berth top
    see '4  HELD'
    press /
    enter_text 'python state:held TWO'
    see_gone '3  HELD'
    see '4  HELD'
    see 'only: python state:held TWO'
    press Enter
    see '^── job 4'
    press / Escape
    see '3  HELD'
    press a
    see '1  FAILED +cpu .*exit 1'
    press a
    see_gone '1  FAILED'
    press s
    see ' by id$'
    press e
    see '^job [0-9]+ HELD: '
    press q
    press '?'
    see 'follow the log'
    see 'used by the job'
    press Escape
    see '^ *ID +STATE'
    press g Enter
    see 'job 2 +log '
    see '^first'
    timeout "$LIMIT" sh -c 'echo come >fifo'
    see '^second come'
    press q
    see '3  HELD'
}

@test "shows the newest ended jobs beside any number of live ones" {
    start_daemon 1
    berth submit --gpus 0 --wait -- sh -c 'exit 3' || true
    awk 'BEGIN { for (i = 0; i < 700; i++) print "[hold] python train.py --seed", i }' >many.txt
    try berth run --detach many.txt
    is status "$status" 0
    open_terminal 100 30 berth top
    see '2  HELD'
    press a
    see '1  FAILED +cpu .*exit 3'
}

@test "fits any window, and a resized one" {
    start_daemon 16x80G
    three_jobs
    open_terminal 80 24 berth top
    see '^ 0 .*free .* 1 '
    see '^14 .*free .* 15 '
    see '1  RUNNING'
    in_tmux resize-window -x 250 -y 80
    see '^GPU 0 .*GPU 1 .*GPU 2 '
    see 'SUBMITTED'
    in_tmux resize-window -x 40 -y 8
    see 'and [0-9]+ more'
    see '1  RUNNING'
    in_tmux resize-window -x 12 -y 3
    in_tmux resize-window -x 100 -y 30
    see 'GPU +VRAM +USES'
    press q
    see '^left 0'
}

@test "says that the daemon has exited, stays, and continues with the next" {
    start_daemon 1
    three_jobs
    open_terminal 100 30 berth top
    see_well
    kill_daemon
    see 'no daemon'
    see 'trying again'
    see '2  PENDING'
    press G c y
    see 'no daemon is running'
    start_daemon 1
    see_well
    see_gone 'trying again'
    press h
    see 'nothing to do|held'
    kill -TERM "$(pgrep -P "$(in_tmux list-panes -F '#{pane_pid}')" -x berth)"
    see '^left 143'
    see '^cooked'
}

@test "control characters in names of jobs move no cursor, and wide characters keep columns" {
    start_daemon 1
    berth submit --gpus 0 --hold -- $'evil\033[2J\033]0;title\a\nline\ttab' >/dev/null
    berth submit --gpus 0 --hold --name 日本語 -- e$'\xcc\x81'tude >/dev/null
    berth submit --gpus 0 -- printf '\033[31mred\033[0m plain\rover\033[2J\nlast\n' >/dev/null
    wait_for_event kind=ended job=3 >/dev/null
    open_terminal 100 30 berth top
    see 'evil\\x1B\[2J'
    see "\\[日本語\\] 'e"$'\xcc\x81'"tude'"
    press a
    see '3  COMPLETED'
    press g
    see '^over$'
    see '^last$'
    has_not bytes "$(screen -e)" $'\007'
}

@test "works in colour and without, on old terminals, and where only ASCII is shown" {
    local bars='^\[1#+=*\.+\]'
    start_daemon 1
    three_jobs
    open_terminal 80 24 -u NO_COLOR berth top
    see_well
    has colour "$(screen -e)" $'\033\\[3[0-7]m'
    press q
    see '^left 0'
    close_terminal
    open_terminal 80 24 berth top
    see_well
    has_not colour "$(screen -e)" $'\033\\[3[0-7]m'
    close_terminal
    for name in vt100 linux screen xterm-256color; do
        open_terminal 80 24 -u NO_COLOR TERM=$name LC_ALL=C berth top
        see "$bars"
        see_well
        press q
        see '^left 0'
        close_terminal
    done
    open_terminal 120 24 TERM=nothing berth top
    see 'unknown terminal type, or one without cursor movement \(TERM=nothing\)'
    see '^left 1'
    close_terminal
    open_terminal 120 24 TERM=dumb berth top
    see 'without cursor movement \(TERM=dumb\)'
    see '^left 1'
    close_terminal
    open_terminal 120 24 sh -c 'stty cols 65535; exec berth top'
    see 'it has 65535 columns and 24 rows, of which curses'
    see '^left 1'
}

@test "says what is wrong without a terminal, without a daemon, or with wrong options" {
    try berth top
    is status "$status" 2
    has words "$err" 'needs a terminal; .*berth queue --watch'
    try berth top --json
    has json "$status $err" '^2 .*berth status --json'
    try berth top 12
    is words "$status" 2
    open_terminal 80 24 berth top
    see 'no daemon is running'
    see '^left 4'
}
