# Shared by the rows of tests/real-gpu/run: programs, an instance of Berth of its own, the
# choice of GPU, readers of Berth's and nvidia-smi's answers, and waits. Sourced by run.

# Deadline of a single wait, and of the whole run, in seconds. A run against the fake driver may take longer.
PATIENCE=${REAL_GPU_PATIENCE:-60}
TOTAL=${REAL_GPU_TOTAL:-570}

# Upper bound on what a process has on a GPU besides its allocations.
CONTEXT_MIB=1024

strangers=
note=
altered=    # the daemon runs with a row's settings
accounting= # UUIDs of the GPUs whose accounting was off before
mps=   # the folder of the MPS control daemon that runs; "": none
image= # the container image that was made; "": none

find_cuda_job()
{
    if [ -z "$cuda_job" ] && [ -x "$here/cuda_job" ]; then cuda_job=$here/cuda_job; fi
    if [ -n "$cuda_job" ]; then
        [ -x "$cuda_job" ] || die "there is no program $cuda_job"
        cuda_job=$(realpath "$cuda_job")
        return
    fi
    command -v cc >/dev/null ||
        die "no C compiler here: build cuda_job elsewhere (cc -O2 -o cuda_job cuda_job.c -ldl) and put it beside this script"
    cuda_job=$dir/cuda_job
    cc -O2 -o "$cuda_job" "$here/cuda_job.c" -ldl || die "cuda_job.c does not compile"
}

find_programs()
{
    local root=$here/../..
    if [ -z "$programs" ]; then
        programs=$root/build/release/root
        if [ ! -x "$programs/bin/berth" ]; then
            command -v meson >/dev/null || die "no meson here to build Berth: carry its programs and say --programs DIR"
            "$root/tools/build" release -Dtests=false >"$dir/build.log" 2>&1 || die "Berth does not build: $(tail -20 "$dir/build.log")"
        fi
    fi
    [ -x "$programs/bin/berth" ] || die "there is no program $programs/bin/berth"
    programs=$(realpath "$programs")
    PATH=$programs/bin:$PATH
}

start_daemon()
{
    note=
    berth daemon start >"$dir/start.out" 2>&1 || note="the daemon does not start: $(cat "$dir/start.out")"
    if [ -z "$note" ] && wait_until all_known; then return; fi
    note="${note:-Berth does not see the GPUs that CUDA shows: $(berth gpus 2>&1)}
$(tail -5 "$BERTH_DIR/daemon.log")"
    return 1
}

start_berth()
{
    export BERTH_DIR=$dir/i NO_COLOR=1 LC_ALL=C
    unset BERTH_SOCKET
    cd "$dir" || die "$dir is gone"
    # As root, Berth turns the driver's accounting on: clean_up turns it off again.
    accounting=$(smi --query-gpu=uuid,accounting.mode | awk -F', ' '$2 == "Disabled" { print $1 }')
    start_daemon || die "$note" 1
}

# Start another daemon with these lines as its settings; after the row the plain one returns.
restart_with()
{
    berth daemon stop --cancel >/dev/null 2>&1
    altered=yes
    printf '%s\n' "$@" >"$BERTH_DIR/config.yaml"
    start_daemon
}

clean_up()
{
    local pid uuid
    for pid in $strangers; do kill -KILL "$pid" 2>/dev/null; done
    if [ -S "$dir/i/berth.sock" ]; then timeout 60 berth daemon stop --cancel >/dev/null 2>&1; fi
    end_services
    if [ "$(id -u)" -eq 0 ]; then
        for uuid in $accounting; do timeout 30 nvidia-smi -i "$uuid" -am 0 >/dev/null 2>&1; done
    fi
    cd /
    rm -rf "$dir"
}

# End what a row may have started besides jobs. MPS clients end first: their jobs are cancelled
# before.
end_services()
{
    if [ -n "$mps" ]; then tell_mps quit >/dev/null; fi
    if [ -n "$image" ]; then podman rmi -f "$image" >/dev/null 2>&1; fi
    mps=
    image=
}

# --- Berth's answers

# The first value of a field in the JSON on standard input; "" if absent.
field()
{
    grep -oE "\"$1\":(\"[^\"]*\"|[^,}]*)" | sed -n "1{s/^\"$1\"://;s/^\"//;s/\"\$//;p}"
}

# Berth's JSON object of GPU $1, without its nested lists.
gpu_object()
{
    berth gpus --json | sed 's/{"index":/\n&/g' | grep "^{\"index\":$1,\"uuid\""
}

gpu_indexes()
{
    berth gpus --json | sed 's/{"index":/\n&/g' | sed -nE 's/^\{"index":([0-9]+),"uuid".*/\1/p'
}

