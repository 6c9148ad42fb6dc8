#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-task=1
#SBATCH --time=0-02:00:00

export NCCL_DEBUG=INFO PYTHONFAULTHANDLER=1
srun python train.py --devices 2
