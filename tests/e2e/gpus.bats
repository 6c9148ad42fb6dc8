#!/usr/bin/env bats
# GPUs taken out of service, and GPUs that fail: pause, resume, drain; driver errors (XID) in
# the kernel's log, GPUs that are lost and come back, memory errors.

load lib

case_setup()
{
    mkfifo gate
    records=0
    mkdir -p "$BERTH_DIR"
    printf 'sample_ms: 100\nidle_sample_ms: 100\n' >"$BERTH_DIR/config.yaml"
}

open_gate()
{
    timeout "$LIMIT" sh -c 'echo go >"$1"' sh "${1:-gate}" ||
        fail_with 'no job has come to the gate'
}

# Make the simulated GPUs fail like real ones, from the next sample on.
fault()
{
    printf '%s\n' "$@" >"$BERTH_DIR/sim/fault.new"
    mv "$BERTH_DIR/sim/fault.new" "$BERTH_DIR/sim/fault"
}

no_fault()
{
    rm -f "$BERTH_DIR/sim/fault"
}

# Write a line of the driver to the kernel's log: `kernel 'NVRM: Xid ...'`.
kernel()
{
    records=$((records + 1))
    printf '3,%d,0,-;%s\n' "$records" "$1" >>"$BERTH_DIR/sim/kmsg"
}

# An XID of GPU N: `xid 1 79 'pid=4711, name=python, GPU has fallen off the bus.'`
xid()
{
    kernel "$(printf 'NVRM: Xid (PCI:0000:%02x:00): %d, %s' $(($1 + 1)) "$2" "$3")"
}

gpu_field()
{
    berth gpus --json | json "gpus.$1.$2"
}

# The number of the newest event, 0 before the first.
last_seq()
{
    (echo '{"seq":0}' && berth events) | tail -1 | json seq
}

@test "GPUs are selected, sorted and shown by columns, and likewise as JSON" {
    start_daemon 4
    berth submit --gpu-ids 2 --vram 8G -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    berth pause 1 >/dev/null
    is columns "$(berth gpus -o index,state,held,jobs --sort -held | tr -s ' ' | head -2 | tail -1)" ' 2 up 8.0 GiB 1'
    is chosen "$(berth gpus -g 1-3 -o index,state | tr -s ' ' | tr '\n' ';')" 'GPU STATE; 1 paused; 2 up; 3 up;'
    is states "$(berth gpus --state paused,sick --json | json gpus.0.index)" 1
    is sorted "$(berth gpus --sort -index --json | json gpus.0.index)" 3
    try berth gpus --gpu 9
    is status "$status" 0
    has none "$err" 'no GPU matches'
    try berth gpus --format indx
    is status "$status" 2
    has words "$err" "unknown column 'indx', did you mean 'index'\?; the columns are: index name "
    try berth gpus --state ill
    is status "$status" 2
    has words "$err" "unknown GPU state 'ill'; use up, paused"
}

@test "pause lists running jobs by the names that people use" {
    start_daemon 1
    berth submit --array 0-1 --vram 1G -- sh -c 'read line <gate'
    wait_for_event kind=started job=3
    is out "$(berth pause 0)" 'gpu 0: paused; jobs 1_0 and 1_1 continue there'
}

