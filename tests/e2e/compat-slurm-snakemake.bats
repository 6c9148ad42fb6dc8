#!/usr/bin/env bats
# Snakemake on Berth through Slurm's commands: its own Slurm support (--slurm, release 7), and
# the older way with one command for submitting and one for the status.

load lib

SNAKEMAKE=/usr/bin/snakemake # Debian's: another Python may come first in PATH

case_setup()
{
    if [ ! -x "$SNAKEMAKE" ]; then skip 'there is no snakemake (Debian package snakemake)'; fi
    berth compat install "$ROOT/bin" slurm >/dev/null
    PATH=$ROOT/bin:/usr/bin:$PATH
    export HOME=$ROOT USER
    USER=$(id -un)
    start_daemon 2
    cat >Snakefile <<'END'
N = range(int(config["n"]))
rule all:
    input: "report.txt"
rule train:
    output: "out/{i}.txt"
    resources: runtime=5, mem_mb=1000, slurm_extra="--gres=gpu:1"
    shell: "echo {wildcards.i} $CUDA_VISIBLE_DEVICES $SLURM_JOB_ID >{output}"
rule report:
    input: expand("out/{i}.txt", i=N)
    output: "report.txt"
    resources: runtime=5, mem_mb=1000, slurm_extra=""
    shell: "cat {input} >{output}"
END
}

@test "snakemake --cluster 'sbatch --parsable ...' with a status command" {
    cat >status <<'END'
#!/bin/sh
case $(sacct -j "$1" -nXP -o state) in
    COMPLETED) echo success ;;
    PENDING | RUNNING | COMPLETING | '') echo running ;;
    *) echo failed ;;
esac
END
    chmod +x status
    # shellcheck disable=SC2016
    timeout 600 "$SNAKEMAKE" --config n=4 -j 10 --latency-wait 30 --cluster-status ./status --cluster-cancel scancel \
        --cluster 'sbatch --parsable -p gpu -A lab -J {rule} -t {resources.runtime} --mem {resources.mem_mb} {resources.slurm_extra}' \
        >"$ROOT/out" 2>&1 || fail_with "$(tail -40 "$ROOT/out")"
    # The last one has no GPU.
    is 'lines of the report' "$(grep -cE '^[0-9]+ [01] [0-9]+$' report.txt)" 4
    is 'states' "$(sacct -nXP -o state,exitcode | sort | uniq -c | xargs)" '5 COMPLETED|0:0'
    is 'names' "$(sacct -nXP -o jobname | sort | uniq -c | xargs)" '1 report 4 train'
    is 'GPUs' "$(sacct -nXP -o alloctres | grep -c 'gres/gpu=1')" 4
}

@test "snakemake --slurm" {
    # It checks each job every half minute.
    timeout 900 "$SNAKEMAKE" --slurm --config n=1 -j 10 --latency-wait 30 >"$ROOT/out" 2>&1 || fail_with "$(tail -40 "$ROOT/out")"
    is 'lines of the report' "$(grep -cE '^0 [01] [0-9]+$' report.txt)" 1
    is 'states' "$(sacct -nXP -o state,exitcode | sort -u)" 'COMPLETED|0:0'
    is 'GPUs' "$(sacct -nXP -o alloctres | grep -c 'gres/gpu=1')" 1
}
