# The rows of the table of tests/real-gpu/run: each function makes one thing happen and checks
# it. It returns 0 (it holds), 77 (it cannot be observed here) or another value (it does not
# hold), with its observations in $note. Files that it makes are named f.*; row() cancels the
# jobs it leaves.

same_as_smi()
{
    local line index uuid total reserved name berth_total divided n=0
    command -v nvidia-smi >/dev/null || { note="there is no nvidia-smi"; return 77; }
    divided=$(mig_gpus)
    while IFS= read -r line; do
        IFS=, read -r index uuid total reserved _ name <<<"${line//, /,}"
        if grep -qxF "$uuid" <<<"$divided"; then
            note="$note${note:+; }$index: divided by MIG"
            n=$((n + 1))
            continue
        fi
        if [ -n "$divided" ]; then index=$(gpu_of_uuid "$uuid"); fi # Berth counts the instances too
        [ "$(gpu_field "$index" uuid)" = "$uuid" ] ||
            { note="GPU $index is $uuid, for Berth $(gpu_field "$index" uuid)"; return 1; }
        [ "$(gpu_field "$index" name)" = "$name" ] ||
            { note="GPU $index is a $name, for Berth $(gpu_field "$index" name)"; return 1; }
        case $reserved in *[!0-9]*) reserved=0 ;; esac
        berth_total=$(gpu_field "$index" total_mib)
        # MiB are rounded on both sides; without the reserved part, Berth's figure is a little
        # smaller.
        near "$berth_total" $((total - reserved)) ||
            { note="GPU $index has $total MiB, $reserved reserved; for Berth $berth_total"; return 1; }
        note="$note${note:+; }$index: $name, $total MiB, for jobs $berth_total"
        n=$((n + 1))
    done < <(smi_gpus)
    [ "$n" -gt 0 ] || { note="nvidia-smi lists no GPU"; return 1; }
}

# Compare compute capabilities, and which GPUs NVLink connects ("NV4" in the matrix of topo).
same_topology()
{
    local index cc wanted joined said=
    if is_divided; then note="a GPU is divided by MIG: Berth's numbers are not nvidia-smi's"; return 77; fi
    while IFS=, read -r index cc; do
        awk -v a="$cc" -v b="$(gpu_field "$index" compute_capability)" 'BEGIN { exit a + 0 == b + 0 ? 0 : 1 }' ||
            { note="GPU $index has $cc, for Berth $(gpu_field "$index" compute_capability)"; return 1; }
        said="$said${said:+; }$index: ${cc# }"
    done < <(smi --query-gpu=index,compute_cap)
    [ -n "$said" ] || { note="this nvidia-smi does not say compute capabilities"; return 77; }
    for index in $(gpu_indexes); do
        wanted=$(linked_to "$index" | tr ' ' ',')
        joined=$(gpu_object "$index" | sed -nE 's/.*"nvlink":\[([0-9,]*)\].*/\1/p')
        [ "$wanted" = "$joined" ] || ! timeout 30 nvidia-smi topo -m >/dev/null 2>&1 ||
            { note="GPU $index is joined to '$wanted', for Berth to '$joined'"; return 1; }
        if [ -n "$joined" ]; then said="$said; $index joined to $joined"; fi
    done
    note=$said
}

# Compare with the kernel's NUMA node; a job that books a core is restricted to its CPUs.
near_cpus()
{
    local bus node cpus why seen
    bus=$(smi --query-gpu=index,pci.bus_id | awk -F', ' -v i="$card" '$1 == i { print tolower(substr($2, length($2) - 11)) }')
    node=$(cat "${BERTH_SYS:-/sys}/bus/pci/devices/$bus/numa_node" 2>/dev/null)
    if [ "${node:--1}" -ge 0 ] && [ "$node" != "$(gpu_field "$card" numa_node)" ]; then
        note="the kernel says node $node, Berth $(gpu_field "$card" numa_node)"
        return 1
    fi
    why=$(gpu_field "$card" bind_why)
    [ "$why" = null ] || { note="jobs are not bound: $why"; return 77; }
    cpus=$(gpu_object "$card" | sed -nE 's/.*"cpu_list":"([0-9,-]*)".*/\1/p')
    submit --gpu-ids "$card" --vram "${CONTEXT_MIB}M" --cpus 1 -- \
        "awk '/^Cpus_allowed_list/ { print \$2 }' /proc/self/status >f.cpus" && wait_for_job "$job" || return 1
    seen=$(cat f.cpus)
    note="CPUs $seen of node $(gpu_field "$card" numa_node)"
    [ "$seen" = "$cpus" ] || { note="$note; Berth says $cpus"; return 1; }
}

