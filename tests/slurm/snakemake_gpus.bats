#!/usr/bin/env bats
# Snakemake's own Slurm support (--slurm, release 7) runs a workflow of GPU rules on a real Slurm, and the same workflow on
# Berth through Slurm's commands.

bats_require_minimum_version 1.5.0
load lib

SNAKEMAKE=/usr/bin/snakemake # Debian's: another Python may come first in PATH
# Two Pythons start for each rule.
N=4
if [ -n "${BERTH_E2E_SLOW:-}" ]; then N=50; fi

case_setup()
{
    if [ ! -x "$SNAKEMAKE" ]; then skip 'there is no snakemake (Debian package snakemake)'; fi
    export HOME=$ROOT/home USER BERTH_DIR=$ROOT/i BERTH_LOCK_DIR=$ROOT/locks LC_ALL=C.UTF-8
    USER=$(id -un)
    mkdir "$HOME" "$BERTH_LOCK_DIR" "$ROOT/w"
    cd "$ROOT/w" || return 1
    cat >Snakefile <<'END'
N = range(int(config["n"]))
rule all:
    input: "report.txt"
rule train:
    output: "out/{i}.txt"
    resources: runtime=60, mem_mb=200, slurm_extra="--gres=gpu:1"
    shell: "echo {wildcards.i} $CUDA_VISIBLE_DEVICES $SLURM_JOB_ID >{output}"
rule report:
    input: expand("out/{i}.txt", i=N)
    output: "report.txt"
    resources: runtime=60, mem_mb=200, slurm_extra=""
    shell: "cat {input} >{output}"
END
}

case_teardown()
{
    timeout "$LIMIT" berth daemon stop --cancel >/dev/null 2>&1 || true
}

# Run the workflow to its end, with whatever sbatch comes first in PATH; its result is a line
# per rule with its GPU and its own job.
run_workflow()
{
    timeout 1100 "$SNAKEMAKE" --slurm --config n=$N -j $((N + 1)) --latency-wait 60 --max-status-checks-per-second 1 >out.log 2>&1 || {
        tail -n 40 out.log
        return 1
    }
    [ "$(awk 'NF == 3 && $2 ~ /^[0-7]$/ { print $1 }' report.txt | tr '\n' ' ')" = "$(seq -s ' ' 0 $((N - 1))) " ]
    [ "$(cut -d ' ' -f 3 report.txt | sort -u | wc -l)" = $N ]
    states() { [ "$(sacct -nXP -o state,exitcode | sort | uniq -c | xargs)" = "$((N + 1)) COMPLETED|0:0" ]; }
    within states # accounting records an end a moment later
    [ "$(sacct -nXP -o alloctres | grep -c 'gres/gpu=1')" = $N ]
}

@test "a workflow of 50 GPU rules on a real Slurm" {
    start_cluster --nodes 1 --gpus 8 --cpus 64 --memory 64000 --accounting
    PATH=/usr/bin:$PATH run_workflow
}

@test "the same workflow on Berth" {
    berth compat install "$ROOT/bin" slurm >/dev/null
    berth daemon start --sim 8
    PATH=$ROOT/bin:/usr/bin:$PATH run_workflow
}
