#!/bin/bash
#SBATCH --cpus-per-task=4 --mem=8G
#SBATCH hetjob
#SBATCH --gres=gpu:2
srun ./solver : ./worker
