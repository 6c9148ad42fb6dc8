#!/bin/bash
#SBATCH --job-name=seeds
#SBATCH --array=0-4%2
#SBATCH --output=seed_%A_%a.out
#SBATCH --gres=gpu:1
#SBATCH --time=10:00

SEED=$((SLURM_ARRAY_TASK_ID * 100))
echo "Task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT (job $SLURM_ARRAY_JOB_ID)"
python train.py --seed $SEED
