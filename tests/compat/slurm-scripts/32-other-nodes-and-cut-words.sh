#!/bin/bash
#SBATCH --job-name="pretrain"           # Job name
#SBATCH -o 'logs/%x.%N.%j.out'          # STDOUT and STDERR
#SBATCH --nodes 1
#SBATCH --tasks-per-node 1
#SBATCH  --gpus-per-task=1
#SBATCH -t 0-36:00                      # time (D-HH:MM)
#SBATCH --exclude=dgx04,gpu-[01-03,17]  # nodes with old drivers
#SBATCH --mail-use=someone@example.org
#SBATCH --mail-type=END,FAIL

date +%Y-%m-%d/%H:%M:%S
batch_flag=$(scontrol show jobid ${SLURM_JOB_ID} | grep -oP '(?<=BatchFlag=)([0-1])')
srun --cpu_bind=cores python pretrain.py --batch $batch_flag --local-rank $SLURM_LOCALID
