#!/bin/bash
#SBATCH --job-name=ddp-wide
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --time=24:00:00
srun python ddp.py