# The index of the GPU with UUID $1, whatever its prefix says (CUDA calls instances GPUs too).
gpu_of_uuid()
{
    berth gpus --json | sed 's/{"index":/\n&/g' | sed -nE "s/^\{\"index\":([0-9]+),\"uuid\":\"[A-Z]+-${1#*-}\".*/\1/p"
}

gpu_field()
{
    gpu_object "$1" | field "$2"
}

job_field()
{
    berth show "$1" --json | field "$2"
}

job_is()
{
    [ "$(job_field "$1" state)" = "$2" ]
}

# A field in MiB of a job on one GPU, such as "peak_mib":{"0":5000}: the job's, not an
# attempt's.
job_mib()
{
    local mib
    mib=$(berth show "$1" --json | sed -nE "s/.*\"$2\":\{\"[0-9]+\":([0-9]+)\}.*/\1/p")
    echo "${mib:-0}"
}

uses_at_least()
{
    [ "$(job_mib "$1" use_mib)" -ge "$2" ]
}

free_at_most()
{
    [ "$(gpu_field "$card" free_mib)" -le "$1" ]
}

# True if the last sample shows this many MiB more in use, by jobs and others together, than at
# the beginning.
used_at_least()
{
    [ "$(gpu_field "$card" used_mib)" -ge $((base + $1)) ]
}

is_foreign()
{
    gpu_object "$card" | grep -q "\"strangers\":\[.*\"pid\":$1,"
}

all_known()
{
    local n
    n=$(berth gpus --json | grep -o '"uuid":"[^"]*","name"' | wc -l)
    [ "$n" -ge "$(wc -l <"$dir/devices")" ] && berth gpus --json | grep -q '"unknown_since":null'
}

# --- nvidia-smi's answers

smi()
{
    timeout 30 nvidia-smi "$@" --format=csv,noheader,nounits 2>/dev/null
}

# INDEX, UUID, TOTAL, RESERVED, USED, NAME; old drivers do not report RESERVED.
smi_gpus()
{
    smi --query-gpu=index,uuid,memory.total,memory.reserved,memory.used,name ||
        smi --query-gpu=index,uuid,memory.total,memory.used,name |
        awk -F', ' -v OFS=', ' '{ $3 = $3 ", [N/A]"; print }'
}

# UUIDs of the GPUs in MIG mode, which Berth does not list.
mig_gpus()
{
    smi --query-gpu=uuid,mig.mode.current | awk -F', ' '$2 == "Enabled" { print $1 }'
}

is_divided()
{
    [ -n "$(mig_gpus)" ]
}

# "GPU-UUID PROFILE UUID" of each instance.
mig_instances()
{
    timeout 30 nvidia-smi -L 2>/dev/null | sed -nE 's/^GPU [0-9]+:.*\(UUID: ([^)]*)\).*/gpu \1/p; s/^ +MIG ([^ ]+) .*\(UUID: ([^)]*)\).*/\1 \2/p' |
        awk '$1 == "gpu" { gpu = $2; next } { print gpu, $1, $2 }'
}

# The GPUs that NVLink connects to GPU $1, by nvidia-smi's matrix ("NV4").
linked_to()
{
    timeout 30 nvidia-smi topo -m 2>/dev/null | sed 's/\x1b\[[0-9;]*m//g' | awk -F'\t' -v me="GPU$1" '
        !n { for (i = 2; i <= NF; i++) if ($i ~ /^ *GPU[0-9]+ *$/) n++ }
        $1 == me { for (i = 0; i < n; i++) if ($(i + 2) ~ /^ *NV[0-9]/) printf "%s%d", sep++ ? " " : "", i }'
}

# The MiB that nvidia-smi shows for a process; "" if it does not list it (as in most
# containers).
smi_process()
{
    smi --query-compute-apps=gpu_uuid,pid,used_memory |
        awk -F', *' -v pid="$1" '$2 == pid && $3 ~ /^[0-9]+/ { sum += $3; seen = 1 } END { if (seen) print sum }'
}

# The MiB that nvidia-smi shows as in use on the GPU; "" if it shows nothing.
smi_used()
{
    smi_gpus | awk -F', *' -v uuid="$(gpu_field "$card" uuid)" '$2 == uuid && $5 ~ /^[0-9]+$/ { print $5 }'
}

# --- waiting

# wait_until COMMAND...: returns 1 with a note if it does not become true in time.
wait_until()
{
    local end=$((SECONDS + PATIENCE))
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ] || [ "$SECONDS" -ge "$TOTAL" ]; then
            note="waited in vain for: $*"
            return 1
        fi
        sleep 0.1
    done
}