@test "pause: running jobs continue, pending ones show who paused the GPU and why, resume starts them" {
    start_daemon 2
    berth submit --devices 0 --vram 1G -- sh -c 'read line <gate; exit 3'
    wait_for_event kind=started job=1
    has out "$(berth pause 0 --reason 'new fan')" '^gpu 0: paused; job 1 continues there$'
    is state "$(gpu_field 0 state)" paused
    is by "$(gpu_field 0 state_by)" "$(id -un)"
    is text "$(gpu_field 0 state_text)" 'new fan'
    has since "$(gpu_field 0 state_since.rfc3339)" '^20'
    wait_for_event kind=gpu gpu=0 state=paused by="$(id -un)" text='new fan'
    berth submit --devices 0 --vram 1G -- true
    is reason "$(job_field 2 reason)" GpuPaused
    has explain "$(job_field 2 explain)" "gpu 0 is paused.* by $(id -un) \(new fan\)"
    berth submit --devices 1 -- true
    wait_for_event kind=ended job=3 state=COMPLETED
    open_gate
    wait_for_event kind=ended job=1 exit_status=3
    is state "$(job_field 2 state)" PENDING
    has out "$(berth resume 0)" '^gpu 0: up$'
    wait_for_event kind=ended job=2 state=COMPLETED
    is by "$(gpu_field 0 state_by)" null
}

@test "a pause survives kill -9 of the daemon, with user and reason" {
    start_daemon 2
    berth pause 1 --reason 'for the demo'
    since=$(gpu_field 1 state_since.unix)
    kill_daemon
    start_daemon 2
    is state "$(gpu_field 1 state)" paused
    is text "$(gpu_field 1 state_text)" 'for the demo'
    is since "$(gpu_field 1 state_since.unix)" "$since"
    is state "$(gpu_field 0 state)" up
    berth resume 1
    stop_daemon
    start_daemon 2
    is state "$(gpu_field 1 state)" up
}

@test "drain waits until the GPU is empty" {
    start_daemon 2
    berth submit --devices 0 --vram 1G -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    background drain berth pause --drain 0
    wait_for_event kind=gpu gpu=0 state=draining
    is state "$(gpu_field 0 state)" draining
    berth submit --devices 0 --vram 1G -- true
    is reason "$(job_field 2 reason)" GpuPaused
    open_gate
    finish drain
    is status "$status" 0
    has out "$out" '^gpu 0: draining; job 1 continues there$'
    has out "$out" '^gpu 0: empty$'
    is state "$(gpu_field 0 state)" paused
    is state "$(job_field 2 state)" PENDING
    try berth pause --drain 0 1
    is status "$status" 0
}

@test "drain goes on when the GPU is paused again, or is lost and comes back" {
    start_daemon 2
    berth submit --devices 1 --vram 1G -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    background drain berth pause --drain 1
    wait_for_event kind=gpu gpu=1 state=draining
    has again "$(berth pause 1 --reason 'new fan')" '^gpu 1: draining; job 1 continues there$'
    is text "$(gpu_field 1 state_text)" 'new fan'
    fault 'lost 1'
    wait_for_event kind=gpu gpu=1 state=lost
    no_fault
    wait_for_event kind=gpu gpu=1 state=draining text='it is back and has passed its check'
    open_gate
    finish drain
    is status "$status" 0
    has out "$out" '^gpu 1: empty$'
    ended=$(seq_of kind=ended job=1)
    paused=$(seq_of kind=gpu gpu=1 state=paused)
    [ "$paused" -gt "$ended" ] || fail_with "it was empty before its job had ended: $paused, $ended"
}

@test "pause --drain fails if the GPU is resumed before it is empty" {
    start_daemon 1
    berth submit --vram 1G -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    background drain berth pause --drain all
    wait_for_event kind=gpu gpu=0 state=draining
    berth resume 0
    finish drain
    is status "$status" 1
    has out "$out" 'gpu 0 was resumed before it was empty'
    open_gate
    wait_for_event kind=ended job=1
}

@test "GPUs are named by index, list, UUID, the beginning of one, or all" {
    start_daemon 3
    uuid=$(gpu_field 1 uuid)
    berth pause "$uuid"
    is state "$(gpu_field 1 state)" paused
    berth resume 1
    berth pause 0,2
    is states "$(gpu_field 0 state) $(gpu_field 1 state) $(gpu_field 2 state)" 'paused up paused'
    berth resume all
    is states "$(gpu_field 0 state) $(gpu_field 2 state)" 'up up'
    try berth pause 7
    is status "$status" 2
    has err "$err" "no GPU '7'; use 0-2"
    try berth pause "${uuid%??}"
    is status "$status" 2
    has err "$err" 'matches the UUIDs of gpu 0 and gpu 1'
    try berth pause GPU-no-such
    is status "$status" 2
    try berth pause
    is status "$status" 2
    has err "$err" 'which GPUs'
    try berth resume 0 7
    is status "$status" 2
}