# The UUIDs that a job with these --gpu-ids sees, in its order, without GPU- or MIG-; its
# CUDA_DEVICE_ORDER goes to f.order.
seen_with()
{
    submit --gpu-ids "$1" --vram "${CONTEXT_MIB}M" -- "$cuda_job devices >f.seen && echo \$CUDA_DEVICE_ORDER >f.order" &&
        wait_for_job "$job" || return 1
    seen=$(awk '{ print substr($2, 5) }' f.seen | tr '\n' ' ')
}

uuid_of()
{
    gpu_field "$1" uuid | sed 's/^[A-Z]*-//'
}

masks_and_order()
{
    local i seen all wanted
    mapfile -t all < <(gpu_indexes | while read -r i; do
        if [ "$(free_on "$i")" -ge $((2 * CONTEXT_MIB)) ]; then echo "$i"; fi
    done)
    for i in "${all[@]}"; do
        seen_with "$i" || return 1
        wanted="$(uuid_of "$i") "
        [ "$seen" = "$wanted" ] || { note="asked for GPU $i ($wanted), saw $seen"; return 1; }
        [ "$(cat f.order)" = PCI_BUS_ID ] || { note="CUDA_DEVICE_ORDER is '$(cat f.order)'"; return 1; }
    done
    note="each of ${#all[@]} alone"
    i=$(gpu_indexes | wc -l)
    if [ "$i" -gt ${#all[@]} ]; then note="$note ($((i - ${#all[@]})) without room)"; fi
    if [ ${#all[@]} -lt 2 ] || is_divided; then return 0; fi
    i=${all[-1]}
    seen_with "$i,${all[0]}" || return 1
    wanted="$(uuid_of "$i") $(uuid_of "${all[0]}") "
    [ "$seen" = "$wanted" ] || { note="asked for $i,${all[0]} ($wanted), saw $seen"; return 1; }
    note="$note; $i,${all[0]} in this order"
}

# holder NAME PERCENT OPTIONS...: a job that holds that part of the GPU until f.NAME.end exists.
holder()
{
    local name=$1 percent=$2
    shift 2
    submit --vram "$(part "$percent")M" "$@" -- "$cuda_job hold $(inside "$percent") --ready $dir/f.$name --until $dir/f.$name.end"
}

fit_together()
{
    local a b
    can_be_shared || return
    # If the driver lists no processes, the first job's allocations count in addition to its
    # declared demand.
    holder a 30 --gpu-ids "$card" && a=$job && holder b 30 --gpu-ids "$card" && b=$job || return 1
    wait_for_file f.a && wait_for_file f.b || return 1
    touch f.a.end f.b.end
    wait_for_job "$a" && wait_for_job "$b" || return 1
    note="twice 30 % of $room MiB were held at once"
}

spread_over_two()
{
    local a b other
    [ "$(wc -l <"$dir/devices")" -gt 1 ] || { note="there is one GPU"; return 77; }
    other=$(gpu_indexes | grep -vx "$card" | while read -r i; do free_on "$i"; done | sort -n | tail -1)
    [ "${other:-0}" -ge $(($(part 60) + 1024)) ] || { note="no second GPU has room for it ($other MiB)"; return 77; }
    holder a 60 && a=$job && holder b 60 && b=$job || return 1
    wait_for_file f.a && wait_for_file f.b || return 1
    local on_a on_b
    on_a=$(berth show "$a" --json | sed -nE 's/.*"gpus":\[\{"index":([0-9]+).*/\1/p')
    on_b=$(berth show "$b" --json | sed -nE 's/.*"gpus":\[\{"index":([0-9]+).*/\1/p')
    touch f.a.end f.b.end
    wait_for_job "$a" && wait_for_job "$b" || return 1
    note="GPUs $on_a and $on_b"
    [ "$on_a" != "$on_b" ]
}

never_together()
{
    local a rest
    holder a 60 --gpu-ids "$card" && a=$job && wait_for_file f.a || return 1
    submit -a 0-3 --vram "$(part 60)M" --gpu-ids "$card" -- \
        "echo + >>f.log; $cuda_job hold $(inside 60); code=\$?; echo - >>f.log; exit \$code" && rest=$job || return 1
    wait_until used_at_least "$(inside 60)" || return 1
    [ ! -e f.log ] || { note="one began beside another"; return 1; }
    touch f.a.end
    wait_for_job "$a" && wait_for_job "$rest" || return 1
    note="5 jobs, one after the other"
    [ "$(tr -d '\n' <f.log)" = "+-+-+-+-" ] || { note="begins (+) and ends (-): $(tr -d '\n' <f.log)"; return 1; }
}

# The job would run out of memory if it started too early.
stranger()
{
    local pid free
    CUDA_VISIBLE_DEVICES=$(gpu_field "$card" uuid) "$cuda_job" hold "$(part 50)" --ready f.s --until f.s.end 2>f.err &
    pid=$!
    strangers="$strangers $pid"
    wait_for_file f.s || { note="$note; $(cat f.err)"; return 1; }
    wait_until free_at_most "$(part 51)" || return 1
    free=$(gpu_field "$card" free_mib)
    note="it holds $(part 50) MiB, $free left"
    if [ -n "$(smi_process "$pid")" ]; then
        wait_until is_foreign "$pid" || return 1
        note="$note, listed as pid $pid"
    fi
    submit --vram "$(part 70)M" --gpu-ids "$card" -- "$cuda_job hold $(inside 70)" || return 1
    job_is "$job" PENDING || { note="a job of 70 % began beside it"; return 1; }
    touch f.s.end
    wait "$pid"
    strangers=
    local said=$note
    wait_for_job "$job" || return 1
    note="$said; a job of 70 % waited for its end"
}

# Compare with nvidia-smi's figure for the process, or, if it lists none, with the growth of
# the GPU's memory in use.
peak()
{
    local told by before mine
    before=$(smi_used)
    holder a 40 --gpu-ids "$card" && wait_for_file f.a && wait_until used_at_least "$(inside 40)" || return 1
    told=$(smi_process "$(cat f.a)")
    by="for the process"
    if [ -z "$told" ] && [ -n "$before" ]; then
        told=$(($(smi_used) - before))
        by="more in use"
    fi
    # The job's memory is known only if processes are listed.
    if [ "$by" = "for the process" ]; then wait_until uses_at_least "$job" "$(inside 40)" || return 1; fi
    touch f.a.end
    wait_for_job "$job" || return 1
    mine=$(job_mib "$job" peak_mib)
    note="allocated $(inside 40), nvidia-smi ${told:-?} MiB $by, Berth $mine"
    if [ "$mine" -eq 0 ] && [ "$by" != "for the process" ]; then
        note="the driver lists no processes by this machine's numbers (a container?)"
        return 77
    fi
    near "$mine" "${told:-$(inside 40)}"
}

attributed()
{
    local a b
    can_be_shared || return
    holder a 20 --gpu-ids "$card" && a=$job && holder b 40 --gpu-ids "$card" && b=$job || return 1
    wait_for_file f.a && wait_for_file f.b || return 1
    local told_a told_b
    told_a=$(smi_process "$(cat f.a)")
    told_b=$(smi_process "$(cat f.b)")
    [ -n "$told_a" ] && [ -n "$told_b" ] ||
        { note="the driver lists no processes by this machine's numbers (a container?)"; return 77; }
    wait_until uses_at_least "$a" "$(inside 20)" && wait_until uses_at_least "$b" "$(inside 40)" || return 1
    note="nvidia-smi $told_a and $told_b, Berth $(job_mib "$a" use_mib) and $(job_mib "$b" use_mib) MiB"
    near "$(job_mib "$a" use_mib)" "$told_a" && near "$(job_mib "$b" use_mib)" "$told_b" || return 1
    if is_foreign "$(cat f.a)" || is_foreign "$(cat f.b)"; then
        note="$note; one is taken for a stranger"
        return 1
    fi
}

is_gone()
{
    ! kill -0 "$1" 2>/dev/null
}

own_session()
{
    local pid
    submit --vram "$(part 30)M" --gpu-ids "$card" -- \
        "$cuda_job hold $(inside 30) --detach --ready $dir/f.a --until $dir/f.never; while :; do sleep 1; done" &&
        wait_for_file f.a || return 1
    pid=$(cat f.a)
    if [ -n "$(smi_process "$pid")" ]; then
        wait_until uses_at_least "$job" "$(inside 30)" || return 1
        if is_foreign "$pid"; then note="pid $pid is taken for a stranger"; return 1; fi
        note="its $(job_mib "$job" use_mib) MiB count as the job's; "
    fi
    berth cancel "$job" >/dev/null 2>f.err || { note=$(cat f.err); return 1; }
    local said=$note
    wait_until is_gone "$pid" && wait_until is_idle || return 1
    note="${said}it ended with its job"
}

# One job grows far beyond its demand while another is about to allocate, so the second gets a
# genuine out-of-memory error of the driver. The first ends, and the second job's next attempt
# has room.
out_of_memory()
{
    local big small
    can_be_shared || return
    submit --vram "$(part 15)M" --vram-cap off --gpu-ids "$card" -- \
        "$cuda_job hold 64 --ready $dir/f.a --until $dir/f.grow && $cuda_job hold $(part 75) --ready $dir/f.b --until $dir/f.done" &&
        big=$job && wait_for_file f.a || return 1
    submit --vram "$(part 15)M" --vram-cap off --oom-retries 3 --gpu-ids "$card" -- \
        "echo run >>f.runs; while [ ! -e f.go ]; do sleep 0.1; done; $cuda_job hold $(part 40) || { code=\$?; rm f.go; touch f.oom; exit \$code; }" &&
        small=$job && wait_for_file f.runs || return 1
    touch f.grow
    wait_for_file f.b || return 1
    touch f.go
    wait_for_file f.oom || return 1
    touch f.done
    wait_for_job "$big" || return 1
    touch f.go
    wait_for_job "$small" || return 1
    note="$(berth show "$small" --json | grep -oE '"text":"[^"]*out of memory[^"]*"' | sed -n '1{s/"text"://;p}'), $(wc -l <f.runs) runs"
    [ "$(wc -l <f.runs)" -eq 2 ] && grep -q 'out of memory' <<<"$note"
}

# This daemon's probe, not another instance's. Processes may end while they are read.
probe_pid()
{
    cat /proc/[0-9]*/status 2>/dev/null | awk -v parent="$(berth status --json | field pid)" '
        $1 == "Name:" { name = $2 } $1 == "Pid:" { pid = $2 }
        $1 == "PPid:" && $2 == parent && name == "berth-probe" { print pid }' || true
}

is_replaced()
{
    local now
    now=$(probe_pid)
    [ -n "$now" ] && [ "$now" != "$1" ] && all_known
}

probe_killed()
{
    local pid a
    holder a 30 --gpu-ids "$card" && a=$job && wait_for_file f.a || return 1
    pid=$(probe_pid)
    [ -n "$pid" ] && kill -KILL "$pid" || { note="there is no berth-probe below the daemon"; return 1; }
    wait_until is_replaced "$pid" || return 1
    job_is "$a" RUNNING || { note="the running job is $(job_field "$a" state)"; return 1; }
    submit --vram "$(part 30)M" --gpu-ids "$card" -- "$cuda_job hold $(inside 30)" && wait_for_job "$job" || return 1
    touch f.a.end
    wait_for_job "$a" || return 1
    note="probe $pid, then $(probe_pid)"
}

exactly_once()
{
    local began=$SECONDS
    submit -a "0-$((jobs - 1))" --vram "${CONTEXT_MIB}M" -- "echo \$BERTH_ARRAY_TASK_ID >>f.ran; exec $cuda_job hold 16" &&
        wait_for_job "$job" $((TOTAL - SECONDS)) || return 1
    note="$(wc -l <f.ran) runs, $(sort -u f.ran | wc -l) tasks, $((SECONDS - began)) s"
    [ "$(wc -l <f.ran)" -eq "$jobs" ] && [ "$(sort -u f.ran | wc -l)" -eq "$jobs" ]
}

training()
{
    local script=$here/../../examples/train.py needed mine
    [ -e "$script" ] || { note="there is no $script"; return 77; }
    timeout 60 python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
        { note="there is no python3 with PyTorch that finds a GPU"; return 77; }
    submit --vram 8G --gpu-ids "$card" -- "python3 '$script' --steps 100 --batch 8" && wait_for_job "$job" 180 || return 1
    needed=$(sed -nE 's/^cuda:0 needed ([0-9]+) MiB.*/\1/p' "$(job_field "$job" log)")
    mine=$(job_mib "$job" peak_mib)
    note="PyTorch needed ${needed:-?} MiB, Berth saw $mine with CUDA's context"
    # Samples may miss the peak of a run of a few seconds; a context comes on top.
    [ -n "$needed" ] && [ "$mine" -ge $((needed * 98 / 100)) ]
}
