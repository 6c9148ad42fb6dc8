# Rows of tests/real-gpu/run that need what not every machine has: several GPUs to choose from,
# CPUs near them, MIG, MPS, containers. As in rows.bash, each returns 0, 77 or 1, with its
# observations in $note.

# --- placing

# The kernel's NUMA node of GPU $1 (nvidia-smi's number); "" if it gives none.
node_of()
{
    local bus node
    bus=$(smi --query-gpu=index,pci.bus_id | awk -F', ' -v i="$1" '$1 == i { print tolower(substr($2, length($2) - 11)) }')
    node=$(cat "${BERTH_SYS:-/sys}/bus/pci/devices/$bus/numa_node" 2>/dev/null)
    if [ "${node:--1}" -ge 0 ]; then echo "$node"; fi
}

# "A B HOW" for each pair of the given GPUs, A before B: HOW is linked, near (one node) or far.
pairs_of()
{
    local a b how node=() linked=()
    for a; do
        node[a]=$(node_of "$a")
        linked[a]=$(linked_to "$a")
    done
    while [ $# -gt 1 ]; do
        a=$1
        shift
        for b; do
            how=far
            if [ -n "${node[a]}" ] && [ "${node[a]}" = "${node[b]}" ]; then how=near; fi
            case " ${linked[a]} " in *" $b "*) how=linked ;; esac
            echo "$a $b $how"
        done
    done
}

# Two GPUs connected by NVLink if there are any, else two of one node.
placed_near()
{
    local i roomy=() pairs kinds best how pair
    if is_divided; then note="a GPU is divided by MIG"; return 77; fi
    for i in $(gpu_indexes); do
        if [ "$(free_on "$i")" -ge $((2 * CONTEXT_MIB)) ]; then roomy+=("$i"); fi
    done
    [ ${#roomy[@]} -gt 2 ] || { note="it takes three GPUs with room to have a choice of two"; return 77; }
    pairs=$(pairs_of "${roomy[@]}")
    kinds=$(cut -d' ' -f3 <<<"$pairs" | sort -u)
    [ "$(wc -l <<<"$kinds")" -gt 1 ] || { note="all pairs of GPUs are alike: $kinds"; return 77; }
    best=near
    if grep -q linked <<<"$kinds"; then best=linked; fi
    submit -G 2 --vram "${CONTEXT_MIB}M" -- "$cuda_job devices >f.seen" && wait_for_job "$job" || return 1
    pair=$(awk '{ print $2 }' f.seen | while read -r i; do gpu_of_uuid "$i"; done | sort -n | tr '\n' ' ')
    how=$(awk -v p="$pair" '$1 " " $2 " " == p { print $3 }' <<<"$pairs")
    note="GPUs ${pair% } of ${#roomy[@]}: ${how:-not a pair of them}"
    [ "$how" = "$best" ] || { note="$note; there is a pair that is $best"; return 1; }
}

# Set $seen to the CPUs that a job with these options may use.
cpus_with()
{
    submit --gpu-ids "$card" --vram "${CONTEXT_MIB}M" "$@" -- \
        "awk '/^Cpus_allowed_list/ { print \$2 }' /proc/self/status >f.cpus" && wait_for_job "$job" || return 1
    seen=$(cat f.cpus)
}

bound_as_asked()
{
    local seen near all why
    why=$(gpu_field "$card" bind_why)
    [ "$why" = null ] || { note="jobs are not bound: $why"; return 77; }
    near=$(gpu_object "$card" | sed -nE 's/.*"cpu_list":"([0-9,-]*)".*/\1/p')
    all=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)
    cpus_with --cpu-bind node || return 1
    [ "$seen" = "$near" ] || { note="node, without --cpus: CPUs $seen, for Berth $near"; return 1; }
    cpus_with --cpu-bind off --cpus 1 || return 1
    [ "$seen" = "$all" ] || { note="off: CPUs $seen of $all"; return 1; }
    note="node: CPUs $near; off: $all"
}

# --- MIG

# Run on each instance alone, by its UUID; two in one job are refused.
instances()
{
    local gpu profile uuid i list said=
    list=$(mig_instances)
    if [ -z "$list" ] && is_divided; then note="MIG mode is on, and there is no instance"; return 77; fi
    [ -n "$list" ] || { note="no GPU is divided by MIG"; return 77; }
    while read -r gpu profile uuid; do
        i=$(gpu_of_uuid "$uuid")
        [ -n "$i" ] || { note="Berth does not list $uuid"; return 1; }
        [ "$(free_on "$i")" -ge $((2 * CONTEXT_MIB)) ] || { said="$said${said:+; }$i: $profile, without room" && continue; }
        [ -z "$(gpu_of_uuid "$gpu")" ] || { note="Berth lists the divided GPU $gpu"; return 1; }
        case $(gpu_field "$i" name) in
        *"MIG $profile") ;;
        *) note="$uuid is a $profile, for Berth $(gpu_field "$i" name)" && return 1 ;;
        esac
        submit --gpu-ids "$uuid" --vram "${CONTEXT_MIB}M" -- \
            "echo \$CUDA_VISIBLE_DEVICES >f.mask; $cuda_job devices >f.seen && exec $cuda_job hold 64" </dev/null &&
            wait_for_job "$job" </dev/null || return 1
        [ "$(cat f.mask)" = "$uuid" ] || { note="CUDA_VISIBLE_DEVICES is '$(cat f.mask)' for $uuid"; return 1; }
        [ "$(awk '{ print substr($2, 5) }' f.seen)" = "${uuid#MIG-}" ] ||
            { note="CUDA shows $(awk '{ print $2 }' f.seen | tr '\n' ' ')for $uuid"; return 1; }
        said="$said${said:+; }$i: $profile, $(gpu_field "$i" total_mib) MiB"
    done <<<"$list"
    set -- $(cut -d' ' -f3 <<<"$list")
    if [ $# -gt 1 ]; then
        if submit --gpu-ids "$1,$2" -- true; then note="a job of two instances is not refused"; return 1; fi
    fi
    note=$said
}

