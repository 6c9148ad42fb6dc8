#!/bin/bash
# The same file for one machine and for a cluster:
#
#   berth submit --sim 2 examples/slurm.sh      here, on simulated cards
#   sbatch examples/slurm.sh                    where there is Slurm
#
# Slurm reads the #SBATCH lines, Berth both; berth-script(7) says what becomes of each.
#SBATCH --job-name=example
#SBATCH --time=10
#SBATCH --gres=gpu:1
#SBATCH --output=%x-%j.txt
#BERTH --vram 8G --tag example

echo "on GPU $CUDA_VISIBLE_DEVICES"