@test "an XID of the GPU: it alone is sick, its job is warned and says GPU fault when it fails" {
    start_daemon 2
    berth submit --devices 1 --vram 1G -- sh -c 'read line <gate; exit 1'
    wait_for_event kind=started job=1
    xid 1 79 'pid=4711, name=python, GPU has fallen off the bus.'
    wait_for_event kind=gpu gpu=1 state=sick
    wait_for_event kind=warning job=1 xid=79
    is xid "$(gpu_field 1 xid)" 79
    has text "$(gpu_field 1 state_text)" 'XID 79: the GPU has fallen off the bus'
    is other "$(gpu_field 0 state)" up
    berth submit --devices 1 -- true
    is reason "$(job_field 2 reason)" GpuSick
    has explain "$(job_field 2 explain)" 'XID 79'
    berth submit -- true
    wait_for_event kind=ended job=3 state=COMPLETED
    open_gate
    wait_for_event kind=ended job=1 state=FAILED
    has text "$(job_field 1 text)" 'exit 1: GPU fault on gpu 1: XID 79'
    kill_daemon
    start_daemon 2
    is state "$(gpu_field 1 state)" sick
    is xid "$(gpu_field 1 xid)" 79
    berth resume 1
    wait_for_event kind=ended job=2 state=COMPLETED
    is xid "$(gpu_field 1 xid)" null
}

@test "a job that succeeds on a sick GPU is no failure" {
    start_daemon 1
    berth submit --vram 1G -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    xid 0 48 'pid=1, name=x, DBE'
    wait_for_event kind=warning job=1 xid=48
    open_gate
    wait_for_event kind=ended job=1 state=COMPLETED
    has_not text "$(job_field 1 text)" 'GPU fault'
}

@test "an XID of a program is reported to its job only" {
    start_daemon 1
    mkfifo pid gate2
    berth submit --vram 1G -- sh -c 'echo $$ >pid; read line <gate; exit 134'
    berth submit --vram 1G -- sh -c 'read line <gate2; exit 1'
    wait_for_event kind=started job=2
    read -r pid <pid
    xid 0 31 "pid=$pid, name=sh, Ch 00000001, intr 10000000. MMU Fault"
    wait_for_event kind=warning job=1 xid=31
    is state "$(gpu_field 0 state)" up
    open_gate
    open_gate gate2
    wait_for_event kind=ended job=1 state=FAILED
    wait_for_event kind=ended job=2 state=FAILED
    has text "$(job_field 1 text)" 'exit 134: XID 31 on gpu 0: GPU memory page fault'
    is text "$(job_field 2 text)" 'exit 1'
    is events "$(events_with kind=warning | wc -l)" 1
}

@test "minor XIDs: a note, and the GPU stays in use" {
    start_daemon 1
    xid 0 63 'pid=1, name=x, Row Remapper: New row marked for remapping, reset gpu to activate.'
    wait_for_event kind=gpu gpu=0 state=up text='XID 63: bad memory was retired'
    has note "$(gpu_field 0 note)" 'XID 63'
    xid 0 4242 'pid=1, name=x, something new'
    wait_for_event kind=gpu gpu=0 text='XID 4242: something new'
    xid 0 45 'pid=1, name=x, Ch 00000001'
    berth submit -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    is state "$(gpu_field 0 state)" up
}