# --- MPS

# Send a command to the control daemon that start_mps started.
tell_mps()
{
    CUDA_MPS_PIPE_DIRECTORY=$mps/pipe CUDA_MPS_LOG_DIRECTORY=$mps/log timeout 30 nvidia-cuda-mps-control <<<"$1" 2>/dev/null
}

# Start a control daemon as the current user. 77 with the reason if it cannot run.
start_mps()
{
    command -v nvidia-cuda-mps-control >/dev/null || { note="there is no nvidia-cuda-mps-control"; return 77; }
    if is_divided; then note="a GPU is divided by MIG"; return 77; fi
    mps=$dir/mps
    mkdir -p "$mps/pipe" "$mps/log"
    # Jobs' CUDA_VISIBLE_DEVICES uses the control daemon's numbering of the GPUs, so fix its
    # order.
    CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_PIPE_DIRECTORY=$mps/pipe CUDA_MPS_LOG_DIRECTORY=$mps/log \
        timeout 30 nvidia-cuda-mps-control -d >"$dir/f.err" 2>&1 ||
        { note="nvidia-cuda-mps-control -d does not start: $(tail -n 1 "$dir/f.err")"; mps=; return 77; }
}

# Two jobs as clients of one server: each job's own memory is attributed to it, though they
# share the server.
mps_clients()
{
    local a b servers pid told_a told_b
    can_be_shared || return
    start_mps || return
    holder a 20 --gpu-ids "$card" --env "CUDA_MPS_PIPE_DIRECTORY=$mps/pipe" && a=$job &&
        holder b 40 --gpu-ids "$card" --env "CUDA_MPS_PIPE_DIRECTORY=$mps/pipe" && b=$job || return 1
    wait_for_file f.a && wait_for_file f.b || return 1
    servers=$(tell_mps get_server_list | grep -xE '[0-9]+' | tr '\n' ' ')
    [ -n "${servers% }" ] || { note="the jobs ran without a server of MPS"; return 77; }
    told_a=$(smi_process "$(cat f.a)")
    told_b=$(smi_process "$(cat f.b)")
    [ -n "$told_a" ] && [ -n "$told_b" ] || { note="the driver does not list the clients' memory"; return 77; }
    wait_until uses_at_least "$a" "$(inside 20)" && wait_until uses_at_least "$b" "$(inside 40)" || return 1
    note="server ${servers% }; nvidia-smi $told_a and $told_b, Berth $(job_mib "$a" use_mib) and $(job_mib "$b" use_mib) MiB"
    near "$(job_mib "$a" use_mib)" "$told_a" && near "$(job_mib "$b" use_mib)" "$told_b" || return 1
    for pid in "$(cat f.a)" "$(cat f.b)"; do
        if is_foreign "$pid"; then note="$note; pid $pid is taken for a stranger"; return 1; fi
    done
    touch f.a.end f.b.end
    local said=$note
    wait_for_job "$a" && wait_for_job "$b" || return 1
    note=$said
}

# --- containers

# Print why podman cannot run a job of this user with the GPU; "" if it can.
why_no_container()
{
    command -v podman >/dev/null || { echo "podman is not installed"; return; }
    command -v tar >/dev/null && command -v ldd >/dev/null || { echo "no image can be made without tar and ldd"; return; }
    berth doctor | sed -nE '/ container .*, for --container$/d; s/^[a-z]+ +container +//p' | head -n 1
}

# Make an image $image with cuda_job and its libraries, at the same paths as here. The driver's
# libraries are injected with the GPU.
make_image()
{
    local root=$dir/f.image library
    image=localhost/berth-real-gpu-$$
    mkdir -p "$root$(dirname "$cuda_job")" "$root/tmp" "$root/proc" "$root/dev" "$root/sys" "$root/etc"
    cp -L "$cuda_job" "$root$cuda_job"
    ldd "$cuda_job" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -nL "$library" "$root$library"
    done
    tar -C "$root" -cf f.tar . && podman import f.tar "$image" >f.err 2>&1 && return
    note="podman import: $(tail -n 1 f.err)"
    image=
    return 77
}

contained()
{
    local seen wanted lists said=
    note=$(why_no_container)
    [ -z "$note" ] || return 77
    make_image || return
    wanted="$(gpu_field "$card" uuid) "
    submit --container "$image" --gpu-ids "$card" --vram "${CONTEXT_MIB}M" -- "$cuda_job" devices && wait_for_job "$job" || return 1
    seen=$(berth logs "$job" | awk '{ print $2 }' | tr '\n' ' ')
    [ "${seen#*-}" = "${wanted#*-}" ] || { note="given $wanted, CUDA shows ${seen:-nothing }in the container"; return 1; }
    lists=$(smi --query-compute-apps=pid)
    submit --container "$image" --gpu-ids "$card" --vram "$(part 30)M" -- \
        "$cuda_job" hold "$(inside 30)" --ready "$dir/f.a" --until "$dir/f.a.end" && wait_for_file f.a || return 1
    # The job's memory is known only if the driver lists processes.
    if [ "$(smi --query-compute-apps=pid)" != "$lists" ]; then
        wait_until uses_at_least "$job" "$(inside 30)" || return 1
        said=", its $(job_mib "$job" use_mib) MiB count as the job's"
    fi
    touch f.a.end
    wait_for_job "$job" || return 1
    note="$(podman --version); it has GPU $card alone$said"
}
