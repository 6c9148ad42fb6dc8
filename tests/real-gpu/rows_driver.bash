# Rows of tests/real-gpu/run about what the driver enforces, records and reports: memory
# limits, MPS as Berth starts it, accounting, load and energy, devices, XIDs. As in rows.bash,
# each returns 0, 77 or 1, with its observations in $note.

is_over()
{
    case $(job_field "$1" state) in PENDING | STARTING | RUNNING | COMPLETING | SUSPENDED) return 1 ;; esac
}

is_there_or_over()
{
    [ -e "$1" ] || is_over "$2"
}

# began FILE JOB: wait until the job has made the file. 1, or 77 if it cannot run here, with
# its last lines of output.
began()
{
    wait_until is_there_or_over "$1" "$2" || return 1
    [ ! -e "$1" ] || return 0
    note="job $2 is $(job_field "$2" state): $(tail -n 1 "$(job_field "$2" log)" 2>/dev/null)"
    if [ "$(job_field "$2" exit_code)" = 77 ]; then return 77; fi
    return 1
}

# Set $state to the state in which a job ends.
ending_of()
{
    berth wait -q -t "$PATIENCE" "$1" >/dev/null 2>&1
    state=$(job_field "$1" state)
}

# --- memory

# Both fit on the GPU: the job that wants twice its declared demand fails in its own allocation.
held_to_vram()
{
    local by a b state
    by=$(gpu_field "$card" cap)
    case $by in '' | null) note=$(gpu_field "$card" cap_why) && return 77 ;; esac
    if grep -qs "^nvidia/" /sys/fs/cgroup/dmem.capacity; then by="$by with the kernel's dmem"; fi
    holder a 20 --gpu-ids "$card" && a=$job && began f.a "$a" || return
    submit --vram "$(part 20)M" --vram-cap require --gpu-ids "$card" -- "exec $cuda_job hold $(part 40)" && b=$job || return 1
    ending_of "$b"
    note="by $by: $(tail -n 1 "$(job_field "$b" log)" 2>/dev/null | grep -oE 'capacity of [0-9]+ MiB') for $(part 20) declared"
    [ "$state" = OUT_OF_MEMORY ] || { note="$note; it is $state"; return 1; }
    job_is "$a" RUNNING || { note="$note; its neighbour is $(job_field "$a" state)"; return 1; }
    submit --vram "$(part 20)M" --vram-cap require --oom-retries 5 --gpu-ids "$card" -- "exec $cuda_job hold $(part 30)" && b=$job || return 1
    local said=$note
    wait_for_job "$b" || return 1
    touch f.a.end
    wait_for_job "$a" || return 1
    note="$said; its neighbour went on; attempt $(job_field "$b" attempt) of another with $(part 30) passed"
}

# The same without enforcement: the job over its demand is ended, its neighbour is not.
ended_for_excess()
{
    local a b state
    can_be_shared || return
    holder a 20 --gpu-ids "$card" && a=$job && began f.a "$a" || return
    [ -n "$(smi_process "$(cat f.a)")" ] ||
        { note="the driver lists no processes by this machine's numbers (a container?)"; return 77; }
    submit --vram "$(part 20)M" --vram-cap off --on-exceed kill --gpu-ids "$card" -- \
        "exec $cuda_job hold $(part 40) --until $dir/f.never" && b=$job || return 1
    ending_of "$b"
    note="$state: $(berth show "$b" --json | field text)"
    [ "$state" = FAILED ] && job_is "$a" RUNNING || { note="$note; its neighbour is $(job_field "$a" state)"; return 1; }
    touch f.a.end
    local said=$note
    wait_for_job "$a" || return 1
    note="$said; its neighbour went on"
}

# --- MPS

# Send a command to the control daemon that Berth started for this user on the GPU.
tell_mps_of_berth()
{
    local at
    at=$BERTH_DIR/mps/$(gpu_field "$card" uuid)/$(id -u)
    [ -d "$at/pipe" ] || return 1
    CUDA_MPS_PIPE_DIRECTORY=$at/pipe CUDA_MPS_LOG_DIRECTORY=$at/log timeout 30 nvidia-cuda-mps-control <<<"$1" 2>/dev/null
}

