#!/bin/bash
#SBATCH --job-name=modules
#SBATCH --time=1:00:00
#SBATCH --gres=gpu:1

module purge
module load cuda/12.1 cudnn/8.9
module list
nvcc --version
python train.py
