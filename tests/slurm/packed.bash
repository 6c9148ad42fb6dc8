# For tests of packed jobs, after `load lib` and `load berth`.

submit() { timeout "$LIMIT" berth submit --on slurm --pack "$@"; }
run_file() { timeout "$LIMIT" berth run --on slurm --pack "$@"; }
# `settings LINE...`: start a daemon with these settings, on GPUs of 24,000 MiB.
settings()
{
    printf '%s\n' "slurm_gpu_mib: 24000" "$@" >config
    berth daemon start --config config
}
none_left() { [ -z "$(squeue -h)" ]; }
n_allocations() { squeue -h -n berth-pack | wc -l; }

# Check the allocations' records of starts and ends on their GPUs: at no moment is more
# promised of a GPU than it has. Print the number of starts.
check_promises()
{
    awk '
        $2 == "here" { for (i = 4; i <= NF; i++) size[FILENAME, i - 4] = $i }
        $2 == "began" {
            n = split($4, gpus, ",")
            began++
            cards[$3] = $4
            vram[$3] = $5
            for (i = 1; i <= n; i++) {
                at = FILENAME SUBSEP gpus[i]
                used[at] += $5 > 0 ? $5 : $4 == "-" ? 0 : size[at]
                if (gpus[i] != "-" && used[at] > size[at]) { print "more than it has: " FILENAME ": " $0; exit 1 }
            }
        }
        $2 == "ended" && $3 in cards {
            n = split(cards[$3], gpus, ",")
            for (i = 1; i <= n; i++) {
                at = FILENAME SUBSEP gpus[i]
                used[at] -= vram[$3] > 0 ? vram[$3] : cards[$3] == "-" ? 0 : size[at]
            }
        }
        END { print began }
    ' $(find "$BERTH_DIR/state/allocations" "$BERTH_DIR/logs" -name events -o -name 'allocation-*.log')
}