# The process ids of its servers. If the control daemon does not run, its error text instead.
servers_of_berth()
{
    tell_mps_of_berth get_server_list | grep -xE '[0-9]+' | tr '\n' ' '
}

is_without_mps()
{
    [ -z "$(servers_of_berth)" ]
}

# With mps: on, two jobs share one server; one of them may not exceed its declared demand; the
# server ends with them.
mps_by_berth()
{
    local a b state servers why
    command -v nvidia-cuda-mps-control >/dev/null || { note="there is no nvidia-cuda-mps-control"; return 77; }
    if is_divided; then note="a GPU is divided by MIG"; return 77; fi
    can_be_shared || return
    restart_with 'mps: on' || return 1
    holder a 20 --gpu-ids "$card" && a=$job && holder b 30 --gpu-ids "$card" && b=$job || return 1
    began f.a "$a" && began f.b "$b" || return
    why=$(gpu_field "$card" mps_why)
    [ "$why" = null ] || { note="$why"; return 77; }
    servers=$(servers_of_berth)
    [ -n "${servers% }" ] || { note="the jobs run without a server of MPS"; return 1; }
    submit --vram "$(part 10)M" --gpu-ids "$card" -- "exec $cuda_job hold $(part 30)" && job=$job || return 1
    ending_of "$job"
    [ "$state" = OUT_OF_MEMORY ] || { note="a client with three times its declaration is $state"; return 1; }
    job_is "$a" RUNNING && job_is "$b" RUNNING ||
        { note="the others are $(job_field "$a" state) and $(job_field "$b" state)"; return 1; }
    touch f.a.end f.b.end
    wait_for_job "$a" && wait_for_job "$b" && wait_until is_without_mps || return 1
    note="server ${servers% }, for two jobs; a third one's $(part 30) MiB did not fit its $(part 10); it ended with them"
}

# --- what the driver counts

is_at_work()
{
    [ "$(gpu_field "$card" util)" -ge 50 ]
}

# A kernel that never idles. Its results are compared; the driver has compiled it for this GPU.
load()
{
    [ "$(gpu_field "$card" util)" != null ] || { note="the driver reports no load for this GPU"; return 77; }
    submit --vram "${CONTEXT_MIB}M" --gpu-ids "$card" -- "exec $cuda_job spin --ready $dir/f.a --until $dir/f.a.end" || return 1
    began f.a "$job" && wait_until is_at_work || return
    local now
    now=$(gpu_field "$card" util)
    touch f.a.end
    wait_for_job "$job" || return 1
    note="$now % now, the job's mean $(job_field "$job" util) %"
    [ "$(job_field "$job" util)" != null ]
}

draws()
{
    smi --query-gpu=uuid,power.draw |
        awk -F', ' -v uuid="$(gpu_field "$card" uuid)" '$1 == uuid && $2 ~ /^[0-9.]+$/ { print int($2 + 0.5) }'
}

has_used()
{
    local joules
    joules=$(job_field "$1" energy_j)
    case $joules in '' | null) return 1 ;; esac
    [ "$joules" -ge "$2" ]
}

# Compare with the power that nvidia-smi shows meanwhile, within a factor of two, since power
# fluctuates.
energy()
{
    local watts mine
    watts=$(draws)
    [ "${watts:-0}" -gt 0 ] || { note="nvidia-smi shows no power.draw for this GPU"; return 77; }
    submit --vram "${CONTEXT_MIB}M" --gpu-ids "$card" -- "exec $cuda_job spin --ready $dir/f.a --until $dir/f.a.end" || return 1
    began f.a "$job" || return
    wait_until has_used "$job" 1 || { note="Berth has no energy of this GPU, nvidia-smi $watts W"; return 77; }
    wait_until has_used "$job" $((4 * watts)) || return 1
    watts=$(draws)
    touch f.a.end
    wait_for_job "$job" || return 1
    mine=$(($(job_field "$job" energy_j) * 1000 / $(job_field "$job" run_ms)))
    note="$(job_field "$job" energy_j) J in $(($(job_field "$job" run_ms) / 1000)) s: $mine W; nvidia-smi $watts W"
    [ "$mine" -ge $((watts / 2)) ] && [ "$mine" -le $((watts * 2)) ]
}

