#!/usr/bin/env bats
# Slurm scripts as they are commonly published (tests/compat/slurm-scripts), submitted
# unchanged with the drop-in sbatch. The programs they call are fakes: each appends its name
# and its arguments to `calls`.

load lib

case_setup()
{
    local name
    berth compat install "$ROOT/bin" slurm >/dev/null
    mkdir -p "$ROOT/pretended" "$ROOT/home/miniconda3/etc/profile.d"
    for name in python torchrun apptainer singularity nvidia-smi jupyter matlab Rscript nvcc; do
        cat >"$ROOT/pretended/$name" <<SCRIPT
#!/bin/sh
echo "$name \$*" >>"$WORK/calls"
SCRIPT
    done
    cp "$ROOT/pretended/python" solver
    sed -i 's/python/solver/' solver
    chmod +x "$ROOT"/pretended/* solver
    # By then a login shell has set its own PATH.
    echo "conda() { echo \"conda \$*\" >>$WORK/calls; PATH=$ROOT/pretended:\$PATH; }" >"$ROOT/home/miniconda3/etc/profile.d/conda.sh"
    printf 'a\nb\nc\n' >params.txt
    touch input.dat a.dat b.dat
    PATH=$ROOT/bin:$ROOT/pretended:$PATH
    export HOME=$ROOT/home SECRET=kept
    start_daemon 2
}

# The file that begins with this number.
script_of()
{
    ls "$BATS_TEST_DIRNAME/../compat/slurm-scripts/$1"-*.sh
}

# Submit it, wait, and compare: the job's end; then the lines of `calls`, if any.
runs()
{
    local file job
    file=$(script_of "$1")
    cp "$file" "$(basename "$file")"
    rm -f calls
    job=$(sbatch --parsable "$(basename "$file")" 2>"$ROOT/notes") || fail_with "$file was refused: $(cat "$ROOT/notes")"
    berth wait "$job" >/dev/null 2>&1 || true
    is "$file" "$(sacct -nXP -j "$job" -o state,exitcode | sort -u)" "${2:-COMPLETED|0:0}"
    if [ -n "${3:-}" ]; then has "what $file called" "$(cat calls)" "^$3\$"; fi
}

# It is refused with this error, and nothing is queued.
is_refused()
{
    local file before
    file=$(script_of "$1")
    before=$(squeue -h -t all | wc -l)
    try sbatch "$file"
    is "status of $file" "$status" "$2"
    is "words about $file" "${err//"$file"/FILE}" "$3"
    is 'jobs' "$(squeue -h -t all | wc -l)" "$before"
}

@test "training scripts run: options, conda, containers, modules" {
    runs 01 '' 'python train.py --arch resnet50 --epochs 90 --workers 2'
    is 'logs in a folder that was not there' "$(ls logs)" $'resnet50_1.err\nresnet50_1.out'
    has 'its notes' "$(cat "$ROOT/notes")" '^sbatch: ignored, as they mean nothing on one machine: --partition, --account$'
    runs 02 '' 'python -u finetune.py --model llama --data /scratch/.*/data'
    has 'conda' "$(cat calls)" '^conda activate torch$'
    runs 03 '' "apptainer exec --nv --bind $WORK:/data $ROOT/home/images/pytorch_24.01.sif python /data/evaluate.py"
    runs 04 '' 'singularity run --nv docker://.*'
    runs 15 '' 'python train.py'
    has 'a note about module' "$(cat "$ROOT/notes")" "^sbatch: 15-modules.sh:6: 'module' does not exist here"
    runs 16 '' 'jupyter lab --no-browser --port=8006 --ip=0.0.0.0'
    runs 23 '' 'python tf.py'
    runs 24 '' 'matlab -nodisplay'
    runs 26 '' 'python infer.py'
    is 'the VRAM of a #BERTH line' "$(job_field 9 vram_mib)" 6144
    runs 32 '' 'python pretrain.py --batch 1 --local-rank 0'
    is 'its limit, and its log' "$(sacct -nXP -j 10 -o timelimit) $(ls logs/pretrain.*)" "1-12:00:00 logs/pretrain.$(hostname -s).10.out"
}