@test "a GPU that disappeared and came back takes work after a check; indices stay" {
    start_daemon 3
    uuid=$(gpu_field 1 uuid)
    berth submit --devices 1 --vram 1G -- sh -c 'read line <gate; exit 9'
    wait_for_event kind=started job=1
    fault 'lost 1'
    wait_for_event kind=gpu gpu=1 state=lost
    is uuid "$(gpu_field 1 uuid)" "$uuid"
    is job "$(gpu_field 1 jobs.0)" 1
    # Its memory is not waited for: none can be returned.
    open_gate
    wait_for_event kind=ended job=1 state=FAILED
    has text "$(job_field 1 text)" 'GPU fault on gpu 1: missing from'
    berth submit --devices 1 -- true
    is state "$(job_field 2 state)" PENDING
    no_fault
    wait_for_event kind=ended job=2 state=COMPLETED
    events_with kind=gpu gpu=1 state=up | grep -q 'passed its check'
    is uuid "$(gpu_field 1 uuid)" "$uuid"
}

@test "a sick GPU recovers by itself after a reset, and not without one" {
    start_daemon 3
    xid 0 95 'pid=1, name=x, Uncontained'
    xid 1 79 'GPU has fallen off the bus.'
    wait_for_event kind=gpu gpu=0 state=sick
    wait_for_event kind=gpu gpu=1 state=sick
    # GPU 2 is lost and comes back after a check of several samples: GPU 0 has passed that many
    # too.
    fault 'lost 1' 'lost 2'
    wait_for_event kind=gpu gpu=2 state=lost
    no_fault
    wait_for_event kind=gpu gpu=2 state=up
    wait_for_event kind=gpu gpu=1 state=up
    is state "$(gpu_field 0 state)" sick
    kernel 'NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15'
    wait_for_event kind=gpu gpu=0 state=up
}

@test "bad memory: a note while it waits for a reset, sick when it is worn out" {
    start_daemon 2
    fault 'bad-memory 0' 'worn-out 1'
    wait_for_event kind=gpu gpu=1 state=sick
    wait_for_event kind=gpu gpu=0 state=up
    has note "$(gpu_field 0 note)" 'retired at the next reset'
    has text "$(gpu_field 1 state_text)" 'could not be retired'
    berth submit -- true
    wait_for_event kind=ended job=1 state=COMPLETED
    is gpu "$(job_field 1 attempts.0.gpus.0)" 0
    # An administrator's resume is trusted.
    berth resume 1
    berth submit --devices 1 -- true
    wait_for_event kind=ended job=2 state=COMPLETED
    kill_daemon
    start_daemon 2
    berth submit --devices 1 -- true
    wait_for_event kind=ended job=3 state=COMPLETED
}

@test "a GPU that was missing takes work again though bad memory waits for a reset, or is trusted" {
    start_daemon 2
    fault 'bad-memory 0' 'worn-out 1'
    wait_for_event kind=gpu gpu=1 state=sick
    berth resume 1
    seq=$(last_seq)
    fault 'bad-memory 0' 'worn-out 1' 'lost 0' 'lost 1'
    wait_for_event --after "$seq" kind=gpu gpu=0 state=lost
    wait_for_event --after "$seq" kind=gpu gpu=1 state=lost
    has text "$(gpu_field 0 state_text)" '^missing from the driver'
    seq=$(last_seq)
    fault 'bad-memory 0' 'worn-out 1'
    wait_for_event --after "$seq" kind=gpu gpu=0 state=up text='it is back and has passed its check'
    wait_for_event --after "$seq" kind=gpu gpu=1 state=up text='it is back and has passed its check'
}

@test "errors logged while no daemon ran are not missed" {
    start_daemon 2
    xid 1 63 'a first one, so that the daemon knows where it stood'
    wait_for_event kind=gpu gpu=1 state=up
    kill_daemon
    xid 1 64 'Row Remapper: failure'
    start_daemon 2
    wait_for_event kind=gpu gpu=1 state=sick
}