# The job starts and ends between two samples, so only the driver's accounting has its memory
# use.
accounts()
{
    local keeps mine
    keeps=$(smi --query-gpu=uuid,accounting.mode | awk -F', ' -v uuid="$(gpu_field "$card" uuid)" '$1 == uuid { print $2 }')
    [ "$keeps" = Enabled ] || { note="accounting mode is ${keeps:-not told}: root turns it on (nvidia-smi -am 1)"; return 77; }
    restart_with 'sample_ms: 60000' || return 1
    submit --vram "$(part 30)M" --gpu-ids "$card" -- "exec $cuda_job hold $(inside 30)" && wait_for_job "$job" || return 1
    mine=$(job_mib "$job" peak_mib)
    note="allocated $(inside 30) MiB for $(job_field "$job" run_ms) ms, peak $mine"
    [ "$mine" -ge "$(inside 30)" ] && [ "$mine" -le "$(part 30)" ]
}

# --- devices

# Without a mask, CUDA finds the job's own GPU and no other; a job without GPUs finds none.
filtered()
{
    local seen
    [ "$(id -u)" -eq 0 ] || { note="only root can have it"; return 77; }
    if is_divided; then note="a GPU is divided by MIG"; return 77; fi
    restart_with 'device_filter: on' || return 1
    berth status --json | grep -q '"device_filter":true' ||
        { note=$(berth doctor 2>/dev/null | sed -nE 's/^[a-z]+ +devices +//p' | head -n 1); return 77; }
    submit --gpu-ids "$card" --vram "${CONTEXT_MIB}M" -- \
        "unset CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES; exec $cuda_job devices" && wait_for_job "$job" || return 1
    seen=$(berth logs "$job" | awk '{ print $2 }' | tr '\n' ' ')
    [ "$seen" = "GPU-$(uuid_of "$card") " ] || { note="a job on GPU $card can use ${seen:-nothing}"; return 1; }
    submit -G 0 -- "unset CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES; $cuda_job devices; test \$? -eq 77" && wait_for_job "$job" || return 1
    note="a job on GPU $card can use it alone of $(gpu_indexes | wc -l), one without GPUs none"
}

# --- XIDs

is_warned()
{
    timeout 30 berth events -k warning "$1" 2>/dev/null | grep -q '"xid":'
}

# A kernel that writes to unmapped memory. The driver ends that program's context and no other.
xids()
{
    local a b state
    berth gpus --json | grep -q '"reads_kernel_log":true' ||
        { note="the kernel's log cannot be read (root can, or sysctl kernel.dmesg_restrict=0, not in most containers)"; return 77; }
    holder a 20 --gpu-ids "$card" && a=$job && began f.a "$a" || return
    [ -n "$(smi_process "$(cat f.a)")" ] ||
        { note="the driver lists no processes by this machine's numbers (a container?)"; return 77; }
    submit --gpu-ids "$card" --vram "${CONTEXT_MIB}M" -- "exec $cuda_job fault --ready $dir/f.b --until $dir/f.b.end" && b=$job || return 1
    began f.b "$b" || return
    wait_until is_warned "$b" || { note="no XID was read; the log's last: $(dmesg 2>/dev/null | grep -i 'xid' | tail -n 1)"; return 1; }
    touch f.b.end
    ending_of "$b"
    note="$state: $(berth show "$b" --json | field text)"
    [ "$state" = FAILED ] && grep -q 'XID' <<<"$note" || return 1
    [ "$(gpu_field "$card" state)" = up ] && job_is "$a" RUNNING ||
        { note="$note; the GPU is $(gpu_field "$card" state), its neighbour $(job_field "$a" state)"; return 1; }
    touch f.a.end
    local said=$note
    wait_for_job "$a" || return 1
    note="$said; its neighbour went on"
}