@test "arrays run, each task with its variables and its log" {
    runs 05
    is 'seeds' "$(sort calls)" $'python train.py --seed 0\npython train.py --seed 100\npython train.py --seed 200\npython train.py --seed 300\npython train.py --seed 400'
    is 'logs' "$(ls seed_1_*.out | wc -l)" 5
    has 'a log' "$(cat seed_1_3.out)" '^Task 3 of 5 \(job 1\)$'
    runs 06
    is 'lines' "$(sort calls)" $'python sweep.py a\npython sweep.py b\npython sweep.py c'
    runs 25 '' 'Rscript bootstrap.R --replicate 20 --last 30 --step 10'
}

@test "several tasks: torchrun, srun, MPI, steps beside each other" {
    [ "$(nproc)" -ge 2 ] || skip 'these scripts ask for two cores'
    runs 11 '' "torchrun --nnodes=1 --nproc_per_node=2 --rdzv_endpoint=$(hostname -s):29500 ddp.py"
    runs 12
    is 'tasks' "$(cat calls)" $'python train.py --devices 2\npython train.py --devices 2'
    runs 13
    is 'tasks of MPI' "$(cat calls)" $'solver input.dat\nsolver input.dat'
    runs 14
    is 'steps' "$(sort calls)" $'solver a.dat\nsolver b.dat'
}

@test "mail, environments, scratch folders, other interpreters, comments" {
    runs 07
    runs 17
    is 'lines of the scratch folder' "$(cat lines-2)" 3
    runs 18 '' 'python serve.py --model mixtral'
    runs 19
    is 'a clean environment' "$(cat clean-4.out)" "HOME=$HOME secret=unset"
    PATH=${PATH//"$ROOT/pretended:"/}
    runs 20
    is 'Python' "$(cat python-5.out)" 'python on 2 cores of job 5'
    runs 21
    is 'what is a comment, and what comes too late' "$(cat short-6.out)" short
    runs 27 'FAILED|1:0'
    is 'up to the failure' "$(cat fails-7.out)" before
}

@test "signals, requeues, and scripts that submit themselves" {
    runs 09
    is 'two runs' "$(cat requeue-1.out)" 'restart number 1'
    cp "$(script_of 10)" chain.sh
    sbatch chain.sh >/dev/null
    berth wait 2
    berth wait 3
    berth wait 4
    is 'three links' "$(cat chain-[234].out | grep link | tr '\n' ' ')" 'link 1 link 2 link 3 '
    # The time limit that triggers the signal is shortened; the warning makes the job requeue
    # itself.
    printf '#!/bin/sh\nif [ -e resumed ]; then exit 0; fi\n>resumed\nexec sleep 60\n' >"$ROOT/pretended/python"
    sed '/^$/{s/.*/#BERTH --time=40s/;:rest;n;b rest}' "$(script_of 08)" >short.sh
    sbatch --signal=B:USR1@20 short.sh >/dev/null
    wait_for_event kind=requeued job=5
    berth wait 5
    is 'after the requeue' "$(sacct -nXP -j 5 -o state)" COMPLETED
    has 'the handler' "$(cat slurm-5.out)" '^caught USR1'
}

@test "what one machine cannot do is refused with its line" {
    is_refused 22 1 'sbatch: error: FILE:4: #SBATCH --time-min: a time limit is not shortened to fit'
    is_refused 28 1 'sbatch: error: FILE:3: #SBATCH --nodes: 2: there is one machine'
    is_refused 29 1 "sbatch: error: FILE:3: #SBATCH --nodelist: gpu-node-07: there is one machine, $(hostname -s)
sbatch: error: FILE:4: #SBATCH --licenses: there are no licenses"
    is_refused 30 255 "sbatch: error: FILE:3: #SBATCH hetjob: not an option; options begin with -"
    is_refused 31 255 "sbatch: error: FILE:3: #SBATCH --tme: unknown option; did you mean --time?
sbatch: error: FILE:4: #SBATCH --mem: '4Q' is not a size; write 8G, 8192M or 8192 (MiB)"
}