@test "a GPU that keeps failing waits for berth resume" {
    start_daemon 1
    for i in 1 2 3; do
        seq=$(last_seq)
        fault 'lost 0'
        wait_for_event --after "$seq" kind=gpu state=lost
        no_fault
        wait_for_event --after "$seq" kind=gpu state=up
    done
    seq=$(last_seq)
    fault 'lost 0'
    wait_for_event --after "$seq" kind=gpu state=lost
    no_fault
    event=$(wait_for_event --after "$seq" kind=gpu state=sick)
    has event "$event" 'came back 3 times within a day'
    has text "$(gpu_field 0 state_text)" "^was missing from the driver's list of GPUs and is back"
    berth resume 0
    is state "$(gpu_field 0 state)" up
}

@test "invalid parameters of the methods are refused" {
    start_daemon 1
    for params in '{}' '{"gpus":[]}' '{"gpus":[1.5]}' '{"gpus":["0"],"reason":5}' '{"gpus":[{}]}' \
        "{\"gpus\":[0],\"reason\":\"$(printf 'x%.0s' {1..500})\"}"; do
        python3 - "$BERTH_DIR/berth.sock" "$params" <<'PY'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(('{"jsonrpc":"2.0","id":1,"method":"gpu.pause","params":%s}\n' % sys.argv[2]).encode())
answer = json.loads(s.makefile().readline())
assert answer["error"]["data"]["kind"] == "usage", answer
PY
    done
    is state "$(gpu_field 0 state)" up
}

@test "a second probe looks for a lost GPU and takes over without being noticed" {
    start_daemon 2
    berth submit --devices 0 --vram 1G -- sh -c 'read line <gate; exit 4'
    wait_for_event kind=started job=1
    fault 'lost 1'
    wait_for_event kind=gpu gpu=1 state=lost
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" 'event=probe-renewed'
    no_fault
    wait_for_event kind=gpu gpu=1 state=up
    open_gate
    wait_for_event kind=ended job=1 exit_status=4
    is unknown "$(events_with kind=gpu state=unknown | wc -l)" 0
}

@test "gpus --watch redraws when something happens; status and gpus show who paused a GPU" {
    start_daemon 2
    background watch berth gpus --watch
    wait_for_output watch '1  Simulated GPU  up'
    berth pause 1 --reason 'new fan'
    wait_for_output watch "gpu 1: paused by $(id -un)"
    wait_for_output watch ': new fan'
    has out "$(berth status)" "gpu 1: paused by $(id -un) for .*: new fan"
    has out "$(berth)" 'gpu 1: paused'
    xid 1 48 'pid=1, name=x, DBE'
    wait_for_output watch 'gpu 1: sick.*XID 48: double-bit memory error; reset it .stop berthd, whose jobs go on; nvidia-smi --gpu-reset; start berthd.'
}

@test "a GPU that another daemon uses is sick until that daemon releases it; the job on it is kept" {
    start_daemon 1
    berth submit --vram 1G -- sh -c 'read line <gate; exit 5'
    wait_for_event kind=started job=1
    kill_daemon
    mkdir -p "$ROOT/other"
    ln -s "$BERTH_DIR/sim" "$ROOT/other/sim"
    background other berthd --dir "$ROOT/other" --sim 1
    wait_for_output other 'event=ready'
    start_daemon 1
    is state "$(gpu_field 0 state)" sick
    has text "$(gpu_field 0 state_text)" "another daemon has this GPU.*$ROOT/other"
    is job "$(gpu_field 0 jobs.0)" 1
    try berth resume 0
    is status "$status" 6
    kill -TERM "$pid_of_other"
    finish other
    wait_for_event kind=gpu gpu=0 state=up text='the other daemon no longer uses it'
    open_gate
    wait_for_event kind=ended job=1 exit_status=5
    berth submit -- true
    wait_for_event kind=ended job=2 state=COMPLETED
}

