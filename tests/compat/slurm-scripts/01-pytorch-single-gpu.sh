#!/bin/bash
#SBATCH --job-name=resnet50
#SBATCH --output=logs/%x_%j.out
#SBATCH --error=logs/%x_%j.err
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --gres=gpu:1
#SBATCH --mem=512M
#SBATCH --time=04:00:00
#SBATCH --partition=gpu
#SBATCH --account=ml-lab

set -euo pipefail

echo "Job $SLURM_JOB_ID on $(hostname), started $(date)"
echo "GPUs: $CUDA_VISIBLE_DEVICES"
nvidia-smi

export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
cd "$SLURM_SUBMIT_DIR"
python train.py --arch resnet50 --epochs 90 --workers "$SLURM_CPUS_PER_TASK"