wait_for_file()
{
    wait_until test -e "$1"
}

# wait_for_job ID [SECONDS]: until the job has completed successfully.
wait_for_job()
{
    local status=0
    berth wait -q -t "${2:-$PATIENCE}" "$1" || status=$?
    if [ "$status" -ne 0 ]; then
        note="job $1 ended with $status: $(berth show "$1" --json | field text); $(tail -n 2 "$(job_field "$1" log)" 2>/dev/null)"
    fi
    return "$status"
}

# submit OPTIONS -- COMMAND: sets $job to its number.
submit()
{
    job=$(berth submit --parsable "$@" 2>"$dir/submit.err") && return
    note="berth submit: $(cat "$dir/submit.err")"
    return 1
}

# --- the GPU

# The MiB free on GPU $1; 0 if that is unknown, or if nothing may start there.
free_on()
{
    local free
    free=$(gpu_field "$1" free_mib)
    case $free in '' | *[!0-9]*) free=0 ;; esac
    if [ "$(gpu_field "$1" state)" != up ]; then free=0; fi
    echo "$free"
}

# Set $room to what is free on it and $base to what others use, in MiB: other users' programs
# come and go.
measure_card()
{
    room=$(free_on "$card")
    base=$(gpu_field "$card" used_mib)
    case $base in '' | *[!0-9]*) base=0 ;; esac
    [ "$room" -ge 12288 ]
}

# Choose the GPU with the most room: sets $card to its index, $mode to its compute mode.
choose_card()
{
    local i free most=0
    card=
    for i in $(gpu_indexes); do
        free=$(free_on "$i")
        if [ "$free" -gt "$most" ]; then
            card=$i
            most=$free
        fi
    done
    if [ -z "$card" ] || ! measure_card; then die "skipped: no GPU has 12 GiB free; the most is $most MiB" 77; fi
    mode=$(smi --query-gpu=uuid,compute_mode | awk -F', ' -v uuid="$(gpu_field "$card" uuid)" '$1 == uuid { print $2 }')
}

# 77 with the reason if the driver lets only one program use the GPU.
can_be_shared()
{
    case ${mode:-Default} in
    Exclusive*) note="GPU $card is in compute mode $mode: it is not shared" && return 77 ;;
    esac
}

# PERCENT of the room, MiB.
part()
{
    echo $((room * $1 / 100))
}

# The MiB that a job with that demand may allocate besides its context.
inside()
{
    echo $(($(part "$1") - CONTEXT_MIB))
}

# near A B: A is within 2 % of B.
near()
{
    local off=$(($1 - $2))
    [ $((${off#-} * 50)) -le "$2" ]
}

describe_machine()
{
    echo "$(berth --version), $(uname -sr), driver $(berth gpus --json | field driver)," \
        "read with $(berth gpus --json | field backend)"
    smi_gpus | sed 's/^/# /'
    echo "# used here: GPU $card, $room MiB free"
}

# Idle as far as this test goes: memory that others have taken meanwhile is listed, or explains
# all that is used.
is_idle()
{
    local others
    others=$(gpu_field "$card" external_mib)
    [ "$(free_on "$card")" -ge $((room - 512)) ] || { [ "${others:-0}" -gt $((base + 512)) ] &&
        [ "$others" -eq "$(gpu_field "$card" used_mib)" ]; }
}

forget_all()
{
    local pid
    for pid in $strangers; do
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    strangers=
    berth cancel --all >/dev/null 2>&1
    berth wait -q -a -t "$PATIENCE" >/dev/null 2>&1
    end_services
    if [ -n "$altered" ]; then
        restart_with ''
        altered=
    fi
    wait_until is_idle
    find "$dir" -maxdepth 1 -name 'f.*' -exec rm -rf {} +
}

# row NAME FUNCTION: the function returns 0, 1 or 77, and leaves its observations in $note.
row()
{
    local status=0 word
    if ! grep -qE -- "$only" <<<"$1"; then return; fi
    note=
    if [ "$SECONDS" -ge "$TOTAL" ]; then
        note="the time is over"
        status=77
    elif ! measure_card; then
        note="other programs have left $room MiB of GPU $card"
        status=77
    else
        "$2" || status=$?
    fi
    case $status in
    0) word=held && held=$((held + 1)) ;;
    77) word=skipped && skipped=$((skipped + 1)) ;;
    *) word=FAILED && failed=$((failed + 1)) ;;
    esac
    printf '%-8s %-62s %s\n' "$word" "$1" "$note"
    local said=$note
    forget_all || { printf '%-8s %-62s %s\n' "" "" "afterwards GPU $card was not free again"; }
    note=$said
}