# A machine whose driver is a library here, as the file `world` says.
nvml_machine()
{
    command -v cc >/dev/null || skip "there is no C compiler here"
    cc -shared -fPIC -o "$ROOT/libnvidia-ml.so.1" "$BATS_TEST_DIRNAME/../gpu/fake_nvml.c"
    export BERTH_NVML=$ROOT/libnvidia-ml.so.1 BERTH_FAKE_NVML=$ROOT/world BERTH_KMSG=$ROOT/kmsg BERTH_NVIDIA_SMI=/none
    export BERTH_SYS=$ROOT/sys BERTH_PROC=$ROOT/proc
    mkdir -p "$ROOT/sys" "$ROOT/proc" "$ROOT/live"
    printf '%s\n' "$@" >"$ROOT/world"
    timeout "$LIMIT" berth daemon start >/dev/null
}

# GB10, whose memory is the machine's.
@test "a GPU that does not report its memory is used by one job at a time" {
    nvml_machine 'driver 580.95' 'card GPU-a 1 0 0' 'name 0 NVIDIA GB10' 'memory 0 3' 'load 0 7 41'
    is gpu "$(gpu_field 0 name) $(gpu_field 0 state)" 'NVIDIA GB10 up'
    is sizes "$(gpu_field 0 total_mib) $(gpu_field 0 used_mib) $(gpu_field 0 free_mib)" 'null null null'
    has table "$(berth gpus)" 'GB10'
    has_not metrics "$(berth metrics --prometheus)" 'berth_gpu_memory_(total|free|used)_bytes\{'
    berth submit --vram 8G -- sh -c 'read line <gate'
    is event "$(wait_for_event kind=started job=1 | json total_mib)" null
    berth submit --vram 8G --max-used 50% -- true
    berth submit --share 50% -- true
    berth submit -- true
    "$AWAIT" until "$LIMIT" 'berth show 2 --json' jobs.0.reason GpuBusy
    has explain "$(berth explain 2)" 'job 1'
    open_gate
    timeout "$LIMIT" berth wait 1 2 3 4
    has report "$(berth report)" '100 %|busy'
    is report "$(berth report --json | json gpus.0.total_mib) $(berth report --json | json gpus.0.gone)" 'null false'
}

@test "the peak of another program that has ended is not the job's" {
    nvml_machine 'driver 550.54' 'card GPU-a 81920 0 0' 'accounting 0 1' "live $ROOT/live"
    timeout "$LIMIT" sleep 1000 3>&- >/dev/null 2>&1 &
    other=$!
    echo 40960 >"$ROOT/live/0.$other"
    echo 40960 >"$ROOT/live/0.$other.past"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.used_mib 40960
    berth submit --vram 8G -- sh -c 'read line <gate'
    wait_for_event kind=started job=1
    kill "$other" 2>/dev/null || true
    wait "$other" || true
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.used_mib 0
    open_gate
    timeout "$LIMIT" berth wait 1
    is peak "$(job_field 1 attempts.0.peak_mib.0)" null
}

# `driver_says LINE ...`: change the machine of nvml_machine from the next sample on.
driver_says()
{
    printf '%s\n' "$@" >"$ROOT/world.new"
    mv "$ROOT/world.new" "$ROOT/world"
}

# The mode is checked every ten seconds.
@test "a GPU in compute mode PROHIBITED is waited for, and a change of the mode is noticed" {
    nvml_machine 'driver 550.54' 'card GPU-a 81920 0 0' 'mode 0 2'
    berth submit --vram 8G -- true
    "$AWAIT" until "$LIMIT" 'berth show 1 --json' jobs.0.reason GpuPaused
    has explain "$(berth explain 1)" "gpu 0 accepts no processes .compute mode 'prohibited'."
    has advice "$(berth explain 1)" 'nvidia-smi -c DEFAULT'
    has health "$(berth health)" "^warn +gpu +gpu 0 accepts no processes"
    driver_says 'driver 550.54' 'card GPU-a 81920 0 0' 'mode 0 0'
    timeout "$LIMIT" berth wait 1
    has health "$(berth health)" 'the GPU is available'
}

