#!/bin/bash
#SBATCH --job-name=sing
#SBATCH --ntasks=1
#SBATCH --gres=gpu:1
#SBATCH --time=0-01:00

srun singularity run --nv docker://nvcr.io/nvidia/pytorch:24.01-py3 python -c "import torch"