@test "in compute mode EXCLUSIVE_PROCESS a display keeps no job off, and a program that computes does" {
    nvml_machine 'driver 550.54' 'card GPU-a 81920 0 4' 'mode 0 3' 'proc 0 graphics 1 4'
    berth submit --vram 8G -- true
    timeout "$LIMIT" berth wait 1
    driver_says 'driver 550.54' 'card GPU-a 81920 0 8' 'mode 0 3' 'proc 0 compute 1 8'
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.used_mib 8
    berth submit --vram 8G -- true
    "$AWAIT" until "$LIMIT" 'berth show 2 --json' jobs.0.reason GpuBusy
    has explain "$(berth explain 2)" 'in use outside Berth .pid 1.'
}

@test "a GPU that cannot be read for a moment is unknown, and was not reset by that" {
    local machine=('driver 550.54' 'card GPU-a 81920 0 0' 'card GPU-b 81920 0 0' 'card GPU-c 81920 0 0')
    nvml_machine "${machine[@]}"
    printf '3,1,0,-;NVRM: Xid (PCI:0000:11:00): 95, pid=1, name=x, Uncontained\n' >>"$BERTH_KMSG"
    wait_for_event kind=gpu gpu=1 state=sick
    driver_says "${machine[@]}" 'status 0 999' 'status 1 999'
    wait_for_event kind=gpu gpu=0 state=unknown text='the driver could not read it'
    driver_says "${machine[@]}"
    wait_for_event kind=gpu gpu=0 state=up
    # GPU 2 is lost and comes back after a check of several samples, which GPU 1 has passed as
    # well.
    driver_says "${machine[@]}" 'status 2 15'
    wait_for_event kind=gpu gpu=2 state=lost
    driver_says "${machine[@]}"
    wait_for_event kind=gpu gpu=2 state=up
    is state "$(gpu_field 1 state)" sick
    # A GPU that stays so is lost.
    driver_says "${machine[@]}" 'status 0 999'
    wait_for_event kind=gpu gpu=0 state=lost text='the driver could not read it 5 times in a row; it may be stuck'
    driver_says "${machine[@]}"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.state up
}

probes_there()
{
    pgrep -P "$(daemon_pid)" berth-probe | wc -l
}

# Like a process in state D, which a kill does not end: another process keeps each one waiting.
@test "killed probes that do not end are no more than two, health says so, and the next comes when one has ended" {
    local machine=('driver 550.54' 'card GPU-a 81920 0 0' 'load 0 7 41')
    echo 'probe_deadline_ms: 1000' >>"$BERTH_DIR/config.yaml"
    nvml_machine "${machine[@]}"
    exec 9>"$ROOT/stuck"
    flock 9
    driver_says "${machine[@]}" "stuck $ROOT/stuck"
    "$AWAIT" output "$LIMIT" "$BERTH_DIR/daemon.log" 'probes that were killed have not ended|no process can be traced'
    if grep -q 'no process can be traced' "$BERTH_DIR/daemon.log"; then
        exec 9>&-
        skip "no process can be traced here"
    fi
    is probes "$(probes_there)" 2
    try berth health
    has health "$out" '^bad +probe +the GPUs have not answered .*have not ended.*reboot'
    driver_says "${machine[@]}"
    exec 9>&-
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.0.state up
    "$AWAIT" prints "$LIMIT" "pgrep -P $(daemon_pid) berth-probe | wc -l" '^ *1$'
}

@test "a driver that takes long to list its GPUs: the daemon works meanwhile, health names persistence mode, the probe stays" {
    local probe
    echo 'probe_deadline_ms: 5000' >>"$BERTH_DIR/config.yaml"
    exec 9>"$ROOT/slow"
    flock 9
    nvml_machine 'driver 550.54' 'card GPU-a 81920 0 0' "slow $ROOT/slow" 9>&-
    probe=$(pgrep -P "$(daemon_pid)" berth-probe)
    try berth health
    has health "$out" '^bad +probe +the GPUs have not answered .*persistence mode is on .nvidia-smi -pm 1'
    try berth submit --wait --gpus 0 -- sh -c 'exit 5'
    is status "$status" 5
    berth submit -- true
    is reason "$(job_field 2 reason)" Probe
    exec 9>&-
    wait_for_event kind=ended job=2 state=COMPLETED
    is probe "$(pgrep -P "$(daemon_pid)" berth-probe)" "$probe"
}

@test "a GPU that does not answer when it is first looked for is named, and comes when it does" {
    local machine=('driver 550.54' 'card GPU-a 81920 0 0' 'card GPU-b 81920 0 0')
    mkdir -p "$ROOT/proc/driver/nvidia/gpus/0000:10:00.0" "$ROOT/proc/driver/nvidia/gpus/0000:11:00.0"
    nvml_machine "${machine[@]}" 'status 1 999'
    try berth health
    has health "$out" '^warn +gpu +GPU 1 .0000:11:00.0. does not answer: Unknown Error .error 999.'
    try berth doctor
    has doctor "$out" 'GPU 1 .0000:11:00.0. does not answer'
    is gpus "$(berth gpus --json | grep -c '"uuid"')" 1
    driver_says "${machine[@]}"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.uuid GPU-b
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.state up
    try berth health
    has_not health "$out" 'does not answer'
    # A GPU that also failed for a new probe was not reset when it answers.
    printf '3,1,0,-;NVRM: Xid (PCI:0000:11:00): 95, pid=1, name=x, Uncontained\n' >>"$BERTH_KMSG"
    wait_for_event kind=gpu gpu=1 state=sick
    driver_says "${machine[@]}" 'status 1 999'
    wait_for_event kind=gpu gpu=1 state=lost
    renewed=$(grep -c event=probe-renewed "$BERTH_DIR/daemon.log")
    "$AWAIT" prints "$LIMIT" "test \$(grep -c event=probe-renewed '$BERTH_DIR/daemon.log') -gt $renewed && echo yes" yes
    driver_says "${machine[@]}"
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.state sick
    # GPU 0 is lost and comes back after a check of several samples, which GPU 1 has passed as
    # well.
    driver_says "${machine[@]}" 'status 0 15'
    wait_for_event kind=gpu gpu=0 state=lost
    driver_says "${machine[@]}"
    wait_for_event kind=gpu gpu=0 state=up
    is state "$(gpu_field 1 state)" sick
}

@test "a GPU that was replaced by another is gone after a while, and the other is used" {
    echo 'mig_wait_ms: 0' >>"$BERTH_DIR/config.yaml"
    nvml_machine 'driver 550.54' 'card GPU-a 81920 0 0' 'card GPU-b 81920 0 0'
    berth submit --gpu-ids 0 --vram 1G -- sh -c 'read line <gate; exit 4'
    wait_for_event kind=started job=1
    driver_says 'driver 550.54' 'card GPU-a 81920 0 0' 'card GPU-x 81920 0 0'
    kill -KILL "$(pgrep -P "$(daemon_pid)" berth-probe)"
    wait_for_event kind=gpu gpu=1 state=lost text='another GPU is in its place'
    "$AWAIT" until "$LIMIT" 'berth gpus --json' gpus.1.uuid GPU-x
    "$AWAIT" prints "$LIMIT" "berth gpus --json | grep -c GPU-b || true" '^0$'
    berth submit --gpu-ids GPU-x -- true
    wait_for_event kind=ended job=2 state=COMPLETED
    open_gate
    wait_for_event kind=ended job=1 exit_status=4
}
